//! Where a subscriber starts or resumes: with the present, or after the last event that it received
//! (rulings 19 and 20).
//!
//! Events that can no longer be delivered are never skipped silently: the subscriber is told of the
//! gap and what is going on now.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::extension::{Delivery, Gap};
use aaep::{Event, EventId, Object, SubscriptionId};

use super::super::delivery_state::HeldUntil;
use super::super::publish::{own_envelope, state_changed};
use super::super::session_table::SessionTable;
use super::super::{
    Engine, EngineSession, MissedEvents, SentLast, SubscriptionStart, SubscriptionTerms,
};
use crate::audience::{MAX_UNITS, SessionKey, SubscriberKey, TextKey};
use crate::clock::Now;
use crate::frame::encode;
use crate::ids::IdDigest;
use crate::io::{Output, PrincipalNumber, ResumePoint};
use crate::member::{Cursor, CursorSnapshot, KnownOrder, LastSent};

impl Engine {
    /// Starts a new subscriber with the present or, if it was here before, after the event that it received
    /// last.
    pub(super) fn begin(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        resume: Option<&ResumePoint>,
        out: &mut Vec<Output>,
    ) {
        match resume {
            None => self.start_fresh(subscriber),
            Some(resume) => {
                let last = resume.last_event_id.as_ref();
                let is_complete =
                    last.is_some_and(|last| self.resume_without_memory(subscriber, last));
                self.note_received(subscriber, last, is_complete);
                if !is_complete {
                    let critical_at = last.and_then(|last| self.position_after(subscriber, last));
                    self.restart_after_gap(subscriber, last);
                    // Critical events that are still in the log are delivered all the same.
                    if let (Some(member), Some(at)) =
                        (self.members.get_mut(subscriber), critical_at)
                    {
                        member.cursor.rewind_critical(at);
                    }
                }
                self.mark_start(subscriber);
                out.push(Output::Resumed { subscriber, is_complete });
            }
        }
        self.continue_delivery(now, subscriber, out);
    }

    /// The position right after an event in the log of a subscriber's audience.
    fn position_after(&self, subscriber: SubscriberKey, id: &EventId) -> Option<u64> {
        let member = self.members.get(subscriber)?;
        let position = self.audiences.get(&member.agreed.audience)?.position_of(id)?;
        Some(position + 1)
    }

    /// Lets a new subscription continue an earlier one, possibly under other terms.
    pub(super) fn take_over(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        agreed: &Arc<SubscriptionTerms>,
        last: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let was_known = self.rewind(subscriber, last);
        let is_complete = self.move_to_terms(subscriber, agreed) && was_known;
        if !is_complete {
            self.restart_after_gap(subscriber, last);
        }
        let unable = self.forget_unanswerable(subscriber);
        self.mark_start(subscriber);
        out.push(Output::Resumed { subscriber, is_complete });
        self.continue_delivery(now, subscriber, out);
        self.check_all_answerable(now, &unable, out);
    }

    pub(in super::super) fn reconnect(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        subscription: &SubscriptionId,
        last: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let Some(subscriber) = self.owned(principal, subscription) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let is_complete = self.rewind(subscriber, last);
        if !is_complete {
            self.restart_after_gap(subscriber, last);
        }
        out.push(Output::Resumed { subscriber, is_complete });
        self.continue_delivery(now, subscriber, out);
    }

    /// Rewinds a subscriber whose wire is full to right after an event: later events were not sent.
    pub(in super::super) fn unsend(&mut self, subscriber: SubscriberKey, last: &EventId) {
        if self.members.get(subscriber).is_none_or(|it| it.delivery.is_away()) {
            return;
        }
        if !self.rewind(subscriber, Some(last)) {
            self.restart_after_gap(subscriber, Some(last));
        }
        self.block_delivery(subscriber);
    }

    /// Delivers to a subscriber that is back what it may receive now.
    fn continue_delivery(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        self.take_wire(subscriber);
        self.check_for_gap(subscriber);
        self.schedule_gap_notice(subscriber);
        self.deliver_missed(now, subscriber, out);
    }

    /// Delivers what a subscriber missed, including open asks.
    pub(super) fn deliver_missed(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        self.note_late(subscriber);
        self.deliver_summaries(now, subscriber, out);
        self.send_late(now, subscriber, out);
        self.recheck_asks_of(now, subscriber, out);
        self.tell_more(now, subscriber, out);
    }

