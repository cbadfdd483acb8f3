//! Protection from a producer that sends faster than it promised (§10 T4).
//!
//! The rules report excess speed at most once a second. One report is tolerated. After several in a row, excess
//! events are left out (never critical events or asks), and in the end the subscriber leaves the producer.

use std::time::Duration;

use tokio::time::Instant;

/// For how many seconds in a row a producer may be too fast before events are left out.
pub const FLOOD_SECONDS: u32 = 3;

/// For how many seconds in a row a producer may be too fast before the subscriber leaves it.
pub const LEAVE_SECONDS: u32 = 30;

/// Reports that are further apart than this do not count as a row.
const ROW_GAP: Duration = Duration::from_secs(2);

const SECOND: Duration = Duration::from_secs(1);

/// What is known about the speed of a producer.
#[derive(Debug, Default)]
pub(crate) struct FloodGuard {
    row: u32,
    reported: Option<Instant>,
    second: Option<Instant>,
    passed: u64,
    left_out: u64,
    /// When to report how many events were left out.
    tell: Option<Instant>,
}

impl FloodGuard {
    /// Records that the producer was too fast. Returns whether it is time to leave.
    pub(crate) fn report(&mut self, now: Instant) -> bool {
        let is_row = self.reported.is_some_and(|last| now.duration_since(last) <= ROW_GAP);
        self.row = if is_row { self.row.saturating_add(1) } else { 1 };
        self.reported = Some(now);
        self.row >= LEAVE_SECONDS
    }

    /// Whether a non-critical event may pass, given the agreed number of events per second.
    pub(crate) fn lets_pass(&mut self, now: Instant, most: Option<u64>) -> bool {
        let is_flood = self.row >= FLOOD_SECONDS
            && self.reported.is_some_and(|last| now.duration_since(last) <= ROW_GAP);
        let (true, Some(most)) = (is_flood, most) else { return true };
        if self.second.is_none_or(|began| now.duration_since(began) >= SECOND) {
            self.second = Some(now);
            self.passed = 0;
        }
        let may_pass = self.passed < most;
        if may_pass {
            self.passed += 1;
        } else {
            self.left_out += 1;
            self.tell.get_or_insert(now + SECOND);
        }
        may_pass
    }

    /// How many events were left out, if it is time to report it.
    pub(crate) fn left_out(&mut self, now: Instant) -> Option<u64> {
        self.tell.filter(|at| *at <= now).and_then(|_| self.left_out_so_far())
    }

    /// How many events were left out and not yet reported.
    pub(crate) fn left_out_so_far(&mut self) -> Option<u64> {
        self.tell.take().map(|_| std::mem::take(&mut self.left_out))
    }

    /// When to report how many events were left out.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.tell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_changes_nothing_and_a_row_leaves_out_what_is_too_much() {
        let (mut flood, start) = (FloodGuard::default(), Instant::now());
        assert!(!flood.report(start) && !flood.report(start + SECOND));
        assert!((0..100).all(|_| flood.lets_pass(start + SECOND, Some(5))));
        let now = start + 2 * SECOND;
        assert!(!flood.report(now));
        let passed = (0..100).filter(|_| flood.lets_pass(now, Some(5))).count();
        assert_eq!((passed, flood.left_out(now)), (5, None));
        assert_eq!(flood.left_out(now + SECOND), Some(95));
        assert_eq!(flood.left_out(now + SECOND), None, "told once");
        assert!(flood.lets_pass(now + SECOND, None), "who wants all gets all");
        assert!((0..100).all(|_| flood.lets_pass(now + 3 * SECOND, Some(5))), "it is over");
    }

    #[test]
    fn who_never_stops_is_left_and_who_pauses_is_not() {
        let (mut flood, start) = (FloodGuard::default(), Instant::now());
        assert!((1..LEAVE_SECONDS).all(|it| !flood.report(start + it * SECOND)));
        assert!(flood.report(start + LEAVE_SECONDS * SECOND));
        let (mut flood, start) = (FloodGuard::default(), Instant::now());
        assert!((1..100).all(|it| !flood.report(start + it * 3 * SECOND)));
    }
}
