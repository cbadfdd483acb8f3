//! Reads and writes moments as people say them. Pure: the clock and the time zone are arguments.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

use crate::english::replaying;

/// The longest time back, in seconds: a hundred years.
const MAX_SECONDS: i64 = 100 * 366 * 86_400;

/// The moment that a person means, in microseconds since 1970 began.
pub(super) fn since(text: &str, now_unix_ms: i64, zone: &TimeZone) -> Option<i64> {
    let text = text.trim();
    ago(text)
        .map(|seconds| now_unix_ms.saturating_sub(seconds.saturating_mul(1000)) * 1000)
        .or_else(|| clock(text, now_unix_ms, zone))
        .or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond))
}

/// A number of seconds, minutes, hours or days, in seconds.
fn ago(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at_checked(digits)?;
    let each = match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    };
    count.parse::<i64>().ok()?.checked_mul(each).filter(|seconds| *seconds <= MAX_SECONDS)
}

/// A time of today, or of yesterday if it has not come yet today.
fn clock(text: &str, now_unix_ms: i64, zone: &TimeZone) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    let is_number = |it: &str| matches!(it.len(), 1 | 2) && it.bytes().all(|c| c.is_ascii_digit());
    if !(is_number(hour) && is_number(minute)) {
        return None;
    }
    let now = zoned(now_unix_ms, zone)?;
    let time = Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let today = now.date().to_datetime(time).to_zoned(zone.clone()).ok()?;
    let at = if today <= now { today } else { today.checked_sub(1.day()).ok()? };
    Some(at.timestamp().as_microsecond())
}

/// A moment as people say it: at 14:05, or on 2 November at 14:05.
pub(super) fn when(unix_us: i64, now_unix_ms: i64, zone: &TimeZone) -> String {
    let (Some(at), Some(now)) = (zoned(unix_us.div_euclid(1000), zone), zoned(now_unix_ms, zone))
    else {
        return replaying::TIME_NOT_KNOWN.to_owned();
    };
    replaying::when(&at, &now)
}

fn zoned(unix_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(unix_ms).ok()?.to_zoned(zone.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 November 2026, 14:05 in UTC.
    const NOW_MS: i64 = 1_793_628_300_000;

    fn minutes_before(text: &str) -> i64 {
        let found = since(text, NOW_MS, &TimeZone::UTC).expect(text);
        (NOW_MS - found / 1000) / 60_000
    }

    #[test]
    fn a_moment_is_said_as_people_say_it() {
        for (text, minutes) in [
            ("10m", 10),
            ("10 minutes", 10),
            ("2h", 120),
            ("1d", 1440),
            (" 120s ", 2),
            ("14:00", 5),
            ("9:05", 300),
            ("14:06", 24 * 60 - 1),
            ("2026-11-02T13:05:00Z", 60),
        ] {
            assert_eq!(minutes_before(text), minutes, "{text}");
        }
    }

    #[test]
    fn other_words_are_not_a_moment() {
        for text in
            ["", "10", "m", "10x", "25:00", "14:60", "-5m", "99999999999999999999d", "1:2:3"]
        {
            assert_eq!(since(text, NOW_MS, &TimeZone::UTC), None, "{text}");
        }
    }

    #[test]
    fn the_day_is_told_only_if_it_is_another_one() {
        let at = |minutes: i64| when((NOW_MS - minutes * 60_000) * 1000, NOW_MS, &TimeZone::UTC);
        assert_eq!(at(0), "at 14:05");
        assert_eq!(at(24 * 60), "on 1 November at 14:05");
        assert_eq!(at(366 * 24 * 60), "on 1 November 2025 at 14:05");
        assert_eq!(when(i64::MAX, NOW_MS, &TimeZone::UTC), replaying::TIME_NOT_KNOWN);
    }
}
