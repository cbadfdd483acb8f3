//! An ask as the world understands it: which answers it allows, what its default is, and which
//! subscribers received it.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::action::RiskLevel;
use aaep::event::human::{Decision, ResponseKind, Reversibility};
use aaep::extension::{AskOutcome, DecidedBy, Delivery};
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken};
use aaep_engine::{AskTimeRecord, EngineInput, Now, Output, PrincipalNumber};

use super::{can_answer, is_default};
use crate::check::HubStep;
use crate::check::consent::PresentedRisk;
use crate::truth::{SubscriberPresence, WorldTruth};

/// An open ask.
pub(super) struct TrackedAsk {
    pub(super) token: ReplyToken,
    /// The principal that asked.
    pub(super) principal: PrincipalNumber,
    pub(super) event: Arc<Event>,
    pub(super) is_confirmation: bool,
    pub(super) deadline_us: u64,
    /// When its timeout ends, counted from the ask.
    pub(super) asked_until_us: u64,
    /// The latest time at which it ends, according to its event.
    pub(super) limit_us: u64,
    /// The subscriptions that received it and can still answer, by index.
    pub(super) recipients: BTreeSet<usize>,
    /// The subscriptions that have it only from one that they continue.
    pub(super) inherited_by: BTreeSet<usize>,
}

/// How much time an ask has left, according to the hub's record.
pub(super) fn left_us(record: &AskTimeRecord, now: Now) -> u64 {
    let ends_unix_us = record.ends_unix_us.unwrap_or(record.limit_unix_us);
    u64::try_from(ends_unix_us - now.unix_us).unwrap_or(0)
}

/// The reply token of an ask; none for other events.
pub fn token_of(payload: &Payload) -> Option<&ReplyToken> {
    match payload {
        Payload::AwaitingConfirmation(it) => Some(&it.reply_token),
        Payload::AwaitingClarification(it) => Some(&it.reply_token),
        _ => None,
    }
}

impl TrackedAsk {
    pub(super) fn of(
        event: &Arc<Event>,
        principal: PrincipalNumber,
        truth: &WorldTruth,
        now_us: u64,
    ) -> Option<Self> {
        let token = token_of(&event.payload)?.clone();
        let (is_confirmation, seconds) = match &event.payload {
            Payload::AwaitingConfirmation(it) => (true, it.timeout_seconds),
            Payload::AwaitingClarification(it) => (false, it.timeout_seconds),
            _ => return None,
        };
        let most = Delivery::of(event).and_then(|it| it.max_timeout_seconds).unwrap_or(0);
        let asked_until_us = now_us + seconds * 1_000_000;
        let limit_us = now_us + seconds.max(most) * 1_000_000;
        // The time starts at presentation if all subscribers that are present and can answer want that.
        let mut here = truth.by_key.values().map(|at| &truth.subscriptions[*at]).filter(|it| {
            can_answer(it, is_confirmation, principal)
                && !matches!(it.presence, SubscriberPresence::Away(_))
        });
        let waits = here.clone().next().is_some() && here.all(|it| it.terms.presented);
        let deadline_us = if waits { limit_us } else { asked_until_us };
        let (recipients, inherited_by) = (BTreeSet::new(), BTreeSet::new());
        Some(TrackedAsk {
            token,
            principal,
            event: Arc::clone(event),
            is_confirmation,
            deadline_us,
            asked_until_us,
            limit_us,
            recipients,
            inherited_by,
        })
    }

    /// Follows the hub's events about the time of this ask.
    pub(super) fn follow(&mut self, event: &Event, now_us: u64) {
        let told = Delivery::of(event).and_then(|it| it.deadline);
        if let Some(told) = told.filter(|it| it.reply_token == self.token) {
            let left = told.at.unix_us() - event.envelope.timestamp.unix_us();
            self.deadline_us = now_us + u64::try_from(left).unwrap_or(0);
        }
    }

