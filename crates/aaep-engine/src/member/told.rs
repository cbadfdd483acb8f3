//! The times of what a subscriber was sent, so that nothing that the engine makes goes back (§3.2.5,
//! ruling 7).
//!
//! In its log, the times of a session never go back where the engine sets them. Only what is sent out of
//! order, or made for this subscriber alone, can be later than what follows. Its times are kept here.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::{Event, Timestamp};

use super::merge::FramedEvent;
use super::{Cursor, DeliveryPass};
use crate::audience::{Audience, SessionKey, Unit, UnitKind};
use crate::clock::date_not_before;
use crate::frame::encode;
use crate::ids::IdDigest;

/// How many times are kept.
const MAX_TIMES: usize = 64;

/// The time of something that was sent.
#[derive(Debug, Clone)]
struct ToldTime {
    session: SessionKey,
    unix_us: i64,
    id: IdDigest,
    /// The two positions of the subscriber right after it, in the log of its audience.
    at: (u64, u64),
    /// How many units it had been sent ahead of the first position. The context of a critical event
    /// moves neither position.
    ahead: usize,
}

/// The times of what was sent out of order or made for one subscriber, oldest first.
#[derive(Debug, Default, Clone)]
pub(super) struct ToldTimes(Vec<ToldTime>);

impl ToldTimes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Cursor {
    /// Notes the time of something that was sent out of order or made for this subscriber.
    pub(crate) fn note_told(&mut self, session: SessionKey, event: &Event) {
        let unix_us = event.envelope.timestamp.unix_us();
        if unix_us <= self.told_us(session) {
            return;
        }
        let (id, at) = (IdDigest::of(&event.envelope.event_id), (self.at, self.critical_at));
        let ahead = self.sent_ahead();
        let times = &mut self.memory.get_or_insert_default().told.0;
        if times.len() >= MAX_TIMES {
            // The last time of each session counts, unless the subscriber is rewound.
            let has_later = |(index, it): (usize, &ToldTime)| {
                times[index + 1..].iter().any(|later| later.session == it.session)
            };
            let oldest = times.iter().enumerate().position(has_later);
            times.remove(oldest.unwrap_or(0));
        }
        times.push(ToldTime { session, unix_us, id, at, ahead });
    }

    /// Notes the time of an event that was just sent, unless all that follows in the log is later anyway.
    pub(super) fn note_sent(&mut self, told: &FramedEvent) {
        let overtook = told.frame.is_critical && self.at < self.critical_at;
        if overtook || told.event.envelope.timestamp.unix_us() > told.latest_us {
            self.note_told(told.session, &told.event);
        }
    }

    /// The latest time that was noted of a session.
    pub(crate) fn told_us(&self, session: SessionKey) -> i64 {
        let times = self.memory.iter().flat_map(|memory| &memory.told.0);
        let of_session = times.filter(|it| it.session == session);
        of_session.map(|it| it.unix_us).max().unwrap_or(i64::MIN)
    }

    /// The sessions whose next event may be earlier than what was sent, each once. `last_us` is the last time
    /// of a session, or none if the session is over.
    pub(crate) fn told_later(
        &self,
        last_us: impl Fn(SessionKey) -> Option<i64>,
    ) -> Vec<SessionKey> {
        let times = self.memory.iter().flat_map(|memory| &memory.told.0);
        let later = times.filter(|it| last_us(it.session).is_some_and(|last| last < it.unix_us));
        // The times of a session only grow, so the last one of each is enough; there are few.
        let sessions: BTreeSet<SessionKey> = later.map(|it| it.session).collect();
        sessions.into_iter().collect()
    }

    /// How many units were sent ahead of the first position.
    fn sent_ahead(&self) -> usize {
        let details = self.memory.as_ref().and_then(|memory| memory.details.as_deref());
        details.map_or(0, |details| details.ahead.len())
    }

    /// Forgets the times of what was sent after the present position, and of these events: they are lost.
    pub(super) fn forget_told_after(&mut self, lost: &[IdDigest]) {
        let (at, critical_at, ahead) = (self.at, self.critical_at, self.sent_ahead());
        if let Some(memory) = &mut self.memory {
            let is_before = |it: &ToldTime| {
                let is_same = it.at == (at, critical_at);
                it.at.0 <= at && it.at.1 <= critical_at && (!is_same || it.ahead <= ahead)
            };
            memory.told.0.retain(|it| is_before(it) && !lost.contains(&it.id));
        }
    }

    /// Continues as another cursor of the same subscriber, which remembers the times that are still true.
    pub(crate) fn replace(&mut self, other: Cursor) {
        let mut told = self.take_told();
        *self = other;
        let new = self.take_told();
        told.0.extend(new.0);
        if !told.is_empty() {
            self.memory.get_or_insert_default().told = told;
        }
        self.forget_told_after(&[]);
    }

