//! The hands of saboteurs that leave out words, or send them as they came.

use aaep::Capabilities;
use aaep_engine::{Input, Now, Output};

use super::Hand;
use super::hands::{frames, rewrite};

/// Leaves the summary out of asks.
pub(super) struct LeaveOutSummary;

impl Hand for LeaveOutSummary {
    fn after(&mut self, _: Now, _: &Input, outputs: &mut Vec<Output>) {
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

/// Leaves the version out of events.
pub(super) struct LeaveOutVersion;

impl Hand for LeaveOutVersion {
    fn after(&mut self, _: Now, _: &Input, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                if let Some(event) = json.as_object_mut() {
                    event.remove("aaep_version");
                }
            });
        }
    }
}

/// Grants level 2 to everyone.
pub(super) struct GrantLevels;

impl Hand for GrantLevels {
    fn after(&mut self, _: Now, _: &Input, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Accepted { message, .. } = output {
                let honored: &mut Capabilities = &mut message.honored_capabilities;
                honored.supported_conformance_levels = Some(vec![1, 2]);
            }
        }
    }
}

/// Sends letters and marks as two characters.
pub(super) struct Decompose;

impl Hand for Decompose {
    fn after(&mut self, _: Now, _: &Input, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                if let Some(chunk) = json["chunk"].as_str() {
                    json["chunk"] = chunk.replace('\u{e9}', "e\u{301}").into();
                }
            });
        }
    }
}