    /// Takes over the remaining time that the hub states, after the machine's clock jumped while the hub was down.
    pub(super) fn take_time(&mut self, step: &HubStep<'_>) {
        for output in step.outputs {
            if let Output::Time(record) = output
                && record.reply_token == self.token
            {
                self.deadline_us = step.now.monotonic_us + left_us(record, step.now);
            }
        }
    }

    /// Whether the ask allows this answer.
    pub(super) fn takes(&self, input: &EngineInput) -> bool {
        match (&self.event.payload, input) {
            (Payload::AwaitingConfirmation(it), EngineInput::Confirm { reply, .. }) => {
                let is_no = reply.decision == Decision::Reject || reply.modified_action.is_some();
                let offers =
                    |all: &Vec<String>| all.iter().any(|allowed| allowed.as_str() == "accept");
                let is_by_rule =
                    reply.decided_by.as_ref().is_some_and(|by| by.starts_with("automatic"));
                // A reject always counts, whatever the agent allows.
                is_no
                    || it.allowed_replies.as_ref().is_none_or(offers)
                        && (!is_by_rule || PresentedRisk::of(it).is_for_rules())
            }
            (Payload::AwaitingClarification(it), EngineInput::Clarify { reply, .. }) => {
                let kinds = it.accepted_response_kinds.as_deref();
                let is_kind = |kind: &ResponseKind| {
                    matches!(
                        (kind, &reply.response),
                        (ResponseKind::Freetext, Response::Text(_))
                            | (ResponseKind::YesNo, Response::YesNo(_))
                    )
                };
                kinds.unwrap_or(&[ResponseKind::Freetext]).iter().any(is_kind)
            }
            _ => false,
        }
    }

    /// Checks that this outcome follows from what happened.
    pub(super) fn check(
        &self,
        (outcome, response): (&AskOutcome, Option<&Response>),
        decided_by: &DecidedBy,
        input: &EngineInput,
        now_us: u64,
    ) -> Result<(), String> {
        let is_right = match decided_by {
            DecidedBy::Reply => now_us < self.deadline_us && self.says(input, outcome, response),
            DecidedBy::Withdrawn => *outcome == AskOutcome::Withdrawn,
            _ => {
                let (default, words) = self.default();
                is_default(outcome, decided_by) && default == *outcome && words.as_ref() == response
            }
        };
        if !is_right {
            let by = decided_by.as_str();
            return Err(format!("{} ended as {outcome:?} by {by}, which nobody said.", self.token));
        }
        if *outcome == AskOutcome::Accept && *decided_by != DecidedBy::Reply && self.is_grave() {
            return Err(format!("{} was accepted by silence and cannot be undone.", self.token));
        }
        Ok(())
    }

    fn says(&self, input: &EngineInput, outcome: &AskOutcome, response: Option<&Response>) -> bool {
        match input {
            EngineInput::Confirm { reply, .. } => {
                let is_yes = reply.decision == Decision::Accept && reply.modified_action.is_none();
                let said = if is_yes { AskOutcome::Accept } else { AskOutcome::Reject };
                reply.reply_token == self.token && said == *outcome
            }
            EngineInput::Clarify { reply, .. } => {
                reply.reply_token == self.token
                    && *outcome == AskOutcome::Answered
                    && response == Some(&reply.response)
            }
            _ => false,
        }
    }

    /// The outcome if nobody answers.
    fn default(&self) -> (AskOutcome, Option<Response>) {
        match &self.event.payload {
            Payload::AwaitingConfirmation(it) if it.default_decision == Decision::Accept => {
                (AskOutcome::Accept, None)
            }
            Payload::AwaitingClarification(it) => match &it.default_response {
                Some(words) => (AskOutcome::Answered, Some(Response::Text(words.clone()))),
                None => (AskOutcome::Unanswered, None),
            },
            _ => (AskOutcome::Reject, None),
        }
    }

    /// Whether silence must not accept it (ruling 16).
    fn is_grave(&self) -> bool {
        let Payload::AwaitingConfirmation(it) = &self.event.payload else { return false };
        let is_final =
            it.irreversible == Some(true) || it.reversibility == Some(Reversibility::Irreversible);
        is_final && it.risk_level != Some(RiskLevel::Low)
    }
}
