//! Asks what a bridge wants to know, and waits for the answer.

use std::time::Duration;

use aaep_bridge::AskAnswer;
use serde_json::Value;

use super::question::{AnswerKind, PreparedAsk};
use super::waiting::{self, ReportedOutcome};
use crate::agent::fresh_id;
use crate::console::CommandFailure;
use crate::http::HubClient;

/// A question of a bridge, with ids of its own.
#[derive(Debug, Clone)]
pub(crate) struct BridgeAsk(PreparedAsk);

impl BridgeAsk {
    /// Gives the event its ids. Silence never consents to it.
    pub(crate) fn new(mut event: Value, is_confirmation: bool) -> Result<Self, CommandFailure> {
        event["event_id"] = fresh_id("evt_")?.into();
        event["reply_token"] = fresh_id("rpl_")?.into();
        event["urgency"] = "critical".into();
        Ok(BridgeAsk::again(event, is_confirmation))
    }

    /// A question that has its ids, because it was put before. The hub finds it by them.
    pub(crate) fn again(event: Value, is_confirmation: bool) -> Self {
        let id = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let (event_id, reply_token) = (id("event_id"), id("reply_token"));
        let timeout_seconds = event["timeout_seconds"].as_u64().unwrap_or(1);
        let longest = event["extensions"][aaep::extension::PREFIX]["max_timeout_seconds"].as_u64();
        BridgeAsk(PreparedAsk {
            kind: if is_confirmation {
                AnswerKind::Confirmation
            } else {
                AnswerKind::Clarification
            },
            event_id,
            reply_token,
            event,
            allows_default: false,
            timeout_seconds,
            longest_seconds: longest.unwrap_or(0).max(timeout_seconds),
        })
    }

    pub(crate) fn event(&self) -> &Value {
        &self.0.event
    }

    pub(crate) fn reply_token(&self) -> &str {
        &self.0.reply_token
    }

    /// Waits until the ask is settled. Whatever is not an answer of the person is nothing.
    pub(crate) fn wait(&self, client: &HubClient) -> AskAnswer {
        waiting::wait(client, &self.0).map_or(AskAnswer::Nothing, |it| answer_of(&it))
    }

    /// Does the same, but no longer than this. `None` if the ask is still open then.
    pub(crate) fn wait_for(&self, client: &HubClient, longest: Duration) -> Option<AskAnswer> {
        match waiting::wait_for(client, &self.0, longest) {
            Ok(outcome) => outcome.map(|it| answer_of(&it)),
            Err(_) => Some(AskAnswer::Nothing),
        }
    }
}

/// The answer of the person, if there is one.
fn answer_of(outcome: &ReportedOutcome) -> AskAnswer {
    let is_reply = outcome.answer["decided_by"] == "reply";
    match outcome.word() {
        "accept" if outcome.is_yes() => AskAnswer::Accepted,
        "reject" if is_reply => AskAnswer::Rejected,
        "answered" if is_reply => outcome.response().map_or(AskAnswer::Nothing, AskAnswer::Words),
        _ if outcome.answer["decided_by"] == "no_listener" => AskAnswer::NobodyThere,
        _ => AskAnswer::Nothing,
    }
}