    /// From which global order on the log of an audience is needed by a subscriber that resumes without an
    /// earlier subscription.
    pub(super) fn resumes_from(&self, resume: Option<&ResumePoint>) -> u64 {
        let Some(resume) = resume else { return self.next_order };
        let order = resume.last_event_id.as_ref().and_then(|last| self.order_of(last));
        order.unwrap_or_else(|| self.next_order.saturating_sub(MAX_UNITS as u64))
    }

    /// The global order of an event, if it is in memory.
    fn order_of(&self, id: &EventId) -> Option<u64> {
        let session = self.sessions.get(self.sessions.with_event(id)?)?;
        let entry = session.history.iter().rev().find(|it| it.event.envelope.event_id == *id);
        entry.map(|entry| entry.order)
    }

    /// Marks a subscriber as connected. If it was away, wakes its audience with as much of the log as it
    /// needs.
    fn return_to_audience(&mut self, subscriber: SubscriberKey, last: Option<&EventId>) {
        let was_away = self.members.get(subscriber).is_some_and(|it| it.delivery.is_away());
        self.connect(subscriber);
        let Some(member) = self.members.get(subscriber).filter(|_| was_away) else { return };
        let from = match (&member.start, last) {
            (SubscriptionStart::AtOrder(order), None) => member.needs_from.min(*order),
            (SubscriptionStart::AtSnapshot(snapshot), None) => {
                member.needs_from.min(snapshot.first())
            }
            _ => member.needs_from,
        };
        let (principal, agreed) = (member.principal, Arc::clone(&member.agreed));
        self.enter_audience(principal, &agreed, from);
    }

    /// Rewinds a subscriber to right after the event that it received last, or to where it started. Returns
    /// whether that is known and everything since then can still be delivered.
    fn rewind(&mut self, subscriber: SubscriberKey, last: Option<&EventId>) -> bool {
        let is_known = self.try_to_rewind(subscriber, last);
        self.note_received(subscriber, last, is_known);
        is_known
    }

    /// Notes what a subscriber received last, if that says where it is.
    fn note_received(&mut self, subscriber: SubscriberKey, last: Option<&EventId>, is_known: bool) {
        if let Some(member) = self.members.get_mut(subscriber) {
            let received = || LastSent::received(last);
            member.last_sent = if is_known { received() } else { LastSent::Unknown };
        }
    }

