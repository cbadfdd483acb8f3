//! Recovery after a stop, from what was recorded.
//!
//! Sessions are replayed, so that their order, consents and open asks are restored. Records come
//! one at a time, so that a long session needs no more memory than a short one. Asks continue with
//! at most the time they had left, expired ones get their default, and a used token stays used.
//! Subscriptions are restored with their subscribers away. A session with missing records takes no
//! more events, and its asks are withdrawn.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::extension::{AskOutcome, DecidedBy, Delivery};
use aaep::{Event, Payload, ReplyToken, SessionId};

use super::asks::AskSettlement;
use super::subscribers::NewSubscriber;
use super::{Engine, EngineConfig, EngineSession, SubscriptionStart, SubscriptionTerms};
use crate::ask::{PendingAsk, question};
use crate::audience::{HistoryEntry, SessionKey};
use crate::clock::Now;
use crate::ids::IdGenerator;
use crate::io::{AgentTags, AskTimeRecord, Author, Output, PrincipalNumber, Record, Subscription};
use crate::member::LastSent;
use crate::order::{Grant, GrantedBy, SessionOrder};
use crate::terms;

/// One piece of what was stored of the sessions.
#[derive(Debug, Clone)]
pub enum Replayed {
    /// An event.
    Record(Record),
    /// A part of this session is lost from here on. It takes no more events.
    Lost(SessionId),
    /// This session has ended, whether or not one of its events says so.
    Ended(SessionId),
}

/// What was stored.
#[derive(Debug, Clone, Default)]
pub struct RecoveredState {
    /// The events of all sessions, in the order in which they were recorded. Running sessions must be
    /// complete; ended ones may lack events.
    pub records: Vec<Record>,
    /// The times of asks, only the newest of each.
    pub times: Vec<AskTimeRecord>,
    /// The tokens of settled asks, newest last, including those of sessions that are no longer stored.
    pub used_tokens: Vec<ReplyToken>,
    /// The subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// Whether something that was acknowledged is known to be lost. It may include the answer to an ask, so
    /// every open ask ends without consent.
    pub is_incomplete: bool,
}

/// An ask that was open at this point of the replay.
struct ReplayedAsk {
    session: SessionKey,
    entry: HistoryEntry,
    asked_unix_us: i64,
}

impl Engine {
    /// An engine that continues where another one stopped, and what is to be done first.
    ///
    /// # Panics
    ///
    /// If the offer names no language: the first one is the primary one.
    pub fn recover(
        config: EngineConfig,
        now: Now,
        mut recovered: RecoveredState,
    ) -> (Self, Vec<Output>) {
        let records = std::mem::take(&mut recovered.records);
        Engine::recover_from(config, now, records.into_iter().map(Replayed::Record), recovered)
    }

    /// Like [`Engine::recover`], with the events one at a time instead of in `recovered.records`.
    ///
    /// # Panics
    ///
    /// If the offer names no language: the first one is the primary one.
    pub fn recover_from(
        config: EngineConfig,
        now: Now,
        events: impl IntoIterator<Item = Replayed>,
        recovered: RecoveredState,
    ) -> (Self, Vec<Output>) {
        let mut engine = Engine::new(config);
        engine.ids = IdGenerator::after_stop(engine.config.seed, now.unix_us);
        let mut out = Vec::new();
        for token in &recovered.used_tokens {
            engine.asks.mark_used(None, token);
        }
        let mut open = BTreeMap::new();
        for event in events {
            match event {
                Replayed::Record(record) => {
                    engine.event_unix_us = Some(record.unix_us);
                    engine.replay(now, record, &mut open);
                }
                Replayed::Lost(session_id) | Replayed::Ended(session_id) => {
                    engine.close_lost_session(now, &session_id);
                }
            }
        }
        for mut subscription in recovered.subscriptions {
            // If something is lost, it is not known what the subscriber was sent.
            subscription.caught_up.take_if(|_| recovered.is_incomplete);
            engine.restore_subscription(now, subscription, &mut out);
        }
        let times: BTreeMap<_, _> =
            recovered.times.iter().map(|time| (&time.reply_token, time)).collect();
        for (token, ask) in open {
            let time = times.get(&token).copied();
            engine.ask_again(now, recovered.is_incomplete, (&token, time), &ask, &mut out);
        }
        (engine, out)
    }

