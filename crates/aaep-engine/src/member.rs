//! One subscriber's way through the log of its audience: how far it is, what it may receive now,
//! and what is merged when it is behind (§5.3.1.1, §5.3.1.11, §5.6.1, rulings 6 to 10).

mod context;
mod last_sent;
mod limits;
mod memory;
mod merge;
mod place;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::{EventId, LanguageTag, Payload};

use crate::audience::{Audience, SessionKey, SupersededBy, TextKey, Unit, UnitKind, text_key};
use crate::clock::Now;
use crate::engine::SessionTable;
use crate::frame::Frame;
use merge::FramedEvent;

pub(crate) use last_sent::LastSent;
pub(crate) use limits::DeliveryLimits;
pub use limits::MAX_ANNOUNCING_US;
pub(crate) use memory::KnownOrder;
use memory::{CursorDetails, CursorMemory};
pub(crate) use merge::JoinedText;
pub(crate) use place::CursorSnapshot;

/// If more tool events than this wait, they are merged into one digest (ruling 10).
pub const MAX_WAITING_TOOLS: usize = 16;

/// Within a batch, a longer frame counts as several events of this length.
const LONG_BYTES: usize = 4096;

/// How far a subscriber is in the log of its audience.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cursor {
    /// All non-critical units before this position were sent or are superfluous.
    at: u64,
    /// All critical units before this position were sent.
    critical_at: u64,
    /// Exceptions to the two positions. Most subscribers receive everything in order and have none.
    memory: Option<Box<CursorMemory>>,
}

/// How far a delivery pass got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeliveryProgress {
    /// Nothing is held.
    CaughtUp,
    /// Something is held until this moment.
    Until(u64),
    /// Only text is held, by the pace, until this moment. Anything else may go at once (ruling 30).
    TextUntil(u64),
    /// The batch is full.
    Enough,
}

/// One attempt to deliver to a subscriber: its audience, its limits, the time, and where frames go.
pub(crate) struct DeliveryPass<'a, F> {
    pub(crate) audience: &'a Audience,
    pub(crate) sessions: &'a SessionTable,
    pub(crate) limits: Option<&'a mut DeliveryLimits>,
    pub(crate) now: Now,
    pub(crate) primary: &'a LanguageTag,
    /// Whether the subscriber has yet to be told of a gap.
    pub(crate) is_gap_owed: bool,
    /// How many more events this batch may have.
    pub(crate) left: usize,
    pub(crate) send: F,
}

impl Cursor {
    pub(crate) fn starting_at(at: u64) -> Self {
        Cursor { at, critical_at: at, memory: None }
    }

    /// All non-critical units before this position were sent or are superfluous.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// All critical units before this position were sent.
    pub(crate) fn critical_at(&self) -> u64 {
        self.critical_at
    }

    pub(crate) fn is_at_end(&self, audience: &Audience) -> bool {
        (self.at, self.critical_at) == (audience.end(), audience.end())
    }

    /// Moves to the end of the log, because everything was sent.
    pub(crate) fn step_to_end(&mut self, audience: &Audience) {
        (self.at, self.critical_at) = (audience.end(), audience.end());
    }

    /// Lets critical units from this position on be sent again.
    pub(crate) fn rewind_critical(&mut self, critical_at: u64) {
        self.critical_at = critical_at;
    }

    /// Moves to the end of the log, so that only new events are delivered. What was delivered of a text that
    /// is still held stays remembered.
    pub(crate) fn go_to_end(&mut self, audience: &Audience) {
        let told = self.take_told();
        let details = self.memory.take().and_then(|memory| memory.details);
        let mut told_text = details.map(|details| details.told_text).unwrap_or_default();
        let held: BTreeSet<TextKey> = audience.held_texts().map(|(key, ..)| key).collect();
        told_text.retain(|key, _| held.contains(key));
        *self = Cursor::starting_at(audience.end()).with_told(told);
        if !told_text.is_empty() {
            self.details_mut().told_text = told_text;
        }
    }

    /// Whether the subscriber receives everything in order, with no exceptions to remember.
    pub(crate) fn is_plain(&self) -> bool {
        self.details().is_none_or(CursorDetails::is_empty)
    }

