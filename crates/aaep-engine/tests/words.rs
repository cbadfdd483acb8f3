//! Words that the specification wants on every event, whatever the agent left out (ruling 34), and the languages that
//! they are in (ruling 22).

#[path = "common/support.rs"]
mod support;

use aaep_engine::order::OrderViolation;
use aaep_engine::{Output, Refusal};
use proptest::prelude::*;
use serde_json::json;
use support::*;

/// The chunks that a subscriber got, with their positions.
fn chunks(heard: &[Heard]) -> Vec<(u64, String)> {
    let texts = heard.iter().filter(|it| it.kind() == "output.streaming");
    texts
        .map(|it| (it.json["position"].as_u64().expect("a position"), it.text("chunk").to_owned()))
        .collect()
}

fn is_normal(text: &str) -> bool {
    as_sent(text) == text
}

#[test]
fn every_event_says_its_version() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.change("idle", "thinking");
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.chunk("Text.", 0, true);
    world.complete(SESSION);
    let heard = world.heard(&one);
    assert!(heard.len() > 5);
    for it in heard {
        assert_eq!(it.text("aaep_version"), "1.0.0", "{}", it.json);
    }
}

#[test]
fn words_are_in_normal_form_and_what_machines_compare_is_not_touched() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say(
        "awaiting.clarification",
        clarification(
            "rpl_1",
            json!({
                "question": "Quel cafe\u{301}\u{a0}?", "accepted_response_kinds": ["multiple_choice"],
                "choices": [
                    { "value": "cafe\u{301}", "label": "Le cafe\u{301}" },
                    { "value": "b", "label": "Rien" },
                ],
                "producer": { "agent_id": "cafe\u{301}", "agent_name": "Cafe\u{301}" },
                "question_yo": "S\u{323}e o\u{301} fe\u{301}\u{323}?",
            }),
        ),
    );
    let heard = world.heard(&one);
    let asked = heard.iter().find(|it| it.kind() == "awaiting.clarification").expect("asked");
    assert_eq!(asked.text("question"), "Quel caf\u{e9}\u{a0}?");
    assert_eq!(asked.text("summary_normal"), "Quel caf\u{e9}\u{a0}?");
    assert_eq!(asked.json["choices"][0]["label"], "Le caf\u{e9}");
    assert_eq!(asked.json["choices"][0]["value"], "cafe\u{301}", "it is sent back as it is");
    assert_eq!(asked.json["producer"]["agent_id"], "cafe\u{301}", "it is a name, not a word");
    assert_eq!(asked.json["producer"]["agent_name"], "Caf\u{e9}");
    let two = world.listen(2, json!({ "languages": ["yo"], "supports_clarification_reply": true }));
    world.pass_s(1);
    let heard = world.heard(&two);
    let asked = heard.iter().find(|it| it.kind() == "awaiting.clarification").expect("asked");
    for field in ["question", "summary_normal"] {
        assert!(asked.text(field).starts_with('\u{1e62}'), "{}", asked.json);
        assert!(is_normal(asked.text(field)));
    }
}

#[test]
fn an_ask_has_a_summary_whatever_its_agent_gave() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let heard = |world: &mut World, kind: &str| {
        let heard = world.take(&one);
        heard.into_iter().find(|it| it.kind() == kind).expect("asked").json
    };
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let asked = heard(&mut world, "awaiting.confirmation");
    assert_eq!(asked["summary_normal"], asked["action"]);
    world.say("awaiting.clarification", clarification("rpl_2", json!({})));
    let asked = heard(&mut world, "awaiting.clarification");
    assert_eq!(asked["summary_normal"], asked["question"]);
    let own = json!({ "summary_normal": "May I?", "action": "Do it." });
    world.say("awaiting.confirmation", confirmation("rpl_3", own));
    assert_eq!(heard(&mut world, "awaiting.confirmation")["summary_normal"], "May I?");
    // What would make the message too long is cut; the action stays whole.
    let long = "\u{6f22}".repeat(12_000);
    let fields = json!({ "action": long, "consequence": "x".repeat(16_000) });
    world.say("awaiting.confirmation", confirmation("rpl_4", fields));
    let asked = heard(&mut world, "awaiting.confirmation");
    assert_eq!(asked["action"], long.as_str());
    let summary = asked["summary_normal"].as_str().expect("a summary");
    assert_eq!(summary.chars().count(), 401);
    assert!(asked.to_string().len() <= 64 * 1024);
}

