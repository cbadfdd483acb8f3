//! Letting subscribers in and out: subscribing, other terms, closing, coming back (chapter 5).

mod resume;

use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::handshake::{SubscriptionClose, SubscriptionRenegotiate, SubscriptionRequest};

use self::resume::told_at;
use super::asks::AskedOf;
use super::{Began, Engine, Member, NEVER, Presence, SentLast, Wish};
use crate::audience::{Audience, SubscriberKey, TextKey};
use crate::clock::Now;
use crate::ids::Digest;
use crate::io::{EndReason, Hears, Output, Principal, Resume, Subscription};
use crate::member::{Cursor, Limits};
use crate::terms::{self, Door};

/// How many events may have been on their way to a subscriber whose connection broke.
const ON_ITS_WAY: u64 = 1024;

/// Who wants to listen.
pub(super) struct Newcomer {
    pub(super) principal: Principal,
    pub(super) may_reply: bool,
    pub(super) hears: Hears,
}

impl Engine {
    pub(super) fn subscribe(
        &mut self,
        now: Now,
        who: &Newcomer,
        door: Door,
        mut request: SubscriptionRequest,
        resume: Option<&Resume>,
        out: &mut Vec<Output>,
    ) {
        let named = resume.and_then(|resume| resume.subscription_id.as_ref());
        let earlier = named.and_then(|id| self.owned_until_now(who.principal, id));
        let id = self.ids.subscription();
        let active = self.subscriptions.len() - usize::from(earlier.is_some());
        if !who.may_reply {
            refuse_answers(&mut request.capabilities);
        }
        match terms::negotiate(&self.config.offer, door, active, &request, id.clone()) {
            Err(message) => {
                out.push(Output::Rejected { subscriber: None, message: Box::new(message) });
            }
            Ok((message, granted)) => {
                let wish = Wish::new(request.capabilities, granted, who.hears.clone());
                let wish = self.share(wish);
                let message = Box::new(message);
                let last = resume.and_then(|resume| resume.last_event_id.as_ref());
                if let Some((subscriber, named)) = earlier.zip(named) {
                    self.rename(subscriber, id, who.may_reply, out);
                    self.keep_former_id(subscriber, named);
                    out.push(Output::Accepted { subscriber, message });
                    self.take_over(now, subscriber, &wish, last, out);
                    self.remember(subscriber, out);
                } else {
                    let from = self.resumes_from(resume);
                    let subscriber = self.add(id, who, wish, from);
                    out.push(Output::Accepted { subscriber, message });
                    self.begin(now, subscriber, resume, out);
                    self.remember(subscriber, out);
                }
            }
        }
    }

    /// Other terms, asked for in a request of their own on the connection that there is.
    pub(super) fn replace(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        door: Door,
        mut request: SubscriptionRequest,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get(subscriber as usize) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let (may_reply, hears) = (member.may_reply, member.wish.hears.clone());
        let id = self.ids.subscription();
        let active = self.subscriptions.len().saturating_sub(1);
        if !may_reply {
            refuse_answers(&mut request.capabilities);
        }
        match terms::negotiate(&self.config.offer, door, active, &request, id.clone()) {
            Err(message) => {
                out.push(Output::Rejected { subscriber: None, message: Box::new(message) });
            }
            Ok((message, granted)) => {
                self.rename(subscriber, id, may_reply, out);
                out.push(Output::Accepted { subscriber, message: Box::new(message) });
                let wish = self.share(Wish::new(request.capabilities, granted, hears));
                self.go_over(now, subscriber, &wish, out);
            }
        }
    }

