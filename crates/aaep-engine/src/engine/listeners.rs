//! Letting listeners in and out: subscribing, other terms, closing, coming back (chapter 5).

use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::extension::{Delivery, Gap};
use aaep::handshake::{SubscriptionRenegotiate, SubscriptionRequest};
use aaep::{Event, EventId, Object, SubscriptionId, Urgency};

use super::publish::state_changed;
use super::{Engine, Member, Presence, Wish};
use crate::audience::{Audience, ListenerKey};
use crate::clock::Now;
use crate::frame::encode;
use crate::io::{Output, Principal};
use crate::member::{Cursor, Limits};
use crate::terms::{self, Door};

impl Engine {
    pub(super) fn subscribe(
        &mut self,
        now: Now,
        (principal, may_reply): (Principal, bool),
        door: Door,
        request: &SubscriptionRequest,
        resume_from: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let id = self.ids.subscription();
        let active = self.subscriptions.len();
        let mut request = request.clone();
        if !may_reply {
            // Who may not answer is not asked (ruling 1), whatever its program could do.
            let able = &mut request.capabilities;
            able.supports_confirmation_reply = able.supports_confirmation_reply.map(|_| false);
            able.supports_clarification_reply = able.supports_clarification_reply.map(|_| false);
        }
        match terms::negotiate(&self.config.offer, door, active, &request, id.clone()) {
            Err(message) => {
                out.push(Output::Rejected { listener: None, message: Box::new(message) });
            }
            Ok((message, granted)) => {
                let wish = self.share(Wish::new(request.capabilities.clone(), granted));
                let listener = self.add(id, (principal, may_reply), wish);
                out.push(Output::Accepted { listener, message: Box::new(message) });
                self.begin(now, listener, resume_from, out);
            }
        }
    }

    /// Where a new listener begins: after the event that it got last, or with what is going on now.
    fn begin(
        &mut self,
        now: Now,
        listener: ListenerKey,
        resume_from: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let missing = resume_from.filter(|last| !self.rewind(now, listener, last, out));
        if resume_from.is_none() || missing.is_some() {
            self.sum_up(now, listener, missing, out);
        }
        self.ask_late(now, listener, out);
        self.catch_up(now, listener, out);
    }

