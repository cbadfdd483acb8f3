//! What is remembered of a subscriber that did not just take everything in order, and coming back
//! after a cut (ruling 20).
//!
//! Most subscribers have nothing to remember: the id of the last event that arrived says where they
//! are. Where it does not, because something was merged, overtook or was made for this subscriber
//! alone, the place right after each event that was sent is kept, for the newest of them.

use aaep::EventId;
use std::collections::{BTreeMap, BTreeSet};

use super::Cursor;
use super::place::Place;
use crate::audience::{Audience, SessionKey, TextKey, Unit};
use crate::ids::Digest;

/// How many of the events sent last are remembered, in case the connection lost them.
const REMEMBERED: usize = 128;

/// The first state left of those that were folded and not told yet, and how many they are.
pub(super) type Folded = BTreeMap<(SessionKey, Box<str>), (Box<str>, u64)>;

/// What has to be remembered. There may be very many of these: nothing empty takes any room.
#[derive(Debug, Default, Clone)]
pub(super) struct Memory {
    pub(super) rest: Option<Box<Rest>>,
    /// What was sent last out of order, or made for this subscriber alone, the oldest first.
    sent: Vec<Sent>,
    /// Of events up to this place among all, it is no longer known which were told before which.
    doubtful_before: u64,
    /// Whether something was sent out of its place that the caller has not noticed yet.
    has_strayed: bool,
    /// Whether something urgent may wait although the subscriber is here, because there is much of it.
    urgent_waits: bool,
}

/// What belongs to a place in the log beside the position.
#[derive(Debug, Default, Clone)]
pub(super) struct Rest {
    /// What was told already of what comes after, with earlier units, or is withdrawn.
    pub(super) ahead: BTreeSet<u64>,
    /// The states that were folded and not told yet, by session and agent.
    pub(super) folded: Folded,
    /// Up to where the text of an output was told already, under other terms or while a gap was owed.
    pub(super) told_text: BTreeMap<TextKey, u64>,
    /// The running sessions that it has not been told of yet (ruling 19).
    pub(super) summaries: BTreeSet<SessionKey>,
    /// Whether it is still to be told that something is missing (ruling 20).
    pub(super) owes_gap: bool,
}

impl Rest {
    /// None if there is nothing in it.
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

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_none() && self.sent.is_empty()
    }

    /// Gives back the room of what is empty by now.
    pub(super) fn tidy(&mut self) {
        if self.rest.as_ref().is_some_and(|rest| rest.is_empty()) {
            self.rest = None;
        }
    }
}

/// Something that was sent, and where the subscriber was right after it.
#[derive(Debug, Clone)]
struct Sent {
    id: Digest,
    then: Then,
    /// Whether it was a question that was asked late, which is not where it belongs in the log.
    is_late_question: bool,
}

/// Where a subscriber was right after something was sent.
#[derive(Debug, Clone)]
enum Then {
    /// In the log of its audience: what can wait, what is urgent, and the rest.
    InLog(u64, u64, Option<Box<Rest>>),
    /// Under other terms.
    Before(Box<Place>),
}

impl Then {
    fn place(&self, audience: &Audience, end: u64) -> Place {
        match self {
            Then::InLog(at, urgent_at, rest) => {
                let none = Rest::default();
                Place::of((*at, *urgent_at, rest.as_deref().unwrap_or(&none)), audience, end)
            }
            Then::Before(place) => (**place).clone(),
        }
    }
}

/// What is known of the order in which a subscriber was sent things that are not remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// From this place among all events on, everything that overtook something is remembered.
    pub(crate) from: u64,
    /// Before it, only what is urgent, or went along with it, may have overtaken something.
    pub(crate) in_order: bool,
    /// And from this place on, not even that.
    pub(crate) in_order_from: u64,
    /// The position of the event that the subscriber got last, where the log no longer has it and it was sent in its
    /// place.
    pub(crate) last_at: Option<u64>,
}

