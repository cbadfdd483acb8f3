//! Which asks concern which subscriber, and late delivery of asks that are older than the
//! subscriber (ruling 19).
//!
//! The cost of connecting and disconnecting grows with the asks that a subscriber received, not
//! with all open asks. A late subscriber is sent its asks in batches, like everything else. Until
//! an ask is sent, a reply to it does not count. Nothing here settles an ask.

use std::collections::BTreeMap;

use aaep::extension::Delivery;
use aaep::{Event, ReplyToken};

use super::super::Engine;
use super::super::deliver::WIRE_WAIT_US;
use super::super::delivery_state::HeldUntil;
use crate::ask::PendingAsk;
use crate::audience::SubscriberKey;
use crate::clock::{Now, SECOND_US};
use crate::frame::encode;
use crate::io::Output;
use crate::member::LastSent;

/// The asks that one subscriber received, by global order. Most have none.
#[derive(Debug, Default)]
pub(crate) struct SubscriberAsks {
    /// The asks that it received. Some may be settled by now.
    pub(in crate::engine) orders: Vec<u64>,
    /// Those that have yet to be sent, and whether they were never sent before.
    late: BTreeMap<u64, bool>,
}

/// From this number on, settled asks are removed from the list.
const MANY_ASKED: usize = 64;

impl SubscriberAsks {
    /// Whether none has yet to be sent.
    pub(in crate::engine) fn none_waits(&self) -> bool {
        self.late.is_empty()
    }

    /// Whether an ask has never been sent.
    pub(super) fn waits(&self, order: u64) -> bool {
        self.late.get(&order) == Some(&true)
    }
}

impl Engine {
    /// Registers an ask as open. All subscribers in `told` count as asked.
    pub(in crate::engine) fn open_ask(&mut self, token: &ReplyToken, ask: PendingAsk) {
        self.count_ask(ask.principal, &ask.event, true);
        for subscriber in &ask.told {
            if let Some(member) = self.members.get_mut(*subscriber) {
                member.asked.orders.push(ask.order);
            }
        }
        let many = MANY_ASKED.max(2 * self.asks.len());
        for subscriber in &ask.told {
            if let Some(member) = self.members.get_mut(*subscriber)
                && member.asked.orders.len() > many
            {
                let is_open = |it: u64| self.asks.token_at_order(it).is_some();
                member.asked.orders.retain(|it| *it == ask.order || is_open(*it));
            }
        }
        self.asks.insert(token, ask);
    }

    /// The open asks among those that a subscriber received.
    fn open_asks_of(&self, asked: &SubscriberAsks) -> Vec<ReplyToken> {
        self.work.count_asks(asked.orders.len());
        let tokens = asked.orders.iter().filter_map(|order| self.asks.token_at_order(*order));
        tokens.cloned().collect()
    }

    /// Checks the asks that a subscriber received, after it connected, disconnected or changed terms.
    pub(in crate::engine) fn recheck_asks_of(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Some(member) = self.members.get(subscriber) else { return };
        for token in self.open_asks_of(&member.asked) {
            self.check_answerable(now, &token, out);
        }
    }

    /// Removes a subscriber from the asks that it received. Returns their tokens.
    pub(in crate::engine) fn take_asked(
        &mut self,
        subscriber: SubscriberKey,
        asked: &SubscriberAsks,
    ) -> Vec<ReplyToken> {
        let tokens = self.open_asks_of(asked);
        for token in &tokens {
            if let Some(ask) = self.asks.get_mut(token) {
                ask.told.remove(&subscriber);
            }
        }
        tokens
    }

