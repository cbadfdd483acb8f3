//! The exceptions in what a subscriber received, and how it resumes after a lost connection (ruling
//! 20).
//!
//! Most subscribers have none: the id of the last event that arrived says how far they are. It does
//! not if an event was merged, overtook another, or was made for this subscriber alone. For the
//! newest of such events, the position right after each is kept.

use aaep::EventId;
use std::collections::{BTreeMap, BTreeSet};

use super::Cursor;
use super::place::CursorSnapshot;
use super::told::ToldTimes;
use crate::audience::{Audience, SessionKey, TextKey, Unit};
use crate::ids::IdDigest;

/// How many of the last sent events are remembered, in case the connection lost them.
const REMEMBERED: usize = 128;

/// The first state left of those that were folded and not delivered yet, and how many there are.
pub(super) type FoldedStates = BTreeMap<(SessionKey, Box<str>), (Box<str>, u64)>;

/// What a cursor remembers besides its positions. There may be very many cursors, so empty parts take no
/// memory.
#[derive(Debug, Default, Clone)]
pub(super) struct CursorMemory {
    pub(super) details: Option<Box<CursorDetails>>,
    /// The last events that were sent out of order, or made for this subscriber alone, oldest first.
    sent: Vec<RememberedEvent>,
    /// The times of what was sent out of order or made for this subscriber.
    pub(super) told: ToldTimes,
    /// For events before this global order, the sending order is no longer known.
    doubtful_before: u64,
    /// Whether something was sent out of order since the caller last asked.
    has_strayed: bool,
    /// Whether critical units may wait although the subscriber is connected, because there are more than one
    /// batch.
    critical_waits: bool,
}

/// What describes a position in the log besides its number.
#[derive(Debug, Default, Clone)]
pub(super) struct CursorDetails {
    /// Later units that were delivered with earlier ones, or are withdrawn.
    pub(super) ahead: BTreeSet<u64>,
    /// The states that were folded and not delivered yet, by session and agent.
    pub(super) folded: FoldedStates,
    /// Up to where the text of an output was delivered under other terms, or while a gap was owed.
    pub(super) told_text: BTreeMap<TextKey, u64>,
    /// The running sessions that have yet to be summarized (ruling 19).
    pub(super) summaries: BTreeSet<SessionKey>,
    /// Whether the subscriber has yet to be told of a gap (ruling 20).
    pub(super) owes_gap: bool,
}

impl CursorDetails {
    fn unless_empty(self) -> Option<Box<Self>> {
        (!self.is_empty()).then(|| Box::new(self))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty()
            && self.folded.is_empty()
            && self.told_text.is_empty()
            && self.summaries.is_empty()
            && !self.owes_gap
    }
}

impl CursorMemory {
    pub(super) fn is_empty(&self) -> bool {
        self.details.is_none() && self.sent.is_empty() && self.told.is_empty()
    }

    /// Frees parts that have become empty.
    pub(super) fn tidy(&mut self) {
        if self.details.as_ref().is_some_and(|details| details.is_empty()) {
            self.details = None;
        }
    }
}

/// An event that was sent, and where the subscriber was right after it.
#[derive(Debug, Clone)]
struct RememberedEvent {
    id: IdDigest,
    position: SentPosition,
    /// Whether it was an ask that was sent late, outside its place in the log.
    is_late_ask: bool,
}

/// Where a subscriber was right after an event was sent.
#[derive(Debug, Clone)]
enum SentPosition {
    /// In the log of its audience: the position, the critical position, and the details.
    InLog(u64, u64, Option<Box<CursorDetails>>),
    /// In the log of an earlier audience, before its terms changed.
    UnderOtherTerms(Box<CursorSnapshot>),
}

impl SentPosition {
    fn snapshot(&self, audience: &Audience, end: u64) -> CursorSnapshot {
        match self {
            SentPosition::InLog(at, critical_at, details) => {
                let none = CursorDetails::default();
                CursorSnapshot::of(
                    (*at, *critical_at, details.as_deref().unwrap_or(&none)),
                    audience,
                    end,
                )
            }
            SentPosition::UnderOtherTerms(snapshot) => (**snapshot).clone(),
        }
    }
}

/// What is known about the sending order of events that are not remembered one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownOrder {
    /// From this global order on, every event that overtook another is remembered.
    pub(crate) from: u64,
    /// Whether, before that, only critical events and their context can have overtaken others.
    pub(crate) in_order: bool,
    /// From this global order on, not even those.
    pub(crate) in_order_from: u64,
    /// The position of the event that the subscriber received last, if it was sent in order and the log no
    /// longer has it.
    pub(crate) last_at: Option<u64>,
}

