//! When typed bytes can have come at the earliest (ruling 33). Pure: moments are arguments.
//!
//! A terminal that hides a line until Enter does not tell when the line was begun. It can have been begun as soon as the
//! line before it had ended, and that is when it is dated.

use std::time::Instant;

/// Dates what is read.
#[derive(Debug)]
pub(super) struct TypingClock {
    /// Nothing that has not been read yet was typed before this moment.
    since: Instant,
}

/// How bytes were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundBytes {
    /// When it was seen that there are some.
    pub(super) at: Instant,
    /// Whether they were there already, and not waited for.
    pub(super) were_there: bool,
    /// Whether each byte could be read as soon as it was typed, all the while that it was waited for.
    pub(super) is_by_key: bool,
}

impl TypingClock {
    pub(super) fn new(now: Instant) -> Self {
        TypingClock { since: now }
    }

    /// At this moment there was nothing to read, and nothing hidden.
    pub(super) fn found_nothing(&mut self, at: Instant) {
        self.since = at;
    }

    /// When the bytes that are read now can have been typed at the earliest. `is_all` says whether nothing was left.
    pub(super) fn date(&mut self, found: FoundBytes, is_all: bool) -> Instant {
        let FoundBytes { at, were_there, is_by_key } = found;
        let begun = if were_there || !is_by_key { self.since } else { at };
        // More of the next line may be hidden, but it was begun after the end of this one.
        let is_known = if is_by_key { is_all } else { is_all && !were_there };
        if is_known {
            self.since = at;
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Reads at these seconds; the second at which each can have been begun.
    fn dated(reads: &[(u64, bool, bool)]) -> Vec<u64> {
        let start = Instant::now();
        let mut clock = TypingClock::new(start);
        let date = |(second, were_there, is_by_key): &(u64, bool, bool)| {
            let at = start + Duration::from_secs(*second);
            let found = FoundBytes { at, were_there: *were_there, is_by_key: *is_by_key };
            (clock.date(found, true) - start).as_secs()
        };
        reads.iter().map(date).collect()
    }

    #[test]
    fn a_key_that_is_waited_for_comes_when_it_is_read() {
        assert_eq!(dated(&[(10, false, true), (20, false, true)]), [10, 20]);
    }

    #[test]
    fn what_is_there_already_can_have_come_since_the_last_look() {
        assert_eq!(dated(&[(10, false, true), (20, true, true), (30, false, true)]), [10, 10, 30]);
    }

    #[test]
    fn a_hidden_line_can_have_been_begun_as_soon_as_the_line_before_it_had_ended() {
        assert_eq!(dated(&[(10, false, false), (20, false, false)]), [0, 10]);
        // Two lines at once: the second one can be as old as the first.
        assert_eq!(dated(&[(10, false, false), (10, true, false), (30, true, false)]), [0, 10, 10]);
    }

    #[test]
    fn what_was_hidden_until_the_terminal_was_taken_is_as_old_as_it_can_be() {
        assert_eq!(dated(&[(10, false, false), (20, true, true), (30, false, true)]), [0, 10, 30]);
    }

    #[test]
    fn what_was_not_there_at_the_last_look_came_after_it() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut clock = TypingClock::new(start);
        clock.found_nothing(start + second);
        let found = FoundBytes { at: start + 3 * second, were_there: true, is_by_key: true };
        assert_eq!(clock.date(found, true), start + second);
    }

    #[test]
    fn what_did_not_fit_is_as_old_as_what_came_before_it() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        for is_by_key in [true, false] {
            let mut clock = TypingClock::new(start);
            let found = FoundBytes { at: start + second, were_there: false, is_by_key };
            clock.date(found, false);
            let rest = FoundBytes { at: start + 2 * second, were_there: true, is_by_key };
            assert_eq!(clock.date(rest, true), start);
        }
    }
}
