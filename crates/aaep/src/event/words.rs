//! What an event says, for whoever has no better words for it.

use super::{Event, Payload};

impl Event {
    /// The words of the event: its summary, the normal one first, or else what it tells in a field of its
    /// own. Empty where it has no words. Foreign text: [`printable`](crate::printable) makes it fit for a
    /// terminal.
    pub fn words(&self) -> &str {
        match &self.payload {
            Payload::SessionStarted(it) => &it.summary_normal,
            Payload::SessionCompleted(it) => &it.summary_normal,
            Payload::SessionErrored(it) => &it.summary_normal,
            Payload::SessionCancelled(it) => &it.summary_normal,
            Payload::ToolInvoked(it) => &it.summary_normal,
            Payload::OutputStreaming(it) => &it.chunk,
            Payload::StateChanged(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], "")
            }
            Payload::ProgressUpdated(it) => {
                let description = it.progress.description.as_deref().unwrap_or_default();
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], description)
            }
            Payload::ToolCompleted(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], "")
            }
            Payload::AwaitingConfirmation(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.action)
            }
            Payload::AwaitingClarification(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.question)
            }
            Payload::HandoffRequested(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.reason)
            }
            Payload::Extension(it) => {
                it.fields.get("summary_normal").and_then(|it| it.as_str()).unwrap_or_default()
            }
        }
    }
}

fn first<'t>(summaries: [&'t Option<String>; 3], otherwise: &'t str) -> &'t str {
    summaries.into_iter().flatten().next().map_or(otherwise, String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::{Message, Mode, read};

    fn words(kind: &str, fields: &Json) -> String {
        let mut event = json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": kind, "event_id": "evt_1",
            "session_id": "sess_1", "timestamp": "2026-05-24T14:22:11.342Z",
            "producer": { "agent_id": "weaver" }, "urgency": "critical",
        });
        for (key, value) in fields.as_object().expect("an object") {
            event[key] = value.clone();
        }
        match read(event.to_string().as_bytes(), Mode::Tolerant).message {
            Some(Message::Event(event)) => event.words().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_event_says_what_it_has() {
        let begun = json!({ "summary_normal": "Begun." });
        assert_eq!(words("aaep:agent.session.started", &begun), "Begun.");
        let progress = json!({ "progress": { "percent": 5, "description": "Row 5" } });
        assert_eq!(words("aaep:agent.progress.updated", &progress), "Row 5");
        let state = json!({ "from_state": "idle", "to_state": "thinking", "summary_terse": "Hm." });
        assert_eq!(words("aaep:agent.state.changed", &state), "Hm.");
        let chunk = json!({ "chunk": "Once", "position": 0, "complete": false });
        assert_eq!(words("aaep:agent.output.streaming", &chunk), "Once");
        let asked = json!({
            "action": "Delete.", "consequence": "Gone.", "reply_token": "rpl_1",
            "timeout_seconds": 5, "default_decision": "reject",
        });
        assert_eq!(words("aaep:agent.awaiting.confirmation", &asked), "Delete.");
        assert_eq!(words("lumen:lamp.lit", &json!({ "summary_normal": "Light." })), "Light.");
        assert_eq!(words("lumen:lamp.lit", &json!({ "summary_normal": 7 })), "");
    }
}
