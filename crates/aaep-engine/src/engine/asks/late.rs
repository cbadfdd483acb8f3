//! Which questions concern which subscriber, and asking those late that came before it (ruling 19).
//!
//! Coming and going costs in proportion to the questions that a subscriber was asked, not to all that are open. A
//! subscriber that comes late is sent a part of them at a time, as of everything else; until a question is sent, a
//! reply to it does not count. Nothing here settles a question.

use std::collections::{BTreeMap, BTreeSet};

use aaep::ReplyToken;

use super::super::{Engine, Presence};
use crate::ask::Ask;
use crate::audience::SubscriberKey;
use crate::clock::Now;
use crate::frame::encode;
use crate::io::{Hears, Output};

/// The questions that one subscriber was asked, by their places among all events. Most have none.
#[derive(Debug, Default)]
pub(crate) struct AskedOf {
    /// Those asked; some may be settled by now.
    pub(in crate::engine) orders: Vec<u64>,
    /// Those of them that are still to be sent, and whether they never were.
    late: BTreeMap<u64, bool>,
}

/// From how many on it is looked which of the questions are settled by now.
const MANY_ASKED: usize = 64;

impl AskedOf {
    /// Whether a question was never sent yet.
    pub(super) fn waits(&self, order: u64) -> bool {
        self.late.get(&order) == Some(&true)
    }
}

impl Engine {
    /// Takes a question in as open. Everyone in `told` counts as asked.
    pub(in crate::engine) fn open_ask(&mut self, token: &ReplyToken, ask: Ask) {
        let (order, session) = (ask.order, ask.session);
        self.count_ask(ask.principal, &ask.event, true);
        for subscriber in &ask.told {
            if let Some(Some(member)) = self.members.get_mut(*subscriber as usize) {
                member.asked.orders.push(order);
            }
        }
        let many = MANY_ASKED.max(2 * self.asks.len());
        for subscriber in &ask.told {
            if let Some(Some(member)) = self.members.get_mut(*subscriber as usize)
                && member.asked.orders.len() > many
            {
                let open = &self.ask_tokens;
                member.asked.orders.retain(|it| *it == order || open.contains_key(it));
            }
        }
        self.ask_tokens.insert(order, token.clone());
        for tag in ask.tags.iter() {
            if let Some(orders) = self.asks_by_tag.get_mut(tag) {
                orders.insert(order);
            } else {
                self.asks_by_tag.insert(tag.to_owned(), [order].into());
            }
        }
        self.asks_of.entry(session).or_default().insert(token.clone());
        self.asks.insert(token.clone(), ask);
        self.file(token);
    }

    /// A question is not open any more.
    pub(super) fn forget_tags(&mut self, ask: &Ask) {
        for tag in ask.tags.iter() {
            if let Some(orders) = self.asks_by_tag.get_mut(tag) {
                orders.remove(&ask.order);
                if orders.is_empty() {
                    self.asks_by_tag.remove(tag);
                }
            }
        }
    }

    /// The places of the open questions that can be heard, without looking at any other.
    fn heard_asks(&self, hears: &Hears) -> Vec<u64> {
        match hears {
            Hears::All => self.ask_tokens.keys().copied().collect(),
            Hears::Tagged(tags) => {
                let by_tag = tags.iter().filter_map(|tag| self.asks_by_tag.get(tag));
                by_tag.flatten().copied().collect::<BTreeSet<u64>>().into_iter().collect()
            }
        }
    }

    /// The open questions that a subscriber was asked.
    fn asked_of(&self, asked: &AskedOf) -> Vec<ReplyToken> {
        asked.orders.iter().filter_map(|order| self.ask_tokens.get(order).cloned()).collect()
    }

