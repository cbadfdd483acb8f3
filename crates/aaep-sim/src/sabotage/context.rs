//! Saboteurs that remove what a subscriber needs to understand a critical event, or hold events
//! that should be sent at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::Payload;
use aaep_engine::{EngineInput, Frame, Now, Output, SubscriberKey};

use super::EngineSaboteur;
use super::hands::{event, frames, rewrite};

/// Drops the text that is sent directly before a critical end.
pub(super) struct LoseHeldText;

impl EngineSaboteur for LoseHeldText {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        outputs.retain(|output| {
            let Output::Deliver { frame, .. } = output else { return true };
            let is_text = |frame: &Frame| {
                event(frame).is_some_and(|it| matches!(it.payload, Payload::OutputStreaming(_)))
            };
            !(frame.is_critical && is_text(frame))
        });
    }
}

/// Labels every text that has a language with the same one.
pub(super) struct TranslateText;

impl EngineSaboteur for TranslateText {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            let has_language = |it: &aaep::Event| matches!(&it.payload, Payload::OutputStreaming(chunk) if chunk.language.is_some());
            if event(frame).is_some_and(|it| has_language(&it)) {
                *frame = rewrite(frame, |json| json["language"] = "de-DE".into());
            }
        }
    }
}

/// Sends asks before everything else in the same step.
pub(super) struct AskFirst;

impl EngineSaboteur for AskFirst {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        let is_ask = |output: &Output| match output {
            Output::Deliver { frame, .. } => event(frame).is_some_and(|it| {
                matches!(
                    it.payload,
                    Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_)
                )
            }),
            _ => false,
        };
        let is_deliver = |output: &Output| matches!(output, Output::Deliver { .. });
        let Some(first) = outputs.iter().position(is_deliver) else { return };
        let mut rest = outputs.split_off(first);
        rest.sort_by_key(|output| !is_ask(output));
        outputs.extend(rest);
    }
}

/// Holds tool events for subscribers with a pace until the next input.
#[derive(Default)]
pub(super) struct HoldTools {
    paced: BTreeSet<SubscriberKey>,
    held: Vec<Output>,
}

impl EngineSaboteur for HoldTools {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs.iter() {
            if let Output::Accepted { subscriber, message } = output
                && message.honored_capabilities.pace_wpm.is_some()
            {
                self.paced.insert(*subscriber);
            }
        }
        let mut late = std::mem::take(&mut self.held);
        for (frame, to) in frames(outputs) {
            let is_tool =
                event(frame).is_some_and(|it| matches!(it.payload, Payload::ToolInvoked(_)));
            if !is_tool {
                continue;
            }
            let (held, now): (Vec<SubscriberKey>, Vec<SubscriberKey>) =
                to.iter().partition(|it| self.paced.contains(it));
            *to = now;
            if !held.is_empty() {
                self.held.push(Output::Deliver { frame: Arc::clone(frame), to: held });
            }
        }
        outputs.append(&mut late);
    }
}

/// Holds the events of a lagging subscriber until there are two, and sends both together.
#[derive(Default)]
pub(super) struct SendBursts {
    rated: BTreeSet<SubscriberKey>,
    held: BTreeMap<SubscriberKey, Arc<Frame>>,
}

impl EngineSaboteur for SendBursts {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs.iter() {
            if let Output::Accepted { subscriber, message } = output
                && message.honored_capabilities.max_events_per_second.is_some()
            {
                self.rated.insert(*subscriber);
            }
        }
        if !matches!(input, EngineInput::Tick) {
            return;
        }
        for index in (0..outputs.len()).rev() {
            let Output::Deliver { frame, to } = &outputs[index] else { continue };
            let [subscriber] = to.as_slice() else { continue };
            if frame.is_critical || !self.rated.contains(subscriber) {
                continue;
            }
            let (subscriber, frame) = (*subscriber, Arc::clone(frame));
            if let Some(before) = self.held.remove(&subscriber) {
                outputs.insert(index, Output::Deliver { frame: before, to: vec![subscriber] });
            } else {
                outputs.remove(index);
                self.held.insert(subscriber, frame);
            }
        }
    }
}