    /// After a move to another log, notes the times of units that were sent although earlier text waits. Text
    /// was held for its boundary, which the other log may cut elsewhere.
    pub(super) fn note_overtaking(&mut self, log: &Audience) {
        let mut is_waiting = BTreeSet::new();
        for (at, unit) in (self.at..log.end()).filter_map(|at| Some((at, log.unit(at)?))) {
            let is_sent = if unit.is_critical { at < self.critical_at } else { self.is_ahead(at) };
            if is_sent && (unit.is_critical || !is_waiting.contains(&unit.session)) {
                self.note_told(unit.session, &unit.event);
            } else if !is_sent && !unit.is_critical && unit.kind != UnitKind::Text {
                is_waiting.insert(unit.session);
            }
        }
    }

    pub(super) fn take_told(&mut self) -> ToldTimes {
        self.memory.as_mut().map(|memory| std::mem::take(&mut memory.told)).unwrap_or_default()
    }

    /// The times for a cursor in another log. Its positions say nothing about what was sent in this one.
    pub(super) fn told_elsewhere(&self) -> ToldTimes {
        let times = self.memory.iter().flat_map(|memory| memory.told.0.iter().cloned());
        ToldTimes(times.map(|it| ToldTime { at: (0, 0), ..it }).collect())
    }

    pub(super) fn with_told(mut self, told: ToldTimes) -> Self {
        if !told.is_empty() {
            self.memory.get_or_insert_default().told = told;
        }
        self
    }

    /// When an event that is made for this subscriber is emitted: now (§3.2.5), and never before what it was
    /// sent. If more of the session waits, no later than that requires, so that what waits is not earlier. Its
    /// units must have been taken.
    pub(super) fn time_of_merged<F>(&self, pass: &DeliveryPass<'_, F>, last: &Unit) -> Timestamp {
        let own = &last.event.envelope.timestamp;
        let least_us = last.latest_us.max(self.told_us(last.session)).max(own.unix_us());
        let waits = self.first_waiting(last.session, pass.audience).is_some();
        let session = pass.sessions.get(last.session).filter(|_| !waits);
        let unix_us = session.map_or(least_us, |it| it.own_time_us(pass.now).max(least_us));
        let later = Timestamp::from_unix_us(unix_us).filter(|_| unix_us > own.unix_us());
        later.unwrap_or_else(|| own.clone())
    }

    /// When a summary of a session is emitted: now. If older events of the session follow, no
    /// later than the first of them requires. Its clock may be gone with its session.
    pub(crate) fn time_of_summary(&self, now_us: i64, key: SessionKey, audience: &Audience) -> i64 {
        let next = self.first_waiting(key, audience);
        next.map_or(now_us, |unit| unit.latest_us).max(self.told_us(key))
    }

    /// The first unit of a session that was not sent.
    fn first_waiting<'a>(&self, session: SessionKey, audience: &'a Audience) -> Option<&'a Unit> {
        let waits = |at: u64, unit: &Unit| {
            if unit.is_critical {
                at >= self.critical_at
            } else {
                at >= self.at && !self.is_ahead(at)
            }
        };
        (self.at.min(self.critical_at)..audience.end())
            .filter_map(|at| audience.unit(at).map(|unit| (at, unit)))
            .find(|(at, it)| it.session == session && !it.is_deleted() && waits(*at, it))
            .map(|(_, unit)| unit)
    }

    /// A unit as it is sent to this subscriber. If the engine made it and something later was sent, it has
    /// that time.
    pub(super) fn framed<F>(&self, pass: &DeliveryPass<'_, F>, unit: &Unit) -> FramedEvent {
        self.framed_with(pass, unit, true)
    }

    /// The same with or without its sequence number.
    pub(super) fn framed_with<F>(
        &self,
        pass: &DeliveryPass<'_, F>,
        unit: &Unit,
        is_numbered: bool,
    ) -> FramedEvent {
        let event = self.dated(unit);
        let frame = if is_numbered && Arc::ptr_eq(&event, &unit.event) {
            pass.audience.frame(unit, pass.primary)
        } else {
            let number = unit.sequence_number.filter(|_| is_numbered);
            encode(&event, unit.is_critical, number, &pass.audience.terms, pass.primary)
        };
        FramedEvent { frame, event, session: unit.session, latest_us: unit.latest_us }
    }

    /// The event of a unit. If the engine made it and something later was sent, it has that time.
    pub(super) fn dated(&self, unit: &Unit) -> Arc<Event> {
        let told_us = self.told_us(unit.session);
        if unit.is_agents_own || told_us <= unit.event.envelope.timestamp.unix_us() {
            return Arc::clone(&unit.event);
        }
        let mut event = (*unit.event).clone();
        date_not_before(&mut event.envelope, told_us);
        Arc::new(event)
    }
}
