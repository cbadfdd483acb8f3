//! Limits log lines that peers can cause: a few each minute, and a count of the rest.
//!
//! Strangers must not be able to fill the disk with a log. Every line that is left out is counted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most lines in a minute.
const LINES_A_MINUTE: u32 = 60;

const MINUTE: Duration = Duration::from_mins(1);

/// Limits the lines from one source.
#[derive(Debug)]
pub struct LineLimit {
    window: Mutex<LineWindow>,
}

#[derive(Debug)]
struct LineWindow {
    began: Option<Instant>,
    written: u32,
    left_out: u64,
}

/// Lines from libraries, for the program that writes the log.
pub static LIBRARY_LINES: LineLimit = LineLimit::new();

impl Default for LineLimit {
    fn default() -> Self {
        LineLimit::new()
    }
}

impl LineLimit {
    /// A limit with nothing written yet.
    pub const fn new() -> Self {
        LineLimit { window: Mutex::new(LineWindow { began: None, written: 0, left_out: 0 }) }
    }

    /// Whether one more line may be written now. If not, it is counted.
    pub fn may_write(&self, now: Instant) -> bool {
        let mut window = self.window();
        if window.is_over(now) {
            (window.began, window.written) = (Some(now), 0);
        }
        if window.written < LINES_A_MINUTE {
            window.written += 1;
            return true;
        }
        window.left_out += 1;
        false
    }

    /// The number of lines left out, after each minute, or at once at the end. Each line is counted once.
    pub fn take_left_out(&self, now: Instant, is_end: bool) -> Option<u64> {
        let mut window = self.window();
        if window.left_out == 0 || !(is_end || window.is_over(now)) {
            return None;
        }
        window.began = Some(now);
        window.written = 0;
        Some(std::mem::take(&mut window.left_out))
    }

    fn window(&self) -> MutexGuard<'_, LineWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineWindow {
    fn is_over(&self, now: Instant) -> bool {
        self.began.is_none_or(|began| now.saturating_duration_since(began) >= MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_and_every_line_is_counted() {
        let limit = LineLimit::new();
        let began = Instant::now();
        let mut written = 0;
        let mut counted = 0;
        for at in 0..10_000_u64 {
            let now = began + Duration::from_millis(30 * at);
            written += u64::from(limit.may_write(now));
            counted += limit.take_left_out(now, false).unwrap_or(0);
        }
        // This covers five minutes.
        assert!(written <= 6 * u64::from(LINES_A_MINUTE), "{written}");
        counted += limit.take_left_out(began, true).unwrap_or(0);
        assert_eq!(written + counted, 10_000);
        assert_eq!(limit.take_left_out(began, true), None);
    }

    #[test]
    fn a_quiet_log_is_left_alone() {
        let limit = LineLimit::new();
        let now = Instant::now();
        assert!((0..LINES_A_MINUTE).all(|_| limit.may_write(now)));
        assert_eq!(limit.take_left_out(now, true), None);
    }
}
