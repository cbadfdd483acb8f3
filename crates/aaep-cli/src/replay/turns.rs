//! The turns of a session: what an agent did up to its next complete output. Pure.

use aaep::event::reasoning::state;
use aaep::{Event, Payload};

/// Counts the turns of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnCounter {
    number: u32,
    /// Whether the agent has completed an output or is idle: its next action begins another turn.
    is_over: bool,
}

impl TurnCounter {
    /// The turn to which the next event belongs, from 1.
    pub(super) fn take(&mut self, event: &Event, is_by_hub: bool) -> u32 {
        let begins = self.number == 0 || (self.is_over && !is_by_hub && begins(event));
        if begins {
            self.number = self.number.saturating_add(1);
            self.is_over = false;
        }
        match &event.payload {
            Payload::OutputStreaming(piece) => self.is_over |= piece.complete,
            Payload::StateChanged(change) => self.is_over |= change.to_state == state::IDLE,
            _ => {}
        }
        self.number
    }
}

/// Whether an agent begins something with this event. Additions to its output belong to the same turn, and so does
/// the end.
fn begins(event: &Event) -> bool {
    match &event.payload {
        Payload::StateChanged(change) => change.to_state != state::IDLE,
        Payload::ToolInvoked(_)
        | Payload::ProgressUpdated(_)
        | Payload::AwaitingConfirmation(_)
        | Payload::AwaitingClarification(_)
        | Payload::HandoffRequested(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::tests::{confirmation, read};

    fn event(kind: &str, fields: &Value) -> Event {
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": format!("aaep:agent.{kind}"),
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "photos" },
        });
        for (key, value) in fields.as_object().expect("fields") {
            event[key] = value.clone();
        }
        read(&event)
    }

    fn says(complete: bool) -> Event {
        event("output.streaming", &json!({ "chunk": "x", "position": 0, "complete": complete }))
    }

    fn state(to: &str) -> Event {
        event("state.changed", &json!({ "from_state": "idle", "to_state": to }))
    }

    #[test]
    fn a_turn_ends_with_what_was_said_whole_and_the_next_begins_with_what_is_done() {
        let mut turns = TurnCounter::default();
        let started = event("session.started", &json!({ "summary_normal": "I begin." }));
        let tool = event("tool.invoked", &json!({ "tool": "ls", "summary_normal": "Listing." }));
        let end = event("session.completed", &json!({ "summary_normal": "Done." }));
        let numbers: Vec<u32> = [
            started,
            says(false),
            tool.clone(),
            says(true),
            says(true),
            tool,
            confirmation("rpl_1", &json!({})),
            says(true),
            end,
        ]
        .iter()
        .map(|event| turns.take(event, false))
        .collect();
        assert_eq!(numbers, [1, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn an_agent_that_rests_ends_its_turn_and_what_the_hub_says_begins_none() {
        let mut turns = TurnCounter::default();
        let steps = [("thinking", false), ("idle", false), ("thinking", true), ("thinking", false)];
        let numbers: Vec<u32> =
            steps.iter().map(|(to, by_hub)| turns.take(&state(to), *by_hub)).collect();
        assert_eq!(numbers, [1, 1, 1, 2]);
    }
}
