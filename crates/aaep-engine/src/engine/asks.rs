//! Asks: which subscribers receive them, which reply counts, and what follows (chapter 6).
//!
//! Every ask is settled exactly once: by the first valid reply, by time, because nobody is left to
//! answer, or because the agent withdrew it. Only a reply that says so, or a default that says so
//! and is allowed to, ever means yes.

mod late;
mod table;
mod time;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::extension::{self, AskOutcome, DecidedBy, Delivery};
use aaep::reply::{ClarificationReply, ConfirmationReply, Response};
use aaep::{Event, Object, Payload, ReplyToken, SubscriptionId, Urgency};

use super::publish::state_changed;
use super::{AudienceMember, Engine};
use crate::ask::PendingAsk;
use crate::audience::{SessionKey, SubscriberKey, cut};
use crate::clock::Now;
use crate::io::{
    AgentTags, AskAnswerer, Audit, Author, HearingScope, Output, PrincipalNumber, ReplyRefusal,
};
use crate::order::{Grant, GrantedBy};
use crate::terms::Terms;

pub(crate) use late::SubscriberAsks;
pub(super) use table::AskTable;
pub(super) use time::AskTimeRequest;
pub use waiting::OpenAskView;

/// How an ask is settled.
pub(super) struct AskSettlement {
    outcome: AskOutcome,
    decided_by: DecidedBy,
    response: Option<Response>,
    answered_by: Option<AskAnswerer>,
}

impl AskSettlement {
    /// Settled without an answer from anyone.
    pub(super) fn new(outcome: AskOutcome, decided_by: DecidedBy) -> Self {
        AskSettlement { outcome, decided_by, response: None, answered_by: None }
    }

    pub(super) fn withdrawn() -> Self {
        AskSettlement::new(AskOutcome::Withdrawn, DecidedBy::Withdrawn)
    }
}

impl Engine {
    /// Opens an ask. Everyone hears that there is one; subscribers that can answer receive the ask itself. If nobody
    /// can answer, the default applies at once (ruling 2).
    pub(super) fn ask(
        &mut self,
        now: Now,
        session: SessionKey,
        event: &Arc<Event>,
        token: &ReplyToken,
        out: &mut Vec<Output>,
    ) {
        let Some(in_session) = self.sessions.get(session) else { return };
        let whose = (in_session.principal, in_session.tags.clone());
        let is_confirmation = matches!(event.payload, Payload::AwaitingConfirmation(_));
        let all_told: BTreeSet<SubscriberKey> =
            self.able_to_answer(is_confirmation, whose.0, &whose.1).collect();
        let times = (now.monotonic_us, self.may_wait(all_told.iter()));
        let mut ask = PendingAsk::new(whose, session, Arc::clone(event), self.next_order, times);
        ask.told = all_told;
        out.push(Output::Asked {
            principal: ask.principal,
            reply_token: token.clone(),
            event: Arc::clone(event),
            told: ask.told.len(),
        });
        self.open_ask(token, ask);
        self.append(now, session, Arc::clone(event), Author::Agent, out);
        self.store_time(now, token, out);
        self.check_answerable(now, token, out);
    }

    /// The subscribers that can answer an ask, connected or briefly away.
    pub(super) fn able_to_answer(
        &self,
        is_confirmation: bool,
        asks: PrincipalNumber,
        tags: &AgentTags,
    ) -> impl Iterator<Item = SubscriberKey> {
        let audiences = self.audiences.values();
        let able_to_answer =
            audiences.filter(move |it| can_answer(&it.terms, &it.hears, is_confirmation, tags));
        let members = able_to_answer.flat_map(|audience| &audience.members);
        let may_reply = move |key: &&SubscriberKey| {
            let member = self.members.get(**key);
            member.is_some_and(|member| member.may_reply && member.principal != asks)
        };
        members.filter(may_reply).copied()
    }

