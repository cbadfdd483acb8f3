//! Adds and removes subscribers: subscribing, changing terms, closing and reconnecting (chapter 5).

mod resume;

use std::sync::Arc;

use aaep::SubscriptionId;
use aaep::handshake::{SubscriptionClose, SubscriptionRenegotiate, SubscriptionRequest};

use self::resume::text_end_before;
use super::asks::SubscriberAsks;
use super::{
    AudienceMember, Engine, SentLast, SubscriberDelivery, SubscriptionStart, SubscriptionTerms,
};
use crate::audience::{Audience, SubscriberKey, TextKey};
use crate::clock::Now;
use crate::ids::IdDigest;
use crate::io::{
    CaughtUp, EndReason, HearingScope, Output, PrincipalNumber, ResumePoint, Subscription,
};
use crate::member::{Cursor, DeliveryLimits, LastSent};
use crate::terms::{self, Door};

/// How many events may have been in transit to a subscriber whose connection broke.
const ON_ITS_WAY: u64 = 1024;

/// A principal that wants to subscribe, and what it may do.
pub(super) struct NewSubscriber {
    pub(super) principal: PrincipalNumber,
    pub(super) may_reply: bool,
    pub(super) hears: HearingScope,
}

impl Engine {
    pub(super) fn subscribe(
        &mut self,
        now: Now,
        newcomer: &NewSubscriber,
        door: Door,
        mut request: SubscriptionRequest,
        resume: Option<&ResumePoint>,
        out: &mut Vec<Output>,
    ) {
        let named = resume.and_then(|resume| resume.subscription_id.as_ref());
        let earlier = named.and_then(|id| self.owned_until_now(newcomer.principal, id));
        let id = self.ids.subscription();
        let active = self.subscriptions.len() - usize::from(earlier.is_some());
        if !newcomer.may_reply {
            refuse_answers(&mut request.capabilities);
        }
        match terms::negotiate(&self.config.offer, door, active, &request, id.clone()) {
            Err(message) => {
                out.push(Output::Rejected { subscriber: None, message: Box::new(message) });
            }
            Ok((message, granted)) => {
                let agreed =
                    SubscriptionTerms::new(request.capabilities, granted, newcomer.hears.clone());
                let agreed = self.share_terms(agreed);
                let message = Box::new(message);
                let last = resume.and_then(|resume| resume.last_event_id.as_ref());
                if let Some((subscriber, named)) = earlier.zip(named) {
                    self.rename(subscriber, id, newcomer.may_reply, out);
                    self.keep_former_id(subscriber, named);
                    out.push(Output::Accepted { subscriber, message });
                    self.take_over(now, subscriber, &agreed, last, out);
                    self.remember(subscriber, out);
                } else {
                    let from = self.resumes_from(resume);
                    let subscriber = self.add(id, newcomer, agreed, from);
                    out.push(Output::Accepted { subscriber, message });
                    self.begin(now, subscriber, resume, out);
                    self.remember(subscriber, out);
                }
            }
        }
    }

