//! Puts events back in the order of their sequence numbers (§3.4.1).
//!
//! When a number is missing, later events of the session are held back for a moment. Events without numbers are
//! never held. After several waits in vain the producer evidently skips numbers, so nothing is held any more on
//! this connection.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long to wait for a missing number.
pub const REORDER_WAIT: Duration = Duration::from_millis(250);

/// How many messages are held back. Beyond that, all of them are released as they are.
pub const MAX_HELD: usize = 64;

/// How many bytes are held back; beyond that, the same happens.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// For how many sessions the next number is remembered. Beyond that, all are forgotten.
const MAX_SESSIONS: usize = 1024;

/// After how many waits in vain no more waits are made.
const MAX_VAIN: u32 = 3;

/// The messages that are held back, and the next expected number of each session.
#[derive(Debug, Default)]
pub(crate) struct ReorderBuffer {
    next: BTreeMap<String, u64>,
    held: BTreeMap<(String, u64), (String, Instant)>,
    bytes: usize,
    vain: u32,
}

impl ReorderBuffer {
    /// Takes a message with its session and number. Returns the messages that may be delivered now, in order.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        session: &str,
        number: u64,
        text: String,
    ) -> Vec<String> {
        if self.next.len() >= MAX_SESSIONS && !self.next.contains_key(session) {
            let mut all = self.release_all();
            self.next.clear();
            self.next.insert(session.to_owned(), number.saturating_add(1));
            all.push(text);
            return all;
        }
        let next = *self.next.entry(session.to_owned()).or_insert(number);
        let key = (session.to_owned(), number);
        if let Some((held, _)) = self.held.get(&key) {
            // An exact repetition is dropped; a different message with the same number is judged by the rules.
            return if *held == text { Vec::new() } else { vec![text] };
        }
        if number > next && self.vain < MAX_VAIN {
            self.bytes += text.len();
            self.held.insert(key, (text, now + REORDER_WAIT));
            if self.held.len() > MAX_HELD || self.bytes > MAX_HELD_BYTES {
                return self.release_all();
            }
            return Vec::new();
        }
        let mut ready = vec![text];
        if number >= next {
            self.next.insert(session.to_owned(), number.saturating_add(1));
            let follows = self.release_following(session);
            if !follows.is_empty() {
                self.vain = 0;
            }
            ready.extend(follows);
        }
        ready
    }

    /// When the current wait is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held.values().map(|(_, until)| *until).min()
    }

    /// The messages that have been held for long enough, in order.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<String> {
        let mut ready = Vec::new();
        while let Some(((session, number), _)) =
            self.held.iter().find(|(_, (_, until))| *until <= now)
        {
            let (session, number) = (session.clone(), *number);
            self.vain += 1;
            // Earlier numbers that arrived later are still delivered first.
            let before: Vec<u64> = self.of(&session).take_while(|it| *it <= number).collect();
            ready.extend(before.into_iter().filter_map(|number| self.release(&session, number)));
            ready.extend(self.release_following(&session));
        }
        ready
    }

    /// Handles a broken connection: the held messages arrive again on the next one, which continues the numbers.
    pub(crate) fn interrupted(&mut self) {
        self.held.clear();
        self.bytes = 0;
        self.vain = 0;
    }

    fn of(&self, session: &str) -> impl Iterator<Item = u64> {
        let from = (session.to_owned(), 0)..=(session.to_owned(), u64::MAX);
        self.held.range(from).map(|((_, number), _)| *number)
    }

    fn release_following(&mut self, session: &str) -> Vec<String> {
        let mut ready = Vec::new();
        while let Some(number) = self.next.get(session).copied() {
            let Some(text) = self.release(session, number) else { break };
            ready.push(text);
        }
        ready
    }

    fn release(&mut self, session: &str, number: u64) -> Option<String> {
        let (text, _) = self.held.remove(&(session.to_owned(), number))?;
        self.bytes = self.bytes.saturating_sub(text.len());
        self.next.insert(session.to_owned(), number.saturating_add(1));
        Some(text)
    }

    fn release_all(&mut self) -> Vec<String> {
        let keys: Vec<_> = self.held.keys().cloned().collect();
        keys.iter().filter_map(|(session, number)| self.release(session, *number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(reorder: &mut ReorderBuffer, now: Instant, number: u64) -> Vec<String> {
        reorder.take(now, "sess_a", number, number.to_string())
    }

    #[test]
    fn what_comes_in_disorder_is_heard_in_order() {
        let (mut reorder, now) = (ReorderBuffer::default(), Instant::now());
        assert_eq!(take(&mut reorder, now, 4), ["4"]);
        assert!(take(&mut reorder, now, 6).is_empty());
        assert!(take(&mut reorder, now, 7).is_empty());
        assert!(take(&mut reorder, now, 6).is_empty());
        assert_eq!(reorder.take(now, "sess_a", 6, "forged".to_owned()), ["forged"]);
        assert_eq!(reorder.take(now, "sess_b", 9, "b".to_owned()), ["b"]);
        assert_eq!(take(&mut reorder, now, 5), ["5", "6", "7"]);
        assert_eq!(take(&mut reorder, now, 5), ["5"], "who repeats is judged elsewhere");
        assert_eq!(reorder.deadline(), None);
    }

    #[test]
    fn what_never_comes_is_waited_for_a_moment_only() {
        let (mut reorder, now) = (ReorderBuffer::default(), Instant::now());
        take(&mut reorder, now, 1);
        for number in [5, 3, 4, 8] {
            assert!(take(&mut reorder, now, number).is_empty());
        }
        assert!(reorder.due(now).is_empty());
        assert_eq!(reorder.deadline(), Some(now + REORDER_WAIT));
        assert_eq!(reorder.due(now + REORDER_WAIT), ["3", "4", "5", "8"]);
        assert_eq!(take(&mut reorder, now, 9), ["9"]);
    }

    #[test]
    fn who_leaves_numbers_out_is_not_waited_for_again_and_again() {
        let (mut reorder, now) = (ReorderBuffer::default(), Instant::now());
        take(&mut reorder, now, 1);
        for number in [10, 20, 30] {
            assert!(take(&mut reorder, now, number).is_empty());
            assert_eq!(reorder.due(now + REORDER_WAIT).len(), 1);
        }
        assert_eq!(take(&mut reorder, now, 40), ["40"]);
    }

    #[test]
    fn after_a_cut_the_numbers_go_on() {
        let (mut reorder, now) = (ReorderBuffer::default(), Instant::now());
        take(&mut reorder, now, 1);
        assert!(take(&mut reorder, now, 3).is_empty());
        reorder.interrupted();
        assert_eq!(reorder.deadline(), None);
        assert!(take(&mut reorder, now, 3).is_empty());
        assert_eq!(take(&mut reorder, now, 2), ["2", "3"]);
    }

    #[test]
    fn what_is_held_has_a_bound() {
        let (mut reorder, now) = (ReorderBuffer::default(), Instant::now());
        take(&mut reorder, now, 0);
        let mut heard = 1;
        for number in 0..1000 {
            heard += take(&mut reorder, now, 2 + number).len();
            assert!(reorder.held.len() <= MAX_HELD);
        }
        heard += reorder.due(now + REORDER_WAIT).len();
        assert_eq!(heard, 1001, "nothing is lost");
        for session in 0..5000 {
            reorder.take(now, &format!("sess_{session}"), 1, String::new());
            assert!(reorder.next.len() <= MAX_SESSIONS);
        }
        let long = "x".repeat(MAX_HELD_BYTES);
        reorder = ReorderBuffer::default();
        take(&mut reorder, now, 1);
        assert!(reorder.take(now, "sess_a", 3, "3".to_owned()).is_empty());
        assert_eq!(reorder.take(now, "sess_a", 4, long).len(), 2);
    }
}
