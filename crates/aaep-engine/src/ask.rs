//! One ask to a person, from asking to settling (chapter 6).
//!
//! This file defines what an ask is and which replies it accepts. `engine::asks` decides which
//! subscribers are told, when time is up and what follows. When in doubt, the answer is no.

mod time;

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision, ResponseKind};
use aaep::extension::{AskOutcome, Delivery};
use aaep::reply::{ConfirmationReply, Response};
use aaep::{DecisionTime, Event, Payload, ReplyToken};

use crate::audience::{SessionKey, SubscriberKey};
use crate::clock::Now;
use crate::io::{AgentTags, PrincipalNumber, ReplyRefusal};

pub(crate) use time::AskTime;

/// An ask that has not been settled yet.
#[derive(Debug)]
pub(crate) struct PendingAsk {
    /// The principal that asks. It may never answer (ruling 37).
    pub(crate) principal: PrincipalNumber,
    /// The tags of the agent, which decide which subscribers hear of the ask.
    pub(crate) tags: AgentTags,
    pub(crate) session: SessionKey,
    pub(crate) event: Arc<Event>,
    /// The position of the ask among all events.
    pub(crate) order: u64,
    /// How long the ask can be answered.
    pub(crate) time: AskTime,
    /// How long the engine waits for a subscriber that can answer to come back (ruling 4).
    pub(crate) abandoned_us: Option<u64>,
    /// Until this moment the ask is not given up even if no subscriber is connected, because all of
    /// them may be reconnecting.
    pub(crate) grace_until_us: u64,
    /// The subscribers that were sent the ask itself.
    pub(crate) told: BTreeSet<SubscriberKey>,
    /// The moment under which the engine has filed this ask as due.
    pub(crate) filed_us: Option<u64>,
}

/// The token and the timeout of an ask; `None` if the payload is not an ask.
pub(crate) fn question(payload: &Payload) -> Option<(&ReplyToken, u64)> {
    match payload {
        Payload::AwaitingConfirmation(it) => Some((&it.reply_token, it.timeout_seconds)),
        Payload::AwaitingClarification(it) => Some((&it.reply_token, it.timeout_seconds)),
        _ => None,
    }
}

impl PendingAsk {
    pub(crate) fn new(
        (principal, tags): (PrincipalNumber, AgentTags),
        session: SessionKey,
        event: Arc<Event>,
        order: u64,
        (now_us, waits): (u64, bool),
    ) -> Self {
        let timeout_seconds = question(&event.payload).map_or(0, |(_, seconds)| seconds);
        let said = event.extensions.as_ref().and_then(|_| Delivery::of(&event));
        let stays_open = said.as_ref().is_some_and(|said| said.stays_open == Some(true));
        let most_seconds = said.and_then(|said| said.max_timeout_seconds);
        let time = AskTime::new(now_us, timeout_seconds, most_seconds, waits);
        PendingAsk {
            principal,
            tags,
            session,
            event,
            order,
            time,
            abandoned_us: None,
            grace_until_us: if stays_open { u64::MAX } else { 0 },
            told: BTreeSet::new(),
            filed_us: None,
        }
    }

    pub(crate) fn is_confirmation(&self) -> bool {
        matches!(self.event.payload, Payload::AwaitingConfirmation(_))
    }

    /// When the engine next has to do something for this ask.
    pub(crate) fn next_us(&self) -> u64 {
        self.end_us().min(self.time.next_us())
    }

    /// When the default applies, if nobody answers.
    pub(crate) fn end_us(&self) -> u64 {
        self.time.deadline_us().min(self.abandoned_us.unwrap_or(u64::MAX))
    }

    /// What applies if nobody answers (§6.4). Silence never accepts anything that could hurt
    /// (ruling 35).
    pub(crate) fn default(&self) -> (AskOutcome, Option<Response>) {
        match &self.event.payload {
            Payload::AwaitingConfirmation(it) if is_default_safe(it) => match it.default_decision {
                Decision::Accept => (AskOutcome::Accept, None),
                Decision::Reject => (AskOutcome::Reject, None),
            },
            Payload::AwaitingClarification(it) => match &it.default_response {
                Some(text) => (AskOutcome::Answered, Some(Response::Text(text.clone()))),
                None => (AskOutcome::Unanswered, None),
            },
            _ => (AskOutcome::Reject, None),
        }
    }

    /// Decides what a reply to a confirmation means (§6.3.4 step 6, rulings 15 and 35). A no always
    /// counts, whatever the agent allows. An accept by a rule counts only where a rule may accept.
    pub(crate) fn decide(&self, reply: &ConfirmationReply) -> Result<AskOutcome, ReplyRefusal> {
        let Payload::AwaitingConfirmation(asked) = &self.event.payload else {
            return Err(ReplyRefusal::WrongKind);
        };
        // No agent can declare yet that it supports a modified action, so a modified one is a no.
        if reply.decision != Decision::Accept || reply.modified_action.is_some() {
            return Ok(AskOutcome::Reject);
        }
        let is_accept = |it: &String| it == Decision::Accept.as_str();
        if !asked.allowed_replies.as_ref().is_none_or(|allowed| allowed.iter().any(is_accept)) {
            return Err(ReplyRefusal::NotAllowed);
        }
        let is_by_rule = reply.decided_by.as_deref().is_some_and(aaep::reply::is_automatic);
        if is_by_rule && !asked.stakes().allows_rule() {
            return Err(ReplyRefusal::NotByRule);
        }
        Ok(AskOutcome::Accept)
    }

    /// Checks that the reply was also decided in time by the subscriber's own clock (§6.3.4 step 4,
    /// ruling 13).
    pub(crate) fn check_stamp(&self, now: Now, decided: &DecisionTime) -> Result<(), ReplyRefusal> {
        let left_us = self.time.deadline_us().saturating_sub(now.monotonic_us);
        let end_unix_us = now.unix_us.saturating_add_unsigned(left_us);
        if decided.unix_us() >= end_unix_us { Err(ReplyRefusal::StampedLate) } else { Ok(()) }
    }

    /// Checks that the ask takes this answer (§6.5.5).
    pub(crate) fn check_answer(&self, response: &Response) -> Result<(), ReplyRefusal> {
        let Payload::AwaitingClarification(question) = &self.event.payload else {
            return Err(ReplyRefusal::WrongKind);
        };
        let kinds =
            question.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext]);
        let fits = kinds.iter().any(|kind| fits(kind, response, question));
        if fits { Ok(()) } else { Err(ReplyRefusal::NotAllowed) }
    }
}

/// Whether the agent's default decision may apply when nobody answers.
pub(crate) fn is_default_safe(asked: &AwaitingConfirmation) -> bool {
    asked.default_decision != Decision::Accept || asked.stakes().allows_default()
}

fn fits(kind: &ResponseKind, response: &Response, question: &AwaitingClarification) -> bool {
    match (kind, response) {
        (ResponseKind::Freetext, Response::Text(_))
        | (ResponseKind::YesNo, Response::YesNo(_))
        | (ResponseKind::Numeric, Response::Number(_)) => true,
        (ResponseKind::MultipleChoice, Response::Text(value)) => {
            question.choices.iter().flatten().any(|choice| choice.value == *value)
        }
        _ => false,
    }
}
