//! Rebuilds the log of an audience from the histories, after nothing was shaped for a while.
//!
//! A log is a pure function of the events and the terms, so the same events give the same units
//! again and every cursor stays valid. Where the histories are no longer complete, the log begins
//! later, and subscribers that were before its beginning are told of a gap. Nothing is guessed.

use super::{
    Audience, FIRST_POSITION, HeldOutputs, HistoryEntry, MAX_PRIMED_UNITS, Unit, is_before_ask,
};

/// The part of the histories that a log is rebuilt from.
pub(crate) struct PastEvents<'e> {
    /// The histories are complete from this global order on.
    pub(crate) from: u64,
    /// The earlier text chunks and asks of sessions that continue after `from`. They determine where text is
    /// cut.
    pub(crate) chunks: Vec<&'e HistoryEntry>,
    /// The events from `from` on, in order.
    pub(crate) entries: Vec<&'e HistoryEntry>,
    /// Whether every output is present from its beginning.
    pub(crate) is_exact: bool,
}

impl Audience {
    /// Stops shaping from this global order on and drops the log, because nobody is connected.
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
        self.texts = HeldOutputs::new(&self.terms);
        self.bytes.set(0);
        self.latest_progress.clear();
        self.latest_state.clear();
        self.critical_state.clear();
        self.starts.clear();
        self.asks.clear();
        self.joined.take();
    }

    /// The global order from which on nothing was shaped. None while somebody is connected.
    pub(crate) fn asleep_since(&self) -> Option<u64> {
        self.asleep_since
    }

    /// The log is complete from this global order on.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Rebuilds the log for the first connected subscriber. Members that were here before keep their
    /// positions, as far as the past reaches. `next` is the global order of the next event.
    pub(crate) fn wake(&mut self, past: &PastEvents<'_>, next: u64) {
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
            fresh.shift_positions(self.first.wrapping_sub(boundary));
            self.take_log_of(fresh);
        } else {
            // No cursor stays valid: the events in between are missing, and so is held text.
            self.first += 1;
            self.from = next;
            self.pure_from = next;
            self.impure = fresh.texts.open().cloned().collect();
        }
    }

    /// Notes that a session of this audience left memory, with events of these global orders.
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

    /// Whether the log has everything after the unit before this position.
    pub(crate) fn has_all_after(&self, at: u64) -> bool {
        let last = at.checked_sub(1).and_then(|at| self.unit(at));
        last.is_some_and(|last| self.reaches_back_to(last.made_at + 1))
    }

    /// Marks everything before this global order as possibly incomplete: other logs may have events that this
    /// one lacks.
    pub(crate) fn distrust_before(&mut self, order: u64) {
        self.from = self.from.max(order);
        self.pure_from = self.pure_from.max(order);
    }

    /// The log can be rebuilt from this global order on.
    pub(crate) fn pure_from(&self) -> u64 {
        self.pure_from
    }

    /// Extends the log into the past, for a returning subscriber that is further behind than the log reaches.
    pub(crate) fn reach_back(&mut self, past: &PastEvents<'_>) {
        let mut fresh = self.empty(past);
        let end = past.entries.partition_point(|entry| entry.order < self.from);
        // The text that is held at the end is in the log already.
        let is_exact = past.is_exact || self.terms.keeps_every_event();
        fresh.take_all(&past.entries[..end]);
        let units = fresh.log.len() as u64;
        let is_pure = fresh.impure.is_empty() && self.impure.is_empty();
        if !is_exact || !is_pure || past.from >= self.from {
            return;
        }
        let Some(first) = self.first.checked_sub(units) else { return };
        fresh.shift_positions(first.wrapping_sub(fresh.first));
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
        for (key, at) in fresh.critical_state {
            self.critical_state.entry(key).or_insert(at);
        }
        for (key, at) in fresh.starts {
            self.starts.entry(key).or_insert(at);
        }
        self.asks.append(&mut fresh.asks);
    }

    /// The same audience with an empty log, holding the text that is open where the past begins.
    fn empty(&self, past: &PastEvents<'_>) -> Audience {
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
                } else if !entry.event.is_critical() && self.wants(&entry.event) {
                    fresh.texts.take(entry, self.number, None);
                }
            }
        }
        fresh
    }

    fn take_all(&mut self, entries: &[&HistoryEntry]) {
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
        self.critical_state = fresh.critical_state;
        self.starts = fresh.starts;
        self.asks = fresh.asks;
    }

    /// Moves all positions by this distance.
    fn shift_positions(&mut self, by: u64) {
        self.first = self.first.wrapping_add(by);
        let maps = self.latest_state.values_mut().chain(self.critical_state.values_mut());
        let maps = maps.chain(self.latest_progress.values_mut()).chain(self.asks.values_mut());
        let maps = maps.chain(self.starts.values_mut());
        maps.for_each(|at| *at = at.wrapping_add(by));
    }

    /// Whether the events that are kept would give the same units and the same held text again.
    pub(crate) fn is_pure(&self) -> bool {
        self.impure.is_empty()
    }

    /// Whether the log and its held text, which were just made from the events before this global order, are as they
    /// were when these events came.
    pub(crate) fn is_pure_before(&self, order: u64) -> bool {
        self.is_pure() && (self.pure_from < order || order == 0)
    }

    /// A new audience that nobody has entered yet.
    pub(crate) fn asleep(mut self, order: u64) -> Self {
        self.first = FIRST_POSITION;
        self.asleep_since = Some(order);
        self
    }
}
