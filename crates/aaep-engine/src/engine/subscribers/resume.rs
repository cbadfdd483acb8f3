//! Where a subscriber begins and goes on: with what is going on, or after the last event that it got
//! (rulings 19 and 20).
//!
//! What cannot be told any more is never passed over in silence: the subscriber is told that something
//! is missing, and what is going on now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::extension::{Delivery, Gap};
use aaep::{Event, EventId, Object, SubscriptionId};

use super::super::deliver::HeldUntil;
use super::super::publish::state_changed;
use super::super::{Began, Engine, Member, Missing, Presence, SentLast, Session, Wish};
use crate::audience::{MAX_UNITS, SessionKey, SubscriberKey, TextKey};
use crate::clock::Now;
use crate::frame::encode;
use crate::ids::Digest;
use crate::io::{Output, Principal, Resume};
use crate::member::{Cursor, Known, Place};

impl Engine {
    /// A new subscriber begins with what is going on now, or, if it was here before, after the event
    /// that it got last.
    pub(super) fn begin(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        resume: Option<&Resume>,
        out: &mut Vec<Output>,
    ) {
        match resume {
            None => self.start_anew(subscriber),
            Some(resume) => {
                let last = resume.last_event_id.as_ref();
                let is_complete =
                    last.is_some_and(|last| self.resume_without_memory(subscriber, last));
                if !is_complete {
                    let urgent_at = last.and_then(|last| self.position_after(subscriber, last));
                    self.lose(subscriber, last);
                    // What is urgent and still there is told all the same.
                    if let (Some(Some(member)), Some(at)) =
                        (self.members.get_mut(subscriber as usize), urgent_at)
                    {
                        member.cursor.urgent_at = at;
                    }
                }
                self.begin_here(subscriber);
                out.push(Output::Resumed { subscriber, is_complete });
            }
        }
        self.go_on(now, subscriber, out);
    }

    /// The position right after an event in the log of a subscriber's audience.
    fn position_after(&self, subscriber: SubscriberKey, id: &EventId) -> Option<u64> {
        let member = self.members.get(subscriber as usize)?.as_ref()?;
        let position = self.audiences.get(&member.wish.audience)?.position_of(id)?;
        Some(position + 1)
    }

    /// A new subscription takes the place of an earlier one, with other terms perhaps.
    pub(super) fn take_over(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        wish: &Arc<Wish>,
        last: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let was_known = self.go_back(subscriber, last);
        let is_complete = self.move_to(subscriber, wish) && was_known;
        if !is_complete {
            self.lose(subscriber, last);
        }
        let unable = self.forget_unable(subscriber);
        self.begin_here(subscriber);
        out.push(Output::Resumed { subscriber, is_complete });
        self.go_on(now, subscriber, out);
        self.look_for_others(now, &unable, out);
    }

    pub(in super::super) fn reconnect(
        &mut self,
        now: Now,
        principal: Principal,
        subscription: &SubscriptionId,
        last: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let Some(subscriber) = self.owned(principal, subscription) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let is_complete = self.go_back(subscriber, last);
        if !is_complete {
            self.lose(subscriber, last);
        }
        out.push(Output::Resumed { subscriber, is_complete });
        self.go_on(now, subscriber, out);
    }

