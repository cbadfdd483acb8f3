//! One subscriber's way through the log of its audience: how far it is, what it may get now, and what
//! is merged when it is behind (§5.3.1.1, §5.3.1.11, §5.6.1, rulings 6 to 10).

mod context;
mod limits;
mod memory;
mod merge;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::{EventId, LanguageTag, Payload};

use crate::audience::{Audience, Kind, SessionKey, Superseded, TextKey, Unit, text_key};
use crate::clock::Now;
use crate::frame::Frame;

pub(crate) use limits::Limits;
pub use limits::MAX_ANNOUNCING_US;
pub(crate) use memory::Known;
use memory::{Memory, Rest};
pub(crate) use merge::Joined;
pub(crate) use place::Place;

/// From how many waiting tool events on they are summed up in one (ruling 10).
pub const MAX_WAITING_TOOLS: usize = 16;

/// Something longer than this counts as several events, each of this length, where only so many go at a time.
const LONG_BYTES: usize = 4096;

/// Where a subscriber is in the log of its audience.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cursor {
    /// Everything before that can wait was sent or is superfluous.
    pub(crate) at: u64,
    /// Everything urgent before was sent.
    pub(crate) urgent_at: u64,
    /// What there is to remember; nothing for most, who take everything in order.
    memory: Option<Box<Memory>>,
}

/// How far a subscriber got with what it may get now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progressed {
    /// Nothing is held.
    CaughtUp,
    /// Something is held until then.
    Until(u64),
    /// Only text is held, for the sake of the pace, until then. Anything else may go at once (ruling 30).
    TextUntil(u64),
    /// Enough was sent for now.
    Enough,
}

/// How a subscriber is told things: its audience, its limits, the moment, and the way out.
pub(crate) struct Telling<'a, F> {
    pub(crate) audience: &'a Audience,
    pub(crate) limits: Option<&'a mut Limits>,
    pub(crate) now: Now,
    pub(crate) primary: &'a LanguageTag,
    /// Whether the subscriber is still to be told that something is missing.
    pub(crate) is_gap_owed: bool,
    /// How many events that can wait may go now.
    pub(crate) left: usize,
    pub(crate) send: F,
}

impl Cursor {
    /// From this position of the log on.
    pub(crate) fn starting_at(at: u64) -> Self {
        Cursor { at, urgent_at: at, memory: None }
    }

    /// To the end of the log: only what comes from now on. Of a text that is held, what was told stays told.
    pub(crate) fn go_to_end(&mut self, audience: &Audience) {
        let rest = self.memory.take().and_then(|memory| memory.rest);
        let mut told_text = rest.map(|rest| rest.told_text).unwrap_or_default();
        let held: BTreeSet<TextKey> = audience.held_texts().map(|(key, ..)| key).collect();
        told_text.retain(|key, _| held.contains(key));
        *self = Cursor::starting_at(audience.end());
        if !told_text.is_empty() {
            self.rest_mut().told_text = told_text;
        }
    }

    /// Whether the subscriber takes everything as it comes, with nothing to remember about text.
    pub(crate) fn is_plain(&self) -> bool {
        self.rest().is_none_or(Rest::is_empty)
    }

    /// Tells what may be told now: urgent things first, then as much as the limits allow.
    pub(crate) fn proceed<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> Progressed {
        if telling.audience.terms.keeps_every_event() {
            return self.tell_everything(telling);
        }
        if !self.tell_urgent(telling) {
            return Progressed::Enough;
        }
        let end = telling.audience.end();
        let progressed = self.advance(telling, end);
        if let Some(limits) = telling.limits.as_deref_mut() {
            limits.note_held(progressed != Progressed::CaughtUp);
        }
        progressed
    }