impl Cursor {
    /// Remembers that an event was sent, for [`Cursor::resume`], unless its id alone says how far the
    /// subscriber is.
    pub(super) fn remember(&mut self, id: &EventId, audience: &Audience) {
        let is_level = self.at == self.critical_at && self.is_plain();
        let is_last = || self.at.checked_sub(1).is_some_and(|at| audience.stands_for(at, id));
        if !(is_level && is_last()) {
            self.keep(id, false, audience);
        }
    }

    pub(super) fn remember_summary(&mut self, id: &EventId, audience: &Audience) {
        self.keep(id, false, audience);
    }

    /// Remembers that an ask was sent late.
    pub(crate) fn remember_late_ask(&mut self, id: &EventId, audience: &Audience) {
        self.keep(id, true, audience);
    }

    fn keep(&mut self, id: &EventId, is_late_ask: bool, audience: &Audience) {
        let (at, critical_at) = (self.at, self.critical_at);
        let memory = self.memory.get_or_insert_default();
        memory.has_strayed = true;
        memory.tidy();
        if memory.sent.len() >= REMEMBERED
            && let SentPosition::InLog(at, critical_at, _) = memory.sent.remove(0).position
        {
            let order = audience.order_before(at.max(critical_at));
            memory.doubtful_before = memory.doubtful_before.max(order);
        }
        memory.sent.reserve_exact(1);
        let position = SentPosition::InLog(at, critical_at, memory.details.clone());
        memory.sent.push(RememberedEvent { id: IdDigest::of(id), position, is_late_ask });
    }

