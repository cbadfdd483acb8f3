//! The time limit of a client for a call, from the `grpc-timeout` header of gRPC over HTTP/2.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataMap;

/// How many digits a time limit may have.
const MAX_DIGITS: usize = 8;

/// The time limit for a call; `None` if the client set no limit.
pub(super) fn time_of(metadata: &MetadataMap) -> Result<Option<Duration>, Status> {
    let Some(value) = metadata.get("grpc-timeout") else { return Ok(None) };
    let time = value.to_str().ok().and_then(parse);
    time.map(Some).ok_or_else(|| {
        Status::invalid_argument(
            "The header grpc-timeout is not a time. Send up to eight digits and one of H, M, S, m, u, n.",
        )
    })
}

fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.len() > MAX_DIGITS || !number.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit_and_nothing_else_is_one() {
        assert_eq!(parse("2H"), Some(Duration::from_hours(2)));
        assert_eq!(parse("3M"), Some(Duration::from_mins(3)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("1u"), Some(Duration::from_micros(1)));
        assert_eq!(parse("0n"), Some(Duration::ZERO));
        for text in ["", "S", "1", "+1S", "-1S", "1 S", "100000000S", "1s", "1é", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
