//! Saboteurs that tamper with time and consent. Each does one thing wrong.

use std::sync::Arc;

use aaep::{Payload, Prefix};
use aaep_engine::{EngineInput, Now, Output, Record};
use serde_json::json;

use super::EngineSaboteur;

fn ours() -> Prefix {
    Prefix::parse(aaep::extension::PREFIX).expect("the form of a prefix")
}

/// Reads the maximum that an agent stated as four times as much.
pub(super) struct WaitLonger;

impl EngineSaboteur for WaitLonger {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { event, .. } = &mut input
            && let Some(data) = event.extensions.as_mut().and_then(|it| it.0.get_mut(&ours()))
            && let Some(most) = data.get("max_timeout_seconds").and_then(serde_json::Value::as_u64)
        {
            data.insert("max_timeout_seconds".to_owned(), json!(4 * most));
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, _: &mut Vec<Output>) {}
}

/// Accepts every request about the time of an ask.
pub(super) struct TimeForAll;

impl EngineSaboteur for TimeForAll {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::TimeReplied { is_accepted } = output {
                *is_accepted = true;
            }
        }
    }
}

/// Makes a tool run with another digest than the accepted one.
pub(super) struct OtherArguments;

impl EngineSaboteur for OtherArguments {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            let Output::Record(Record { event, .. }) = output else { continue };
            let Payload::ToolInvoked(_) = &event.payload else { continue };
            let mut changed = (**event).clone();
            if let Some(data) = changed.extensions.as_mut().and_then(|it| it.0.get_mut(&ours())) {
                let other = format!("sha-256:{}", "0".repeat(64));
                data.insert("action_digest".to_owned(), other.into());
                *event = Arc::new(changed);
            }
        }
    }
}

/// What the saboteur adds to the numbers of principals that publish.
const ELSEWHERE: u64 = 1 << 40;

/// Hides the asking principal from the engine, so that it may answer its own ask.
pub(super) struct OwnAnswer;

impl EngineSaboteur for OwnAnswer {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { principal, .. } | EngineInput::Withdraw { principal, .. } =
            &mut input
        {
            principal.0 += ELSEWHERE;
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Published { principal, .. }
            | Output::Refused { principal, .. }
            | Output::Asked { principal, .. }
            | Output::Settled { principal, .. }
            | Output::NoSuchAsk { principal, .. }
            | Output::Record(Record { principal, .. }) = output
            {
                // After a restart, outputs may carry principals that were never moved.
                principal.0 = principal.0.checked_sub(ELSEWHERE).unwrap_or(principal.0);
            }
        }
    }
}
