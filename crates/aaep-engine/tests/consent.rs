//! Consent to exactly one action (ruling 17, `docs/extension.md`): what was asked for is what may be
//! done, and an agent that says otherwise is stopped.

#[path = "common/support.rs"]
mod support;

use aaep::ToolName;
use aaep::extension::action_digest;
use aaep_engine::order::OrderViolation;
use aaep_engine::{Output, PrincipalNumber, Refusal};
use serde_json::{Value as Json, json};
use support::*;

fn digest(tool: &str, args: &Json) -> String {
    let tool = ToolName::parse(tool).expect("a tool");
    action_digest(&tool, args).expect("a digest").as_str().to_owned()
}

/// Fields with data of our extension.
fn with_ours(mut fields: Json, data: &Json) -> Json {
    merge(
        &mut fields,
        json!({
            "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
            "extensions": { "agentvoice": data },
        }),
    );
    fields
}

fn photos() -> Json {
    json!({ "path": "/photos" })
}

/// A session in which `delete` of exactly the photos was accepted.
fn accepted_photos() -> (World, Subscriber) {
    let mut world = World::started();
    let person = world.listen(1, everything());
    let asked = json!({ "tool": "delete", "action_digest": digest("delete", &photos()) });
    let question = with_ours(confirmation("rpl_1", json!({})), &asked);
    world.say("awaiting.confirmation", question);
    assert!(replied(&world.confirm(&person, "rpl_1", "accept")));
    (world, person)
}

fn invoke(world: &mut World, tool: &str, digest: Option<String>) -> Vec<Output> {
    let fields =
        json!({ "tool": tool, "summary_normal": "Deletes the folder.", "irreversible": true });
    let fields = match digest {
        Some(digest) => with_ours(fields, &json!({ "action_digest": digest })),
        None => fields,
    };
    world.offer_event(SESSION, "tool.invoked", fields)
}

fn violation(outputs: &[Output]) -> Option<&'static str> {
    match refusal(outputs) {
        Some(Refusal::Order(violation)) => Some(violation.code()),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[test]
fn what_was_accepted_may_be_done_once() {
    let (mut world, person) = accepted_photos();
    let right = digest("delete", &photos());
    assert_eq!(violation(&invoke(&mut world, "delete", Some(right.clone()))), None);
    let told = world.heard(&person).iter().any(|it| it.kind() == "tool.invoked");
    assert!(told, "the person hears that it is done");
    let again = violation(&invoke(&mut world, "delete", Some(right)));
    assert_eq!(again, Some("irreversible_without_accept"));
}

#[test]
fn other_arguments_another_tool_or_silence_are_refused_by_name_and_use_nothing_up() {
    let (mut world, person) = accepted_photos();
    let before = world.heard(&person).len();
    let changed = digest("delete", &json!({ "path": "/" }));
    let outputs = invoke(&mut world, "delete", Some(changed));
    let Some(Refusal::Order(why)) = refusal(&outputs) else { panic!("{outputs:?}") };
    assert_eq!(why.code(), "action_differs");
    assert!(why.to_string().contains("other arguments"), "{why}");
    assert_eq!(violation(&invoke(&mut world, "delete", None)), Some("action_digest_missing"));
    let other = invoke(&mut world, "format", Some(digest("delete", &photos())));
    assert_eq!(violation(&other), Some("other_tool_accepted"));
    assert_eq!(violation(&invoke(&mut world, "format", None)), Some("other_tool_accepted"));
    assert_eq!(world.heard(&person).len(), before, "nobody hears of what was refused");
    let right = Some(digest("delete", &photos()));
    assert_eq!(violation(&invoke(&mut world, "delete", right)), None, "the consent stands");
}

#[test]
fn a_looser_consent_does_not_cover_a_changed_action() {
    let (mut world, person) = accepted_photos();
    let more = json!({ "action": "Something else." });
    world.say("awaiting.confirmation", confirmation("rpl_2", more));
    world.confirm(&person, "rpl_2", "accept");
    let changed = Some(digest("delete", &json!({ "path": "/" })));
    assert_eq!(violation(&invoke(&mut world, "delete", changed.clone())), Some("action_differs"));
    assert_eq!(violation(&invoke(&mut world, "mail", None)), None, "as it is without digests");
    let right = Some(digest("delete", &photos()));
    assert_eq!(violation(&invoke(&mut world, "delete", right)), None);
    let spent = violation(&invoke(&mut world, "delete", changed));
    assert_eq!(spent, Some("irreversible_without_accept"));
}

#[test]
fn a_harmless_use_of_the_tool_leaves_the_consent() {
    let (mut world, _) = accepted_photos();
    let harmless = json!({ "tool": "delete", "summary_normal": "Counts the files." });
    world.say("tool.invoked", harmless);
    let right = Some(digest("delete", &photos()));
    assert_eq!(violation(&invoke(&mut world, "delete", right)), None);
}

#[test]
fn a_rejected_or_open_question_covers_nothing() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    let right = digest("delete", &photos());
    let asked = json!({ "tool": "delete", "action_digest": right });
    world.say("awaiting.confirmation", with_ours(confirmation("rpl_1", json!({})), &asked));
    let early = violation(&invoke(&mut world, "delete", Some(right.clone())));
    assert_eq!(early, Some("irreversible_without_accept"));
    world.confirm(&person, "rpl_1", "reject");
    let rejected = violation(&invoke(&mut world, "delete", Some(right)));
    assert_eq!(rejected, Some("irreversible_without_accept"));
}

