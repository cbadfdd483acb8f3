//! Every scene, played to its end with every kind of answer, is a valid sequence of a producer.

use aaep::{Message, Mode};
use serde_json::Value;

use super::*;

const PROMPTS: &[&str] = &[
    "Find old photos.",
    "Hello, please respond briefly.",
    "Tell me a short fact about the moon.",
    "Please use a tool to fetch some data, then respond.",
    "Write a short three-sentence paragraph.",
    "Please call a tool that does not exist: 'nothing'.",
    "Please call a tool with these arguments: url=https://api.example.com, api_key=sk-test-12345",
    "Please book a meeting room tomorrow at 2pm. Use a tool that requires confirmation before booking.",
    "Please send an email to test@example.com. Use a tool that requires confirmation.",
    "Please delete record ID 12345 (this is high-risk and irreversible).",
    "Please tell me about the weather. Ask me where I am first.",
    "Please request confirmation for any action you take.",
    "Please escalate this conversation to a human via handoff.",
    "Explain how rainbows form, step by step.",
    "Please trigger a deliberate error.",
];

/// The events of a scene when every ask is answered this way.
fn played(prompt: &str, answer: &SceneAnswer) -> Vec<Value> {
    let mut events = Vec::new();
    let mut steps: std::collections::VecDeque<SceneStep> = steps_for(prompt).into();
    while let Some(step) = steps.pop_front() {
        let (name, fields) = match step {
            SceneStep::Pause(_) => continue,
            SceneStep::Tell(name, fields) => (name, fields),
            SceneStep::Ask(name, fields, then) => {
                assert!(
                    steps.is_empty(),
                    "{prompt}: nothing is planned before the answer is known"
                );
                steps.extend(then(answer));
                (name, fields)
            }
        };
        events.push(merged(json!({ "type": format!("aaep:agent.{name}") }), fields));
    }
    events
}

fn answers() -> Vec<SceneAnswer> {
    let response = |text: &str| SceneAnswer { is_accepted: false, response: Some(text.to_owned()) };
    vec![
        SceneAnswer::default(),
        SceneAnswer { is_accepted: true, response: Some("2019".to_owned()) },
        response("2018"),
        response("Lagos"),
        response(""),
    ]
}

/// The event as the hub completes it.
fn completed_by_the_hub(event: &Value, number: usize) -> aaep::Event {
    let critical = ["awaiting.", "errored", "handoff."];
    let kind = event["type"].as_str().expect("a type");
    let mut whole = json!({
        "@context": aaep::CORE_CONTEXT,
        "event_id": format!("evt_{number}"),
        "session_id": "sess_1",
        "timestamp": format!("2026-11-02T06:20:00.{number:03}Z"),
        "producer": { "agent_id": "demo" },
        "localization_hints": { "primary_language": "en" },
    });
    if critical.iter().any(|it| kind.contains(it)) {
        whole["urgency"] = "critical".into();
    }
    if kind.contains("awaiting.") {
        whole["reply_token"] = format!("rpl_{number}").into();
    }
    let whole = merged(whole, event.clone());
    match aaep::read(whole.to_string().as_bytes(), Mode::Strict).into_result() {
        Ok(Message::Event(event)) => *event,
        other => panic!("{whole}: {other:?}"),
    }
}

#[test]
fn every_scene_is_valid_from_start_to_end() {
    for prompt in PROMPTS {
        for answer in answers() {
            let events = played(prompt, &answer);
            let kinds: Vec<&str> =
                events.iter().map(|it| it["type"].as_str().expect("a type")).collect();
            assert_eq!(kinds.first(), Some(&"aaep:agent.session.started"), "{prompt}");
            let ends = kinds.iter().filter(|it| {
                it.contains("completed") && it.contains("session") || it.contains("errored")
            });
            assert_eq!(ends.count(), 1, "{prompt}: {kinds:?}");
            for (number, event) in events.iter().enumerate() {
                completed_by_the_hub(event, number);
            }
        }
    }
}

#[test]
fn nothing_irreversible_happens_without_an_accept() {
    for prompt in PROMPTS {
        for answer in answers() {
            let acts = played(prompt, &answer)
                .iter()
                .any(|it| it["irreversible"] == true && it["type"] == "aaep:agent.tool.invoked");
            assert!(answer.is_accepted || !acts, "{prompt}: {answer:?}");
        }
    }
    let accepted = SceneAnswer { is_accepted: true, response: Some("2019".to_owned()) };
    let acting = |prompt: &&&str| {
        played(prompt, &accepted)
            .iter()
            .any(|it| it["irreversible"] == true && it["type"] == "aaep:agent.tool.invoked")
    };
    assert_eq!(PROMPTS.iter().filter(acting).count(), 3, "photos, email and record");
}

#[test]
fn what_is_done_is_exactly_what_was_asked_for() {
    let accepted = SceneAnswer { is_accepted: true, response: Some("2019".to_owned()) };
    for prompt in ["Find old photos.", "Send an email.", "Delete record 12345."] {
        let events = played(prompt, &accepted);
        let digest = |kind: &str| {
            let event = events.iter().find(|it| it["type"] == kind && it["irreversible"] == true);
            event.expect(kind)["extensions"]["agentvoice"]["action_digest"].clone()
        };
        let asked = digest("aaep:agent.awaiting.confirmation");
        assert!(asked.is_string(), "{prompt}");
        assert_eq!(asked, digest("aaep:agent.tool.invoked"), "{prompt}");
    }
}

#[test]
fn nothing_of_a_prompt_is_said_again() {
    let prompt = PROMPTS[6];
    let text = json!(played(prompt, &SceneAnswer::default())).to_string().to_lowercase();
    for secret in ["sk-", "12345", "api_key", "example.com"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn an_answer_is_repeated_only_as_far_as_it_is_harmless() {
    let answer = |text: &str| SceneAnswer { is_accepted: false, response: Some(text.to_owned()) };
    assert_eq!(answer(" Lagos\u{1b}[2J ").words().as_deref(), Some("Lagos[2J"));
    assert_eq!(answer("  ").words(), None);
    assert_eq!(answer(&"x".repeat(5000)).words().map(|it| it.len()), Some(60));
}