    /// Takes a listener back to right after an event; whether that event is known.
    fn rewind(
        &mut self,
        now: Now,
        listener: ListenerKey,
        last: &EventId,
        out: &mut Vec<Output>,
    ) -> bool {
        let Engine { audiences, members, sessions, primary, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        let is_limited = member.limits.is_some();
        let urgent = member.cursor.rewind(last, is_limited, audience).or_else(|| {
            let mut history = sessions.values().flat_map(|session| &session.history);
            let entry = history.find(|entry| entry.event.envelope.event_id == *last)?;
            member.cursor.resume_after(entry, audience);
            let is_urgent = |at: &u64| audience.unit(*at).is_some_and(|unit| unit.is_urgent);
            Some((member.cursor.at..audience.end()).filter(is_urgent).collect())
        });
        let Some(urgent) = urgent else { return false };
        if member.cursor.fell_behind(audience).is_some() {
            return false;
        }
        if member.limits.is_none() {
            // Without limits everything comes in order, the urgent things among it.
            for at in member.cursor.at..audience.end() {
                let Some(unit) = audience.unit(at) else { continue };
                let frame = audience.frame(unit, primary);
                out.push(Output::Deliver { frame, to: vec![listener] });
            }
            member.cursor = Cursor::at_end(audience);
            return true;
        }
        for at in urgent {
            let Some(unit) = audience.unit(at) else { continue };
            let frame = audience.frame(unit, primary);
            member.cursor.remember(&frame.event_id, vec![at]);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
        let _ = now;
        true
    }

    /// Tells a listener in one event per running session what is going on (ruling 19), and that
    /// something is missing where it is.
    fn sum_up(
        &mut self,
        now: Now,
        listener: ListenerKey,
        missing: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let keys: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| !session.order.is_ended())
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            let Some(session) = self.sessions.get(&key) else { continue };
            let Some(newest) = session.history.back().cloned() else { continue };
            let like = newest.event.envelope.clone();
            let known = session.announced.get(&like.producer.agent_id);
            let known = known.map_or(state::IDLE, String::as_str).to_owned();
            let name = like.producer.agent_name.as_ref().unwrap_or(&like.producer.agent_id);
            let summary = format!("{name} is at work: {}.", known.replace('_', " "));
            let mut envelope = self.own_envelope(now, key, &like);
            envelope.urgency = Some(Urgency::Normal);
            let change = state_changed(known.clone(), &known, Some(summary));
            let mut event = Event::new(envelope, change);
            if let Some(last) = missing {
                let gap =
                    Gap { after_event_id: Some(last.clone()), missed: None, other: Object::new() };
                Delivery { gap: Some(gap), ..Delivery::new() }.put_on(&mut event);
            }
            let Some(Some(member)) = self.members.get(listener as usize) else { return };
            let frame = encode(&event, false, None, &member.wish.terms, &self.primary);
            self.remember(listener, &frame.event_id);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
    }

    /// Remembers that a listener got an event that was made for it alone.
    fn remember(&mut self, listener: ListenerKey, id: &EventId) {
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        let at = if member.limits.is_some() { member.cursor.at } else { audience.end() };
        member.cursor.remember_at(id, at);
    }

    /// Every open question that the listener may answer, with its own event (ruling 19).
    fn ask_late(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let able = [member.can_answer(false), member.can_answer(true)];
        let terms = member.wish.terms.clone();
        let mut told = Vec::new();
        for ask in self.asks.values_mut() {
            if able[usize::from(ask.is_confirmation())] && ask.told.insert(listener) {
                told.push(encode(&ask.event, true, None, &terms, &self.primary));
            }
        }
        for frame in told {
            self.remember(listener, &frame.event_id);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
        self.look_at_asks(now, out);
    }

    pub(super) fn renegotiate(
        &mut self,
        now: Now,
        principal: Principal,
        change: &SubscriptionRenegotiate,
        out: &mut Vec<Output>,
    ) {
        let Some(listener) = self.owned(principal, &change.subscription_id) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let wish = Arc::clone(&member.wish);
        match terms::renegotiate(&self.config.offer, &wish.terms, &wish.asked, change) {
            Err(message) => {
                self.remove(now, listener, out);
                out.push(Output::Rejected { listener: Some(listener), message: Box::new(message) });
            }
            Ok((message, granted, asked)) => {
                out.push(Output::Accepted { listener, message: Box::new(message) });
                let wish = self.share(Wish::new(asked, granted));
                self.move_to(listener, wish);
                self.forget_unable(listener);
                self.ask_late(now, listener, out);
                self.catch_up(now, listener, out);
            }
        }
    }

    /// A listener that gave up answering does not count as asked any more.
    fn forget_unable(&mut self, listener: ListenerKey) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let able = [member.can_answer(false), member.can_answer(true)];
        for ask in self.asks.values_mut() {
            if !able[usize::from(ask.is_confirmation())] {
                ask.told.remove(&listener);
            }
        }
    }

    /// Other terms from now on, also for what is held: nothing of it is lost or told twice.
    fn move_to(&mut self, listener: ListenerKey, wish: Arc<Wish>) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let presence = member.presence;
        let old_key = member.wish.audience.clone();
        let key = wish.audience.clone();
        let rate = (wish.terms.max_events_per_second, wish.terms.pace_wpm);
        self.audience(&wish);
        self.leave_audience_but_stay(listener, presence);
        let Engine { audiences, members, .. } = self;
        if let Some(Some(member)) = members.get_mut(listener as usize) {
            if let (Some(old), Some(new)) = (audiences.get(&old_key), audiences.get(&key))
                && old_key != key
            {
                member.cursor = member.cursor.carry_over(old, new);
            }
            member.wish = wish;
            match (&mut member.limits, rate) {
                (Some(limits), (rate, pace)) if rate.is_some() || pace.is_some() => {
                    limits.change(rate, pace);
                }
                (limits, (rate, pace)) => *limits = Limits::of(rate, pace),
            }
        }
        self.leave_for_good(listener, &old_key);
        self.join_audience(listener, presence);
    }