#[test]
fn a_position_counts_what_is_sent_however_the_agent_counts() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.chunk("Cafe\u{301} ", 0, false);
    // The agent counts its own text: six code points, of which five were sent.
    world.chunk("noir. ", 6, false);
    assert!(matches!(
        refusal(&world.offer_event(
            SESSION,
            "output.streaming",
            json!({ "chunk": "?", "position": 13, "complete": false }),
        )),
        Some(Refusal::Order(OrderViolation::PositionDoesNotFollow { expected: 12 }))
    ));
    // It may also count what is sent.
    world.chunk("\u{958}", 11, false);
    world.chunk("!", 12, true);
    let expected = [(0, "Caf\u{e9} "), (5, "noir. "), (11, "\u{915}\u{93c}"), (13, "!")];
    let expected = expected.map(|(position, text)| (position, text.to_owned()));
    assert_eq!(chunks(world.heard(&one)), expected);
    let merged = world.listen(2, json!({ "coalesce_boundaries": ["completion"] }));
    world.chunk_of("out_2", "Cafe\u{301} ", 0, false);
    world.chunk_of("out_2", "noir.", 6, true);
    assert_eq!(chunks(world.heard(&merged)), [(0, "Caf\u{e9} noir.".to_owned())]);
}

#[test]
fn a_mark_that_begins_a_chunk_stays_a_character_of_its_own() {
    let mut world = World::started();
    let (plain, merged) = (world.listen(1, everything()), world.listen(2, json!({})));
    world.chunk("Cafe", 0, false);
    world.chunk("\u{301} noir.", 4, true);
    // What was sent cannot be taken back, and every subscription counts alike.
    let expected = [(0, "Cafe".to_owned()), (4, "\u{301} noir.".to_owned())];
    assert_eq!(chunks(world.heard(&plain)), expected);
    assert_eq!(chunks(world.heard(&merged)), [(0, "Cafe\u{301} noir.".to_owned())]);
}

#[test]
fn after_a_restart_an_agent_goes_on_counting_as_before() {
    let mut world = World::started();
    world.chunk("Cafe\u{301} ", 0, false);
    world.chunk("noir ", 6, false);
    world.restart(1);
    let one = world.listen(1, everything());
    world.chunk("e\u{301}.", 11, false);
    world.chunk("!", 14, true);
    let expected = [(10, "\u{e9}.".to_owned()), (12, "!".to_owned())];
    assert_eq!(chunks(world.heard(&one)), expected);
}

#[test]
fn what_would_grow_beyond_the_limits_stays_as_it_is() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let long = "\u{958}".repeat(16_384);
    world.chunk(&long, 0, false);
    world.chunk("!", 16_384, true);
    world.say("tool.invoked", json!({ "tool": "a", "summary_normal": long }));
    let heard = world.heard(&one);
    let texts: Vec<&str> =
        heard
            .iter()
            .map(|it| {
                if it.kind() == "tool.invoked" {
                    it.text("summary_normal")
                } else {
                    it.text("chunk")
                }
            })
            .filter(|it| !it.is_empty())
            .collect();
    assert_eq!(texts, [long.as_str(), "!", long.as_str()]);
}

