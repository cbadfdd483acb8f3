//! Events as the hub would complete them: in words, and whether each is valid and in its order.

use std::collections::HashMap;

use aaep::{Message, Mode, Severity};
use aaep_engine::order::StreamOrder;
use serde_json::Value;

pub(crate) fn words_of(event: &Value) -> String {
    let name = event["type"].as_str().expect("a type").trim_start_matches("aaep:agent.");
    let fields = ["action", "question", "chunk", "summary_normal", "error_message", "to_state"];
    let words = fields.iter().find_map(|field| event[*field].as_str());
    format!("{name}: {}", words.unwrap_or_default())
}

/// All events are valid as the hub completes them, and in order.
pub(crate) fn assert_sound(events: &[Value]) {
    let mut order = StreamOrder::new();
    let (mut positions, mut states, mut names) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (number, event) in events.iter().enumerate() {
        let mut event = event.clone();
        let session = event["session_id"].as_str().expect("a session").to_owned();
        let name = event["type"].as_str().expect("a type").to_owned();
        if event.get("@context").is_none() {
            event["@context"] = aaep::CORE_CONTEXT.into();
        }
        event["event_id"] = format!("evt_{number}").into();
        let mut stand_in = |prefix: &str, own: &str| {
            let known = names.len();
            format!("{prefix}{}", names.entry(own.to_owned()).or_insert(known))
        };
        event["session_id"] = stand_in("sess_", &session).into();
        let (second, ms) = (number / 1000, number % 1000);
        event["timestamp"] = format!("2026-11-02T06:20:{second:02}.{ms:03}Z").into();
        for (field, prefix) in [("tool_call_id", "call_"), ("output_id", "out_")] {
            if let Some(own) = event[field].as_str() {
                event[field] = stand_in(prefix, own).into();
            }
        }
        if name.ends_with("output.streaming") {
            let output = event["output_id"].as_str().expect("an output").to_owned();
            let at: &mut usize = positions.entry(output).or_default();
            event["position"] = (*at).into();
            *at += event["chunk"].as_str().expect("words").chars().count();
        }
        if name.ends_with("state.changed") {
            let to = event["to_state"].as_str().expect("a state").to_owned();
            event["from_state"] = states.insert(session, to).unwrap_or("idle".to_owned()).into();
        }
        if name.contains("awaiting.") {
            event["reply_token"] = format!("rpl_{number}").into();
        }
        if name.contains("awaiting.") || name.ends_with("errored") {
            event["urgency"] = "critical".into();
        }
        let reading = aaep::read(event.to_string().as_bytes(), Mode::Strict);
        let errors = reading.violations.iter().filter(|it| it.severity == Severity::Error);
        assert_eq!(errors.count(), 0, "{event}: {:?}", reading.violations);
        let message: Message = reading.message.expect("a message");
        let broken = order.observe(&message);
        // An accept is not seen in a stream without replies.
        let broken: Vec<String> = broken.iter().map(|it| format!("{it:?}")).collect();
        assert!(broken.iter().all(|it| it.contains("Accept")), "{event}: {broken:?}");
    }
}