    fn try_to_rewind(&mut self, subscriber: SubscriberKey, last: Option<&EventId>) -> bool {
        self.return_to_audience(subscriber, last);
        self.unlist(subscriber);
        let Some(last) = last else { return self.rewind_to_start(subscriber) };
        let in_order_from = self.in_order_from(subscriber);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return false };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return false };
        // Which events overtook others is known only since the subscription started here.
        let in_order = member.limits.is_none() && member.missing.is_none();
        let is_it = |sent: &&SentLast| sent.ids.contains(&IdDigest::of(last));
        let last_at = member.sent_last.as_deref().filter(is_it).map(|sent| sent.at - 1);
        let known =
            KnownOrder { from: member.start.known_from(), in_order, in_order_from, last_at };
        let text_end_before = |key: &TextKey, order| text_end_before(sessions, key, order);
        let Some(again) = member.cursor.resume(last, audience, known, text_end_before) else {
            return false;
        };
        let is_complete = !member.cursor.fell_behind(audience);
        if !again.is_empty() {
            self.ask_again_if(subscriber, |ask| {
                again.contains(&IdDigest::of(&ask.event.envelope.event_id))
            });
        }
        is_complete
    }

    /// From which global order on a subscriber was sent everything in order, as far as that was stored before
    /// a restart.
    fn in_order_from(&self, subscriber: SubscriberKey) -> u64 {
        let Some(member) = self.members.get(subscriber) else { return u64::MAX };
        let Some(after) = member.in_order_after.as_ref() else { return 0 };
        // If the event is no longer in memory, nothing is known.
        self.order_of(after).map_or(u64::MAX, |order| order + 1)
    }

    /// Rewinds a subscriber that received nothing to where its subscription started. Returns whether that is
    /// possible. Sessions that were running then and still are get summarized again, and their asks are sent
    /// again.
    fn rewind_to_start(&mut self, subscriber: SubscriberKey) -> bool {
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return false };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return false };
        let snapshot = match &member.start {
            SubscriptionStart::AtOrder(order) => {
                let mut snapshot = CursorSnapshot::at(*order);
                let was_running = |session: &EngineSession| {
                    session.first_order < *order && session.is_running_for(&member.agreed)
                };
                let running = sessions.iter().filter(|(_, session)| was_running(session));
                snapshot.owe_summaries(running.map(|(key, _)| key));
                if member.missing.is_some() {
                    snapshot.owe_gap();
                }
                snapshot
            }
            SubscriptionStart::AtSnapshot(snapshot) => (**snapshot).clone(),
            SubscriptionStart::BeforeStop(_) => return false,
        };
        let text_end_before = |key: &TextKey, order| text_end_before(sessions, key, order);
        let Some(cursor) = Cursor::from_snapshot(&snapshot, audience, text_end_before) else {
            return false;
        };
        member.cursor.replace(cursor);
        self.ask_again_if(subscriber, |_| true);
        true
    }

    /// Resumes after an event without an earlier subscription that remembers what was sent. Returns whether
    /// that is possible. With a rate or a pace it is not, because they let some events overtake others.
    fn resume_without_memory(&mut self, subscriber: SubscriberKey, last: &EventId) -> bool {
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return false };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return false };
        if member.limits.is_some() {
            return false;
        }
        let text_end_before = |key: &TextKey, order| text_end_before(sessions, key, order);
        let known =
            KnownOrder { from: u64::MAX, in_order: true, in_order_from: u64::MAX, last_at: None };
        if member.cursor.resume(last, audience, known, text_end_before).is_some() {
            return audience.has_all_after(member.cursor.at());
        }
        let session = sessions.with_event(last).and_then(|key| sessions.get(key));
        let entry = session.and_then(|session| {
            session.history.iter().find(|entry| entry.event.envelope.event_id == *last)
        });
        // A critical event may have overtaken others, and so may its context.
        let is_critical_from = |order: u64| {
            let mut history = session.into_iter().flat_map(|session| &session.history);
            history.any(|entry| entry.order >= order && entry.event.is_critical())
        };
        let Some(entry) = entry.filter(|entry| !is_critical_from(entry.order)) else {
            return false;
        };
        let order = entry.order + 1;
        // How much was delivered of an output that was open then depends on terms that are no longer known.
        let heard = sessions.values().filter(|it| audience.hears.includes(&it.tags));
        let may_be_held = |session: &EngineSession| session.may_have_open_text_at(order, entry);
        if audience.wants_text() && heard.into_iter().any(may_be_held) {
            return false;
        }
        let cursor = Cursor::from_snapshot(&CursorSnapshot::at(order), audience, text_end_before);
        cursor.map(|cursor| member.cursor.replace(cursor)).is_some()
    }

    /// Makes the current position the start of a subscription that continues an earlier one.
    fn mark_start(&mut self, subscriber: SubscriberKey) {
        let Engine { audiences, members, next_order, .. } = self;
        if let Some(member) = members.get_mut(subscriber)
            && let Some(audience) = audiences.get(&member.agreed.audience)
        {
            let snapshot = member.cursor.snapshot(audience, *next_order);
            member.start = SubscriptionStart::AtSnapshot(Box::new(snapshot));
        }
    }

    /// Delivers only new events from now on, and summaries of what is going on (ruling 19).
    fn start_fresh(&mut self, subscriber: SubscriberKey) {
        self.unlist(subscriber);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return };
        let running = sessions.iter().filter(|(_, session)| session.is_running_for(&member.agreed));
        member.cursor.go_to_end(audience);
        member.cursor.owe_summaries(running.map(|(key, _)| key));
    }

    /// Starts a subscriber with the present, because something can no longer be delivered. The summaries
    /// mention the gap (ruling 20), or the first one of the next session if none is running.
    pub(super) fn restart_after_gap(
        &mut self,
        subscriber: SubscriberKey,
        missing_after: Option<&EventId>,
    ) {
        self.ask_again_if(subscriber, |_| true);
        self.skip_to_present(subscriber, missing_after);
    }

    fn skip_to_present(&mut self, subscriber: SubscriberKey, missing_after: Option<&EventId>) {
        self.start_fresh(subscriber);
        if let Some(member) = self.members.get_mut(subscriber) {
            member.missing = Some(Box::new(MissedEvents { after: missing_after.cloned() }));
            member.cursor.owe_gap();
            // What it was sent before is forgotten.
            member.start = SubscriptionStart::AtOrder(self.next_order);
        }
        self.schedule_gap_notice(subscriber);
    }

    /// Chooses where to tell of a gap that is still owed: in the running sessions, or else in the next one.
    fn schedule_gap_notice(&mut self, subscriber: SubscriberKey) {
        let Engine { members, sessions, owed_gaps, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        if !member.cursor.owes_gap() || member.cursor.owes_summaries() {
            return;
        }
        let running = sessions.iter().filter(|(_, session)| session.is_running_for(&member.agreed));
        member.cursor.owe_summaries(running.map(|(key, _)| key));
        if !member.cursor.owes_summaries() {
            owed_gaps.insert(subscriber);
        }
    }

    /// When a subscriber is due next. If it has just reached a deleted unit, that is at the next tick, to be
    /// told of a gap once, after everything that it is behind.
    pub(in super::super) fn or_schedule_gap_notice(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        held: Option<HeldUntil>,
    ) -> Option<HeldUntil> {
        let Some(member) = self.members.get_mut(subscriber) else { return held };
        let is_known = member.cursor.owes_summaries() || self.owed_gaps.contains(&subscriber);
        if !member.cursor.owes_gap() || is_known || matches!(held, Some(HeldUntil::Written(_))) {
            return held;
        }
        member.missing.get_or_insert_with(|| Box::new(MissedEvents { after: None }));
        self.schedule_gap_notice(subscriber);
        Some(HeldUntil::Moment(now.monotonic_us + 1))
    }

    /// If the log no longer reaches back to where a subscriber is, starts it with the present. Returns
    /// whether open asks must then be sent again.
    pub(in super::super) fn check_for_gap(&mut self, subscriber: SubscriberKey) -> bool {
        let Some(member) = self.members.get(subscriber) else { return false };
        let Some(audience) = self.audiences.get(&member.agreed.audience) else { return false };
        let delivery = &member.delivery;
        let cannot_be = delivery.is_away() || delivery.is_together();
        if cannot_be || !member.cursor.fell_behind(audience) {
            return false;
        }
        // A connected subscriber that is only slow was sent all critical events at once.
        let is_critical = |at| audience.unit(at).is_none_or(|unit| unit.is_critical);
        let must_be_asked = (!delivery.is_here() || member.cursor.critical_waits())
            && (member.cursor.critical_at()..audience.end()).any(is_critical);
        let critical_at = member.cursor.critical_at().max(audience.first());
        if must_be_asked {
            // An ask that the log no longer has may or may not have been delivered.
            let is_all_there = member.cursor.critical_at() >= audience.first();
            let is_told = |order: u64| match audience.position_of_ask(order) {
                Some(at) => at < critical_at,
                None => is_all_there,
            };
            let asked = member.asked.orders.iter().copied();
            let told: BTreeSet<u64> = asked.filter(|order| is_told(*order)).collect();
            self.ask_again_if(subscriber, |ask| !told.contains(&ask.order));
        }
        self.skip_to_present(subscriber, None);
        // Critical events that are still in the log are delivered all the same.
        if let Some(member) = self.members.get_mut(subscriber) {
            member.cursor.rewind_critical(critical_at);
        }
        must_be_asked
    }

    /// Sends owed gap notices in a session that has just begun.
    pub(in super::super) fn tell_owed_gaps(
        &mut self,
        now: Now,
        key: SessionKey,
        out: &mut Vec<Output>,
    ) {
        let Engine { owed_gaps, members, sessions, .. } = self;
        let Some(session) = sessions.get(key) else { return };
        let hears = |subscriber: &SubscriberKey| {
            let member = members.get(*subscriber);
            let member = member.filter(|member| !member.delivery.is_away());
            member.is_some_and(|member| session.is_running_for(&member.agreed))
        };
        let told: Vec<SubscriberKey> = owed_gaps.iter().copied().filter(hears).collect();
        for subscriber in told {
            self.owed_gaps.remove(&subscriber);
            self.unlist(subscriber);
            if let Some(member) = self.members.get_mut(subscriber)
                && member.cursor.owes_gap()
            {
                member.cursor.owe_summaries(std::iter::once(key));
            }
            self.catch_up(now, subscriber, out);
        }
    }

    /// Sends one summary for each running session, as far as the limits allow.
    pub(in super::super) fn tell_summaries(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        // The others follow in the next batch, like everything else.
        let end = out.len() + self.config.at_a_time.max(1);
        while out.len() < end {
            let Some(member) = self.members.get_mut(subscriber) else { return };
            if !member.delivery.is_here() || !member.cursor.owes_summaries() {
                return;
            }
            if let Some(limits) = &mut member.limits {
                let next_us = limits.next_us(now.monotonic_us);
                if next_us > now.monotonic_us {
                    return;
                }
            }
            let Some(key) = member.cursor.next_summary() else { return };
            let Some(event) = self.summary(now, key, subscriber) else {
                self.schedule_gap_notice(subscriber);
                continue;
            };
            let Some(member) = self.members.get_mut(subscriber) else { return };
            let Some(audience) = self.audiences.get(&member.agreed.audience) else { return };
            if let Some(limits) = &mut member.limits {
                limits.spend(now.monotonic_us, &event.payload);
            }
            let terms = &member.agreed.terms;
            // For a subscriber that receives every event, the summary has the sequence number before that of
            // the next event.
            let number = terms.keeps_every_event().then(|| {
                let session = self.sessions.get(key).map(|session| session.next_number);
                member.cursor.next_number_of(key, audience).or(session)?.checked_sub(1)
            });
            let number = number.flatten();
            let frame = encode(&event, false, number, terms, &self.primary);
            member.summaries += 1;
            member.cursor.tell_summary(&frame.event_id, audience);
            member.cursor.note_told(key, &event);
            member.last_sent = LastSent::Event(frame.event_id.clone());
            out.push(Output::Deliver { frame, to: vec![subscriber] });
        }
    }

    /// What is going on in a session, in one event.
    fn summary(&mut self, now: Now, key: SessionKey, subscriber: SubscriberKey) -> Option<Event> {
        let member = self.members.get(subscriber)?;
        let audience = self.audiences.get(&member.agreed.audience)?;
        let next = || member.cursor.next_of(key, audience).filter(|unit| !unit.is_deleted());
        let session = self.sessions.get(key);
        if session.is_none_or(|session| session.order.is_ended()) && next().is_none() {
            return None;
        }
        // An ended session may have left memory before everyone received all its events.
        let last = session
            .and_then(EngineSession::last_envelope)
            .or_else(|| Some(&next()?.event.envelope));
        let like = last?.clone();
        let known = session.and_then(|session| session.announced.get(&like.producer.agent_id));
        let known = known.map_or(state::IDLE, String::as_str).to_owned();
        let name = like.producer.agent_name.as_ref().unwrap_or(&like.producer.agent_id);
        let gap = member.missing.as_ref().map(|missing| Gap {
            after_event_id: missing.after.clone(),
            missed: None,
            other: Object::new(),
        });
        let mut summary = if known == state::IDLE {
            format!("{name} has a session open. Nothing is happening right now.")
        } else {
            format!("{name} is at work: {}.", known.replace('_', " "))
        };
        if gap.is_some() {
            summary.push_str(" Some of what happened before may be missing here.");
        }
        // Two summaries at the same moment have different numbers.
        let number = member.summaries;
        let id = self.ids.personal_event(&member.id, key, (now.monotonic_us, number));
        let own_us = session.map_or(now.unix_us, |session| session.own_time_us(now));
        let unix_us = member.cursor.time_of_summary(own_us, key, audience);
        let envelope = own_envelope(id, unix_us, &like);
        let mut event = Event::new(envelope, state_changed(known.clone(), &known, Some(summary)));
        if gap.is_some() {
            Delivery { gap, ..Delivery::new() }.put_on(&mut event);
        }
        Some(event)
    }
}

/// The end of an output before a global order. None if it is no longer known.
pub(super) fn text_end_before(sessions: &SessionTable, key: &TextKey, order: u64) -> Option<u64> {
    sessions.get(key.0)?.text_end_before(key, order)
}
