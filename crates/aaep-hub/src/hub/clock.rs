//! Reads the machine's clocks, in one place.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aaep_engine::Now;

/// Reads both clocks. Its monotonic time starts when the clock is created.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Clock { began: Instant::now() }
    }

    /// The current time on both clocks.
    pub fn now(&self) -> Now {
        Now { monotonic_us: micros(self.began.elapsed()), unix_us: unix_us() }
    }

    /// Converts a monotonic time to an instant to wait for.
    pub(crate) fn instant(&self, monotonic_us: u64) -> Instant {
        self.began + Duration::from_micros(monotonic_us)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds since 1970; negative if the machine's clock is set to an earlier time.
fn unix_us() -> i64 {
    let signed = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => signed(since),
        Err(before) => -signed(before.duration()),
    }
}
