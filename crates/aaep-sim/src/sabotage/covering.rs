//! Saboteurs that let an accept cover more than it does, or that hold back a reject. Each does one thing wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::event::human::Decision;
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Event, EventId, Payload, ReplyToken, SessionId};
use aaep_engine::{EngineInput, Now, Output, Record};

use super::EngineSaboteur;

/// An agent in a session.
type AskingAgent = (SessionId, String);

fn agent_of(event: &Event) -> AskingAgent {
    (event.envelope.session_id.clone(), event.envelope.producer.agent_id.clone())
}

/// The asks of agents, and which of them were accepted.
#[derive(Default)]
struct AcceptTracker {
    asked: BTreeMap<ReplyToken, AskingAgent>,
    by_reply: BTreeSet<AskingAgent>,
    by_default: BTreeSet<AskingAgent>,
}

impl AcceptTracker {
    fn follow(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Record(Record { event, .. }) => {
                    if let Payload::AwaitingConfirmation(asked) = &event.payload {
                        self.asked.insert(asked.reply_token.clone(), agent_of(event));
                    }
                }
                Output::Settled {
                    reply_token, outcome: AskOutcome::Accept, decided_by, ..
                } => {
                    let Some(agent) = self.asked.get(reply_token).cloned() else { continue };
                    let is_reply = *decided_by == DecidedBy::Reply;
                    if is_reply { &mut self.by_reply } else { &mut self.by_default }.insert(agent);
                }
                _ => {}
            }
        }
    }
}

/// Shows the engine another event than the agent published, and everyone else the original.
#[derive(Default)]
struct DisguisedEvents(BTreeMap<EventId, Event>);

impl DisguisedEvents {
    /// Keeps the original of an event and changes it for the engine.
    fn put_on(&mut self, event: &mut Event, change: impl FnOnce(&mut Event)) {
        self.0.insert(event.envelope.event_id.clone(), event.clone());
        change(event);
    }

    /// Puts the original events back into the outputs.
    fn take_off(&mut self, outputs: &mut [Output]) {
        for output in outputs {
            let Output::Record(Record { event, .. }) = output else { continue };
            if let Some(said) = self.0.remove(&event.envelope.event_id) {
                *event = Arc::new(said);
            }
        }
    }
}

/// Makes a tool look harmless.
fn play_down(event: &mut Event) {
    if let Payload::ToolInvoked(tool) = &mut event.payload {
        tool.irreversible = None;
        tool.risk_level = None;
    }
}

/// Treats silence as the consent of a person.
#[derive(Default)]
pub(super) struct TakeSilence {
    accepts: AcceptTracker,
    disguise: DisguisedEvents,
    /// Whether it does so only after a kill, in which it forgot how asks were decided.
    waits_for_kill: bool,
}

impl TakeSilence {
    /// A saboteur that forgets in a kill how asks were decided.
    pub(super) fn after_kill() -> Self {
        TakeSilence { waits_for_kill: true, ..TakeSilence::default() }
    }
}

impl EngineSaboteur for TakeSilence {
    fn killed(&mut self) {
        self.waits_for_kill = false;
    }

    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { event, .. } = &mut input
            && !self.waits_for_kill
            && self.accepts.by_default.contains(&agent_of(event))
        {
            self.disguise.put_on(event, play_down);
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        self.disguise.take_off(outputs);
        self.accepts.follow(outputs);
    }
}

/// Treats one accept as an accept of anything.
#[derive(Default)]
pub(super) struct TakeAnyYes {
    accepts: AcceptTracker,
    disguise: DisguisedEvents,
}

impl EngineSaboteur for TakeAnyYes {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { event, .. } = &mut input
            && self.accepts.by_reply.contains(&agent_of(event))
        {
            self.disguise.put_on(event, play_down);
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        self.disguise.take_off(outputs);
        self.accepts.follow(outputs);
    }
}

/// Lets every agent of a session use the accepts of the others.
#[derive(Default)]
pub(super) struct ShareAccepts {
    accepts: AcceptTracker,
    disguise: DisguisedEvents,
}

impl EngineSaboteur for ShareAccepts {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { event, .. } = &mut input
            && matches!(event.payload, Payload::ToolInvoked(_))
        {
            let session = &event.envelope.session_id;
            let asker = self.accepts.by_reply.iter().find(|(id, _)| id == session).cloned();
            if let Some((_, name)) = asker {
                self.disguise.put_on(event, |event| event.envelope.producer.agent_id = name);
            }
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        self.disguise.take_off(outputs);
        self.accepts.follow(outputs);
    }
}

/// Does not notice that a turn has ended.
#[derive(Default)]
pub(super) struct EndlessTurn {
    disguise: DisguisedEvents,
}

impl EngineSaboteur for EndlessTurn {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Publish { event, .. } = &mut input
            && matches!(&event.payload, Payload::StateChanged(change) if change.to_state == "idle")
        {
            self.disguise.put_on(event, |event| {
                if let Payload::StateChanged(change) = &mut event.payload {
                    "resting".clone_into(&mut change.to_state);
                }
            });
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        self.disguise.take_off(outputs);
    }
}

/// Ignores a reject that the agent did not list as allowed.
#[derive(Default)]
pub(super) struct RefuseNo {
    only_yes: BTreeSet<ReplyToken>,
}

impl EngineSaboteur for RefuseNo {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Confirm { reply, .. } = &mut input
            && reply.decision == Decision::Reject
            && self.only_yes.contains(&reply.reply_token)
        {
            reply.reply_token = ReplyToken::parse("rpl_0000000000000000").expect("a token");
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Record(Record { event, .. }) = output
                && let Payload::AwaitingConfirmation(asked) = &event.payload
                && asked.allowed_replies.iter().flatten().any(|it| it == "accept")
            {
                self.only_yes.insert(asked.reply_token.clone());
            }
        }
    }
}

/// Treats the reply of a rule as that of a person.
pub(super) struct RuleIsPerson;

impl EngineSaboteur for RuleIsPerson {
    fn before(&mut self, _: Now, mut input: EngineInput) -> EngineInput {
        if let EngineInput::Confirm { reply, .. } = &mut input {
            reply.decided_by = None;
        }
        input
    }

    fn after(&mut self, _: Now, _: &EngineInput, _: &mut Vec<Output>) {}
}
