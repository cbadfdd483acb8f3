//! Saboteurs, each of which does one thing wrong and nothing else, and helpers to change frames.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Event, EventId, Message, Mode, Payload};
use aaep_engine::{
    Author, EngineInput, Frame, Now, Output, PrincipalNumber, Record, SubscriberKey,
};
use serde_json::Value;

use super::EngineSaboteur;

/// Reads the event in a frame.
pub(super) fn event(frame: &Frame) -> Option<Box<Event>> {
    match aaep::read(&frame.json, Mode::Tolerant).message {
        Some(Message::Event(event)) => Some(event),
        _ => None,
    }
}

/// A copy of a frame with changed JSON.
pub(super) fn rewrite(frame: &Frame, change: impl FnOnce(&mut Value)) -> Arc<Frame> {
    let mut json: Value = serde_json::from_slice(&frame.json).unwrap_or_default();
    change(&mut json);
    Arc::new(Frame {
        event_id: frame.event_id.clone(),
        is_critical: frame.is_critical,
        json: json.to_string().into_bytes().into(),
    })
}

pub(super) fn frames(
    outputs: &mut [Output],
) -> impl Iterator<Item = (&mut Arc<Frame>, &mut Vec<SubscriberKey>)> {
    outputs.iter_mut().filter_map(|output| match output {
        Output::Deliver { frame, to } => Some((frame, to)),
        _ => None,
    })
}

/// Adds a field that does not exist in any event.
pub(super) struct GarbleFrame;

impl EngineSaboteur for GarbleFrame {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| json["an_unknown_field"] = true.into());
        }
    }
}

/// Keeps a session that should be deleted.
pub(super) struct KeepDeleted;

impl EngineSaboteur for KeepDeleted {
    fn before(&mut self, _: Now, input: EngineInput) -> EngineInput {
        if matches!(input, EngineInput::DeleteSession { .. }) { EngineInput::Tick } else { input }
    }

    fn after(&mut self, _: Now, _: &EngineInput, _: &mut Vec<Output>) {}
}

/// Asks for a tick in the past.
pub(super) struct RushDeadline(pub(super) u64);

impl EngineSaboteur for RushDeadline {
    fn after(&mut self, now: Now, _: &EngineInput, _: &mut Vec<Output>) {
        self.0 = now.monotonic_us;
    }

    fn deadline(&self) -> Option<u64> {
        Some(self.0)
    }
}

/// Grants more than the subscriber requested.
pub(super) struct GrantMore;

impl EngineSaboteur for GrantMore {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Accepted { message, .. } = output {
                let rate = &mut message.honored_capabilities.max_events_per_second;
                *rate = rate.map(|rate| rate * 2);
            }
        }
    }
}

/// Repeats an output thousands of times.
pub(super) struct FloodOutputs;

impl EngineSaboteur for FloodOutputs {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        if matches!(input, EngineInput::Publish { .. }) {
            outputs.extend(std::iter::repeat_n(Output::NoSuchSubscription, 5000));
        }
    }
}

/// Sends events after the budget is spent: it grants a lower rate than it keeps.
#[derive(Default)]
pub(super) struct ExceedRate {
    asked: BTreeMap<SubscriberKey, u64>,
}

impl EngineSaboteur for ExceedRate {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Subscribe { request, .. } = &mut input
            && let Some(rate) = &mut request.capabilities.max_events_per_second
        {
            *rate += 1;
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Accepted { subscriber, message } = output
                && let Some(rate) = &mut message.honored_capabilities.max_events_per_second
                && *rate > 1
            {
                *rate -= 1;
                self.asked.insert(*subscriber, *rate);
            }
        }
    }
}

/// Sends every frame to all subscribers.
#[derive(Default)]
pub(super) struct SendToEveryone {
    all: BTreeSet<SubscriberKey>,
}

impl EngineSaboteur for SendToEveryone {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs.iter() {
            if let Output::Accepted { subscriber, .. } = output {
                self.all.insert(*subscriber);
            }
        }
        for (frame, to) in frames(outputs) {
            if event(frame).is_some_and(|it| matches!(it.payload, Payload::ProgressUpdated(_))) {
                to.extend(self.all.iter().copied());
                to.sort_unstable();
                to.dedup();
            }
        }
    }
}

/// Sends to subscribers whose wire is full.
#[derive(Default)]
pub(super) struct PushToFullWire {
    full: BTreeSet<SubscriberKey>,
}

impl EngineSaboteur for PushToFullWire {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        match input {
            EngineInput::Block { subscriber } | EngineInput::Disconnect { subscriber } => {
                self.full.insert(*subscriber);
            }
            _ => {}
        }
        for (_, to) in frames(outputs) {
            to.extend(self.full.iter().copied());
        }
    }
}