    pub(super) fn close(
        &mut self,
        now: Now,
        principal: Principal,
        subscription: &SubscriptionId,
        out: &mut Vec<Output>,
    ) {
        match self.owned(principal, subscription) {
            Some(listener) => {
                self.remove(now, listener, out);
                out.push(Output::Closed { listener });
            }
            None => out.push(Output::NoSuchSubscription),
        }
    }

    pub(super) fn disconnect(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        if matches!(member.presence, Presence::Away(_)) {
            return;
        }
        self.leave_audience_but_stay(listener, Presence::Away(now.monotonic_us));
        let end_us = now.monotonic_us.saturating_add(self.config.keep_subscription_us);
        self.set_due(listener, end_us);
        self.look_at_asks(now, out);
    }

    pub(super) fn reconnect(
        &mut self,
        now: Now,
        principal: Principal,
        subscription: &SubscriptionId,
        last_event_id: Option<&EventId>,
        out: &mut Vec<Output>,
    ) {
        let Some(listener) = self.owned(principal, subscription) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        self.forget_due(listener);
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        member.presence = Presence::Here;
        self.join_audience(listener, Presence::Here);
        let known = last_event_id.is_some_and(|last| self.rewind(now, listener, last, out));
        if !known {
            if let Some(Some(member)) = self.members.get_mut(listener as usize)
                && let Some(audience) = self.audiences.get(&member.wish.audience)
            {
                member.cursor = Cursor::at_end(audience);
            }
            self.sum_up(now, listener, last_event_id, out);
            self.ask_again(listener, out);
        }
        self.ask_late(now, listener, out);
        self.catch_up(now, listener, out);
    }

