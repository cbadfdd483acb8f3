//! Letting listeners in and out: subscribing, other terms, closing, coming back (chapter 5).

use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::extension::{Delivery, Gap};
use aaep::handshake::{SubscriptionRenegotiate, SubscriptionRequest};
use aaep::{Event, EventId, Object, SubscriptionId};

use super::publish::state_changed;
use super::{Engine, Member, Presence, Wish};
use crate::audience::{Audience, ListenerKey, SessionKey};
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
            refuse_answers(&mut request.capabilities);
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
        let is_known = resume_from.is_some_and(|last| {
            self.take_over(now, listener, last, out);
            self.resume(listener, last, true, out)
        });
        if is_known {
            self.count_as_asked(listener);
        } else {
            self.start_anew(listener, resume_from);
        }
        self.tell_summaries(now, listener, out);
        self.ask_late(now, listener, out);
        self.catch_up(now, listener, out);
    }

    /// Takes the place of an earlier, broken subscription of the same principal and terms, if that
    /// one got this event: only it knows what was held.
    fn take_over(
        &mut self,
        now: Now,
        listener: ListenerKey,
        last: &EventId,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let (principal, key) = (member.principal, member.wish.audience.clone());
        let is_it = |it: &Member| {
            it.principal == principal
                && it.wish.audience == key
                && matches!(it.presence, Presence::Away(_))
                && it.cursor.remembers(last)
        };
        let earlier = (0..)
            .zip(&self.members)
            .find_map(|(at, it)| it.as_ref().filter(|it| is_it(it)).map(|_| at));
        let Some(earlier) = earlier else { return };
        let cursor =
            self.members[earlier as usize].as_mut().map(|it| std::mem::take(&mut it.cursor));
        if let (Some(cursor), Some(Some(member))) =
            (cursor, self.members.get_mut(listener as usize))
        {
            member.cursor = cursor;
        }
        // The questions that it was asked are now the new one's to answer.
        for ask in self.asks.values_mut().filter(|ask| ask.told.contains(&earlier)) {
            ask.told.insert(listener);
        }
        self.remove(now, earlier, out);
        out.push(Output::Closed { listener: earlier });
    }

    /// Takes a listener back to right after an event; whether that event is known and everything
    /// since then can still be told.
    fn resume(
        &mut self,
        listener: ListenerKey,
        last: &EventId,
        is_new: bool,
        out: &mut Vec<Output>,
    ) -> bool {
        self.leave_lists(listener);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        // What is urgent overtakes, so that it does not tell how far a listener with limits was: only
        // the subscription itself knows.
        let overtook = audience.is_urgent(last) && member.limits.is_some();
        if is_new && overtook && !member.cursor.remembers(last) {
            return false;
        }
        let is_guess = is_new && member.limits.is_some() && !member.cursor.remembers(last);
        if let Some(own) = member.cursor.resume(last, audience) {
            for frame in own {
                member.cursor.remember(&frame.event_id, Some(Arc::clone(&frame)));
                out.push(Output::Deliver { frame, to: vec![listener] });
            }
        } else {
            let mut history = sessions.values().flat_map(|session| &session.history);
            let Some(entry) = history.find(|entry| entry.event.envelope.event_id == *last) else {
                return false;
            };
            member.cursor.resume_after(entry, audience);
            if !audience.reaches_back_to(entry.order) {
                return false;
            }
        }
        if is_guess {
            member.cursor.withdraw_ended(audience);
        }
        !member.cursor.fell_behind(audience)
    }

    /// A listener that got nothing at all is taken back to where its subscription began; whether that
    /// is possible.
    fn resume_from_the_beginning(&mut self, listener: ListenerKey) -> bool {
        let Engine { audiences, members, sessions, asks, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return false };
        let Some(audience) = audiences.get(&member.wish.audience) else { return false };
        if member.began.fell_behind(audience) {
            return false;
        }
        member.cursor = member.began.clone();
        // What was going on then and still is gets summed up again, and asked again.
        let order = audience.unit(member.began.urgent_at).map_or(u64::MAX, |unit| unit.order);
        let began_before = |session: &super::Session| {
            let first = session.history.front().map_or(0, |entry| entry.order);
            !session.order.is_ended() && first < order
        };
        let running = sessions.iter().filter(|(_, session)| began_before(session));
        member.cursor.owe_summaries(running.map(|(key, _)| *key));
        for ask in asks.values_mut().filter(|ask| ask.order < order) {
            ask.told.remove(&listener);
        }
        true
    }

    /// Only what comes from now on, and a summary of what is going on (ruling 19). If something is
    /// missing after an event, the summaries say so (ruling 20).
    fn start_anew(&mut self, listener: ListenerKey, missing_after: Option<&EventId>) {
        self.leave_lists(listener);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        let running = sessions.iter().filter(|(_, session)| !session.order.is_ended());
        member.cursor = Cursor::at_end(audience);
        member.cursor.owe_summaries(running.map(|(key, _)| *key));
        member.missing_after = missing_after.cloned();
    }

    /// The log may no longer reach back to where a listener is: then it starts anew.
    pub(super) fn tell_gap(&mut self, listener: ListenerKey) {
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        let Some(audience) = self.audiences.get(&member.wish.audience) else { return };
        if member.slot.is_some() || !member.cursor.fell_behind(audience) {
            return;
        }
        member.has_gap = true;
        for ask in self.asks.values_mut() {
            ask.told.remove(&listener);
        }
        self.start_anew(listener, None);
    }

    /// Tells in one event per running session what is going on, as far as the limits allow; when to
    /// go on, if something is left.
    pub(super) fn tell_summaries(
        &mut self,
        now: Now,
        listener: ListenerKey,
        out: &mut Vec<Output>,
    ) -> Option<u64> {
        loop {
            let Some(Some(member)) = self.members.get_mut(listener as usize) else { return None };
            if member.presence != Presence::Here || !member.cursor.owes_summaries() {
                return None;
            }
            if let Some(limits) = &mut member.limits {
                let next_us = limits.next_us(now.monotonic_us);
                if next_us > now.monotonic_us {
                    return Some(next_us);
                }
            }
            let key = member.cursor.next_summary()?;
            let Some(event) = self.summary(now, key, listener) else { continue };
            let Some(Some(member)) = self.members.get_mut(listener as usize) else { return None };
            if let Some(limits) = &mut member.limits {
                limits.spend(now.monotonic_us, &event.payload);
            }
            let terms = &member.wish.terms;
            // Who counts hears with the summary how far the session is.
            let number =
                self.sessions.get(&key).map(|session| session.next_number.saturating_sub(1));
            let number = number.filter(|_| terms.keeps_every_event());
            let frame = encode(&event, false, number, terms, &self.primary);
            member.cursor.remember(&frame.event_id, None);
            out.push(Output::Deliver { frame, to: vec![listener] });
        }
    }

    /// What is going on in a session, in one event.
    fn summary(&mut self, now: Now, key: SessionKey, listener: ListenerKey) -> Option<Event> {
        let session = self.sessions.get(&key).filter(|session| !session.order.is_ended())?;
        let like = session.history.back()?.event.envelope.clone();
        let known = session.announced.get(&like.producer.agent_id);
        let known = known.map_or(state::IDLE, String::as_str).to_owned();
        let name = like.producer.agent_name.as_ref().unwrap_or(&like.producer.agent_id);
        let summary = format!("{name} is at work: {}.", known.replace('_', " "));
        let envelope = self.own_envelope(now, key, &like);
        let mut event = Event::new(envelope, state_changed(known.clone(), &known, Some(summary)));
        let member = self.members.get(listener as usize)?.as_ref()?;
        if member.has_gap || member.missing_after.is_some() {
            let after_event_id = member.missing_after.clone();
            let gap = Gap { after_event_id, missed: None, other: Object::new() };
            Delivery { gap: Some(gap), ..Delivery::new() }.put_on(&mut event);
        }
        Some(event)
    }

    /// A listener that goes on where it was has been sent the open questions, or gets them now with
    /// everything else.
    fn count_as_asked(&mut self, listener: ListenerKey) {
        let Some(Some(member)) = self.members.get(listener as usize) else { return };
        let able = [member.can_answer(false), member.can_answer(true)];
        for ask in self.asks.values_mut() {
            if able[usize::from(ask.is_confirmation())] {
                ask.told.insert(listener);
            }
        }
    }

    /// Every open question that the listener may answer and was not asked, with its own event
    /// (ruling 19).
    fn ask_late(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Engine { audiences, members, asks, primary, .. } = self;
        if let Some(Some(member)) = members.get_mut(listener as usize)
            && member.presence == Presence::Here
            && let Some(audience) = audiences.get(&member.wish.audience)
        {
            let able = [member.can_answer(false), member.can_answer(true)];
            let mut late: Vec<_> =
                asks.values_mut().filter(|ask| able[usize::from(ask.is_confirmation())]).collect();
            late.sort_by_key(|ask| ask.order);
            for ask in late {
                // What is still to come in the log is told with it.
                let is_ahead = audience
                    .position_of(&ask.event.envelope.event_id)
                    .is_some_and(|at| at >= member.cursor.urgent_at && member.slot.is_none());
                if ask.told.insert(listener) && !is_ahead {
                    let terms = &member.wish.terms;
                    let number = Some(ask.sequence_number).filter(|_| terms.keeps_every_event());
                    let frame = encode(&ask.event, true, number, terms, primary);
                    member.cursor.remember(&frame.event_id, Some(Arc::clone(&frame)));
                    out.push(Output::Deliver { frame, to: vec![listener] });
                }
            }
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
        let mut change = change.clone();
        if !member.may_reply {
            refuse_answers(&mut change.capabilities);
        }
        match terms::renegotiate(&self.config.offer, &wish.terms, &wish.asked, &change) {
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
        self.audience(&wish);
        self.leave_lists(listener);
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        let old_key = member.wish.audience.clone();
        let moves = old_key != wish.audience;
        if let (Some(old), Some(new)) = (audiences.get(&old_key), audiences.get(&wish.audience))
            && moves
        {
            member.cursor = member.cursor.carry_over(old, new);
            member.began = member.began.carry_over(old, new);
        }
        let (rate, pace) = (wish.terms.max_events_per_second, wish.terms.pace_wpm);
        match &mut member.limits {
            Some(limits) if rate.is_some() || pace.is_some() => limits.change(rate, pace),
            limits => *limits = Limits::of(rate, pace),
        }
        let presence = member.presence;
        if let Some(new) = audiences.get_mut(&wish.audience) {
            new.listeners.members.insert(listener);
        }
        member.wish = wish;
        if moves {
            self.leave_for_good(listener, &old_key);
        }
        if let Presence::Away(since) = presence {
            self.set_due(listener, since.saturating_add(self.config.keep_subscription_us));
        }
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
        self.leave_lists(listener);
        if let Some(Some(member)) = self.members.get_mut(listener as usize) {
            member.presence = Presence::Away(now.monotonic_us);
        }
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
        self.leave_lists(listener);
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        member.presence = Presence::Here;
        let is_known = match last_event_id {
            Some(last) => self.resume(listener, last, false, out),
            None => self.resume_from_the_beginning(listener),
        };
        if !is_known {
            for ask in self.asks.values_mut() {
                ask.told.remove(&listener);
            }
            self.start_anew(listener, last_event_id);
        }
        self.tell_summaries(now, listener, out);
        self.ask_late(now, listener, out);
        self.catch_up(now, listener, out);
    }

    pub(super) fn block(&mut self, listener: ListenerKey) {
        let is_here = |it: &Member| it.presence == Presence::Here;
        if self.members.get(listener as usize).and_then(Option::as_ref).is_some_and(is_here) {
            self.leave_lists(listener);
            if let Some(Some(member)) = self.members.get_mut(listener as usize) {
                member.presence = Presence::Blocked;
            }
        }
    }

    pub(super) fn unblock(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        if member.presence == Presence::Blocked {
            member.presence = Presence::Here;
            self.tell_gap(listener);
            self.tell_summaries(now, listener, out);
            self.ask_late(now, listener, out);
            self.catch_up(now, listener, out);
        }
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
            slot: None,
            missing_after: None,
            has_gap: false,
            began: Cursor::starting_at(end),
        };
        let listener = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            ListenerKey::try_from(self.members.len() - 1).unwrap_or(ListenerKey::MAX)
        });
        if let Some(audience) = self.audiences.get_mut(&member.wish.audience) {
            audience.listeners.members.insert(listener);
        }
        self.members[listener as usize] = Some(member);
        self.subscriptions.insert(id, listener);
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
            audience.prime(entries.into_iter());
            self.audiences.insert(key.clone(), audience);
        }
        self.audiences.get_mut(key).expect("it was just made")
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

    /// Ends a subscription; questions that only it could answer get their default (§5.8.2).
    pub(super) fn remove(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        self.leave_lists(listener);
        if let Some(member) = self.members.get_mut(listener as usize).and_then(Option::take) {
            self.leave_for_good(listener, &member.wish.audience);
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

/// Who may not answer is not asked (ruling 1), whatever its program could do.
fn refuse_answers(capabilities: &mut aaep::Capabilities) {
    let able = capabilities;
    able.supports_confirmation_reply = able.supports_confirmation_reply.map(|_| false);
    able.supports_clarification_reply = able.supports_clarification_reply.map(|_| false);
}