    /// A subscriber whose wire is full is where it was right after an event: what came later was not sent.
    pub(in super::super) fn unsend(&mut self, subscriber: SubscriberKey, last: &EventId) {
        let is_away = |it: &Member| matches!(it.presence, Presence::Away(_));
        if self.members.get(subscriber as usize).and_then(Option::as_ref).is_none_or(is_away) {
            return;
        }
        if !self.go_back(subscriber, Some(last)) {
            self.lose(subscriber, Some(last));
        }
        if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
            member.presence = Presence::Blocked;
        }
    }

    /// Tells a subscriber that is back what it may be told now.
    fn go_on(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
            member.rests = false;
        }
        self.tell_gap(subscriber);
        self.find_where_to_tell_gap(subscriber);
        self.tell_what_was_missed(now, subscriber, out);
    }

    /// Tells a subscriber that can be told things again what it missed, the open questions among it.
    pub(super) fn tell_what_was_missed(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        self.note_late(subscriber);
        self.sum_up(now, subscriber, out);
        self.send_late(subscriber, out);
        self.look_at_asks_of(now, subscriber, out);
        self.tell_more(now, subscriber, out);
    }

    /// From which place among all events on the log of an audience must reach for someone who goes on without an
    /// earlier subscription.
    pub(super) fn resumes_from(&self, resume: Option<&Resume>) -> u64 {
        let Some(resume) = resume else { return self.next_order };
        let order = resume.last_event_id.as_ref().and_then(|last| self.order_of(last));
        order.unwrap_or_else(|| self.next_order.saturating_sub(MAX_UNITS as u64))
    }

    /// The place of an event among all, if it is in memory.
    fn order_of(&self, id: &EventId) -> Option<u64> {
        let session = self.sessions.get(self.event_ids.get(id)?)?;
        let entry = session.history.iter().rev().find(|it| it.event.envelope.event_id == *id);
        entry.map(|entry| entry.order)
    }

    /// A subscriber is here; if it was away, so is its audience again, with as much of its log as it needs.
    fn come_back(&mut self, subscriber: SubscriberKey, last: Option<&EventId>) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
        let was = std::mem::replace(&mut member.presence, Presence::Here);
        if !matches!(was, Presence::Away(_)) {
            return;
        }
        let from = match (&member.began, last) {
            (Began::At(order), None) => member.needs_from.min(*order),
            (Began::Where(place), None) => member.needs_from.min(place.first()),
            _ => member.needs_from,
        };
        let (principal, wish) = (member.principal, Arc::clone(&member.wish));
        self.enter(principal, &wish, from);
    }

    /// Takes a subscriber back to right after the event that it got last, or to where it began. Whether
    /// that is known and everything since then can still be told.
    fn go_back(&mut self, subscriber: SubscriberKey, last: Option<&EventId>) -> bool {
        self.come_back(subscriber, last);
        self.leave_lists(subscriber);
        let Some(last) = last else { return self.go_back_to_the_beginning(subscriber) };
        let in_order_from = self.in_order_from(subscriber);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        // What overtook what is known only since the subscription began here.
        let in_order = member.limits.is_none() && member.missing.is_none();
        let is_it = |sent: &&SentLast| sent.ids.contains(&Digest::of(last));
        let last_at = member.sent_last.as_deref().filter(is_it).map(|sent| sent.at - 1);
        let known = Known { from: member.began.known_from(), in_order, in_order_from, last_at };
        let told_at = |key: &TextKey, order| told_at(sessions, key, order);
        let Some(again) = member.cursor.resume(last, audience, known, told_at) else {
            return false;
        };
        let is_complete = !member.cursor.fell_behind(audience);
        if !again.is_empty() {
            self.ask_again_if(subscriber, |ask| {
                again.contains(&Digest::of(&ask.event.envelope.event_id))
            });
        }
        is_complete
    }

    /// From which place among all events on a subscriber was sent everything in its place, as far as that
    /// was stored before a stop.
    fn in_order_from(&self, subscriber: SubscriberKey) -> u64 {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return u64::MAX };
        let Some(after) = member.in_order_after.as_ref() else { return 0 };
        // If it is no longer in memory, nothing is known.
        self.order_of(after).map_or(u64::MAX, |order| order + 1)
    }

    /// Takes a subscriber that got nothing at all back to where its subscription began; whether that is
    /// possible. What was going on then and still is gets summed up again, and asked again.
    fn go_back_to_the_beginning(&mut self, subscriber: SubscriberKey) -> bool {
        let Engine { audiences, members, sessions, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        let place = match &member.began {
            Began::At(order) => {
                let mut place = Place::at(*order);
                let was_running = |session: &Session| {
                    session.first_order < *order && session.is_running_for(&member.wish)
                };
                let running = sessions.iter().filter(|(_, session)| was_running(session));
                place.owe_summaries(running.map(|(key, _)| *key));
                if member.missing.is_some() {
                    place.owe_gap();
                }
                place
            }
            Began::Where(place) => (**place).clone(),
            Began::BeforeStop(_) => return false,
        };
        let told_at = |key: &TextKey, order| told_at(sessions, key, order);
        let Some(cursor) = Cursor::at_place(&place, audience, told_at) else { return false };
        member.cursor = cursor;
        self.ask_again_if(subscriber, |_| true);
        true
    }

    /// Goes on after an event without an earlier subscription that knew what it had; whether that is
    /// possible. With a rate or a pace it is not, because they let some things overtake others.
    fn resume_without_memory(&mut self, subscriber: SubscriberKey, last: &EventId) -> bool {
        let Engine { audiences, members, sessions, event_ids, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        if member.limits.is_some() {
            return false;
        }
        let told_at = |key: &TextKey, order| told_at(sessions, key, order);
        let known =
            Known { from: u64::MAX, in_order: true, in_order_from: u64::MAX, last_at: None };
        if member.cursor.resume(last, audience, known, told_at).is_some() {
            return audience.has_all_after(member.cursor.at);
        }
        let session = event_ids.get(last).and_then(|key| sessions.get(key));
        let entry = session.and_then(|session| {
            session.history.iter().find(|entry| entry.event.envelope.event_id == *last)
        });
        // What is urgent may have overtaken something, and so may what went along with it.
        let is_urgent_from = |order: u64| {
            let mut history = session.into_iter().flat_map(|session| &session.history);
            history.any(|entry| entry.order >= order && entry.is_urgent)
        };
        let Some(entry) = entry.filter(|entry| !is_urgent_from(entry.order)) else { return false };
        let order = entry.order + 1;
        // How much was told of an output that was open then depends on terms that are not known any more.
        let heard = sessions.values().filter(|it| audience.hears.includes(&it.tags));
        let may_be_held = |session: &Session| session.may_have_open_text_at(order, entry);
        if audience.wants_text() && heard.into_iter().any(may_be_held) {
            return false;
        }
        let cursor = Cursor::at_place(&Place::at(order), audience, told_at);
        cursor.map(|cursor| member.cursor = cursor).is_some()
    }

    /// Here begins a subscription that goes on with an earlier one.
    fn begin_here(&mut self, subscriber: SubscriberKey) {
        let Engine { audiences, members, next_order, .. } = self;
        if let Some(Some(member)) = members.get_mut(subscriber as usize)
            && let Some(audience) = audiences.get(&member.wish.audience)
        {
            let place = member.cursor.place(audience, *next_order);
            member.began = Began::Where(Box::new(place));
        }
    }

    /// Only what comes from now on, and a summary of what is going on (ruling 19).
    fn start_anew(&mut self, subscriber: SubscriberKey) {
        self.leave_lists(subscriber);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        let running = sessions.iter().filter(|(_, session)| session.is_running_for(&member.wish));
        member.cursor.go_to_end(audience);
        member.cursor.owe_summaries(running.map(|(key, _)| *key));
    }

    /// A subscriber starts anew because something cannot be told any more; the summaries say so
    /// (ruling 20), or the first one of the next session if none is running.
    pub(super) fn lose(&mut self, subscriber: SubscriberKey, missing_after: Option<&EventId>) {
        self.ask_again_if(subscriber, |_| true);
        self.pass_over(subscriber, missing_after);
    }

    fn pass_over(&mut self, subscriber: SubscriberKey, missing_after: Option<&EventId>) {
        self.start_anew(subscriber);
        if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
            member.missing = Some(Box::new(Missing { after: missing_after.cloned() }));
            member.cursor.owe_gap();
            // What it was sent before is forgotten.
            member.began = Began::At(self.next_order);
        }
        self.find_where_to_tell_gap(subscriber);
    }

    /// That something is missing is told in a session that runs, or else in the next, unless it was
    /// told already.
    fn find_where_to_tell_gap(&mut self, subscriber: SubscriberKey) {
        let Engine { members, sessions, owed_gaps, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        if !member.cursor.owes_gap() || member.cursor.owes_summaries() {
            return;
        }
        let running = sessions.iter().filter(|(_, session)| session.is_running_for(&member.wish));
        member.cursor.owe_summaries(running.map(|(key, _)| *key));
        if !member.cursor.owes_summaries() {
            owed_gaps.insert(subscriber);
        }
    }

    /// When a subscriber is due. If it has just come to something that was deleted, that is at the next moment, to be
    /// told that something is missing; once, after all that it is behind.
    pub(in super::super) fn or_tell_of_deleted(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        held: Option<HeldUntil>,
    ) -> Option<HeldUntil> {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return held };
        let is_known = member.cursor.owes_summaries() || self.owed_gaps.contains(&subscriber);
        if !member.cursor.owes_gap() || is_known || member.rests {
            return held;
        }
        member.missing.get_or_insert_with(|| Box::new(Missing { after: None }));
        self.find_where_to_tell_gap(subscriber);
        Some(HeldUntil::new(now.monotonic_us + 1))
    }

    /// The log may no longer reach back to where a subscriber is: then it starts anew. Whether it must be asked again
    /// then what is open.
    pub(in super::super) fn tell_gap(&mut self, subscriber: SubscriberKey) -> bool {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return false };
        let Some(audience) = self.audiences.get(&member.wish.audience) else { return false };
        let is_away = matches!(member.presence, Presence::Away(_));
        if is_away || member.slot.is_some() || !member.cursor.fell_behind(audience) {
            return false;
        }
        // Who is here and only slow was told everything urgent at once.
        let is_urgent = |at| audience.unit(at).is_none_or(|unit| unit.is_urgent);
        let must_be_asked = (member.presence != Presence::Here || member.cursor.urgent_waits())
            && (member.cursor.urgent_at..audience.end()).any(is_urgent);
        let urgent_at = member.cursor.urgent_at.max(audience.first());
        if must_be_asked {
            // What the log no longer has may have been told, or not.
            let is_all_there = member.cursor.urgent_at >= audience.first();
            let is_told = |order: u64| match audience.position_of_question(order) {
                Some(at) => at < urgent_at,
                None => is_all_there,
            };
            let asked = member.asked.orders.iter().copied();
            let told: BTreeSet<u64> = asked.filter(|order| is_told(*order)).collect();
            self.ask_again_if(subscriber, |ask| !told.contains(&ask.order));
        }
        self.pass_over(subscriber, None);
        // What is urgent and still there is told all the same.
        if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
            member.cursor.urgent_at = urgent_at;
        }
        must_be_asked
    }

    /// A session began: there is something now in which to say that something is missing.
    pub(in super::super) fn tell_owed_gaps(
        &mut self,
        now: Now,
        key: SessionKey,
        out: &mut Vec<Output>,
    ) {
        let Engine { owed_gaps, members, sessions, .. } = self;
        let Some(session) = sessions.get(&key) else { return };
        let hears = |subscriber: &SubscriberKey| {
            let member = members.get(*subscriber as usize).and_then(Option::as_ref);
            let is_here = |member: &Member| !matches!(member.presence, Presence::Away(_));
            let member = member.filter(|member| is_here(member));
            member.is_some_and(|member| session.is_running_for(&member.wish))
        };
        let told: Vec<SubscriberKey> = owed_gaps.iter().copied().filter(hears).collect();
        for subscriber in told {
            self.owed_gaps.remove(&subscriber);
            self.leave_lists(subscriber);
            if let Some(Some(member)) = self.members.get_mut(subscriber as usize)
                && member.cursor.owes_gap()
            {
                member.cursor.owe_summaries(std::iter::once(key));
            }
            self.catch_up(now, subscriber, out);
        }
    }

    /// Tells in one event per running session what is going on, as far as the limits allow.
    pub(in super::super) fn tell_summaries(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        // The rest after a moment, as everything else.
        let end = out.len() + self.config.at_a_time.max(1);
        while out.len() < end {
            let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
            if member.presence != Presence::Here || !member.cursor.owes_summaries() {
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
                self.find_where_to_tell_gap(subscriber);
                continue;
            };
            let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
            let Some(audience) = self.audiences.get(&member.wish.audience) else { return };
            if let Some(limits) = &mut member.limits {
                limits.spend(now.monotonic_us, &event.payload);
            }
            let terms = &member.wish.terms;
            // For a subscriber that counts, the summary has the number before that of the next event.
            let number = terms.keeps_every_event().then(|| {
                let session = self.sessions.get(&key).map(|session| session.next_number);
                member.cursor.next_number_of(key, audience).or(session)?.checked_sub(1)
            });
            let number = number.flatten();
            let frame = encode(&event, false, number, terms, &self.primary);
            member.summaries += 1;
            member.cursor.tell_summary(&frame.event_id, audience);
            out.push(Output::Deliver { frame, to: vec![subscriber] });
        }
    }

    /// What is going on in a session, in one event.
    fn summary(&mut self, now: Now, key: SessionKey, subscriber: SubscriberKey) -> Option<Event> {
        let member = self.members.get(subscriber as usize)?.as_ref()?;
        let audience = self.audiences.get(&member.wish.audience)?;
        let next = || member.cursor.next_of(key, audience).filter(|unit| !unit.is_deleted());
        let session = self.sessions.get(&key);
        if session.is_none_or(|session| session.order.is_ended()) && next().is_none() {
            return None;
        }
        // A session that is over may have left memory before everyone heard all of it.
        let last =
            session.and_then(Session::last_envelope).or_else(|| Some(&next()?.event.envelope));
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
            summary.push_str(" Some of what happened before is missing here.");
        }
        // Two at the same moment have different numbers.
        let number = member.summaries;
        let id = self.ids.personal_event(&member.id, key, (now.monotonic_us, number));
        let envelope = self.envelope_with(id, now, key, &like);
        let mut event = Event::new(envelope, state_changed(known.clone(), &known, Some(summary)));
        if gap.is_some() {
            Delivery { gap, ..Delivery::new() }.put_on(&mut event);
        }
        Some(event)
    }
}

/// Up to where an output went before a place among all events; none if that is no longer known.
pub(super) fn told_at(
    sessions: &BTreeMap<SessionKey, Session>,
    key: &TextKey,
    order: u64,
) -> Option<u64> {
    sessions.get(&key.0)?.told_at(key, order)
}