    /// Notes that a token was used, by an ask of which nothing else is known any more.
    pub fn mark_token_used(&mut self, token: &ReplyToken) {
        self.asks.mark_used(None, token);
    }

    /// Makes a session take no more events: it has ended, or a part of it is lost, so that it is no longer
    /// known what it may do.
    fn close_lost_session(&mut self, now: Now, session_id: &SessionId) {
        let Some(key) = self.sessions.key_of(session_id) else { return };
        let Some(session) = self.sessions.get_mut(key) else { return };
        if session.order.is_ended() {
            return;
        }
        session.order = SessionOrder::already_ended();
        session.ended_us = Some(now.monotonic_us);
        let leaves_us = now.monotonic_us.saturating_add(self.config.keep_ended_us);
        self.leaving.push_back((leaves_us, key));
        self.count_session(key);
    }

    /// Settles an ask without consent, because it is not known whether it was answered.
    fn end_without_consent(&mut self, now: Now, token: &ReplyToken, out: &mut Vec<Output>) {
        let Some(ask) = self.asks.get(token) else { return };
        let outcome =
            if ask.is_confirmation() { AskOutcome::Reject } else { AskOutcome::Unanswered };
        self.settle(now, token, AskSettlement::new(outcome, DecidedBy::NoListener), out);
    }

    fn replay(&mut self, now: Now, record: Record, open: &mut BTreeMap<ReplyToken, ReplayedAsk>) {
        let Record { principal, tags, event, json, author, unix_us } = record;
        let key = self.session_of((principal, tags), &event);
        let Some(session) = self.sessions.get_mut(key) else { return };
        session.heard_us = now.monotonic_us;
        // Events of the hub are not a sign of life of the agent, and not dated by its clock.
        if author == Author::Agent {
            session.note_producer(&event, unix_us);
            let since_us = now.unix_us.saturating_sub(unix_us);
            session.silent_before_us = u64::try_from(since_us).unwrap_or(0);
        }
        if author == Author::Agent {
            self.note_languages(principal, &event);
        }
        let Some(session) = self.sessions.get_mut(key) else { return };
        let said = event.extensions.as_ref().and_then(|_| Delivery::of(&event));
        match (author, &event.payload) {
            (Author::Hub, Payload::StateChanged(change)) => {
                session.speak_for(&event.envelope.producer.agent_id, &change.to_state);
            }
            (Author::Hub, Payload::SessionErrored(_)) => session.order.replay(&event),
            // It only closes what the session left open. The end of the session follows.
            (Author::Hub, _) => {}
            (Author::Agent, payload) => {
                session.order.replay(&event);
                if let Payload::StateChanged(change) = payload {
                    let name = event.envelope.producer.agent_id.clone();
                    session.spoken.remove(&name);
                    session.announced.insert(name, change.to_state.clone());
                }
            }
        }
        let Some(entry) = self.file_event(key, Arc::clone(&event), &json, author) else {
            return;
        };
        self.count_session(key);
        self.trim_memory(now, &entry);
        if let (Author::Agent, Some((token, _))) = (author, question(&event.payload)) {
            open.insert(token.clone(), ReplayedAsk { session: key, entry, asked_unix_us: unix_us });
        }
        let said = said.filter(|_| author == Author::Hub);
        if let Some(resolution) = said.and_then(|said| said.resolution) {
            let principal = self.sessions.get(key).map(|session| session.principal);
            self.asks.mark_used(principal, &resolution.reply_token);
            if let Some(ask) = open.remove(&resolution.reply_token)
                && resolution.outcome == AskOutcome::Accept
                && let Some(session) = self.sessions.get_mut(ask.session)
            {
                let granted_by = GrantedBy::from(&resolution.decided_by);
                session.order.accept(Grant::asked_by(&ask.entry.event, granted_by));
            }
        }
    }

    /// The session of a recorded event. A new one if this is its first event. A session whose beginning is
    /// missing takes no more events.
    fn session_of(
        &mut self,
        (principal, tags): (PrincipalNumber, AgentTags),
        event: &Event,
    ) -> SessionKey {
        let id = &event.envelope.session_id;
        if let Some(key) = self.sessions.key_of(id) {
            return key;
        }
        let mut session = EngineSession::new(id.clone(), principal, tags);
        if !matches!(event.payload, Payload::SessionStarted(_)) {
            session.order = SessionOrder::already_ended();
        }
        self.sessions.insert(session)
    }

