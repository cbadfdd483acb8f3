//! The wait before the next connection attempt: it doubles each time, and jitter keeps subscribers from returning
//! together.

use std::time::Duration;

/// The approximate length of the first wait.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait, unless the producer asks for a longer one.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Computes the wait before each attempt from the number of attempts so far.
#[derive(Debug)]
pub(crate) struct RetryBackoff {
    attempts: u32,
    longest: Duration,
}

impl RetryBackoff {
    pub(crate) fn new(longest: Duration) -> Self {
        RetryBackoff { attempts: 0, longest }
    }

    /// The number of attempts made in a row.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The wait before the next attempt: between half and all of a time that doubles.
    pub(crate) fn next(&mut self, random: u32) -> Duration {
        let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.attempts.min(16)));
        self.attempts = self.attempts.saturating_add(1);
        let half = doubled.min(self.longest) / 2;
        half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Starts over after a success.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// An unpredictable number. Where the system has no randomness it is a constant, which costs only the jitter.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_begin_again() {
        let mut backoff = RetryBackoff::new(LONGEST_WAIT);
        let waits: Vec<u128> = (0..9).map(|_| backoff.next(u32::MAX).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(backoff.attempts(), 9);
        backoff.reset();
        assert_eq!(backoff.next(0), FIRST_WAIT / 2);
    }

    #[test]
    fn subscribers_that_are_cut_off_together_do_not_come_back_together() {
        let waits: Vec<Duration> =
            (0..=4).map(|it| RetryBackoff::new(LONGEST_WAIT).next(it * (u32::MAX / 4))).collect();
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    }
}
