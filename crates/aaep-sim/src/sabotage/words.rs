//! Saboteurs that omit required fields, grant levels that do not apply, or send text without normalizing it.

use aaep::Capabilities;
use aaep_engine::{EngineInput, Now, Output};

use super::EngineSaboteur;
use super::hands::{frames, rewrite};

/// Omits the summary of asks.
pub(super) struct LeaveOutSummary;

impl EngineSaboteur for LeaveOutSummary {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                let is_ask = json.get("reply_token").is_some();
                if let Some(event) = json.as_object_mut().filter(|_| is_ask) {
                    event.remove("summary_normal");
                }
            });
        }
    }
}

/// Omits the version of events.
pub(super) struct LeaveOutVersion;

impl EngineSaboteur for LeaveOutVersion {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                if let Some(event) = json.as_object_mut() {
                    event.remove("aaep_version");
                }
            });
        }
    }
}

/// Grants level 2 to all subscribers.
pub(super) struct GrantLevels;

impl EngineSaboteur for GrantLevels {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Accepted { message, .. } = output {
                let honored: &mut Capabilities = &mut message.honored_capabilities;
                honored.supported_conformance_levels = Some(vec![1, 2]);
            }
        }
    }
}

/// Sends a letter and its mark as two characters.
pub(super) struct DecomposeMarks;

impl EngineSaboteur for DecomposeMarks {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                if let Some(chunk) = json["chunk"].as_str() {
                    json["chunk"] = chunk.replace('\u{e9}', "e\u{301}").into();
                }
            });
        }
    }
}