impl Cursor {
    /// Remembers that an event was sent, for [`Cursor::resume`], unless its id says everything.
    pub(super) fn remember(&mut self, id: &EventId, audience: &Audience) {
        let is_level = self.at == self.urgent_at && self.is_plain();
        let is_last = || self.at.checked_sub(1).is_some_and(|at| audience.stands_for(at, id));
        if !(is_level && is_last()) {
            self.keep(id, false, audience);
        }
    }

    /// Remembers that a summary was sent.
    pub(super) fn remember_summary(&mut self, id: &EventId, audience: &Audience) {
        self.keep(id, false, audience);
    }

    /// Remembers that a question was asked late.
    pub(crate) fn remember_question(&mut self, id: &EventId, audience: &Audience) {
        self.keep(id, true, audience);
    }

    fn keep(&mut self, id: &EventId, is_late_question: bool, audience: &Audience) {
        let (at, urgent_at) = (self.at, self.urgent_at);
        let memory = self.memory.get_or_insert_default();
        memory.has_strayed = true;
        memory.tidy();
        if memory.sent.len() >= REMEMBERED
            && let Then::InLog(at, urgent_at, _) = memory.sent.remove(0).then
        {
            let order = audience.order_before(at.max(urgent_at));
            memory.doubtful_before = memory.doubtful_before.max(order);
        }
        memory.sent.reserve_exact(1);
        let then = Then::InLog(at, urgent_at, memory.rest.clone());
        memory.sent.push(Sent { id: Digest::of(id), then, is_late_question });
    }