    /// Queues asks to be sent again where `is_meant` is true, because it is no longer known whether they
    /// arrived.
    pub(in crate::engine) fn ask_again_if(
        &mut self,
        subscriber: SubscriberKey,
        is_meant: impl Fn(&PendingAsk) -> bool,
    ) {
        let Engine { members, asks, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let SubscriberAsks { orders, late } = &mut member.asked;
        for order in orders {
            if asks.at_order(*order).is_some_and(&is_meant) {
                late.entry(*order).or_insert(false);
            }
        }
    }

    /// Removes a subscriber from the asks that it can no longer answer, and returns them. Pass them to
    /// [`Engine::check_all_answerable`] once the subscriber is connected again, so that it hears which asks
    /// are settled without it.
    pub(in crate::engine) fn forget_unanswerable(
        &mut self,
        subscriber: SubscriberKey,
    ) -> Vec<ReplyToken> {
        let Some(member) = self.members.get(subscriber) else { return Vec::new() };
        let is_unable =
            |token: &ReplyToken| self.asks.get(token).is_some_and(|ask| !member.can_answer(ask));
        let mut unable = self.open_asks_of(&member.asked);
        unable.retain(is_unable);
        for token in &unable {
            if let Some(ask) = self.asks.get_mut(token)
                && let Some(member) = self.members.get_mut(subscriber)
            {
                ask.told.remove(&subscriber);
                let order = ask.order;
                member.asked.orders.retain(|it| *it != order);
                member.asked.late.remove(&order);
            }
        }
        unable
    }

    /// Settles those of these asks that nobody can answer any more.
    pub(in crate::engine) fn check_all_answerable(
        &mut self,
        now: Now,
        tokens: &[ReplyToken],
        out: &mut Vec<Output>,
    ) {
        for token in tokens {
            self.check_answerable(now, token, out);
        }
    }

    /// Sends every open ask that the subscriber may answer and did not receive, as its own event (ruling 19).
    pub(in crate::engine) fn ask_late(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        self.note_late(subscriber);
        self.send_late(now, subscriber, out);
        self.recheck_asks_of(now, subscriber, out);
    }

    /// Queues every open ask that the subscriber may answer and did not receive. An ask that will arrive with
    /// the log is not sent late as well.
    pub(in crate::engine) fn note_late(&mut self, subscriber: SubscriberKey) {
        let member = self.members.get(subscriber);
        let may_reply = member.filter(|it| it.delivery.is_here() && it.may_reply);
        let heard = may_reply.map_or(Vec::new(), |member| self.asks.heard_by(&member.agreed.hears));
        self.work.count_asks(heard.len());
        let Engine { audiences, members, asks, .. } = self;
        if let Some(member) = members.get_mut(subscriber)
            && member.delivery.is_here()
            && let Some(audience) = audiences.get(&member.agreed.audience)
        {
            for order in heard {
                let Some(ask) = asks.at_order_mut(order) else { continue };
                if !member.can_answer(ask) || !ask.told.insert(subscriber) {
                    continue;
                }
                member.asked.orders.push(ask.order);
                member.asked.late.insert(ask.order, true);
            }
            // Asks that are still ahead in the log are delivered with it.
            let critical_at = member.cursor.critical_at();
            let is_behind = !member.delivery.is_together();
            let position = |order: u64| audience.position_of_ask(order);
            let is_ahead = |order: u64| position(order).is_some_and(|at| at >= critical_at);
            member.asked.late.retain(|order, _| !(is_behind && is_ahead(*order)));
        }
    }

    /// Sends one batch of queued asks. The others follow when the wire has taken it.
    pub(in crate::engine) fn send_late(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Engine { audiences, members, asks, primary, config, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return };
        if !member.delivery.takes_more() {
            return;
        }
        for _ in 0..config.at_a_time.max(1) {
            let Some((order, _)) = member.asked.late.pop_first() else { return };
            let Some(ask) = asks.at_order(order) else { continue };
            // Sent out of order, it has no sequence number: the number would not fit its neighbours.
            let event = with_seconds_left(&ask.event, ask.time.deadline_us(), now.monotonic_us);
            let frame = encode(&event, true, None, &member.agreed.terms, primary);
            member.cursor.remember_late_ask(&frame.event_id, audience);
            member.cursor.note_told(ask.session, &ask.event);
            member.last_sent = LastSent::Event(frame.event_id.clone());
            out.push(Output::Deliver { frame, to: vec![subscriber] });
        }
        if !member.asked.late.is_empty() {
            out.push(Output::More { subscriber });
            self.list(subscriber, Some(HeldUntil::Written(now.monotonic_us + WIRE_WAIT_US)));
        }
    }
}

/// The ask with the time that is left to answer it. The person would otherwise be told the whole time.
fn with_seconds_left(event: &Event, deadline_us: u64, now_us: u64) -> Event {
    let mut event = event.clone();
    let mut said = Delivery::of(&event).unwrap_or_default();
    said.seconds_left = Some(deadline_us.saturating_sub(now_us) / SECOND_US);
    said.put_on(&mut event);
    event
}