    /// Sends the open questions once more to someone of whom it is not known what arrived.
    fn ask_again(&mut self, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        for ask in self.asks.values().filter(|ask| ask.told.contains(&listener)) {
            let frame = encode(&ask.event, true, None, &member.wish.terms, &self.primary);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
    }

    pub(super) fn block(&mut self, listener: ListenerKey) {
        let is_here = |it: &Member| it.presence == Presence::Here;
        if self.members.get(listener as usize).and_then(Option::as_ref).is_some_and(is_here) {
            self.leave_audience_but_stay(listener, Presence::Blocked);
        }
    }

    pub(super) fn unblock(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        if member.presence != Presence::Blocked {
            return;
        }
        member.presence = Presence::Here;
        self.join_audience(listener, Presence::Here);
        let Engine { audiences, members, primary, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        if member.cursor.fell_behind(audience).is_some() {
            member.cursor = Cursor::at_end(audience);
            self.sum_up(now, listener, None, out);
            self.ask_again(listener, out);
            return;
        }
        // Urgent things first, whatever else is held.
        for at in member.cursor.at..audience.end() {
            let Some(unit) = audience.unit(at).filter(|unit| unit.is_urgent) else { continue };
            let frame = audience.frame(unit, primary);
            member.cursor.remember(&frame.event_id, vec![at]);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
        self.catch_up(now, listener, out);
    }

    /// The listener of a subscription, if it is this one's.
    fn owned(&self, principal: Principal, subscription: &SubscriptionId) -> Option<ListenerKey> {
        let listener = *self.subscriptions.get(subscription)?;
        let member = self.members.get(listener as usize)?.as_ref()?;
        (member.principal == principal).then_some(listener)
    }

    /// The same wish, once for all who have it.
    fn share(&mut self, wish: Wish) -> Arc<Wish> {
        let key = serde_json::to_string(&(&wish.asked, &wish.terms.version)).unwrap_or_default();
        if let Some(known) = self.wishes.get(key.as_str()).filter(|known| ***known == wish) {
            return Arc::clone(known);
        }
        let wish = Arc::new(wish);
        self.wishes.retain(|_, it| Arc::strong_count(it) > 1);
        self.wishes.insert(key.into(), Arc::clone(&wish));
        wish
    }

    fn add(
        &mut self,
        id: SubscriptionId,
        (principal, may_reply): (Principal, bool),
        wish: Arc<Wish>,
    ) -> ListenerKey {
        let end = self.audience(&wish).end();
        let member = Member {
            id: id.clone(),
            principal,
            may_reply,
            presence: Presence::Here,
            limits: Limits::of(wish.terms.max_events_per_second, wish.terms.pace_wpm),
            wish,
            cursor: Cursor::starting_at(end),
            due_us: None,
        };
        let listener = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            ListenerKey::try_from(self.members.len() - 1).unwrap_or(ListenerKey::MAX)
        });
        self.members[listener as usize] = Some(member);
        self.subscriptions.insert(id, listener);
        self.join_audience(listener, Presence::Here);
        listener
    }

    /// The audience of these terms; made, with what the sessions had so far, if there is none.
    fn audience(&mut self, wish: &Wish) -> &mut Audience {
        let key = &wish.audience;
        if !self.audiences.contains_key(key) {
            let mut audience = Audience::new(wish.terms.clone(), fingerprint(key));
            let mut entries: Vec<_> =
                self.sessions.values().flat_map(|session| session.history.iter()).collect();
            entries.sort_by_key(|entry| entry.order);
            for entry in entries {
                audience.take(entry);
            }
            self.audiences.insert(key.clone(), audience);
        }
        self.audiences.get_mut(key).expect("it was just made")
    }

    fn join_audience(&mut self, listener: ListenerKey, presence: Presence) {
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get(listener as usize) else { return };
        let Some(audience) = audiences.get_mut(&member.wish.audience) else { return };
        audience.listeners.members.insert(listener);
        if presence == Presence::Here {
            if member.limits.is_none() {
                if !audience.listeners.unlimited.contains(&listener) {
                    audience.listeners.unlimited.push(listener);
                }
            } else {
                audience.listeners.connected.insert(listener);
            }
        }
    }

    fn leave_audience_but_stay(&mut self, listener: ListenerKey, presence: Presence) {
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        member.presence = presence;
        let Some(audience) = audiences.get_mut(&member.wish.audience) else { return };
        if let Some(at) = audience.listeners.unlimited.iter().position(|it| *it == listener) {
            audience.listeners.unlimited.swap_remove(at);
            // Whoever takes everything as it comes has had everything up to now.
            member.cursor.at = audience.end();
        }
        audience.listeners.ready.remove(&listener);
        audience.listeners.connected.remove(&listener);
        self.forget_due(listener);
    }

    fn leave_audience(&mut self, listener: ListenerKey) {
        let presence = match self.members.get(listener as usize) {
            Some(Some(member)) => member.presence,
            _ => return,
        };
        self.leave_audience_but_stay(listener, presence);
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let key = member.wish.audience.clone();
        self.leave_for_good(listener, &key);
    }

    /// An audience without anyone is no longer shaped for.
    fn leave_for_good(&mut self, listener: ListenerKey, key: &terms::AudienceKey) {
        if let Some(audience) = self.audiences.get_mut(key) {
            audience.listeners.members.remove(&listener);
            if audience.listeners.members.is_empty() {
                self.audiences.remove(key);
            }
        }
    }

    fn forget_due(&mut self, listener: ListenerKey) {
        if let Some(Some(member)) = self.members.get_mut(listener as usize)
            && let Some(at) = member.due_us.take()
        {
            self.due.remove(&(at, listener));
        }
    }

    /// Ends a subscription; questions that only it could answer get their default (§5.8.2).
    pub(super) fn remove(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        self.leave_audience(listener);
        if let Some(member) = self.members.get_mut(listener as usize).and_then(Option::take) {
            self.subscriptions.remove(&member.id);
            self.free.push(listener);
        }
        for ask in self.asks.values_mut() {
            ask.told.remove(&listener);
        }
        self.look_at_asks(now, out);
    }
}

/// A number for an audience that is the same whenever its terms are.
fn fingerprint(key: &terms::AudienceKey) -> u64 {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(key.as_str());
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
