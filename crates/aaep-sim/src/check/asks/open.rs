//! A question as the world understands it: what it takes, what silence means, who was told.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::event::action::RiskLevel;
use aaep::event::human::{Decision, ResponseKind, Reversibility};
use aaep::extension::{DecidedBy, Delivery};
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken};
use aaep_engine::{AskTimeRecord, Input, Now, Output, Principal, Resolution};

use super::{can_answer, is_default};
use crate::check::Step;
use crate::check::consent::Presented;
use crate::truth::{Presence, Truth};

/// A question that is open.
pub(super) struct Question {
    pub(super) token: ReplyToken,
    /// Who asked.
    pub(super) principal: Principal,
    pub(super) event: Arc<Event>,
    pub(super) is_confirmation: bool,
    pub(super) deadline_us: u64,
    /// When its timeout is over, counted from when it was asked.
    pub(super) asked_until_us: u64,
    /// When it is over at the latest, as its event says.
    pub(super) limit_us: u64,
    /// Who was sent it, by the world's number, and can still answer.
    pub(super) told: BTreeSet<usize>,
    /// Who has it from an earlier subscription.
    pub(super) heard_of: BTreeSet<usize>,
}

/// How much time a question has left, as the hub stores it.
pub(super) fn left_us(record: &AskTimeRecord, now: Now) -> u64 {
    let ends_unix_us = record.ends_unix_us.unwrap_or(record.limit_unix_us);
    u64::try_from(ends_unix_us - now.unix_us).unwrap_or(0)
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
    pub(super) fn of(
        event: &Arc<Event>,
        principal: Principal,
        truth: &Truth,
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
        // It waits for presentation if everyone who is here and can answer wants that.
        let mut here = truth.by_key.values().map(|at| &truth.subscriptions[*at]).filter(|it| {
            can_answer(it, is_confirmation, principal) && !matches!(it.presence, Presence::Away(_))
        });
        let waits = here.clone().next().is_some() && here.all(|it| it.terms.presented);
        let deadline_us = if waits { limit_us } else { asked_until_us };
        let (told, heard_of) = (BTreeSet::new(), BTreeSet::new());
        Some(Question {
            token,
            principal,
            event: Arc::clone(event),
            is_confirmation,
            deadline_us,
            asked_until_us,
            limit_us,
            told,
            heard_of,
        })
    }

    /// Follows what the hub says about the time of this question.
    pub(super) fn follow(&mut self, event: &Event, now_us: u64) {
        let told = Delivery::of(event).and_then(|it| it.deadline);
        if let Some(told) = told.filter(|it| it.reply_token == self.token) {
            let left = told.at.unix_us() - event.envelope.timestamp.unix_us();
            self.deadline_us = now_us + u64::try_from(left).unwrap_or(0);
        }
    }

    /// The clock jumped while the hub was down: it has the time that the hub says it has left.
    pub(super) fn take_time(&mut self, step: &Step<'_>) {
        for output in step.outputs {
            if let Output::Time(record) = output
                && record.reply_token == self.token
            {
                self.deadline_us = step.now.monotonic_us + left_us(record, step.now);
            }
        }
    }

    /// Whether the answer is one that the question allows.
    pub(super) fn takes(&self, input: &Input) -> bool {
        match (&self.event.payload, input) {
            (Payload::AwaitingConfirmation(it), Input::Confirm { reply, .. }) => {
                let is_no = reply.decision == Decision::Reject || reply.modified_action.is_some();
                let offers =
                    |all: &Vec<String>| all.iter().any(|allowed| allowed.as_str() == "accept");
                let is_by_rule =
                    reply.decided_by.as_ref().is_some_and(|by| by.starts_with("automatic"));
                // A no always counts, whatever the agent allows.
                is_no
                    || it.allowed_replies.as_ref().is_none_or(offers)
                        && (!is_by_rule || Presented::of(it).is_for_rules())
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
