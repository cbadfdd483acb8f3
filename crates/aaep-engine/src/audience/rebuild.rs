//! The log of an audience for which nothing was shaped for a while, made again from the histories.
//!
//! A log is a pure function of the events and the terms, so that the same events give the same units again, and every
//! subscriber finds its place where it was. Where the histories no longer have all of it, the log begins later, and
//! whoever was before that is told that something is missing. Nothing is ever guessed.

use super::{Audience, Entry, FIRST_POSITION, MAX_PRIMED_UNITS, Texts, Unit, is_before_ask};

/// What the histories have of a time.
pub(crate) struct Past<'e> {
    /// From which place among all events on they are whole.
    pub(crate) from: u64,
    /// The chunks of text and the asks before, of the sessions that went on after it: what is cut where depends on them.
    pub(crate) chunks: Vec<&'e Entry>,
    /// The events from there on, in their order.
    pub(crate) entries: Vec<&'e Entry>,
    /// Whether every output is there from its beginning.
    pub(crate) is_exact: bool,
}

impl Audience {
    /// Nobody is there: nothing is kept, and from this place among all events on nothing is shaped.
    pub(crate) fn sleep(&mut self, order: u64) {
        if self.asleep_since.is_some() {
            return;
        }
        self.first = self.end();
        self.asleep_since = Some(order);
        self.forget_all();
    }

    fn forget_all(&mut self) {
        self.log = std::collections::VecDeque::new();
        self.texts = Texts::new(&self.terms);
        self.bytes.set(0);
        self.latest_progress.clear();
        self.latest_state.clear();
        self.urgent_state.clear();
        self.starts.clear();
        self.questions.clear();
        self.joined.take();
    }

    /// Since which place nothing was shaped; none if someone is there.
    pub(crate) fn asleep_since(&self) -> Option<u64> {
        self.asleep_since
    }

    /// From which place among all events on the log has everything.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Someone is there again, or for the first time. Whoever was here before is where it was, as far as the past
    /// reaches; `next` is the place of the next event among all.
    pub(crate) fn wake(&mut self, past: &Past<'_>, next: u64) {
        let Some(since) = self.asleep_since.take() else { return };
        let gone = self.gone.take();
        let before = past.entries.partition_point(|entry| entry.order < since);
        let mut fresh = self.empty(past);
        fresh.take_all(&past.entries[..before]);
        let boundary = fresh.end();
        let later = &past.entries[before..];
        let at = gone.map_or(0, |gone| later.partition_point(|entry| entry.order < gone));
        fresh.take_all(&later[..at]);
        if let Some(gone) = gone {
            fresh.push(Unit::gone(gone), gone);
            self.pure_from = self.pure_from.max(gone + 1);
        }
        fresh.take_all(&later[at..]);
        let is_whole = past.from <= since && fresh.impure.is_empty() && self.impure.is_empty();
        if is_whole && (past.is_exact || self.terms.keeps_every_event()) {
            fresh.move_to(self.first.wrapping_sub(boundary));
            self.take_log_of(fresh);
        } else {
            // Nobody is where it was: what was not told in between is missing, and so is text that was held.
            self.first += 1;
            self.from = next;
            self.pure_from = next;
            self.impure = fresh.texts.open().cloned().collect();
        }
    }

    /// A session that was heard left memory, with events at these places.
    pub(crate) fn note_gone(&mut self, orders: &[u64]) {
        let Some(last) = orders.last().copied() else { return };
        let Some(since) = self.asleep_since else {
            self.pure_from = self.pure_from.max(last + 1);
            return;
        };
        if let Some(before) = orders[..orders.partition_point(|it| *it < since)].last() {
            self.pure_from = self.pure_from.max(before + 1);
        }
        if last >= since {
            self.gone = self.gone.max(Some(last));
        }
    }

    /// Whether the log has all that came after what is right before this position.
    pub(crate) fn has_all_after(&self, at: u64) -> bool {
        let last = at.checked_sub(1).and_then(|at| self.unit(at));
        last.is_some_and(|last| self.reaches_back_to(last.made_at + 1))
    }