#[test]
fn a_tool_alone_allows_that_tool_with_any_arguments() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    let asked = json!({ "tool": "delete" });
    world.say("awaiting.confirmation", with_ours(confirmation("rpl_1", json!({})), &asked));
    world.confirm(&person, "rpl_1", "accept");
    let other = violation(&invoke(&mut world, "format", None));
    assert_eq!(other, Some("irreversible_without_accept"));
    assert_eq!(violation(&invoke(&mut world, "delete", None)), None);
}

#[test]
fn without_a_digest_everything_is_as_the_specification_has_it() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.confirm(&person, "rpl_1", "accept");
    let stated = Some(digest("delete", &photos()));
    assert_eq!(violation(&invoke(&mut world, "delete", stated)), None);
}

#[test]
fn an_agent_does_not_speak_for_the_hub() {
    let resolution = json!({ "reply_token": "rpl_1", "outcome": "accept", "decided_by": "reply" });
    for data in [
        json!({ "resolution": resolution }),
        json!({ "resolution": 7, "max_timeout_seconds": 60 }),
        json!({ "gap": {} }),
        json!({ "held_back": 3 }),
        json!({ "merged": { "count": 2, "last_event_id": "evt_1" } }),
        json!({ "deadline": { "reply_token": "rpl_1", "at": "2026-05-28T20:26:40.000Z",
            "paused": false } }),
        json!({ "surprise": true }),
    ] {
        let mut world = World::started();
        let fields = with_ours(confirmation("rpl_1", json!({})), &data);
        let mut draft = World::draft(SESSION, "awaiting.confirmation", fields);
        world.engine.fill(world.now, &mut draft);
        // A strict reader refuses some of these by itself; the engine does not rely on it.
        let text = Json::Object(draft).to_string();
        let reading = aaep::read(text.as_bytes(), aaep::Mode::Tolerant);
        let Some(aaep::Message::Event(event)) = reading.message else { panic!("{text}") };
        let outputs = world.handle(aaep_engine::EngineInput::Publish {
            principal: PrincipalNumber(AGENT),
            tags: aaep_engine::AgentTags::default(),
            event,
        });
        assert_eq!(refusal(&outputs), Some(&Refusal::SpeaksForTheHub), "{data}");
    }
}

#[test]
fn what_an_agent_says_in_the_wrong_place_is_refused_with_advice() {
    let right = digest("delete", &photos());
    let question = || confirmation("rpl_1", json!({}));
    let progress = || json!({ "progress": { "percent": 1 } });
    for (kind, fields, data) in [
        ("awaiting.confirmation", question(), json!({ "action_digest": right })),
        ("awaiting.confirmation", question(), json!({ "max_timeout_seconds": 29 })),
        ("awaiting.clarification", clarification("rpl_1", json!({})), json!({ "tool": "x" })),
        ("progress.updated", progress(), json!({ "max_timeout_seconds": 60 })),
        ("progress.updated", progress(), json!({ "action_digest": right })),
        ("tool.invoked", irreversible_tool(), json!({ "tool": "delete" })),
    ] {
        let mut world = World::started();
        world.listen(1, everything());
        let outputs = world.offer_event(SESSION, kind, with_ours(fields, &data));
        let Some(Refusal::MisusesExtension(advice)) = refusal(&outputs) else {
            panic!("{kind} {data}: {outputs:?}")
        };
        assert!(advice.ends_with('.'), "{advice}");
        assert_eq!(world.engine.open_asks(), 0);
    }
}

#[test]
fn a_recorded_stream_is_held_to_the_digest_too() {
    let (mut world, person) = accepted_photos();
    let mut stream = aaep_engine::order::StreamOrder::new();
    // What a subscriber heard, and then a tool with other arguments that a bad hub let pass.
    let heard: Vec<_> = world.take(&person);
    let started = World::draft(SESSION, "session.started", json!({ "summary_normal": "Starts." }));
    let mut started = Json::Object(started);
    merge(
        &mut started,
        json!({ "@context": aaep::CORE_CONTEXT, "event_id": "evt_0",
            "timestamp": "2026-05-28T20:26:40.000Z" }),
    );
    assert!(stream.observe(&message(&started)).is_empty());
    for it in &heard {
        let found = stream.observe_event(&it.event);
        assert_eq!(found, [], "{}", it.json);
    }
    let mut tool = started.clone();
    merge(
        &mut tool,
        with_ours(
            irreversible_tool(),
            &json!({ "action_digest":
        digest("delete", &json!({ "path": "/" })) }),
        ),
    );
    merge(&mut tool, json!({ "type": "aaep:agent.tool.invoked", "event_id": "evt_tool" }));
    let found = stream.observe(&message(&tool));
    assert!(matches!(found[..], [OrderViolation::ActionDiffers { .. }]), "{found:?}");
}