#[test]
fn a_language_that_an_agent_speaks_is_offered_from_then_on() {
    let mut world = World::started();
    let honored = |world: &mut World, principal: u64| {
        let outputs = world.request(principal, true, json!({ "languages": ["ha-NG", "fr"] }), None);
        let (_, message) = accepted(&outputs).expect("accepted");
        message.honored_capabilities.languages.clone()
    };
    assert_eq!(honored(&mut world, 1), None);
    let words =
        json!({ "tool": "a", "summary_normal": "Lists.", "summary_normal_ha": "Yana karanta." });
    world.say("tool.invoked", words);
    let tags = honored(&mut world, 2).expect("one is spoken");
    assert_eq!(tags.iter().map(aaep::LanguageTag::as_str).collect::<Vec<_>>(), ["ha-NG"]);
    let hausa = world.listen(3, json!({ "languages": ["ha-NG"] }));
    let words =
        json!({ "tool": "b", "summary_normal": "Lists.", "summary_normal_ha": "Yana karanta." });
    world.say("tool.invoked", words);
    let heard = world.heard(&hausa);
    let told = heard.iter().find(|it| it.kind() == "tool.invoked").expect("told");
    assert_eq!(told.text("summary_normal"), "Yana karanta.");
    assert_eq!(told.json["localization_hints"]["primary_language"], "ha");
    world.restart(1);
    assert!(honored(&mut world, 4).is_some(), "it is still spoken after a restart");
}

#[test]
fn no_agent_can_fill_the_list_of_languages() {
    let mut world = World::started();
    for number in 0..100 {
        let tag = format!("x-a{number}");
        let fields = json!({
            "tool": "a", "summary_normal": "Lists.", "localization_hints": { "primary_language": tag },
            "tool_call_id": format!("call_{number}"),
        });
        world.say("tool.invoked", fields);
    }
    assert_eq!(world.engine.offer().languages.len(), 3 + 8);
    let another = World::draft(
        "sess_2",
        "session.started",
        json!({
            "summary_normal": "Bonjour.", "localization_hints": { "primary_language": "fr" },
        }),
    );
    world.publish(AGENT + 1, another);
    assert_eq!(world.engine.offer().languages.len(), 3 + 9, "nobody else notices");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Whatever an agent streams, every subscription gets the same characters at the same places.
    #[test]
    fn every_subscription_counts_the_same_text(
        texts in proptest::collection::vec(
            proptest::string::string_regex("[a-e\u{e9} \u{301}\u{323}\u{93c}\u{915}\u{958}k.\u{212a}\u{1100}\u{1161}\n]{0,8}").expect("a pattern"),
            1..12,
        ),
        boundary in prop::sample::select(vec!["word", "sentence", "paragraph", "completion"]),
        counts_sent in any::<bool>(),
    ) {
        let mut world = World::started();
        let plain = world.listen(1, everything());
        let merged = world.listen(2, json!({ "coalesce_boundaries": [boundary] }));
        let (mut own, mut sent) = (0, 0);
        for (number, text) in texts.iter().enumerate() {
            let is_last = number + 1 == texts.len();
            world.chunk(text, if counts_sent { sent } else { own }, is_last);
            own += text.chars().count();
            sent += as_sent(text).chars().count();
        }
        let whole: String = texts.iter().map(|it| as_sent(it)).collect();
        for subscriber in [&plain, &merged] {
            let mut end = 0;
            let mut heard = String::new();
            for (position, text) in chunks(world.heard(subscriber)) {
                prop_assert_eq!(position, end, "no gap and nothing twice");
                end += text.chars().count() as u64;
                heard.push_str(&text);
            }
            prop_assert_eq!(&heard, &whole);
        }
        for (_, text) in chunks(world.heard(&plain)) {
            prop_assert!(is_normal(&text));
        }
    }
}

/// The refusal among outputs.
fn refusal(outputs: &[Output]) -> Option<Refusal> {
    outputs.iter().find_map(|output| match output {
        Output::Refused { refusal, .. } => Some(refusal.clone()),
        _ => None,
    })
}
