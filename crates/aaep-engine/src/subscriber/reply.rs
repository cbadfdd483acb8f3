//! The person's answer as a message: made once per ask, never invented (§6.3, §6.5).

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision, ResponseKind};
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::{ClarificationReply, ConfirmationReply, Response};
use aaep::{Message, Object, Payload, ReplyToken, Severity, SubscriptionId, Timestamp, Violation};
use serde_json::Number;

use super::asks::WhyWithdrawn;
use super::{SubscriberRules, SubscriptionState, UnsettledAsk};
use crate::clock::Now;

/// Why no reply was made. Nothing was used up, and nothing may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum CannotReply {
    /// No such ask is known here. Tell the person so.
    UnknownAsk,
    /// A reply was made before; there is never a second one.
    AlreadyAnswered,
    /// The ask was withdrawn.
    Withdrawn(WhyWithdrawn),
    /// The ask was settled, here or elsewhere.
    Resolved {
        /// How it ended.
        outcome: AskOutcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// The time is up, and the producer's default applies.
    Expired,
    /// The ask was given up here because there were too many; a change reported it.
    Forgotten,
    /// The ask cannot be answered in this way.
    NotAllowed(NotAllowed),
    /// There is no subscription to answer on. Wait for the handshake, or subscribe again.
    NotSubscribed,
    /// The reply would not be valid, such as a reason that is too long. Correct it and try again.
    Malformed(Vec<Violation>),
    /// Too many answers are remembered to make sure that a further one is not sent twice.
    TooManyAnswered,
    /// The wall clock shows a time that cannot be written as a timestamp.
    NoSuchMoment,
}

/// Why an ask cannot be answered in this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAllowed {
    /// The ask does not offer accept (`allowed_replies`). A reject is always allowed.
    Decision,
    /// A rule may not accept this. Ask the person (ruling 35).
    Rule,
    /// The ask requires another kind of answer, or this is not one of its choices.
    Response,
    /// The ask is a confirmation and not a clarification, or the other way round.
    Kind,
    /// The terms do not let this subscriber answer such asks.
    Terms,
}

/// Optional details of a decision. We never fill in `decided_by`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfirmationDetails {
    /// Who decided, such as `user:folake`.
    pub decided_by: Option<String>,
    /// Why, in the person's own words.
    pub decision_rationale: Option<String>,
    /// How the action should be modified. Most producers take that as a no (ruling 15).
    pub modified_action: Option<Object>,
    /// A trace id.
    pub correlation_id: Option<String>,
}

/// Optional details of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClarificationDetails {
    /// Who answered.
    pub decided_by: Option<String>,
    /// How certain it is that the person was understood, from 0 to 1.
    pub confidence: Option<Number>,
    /// A trace id.
    pub correlation_id: Option<String>,
}

impl SubscriberRules {
    /// Makes the reply to a confirmation, once. The token is used up as soon as this returns. If
    /// you cannot deliver the message, send the same one again; never make another.
    pub fn confirm(
        &mut self,
        now: Now,
        token: &ReplyToken,
        decision: Decision,
        details: ConfirmationDetails,
    ) -> Result<ConfirmationReply, CannotReply> {
        let (ask, subscription_id, timestamp) = self.answerable(now, token)?;
        let Payload::AwaitingConfirmation(asked) = &ask.event.payload else {
            return Err(CannotReply::NotAllowed(NotAllowed::Kind));
        };
        check_decision(asked, decision, &details)?;
        let reply = ConfirmationReply {
            reply_token: ask.reply_token.clone(),
            decision,
            subscription_id,
            timestamp: timestamp.into(),
            decided_by: details.decided_by,
            decision_rationale: details.decision_rationale,
            modified_action: details.modified_action,
            correlation_id: details.correlation_id,
            other: Object::new(),
        };
        refuse_malformed(aaep::check(&reply))?;
        self.asks.answer(now, token);
        self.order.observe(&Message::ConfirmationReply(Box::new(reply.clone())));
        Ok(reply)
    }