/// Drops critical frames.
pub(super) struct DropCritical;

impl EngineSaboteur for DropCritical {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, to) in frames(outputs) {
            if frame.is_critical {
                to.pop();
            }
        }
    }
}

/// Holds critical frames until the next input.
#[derive(Default)]
pub(super) struct HoldCritical {
    held: Vec<Output>,
}

impl EngineSaboteur for HoldCritical {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        let is_critical =
            |output: &Output| matches!(output, Output::Deliver { frame, .. } if frame.is_critical);
        let (now, rest): (Vec<_>, Vec<_>) = outputs.drain(..).partition(is_critical);
        outputs.append(&mut self.held);
        outputs.extend(rest);
        self.held = now;
    }
}

/// Sends no critical events to subscribers that reconnect.
pub(super) struct ForgetOnReturn;

impl EngineSaboteur for ForgetOnReturn {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        if matches!(input, EngineInput::Reconnect { .. }) {
            outputs.retain(|it| !matches!(it, Output::Deliver { frame, .. } if frame.is_critical));
        }
    }
}

/// Sends each outcome to the agent twice.
pub(super) struct AnswerTwice;

impl EngineSaboteur for AnswerTwice {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        let answers: Vec<Output> =
            outputs.iter().filter(|it| matches!(it, Output::Settled { .. })).cloned().collect();
        outputs.extend(answers);
    }
}

/// Treats silence as an accept.
pub(super) struct AlwaysAccept;

impl EngineSaboteur for AlwaysAccept {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Settled { outcome, decided_by, .. } = output
                && *outcome == AskOutcome::Reject
                && *decided_by != DecidedBy::Reply
            {
                *outcome = AskOutcome::Accept;
            }
        }
    }
}

/// Tells every replying subscriber that its reply was accepted.
pub(super) struct EveryReplyCounts;

impl EngineSaboteur for EveryReplyCounts {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Replied { is_accepted } = output {
                *is_accepted = true;
            }
        }
    }
}

/// Drops the outcomes of asks that nobody answered.
pub(super) struct NeverSettle;

impl EngineSaboteur for NeverSettle {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        outputs.retain(|output| match output {
            Output::Settled { decided_by, .. } => {
                matches!(decided_by, DecidedBy::Reply | DecidedBy::Withdrawn)
            }
            _ => true,
        });
    }
}

/// Sends confirmations to all subscribers.
#[derive(Default)]
pub(super) struct AskEveryone {
    all: BTreeSet<SubscriberKey>,
}

impl EngineSaboteur for AskEveryone {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs.iter() {
            if let Output::Accepted { subscriber, .. } = output {
                self.all.insert(*subscriber);
            }
        }
        if let EngineInput::Disconnect { subscriber } | EngineInput::Block { subscriber } = input {
            self.all.remove(subscriber);
        }
        for (frame, to) in frames(outputs) {
            let is_ask = event(frame)
                .is_some_and(|it| matches!(it.payload, Payload::AwaitingConfirmation(_)));
            if is_ask {
                to.extend(self.all.iter().copied());
                to.sort_unstable();
                to.dedup();
            }
        }
    }
}

/// Records every tool as irreversible, so that it runs without the answer that it needs.
pub(super) struct ForgetAccept;

impl EngineSaboteur for ForgetAccept {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs.iter_mut() {
            if let Output::Record(Record { event, .. }) = output
                && let Payload::ToolInvoked(tool) = &event.payload
            {
                let mut changed = (**event).clone();
                let tool =
                    aaep::event::action::ToolInvoked { irreversible: Some(true), ..tool.clone() };
                changed.payload = tool.into();
                *event = Arc::new(changed);
            }
        }
    }
}

/// Sends another event of a session after its end.
#[derive(Default)]
pub(super) struct AfterEnd {
    last: Option<Output>,
}

impl EngineSaboteur for AfterEnd {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        let mut more = Vec::new();
        for output in outputs.iter() {
            let Output::Deliver { frame, to } = output else { continue };
            let Some(event) = event(frame) else { continue };
            if event.event_type().core().is_some_and(aaep::CoreType::is_terminal) {
                let id =
                    EventId::parse(&format!("{}x", frame.event_id)).expect("the form of an id");
                let json: Value = serde_json::from_slice(&frame.json).unwrap_or_default();
                let mut progress = serde_json::json!({"type": "aaep:agent.state.changed",
                    "from_state": "idle", "to_state": "idle", "urgency": "critical"});
                for key in [
                    "@context",
                    "aaep_version",
                    "session_id",
                    "timestamp",
                    "producer",
                    "localization_hints",
                ] {
                    progress[key] = json[key].clone();
                }
                progress["event_id"] = id.as_str().into();
                let json = progress.to_string().into_bytes().into();
                let frame = Arc::new(Frame { event_id: id, is_critical: true, json });
                more.push(Output::Deliver { frame, to: to.clone() });
            }
        }
        self.last = more.last().cloned();
        outputs.extend(more);
    }
}