    /// Applies the default of an ask if no subscriber that received it can still answer: at once, or when the
    /// time to reconnect is over (ruling 4).
    pub(super) fn check_answerable(&mut self, now: Now, token: &ReplyToken, out: &mut Vec<Output>) {
        let grace_us = self.config.resume_grace_us;
        let Some(ask) = self.asks.get(token) else { return };
        let mut until = Some(ask.grace_until_us);
        for subscriber in &ask.told {
            let Some(member) = self.members.get(*subscriber) else { continue };
            let Some(since_us) = member.delivery.away_since() else {
                // One connected subscriber is enough, and there may be very many.
                until = None;
                break;
            };
            until = until.map(|until: u64| until.max(since_us.saturating_add(grace_us)));
        }
        self.stop_waiting(now, token, out);
        let Some(ask) = self.asks.get_mut(token) else { return };
        ask.abandoned_us = until;
        if ask.end_us() <= now.monotonic_us {
            let by = if ask.time.deadline_us() <= now.monotonic_us {
                DecidedBy::Timeout
            } else {
                DecidedBy::NoListener
            };
            let (outcome, response) = ask.default();
            let settlement = AskSettlement { response, ..AskSettlement::new(outcome, by) };
            self.settle(now, token, settlement, out);
        } else {
            self.asks.file(token);
        }
    }

    /// Removes an ask, which no longer counts for its principal.
    fn take_ask(&mut self, token: &ReplyToken) -> Option<PendingAsk> {
        let ask = self.asks.remove(token)?;
        self.count_ask(ask.principal, &ask.event, false);
        Some(ask)
    }

    /// The open asks of a session.
    pub(super) fn asks_in(&self, session: SessionKey) -> impl Iterator<Item = &PendingAsk> {
        self.asks.in_session(session).filter_map(|token| self.asks.get(token))
    }

    /// Does what is due for asks.
    pub(super) fn tick_asks(&mut self, now: Now, out: &mut Vec<Output>) {
        for token in self.asks.take_due(now.monotonic_us) {
            self.check_answerable(now, &token, out);
            let left =
                self.asks.get_mut(&token).and_then(|ask| ask.time.countdown(now.monotonic_us));
            self.asks.file(&token);
            if let Some(left_us) = left {
                self.tell_countdown(now, &token, left_us, out);
            }
        }
    }

    pub(super) fn confirm(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        reply: &ConfirmationReply,
        out: &mut Vec<Output>,
    ) {
        let decide = |ask: &PendingAsk| {
            let outcome = ask.decide(reply)?;
            // A no counts, whatever a clock says.
            if outcome == AskOutcome::Accept {
                ask.check_stamp(now, &reply.timestamp)?;
            }
            Ok((outcome, None))
        };
        let names = (&reply.subscription_id, &reply.reply_token);
        self.reply(now, (principal, reply.decided_by.as_deref()), names, decide, out);
    }

    pub(super) fn clarify(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        reply: &ClarificationReply,
        out: &mut Vec<Output>,
    ) {
        let decide = |ask: &PendingAsk| {
            ask.check_stamp(now, &reply.timestamp)?;
            ask.check_answer(&reply.response)?;
            Ok((AskOutcome::Answered, Some(reply.response.clone())))
        };
        let names = (&reply.subscription_id, &reply.reply_token);
        self.reply(now, (principal, reply.decided_by.as_deref()), names, decide, out);
    }

    /// Makes the checks of §6.3.4. The sender learns only whether the reply counts (ruling 12).
    fn reply(
        &mut self,
        now: Now,
        (principal, decided_by): (PrincipalNumber, Option<&str>),
        (subscription, token): (&SubscriptionId, &ReplyToken),
        decide: impl FnOnce(&PendingAsk) -> Result<(AskOutcome, Option<Response>), ReplyRefusal>,
        out: &mut Vec<Output>,
    ) {
        let checked = self.check_reply(now, principal, subscription, token).and_then(decide);
        out.push(Output::Replied { is_accepted: checked.is_ok() });
        let refused = checked.as_ref().err().copied();
        let is_automatic = decided_by.is_some_and(aaep::reply::is_automatic);
        let (reply_token, decided_by) = (token.clone(), decided_by.map(str::to_owned));
        out.push(Output::Audit(Audit::Reply { reply_token, principal, decided_by, refused }));
        if let Ok((outcome, response)) = checked {
            let answered_by = Some(AskAnswerer { principal, is_automatic });
            let decided_by = DecidedBy::Reply;
            let settlement = AskSettlement { outcome, decided_by, response, answered_by };
            self.settle(now, token, settlement, out);
        }
    }

