//! Time as an argument: nothing in this crate reads a clock.

use aaep::{Envelope, Timestamp};

/// The moment at which an input is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Microseconds on a clock that never goes back: deadlines and rates are measured with it.
    pub monotonic_us: u64,
    /// Microseconds since 1970 began, on the wall clock: used for timestamps. This clock may jump.
    pub unix_us: i64,
}

/// Moves the timestamp of an event that the engine made to this moment, if it is earlier.
pub(crate) fn date_not_before(envelope: &mut Envelope, unix_us: i64) {
    if envelope.timestamp.unix_us() < unix_us
        && let Some(timestamp) = Timestamp::from_unix_us(unix_us)
    {
        envelope.timestamp = timestamp;
    }
}

pub(crate) const SECOND_US: u64 = 1_000_000;
