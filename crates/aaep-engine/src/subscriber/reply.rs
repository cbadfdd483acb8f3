//! The person's answer as a message: made once per question, never invented (§6.3, §6.5).

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision, ResponseKind};
use aaep::extension::{DecidedBy, Outcome};
use aaep::reply::{ClarificationReply, ConfirmationReply, Response};
use aaep::{Message, Object, Payload, ReplyToken, Severity, SubscriptionId, Timestamp, Violation};
use serde_json::Number;

use super::asks::WhyWithdrawn;
use super::{OpenAsk, Standing, Subscriber};
use crate::clock::Now;
use crate::stakes::ActionStakes;

/// Why no reply was made. Nothing was used up, and nothing may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum CannotReply {
    /// Nobody asked that here. Tell the person that there is no such question.
    UnknownAsk,
    /// A reply was made before; there is never a second one.
    AlreadyAnswered,
    /// The question is no longer asked.
    Withdrawn(WhyWithdrawn),
    /// It was settled, here or by someone else.
    Resolved {
        /// How it ended.
        outcome: Outcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// Time is over, and the producer's default applies.
    Expired,
    /// It was given up here when there were too many; a change said so.
    Forgotten,
    /// It cannot be answered so.
    NotAllowed(NotAllowed),
    /// There is no subscription to answer on. Wait for the handshake, or subscribe again.
    NotSubscribed,
    /// The reply would not be valid, such as a reason that is too long. Correct it and try again.
    Malformed(Vec<Violation>),
    /// So many answers are remembered that a further one could not be kept from being sent twice.
    TooManyAnswered,
    /// The wall clock shows a moment that cannot be written down.
    NoSuchMoment,
}

/// Why a question cannot be answered so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAllowed {
    /// The question does not offer accept (`allowed_replies`); a reject is always allowed.
    Decision,
    /// A rule may not accept this; ask the person (ruling 35).
    Rule,
    /// The question takes another kind of answer, or this is none of its choices.
    Response,
    /// The question is a confirmation where a clarification was meant, or the other way round.
    Kind,
    /// The terms do not let this subscriber answer such questions.
    Terms,
}

/// What may be said beside a decision. Who decided is never filled in by us.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfirmationDetails {
    /// Who decided, such as `user:folake`.
    pub decided_by: Option<String>,
    /// Why, in the person's own words.
    pub decision_rationale: Option<String>,
    /// How the action should be changed; most producers take that as a no (ruling 15).
    pub modified_action: Option<Object>,
    /// A trace id.
    pub correlation_id: Option<String>,
}

/// What may be said beside an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClarificationDetails {
    /// Who answered.
    pub decided_by: Option<String>,
    /// How sure it is that the person was understood, from 0 to 1.
    pub confidence: Option<Number>,
    /// A trace id.
    pub correlation_id: Option<String>,
}

impl Subscriber {
    /// Makes the reply to a confirmation, once. The token is used up as soon as it is given back:
    /// whoever cannot deliver it sends the same message again and never makes another.
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

    /// Makes the reply to a clarification, once, as [`Subscriber::confirm`] does.
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

    /// The question, the subscription to answer it on, and the moment of the answer.
    fn answerable(
        &self,
        now: Now,
        token: &ReplyToken,
    ) -> Result<(&OpenAsk, SubscriptionId, Timestamp), CannotReply> {
        let ask = self.asks.answerable(now, token)?;
        let Standing::Holds(held) = &self.standing else { return Err(CannotReply::NotSubscribed) };
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

/// Whether a confirmation takes this decision. A no is never held back, whatever the producer allows; a
/// rule accepts only what a rule may (ruling 35).
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
    if is_by_rule && !ActionStakes::presented(asked).allows_rule() {
        return Err(CannotReply::NotAllowed(NotAllowed::Rule));
    }
    Ok(())
}

/// Whether a question takes such an answer (§6.5.2). Free words are the only kind that a question
/// takes which does not say what it takes.
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