    /// Restores a subscription, with its subscriber away.
    fn restore_subscription(
        &mut self,
        now: Now,
        subscription: Subscription,
        out: &mut Vec<Output>,
    ) {
        let Subscription {
            subscription_id,
            principal,
            may_reply,
            hears,
            aaep_version,
            asked,
            former_id,
            in_order_after,
            caught_up,
        } = subscription;
        let id = subscription_id.clone();
        let active = self.subscriptions.len();
        match terms::restore(&self.config.offer, active, &aaep_version, &asked) {
            // The offer may have changed.
            None => out.push(Output::Forget { subscription_id }),
            Some(granted) => {
                let agreed =
                    self.share_terms(SubscriptionTerms::new(asked, granted, hears.clone()));
                let next = self.next_order;
                let newcomer = NewSubscriber { principal, may_reply, hears };
                let subscriber = self.add(id, &newcomer, agreed, next);
                if let Some(member) = self.members.get_mut(subscriber) {
                    member.start = SubscriptionStart::BeforeStop(self.next_order);
                    member.in_order_after = in_order_after;
                    member.needs_from = 0;
                    member.last_sent = LastSent::Unknown;
                    let key = member.agreed.audience.clone();
                    if let Some(caught_up) = caught_up {
                        self.restore_caught_up(subscriber, &caught_up);
                    }
                    self.release_log_space(principal, &key);
                }
                if let Some(former_id) = former_id {
                    self.keep_former_id(subscriber, &former_id);
                }
                let end_us = now.monotonic_us.saturating_add(self.config.keep_subscription_us);
                self.leave(subscriber, now.monotonic_us, end_us);
                out.push(Output::Recovered { subscriber, subscription_id });
            }
        }
    }

    /// Reopens an ask with the time that it had left; if that is not known, its time is over. The time that
    /// is left now is stored, so that several restarts never add up to more. Every subscriber that could
    /// answer counts as asked until it had the time to reconnect (ruling 4).
    fn ask_again(
        &mut self,
        now: Now,
        is_incomplete: bool,
        (token, time): (&ReplyToken, Option<&AskTimeRecord>),
        open: &ReplayedAsk,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.sessions.get(open.session) else { return };
        let is_over = session.order.is_ended();
        let order = open.entry.order;
        let event = Arc::clone(&open.entry.event);
        let whose = (session.principal, session.tags.clone());
        let mut ask = PendingAsk::new(whose, open.session, event, order, (now.monotonic_us, false));
        let over = AskTimeRecord {
            reply_token: token.clone(),
            ends_unix_us: Some(i64::MIN),
            left_us: None,
            limit_unix_us: i64::MIN,
            changes: 0,
            stored_unix_us: None,
            event_unix_us: None,
        };
        // Either the time was stored after the last event, or the last event came after it.
        let event_unix_us = match time.map(|time| time.event_unix_us) {
            Some(before) if before == self.event_unix_us => None,
            _ => self.event_unix_us,
        };
        // If it is not known when the time was stored, it was not before the ask was made.
        let is_dated = time.is_some_and(|time| time.stored_unix_us.is_some());
        let asked_unix_us = if is_dated { i64::MIN } else { open.asked_unix_us };
        let seen_unix_us = event_unix_us.map_or(asked_unix_us, |it| it.max(asked_unix_us));
        ask.time.restore(now, seen_unix_us, time.unwrap_or(&over));
        ask.told = self.able_to_answer(ask.is_confirmation(), ask.principal, &ask.tags).collect();
        let grace_until_us = now.monotonic_us.saturating_add(self.config.resume_grace_us);
        ask.grace_until_us = ask.grace_until_us.max(grace_until_us);
        self.open_ask(token, ask);
        self.store_time(now, token, out);
        if is_over {
            self.settle(now, token, AskSettlement::withdrawn(), out);
        } else if is_incomplete {
            self.end_without_consent(now, token, out);
        } else {
            self.check_answerable(now, token, out);
        }
    }
}