    /// Everything in its order, for whoever counts.
    fn tell_everything<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> Progressed {
        let end = telling.audience.end();
        let overtaken = self.overtaken(telling.audience);
        let frame = |telling: &Telling<'_, F>, at: u64, unit: &Unit| {
            if overtaken.get(&unit.session).is_some_and(|told| at <= *told) {
                telling.audience.frame_without_number(unit, telling.primary)
            } else {
                telling.audience.frame(unit, telling.primary)
            }
        };
        if !self.tell_left_behind(telling) {
            return Progressed::Enough;
        }
        while let Some(unit) = telling.audience.unit(self.at) {
            if telling.left == 0 {
                self.note_whether_urgent_waits(true);
                return Progressed::Enough;
            }
            // Under other terms, some of it may have been told before.
            let is_told = (unit.is_urgent && self.at < self.urgent_at)
                || self.take_ahead()
                || self.is_text_told(unit);
            if is_told {
                self.at += 1;
            } else if unit.is_deleted() {
                self.owe_gap();
                self.at += 1;
            } else if merge::is_partly_told(self, unit) {
                let told = merge::next(self, telling, (self.at, self.at + 1));
                if let Some(told) = told {
                    self.urgent_at = self.urgent_at.max(self.at);
                    self.send(telling, told.frame);
                }
            } else {
                self.at += 1;
                self.urgent_at = self.urgent_at.max(self.at);
                self.send(telling, frame(telling, self.at - 1, unit));
            }
        }
        self.urgent_at = end;
        self.note_whether_urgent_waits(false);
        self.forget(telling.audience);
        Progressed::CaughtUp
    }

    /// What is critical and was left behind, after a gap or under other terms; whether all of it is told. It comes out
    /// of its place, before what sums up the present: it is older.
    pub(crate) fn tell_left_behind<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> bool {
        if !telling.audience.terms.keeps_every_event() {
            return self.urgent_at >= self.at || self.tell_urgent(telling);
        }
        while self.urgent_at < self.at {
            let unit = telling.audience.unit(self.urgent_at).filter(|unit| unit.is_urgent);
            if unit.is_some() && telling.left == 0 {
                self.note_whether_urgent_waits(true);
                return false;
            }
            self.urgent_at += 1;
            match unit {
                Some(unit) if unit.is_deleted() => self.owe_gap(),
                Some(unit) => {
                    let frame = telling.audience.frame_without_number(unit, telling.primary);
                    self.send(telling, frame);
                }
                None => {}
            }
        }
        true
    }

    /// Where in each session the last unit is that was told, or partly told, under other terms. What
    /// comes before is told without a number: numbers would have a hole (ruling 7).
    fn overtaken(&self, audience: &Audience) -> BTreeMap<SessionKey, u64> {
        if self.at == self.urgent_at && self.is_plain() {
            return BTreeMap::new();
        }
        let is_told = |at: u64, unit: &Unit| {
            if unit.is_urgent {
                at < self.urgent_at
            } else {
                let is_begun = self.is_text_told(unit) || merge::is_partly_told(self, unit);
                at < self.at || self.is_ahead(at) || is_begun
            }
        };
        (self.at.min(self.urgent_at)..audience.end())
            .filter_map(|at| audience.unit(at).map(|unit| (at, unit)))
            .filter(|(at, unit)| is_told(*at, unit))
            .map(|(at, unit)| (unit.session, at))
            .collect()
    }

    /// Everything urgent at once, unless that is very much; whether it is told.
    pub(crate) fn tell_urgent<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> bool {
        let is_told = self.tell_urgent_until_enough(telling);
        self.note_whether_urgent_waits(!is_told);
        is_told
    }

    /// Whether everything urgent is told, each with what is needed to understand it (rulings 7 and 8).
    fn tell_urgent_until_enough<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> bool {
        let audience = telling.audience;
        while self.urgent_at < audience.end() {
            if telling.left == 0 {
                return false;
            }
            let at = self.urgent_at;
            let Some(unit) = audience.unit(at).filter(|unit| unit.is_urgent) else {
                self.urgent_at += 1;
                continue;
            };
            if unit.is_deleted() {
                self.owe_gap();
                self.step_over_urgent();
                continue;
            }
            if !self.tell_context(telling, at, unit) {
                return false;
            }
            self.step_over_urgent();
            self.send_at_once(telling, audience.frame(unit, telling.primary), &unit.event.payload);
        }
        true
    }

    /// Something urgent needs not be told any more, nor when its turn comes.
    fn step_over_urgent(&mut self) {
        if self.at == self.urgent_at {
            self.at += 1;
        }
        self.urgent_at += 1;
    }

    fn send<F: FnMut(Arc<Frame>)>(&mut self, telling: &mut Telling<'_, F>, frame: Arc<Frame>) {
        self.remember(&frame.event_id, telling.audience);
        telling.left = telling.left.saturating_sub(1 + frame.json.len() / LONG_BYTES);
        (telling.send)(frame);
    }

    /// Sends something that is exempt from the rate.
    fn send_at_once<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        frame: Arc<Frame>,
        payload: &Payload,
    ) {
        if let Some(limits) = telling.limits.as_deref_mut() {
            limits.announce(telling.now.monotonic_us, payload);
        }
        self.send(telling, frame);
    }

    /// The unit at this position is told.
    fn take(&mut self, at: u64) {
        if at == self.at {
            self.at += 1;
        } else {
            self.rest_mut().ahead.insert(at);
        }
    }

    /// Tells what is held before this position, as far as the limits allow.
    fn advance<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        until: u64,
    ) -> Progressed {
        loop {
            if self.at < telling.audience.first() {
                // Too far behind: it has to be told so, and is at the next moment.
                return Progressed::Until(telling.now.monotonic_us + 1);
            }
            self.skip(telling.audience, until);
            if self.at >= until {
                self.forget(telling.audience);
                return Progressed::CaughtUp;
            }
            if telling.left == 0 {
                return Progressed::Enough;
            }
            let now_us = telling.now.monotonic_us;
            let mut at = self.at;
            if let Some(limits) = telling.limits.as_deref_mut() {
                let next_text_us = limits.next_text_us(now_us);
                if next_text_us > now_us {
                    match self.next_besides_text(telling.audience, until) {
                        Some(next) => at = next,
                        None => return Progressed::TextUntil(next_text_us),
                    }
                }
                let next_us = limits.next_us(now_us);
                if next_us > now_us {
                    return Progressed::Until(next_us);
                }
            }
            let Some(told) = merge::next(self, telling, (at, until)) else {
                continue;
            };
            if let Some(limits) = telling.limits.as_deref_mut() {
                limits.spend(now_us, &told.event.payload);
            }
            self.send(telling, told.frame);
        }
    }

    /// What goes next while the pace holds text: of the first session that has something else to tell, what is held
    /// first, its text included, since the order of a session is kept. None where only text is held.
    fn next_besides_text(&mut self, audience: &Audience, until: u64) -> Option<u64> {
        let is_due = |at: &u64| {
            audience.unit(*at).is_some_and(|unit| {
                !unit.is_urgent
                    && unit.kind != Kind::Text
                    && !self.is_ahead(*at)
                    && audience.superseded(*at, unit) == Superseded::No
            })
        };
        let due = (self.at..until).find(is_due)?;
        let session = audience.unit(due)?.session;
        for at in self.at..due {
            let Some(unit) = audience.unit(at).filter(|unit| unit.session == session) else {
                continue;
            };
            if unit.is_urgent || self.is_ahead(at) {
                continue;
            }
            match audience.superseded(at, unit) {
                Superseded::No if self.is_text_told(unit) => {}
                Superseded::No => return Some(at),
                Superseded::ByLater => self.fold(unit),
                Superseded::ByUrgent => self.unfold(unit),
            }
            self.take(at);
        }
        Some(due)
    }

    /// Steps over what needs not be told: urgent units are told at once, some were told with others,
    /// some are superfluous by now, some withdrawn.
    fn skip(&mut self, audience: &Audience, until: u64) {
        while self.at < until
            && let Some(unit) = audience.unit(self.at)
        {
            if !(unit.is_urgent || self.take_ahead() || self.is_text_told(unit)) {
                match audience.superseded(self.at, unit) {
                    Superseded::No if unit.is_deleted() => self.owe_gap(),
                    Superseded::No => return,
                    Superseded::ByLater => self.fold(unit),
                    Superseded::ByUrgent => self.unfold(unit),
                }
            }
            self.at += 1;
        }
    }

    /// Nothing is held: forgets what was remembered for the sake of what was.
    fn forget(&mut self, audience: &Audience) {
        let first = self.at;
        let Some(memory) = &mut self.memory else { return };
        if let Some(rest) = &mut memory.rest {
            if first >= audience.end() {
                rest.folded.clear();
            }
            let open: BTreeSet<TextKey> = audience.held_texts().map(|(key, ..)| key).collect();
            let is_ahead = |key: &TextKey| {
                (first..audience.end()).filter_map(|at| audience.unit(at)).any(|unit| {
                    unit.text().is_some_and(|chunk| text_key(unit.session, chunk) == *key)
                })
            };
            rest.told_text.retain(|key, _| open.contains(key) || is_ahead(key));
        }
        memory.tidy();
        if memory.is_empty() {
            self.memory = None;
        }
    }

    fn rest(&self) -> Option<&Rest> {
        self.memory.as_ref()?.rest.as_deref()
    }

    fn rest_mut(&mut self) -> &mut Rest {
        self.memory.get_or_insert_default().rest.get_or_insert_default()
    }

    /// The rest, if there is any already.
    fn known_rest_mut(&mut self) -> Option<&mut Rest> {
        self.memory.as_mut()?.rest.as_deref_mut()
    }

    /// Whether the unit here was told with an earlier one; then that needs not be remembered longer.
    fn take_ahead(&mut self) -> bool {
        let at = self.at;
        self.known_rest_mut().is_some_and(|rest| rest.ahead.remove(&at))
    }

    /// Whether a unit was told with an earlier one, or is withdrawn.
    fn is_ahead(&self, at: u64) -> bool {
        self.rest().is_some_and(|rest| rest.ahead.contains(&at))
    }

    /// Up to where the text of an output was told already, under other terms.
    fn told_up_to(&self, key: &TextKey) -> Option<u64> {
        self.rest()?.told_text.get(key).copied()
    }

    /// Whether the text of a unit was told already, under other terms.
    fn is_text_told(&self, unit: &Unit) -> bool {
        let Some(chunk) = unit.text().filter(|chunk| !chunk.complete) else { return false };
        if self.rest().is_none() {
            return false;
        }
        let end = chunk.position + chunk.chunk.chars().count() as u64;
        self.told_up_to(&text_key(unit.session, chunk)).is_some_and(|told| end <= told)
    }

    /// Remembers the first state left of those that are folded into one.
    fn fold(&mut self, unit: &Unit) {
        if let Payload::StateChanged(change) = &unit.event.payload {
            let key = (unit.session, unit.agent().into());
            let from = || (change.from_state.as_str().into(), 1);
            self.rest_mut().folded.entry(key).or_insert_with(from).1 += 1;
        }
    }

    /// An urgent event told a later state already: what was folded before is told no more.
    fn unfold(&mut self, unit: &Unit) {
        self.take_folded(unit);
    }

    /// The first state left of those that are folded into this one, and how many they are.
    fn take_folded(&mut self, unit: &Unit) -> Option<(Box<str>, u64)> {
        self.known_rest_mut()?.folded.remove(&(unit.session, unit.agent().into()))
    }

    /// These sessions are to be summed up for the subscriber, as soon as its limits allow.
    pub(crate) fn owe_summaries(&mut self, sessions: impl Iterator<Item = SessionKey>) {
        let mut sessions = sessions.peekable();
        if sessions.peek().is_some() {
            self.rest_mut().summaries.extend(sessions);
        }
    }

    /// The subscriber is to be told that something is missing.
    pub(crate) fn owe_gap(&mut self) {
        self.rest_mut().owes_gap = true;
    }

    /// Whether it is still to be told that something is missing.
    pub(crate) fn owes_gap(&self) -> bool {
        self.rest().is_some_and(|rest| rest.owes_gap)
    }

    /// A summary is told: it says that something is missing, if so.
    pub(crate) fn tell_summary(&mut self, id: &EventId, audience: &Audience) {
        if let Some(rest) = self.known_rest_mut() {
            rest.owes_gap = false;
        }
        self.remember_summary(id, audience);
    }

    /// What is next told of a session, if something is still to be told.
    pub(crate) fn next_of<'a>(
        &self,
        session: SessionKey,
        audience: &'a Audience,
    ) -> Option<&'a Unit> {
        let is_held = |at: &u64| !self.is_ahead(*at);
        let mut held = (self.at..audience.end()).filter(is_held).filter_map(|at| audience.unit(at));
        held.find(|unit| unit.session == session && !unit.is_urgent)
    }

    /// The sequence number of the next event of a session that is told in its place. Events that overtook others, or
    /// were left behind, have none.
    pub(crate) fn next_number_of(&self, session: SessionKey, audience: &Audience) -> Option<u64> {
        let overtaken = self.overtaken(audience).get(&session).copied();
        let first = overtaken.map_or(self.at, |told| told + 1).max(self.at);
        let mut later = (first..audience.end()).filter_map(|at| audience.unit(at));
        later.find(|unit| unit.session == session && !unit.is_deleted())?.sequence_number
    }

    /// The next session to sum up.
    pub(crate) fn next_summary(&mut self) -> Option<SessionKey> {
        self.known_rest_mut()?.summaries.pop_first()
    }

    pub(crate) fn owes_summaries(&self) -> bool {
        self.rest().is_some_and(|rest| !rest.summaries.is_empty())
    }

    /// Whether the log no longer reaches back to where the subscriber is.
    pub(crate) fn fell_behind(&self, audience: &Audience) -> bool {
        self.at < audience.first() || self.urgent_at < audience.first()
    }
}
