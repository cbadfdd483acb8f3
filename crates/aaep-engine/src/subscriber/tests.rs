//! Helpers for all tests of the subscriber: one-line messages of a producer, and a clock.

mod agreement;
mod asking;
mod bounds;
mod handshake;
mod hearing;
mod interleaving;
mod order;

use aaep::event::human::Decision;
use aaep::{
    Capabilities, Event, EventId, ReplyToken, SessionId, SubscriptionId, Timestamp, Version,
};
use serde_json::{Value as Json, json};

use super::{
    CannotReply, ConfirmationDetails, HeardMessage, Received, SubscriberChange, SubscriberConfig,
    SubscriberRules, SubscriberViolation, WhyWithdrawn,
};
use crate::clock::Now;

/// The timestamp of events that do not set another, in milliseconds since 1970 began.
const START_MS: i64 = 1_780_000_000_000;

/// The moment `ms` milliseconds after the test began.
fn at(ms: u64) -> Now {
    let since = i64::try_from(ms).expect("a small number");
    Now { monotonic_us: ms * 1000, unix_us: (START_MS + since) * 1000 }
}

fn config() -> SubscriberConfig {
    SubscriberConfig {
        subscriber_id: "reader".to_owned(),
        subscriber_name: None,
        subscriber_version: None,
        version: Version::parse("1.0.0").expect("version"),
    }
}

/// The capabilities of a subscriber that can answer everything.
fn able() -> Capabilities {
    Capabilities {
        supports_confirmation_reply: Some(true),
        supports_clarification_reply: Some(true),
        ..Capabilities::new()
    }
}

/// The producer grants `sub_1` with these terms.
fn accepted(honored: &Capabilities) -> Json {
    json!({
        "type": "subscription.accepted",
        "subscription_id": "sub_1",
        "aaep_version": "1.0.0",
        "producer": { "agent_id": "hub" },
        "honored_capabilities": honored,
    })
}

/// A subscriber that requested these terms and got them.
fn subscribed(capabilities: &Capabilities) -> SubscriberRules {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(capabilities.clone()).expect("a request");
    let got = subscriber.get(0, &accepted(capabilities));
    assert_eq!((got.changes, got.violations), (vec![SubscriberChange::TermsChanged], vec![]));
    subscriber
}

/// A subscriber that can answer, in the session `sess_1`.
fn listening() -> SubscriberRules {
    let mut subscriber = subscribed(&able());
    let got = subscriber.get(0, &started());
    assert_eq!(got.violations, []);
    subscriber
}

impl SubscriberRules {
    /// Receives a message `ms` milliseconds after the test began.
    fn get(&mut self, ms: u64, message: &Json) -> Received {
        self.receive(at(ms), message.to_string().as_bytes())
    }

    fn accept(
        &mut self,
        ms: u64,
        name: &str,
    ) -> Result<aaep::reply::ConfirmationReply, CannotReply> {
        self.confirm(at(ms), &token(name), Decision::Accept, ConfirmationDetails::default())
    }

    fn open_tokens(&self) -> Vec<&str> {
        self.open_asks().map(|ask| ask.reply_token.as_str()).collect()
    }
}

/// An event of the agent "a" in `sess_1`, with an id derived from its contents.
fn event(kind: &str, fields: Json) -> Json {
    // FNV-1a: equal contents get the same id.
    let hash = format!("{kind}{fields}").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let id = format!("{hash:016x}");
    let mut document = json!({
        "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
        "type": format!("aaep:agent.{kind}"),
        "event_id": format!("evt_{id}"),
        "session_id": "sess_1",
        "timestamp": moment(0),
        "producer": { "agent_id": "a", "agent_name": "Ada" },
        "localization_hints": { "primary_language": "en" },
    });
    if kind.starts_with("awaiting") || kind == "session.errored" || kind == "handoff.requested" {
        document["urgency"] = "critical".into();
    }
    if let Json::Object(fields) = fields {
        fields.into_iter().for_each(|(key, value)| document[key] = value);
    }
    document
}

fn moment(ms: i64) -> String {
    Timestamp::from_unix_ms(START_MS + ms).expect("a moment").to_string()
}

fn started() -> Json {
    event("session.started", json!({ "summary_normal": "Books a train." }))
}

fn completed() -> Json {
    event("session.completed", json!({ "summary_normal": "The train is booked." }))
}

fn changed(from: &str, to: &str) -> Json {
    event("state.changed", json!({ "from_state": from, "to_state": to }))
}

fn progress(percent: u64) -> Json {
    event("progress.updated", json!({ "progress": { "percent": percent } }))
}

fn chunk(position: u64, text: &str, complete: bool) -> Json {
    let fields = json!({ "chunk": text, "position": position, "complete": complete });
    event("output.streaming", fields)
}

fn confirmation(name: &str, timeout_seconds: u64) -> Json {
    let fields = json!({
        "action": "Buy the ticket to Ibadan.",
        "consequence": "The fare is paid at once.",
        "reply_token": format!("rpl_{name}"),
        "timeout_seconds": timeout_seconds,
        "default_decision": "reject",
        "risk_level": "high",
        "irreversible": true,
    });
    event("awaiting.confirmation", fields)
}

fn clarification(name: &str, fields: Json) -> Json {
    let mut document = json!({
        "question": "Which day?",
        "reply_token": format!("rpl_{name}"),
        "timeout_seconds": 60,
    });
    if let Json::Object(fields) = fields {
        fields.into_iter().for_each(|(key, value)| document[key] = value);
    }
    event("awaiting.clarification", document)
}

/// A notice of a hub that says how an ask was settled.
fn notice(name: &str, outcome: &str, decided_by: &str) -> Json {
    let resolution = json!({
        "reply_token": format!("rpl_{name}"), "outcome": outcome, "decided_by": decided_by,
    });
    let fields = json!({
        "from_state": "awaiting_input",
        "to_state": "thinking",
        "extensions": { "agentvoice": { "resolution": resolution } },
    });
    event("state.changed", fields)
}

fn with(mut document: Json, key: &str, value: impl Into<Json>) -> Json {
    document[key] = value.into();
    document
}

fn in_session(document: Json, name: &str) -> Json {
    let document = with(document, "session_id", format!("sess_{name}"));
    let id = format!("{}x{name}", document["event_id"].as_str().expect("an id"));
    with(document, "event_id", id)
}

fn token(name: &str) -> ReplyToken {
    ReplyToken::parse(&format!("rpl_{name}")).expect("token")
}

fn session(name: &str) -> SessionId {
    SessionId::parse(&format!("sess_{name}")).expect("session")
}

fn opened(name: &str) -> SubscriberChange {
    SubscriberChange::AskOpened { reply_token: token(name) }
}

fn withdrawn(name: &str, why: WhyWithdrawn) -> SubscriberChange {
    SubscriberChange::AskWithdrawn { reply_token: token(name), why }
}

/// The codes of the violations.
fn codes(got: &Received) -> Vec<&'static str> {
    got.violations.iter().map(SubscriberViolation::code).collect()
}

fn heard_event(got: &Received) -> &Event {
    match &got.heard {
        Some(HeardMessage::Event(event)) => event,
        other => panic!("no new event but {other:?}: {:?}", got.violations),
    }
}

fn is_repeated(got: &Received) -> bool {
    matches!(got.heard, Some(HeardMessage::Repeated(_)))
}

fn event_id(document: &Json) -> EventId {
    EventId::parse(document["event_id"].as_str().expect("an id")).expect("an id")
}

fn subscription(name: &str) -> SubscriptionId {
    SubscriptionId::parse(&format!("sub_{name}")).expect("subscription")
}