    /// Goes back to right after the event that the subscriber got last. Gives the questions that were
    /// asked late since then, which may be lost, each by the digest of its id; none at all if it is
    /// not known where that was.
    pub(crate) fn resume(
        &mut self,
        last: &EventId,
        audience: &Audience,
        known: Known,
        told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Vec<Digest>> {
        let sent = self.memory.as_ref().map(|memory| &memory.sent);
        let digest = Digest::of(last);
        if let Some(found) = sent.and_then(|sent| sent.iter().rposition(|it| it.id == digest)) {
            let memory = self.memory.as_mut()?;
            let again = memory.sent.drain(found + 1..).filter(|sent| sent.is_late_question);
            let again = again.map(|sent| sent.id).collect();
            let (at, urgent_at, rest) = match &memory.sent.last()?.then {
                Then::InLog(at, urgent_at, rest) => (*at, *urgent_at, rest.clone()),
                Then::Before(place) => {
                    let (at, urgent_at, rest) = place.in_log(audience, told_at)?;
                    (at, urgent_at, rest.unless_empty())
                }
            };
            memory.rest = rest;
            (self.at, self.urgent_at) = (at, urgent_at);
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
        (self.at, self.urgent_at) = (at + 1, at + 1);
        let Some(memory) = &mut self.memory else { return Some(Vec::new()) };
        memory.rest = None;
        // What was sent out of order before stays remembered: it may be the next to be named. What was
        // sent after is lost, and sent again.
        let is_lost = |sent: &mut Sent| matches!(sent.then, Then::InLog(then, ..) if then > at);
        let again = memory.sent.extract_if(.., is_lost).filter(|sent| sent.is_late_question);
        Some(again.map(|sent| sent.id).collect())
    }

    /// At a place, with nothing remembered; none if the log does not reach back to it.
    pub(crate) fn at_place(
        place: &Place,
        audience: &Audience,
        told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Self> {
        let (at, urgent_at, rest) = place.in_log(audience, told_at)?;
        let rest = rest.unless_empty();
        let memory = rest.map(|rest| Box::new(Memory { rest: Some(rest), ..Memory::default() }));
        Some(Cursor { at, urgent_at, memory })
    }

    /// Where the subscriber is; `end` is the place of the next event among all.
    pub(crate) fn place(&self, audience: &Audience, end: u64) -> Place {
        let none = Rest::default();
        let rest = self.memory.as_ref().and_then(|memory| memory.rest.as_deref()).unwrap_or(&none);
        Place::of((self.at, self.urgent_at, rest), audience, end)
    }

    /// Continues under other terms: where the subscriber was with one audience, it is with another.
    /// Nothing is lost or repeated, not even a half-told sentence, and not even if it turns out later
    /// that some of what was sent before did not arrive. What it was sent before `known_from` is not
    /// known; `end` is the place of the next event among all. None if the new log does not reach back.
    pub(crate) fn carry_over(
        &self,
        (old, new): (&Audience, &Audience),
        (known_from, end): (u64, u64),
        told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<Self> {
        if self.fell_behind(old) {
            return None;
        }
        let (at, urgent_at, rest) = self.place(old, end).in_log(new, told_at)?;
        let before = |then: &Then| Then::Before(Box::new(then.place(old, end)));
        // The ids of what was sent in order mean nothing to the new audience.
        let mut sent = Vec::new();
        for at in self.at.saturating_sub(REMEMBERED as u64 / 2)..self.at {
            let known = |unit: &&Unit| unit.order >= self.doubtful_before().max(known_from);
            let Some(unit) = old.unit(at).filter(known) else { continue };
            let then = before(&Then::InLog(at + 1, at + 1, None));
            let is_new = |id: &Digest| !self.remembers(*id);
            let ids = unit.ids(old.number).map(|id| Digest::of(&id));
            for id in ids.into_iter().filter(is_new) {
                let it = Sent { id, then: then.clone(), is_late_question: false };
                sent.push((at + 1, it));
            }
        }
        for it in self.memory.iter().flat_map(|memory| &memory.sent) {
            let at =
                if let Then::InLog(at, urgent_at, _) = it.then { at.min(urgent_at) } else { 0 };
            if at < old.first() && matches!(it.then, Then::InLog(..)) {
                continue;
            }
            let (id, is_late_question) = (it.id, it.is_late_question);
            sent.push((at, Sent { id, then: before(&it.then), is_late_question }));
        }
        // In the order in which they were sent.
        sent.sort_by_key(|(at, _)| *at);
        let skipped = sent.len().saturating_sub(REMEMBERED);
        let sent = sent.into_iter().skip(skipped).map(|(_, it)| it).collect();
        let rest = rest.unless_empty();
        let memory = Memory {
            rest,
            sent,
            doubtful_before: end,
            has_strayed: false,
            urgent_waits: self.urgent_waits(),
        };
        Some(Cursor { at, urgent_at, memory: Some(Box::new(memory)) })
    }

    /// Continues under other terms whose log does not reach back: at its end. Of a text that the new log
    /// holds, what was told under the old terms stays told.
    pub(crate) fn skip_to_end(
        &self,
        (old, new): (&Audience, &Audience),
        end: u64,
        told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Self {
        let told_text = self.place(old, end).told_of_held(new, told_at);
        let rest = Rest { told_text, ..Rest::default() }.unless_empty();
        let memory = rest.map(|rest| Box::new(Memory { rest: Some(rest), ..Memory::default() }));
        Cursor { memory, ..Cursor::starting_at(new.end()) }
    }

    /// Whether something was sent out of its place since this was last asked.
    pub(crate) fn has_strayed(&mut self) -> bool {
        self.memory.as_mut().is_some_and(|memory| std::mem::take(&mut memory.has_strayed))
    }

    pub(super) fn note_whether_urgent_waits(&mut self, waits: bool) {
        if waits || self.urgent_waits() {
            self.memory.get_or_insert_default().urgent_waits = waits;
        }
    }

    /// Whether something urgent may wait although the subscriber is here.
    pub(crate) fn urgent_waits(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.urgent_waits)
    }

    fn remembers(&self, id: Digest) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.sent.iter().any(|sent| sent.id == id))
    }

    fn doubtful_before(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.doubtful_before)
    }
}
