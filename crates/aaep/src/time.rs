//! Timestamps (§3.2.5): RFC 3339 with 3 or 6 digits of a second and an offset, real dates only.
//!
//! jiff does the calendar; the form is checked here first, because jiff alone also takes a space
//! for the T, second 60, and zone names. There is no clock here: who has one passes the moment in.

use serde_json::json;

use crate::form::{WrongForm, report, string_field};
use crate::json::Value;
use crate::read::{Bounds, Field, Reader};
use crate::violation::Code;

/// A moment, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Timestamp {
    text: Box<str>,
    unix_us: i64,
}

const EXPECTED: &str = "a moment such as 2026-05-24T14:22:11.342Z";

impl Timestamp {
    /// Parses the timestamp, or says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let wrong = WrongForm { name: "Timestamp", expected: EXPECTED };
        match fraction_digits(text) {
            Some(3 | 6) => instant(text).map(|at| Timestamp::new(text, at)).ok_or(wrong),
            _ => Err(wrong),
        }
    }

    /// The moment so many milliseconds after 1970 began, in UTC; none outside the years 0 to 9999.
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        let at = jiff::Timestamp::from_millisecond(unix_ms).ok()?;
        let text = format!("{at:.3}");
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

    fn new(text: &str, at: jiff::Timestamp) -> Self {
        Timestamp { text: text.into(), unix_us: at.as_microsecond() }
    }

    /// What a subscriber makes of a moment with another number of digits: the same moment, written
    /// with as many digits as the protocol has.
    fn mend(text: &str) -> Option<Self> {
        let digits = fraction_digits(text)?;
        let at = instant(text)?;
        let written = if digits > 3 { format!("{at:.6}") } else { format!("{at:.3}") };
        Some(Timestamp::new(&written, at))
    }
}

/// When a person decided, in any form of RFC 3339 (§6.3.1). It is recorded and not trusted, so an
/// answer is never refused for the digits of its second.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DecisionTime(Box<str>);

impl DecisionTime {
    /// Parses the time, or says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        if fraction_digits(text).is_some() && instant(text).is_some() {
            Ok(DecisionTime(text.into()))
        } else {
            Err(WrongForm { name: "DecisionTime", expected: EXPECTED })
        }
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

/// How many digits of a second a text of the right form has, 0 to 9; none if the form is wrong.
fn fraction_digits(text: &str) -> Option<usize> {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes();
    let (head, mut rest) = bytes.split_at_checked(FORM.len())?;
    let fits = head.iter().zip(FORM).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        form => byte == form,
    });
    // jiff takes a leap second for the one before it; the protocol has none.
    if !fits || head[17] > b'5' {
        return None;
    }
    let mut digits = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        rest = &fraction[digits..];
    }
    let is_offset = match rest {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit())
                && [*h1, *h2] < *b"24"
                && *m1 < b'6'
        }
        _ => false,
    };
    is_offset.then_some(digits)
}

fn instant(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
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

impl Field for Timestamp {
    fn read<'t>(value: Value<'t, '_>, _: &Bounds, reader: &mut Reader<'t>) -> Option<Self> {
        let Some(text) = value.as_str() else {
            return reader.wrong_type("a string", value.kind());
        };
        if let Ok(timestamp) = Timestamp::parse(text) {
            return Some(timestamp);
        }
        if let Some(mended) = Timestamp::mend(text).filter(|_| reader.is_tolerant()) {
            let problem = "A second is written with 3 or 6 digits after the point.".to_owned();
            reader.tolerable(Code::WrongFormat, problem);
            return Some(mended);
        }
        report(text, EXPECTED, reader);
        None
    }

    fn schema(_: &Bounds) -> serde_json::Value {
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
    fn a_subscriber_mends_the_number_of_digits_only() {
        let mended = |text| Timestamp::mend(text).map(|at| at.to_string());
        assert_eq!(mended("2026-05-24T14:22:11Z").as_deref(), Some("2026-05-24T14:22:11.000Z"));
        assert_eq!(
            mended("2026-05-24T14:22:11.123456789+01:00").as_deref(),
            Some("2026-05-24T13:22:11.123456Z")
        );
        assert_eq!(mended("yesterday"), None);
    }
}