    /// Makes the reply to a clarification, once, like [`SubscriberRules::confirm`].
    pub fn clarify(
        &mut self,
        now: Now,
        token: &ReplyToken,
        response: Response,
        details: ClarificationDetails,
    ) -> Result<ClarificationReply, CannotReply> {
        let (ask, subscription_id, timestamp) = self.answerable(now, token)?;
        let Payload::AwaitingClarification(asked) = &ask.event.payload else {
            return Err(CannotReply::NotAllowed(NotAllowed::Kind));
        };
        if !takes(asked, &response) {
            return Err(CannotReply::NotAllowed(NotAllowed::Response));
        }
        let reply = ClarificationReply {
            reply_token: ask.reply_token.clone(),
            response,
            subscription_id,
            timestamp: timestamp.into(),
            decided_by: details.decided_by,
            confidence: details.confidence,
            correlation_id: details.correlation_id,
            other: Object::new(),
        };
        refuse_malformed(aaep::check(&reply))?;
        self.asks.answer(now, token);
        Ok(reply)
    }

    /// Lets the person answer an ask again after the producer said that their reply does not count. `ask` is the
    /// ask as it was before the reply. Returns false if it cannot be answered any more.
    pub fn reply_not_counted(&mut self, ask: UnsettledAsk) -> bool {
        self.asks.reopen(ask)
    }

    /// The ask, the subscription to answer it on, and the timestamp of the answer.
    fn answerable(
        &self,
        now: Now,
        token: &ReplyToken,
    ) -> Result<(&UnsettledAsk, SubscriptionId, Timestamp), CannotReply> {
        let ask = self.asks.answerable(now, token)?;
        let SubscriptionState::Holds(held) = &self.standing else {
            return Err(CannotReply::NotSubscribed);
        };
        let Some(id) = held.id.clone() else { return Err(CannotReply::NotSubscribed) };
        if !ask.can_reply {
            return Err(CannotReply::NotAllowed(NotAllowed::Terms));
        }
        let timestamp = Timestamp::from_unix_ms(now.unix_us.div_euclid(1000));
        Ok((ask, id, timestamp.ok_or(CannotReply::NoSuchMoment)?))
    }
}

fn refuse_malformed(mut violations: Vec<Violation>) -> Result<(), CannotReply> {
    violations.retain(|violation| violation.severity == Severity::Error);
    if violations.is_empty() { Ok(()) } else { Err(CannotReply::Malformed(violations)) }
}

/// Checks that a confirmation allows this decision. A no is always allowed, whatever the producer
/// says. A rule accepts only what a rule may accept (ruling 35).
fn check_decision(
    asked: &AwaitingConfirmation,
    decision: Decision,
    details: &ConfirmationDetails,
) -> Result<(), CannotReply> {
    if decision == Decision::Reject {
        return Ok(());
    }
    let is_offered = |allowed: &Vec<String>| allowed.iter().any(|it| it == decision.as_str());
    if !asked.allowed_replies.as_ref().is_none_or(is_offered) {
        return Err(CannotReply::NotAllowed(NotAllowed::Decision));
    }
    let is_by_rule = details.decided_by.as_deref().is_some_and(aaep::reply::is_automatic);
    if is_by_rule && !asked.stakes().allows_rule() {
        return Err(CannotReply::NotAllowed(NotAllowed::Rule));
    }
    Ok(())
}

/// Whether an ask allows this kind of answer (§6.5.2). An ask that states no kinds allows only free
/// text.
fn takes(asked: &AwaitingClarification, response: &Response) -> bool {
    let kinds = asked.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext]);
    kinds.iter().any(|kind| match (kind, response) {
        (ResponseKind::Freetext, Response::Text(_))
        | (ResponseKind::YesNo, Response::YesNo(_))
        | (ResponseKind::Numeric, Response::Number(_)) => true,
        (ResponseKind::MultipleChoice, Response::Text(value)) => {
            asked.choices.iter().flatten().any(|choice| choice.value == *value)
        }
        _ => false,
    })
}
