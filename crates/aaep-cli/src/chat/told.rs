//! Events of the bridge as an announcer takes them: with ids, times and positions, as a hub would complete them.

use std::collections::HashMap;

use aaep::{Event, Message, Mode};
use serde_json::{Value, json};

use crate::keys::{moment, now_unix_ms};

/// How many names of the agent have a stand-in at once. Beyond that, they begin again.
const MAX_NAMES: usize = 10_000;

/// Completes events.
#[derive(Debug, Default)]
pub(super) struct ToldEvents {
    last_id: u64,
    names: HashMap<String, String>,
    made_names: u64,
    positions: HashMap<String, u64>,
    /// The event that was told last, for the voice of what comes from here.
    last: Option<Value>,
}

impl ToldEvents {
    /// The event, complete. `None` if it cannot be understood, which is then not told.
    pub(super) fn complete(&mut self, mut event: Value) -> Option<Event> {
        self.last = Some(event.clone());
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        if event.get("@context").is_none() {
            event["@context"] = aaep::CORE_CONTEXT.into();
        }
        self.last_id += 1;
        event["event_id"] = format!("evt_{}", self.last_id).into();
        event["timestamp"] = moment(now_unix_ms()).into();
        for (field, prefix) in
            [("session_id", "sess_"), ("tool_call_id", "call_"), ("output_id", "out_")]
        {
            if let Some(own) = event[field].as_str().map(str::to_owned) {
                event[field] = self.stand_in(prefix, &own).into();
            }
        }
        if let Some(output) = event["output_id"].as_str().map(str::to_owned) {
            let at = self.positions.get(&output).copied().unwrap_or(0);
            event["position"] = at.into();
            let length = event["chunk"].as_str().map_or(0, |it| it.chars().count() as u64);
            if event["complete"] == true {
                self.positions.remove(&output);
            } else {
                self.positions.insert(output, at + length);
            }
        }
        if kind.ends_with("state.changed") && event.get("from_state").is_none() {
            event["from_state"] = "idle".into();
        }
        if kind.contains("awaiting.") {
            event["reply_token"] = format!("rpl_{}", self.last_id).into();
        }
        if kind.contains("awaiting.") || kind.ends_with("errored") {
            event["urgency"] = "critical".into();
        }
        match aaep::read(event.to_string().as_bytes(), Mode::Tolerant).message {
            Some(Message::Event(event)) => Some(*event),
            _ => None,
        }
    }

    /// A question from here, in the voice of the agent.
    pub(super) fn question(&mut self, agent: &str, fields: Value) -> Option<Event> {
        let last = self.last.clone().unwrap_or_default();
        let own = || json!({ "agent_id": "agent", "agent_name": agent });
        let mut event = json!({
            "type": "aaep:agent.awaiting.clarification",
            "session_id": last["session_id"].as_str().unwrap_or("chat"),
            "producer": last.get("producer").cloned().unwrap_or_else(own),
            "timeout_seconds": 86_400,
        });
        if let Value::Object(fields) = fields {
            for (name, value) in fields {
                event[name] = value;
            }
        }
        let before = self.last.take();
        let question = self.complete(event);
        self.last = before;
        question
    }

    fn stand_in(&mut self, prefix: &str, own: &str) -> String {
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
            self.positions.clear();
        }
        let key = format!("{prefix}{own}");
        let made = &mut self.made_names;
        let name = self.names.entry(key).or_insert_with(|| {
            *made += 1;
            format!("{prefix}{made}")
        });
        name.clone()
    }
}
