//! The earliest moment at which typed bytes can have been typed (ruling 33). Pure: moments are arguments.
//!
//! Bytes may be read late. So at each moment that matters, such as the end of a question, the program checks whether
//! there are unread bytes ([`TypingClock::note`]): those were typed before that moment, whenever they are read. A
//! terminal that hides a line until Enter does not tell when the line was begun. It can have been begun as soon as
//! the line before it ended, so it is dated then.

use std::time::Instant;

/// Dates the bytes that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypingClock {
    /// No unread byte was typed before this moment.
    since: Instant,
    /// How many moments were noted.
    noted: u64,
    /// Whether there may be unread bytes that were already there at a noted moment.
    has_old: bool,
}

/// How bytes were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundBytes {
    /// When they were noticed.
    pub(super) at: Instant,
    /// Whether they were already there when the wait began.
    pub(super) were_there: bool,
    /// Whether each byte could be read as soon as it was typed, during the whole wait.
    pub(super) is_by_key: bool,
}

impl TypingClock {
    pub(super) fn new(now: Instant) -> Self {
        TypingClock { since: now, noted: 0, has_old: false }
    }

    /// Notes this moment; `is_nothing_there` says that nothing was unread or hidden.
    pub(super) fn note(&mut self, at: Instant, is_nothing_there: bool) {
        self.noted += 1;
        if is_nothing_there {
            (self.since, self.has_old) = (at, false);
        } else {
            self.has_old = true;
        }
    }

    /// Records that nothing was unread or hidden at this moment. `before` is the clock before that check.
    pub(super) fn found_nothing(&mut self, before: TypingClock, at: Instant) {
        if self.noted == before.noted {
            (self.since, self.has_old) = (at, false);
        }
    }

    /// The earliest moment at which the bytes just read can have been typed. `before` is the clock before they were
    /// read, and `is_all` says whether nothing was left.
    pub(super) fn date(&mut self, before: TypingClock, found: FoundBytes, is_all: bool) -> Instant {
        let FoundBytes { at, were_there, is_by_key } = found;
        let is_noted = self.noted != before.noted;
        let can_be_old = were_there || before.has_old || is_noted || !is_by_key;
        let begun = if can_be_old { before.since } else { at };
        // More of the next line may be hidden, but it was begun after the end of this one.
        let is_known = if is_by_key { is_all } else { is_all && !were_there };
        if is_known && !is_noted {
            (self.since, self.has_old) = (at, false);
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A clock that starts at second 0, and a function that counts seconds.
    fn started() -> (TypingClock, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (TypingClock::new(start), move |second| start + Duration::from_secs(second))
    }

    /// A key that arrived during a wait.
    fn key(at: Instant) -> FoundBytes {
        FoundBytes { at, were_there: false, is_by_key: true }
    }

    /// Reads at these seconds; returns the earliest second at which each can have been begun.
    fn dated(reads: &[(u64, bool, bool)]) -> Vec<u64> {
        let (mut clock, second) = started();
        let date = |(at, were_there, is_by_key): &(u64, bool, bool)| {
            let found =
                FoundBytes { at: second(*at), were_there: *were_there, is_by_key: *is_by_key };
            (clock.date(clock, found, true) - second(0)).as_secs()
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
        // Two lines at once: the second can be as old as the first.
        assert_eq!(dated(&[(10, false, false), (10, true, false), (30, true, false)]), [0, 10, 10]);
    }

    #[test]
    fn what_was_hidden_until_the_terminal_was_taken_is_as_old_as_it_can_be() {
        assert_eq!(dated(&[(10, false, false), (20, true, true), (30, false, true)]), [0, 10, 30]);
    }

    #[test]
    fn what_was_not_there_at_the_last_look_came_after_it() {
        let (mut clock, second) = started();
        clock.found_nothing(clock, second(1));
        let found = FoundBytes { were_there: true, ..key(second(3)) };
        assert_eq!(clock.date(clock, found, true), second(1));
    }

    #[test]
    fn what_did_not_fit_is_as_old_as_what_came_before_it() {
        for is_by_key in [true, false] {
            let (mut clock, second) = started();
            clock.date(clock, FoundBytes { is_by_key, ..key(second(1)) }, false);
            let rest = FoundBytes { were_there: true, is_by_key, ..key(second(2)) };
            assert_eq!(clock.date(clock, rest, true), second(0));
        }
    }

    #[test]
    fn a_key_that_lay_unread_at_a_moment_that_matters_was_typed_before_it() {
        let (mut clock, second) = started();
        clock.note(second(5), false);
        assert_eq!(clock.date(clock, key(second(6)), true), second(0), "it was read late");
        assert_eq!(clock.date(clock, key(second(7)), true), second(7), "the next one was not");
    }

    #[test]
    fn a_key_that_was_not_there_yet_counts_from_when_it_was_read() {
        let (mut clock, second) = started();
        clock.note(second(5), true);
        assert_eq!(clock.date(clock, key(second(6)), true), second(6));
    }

    #[test]
    fn a_key_that_is_being_read_at_a_moment_that_matters_is_dated_before_it() {
        for is_nothing_there in [true, false] {
            let (mut clock, second) = started();
            let before = clock;
            clock.note(second(5), is_nothing_there);
            assert_eq!(clock.date(before, key(second(6)), true), second(0));
        }
    }

    #[test]
    fn a_look_says_nothing_of_a_moment_that_came_while_it_was_made() {
        let (mut clock, second) = started();
        let before = clock;
        clock.note(second(5), false);
        clock.found_nothing(before, second(4));
        assert_eq!(clock.date(clock, key(second(6)), true), second(0));
        clock.note(second(7), false);
        clock.found_nothing(clock, second(8));
        assert_eq!(clock.date(clock, key(second(9)), true), second(9), "somebody else read it");
    }
}