    /// Someone came, went or changed terms: looks at the questions that it was asked.
    pub(in crate::engine) fn look_at_asks_of(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return };
        for token in self.asked_of(&member.asked) {
            self.look_for_someone(now, &token, out);
        }
    }

    /// A subscriber that is gone was asked nothing any more; which questions it was asked.
    pub(in crate::engine) fn take_asked(
        &mut self,
        subscriber: SubscriberKey,
        asked: &AskedOf,
    ) -> Vec<ReplyToken> {
        let tokens = self.asked_of(asked);
        for token in &tokens {
            if let Some(ask) = self.asks.get_mut(token) {
                ask.told.remove(&subscriber);
            }
        }
        tokens
    }

    /// Whether a subscriber got what it was asked is not known any more: it is asked again where `is_meant` says so.
    pub(in crate::engine) fn ask_again_if(
        &mut self,
        subscriber: SubscriberKey,
        is_meant: impl Fn(&Ask) -> bool,
    ) {
        let Engine { members, asks, ask_tokens, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let AskedOf { orders, late } = &mut member.asked;
        for order in orders {
            let ask = ask_tokens.get(order).and_then(|token| asks.get(token));
            if ask.is_some_and(&is_meant) {
                late.entry(*order).or_insert(false);
            }
        }
    }

    /// A subscriber that gave up answering does not count as asked any more. Gives what it had been asked, for
    /// [`Engine::look_for_others`] as soon as the subscriber is there again: it hears of what is settled for want of it.
    pub(in crate::engine) fn forget_unable(
        &mut self,
        subscriber: SubscriberKey,
    ) -> Vec<ReplyToken> {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return Vec::new() };
        let is_unable =
            |token: &ReplyToken| self.asks.get(token).is_some_and(|ask| !member.can_answer(ask));
        let mut unable = self.asked_of(&member.asked);
        unable.retain(is_unable);
        for token in &unable {
            if let Some(ask) = self.asks.get_mut(token)
                && let Some(Some(member)) = self.members.get_mut(subscriber as usize)
            {
                ask.told.remove(&subscriber);
                let order = ask.order;
                member.asked.orders.retain(|it| *it != order);
                member.asked.late.remove(&order);
            }
        }
        unable
    }

    /// Whether someone else can answer these questions; otherwise they are settled.
    pub(in crate::engine) fn look_for_others(
        &mut self,
        now: Now,
        tokens: &[ReplyToken],
        out: &mut Vec<Output>,
    ) {
        for token in tokens {
            self.look_for_someone(now, token, out);
        }
    }

    /// Sends every open question that the subscriber may answer and was not asked, with its own event (ruling 19).
    pub(in crate::engine) fn ask_late(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        self.note_late(subscriber);
        self.send_late(subscriber, out);
        self.look_at_asks_of(now, subscriber, out);
    }

    /// Notes every open question that the subscriber may answer and was not asked. What it will be told anyway, with
    /// the log, is not sent late as well.
    pub(in crate::engine) fn note_late(&mut self, subscriber: SubscriberKey) {
        let member = self.members.get(subscriber as usize).and_then(Option::as_ref);
        let may_reply = member.filter(|it| it.presence == Presence::Here && it.may_reply);
        let heard = may_reply.map_or(Vec::new(), |member| self.heard_asks(&member.wish.hears));
        self.work.count_asks(heard.len());
        let Engine { audiences, members, asks, ask_tokens, .. } = self;
        if let Some(Some(member)) = members.get_mut(subscriber as usize)
            && member.presence == Presence::Here
            && let Some(audience) = audiences.get(&member.wish.audience)
        {
            for order in heard {
                let Some(token) = ask_tokens.get(&order) else { continue };
                let Some(ask) = asks.get_mut(token) else { continue };
                if !member.can_answer(ask) || !ask.told.insert(subscriber) {
                    continue;
                }
                member.asked.orders.push(ask.order);
                member.asked.late.insert(ask.order, true);
            }
            // What is still to come in the log is told with it.
            let (urgent_at, is_behind) = (member.cursor.urgent_at, member.slot.is_none());
            let position = |order: u64| audience.position_of_question(order);
            let is_ahead = |order: u64| position(order).is_some_and(|at| at >= urgent_at);
            member.asked.late.retain(|order, _| !(is_behind && is_ahead(*order)));
        }
    }

    /// Sends the questions that are still to be sent, as many as go at a time; the rest when the wire has taken them.
    pub(in crate::engine) fn send_late(
        &mut self,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Engine { audiences, members, asks, ask_tokens, primary, config, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        if member.presence != Presence::Here || member.rests {
            return;
        }
        for _ in 0..config.at_a_time.max(1) {
            let Some((order, _)) = member.asked.late.pop_first() else { return };
            let Some(ask) = ask_tokens.get(&order).and_then(|token| asks.get(token)) else {
                continue;
            };
            // Out of its place it has no number, which would not fit its neighbours.
            let frame = encode(&ask.event, true, None, &member.wish.terms, primary);
            member.cursor.remember_question(&frame.event_id, audience);
            out.push(Output::Deliver { frame, to: vec![subscriber] });
        }
        if !member.asked.late.is_empty() {
            member.rests = true;
            out.push(Output::More { subscriber });
        }
    }
}