/// Records the events that it refuses.
pub(super) struct TakeRefused;

impl EngineSaboteur for TakeRefused {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        let is_refused = outputs.iter().any(|it| matches!(it, Output::Refused { .. }));
        if let (EngineInput::Publish { event, .. }, true) = (input, is_refused) {
            outputs.push(Output::Record(Record {
                principal: PrincipalNumber(0),
                tags: aaep_engine::AgentTags::default(),
                event: Arc::new((**event).clone()),
                json: Arc::default(),
                author: Author::Agent,
                unix_us: 0,
            }));
        }
    }
}

/// Sends the start of each session twice.
pub(super) struct SendTwice;

impl EngineSaboteur for SendTwice {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, to) in frames(outputs) {
            if event(frame).is_some_and(|it| matches!(it.payload, Payload::SessionStarted(_))) {
                let again = to.clone();
                to.extend(again);
            }
        }
    }
}

/// Holds a tool's start until after the next event of its session.
#[derive(Default)]
pub(super) struct SwapOrder {
    held: Option<Output>,
}

impl EngineSaboteur for SwapOrder {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        if outputs.iter().any(|it| matches!(it, Output::Deliver { .. })) {
            outputs.extend(self.held.take());
        }
        let is_tool = |it: &Output| match it {
            Output::Deliver { frame, .. } => {
                event(frame).is_some_and(|it| matches!(it.payload, Payload::ToolInvoked(_)))
            }
            _ => false,
        };
        if let Some(at) = outputs.iter().position(is_tool) {
            self.held = Some(outputs.remove(at));
        }
    }
}

/// Subtracts two from the sequence number of every second event.
#[derive(Default)]
pub(super) struct MisnumberEvents {
    count: u64,
}

impl EngineSaboteur for MisnumberEvents {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            self.count += 1;
            let odd = self.count % 2;
            *frame = rewrite(frame, |json| {
                if let Some(number) = json["sequence_number"].as_u64() {
                    json["sequence_number"] = number.saturating_sub(2 * odd).into();
                }
            });
        }
    }
}

/// Drops the start of every session.
pub(super) struct LoseStart;

impl EngineSaboteur for LoseStart {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        outputs.retain(|it| match it {
            Output::Deliver { frame, .. } => {
                !event(frame).is_some_and(|it| matches!(it.payload, Payload::SessionStarted(_)))
            }
            _ => true,
        });
    }
}

/// Drops every fifth piece of text.
#[derive(Default)]
pub(super) struct LoseText {
    count: u64,
}

impl EngineSaboteur for LoseText {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, to) in frames(outputs) {
            if event(frame).is_some_and(|it| matches!(it.payload, Payload::OutputStreaming(_))) {
                self.count += 1;
                if self.count.is_multiple_of(5) {
                    to.clear();
                }
            }
        }
    }
}

/// Repeats one character at the start of each piece of text.
pub(super) struct StutterText;

impl EngineSaboteur for StutterText {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                let position = json["position"].as_u64().filter(|at| *at > 0);
                if let (Some(position), Some(chunk)) = (position, json["chunk"].as_str()) {
                    let chunk = format!(" {chunk}");
                    json["chunk"] = chunk.into();
                    json["position"] = (position - 1).into();
                }
            });
        }
    }
}

/// Cuts the last characters off a piece of text.
pub(super) struct CutWord;

impl EngineSaboteur for CutWord {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for (frame, _) in frames(outputs) {
            *frame = rewrite(frame, |json| {
                let is_complete = json["complete"].as_bool().unwrap_or(true);
                if let (false, Some(chunk)) = (is_complete, json["chunk"].as_str()) {
                    let mut chars: Vec<char> = chunk.chars().collect();
                    chars.truncate(chars.len().saturating_sub(3).max(1));
                    json["chunk"] = chars.into_iter().collect::<String>().into();
                }
            });
        }
    }
}

/// Drops all non-critical events while the wire of any subscriber is full.
#[derive(Default)]
pub(super) struct WaitForAll {
    full: BTreeSet<SubscriberKey>,
}

impl EngineSaboteur for WaitForAll {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        match input {
            EngineInput::Block { subscriber } => drop(self.full.insert(*subscriber)),
            EngineInput::Unblock { subscriber } => drop(self.full.remove(subscriber)),
            _ => {}
        }
        if !self.full.is_empty() {
            outputs.retain(|it| !matches!(it, Output::Deliver { frame, .. } if !frame.is_critical));
        }
    }
}