    pub(super) fn renegotiate(
        &mut self,
        now: Now,
        principal: Principal,
        change: &SubscriptionRenegotiate,
        out: &mut Vec<Output>,
    ) {
        let Some(subscriber) = self.owned(principal, &change.subscription_id) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return };
        let wish = Arc::clone(&member.wish);
        let mut change = change.clone();
        if !member.may_reply {
            refuse_answers(&mut change.capabilities);
        }
        match terms::renegotiate(&self.config.offer, &wish.terms, &wish.asked, &change) {
            Err(message) => {
                self.remove(now, subscriber, out);
                out.push(Output::Rejected {
                    subscriber: Some(subscriber),
                    message: Box::new(message),
                });
            }
            Ok((message, granted, asked)) => {
                out.push(Output::Accepted { subscriber, message: Box::new(message) });
                let wish = self.share(Wish::new(asked, granted, wish.hears.clone()));
                self.go_over(now, subscriber, &wish, out);
            }
        }
    }

    /// A subscriber that is here goes on with other terms.
    fn go_over(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        wish: &Arc<Wish>,
        out: &mut Vec<Output>,
    ) {
        if !self.move_to(subscriber, wish) {
            self.lose(subscriber, None);
        }
        self.remember(subscriber, out);
        let unable = self.forget_unable(subscriber);
        self.ask_late(now, subscriber, out);
        self.catch_up(now, subscriber, out);
        self.look_for_others(now, &unable, out);
    }

    /// Other terms from now on, also for what is held: nothing of it is lost or told twice. Whether
    /// the log of the new terms reaches back that far.
    pub(super) fn move_to(&mut self, subscriber: SubscriberKey, wish: &Arc<Wish>) -> bool {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return false };
        let (principal, before) = (member.principal, Arc::clone(&member.wish));
        let is_away = matches!(member.presence, Presence::Away(_));
        let from = if is_away { member.needs_from } else { self.needs_from(subscriber) };
        if is_away {
            self.enter(principal, &before, from);
        }
        self.enter(principal, wish, from);
        self.leave_lists(subscriber);
        let Engine { audiences, members, sessions, next_order, newest, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return false };
        let old_key = member.wish.audience.clone();
        let moves = old_key != wish.audience;
        if moves || member.limits.is_some() {
            member.in_order_after.clone_from(newest);
        }
        let mut reaches_back = true;
        if let (Some(old), Some(new)) = (audiences.get(&old_key), audiences.get(&wish.audience))
            && moves
        {
            let told_at = |key: &TextKey, order| told_at(sessions, key, order);
            let known_from = member.began.known_from();
            let (cursor, end) = (&member.cursor, *next_order);
            let carried = cursor.carry_over((old, new), (known_from, end), told_at);
            reaches_back = carried.is_some();
            member.cursor = carried.unwrap_or_else(|| cursor.skip_to_end((old, new), end, told_at));
        }
        let (rate, pace) = (wish.terms.max_events_per_second, wish.terms.pace_wpm);
        match &mut member.limits {
            Some(limits) if rate.is_some() || pace.is_some() => limits.change(rate, pace),
            limits => *limits = Limits::of(rate, pace),
        }
        if let Some(new) = audiences.get_mut(&wish.audience) {
            new.subscribers.members.insert(subscriber);
        }
        member.wish = Arc::clone(wish);
        if moves {
            member.sent_last = None;
        }
        self.leave_room(principal, &old_key);
        if is_away {
            self.leave_room(principal, &wish.audience);
        }
        if moves {
            self.leave_for_good(subscriber, &old_key);
        }
        reaches_back
    }

    pub(super) fn close(
        &mut self,
        now: Now,
        principal: Principal,
        subscription: &SubscriptionId,
        out: &mut Vec<Output>,
    ) {
        match self.owned(principal, subscription) {
            Some(subscriber) => {
                self.remove(now, subscriber, out);
                out.push(Output::Closed { subscriber });
            }
            None => out.push(Output::NoSuchSubscription),
        }
    }

    /// The producer ends a subscription, and says so first to who is here (§5.8).
    pub(super) fn end(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        reason: EndReason,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return };
        if !matches!(member.presence, Presence::Away(_)) {
            let message = Box::new(SubscriptionClose {
                subscription_id: member.id.clone(),
                reason_code: aaep::ReasonName::parse(reason.code()).ok(),
                reason_message: Some(reason.words().to_owned()),
                correlation_id: None,
                extensions: None,
                other: aaep::Object::new(),
            });
            out.push(Output::Ended { subscriber, message });
        }
        self.remove(now, subscriber, out);
        out.push(Output::Closed { subscriber });
    }

    pub(super) fn disconnect(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
        if matches!(member.presence, Presence::Away(_)) {
            return;
        }
        self.leave_lists(subscriber);
        self.go_away(now, subscriber);
        let end_us = now.monotonic_us.saturating_add(self.config.keep_subscription_us);
        self.set_due(subscriber, end_us);
        self.look_at_asks_of(now, subscriber, out);
    }

    /// Remembers where a subscriber is whose connection broke. Its audience may forget everything.
    fn go_away(&mut self, now: Now, subscriber: SubscriberKey) {
        let needs_from = self.needs_from(subscriber);
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let audience = audiences.get(&member.wish.audience);
        let at = member.cursor.at;
        let is_level = at == member.cursor.urgent_at && member.cursor.is_plain();
        let last = audience.filter(|_| is_level).zip(at.checked_sub(1));
        let last = last.and_then(|(audience, at)| Some((audience, audience.unit(at)?)));
        if let Some((audience, unit)) = last {
            let ids = unit.ids(audience.number).map(|id| Digest::of(&id));
            member.sent_last = Some(Box::new(SentLast { at, ids }));
        } else if member.sent_last.as_ref().is_some_and(|last| !is_level || last.at != at) {
            member.sent_last = None;
        }
        member.needs_from = needs_from;
        member.presence = Presence::Away(now.monotonic_us);
        let (principal, key) = (member.principal, member.wish.audience.clone());
        self.leave_room(principal, &key);
    }

    pub(super) fn block(&mut self, subscriber: SubscriberKey) {
        let is_here = |it: &Member| it.presence == Presence::Here;
        if self.members.get(subscriber as usize).and_then(Option::as_ref).is_some_and(is_here) {
            self.leave_lists(subscriber);
            if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
                member.presence = Presence::Blocked;
            }
        }
    }

    pub(super) fn unblock(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
        let has_rested = std::mem::take(&mut member.rests);
        match member.presence {
            Presence::Blocked => {
                self.tell_gap(subscriber);
                if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
                    member.presence = Presence::Here;
                }
                self.tell_what_was_missed(now, subscriber, out);
            }
            Presence::Here if has_rested => self.catch_up(now, subscriber, out),
            _ => {}
        }
    }

    /// The subscriber of a subscription, if it is this one's.
    fn owned(&self, principal: Principal, subscription: &SubscriptionId) -> Option<SubscriberKey> {
        let subscriber = *self.subscriptions.get(subscription)?;
        let member = self.members.get(subscriber as usize)?.as_ref()?;
        (member.principal == principal).then_some(subscriber)
    }

    /// The same, also by the id that the subscriber had before this one.
    fn owned_until_now(&self, principal: Principal, id: &SubscriptionId) -> Option<SubscriberKey> {
        let formerly = || {
            let subscriber = *self.former_ids.get(id)?;
            let member = self.members.get(subscriber as usize)?.as_ref()?;
            (member.principal == principal).then_some(subscriber)
        };
        self.owned(principal, id).or_else(formerly)
    }

    /// A subscriber can still come back with this id, in case it never hears of the new one.
    pub(super) fn keep_former_id(&mut self, subscriber: SubscriberKey, id: &SubscriptionId) {
        if let Some(before) = self.former_id_of.insert(subscriber, id.clone()) {
            self.former_ids.remove(&before);
        }
        self.former_ids.insert(id.clone(), subscriber);
    }

    /// The same wish, once for all who have it.
    pub(super) fn share(&mut self, wish: Wish) -> Arc<Wish> {
        let key = serde_json::to_string(&(&wish.asked, &wish.terms.version)).unwrap_or_default();
        if let Some(known) = self.wishes.get(key.as_str()).filter(|known| ***known == wish) {
            return Arc::clone(known);
        }
        let wish = Arc::new(wish);
        self.wishes.retain(|_, it| Arc::strong_count(it) > 1);
        self.wishes.insert(key.into(), Arc::clone(&wish));
        wish
    }

    pub(super) fn add(
        &mut self,
        id: SubscriptionId,
        who: &Newcomer,
        wish: Arc<Wish>,
        from: u64,
    ) -> SubscriberKey {
        let end = self.enter(who.principal, &wish, from).end();
        let member = Member {
            id: id.clone(),
            principal: who.principal,
            may_reply: who.may_reply,
            presence: Presence::Here,
            rests: false,
            limits: Limits::of(wish.terms.max_events_per_second, wish.terms.pace_wpm),
            wish,
            cursor: Cursor::starting_at(end),
            due_us: NEVER,
            slot: None,
            missing: None,
            began: Began::At(self.next_order),
            in_order_after: self.newest.clone(),
            asked: AskedOf::default(),
            summaries: 0,
            needs_from: 0,
            sent_last: None,
        };
        let subscriber = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            SubscriberKey::try_from(self.members.len() - 1).unwrap_or(SubscriberKey::MAX)
        });
        if let Some(audience) = self.audiences.get_mut(&member.wish.audience) {
            audience.subscribers.members.insert(subscriber);
        }
        self.members[subscriber as usize] = Some(member);
        self.subscriptions.insert(id, subscriber);
        subscriber
    }

    /// A subscription goes on under another id.
    fn rename(
        &mut self,
        subscriber: SubscriberKey,
        id: SubscriptionId,
        may_reply: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
        member.may_reply = may_reply;
        let old = std::mem::replace(&mut member.id, id.clone());
        self.subscriptions.remove(&old);
        self.subscriptions.insert(id, subscriber);
        out.push(Output::Forget { subscription_id: old });
    }

    /// The subscription as it is to be stored.
    pub(super) fn remember(&self, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return };
        out.push(Output::Remember(Box::new(Subscription {
            subscription_id: member.id.clone(),
            principal: member.principal,
            may_reply: member.may_reply,
            hears: member.wish.hears.clone(),
            aaep_version: member.wish.terms.version.clone(),
            asked: member.wish.asked.clone(),
            former_id: self.former_id_of.get(&subscriber).cloned(),
            in_order_after: member.in_order_after.clone(),
        })));
    }

    /// The audience of these terms, awake, with a log from this place among all events on as far as the histories
    /// reach; made, if there is none. Someone of this principal enters it.
    pub(super) fn enter(&mut self, principal: Principal, wish: &Wish, from: u64) -> &mut Audience {
        let key = &wish.audience;
        if !self.audiences.contains_key(key) {
            let (terms, hears) = (wish.terms.clone(), wish.hears.clone());
            let since = self.past_from(&hears, from);
            let audience = Audience::new(terms, hears, fingerprint(key)).asleep(since);
            self.audiences.insert(key.clone(), audience);
        }
        self.enter_room(principal, key);
        if let Some(mut audience) = self.audiences.remove(key) {
            let from = from.max(audience.pure_from());
            if let Some(since) = audience.asleep_since() {
                audience.wake(&self.past(&wish.hears, from.min(since)), self.next_order);
                audience.distrust_before(self.gone_before(&wish.hears));
            } else if audience.from() > from {
                audience.reach_back(&self.past(&wish.hears, from));
            }
            self.audiences.insert(key.clone(), audience);
        }
        self.fit_rooms();
        self.audiences.get_mut(key).expect("it was just made")
    }

    /// From which place among all events on a subscriber needs the log of its audience when it comes back.
    fn needs_from(&self, subscriber: SubscriberKey) -> u64 {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return 0 };
        let Some(audience) = self.audiences.get(&member.wish.audience) else { return 0 };
        let at = member.cursor.at.min(member.cursor.urgent_at);
        let order = if at >= audience.end() { self.next_order } else { audience.order_before(at) };
        order.saturating_sub(ON_ITS_WAY)
    }

    /// An audience without anyone is no longer shaped for.
    fn leave_for_good(&mut self, subscriber: SubscriberKey, key: &terms::AudienceKey) {
        if let Some(audience) = self.audiences.get_mut(key) {
            audience.subscribers.members.remove(&subscriber);
            if audience.subscribers.members.is_empty() {
                self.audiences.remove(key);
            }
        }
    }

    /// Ends a subscription; questions that only it could answer get their default (§5.8.2).
    pub(super) fn remove(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        self.leave_lists(subscriber);
        self.forget_due(subscriber);
        if let Some(member) = self.members.get_mut(subscriber as usize).and_then(Option::take) {
            if !matches!(member.presence, Presence::Away(_)) {
                self.leave_room(member.principal, &member.wish.audience);
            }
            self.leave_for_good(subscriber, &member.wish.audience);
            self.subscriptions.remove(&member.id);
            if let Some(former_id) = self.former_id_of.remove(&subscriber) {
                self.former_ids.remove(&former_id);
            }
            out.push(Output::Forget { subscription_id: member.id.clone() });
            self.owed_gaps.remove(&subscriber);
            self.free.push(subscriber);
            for token in self.take_asked(subscriber, &member.asked) {
                self.look_for_someone(now, &token, out);
            }
        }
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
