//! Timestamps (§3.2.5): RFC 3339 with 3 or 6 digits of a second and an offset, real dates only.
//!
//! jiff does the calendar. The form is read here, because jiff alone also accepts a space for the
//! T, second 60, and zone names, and because its instants end before the year 9999 does. There is
//! no clock here: the caller passes the time in.

use serde_json::json;

use crate::form::{WrongForm, report, string_field};
use crate::json::JsonValue;
use crate::read::{FieldType, MessageReader, ValueBounds};
use crate::violation::Code;

/// A moment, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Timestamp {
    text: Box<str>,
    unix_us: i64,
}

const EXPECTED: &str = "a moment such as 2026-05-24T14:22:11.342Z";

impl Timestamp {
    /// Parses the timestamp; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let wrong = WrongForm { name: "Timestamp", expected: EXPECTED };
        match moment(text) {
            Some((3 | 6, unix_us)) => Ok(Timestamp { text: text.into(), unix_us }),
            _ => Err(wrong),
        }
    }

    /// The moment `unix_ms` milliseconds after 1970 began, in UTC; `None` outside the years 0 to
    /// 9999.
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        let at = jiff::Timestamp::from_millisecond(unix_ms).ok()?;
        let text = format!("{at:.3}");
        Timestamp::parse(&text).ok()
    }

    /// The moment `unix_us` microseconds after 1970 began, in UTC; `None` outside the years 0 to
    /// 9999. Written with three digits of a second if that is exact.
    pub fn from_unix_us(unix_us: i64) -> Option<Self> {
        let at = jiff::Timestamp::from_microsecond(unix_us).ok()?;
        let is_whole = unix_us.rem_euclid(1000) == 0;
        let text = if is_whole { format!("{at:.3}") } else { format!("{at:.6}") };
        Timestamp::parse(&text).ok()
    }

    /// Microseconds since 1970 began.
    pub fn unix_us(&self) -> i64 {
        self.unix_us
    }

    /// The timestamp as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How a subscriber reads a moment with another number of digits: the same moment, written with
    /// as many digits as the protocol allows.
    fn with_protocol_digits(text: &str) -> Option<Self> {
        let (digits, unix_us) = moment(text)?;
        let at = jiff::Timestamp::from_microsecond(unix_us).ok()?;
        let text = if digits > 3 { format!("{at:.6}") } else { format!("{at:.3}") };
        Some(Timestamp { text: text.into(), unix_us })
    }
}

/// When a person decided, in any form of RFC 3339 (§6.3.1), so that an answer is never refused
/// because of the digits of its second.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DecisionTime(Box<str>);

impl DecisionTime {
    /// Parses the time; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        if moment(text).is_some() {
            Ok(DecisionTime(text.into()))
        } else {
            Err(WrongForm { name: "DecisionTime", expected: EXPECTED })
        }
    }

    /// Microseconds since 1970 began.
    pub fn unix_us(&self) -> i64 {
        moment(&self.0).map_or(0, |(_, unix_us)| unix_us)
    }

    /// The time as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Timestamp> for DecisionTime {
    fn from(timestamp: Timestamp) -> Self {
        DecisionTime(timestamp.text)
    }
}

string_field!(DecisionTime, "a moment such as 2026-05-24T14:22:11.342Z", {
    "format": "date-time",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
});

/// How many digits of a second a text has, 0 to 9, and the moment in microseconds since 1970 began;
/// `None` if the form is wrong or the moment does not exist. Anything below a microsecond is
/// dropped.
fn moment(text: &str) -> Option<(usize, i64)> {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let (head, mut rest) = text.as_bytes().split_at_checked(FORM.len())?;
    let fits = head.iter().zip(FORM).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        form => byte == form,
    });
    if !fits {
        return None;
    }
    let (mut digits, mut fraction_us) = (0, 0);
    if let Some(fraction) = rest.strip_prefix(b".") {
        digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        let places = fraction[..digits].iter().chain(b"000000").take(6);
        fraction_us = places.fold(0, |number, byte| number * 10 + i64::from(byte - b'0'));
        rest = &fraction[digits..];
    }
    let at = |from: usize| number(&head[from..from + 2]);
    let year = number(&head[..4]);
    // jiff knows the calendar: no 30th of February, no second 60.
    let civil = jiff::civil::DateTime::new(year, at(5), at(8), at(11), at(14), at(17), 0).ok()?;
    let epoch = jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let seconds = civil.duration_since(epoch).as_secs() - offset_seconds(rest)?;
    Some((digits, seconds * 1_000_000 + fraction_us))
}