    fn check_reply(
        &self,
        now: Now,
        principal: PrincipalNumber,
        subscription: &SubscriptionId,
        token: &ReplyToken,
    ) -> Result<&PendingAsk, ReplyRefusal> {
        let subscriber = self.subscriptions.get(subscription);
        let member = subscriber.and_then(|key| self.members.get(key));
        let (Some(subscriber), Some(member)) = (subscriber, member) else {
            return Err(ReplyRefusal::NotYourSubscription);
        };
        if member.principal != principal {
            return Err(ReplyRefusal::NotYourSubscription);
        }
        if !member.may_reply {
            return Err(ReplyRefusal::MayNotReply);
        }
        let Some(ask) = self.asks.get(token) else {
            let was_used = self.asks.was_used(token);
            return Err(if was_used {
                ReplyRefusal::AlreadySettled
            } else {
                ReplyRefusal::UnknownToken
            });
        };
        if ask.time.deadline_us() <= now.monotonic_us {
            return Err(ReplyRefusal::TooLate);
        }
        if ask.principal == principal {
            return Err(ReplyRefusal::OwnAsk);
        }
        if !was_sent(ask, subscriber, member) || !member.can_answer(ask) {
            return Err(ReplyRefusal::NotAsked);
        }
        Ok(ask)
    }

    /// Whether a subscription was sent an ask that is still open.
    pub fn was_sent_ask(&self, subscription: &SubscriptionId, token: &ReplyToken) -> bool {
        let Some(subscriber) = self.subscriptions.get(subscription) else { return false };
        let member = self.members.get(subscriber);
        self.asks.get(token).zip(member).is_some_and(|(ask, it)| was_sent(ask, subscriber, it))
    }

    /// Settles an ask for good: grants what was accepted, and tells the agent and everyone that was told of
    /// the ask.
    pub(super) fn settle(
        &mut self,
        now: Now,
        token: &ReplyToken,
        settlement: AskSettlement,
        out: &mut Vec<Output>,
    ) {
        let Some(ask) = self.take_ask(token) else { return };
        self.asks.mark_used(Some(ask.principal), token);
        let AskSettlement { outcome, response, decided_by, answered_by } = settlement;
        if outcome == AskOutcome::Accept
            && let Some(session) = self.sessions.get_mut(ask.session)
        {
            session.order.accept(Grant::asked_by(&ask.event, GrantedBy::from(&decided_by)));
        }
        out.push(Output::Settled {
            principal: ask.principal,
            reply_token: token.clone(),
            outcome: outcome.clone(),
            decided_by: decided_by.clone(),
            response,
            answered_by,
        });
        let reply_token = token.clone();
        let notice =
            extension::Resolution { reply_token, outcome, decided_by, other: Object::new() };
        self.tell_settled(now, &ask, notice, out);
    }

    /// Sends the notice of ruling 18.
    fn tell_settled(
        &mut self,
        now: Now,
        ask: &PendingAsk,
        notice: extension::Resolution,
        out: &mut Vec<Output>,
    ) {
        let agent_id = &ask.event.envelope.producer.agent_id;
        let others_wait = self
            .asks_in(ask.session)
            .any(|other| other.event.envelope.producer.agent_id == *agent_id);
        let to = match notice.outcome {
            _ if others_wait => state::AWAITING_INPUT,
            AskOutcome::Accept => state::CALLING_TOOL,
            AskOutcome::Reject => state::DECIDING,
            _ => state::THINKING,
        };
        if let Some(session) = self.sessions.get_mut(ask.session) {
            session.speak_for(agent_id, to);
        }
        let summary = cut(format!("{}: {}", outcome_words(&notice), subject_of(&ask.event)));
        let mut envelope = self.own_envelope(now, ask.session, &ask.event.envelope);
        // Only critical events may pass a filter and a rate (§5.3.1.1, §5.5.4).
        envelope.urgency = Some(Urgency::Critical);
        let change = state_changed(state::AWAITING_INPUT.to_owned(), to, Some(summary));
        let mut event = Event::new(envelope, change);
        Delivery { resolution: Some(notice), ..Delivery::new() }.put_on(&mut event);
        self.append(now, ask.session, Arc::new(event), Author::Hub, out);
    }

