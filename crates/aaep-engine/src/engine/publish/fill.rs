//! Fills in what an agent left out of its event, before the event is parsed.
//!
//! Ids of tool calls and outputs that are made here have a form of their own, so that they are
//! recognized after a restart: the recorded events say which calls run and how far each output is.

use aaep::event::reasoning::state;
use aaep::{CoreType, Object, SessionId};
use serde_json::Value;

use super::super::Engine;
use super::stamp;
use crate::clock::Now;
use crate::order::{NamelessOutput, SessionOrder};

/// The fields that [`Engine::fill`] can add to an event.
pub const FILLED_FIELDS: [&str; 10] = [
    "@context",
    "event_id",
    "session_id",
    "timestamp",
    "reply_token",
    "from_state",
    "urgency",
    "tool_call_id",
    "output_id",
    "position",
];

/// The fields that [`Engine::fill`] adds to an event of this type, as far as it can know them.
fn fields_of(core: Option<CoreType>) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match core {
        Some(CoreType::AwaitingConfirmation | CoreType::AwaitingClarification) => &["reply_token"],
        Some(CoreType::StateChanged) => &["from_state"],
        Some(CoreType::ToolInvoked | CoreType::ToolCompleted) => &["tool_call_id"],
        Some(CoreType::OutputStreaming) => &["output_id", "position"],
        _ => &[],
    };
    let critical: &[&str] =
        if core.is_some_and(CoreType::is_critical) { &["urgency"] } else { &[] };
    ["@context", "event_id", "session_id", "timestamp"].iter().chain(own).chain(critical).copied()
}

/// Whether an event has every field that [`Engine::fill`] would add.
pub fn is_filled(event: &Object) -> bool {
    fields_of(core_type(event)).all(|name| event.contains_key(name))
}

fn core_type(event: &Object) -> Option<CoreType> {
    CoreType::known(event.get("type")?.as_str()?)
}

impl Engine {
    /// Adds what an agent left out of its event: ids, the timestamp, the token of an ask, the state that a
    /// state change leaves, the call of a tool, and the output and position of a chunk. Works on the JSON
    /// object before it is parsed, so that the parsed event is complete. Where [`is_filled`] holds, it
    /// changes nothing.
    pub fn fill(&mut self, now: Now, event: &mut Object) {
        let core = core_type(event);
        let missing: Vec<&'static str> =
            fields_of(core).filter(|name| !event.contains_key(*name)).collect();
        for name in missing {
            let value = match name {
                "@context" => Some(aaep::CORE_CONTEXT.into()),
                "event_id" => Some(self.ids.event().as_str().into()),
                "session_id" => Some(self.ids.session().as_str().into()),
                "timestamp" => Some(self.stamp_of(now, event)),
                "reply_token" => Some(self.ids.reply_token().as_str().into()),
                "from_state" => Some(self.announced_state(event).unwrap_or(state::IDLE).into()),
                "urgency" => Some("critical".into()),
                "tool_call_id" if core == Some(CoreType::ToolInvoked) => {
                    Some(self.ids.tool_call().as_str().into())
                }
                "tool_call_id" => self.completed_call(event),
                "output_id" => self.output_of(event),
                _ => Some(self.next_position(event).into()),
            };
            if let Some(value) = value {
                event.insert(name.to_owned(), value);
            }
        }
    }

    /// The moment, never before the last timestamp of the session.
    fn stamp_of(&self, now: Now, event: &Object) -> Value {
        let session = session_of(event).and_then(|id| self.session(&id));
        let last_us = session.map_or(i64::MIN, |session| session.last_us);
        stamp(now.unix_us.max(last_us)).as_str().into()
    }

    /// The state in which subscribers believe the agent of an event to be.
    fn announced_state(&self, event: &Object) -> Option<&str> {
        let id = session_of(event)?;
        self.session(&id)?.announced.get(agent_of(event)?).map(String::as_str)
    }

    /// The call that this completion ends, if only one is possible. With none, the completion stays without
    /// an id and ends the oldest call of that tool without one, if there is any.
    fn completed_call(&self, event: &Object) -> Option<Value> {
        let tool = event.get("tool")?.as_str()?;
        let call = self.session_order(event)?.call_to_complete(tool, agent_of(event)?)?;
        Some(call.as_str().into())
    }

    /// The output of a chunk without `output_id`: the one that its agent has begun, or else a new one. An
    /// agent that counts positions itself may have one output without an id in each session (ruling 11).
    fn output_of(&mut self, event: &Object) -> Option<Value> {
        let is_counted = event.contains_key("position");
        let order = self.session_order(event);
        let nameless = order.map_or(NamelessOutput::None, SessionOrder::nameless_output);
        match nameless {
            NamelessOutput::Open => return None,
            NamelessOutput::None if is_counted => return None,
            NamelessOutput::None | NamelessOutput::Complete => {}
        }
        let begun = order.and_then(|order| order.output_to_continue(agent_of(event)?)).cloned();
        Some(begun.unwrap_or_else(|| self.ids.output()).as_str().into())
    }

    /// Where the next chunk of an output begins.
    fn next_position(&self, event: &Object) -> u64 {
        let output = event.get("output_id").and_then(Value::as_str).unwrap_or_default();
        self.session_order(event).map_or(0, |order| order.next_position(output))
    }

    fn session_order(&self, event: &Object) -> Option<&SessionOrder> {
        let id = session_of(event)?;
        self.session(&id).map(|session| &session.order)
    }
}

fn session_of(event: &Object) -> Option<SessionId> {
    SessionId::parse(event.get("session_id")?.as_str()?).ok()
}

fn agent_of(event: &Object) -> Option<&str> {
    event.get("producer")?.get("agent_id")?.as_str()
}