    /// Of what happened before this, something may be missing here that other logs have.
    pub(crate) fn distrust_before(&mut self, order: u64) {
        self.from = self.from.max(order);
        self.pure_from = self.pure_from.max(order);
    }

    /// From which place on the log can be made again.
    pub(crate) fn pure_from(&self) -> u64 {
        self.pure_from
    }

    /// Someone is back who was further behind than the log reaches.
    pub(crate) fn reach_back(&mut self, past: &Past<'_>) {
        let mut fresh = self.empty(past);
        let end = past.entries.partition_point(|entry| entry.order < self.from);
        // What is held at the end is in the log already.
        let is_exact = past.is_exact || self.terms.keeps_every_event();
        fresh.take_all(&past.entries[..end]);
        let units = fresh.log.len() as u64;
        let is_pure = fresh.impure.is_empty() && self.impure.is_empty();
        if !is_exact || !is_pure || past.from >= self.from {
            return;
        }
        let Some(first) = self.first.checked_sub(units) else { return };
        fresh.move_to(first.wrapping_sub(fresh.first));
        self.first = first;
        self.from = fresh.from;
        self.bytes.set(self.bytes.get() + fresh.bytes.get());
        while let Some(unit) = fresh.log.pop_back() {
            self.log.push_front(unit);
        }
        for (key, at) in fresh.latest_progress {
            self.latest_progress.entry(key).or_insert(at);
        }
        for (key, at) in fresh.latest_state {
            self.latest_state.entry(key).or_insert(at);
        }
        for (key, at) in fresh.urgent_state {
            self.urgent_state.entry(key).or_insert(at);
        }
        for (key, at) in fresh.starts {
            self.starts.entry(key).or_insert(at);
        }
        self.questions.append(&mut fresh.questions);
    }

    /// The same audience with nothing in its log, and with the text held that the past begins with.
    fn empty(&self, past: &Past<'_>) -> Audience {
        let mut fresh = Audience::new(self.terms.clone(), self.hears.clone(), self.number);
        fresh.room_bytes = self.room_bytes;
        fresh.from = past.from;
        if !self.terms.keeps_every_event() {
            for entry in &past.chunks {
                if !fresh.hears.includes(&entry.tags) {
                    continue;
                }
                if is_before_ask(&entry.event) {
                    fresh.texts.cut_session(entry.session, self.number);
                } else if !entry.is_urgent && self.wants(&entry.event) {
                    fresh.texts.take(entry, self.number, None);
                }
            }
        }
        fresh
    }

    fn take_all(&mut self, entries: &[&Entry]) {
        for entry in entries {
            self.take(entry);
            while self.log.len() > MAX_PRIMED_UNITS || self.bytes() > self.room_bytes / 2 {
                if self.forget_oldest() == 0 {
                    break;
                }
            }
        }
    }

    fn take_log_of(&mut self, fresh: Audience) {
        self.log = fresh.log;
        self.first = fresh.first;
        self.from = fresh.from;
        self.texts = fresh.texts;
        self.bytes = fresh.bytes;
        self.latest_progress = fresh.latest_progress;
        self.latest_state = fresh.latest_state;
        self.urgent_state = fresh.urgent_state;
        self.starts = fresh.starts;
        self.questions = fresh.questions;
    }

    /// All positions are further by so much.
    fn move_to(&mut self, by: u64) {
        self.first = self.first.wrapping_add(by);
        let maps = self.latest_state.values_mut().chain(self.urgent_state.values_mut());
        let maps = maps.chain(self.latest_progress.values_mut()).chain(self.questions.values_mut());
        let maps = maps.chain(self.starts.values_mut());
        maps.for_each(|at| *at = at.wrapping_add(by));
    }

    /// An audience that nobody was in yet.
    pub(crate) fn asleep(mut self, order: u64) -> Self {
        self.first = FIRST_POSITION;
        self.asleep_since = Some(order);
        self
    }
}