    /// Delivers what may go now: critical units first, then as much as the limits allow.
    pub(crate) fn proceed<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
    ) -> DeliveryProgress {
        if pass.audience.terms.keeps_every_event() {
            return self.tell_everything(pass);
        }
        if !self.tell_critical(pass) {
            return DeliveryProgress::Enough;
        }
        let end = pass.audience.end();
        let progressed = self.advance(pass, end);
        if let Some(limits) = pass.limits.as_deref_mut() {
            limits.note_held(progressed != DeliveryProgress::CaughtUp);
        }
        progressed
    }

    /// Delivers every event in order, for a subscriber that receives every event.
    fn tell_everything<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
    ) -> DeliveryProgress {
        let end = pass.audience.end();
        let overtaken = self.overtaken(pass.audience);
        let is_overtaken =
            |at: u64, unit: &Unit| overtaken.get(&unit.session).is_some_and(|told| at <= *told);
        if !self.tell_left_behind(pass) {
            return DeliveryProgress::Enough;
        }
        while let Some(unit) = pass.audience.unit(self.at) {
            if pass.left == 0 {
                self.note_whether_critical_waits(true);
                return DeliveryProgress::Enough;
            }
            // Under earlier terms, the unit may already have been delivered.
            let is_told = (unit.is_critical && self.at < self.critical_at)
                || self.take_ahead()
                || self.is_text_told(unit);
            if is_told {
                self.at += 1;
            } else if unit.is_deleted() {
                self.owe_gap();
                self.at += 1;
            } else if merge::is_partly_told(self, unit) {
                let told = merge::next(self, pass, (self.at, self.at + 1));
                if let Some(told) = told {
                    self.critical_at = self.critical_at.max(self.at);
                    self.send(pass, told);
                }
            } else {
                let told = self.framed_with(pass, unit, !is_overtaken(self.at, unit));
                self.at += 1;
                self.critical_at = self.critical_at.max(self.at);
                self.send(pass, told);
            }
        }
        self.critical_at = end;
        self.note_whether_critical_waits(false);
        self.forget(pass.audience);
        DeliveryProgress::CaughtUp
    }

    /// Delivers critical units that were left behind after a gap or a change of terms. Returns whether all of
    /// them were sent. They go out of order, before the summaries of the present, because they are older.
    pub(crate) fn tell_left_behind<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
    ) -> bool {
        if !pass.audience.terms.keeps_every_event() {
            return self.critical_at >= self.at || self.tell_critical(pass);
        }
        while self.critical_at < self.at {
            let unit = pass.audience.unit(self.critical_at).filter(|unit| unit.is_critical);
            if unit.is_some() && pass.left == 0 {
                self.note_whether_critical_waits(true);
                return false;
            }
            self.critical_at += 1;
            match unit {
                Some(unit) if unit.is_deleted() => self.owe_gap(),
                Some(unit) => {
                    let told = self.framed_with(pass, unit, false);
                    self.send(pass, told);
                }
                None => {}
            }
        }
        true
    }

    /// For each session, the position of the last unit that was delivered in full or in part under other
    /// terms. Units before it are sent without a sequence number, because their numbers would leave holes
    /// (ruling 7).
    fn overtaken(&self, audience: &Audience) -> BTreeMap<SessionKey, u64> {
        if self.at == self.critical_at && self.is_plain() {
            return BTreeMap::new();
        }
        let is_told = |at: u64, unit: &Unit| {
            if unit.is_critical {
                at < self.critical_at
            } else {
                let is_begun = self.is_text_told(unit) || merge::is_partly_told(self, unit);
                at < self.at || self.is_ahead(at) || is_begun
            }
        };
        (self.at.min(self.critical_at)..audience.end())
            .filter_map(|at| audience.unit(at).map(|unit| (at, unit)))
            .filter(|(at, unit)| is_told(*at, unit))
            .map(|(at, unit)| (unit.session, at))
            .collect()
    }

    /// Delivers all critical units, up to a full batch. Returns whether all were sent.
    pub(crate) fn tell_critical<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
    ) -> bool {
        let is_told = self.tell_critical_until_enough(pass);
        self.note_whether_critical_waits(!is_told);
        is_told
    }

    /// Delivers critical units, each after the context that is needed to understand it, until the batch is
    /// full (rulings 7 and 8). Returns whether all were sent.
    fn tell_critical_until_enough<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
    ) -> bool {
        let audience = pass.audience;
        while self.critical_at < audience.end() {
            if pass.left == 0 {
                return false;
            }
            let at = self.critical_at;
            let Some(unit) = audience.unit(at).filter(|unit| unit.is_critical) else {
                self.critical_at += 1;
                continue;
            };
            if unit.is_deleted() {
                self.owe_gap();
                self.step_over_critical();
                continue;
            }
            if !self.tell_context(pass, at, unit) {
                return false;
            }
            let told = self.framed(pass, unit);
            self.step_over_critical();
            self.send_at_once(pass, told);
        }
        true
    }

    /// Marks the critical unit as handled, also for when the other position reaches it.
    fn step_over_critical(&mut self) {
        if self.at == self.critical_at {
            self.at += 1;
        }
        self.critical_at += 1;
    }

    fn send<F: FnMut(Arc<Frame>)>(&mut self, pass: &mut DeliveryPass<'_, F>, told: FramedEvent) {
        self.remember(&told.frame.event_id, pass.audience);
        self.note_sent(&told);
        pass.left = pass.left.saturating_sub(1 + told.frame.json.len() / LONG_BYTES);
        (pass.send)(told.frame);
    }

    /// Sends a frame that is exempt from the rate.
    fn send_at_once<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        told: FramedEvent,
    ) {
        if let Some(limits) = pass.limits.as_deref_mut() {
            limits.announce(pass.now.monotonic_us, &told.event.payload);
        }
        self.send(pass, told);
    }

    /// Marks the unit at this position as delivered.
    fn take(&mut self, at: u64) {
        if at == self.at {
            self.at += 1;
        } else {
            self.details_mut().ahead.insert(at);
        }
    }

    /// Delivers held units before this position, as far as the limits allow.
    fn advance<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        until: u64,
    ) -> DeliveryProgress {
        loop {
            if self.at < pass.audience.first() {
                // The subscriber is too far behind. The next tick tells it of the gap.
                return DeliveryProgress::Until(pass.now.monotonic_us + 1);
            }
            self.skip(pass.audience, until);
            if self.at >= until {
                self.forget(pass.audience);
                return DeliveryProgress::CaughtUp;
            }
            if pass.left == 0 {
                return DeliveryProgress::Enough;
            }
            let now_us = pass.now.monotonic_us;
            let mut at = self.at;
            if let Some(limits) = pass.limits.as_deref_mut() {
                let next_text_us = limits.next_text_us(now_us);
                if next_text_us > now_us {
                    match self.next_besides_text(pass.audience, until) {
                        Some(next) => at = next,
                        None => return DeliveryProgress::TextUntil(next_text_us),
                    }
                }
                let next_us = limits.next_us(now_us);
                if next_us > now_us {
                    return DeliveryProgress::Until(next_us);
                }
            }
            let Some(told) = merge::next(self, pass, (at, until)) else {
                continue;
            };
            if let Some(limits) = pass.limits.as_deref_mut() {
                limits.spend(now_us, &told.event.payload);
            }
            self.send(pass, told);
        }
    }

    /// What goes next while the pace holds text: from the first session that has something besides text, the
    /// first held unit, text included, because the order within a session is kept. None if only text is held.
    fn next_besides_text(&mut self, audience: &Audience, until: u64) -> Option<u64> {
        let is_due = |at: &u64| {
            audience.unit(*at).is_some_and(|unit| {
                !unit.is_critical
                    && unit.kind != UnitKind::Text
                    && !self.is_ahead(*at)
                    && audience.superseded(*at, unit) == SupersededBy::Nothing
            })
        };
        let due = (self.at..until).find(is_due)?;
        let session = audience.unit(due)?.session;
        for at in self.at..due {
            let Some(unit) = audience.unit(at).filter(|unit| unit.session == session) else {
                continue;
            };
            if unit.is_critical || self.is_ahead(at) {
                continue;
            }
            match audience.superseded(at, unit) {
                SupersededBy::Nothing if self.is_text_told(unit) => {}
                SupersededBy::Nothing => return Some(at),
                SupersededBy::LaterUnit => self.fold(unit),
                SupersededBy::CriticalUnit => self.unfold(unit),
            }
            self.take(at);
        }
        Some(due)
    }

    /// Steps over units that need not be sent: critical ones, those sent with others or withdrawn, and superfluous
    /// ones. A deleted unit owes a gap notice.
    fn skip(&mut self, audience: &Audience, until: u64) {
        while self.at < until
            && let Some(unit) = audience.unit(self.at)
        {
            if !(unit.is_critical || self.take_ahead() || self.is_text_told(unit)) {
                match audience.superseded(self.at, unit) {
                    SupersededBy::Nothing if unit.is_deleted() => self.owe_gap(),
                    SupersededBy::Nothing => return,
                    SupersededBy::LaterUnit => self.fold(unit),
                    SupersededBy::CriticalUnit => self.unfold(unit),
                }
            }
            self.at += 1;
        }
    }

    /// Forgets exceptions that no longer matter because nothing before them is held.
    fn forget(&mut self, audience: &Audience) {
        let first = self.at;
        let Some(memory) = &mut self.memory else { return };
        if let Some(details) = &mut memory.details {
            if first >= audience.end() {
                details.folded.clear();
            }
            let open: BTreeSet<TextKey> = audience.held_texts().map(|(key, ..)| key).collect();
            let is_ahead = |key: &TextKey| {
                (first..audience.end()).filter_map(|at| audience.unit(at)).any(|unit| {
                    unit.text().is_some_and(|chunk| text_key(unit.session, chunk) == *key)
                })
            };
            details.told_text.retain(|key, _| open.contains(key) || is_ahead(key));
        }
        memory.tidy();
        if memory.is_empty() {
            self.memory = None;
        }
    }

    fn details(&self) -> Option<&CursorDetails> {
        self.memory.as_ref()?.details.as_deref()
    }

    fn details_mut(&mut self) -> &mut CursorDetails {
        self.memory.get_or_insert_default().details.get_or_insert_default()
    }

    /// The details, unless there are none yet.
    fn existing_details_mut(&mut self) -> Option<&mut CursorDetails> {
        self.memory.as_mut()?.details.as_deref_mut()
    }

    /// Whether the current unit was delivered with an earlier one. If so, forgets that.
    fn take_ahead(&mut self) -> bool {
        let at = self.at;
        self.existing_details_mut().is_some_and(|details| details.ahead.remove(&at))
    }

    /// Whether a unit was delivered with an earlier one, or is withdrawn.
    fn is_ahead(&self, at: u64) -> bool {
        self.details().is_some_and(|details| details.ahead.contains(&at))
    }

    /// Up to where the text of an output was delivered under other terms.
    fn told_up_to(&self, key: &TextKey) -> Option<u64> {
        self.details()?.told_text.get(key).copied()
    }

    /// Whether the text of a unit was delivered under other terms.
    fn is_text_told(&self, unit: &Unit) -> bool {
        let Some(chunk) = unit.text().filter(|chunk| !chunk.complete) else { return false };
        if self.details().is_none() {
            return false;
        }
        let end = chunk.position + chunk.chunk.chars().count() as u64;
        self.told_up_to(&text_key(unit.session, chunk)).is_some_and(|told| end <= told)
    }

    /// Folds a state into later ones, remembering the first state left.
    fn fold(&mut self, unit: &Unit) {
        if let Payload::StateChanged(change) = &unit.event.payload {
            let key = (unit.session, unit.agent().into());
            let from = || (change.from_state.as_str().into(), 1);
            self.details_mut().folded.entry(key).or_insert_with(from).1 += 1;
        }
    }

    /// Forgets folded states, because a critical event already told a later one.
    fn unfold(&mut self, unit: &Unit) {
        self.take_folded(unit);
    }

    /// The first state left of those folded into this one, and how many there are.
    fn take_folded(&mut self, unit: &Unit) -> Option<(Box<str>, u64)> {
        self.existing_details_mut()?.folded.remove(&(unit.session, unit.agent().into()))
    }

    /// Owes the subscriber summaries of these sessions, as soon as its limits allow.
    pub(crate) fn owe_summaries(&mut self, sessions: impl Iterator<Item = SessionKey>) {
        let mut sessions = sessions.peekable();
        if sessions.peek().is_some() {
            self.details_mut().summaries.extend(sessions);
        }
    }

    /// Owes the subscriber a gap notice.
    pub(crate) fn owe_gap(&mut self) {
        self.details_mut().owes_gap = true;
    }

    /// Whether the subscriber has yet to be told of a gap.
    pub(crate) fn owes_gap(&self) -> bool {
        self.details().is_some_and(|details| details.owes_gap)
    }

    /// Notes that a summary was sent. It also tells of the gap, if one is owed.
    pub(crate) fn tell_summary(&mut self, id: &EventId, audience: &Audience) {
        if let Some(details) = self.existing_details_mut() {
            details.owes_gap = false;
        }
        self.remember_summary(id, audience);
    }

    /// The next held unit of a session.
    pub(crate) fn next_of<'a>(
        &self,
        session: SessionKey,
        audience: &'a Audience,
    ) -> Option<&'a Unit> {
        let is_held = |at: &u64| !self.is_ahead(*at);
        let mut held = (self.at..audience.end()).filter(is_held).filter_map(|at| audience.unit(at));
        held.find(|unit| unit.session == session && !unit.is_critical)
    }

    /// The sequence number of the next event of a session that is sent in order. Events that overtook others,
    /// or were left behind, have none.
    pub(crate) fn next_number_of(&self, session: SessionKey, audience: &Audience) -> Option<u64> {
        let overtaken = self.overtaken(audience).get(&session).copied();
        let first = overtaken.map_or(self.at, |told| told + 1).max(self.at);
        let mut later = (first..audience.end()).filter_map(|at| audience.unit(at));
        later.find(|unit| unit.session == session && !unit.is_deleted())?.sequence_number
    }

    pub(crate) fn next_summary(&mut self) -> Option<SessionKey> {
        self.existing_details_mut()?.summaries.pop_first()
    }

    pub(crate) fn owes_summaries(&self) -> bool {
        self.details().is_some_and(|details| !details.summaries.is_empty())
    }

    /// Whether the log no longer reaches back to where the subscriber is.
    pub(crate) fn fell_behind(&self, audience: &Audience) -> bool {
        self.at < audience.first() || self.critical_at < audience.first()
    }
}
