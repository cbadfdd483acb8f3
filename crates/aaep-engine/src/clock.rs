//! Time as an argument: nothing in this crate reads a clock.

/// The moment at which an input is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Microseconds on a clock that never goes back: deadlines and rates are measured with it.
    pub monotonic_us: u64,
    /// Microseconds since 1970 began, on the wall clock: used for timestamps. This clock may jump.
    pub unix_us: i64,
}

pub(crate) const SECOND_US: u64 = 1_000_000;
