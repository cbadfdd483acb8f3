//! Helpers for all tests of the order: one-line events, and expected refusals.

mod bounds;
mod consent;
mod leaving;
mod rules;
mod stream;
mod walk;

use aaep::{Event, Message, Mode, Payload, Timestamp, ToolName};
use serde_json::{Value as Json, json};

use super::{Admitted, Grant, GrantedBy, OrderViolation, SessionOrder};
use aaep::ActionStakes;

/// The timestamp of events that do not set another, in milliseconds since 1970 began.
const START_MS: i64 = 1_780_000_000_000;

/// Reads a message that a strict reader must find valid.
fn message(document: &Json) -> Message {
    let reading = aaep::read(document.to_string().as_bytes(), Mode::Strict);
    reading.message.unwrap_or_else(|| panic!("{:?} in {document}", reading.violations))
}

/// An event of the agent "a" in the session `sess_1`.
fn event(kind: &str, fields: Json) -> Event {
    let mut document = json!({
        "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
        "type": format!("aaep:agent.{kind}"),
        "event_id": "evt_1",
        "session_id": "sess_1",
        "timestamp": Timestamp::from_unix_ms(START_MS).expect("a moment").as_str(),
        "producer": { "agent_id": "a" },
        "urgency": "critical",
        "localization_hints": { "primary_language": "en" },
    });
    if let Json::Object(fields) = fields {
        fields.into_iter().for_each(|(key, value)| document[key] = value);
    }
    let Message::Event(event) = message(&document) else { panic!("no event: {document}") };
    *event
}

fn started() -> Event {
    event("session.started", json!({ "summary_normal": "Books a train." }))
}

fn completed() -> Event {
    event("session.completed", json!({ "summary_normal": "The train is booked." }))
}

fn errored() -> Event {
    let words = "The timetable does not answer.";
    event("session.errored", json!({ "error_category": "transient", "summary_normal": words }))
}

fn cancelled() -> Event {
    let words = "Stopped as you asked.";
    event("session.cancelled", json!({ "cancelled_by": "user", "summary_normal": words }))
}

fn changed(from: &str, to: &str) -> Event {
    event("state.changed", json!({ "from_state": from, "to_state": to }))
}

fn progress() -> Event {
    event("progress.updated", json!({ "progress": { "percent": 40 } }))
}

fn invoked(tool: &str, call: Option<&str>) -> Event {
    let fields = json!({ "tool": tool, "summary_normal": "Looks up trains." });
    event("tool.invoked", with(fields, "tool_call_id", call))
}

fn irreversible(tool: &str) -> Event {
    let fields = json!({
        "tool": tool, "irreversible": true, "risk_level": "low",
        "summary_normal": "Buys the ticket.",
    });
    event("tool.invoked", fields)
}

/// A reversible invocation with this risk.
fn risky(tool: &str, risk_level: &str) -> Event {
    let fields = json!({
        "tool": tool, "irreversible": false, "risk_level": risk_level, "summary_normal": "Reserves.",
    });
    event("tool.invoked", fields)
}

fn done(tool: &str, call: Option<&str>) -> Event {
    let fields = json!({ "tool": tool, "status": "success" });
    event("tool.completed", with(fields, "tool_call_id", call))
}

fn chunk(output: Option<&str>, position: u64, text: &str, complete: bool) -> Event {
    let fields = json!({ "chunk": text, "position": position, "complete": complete });
    event("output.streaming", with(fields, "output_id", output))
}

fn confirmation(token: &str, default_decision: &str) -> Event {
    let fields = json!({
        "action": "Buy the ticket to Ibadan.",
        "consequence": "The fare is paid at once.",
        "reply_token": token,
        "timeout_seconds": 60,
        "default_decision": default_decision,
        "risk_level": "low",
        "irreversible": true,
    });
    event("awaiting.confirmation", fields)
}

fn clarification() -> Event {
    let fields = json!({ "question": "Which day?", "reply_token": "rpl_q", "timeout_seconds": 60 });
    event("awaiting.clarification", fields)
}

fn handoff() -> Event {
    event("handoff.requested", json!({ "reason": "A clerk must sign.", "target_kind": "human" }))
}

fn with(mut fields: Json, key: &str, value: Option<&str>) -> Json {
    if let Some(value) = value {
        fields[key] = value.into();
    }
    fields
}

/// Changes to an event that can be chained.
trait EventEdit {
    fn by(self, agent_id: &str) -> Self;
    fn at_ms(self, ms: i64) -> Self;
    fn numbered(self, number: u64) -> Self;
}

impl EventEdit for Event {
    fn by(mut self, agent_id: &str) -> Self {
        agent_id.clone_into(&mut self.envelope.producer.agent_id);
        self
    }

    fn at_ms(mut self, ms: i64) -> Self {
        self.envelope.timestamp = Timestamp::from_unix_ms(START_MS + ms).expect("a moment");
        self
    }

    fn numbered(mut self, number: u64) -> Self {
        self.envelope.sequence_number = Some(number);
        self
    }
}

/// A grant for anything that the agent "a" may do.
fn for_any_tool() -> Grant {
    let (agent_id, presented) = ("a".into(), ActionStakes::WORST);
    Grant { agent_id, tool: None, digest: None, presented, granted_by: GrantedBy::Reply }
}

/// The same grant for this tool only.
fn for_tool(name: &str) -> Grant {
    Grant { tool: Some(tool(name)), ..for_any_tool() }
}

fn tool(name: &str) -> ToolName {
    ToolName::parse(name).expect("a tool name")
}

/// A session into which these events were admitted.
fn after(events: &[Event]) -> SessionOrder {
    let mut order = SessionOrder::new();
    for (at, event) in events.iter().enumerate() {
        order.admit(event).unwrap_or_else(|why| panic!("event {at} is refused: {why}"));
    }
    order
}

/// Asserts that the event may come after these events.
fn admits(events: &[Event], event: &Event) -> Admitted {
    after(events).admit(event).unwrap_or_else(|why| panic!("refused: {why}"))
}

/// Asserts that the event may not come after these events, and returns why. The refused event
/// leaves no trace.
fn refuses(events: &[Event], event: &Event) -> OrderViolation {
    refusal(&mut after(events), event)
}

fn refusal(order: &mut SessionOrder, event: &Event) -> OrderViolation {
    let before = order.clone();
    let why = order.admit(event).expect_err("the event is admitted");
    assert_eq!(*order, before, "something of a refused event remains");
    why
}
