//! A question as the world understands it: what it takes, what silence means, who was told.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::action::RiskLevel;
use aaep::event::human::{Decision, ResponseKind, Reversibility};
use aaep::extension::DecidedBy;
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken};
use aaep_engine::{Input, Resolution};

use super::is_default;

/// A question that is open.
pub(super) struct Question {
    pub(super) token: ReplyToken,
    pub(super) event: Arc<Event>,
    pub(super) is_confirmation: bool,
    pub(super) deadline_us: u64,
    /// Who was sent it, by the world's number, and can still answer.
    pub(super) told: BTreeSet<usize>,
    /// Who has it from an earlier subscription.
    pub(super) heard_of: BTreeSet<usize>,
}

/// The token of a question; none if it is none.
pub fn token_of(payload: &Payload) -> Option<&ReplyToken> {
    match payload {
        Payload::AwaitingConfirmation(it) => Some(&it.reply_token),
        Payload::AwaitingClarification(it) => Some(&it.reply_token),
        _ => None,
    }
}

impl Question {
    pub(super) fn of(event: &Arc<Event>, now_us: u64) -> Option<Self> {
        let token = token_of(&event.payload)?.clone();
        let (is_confirmation, seconds) = match &event.payload {
            Payload::AwaitingConfirmation(it) => (true, it.timeout_seconds),
            Payload::AwaitingClarification(it) => (false, it.timeout_seconds),
            _ => return None,
        };
        let deadline_us = now_us + seconds * 1_000_000;
        let (told, heard_of) = (BTreeSet::new(), BTreeSet::new());
        Some(Question {
            token,
            event: Arc::clone(event),
            is_confirmation,
            deadline_us,
            told,
            heard_of,
        })
    }

    /// Whether the answer is one that the question allows.
    pub(super) fn takes(&self, input: &Input) -> bool {
        match (&self.event.payload, input) {
            (Payload::AwaitingConfirmation(it), Input::Confirm { reply, .. }) => {
                let decision = if reply.decision == Decision::Accept { "accept" } else { "reject" };
                it.allowed_replies.as_ref().is_none_or(|all| all.iter().any(|it| it == decision))
            }
            (Payload::AwaitingClarification(it), Input::Clarify { reply, .. }) => {
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

    /// Whether this outcome can come of what happened.
    pub(super) fn check(
        &self,
        resolution: &Resolution,
        decided_by: &DecidedBy,
        input: &Input,
        now_us: u64,
    ) -> Result<(), String> {
        let is_right = match decided_by {
            DecidedBy::Reply => now_us < self.deadline_us && self.says(input, resolution),
            DecidedBy::Withdrawn => *resolution == Resolution::Withdrawn,
            _ => is_default(resolution, decided_by) && self.default() == *resolution,
        };
        if !is_right {
            let by = decided_by.as_str();
            return Err(format!(
                "{} ended as {resolution:?} by {by}, which nobody said.",
                self.token
            ));
        }
        if *resolution == Resolution::Accept && *decided_by != DecidedBy::Reply && self.is_grave() {
            return Err(format!("{} was accepted by silence and cannot be undone.", self.token));
        }
        Ok(())
    }

    fn says(&self, input: &Input, resolution: &Resolution) -> bool {
        match input {
            Input::Confirm { reply, .. } => {
                let is_yes = reply.decision == Decision::Accept && reply.modified_action.is_none();
                let said = if is_yes { Resolution::Accept } else { Resolution::Reject };
                reply.reply_token == self.token && said == *resolution
            }
            Input::Clarify { reply, .. } => {
                reply.reply_token == self.token
                    && Resolution::Answer(reply.response.clone()) == *resolution
            }
            _ => false,
        }
    }

    /// What silence means.
    fn default(&self) -> Resolution {
        match &self.event.payload {
            Payload::AwaitingConfirmation(it) if it.default_decision == Decision::Accept => {
                Resolution::Accept
            }
            Payload::AwaitingClarification(it) => match &it.default_response {
                Some(words) => Resolution::DefaultAnswer(words.clone()),
                None => Resolution::NoAnswer,
            },
            _ => Resolution::Reject,
        }
    }

    /// Whether silence must not let it happen (ruling 16).
    fn is_grave(&self) -> bool {
        let Payload::AwaitingConfirmation(it) = &self.event.payload else { return false };
        let is_final =
            it.irreversible == Some(true) || it.reversibility == Some(Reversibility::Irreversible);
        is_final && it.risk_level != Some(RiskLevel::Low)
    }
}