    /// Moves to right after the event that the subscriber received last. Returns the digests of the ids of
    /// asks that were sent late since then, which may be lost. None if that position is not known.
    pub(crate) fn resume(
        &mut self,
        last: &EventId,
        audience: &Audience,
        known: KnownOrder,
        text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Vec<IdDigest>> {
        let sent = self.memory.as_ref().map(|memory| &memory.sent);
        let digest = IdDigest::of(last);
        if let Some(found) = sent.and_then(|sent| sent.iter().rposition(|it| it.id == digest)) {
            let memory = self.memory.as_mut()?;
            let unsent: Vec<RememberedEvent> = memory.sent.drain(found + 1..).collect();
            let again = unsent.iter().filter(|sent| sent.is_late_ask).map(|sent| sent.id).collect();
            let unsent: Vec<IdDigest> = unsent.iter().map(|sent| sent.id).collect();
            let position = &memory.sent.last()?.position;
            let is_elsewhere = matches!(position, SentPosition::UnderOtherTerms(_));
            let (at, critical_at, details) = match position {
                SentPosition::InLog(at, critical_at, details) => {
                    (*at, *critical_at, details.clone())
                }
                SentPosition::UnderOtherTerms(snapshot) => {
                    let (at, critical_at, details) = snapshot.in_log(audience, text_end_before)?;
                    (at, critical_at, details.unless_empty())
                }
            };
            memory.details = details;
            (self.at, self.critical_at) = (at, critical_at);
            self.forget_told_after(&unsent);
            if is_elsewhere {
                self.note_overtaking(audience);
            }
            return Some(again);
        }
        let found = audience.position_of(last);
        let at = known.last_at.or(found)?;
        if known.last_at.is_none() {
            let unit = audience.unit(at)?;
            let may_have_overtaken = !known.in_order
                || (unit.order < known.in_order_from && audience.may_have_overtaken(at, unit));
            if (unit.order < known.from && may_have_overtaken)
                || unit.order < self.doubtful_before()
            {
                return None;
            }
        }
        (self.at, self.critical_at) = (at + 1, at + 1);
        self.forget_told_after(&[]);
        let Some(memory) = &mut self.memory else { return Some(Vec::new()) };
        memory.details = None;
        // Events that were sent out of order before stay remembered, because the subscriber may name one of
        // them next time. Later ones are lost and are sent again.
        let is_lost = |sent: &mut RememberedEvent| match sent.position {
            SentPosition::InLog(sent_at, ..) => sent_at > at,
            SentPosition::UnderOtherTerms(_) => false,
        };
        let again = memory.sent.extract_if(.., is_lost).filter(|sent| sent.is_late_ask);
        Some(again.map(|sent| sent.id).collect())
    }

    /// A cursor at a snapshot, with nothing else remembered. None if the log does not reach back to it.
    pub(crate) fn from_snapshot(
        snapshot: &CursorSnapshot,
        audience: &Audience,
        text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Self> {
        let (at, critical_at, details) = snapshot.in_log(audience, text_end_before)?;
        let details = details.unless_empty();
        let memory = details.map(|details| {
            Box::new(CursorMemory { details: Some(details), ..CursorMemory::default() })
        });
        let mut cursor = Cursor { at, critical_at, memory };
        cursor.note_overtaking(audience);
        Some(cursor)
    }

    /// A snapshot of where the subscriber is. `end` is the global order of the next event.
    pub(crate) fn snapshot(&self, audience: &Audience, end: u64) -> CursorSnapshot {
        let none = CursorDetails::default();
        let details =
            self.memory.as_ref().and_then(|memory| memory.details.as_deref()).unwrap_or(&none);
        CursorSnapshot::of((self.at, self.critical_at, details), audience, end)
    }

    /// Continues under other terms, at the same place in the log of another audience. Nothing is lost or
    /// repeated, not even a half-delivered sentence, and not even if it turns out later that some earlier
    /// events did not arrive. What was sent before `known_from` is not known. `end` is the global order of
    /// the next event. None if the new log does not reach back far enough.
    pub(crate) fn carry_over(
        &self,
        (old, new): (&Audience, &Audience),
        (known_from, end): (u64, u64),
        text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Self> {
        if self.fell_behind(old) {
            return None;
        }
        let (at, critical_at, details) = self.snapshot(old, end).in_log(new, text_end_before)?;
        let before = |position: &SentPosition| {
            SentPosition::UnderOtherTerms(Box::new(position.snapshot(old, end)))
        };
        // The ids of events that were sent in order mean nothing to the new audience.
        let mut sent = Vec::new();
        for at in self.at.saturating_sub(REMEMBERED as u64 / 2)..self.at {
            let known = |unit: &&Unit| unit.order >= self.doubtful_before().max(known_from);
            let Some(unit) = old.unit(at).filter(known) else { continue };
            let position = before(&SentPosition::InLog(at + 1, at + 1, None));
            let is_new = |id: &IdDigest| !self.remembers(*id);
            let ids = unit.ids(old.number).map(|id| IdDigest::of(&id));
            for id in ids.into_iter().filter(is_new) {
                let it = RememberedEvent { id, position: position.clone(), is_late_ask: false };
                sent.push((at + 1, it));
            }
        }
        for it in self.memory.iter().flat_map(|memory| &memory.sent) {
            let at = if let SentPosition::InLog(at, critical_at, _) = it.position {
                at.min(critical_at)
            } else {
                0
            };
            if at < old.first() && matches!(it.position, SentPosition::InLog(..)) {
                continue;
            }
            let (id, is_late_ask) = (it.id, it.is_late_ask);
            sent.push((at, RememberedEvent { id, position: before(&it.position), is_late_ask }));
        }
        // Restores the order in which they were sent.
        sent.sort_by_key(|(at, _)| *at);
        let skipped = sent.len().saturating_sub(REMEMBERED);
        let sent = sent.into_iter().skip(skipped).map(|(_, it)| it).collect();
        let details = details.unless_empty();
        let memory = CursorMemory {
            details,
            sent,
            told: self.told_elsewhere(),
            doubtful_before: end,
            has_strayed: false,
            critical_waits: self.critical_waits(),
        };
        let mut cursor = Cursor { at, critical_at, memory: Some(Box::new(memory)) };
        cursor.note_overtaking(new);
        Some(cursor)
    }

    /// Continues at the end of a log that does not reach back far enough. What was delivered under the old
    /// terms of a text that the new log holds stays remembered.
    pub(crate) fn skip_to_end(
        &self,
        (old, new): (&Audience, &Audience),
        end: u64,
        text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Self {
        let told_text = self.snapshot(old, end).told_of_held(new, text_end_before);
        let details = CursorDetails { told_text, ..CursorDetails::default() }.unless_empty();
        let memory = details.map(|details| {
            Box::new(CursorMemory { details: Some(details), ..CursorMemory::default() })
        });
        Cursor { memory, ..Cursor::starting_at(new.end()) }.with_told(self.told_elsewhere())
    }

    /// Whether something was sent out of order since the last call.
    pub(crate) fn has_strayed(&mut self) -> bool {
        self.memory.as_mut().is_some_and(|memory| std::mem::take(&mut memory.has_strayed))
    }

    pub(super) fn note_whether_critical_waits(&mut self, waits: bool) {
        if waits || self.critical_waits() {
            self.memory.get_or_insert_default().critical_waits = waits;
        }
    }

    /// Whether critical units may wait although the subscriber is connected.
    pub(crate) fn critical_waits(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.critical_waits)
    }

    fn remembers(&self, id: IdDigest) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.sent.iter().any(|sent| sent.id == id))
    }

    fn doubtful_before(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.doubtful_before)
    }
}