    /// Replaces the terms of a connected subscriber, after a new request on the same connection.
    pub(super) fn replace(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        door: Door,
        mut request: SubscriptionRequest,
        out: &mut Vec<Output>,
    ) {
        let Some(member) = self.members.get(subscriber) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let (may_reply, hears) = (member.may_reply, member.agreed.hears.clone());
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
                let agreed =
                    self.share_terms(SubscriptionTerms::new(request.capabilities, granted, hears));
                self.switch_terms(now, subscriber, &agreed, out);
            }
        }
    }

    pub(super) fn renegotiate(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        change: &SubscriptionRenegotiate,
        out: &mut Vec<Output>,
    ) {
        let Some(subscriber) = self.owned(principal, &change.subscription_id) else {
            out.push(Output::NoSuchSubscription);
            return;
        };
        let Some(member) = self.members.get(subscriber) else { return };
        let agreed = Arc::clone(&member.agreed);
        let mut change = change.clone();
        if !member.may_reply {
            refuse_answers(&mut change.capabilities);
        }
        match terms::renegotiate(&self.config.offer, &agreed.terms, &agreed.asked, &change) {
            Err(message) => {
                self.remove(now, subscriber, out);
                out.push(Output::Rejected {
                    subscriber: Some(subscriber),
                    message: Box::new(message),
                });
            }
            Ok((message, granted, asked)) => {
                out.push(Output::Accepted { subscriber, message: Box::new(message) });
                let agreed =
                    self.share_terms(SubscriptionTerms::new(asked, granted, agreed.hears.clone()));
                self.switch_terms(now, subscriber, &agreed, out);
            }
        }
    }

    /// Continues with a connected subscriber under other terms.
    fn switch_terms(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        agreed: &Arc<SubscriptionTerms>,
        out: &mut Vec<Output>,
    ) {
        if !self.move_to_terms(subscriber, agreed) {
            self.restart_after_gap(subscriber, None);
        }
        self.remember(subscriber, out);
        let unable = self.forget_unanswerable(subscriber);
        self.ask_late(now, subscriber, out);
        self.catch_up(now, subscriber, out);
        self.check_all_answerable(now, &unable, out);
    }

    /// Moves a subscriber to other terms, including what is held: nothing is lost or sent twice. Returns
    /// whether the log of the new terms reaches back far enough.
    pub(super) fn move_to_terms(
        &mut self,
        subscriber: SubscriberKey,
        agreed: &Arc<SubscriptionTerms>,
    ) -> bool {
        let Some(member) = self.members.get(subscriber) else { return false };
        let (principal, before) = (member.principal, Arc::clone(&member.agreed));
        let is_away = member.delivery.is_away();
        let from = if is_away { member.needs_from } else { self.needs_from(subscriber) };
        if is_away {
            self.enter_audience(principal, &before, from);
        }
        self.enter_audience(principal, agreed, from);
        self.unlist(subscriber);
        let Engine { audiences, members, sessions, next_order, newest, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return false };
        let old_key = member.agreed.audience.clone();
        let moves = old_key != agreed.audience;
        if moves || member.limits.is_some() {
            member.in_order_after.clone_from(newest);
        }
        let mut reaches_back = true;
        if let (Some(old), Some(new)) = (audiences.get(&old_key), audiences.get(&agreed.audience))
            && moves
        {
            let text_end_before = |key: &TextKey, order| text_end_before(sessions, key, order);
            let known_from = member.start.known_from();
            let (cursor, end) = (&member.cursor, *next_order);
            let carried = cursor.carry_over((old, new), (known_from, end), text_end_before);
            reaches_back = carried.is_some();
            member.cursor =
                carried.unwrap_or_else(|| cursor.skip_to_end((old, new), end, text_end_before));
        }
        let (rate, pace) = (agreed.terms.max_events_per_second, agreed.terms.pace_wpm);
        match &mut member.limits {
            Some(limits) if rate.is_some() || pace.is_some() => limits.change(rate, pace),
            limits => *limits = DeliveryLimits::of(rate, pace),
        }
        if let Some(new) = audiences.get_mut(&agreed.audience) {
            new.members.insert(subscriber);
        }
        member.agreed = Arc::clone(agreed);
        if moves {
            member.sent_last = None;
        }
        self.release_log_space(principal, &old_key);
        if is_away {
            self.release_log_space(principal, &agreed.audience);
        }
        if moves {
            self.leave_audience(subscriber, &old_key);
        }
        reaches_back
    }

    pub(super) fn close(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
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

    /// Ends a subscription for the producer. A connected subscriber is told first (§5.8).
    pub(super) fn end(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        reason: EndReason,
        out: &mut Vec<Output>,
    ) {
        let Some(member) = self.members.get(subscriber) else { return };
        if !member.delivery.is_away() {
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
        let Some(member) = self.members.get(subscriber) else { return };
        if member.delivery.is_away() {
            return;
        }
        self.unlist(subscriber);
        self.note_where_it_leaves(subscriber);
        let end_us = now.monotonic_us.saturating_add(self.config.keep_subscription_us);
        self.leave(subscriber, now.monotonic_us, end_us);
        self.recheck_asks_of(now, subscriber, out);
    }

    /// Remembers where a subscriber is that disconnects. Its audience may then forget everything.
    fn note_where_it_leaves(&mut self, subscriber: SubscriberKey) {
        let needs_from = self.needs_from(subscriber);
        let Engine { audiences, members, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let audience = audiences.get(&member.agreed.audience);
        let at = member.cursor.at();
        let is_level = at == member.cursor.critical_at() && member.cursor.is_plain();
        let last = audience.filter(|_| is_level).zip(at.checked_sub(1));
        let last = last.and_then(|(audience, at)| Some((audience, audience.unit(at)?)));
        if let Some((audience, unit)) = last {
            let ids = unit.ids(audience.number).map(|id| IdDigest::of(&id));
            member.sent_last = Some(Box::new(SentLast { at, ids }));
        } else if member.sent_last.as_ref().is_some_and(|last| !is_level || last.at != at) {
            member.sent_last = None;
        }
        member.needs_from = needs_from;
        let (principal, key) = (member.principal, member.agreed.audience.clone());
        self.release_log_space(principal, &key);
    }

    pub(super) fn block(&mut self, subscriber: SubscriberKey) {
        self.block_delivery(subscriber);
    }

    pub(super) fn unblock(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(member) = self.members.get(subscriber) else { return };
        if member.delivery.is_here() {
            if self.take_wire(subscriber) {
                self.catch_up(now, subscriber, out);
            }
        } else if !member.delivery.is_away() {
            self.check_for_gap(subscriber);
            self.connect(subscriber);
            self.deliver_missed(now, subscriber, out);
        }
    }

    /// The subscriber of a subscription, if it belongs to this principal.
    fn owned(
        &self,
        principal: PrincipalNumber,
        subscription: &SubscriptionId,
    ) -> Option<SubscriberKey> {
        let subscriber = self.subscriptions.get(subscription)?;
        let member = self.members.get(subscriber)?;
        (member.principal == principal).then_some(subscriber)
    }

    /// Like `owned`, but also accepts the id that the subscriber had before.
    fn owned_until_now(
        &self,
        principal: PrincipalNumber,
        id: &SubscriptionId,
    ) -> Option<SubscriberKey> {
        let formerly = || {
            let subscriber = self.subscriptions.get_former(id)?;
            let member = self.members.get(subscriber)?;
            (member.principal == principal).then_some(subscriber)
        };
        self.owned(principal, id).or_else(formerly)
    }

    /// Lets a subscriber resume with this id, in case it never receives the new one.
    pub(super) fn keep_former_id(&mut self, subscriber: SubscriberKey, id: &SubscriptionId) {
        self.subscriptions.keep_former(subscriber, id);
    }

    /// Returns the shared copy of equal terms.
    pub(super) fn share_terms(&mut self, agreed: SubscriptionTerms) -> Arc<SubscriptionTerms> {
        let key =
            serde_json::to_string(&(&agreed.asked, &agreed.terms.version)).unwrap_or_default();
        if let Some(known) = self.shared_terms.get(key.as_str()).filter(|known| ***known == agreed)
        {
            return Arc::clone(known);
        }
        let agreed = Arc::new(agreed);
        self.shared_terms.retain(|_, it| Arc::strong_count(it) > 1);
        self.shared_terms.insert(key.into(), Arc::clone(&agreed));
        agreed
    }

    pub(super) fn add(
        &mut self,
        id: SubscriptionId,
        newcomer: &NewSubscriber,
        agreed: Arc<SubscriptionTerms>,
        from: u64,
    ) -> SubscriberKey {
        let end = self.enter_audience(newcomer.principal, &agreed, from).end();
        let member = AudienceMember {
            id: id.clone(),
            principal: newcomer.principal,
            may_reply: newcomer.may_reply,
            delivery: SubscriberDelivery::connected(),
            limits: DeliveryLimits::of(agreed.terms.max_events_per_second, agreed.terms.pace_wpm),
            agreed,
            cursor: Cursor::starting_at(end),
            missing: None,
            start: SubscriptionStart::AtOrder(self.next_order),
            in_order_after: self.newest.clone(),
            asked: SubscriberAsks::default(),
            summaries: 0,
            needs_from: 0,
            sent_last: None,
            last_sent: LastSent::Nothing,
        };
        let audience = member.agreed.audience.clone();
        let subscriber = self.members.insert(member);
        if let Some(audience) = self.audiences.get_mut(&audience) {
            audience.members.insert(subscriber);
        }
        self.subscriptions.insert(id, subscriber);
        subscriber
    }

    /// Continues a subscription under another id.
    fn rename(
        &mut self,
        subscriber: SubscriberKey,
        id: SubscriptionId,
        may_reply: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(member) = self.members.get_mut(subscriber) else { return };
        member.may_reply = may_reply;
        let old = std::mem::replace(&mut member.id, id.clone());
        self.subscriptions.rename(&old, id);
        out.push(Output::Forget { subscription_id: old });
    }

    /// Emits the subscription to be stored.
    pub(super) fn remember(&self, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        self.remember_with(subscriber, None, out);
    }

    /// The same with where it was at an orderly stop.
    pub(super) fn remember_with(
        &self,
        subscriber: SubscriberKey,
        caught_up: Option<CaughtUp>,
        out: &mut Vec<Output>,
    ) {
        let Some(member) = self.members.get(subscriber) else { return };
        out.push(Output::Remember(Box::new(Subscription {
            subscription_id: member.id.clone(),
            principal: member.principal,
            may_reply: member.may_reply,
            hears: member.agreed.hears.clone(),
            aaep_version: member.agreed.terms.version.clone(),
            asked: member.agreed.asked.clone(),
            former_id: self.subscriptions.former_id_of(subscriber).cloned(),
            in_order_after: member.in_order_after.clone(),
            caught_up,
        })));
    }

    /// Enters the audience of these terms for a subscriber of this principal, creating or waking the audience
    /// if needed. Its log goes back to this global order, as far as the histories reach.
    pub(super) fn enter_audience(
        &mut self,
        principal: PrincipalNumber,
        agreed: &SubscriptionTerms,
        from: u64,
    ) -> &mut Audience {
        let key = &agreed.audience;
        if !self.audiences.contains_key(key) {
            let (terms, hears) = (agreed.terms.clone(), agreed.hears.clone());
            let since = self.past_from(&hears, from);
            let audience = Audience::new(terms, hears, fingerprint(key)).asleep(since);
            self.audiences.insert(key.clone(), audience);
        }
        self.claim_log_space(principal, key);
        if let Some(mut audience) = self.audiences.remove(key) {
            let from = from.max(audience.pure_from());
            if let Some(since) = audience.asleep_since() {
                audience.wake(&self.past(&agreed.hears, from.min(since)), self.next_order);
                audience.distrust_before(self.gone_before(&agreed.hears));
            } else if audience.from() > from {
                audience.reach_back(&self.past(&agreed.hears, from));
            }
            self.audiences.insert(key.clone(), audience);
        }
        self.trim_logs();
        self.audiences.get_mut(key).expect("it was just made")
    }

    /// From which global order on a subscriber will need the log of its audience when it reconnects.
    fn needs_from(&self, subscriber: SubscriberKey) -> u64 {
        let Some(member) = self.members.get(subscriber) else { return 0 };
        let Some(audience) = self.audiences.get(&member.agreed.audience) else { return 0 };
        let at = member.cursor.at().min(member.cursor.critical_at());
        let order = if at >= audience.end() { self.next_order } else { audience.order_before(at) };
        order.saturating_sub(ON_ITS_WAY)
    }

    /// Removes a subscriber from its audience. An audience without members is dropped.
    fn leave_audience(&mut self, subscriber: SubscriberKey, key: &terms::AudienceKey) {
        if let Some(audience) = self.audiences.get_mut(key) {
            audience.members.remove(&subscriber);
            if audience.members.is_empty() {
                self.audiences.remove(key);
            }
        }
    }

    /// Ends a subscription. Asks that only it could answer get their default (§5.8.2).
    pub(super) fn remove(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        self.unlist(subscriber);
        self.forget_due(subscriber);
        if let Some(member) = self.members.remove(subscriber) {
            if !member.delivery.is_away() {
                self.release_log_space(member.principal, &member.agreed.audience);
            }
            self.leave_audience(subscriber, &member.agreed.audience);
            self.subscriptions.remove(&member.id, subscriber);
            out.push(Output::Forget { subscription_id: member.id.clone() });
            self.owed_gaps.remove(&subscriber);
            for token in self.take_asked(subscriber, &member.asked) {
                self.check_answerable(now, &token, out);
            }
        }
    }
}

/// A number for an audience that depends only on its terms.
fn fingerprint(key: &terms::AudienceKey) -> u64 {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(key.as_str());
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Principals that may not answer are not asked (ruling 1), whatever their program can do.
fn refuse_answers(capabilities: &mut aaep::Capabilities) {
    let offered = capabilities;
    offered.supports_confirmation_reply = offered.supports_confirmation_reply.map(|_| false);
    offered.supports_clarification_reply = offered.supports_clarification_reply.map(|_| false);
}