/// How far the local time is ahead of UTC.
fn offset_seconds(text: &[u8]) -> Option<i64> {
    match text {
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let is_offset = [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit())
                && [*h1, *h2] < *b"24"
                && *m1 < b'6';
            let number: fn(&[u8]) -> i8 = number;
            let (hours, minutes) = (number(&[*h1, *h2]), number(&[*m1, *m2]));
            let seconds = (i64::from(hours) * 60 + i64::from(minutes)) * 60;
            is_offset.then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

/// The number that two or four digits represent. The caller never passes more.
fn number<N: TryFrom<u16> + Default>(digits: &[u8]) -> N {
    let number = digits.iter().fold(0u16, |number, byte| {
        number.wrapping_mul(10).wrapping_add(u16::from(byte.wrapping_sub(b'0')))
    });
    N::try_from(number).unwrap_or_default()
}

impl std::str::FromStr for Timestamp {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        Timestamp::parse(text)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FieldType for Timestamp {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        _: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        let Some(text) = value.as_str() else {
            return reader.wrong_type("a string", value.kind());
        };
        if let Ok(timestamp) = Timestamp::parse(text) {
            return Some(timestamp);
        }
        if let Some(adjusted) =
            Timestamp::with_protocol_digits(text).filter(|_| reader.is_tolerant())
        {
            let problem = "A second is written with 3 or 6 digits after the point.".to_owned();
            reader.tolerable(Code::WrongFormat, problem);
            return Some(adjusted);
        }
        report(text, EXPECTED, reader);
        None
    }

    fn schema(_: &ValueBounds) -> serde_json::Value {
        json!({
            "type": "string",
            "format": "date-time",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]\\.([0-9]{3}|[0-9]{6})(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_with_three_or_six_digits_are_read() {
        for right in [
            "2026-05-24T14:22:11.342Z",
            "2026-05-24T15:22:11.342+01:00",
            "2026-05-24T14:22:11.342001Z",
            "2024-02-29T23:59:59.999-23:59",
            "9999-12-31T23:59:59.999999-23:59",
            "0001-01-01T00:00:00.000Z",
        ] {
            assert_eq!(Timestamp::parse(right).expect(right).as_str(), right);
        }
        let utc = Timestamp::parse("2026-05-24T14:22:11.342Z").expect("time");
        let lagos = Timestamp::parse("2026-05-24T15:22:11.342+01:00").expect("time");
        assert_eq!(utc.unix_us(), lagos.unix_us());
        assert_eq!(Timestamp::from_unix_ms(utc.unix_us() / 1000), Some(utc));
    }

    #[test]
    fn everything_else_is_refused() {
        for wrong in [
            "yesterday",
            "",
            "2026-05-24T14:22:11Z",
            "2026-05-24T14:22:11.3Z",
            "2026-05-24T14:22:11.342",
            "2026-05-24T14:22:11.3421Z",
            "2026-05-24 14:22:11.342Z",
            "2026-05-24t14:22:11.342z",
            "2026-02-29T14:22:11.342Z",
            "2026-13-01T14:22:11.342Z",
            "2026-05-24T24:00:00.000Z",
            "2026-05-24T14:22:60.000Z",
            "2026-05-24T14:22:11.342+24:00",
            "2026-05-24T14:22:11.342+0100",
            "2026-05-24T14:22:11.342Z[UTC]",
            "20260524T142211.342Z",
            "May 24, 2026 14:22:11",
            "0000-00-00T00:00:00.000Z",
        ] {
            assert!(Timestamp::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_subscriber_corrects_only_the_number_of_digits() {
        let adjusted = |text| Timestamp::with_protocol_digits(text).map(|at| at.to_string());
        assert_eq!(adjusted("2026-05-24T14:22:11Z").as_deref(), Some("2026-05-24T14:22:11.000Z"));
        assert_eq!(
            adjusted("2026-05-24T14:22:11.123456789+01:00").as_deref(),
            Some("2026-05-24T13:22:11.123456Z")
        );
        assert_eq!(adjusted("yesterday"), None);
    }
}