    /// Withdraws an ask, because the agent no longer needs an answer.
    pub(super) fn withdraw(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        token: &ReplyToken,
        out: &mut Vec<Output>,
    ) {
        if self.asks.get(token).is_some_and(|ask| ask.principal == principal) {
            self.settle(now, token, AskSettlement::withdrawn(), out);
        } else {
            out.push(Output::NoSuchAsk { principal, reply_token: token.clone() });
        }
    }

    /// Withdraws the open asks of a session, or of one agent in it.
    pub(super) fn withdraw_all(
        &mut self,
        now: Now,
        session: SessionKey,
        agent_id: Option<&str>,
        out: &mut Vec<Output>,
    ) {
        let is_by = |token: &ReplyToken, agent: &str| {
            self.asks.get(token).is_some_and(|it| it.event.envelope.producer.agent_id == agent)
        };
        let is_meant = |token: &&ReplyToken| agent_id.is_none_or(|agent| is_by(token, agent));
        let tokens: Vec<ReplyToken> =
            self.asks.in_session(session).filter(is_meant).cloned().collect();
        for token in tokens {
            self.settle(now, &token, AskSettlement::withdrawn(), out);
        }
    }

    /// Withdraws the asks of an agent that leaves the waiting state by itself (§6.8). The agent's event is
    /// then changed to start from the state that the notice told.
    pub(super) fn withdraw_by_state(
        &mut self,
        now: Now,
        session: SessionKey,
        mut event: Event,
        out: &mut Vec<Output>,
    ) -> Event {
        let agent_id = event.envelope.producer.agent_id.clone();
        self.withdraw_all(now, session, Some(&agent_id), out);
        if let Some(session) = self.sessions.get_mut(session)
            && let Some(known) = session.spoken.remove(&agent_id)
            && let Payload::StateChanged(change) = &mut event.payload
        {
            change.from_state = known;
            session.order.tell(&agent_id, &change.to_state);
            session.announced.insert(agent_id, change.to_state.clone());
        }
        event
    }
}

impl AudienceMember {
    /// Whether the person behind this subscriber can answer an ask.
    pub(super) fn can_answer(&self, ask: &PendingAsk) -> bool {
        self.may_reply
            && self.principal != ask.principal
            && can_answer(&self.agreed.terms, &self.agreed.hears, ask.is_confirmation(), &ask.tags)
    }
}

fn can_answer(
    terms: &Terms,
    hears: &HearingScope,
    is_confirmation: bool,
    tags: &AgentTags,
) -> bool {
    let is_able =
        if is_confirmation { terms.confirmation_reply } else { terms.clarification_reply };
    is_able && hears.includes(tags)
}

/// The outcome of an ask, in words.
fn outcome_words(notice: &extension::Resolution) -> String {
    let what = match notice.outcome {
        AskOutcome::Accept => "Accepted",
        AskOutcome::Reject => "Rejected",
        AskOutcome::Answered => "Answered",
        AskOutcome::Unanswered => "Not answered",
        AskOutcome::Withdrawn => "No longer asked",
        // The engine never settles an ask in this way.
        AskOutcome::Other(_) => "Settled",
    };
    match notice.decided_by {
        DecidedBy::Timeout => format!("{what}, because nobody answered in time"),
        DecidedBy::NoListener => format!("{what}, because nobody was there to answer"),
        _ => what.to_owned(),
    }
}

fn subject_of(event: &Event) -> &str {
    match &event.payload {
        Payload::AwaitingConfirmation(it) => &it.action,
        Payload::AwaitingClarification(it) => &it.question,
        _ => "",
    }
}

/// Whether a subscription was sent an ask, and not merely queued to be sent it.
fn was_sent(ask: &PendingAsk, subscriber: SubscriberKey, member: &AudienceMember) -> bool {
    ask.told.contains(&subscriber) && !member.asked.waits(ask.order)
}
