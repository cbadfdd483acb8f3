//! What each subscriber gets of what happens: filters, words, languages, boundaries, numbers, and the
//! rate (§5.3.1, §5.5.4, §5.6, §11.1.3, rulings 5 to 7 and 22).

#[path = "common/support.rs"]
mod support;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use support::*;

fn progress(percent: u64) -> Json {
    json!({ "progress": { "percent": percent }, "summary_normal": format!("{percent} percent.") })
}

fn tool(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn filters(include: Json, exclude: Json) -> Json {
    let mut filters = json!({});
    filters["include"] = include;
    if exclude != json!([]) {
        filters["exclude"] = exclude;
    }
    json!({ "event_filters": filters })
}

#[test]
fn an_event_passes_when_an_include_matches_and_no_exclude_does() {
    let agent = || json!(["aaep:agent.*"]);
    let cases = [
        (json!(["aaep:agent.tool.*"]), json!([]), vec!["tool.invoked"]),
        (json!(["aaep:agent.tool.invoked"]), json!([]), vec!["tool.invoked"]),
        (json!(["aaep:agent.tool.completed"]), json!([]), vec![]),
        (agent(), json!(["aaep:agent.state.*"]), vec!["progress.updated", "tool.invoked"]),
        (agent(), json!(["aaep:agent.*"]), vec![]),
        (
            json!(["*"]),
            json!(["aaep:agent.tool.invoked"]),
            vec!["state.changed", "progress.updated", "x:y.z"],
        ),
        (agent(), json!([]), vec!["state.changed", "progress.updated", "tool.invoked"]),
    ];
    for (include, exclude, expected) in cases {
        let mut world = World::started();
        let one = world.listen(1, filters(include.clone(), exclude.clone()));
        world.take(&one);
        world.change("idle", "thinking");
        world.say("progress.updated", progress(1));
        world.say("tool.invoked", tool(1));
        let context = json!([aaep::CORE_CONTEXT, "https://example.org/x/v1"]);
        world.say("x:y.z", json!({ "@context": context, "words": "hm" }));
        assert_eq!(kinds(world.heard(&one)), expected, "{include} without {exclude}");
    }
}

#[test]
fn critical_events_pass_every_filter_rate_and_load_at_once() {
    let mut wishes = limited(1, filters(json!(["aaep:agent.tool.*"]), json!(["*"])));
    merge(&mut wishes, json!({ "cognitive_load": "low", "pace_wpm": 50 }));
    let mut world = World::started();
    let one = world.listen(1, wishes);
    world.take(&one);
    for number in 0..20 {
        world.say("tool.invoked", tool(number));
    }
    let handoff = json!({ "reason": "Too hard for me.", "target_kind": "human" });
    world.say("handoff.requested", handoff);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.say("awaiting.clarification", clarification("rpl_2", json!({})));
    world.say("progress.updated", json!({ "progress": { "step": 1 }, "urgency": "critical" }));
    world.fail(SESSION);
    let critical: Vec<&str> = world
        .heard(&one)
        .iter()
        .filter(|it| it.text("urgency") == "critical")
        .map(|it| {
            assert!(it.is_critical, "the wire has to know too");
            it.kind()
        })
        .collect();
    assert_eq!(
        critical,
        [
            "handoff.requested",
            "awaiting.confirmation",
            "awaiting.clarification",
            "progress.updated",
            // How the two questions ended.
            "state.changed",
            "state.changed",
            "session.errored",
        ]
    );
}

#[test]
fn a_burst_up_to_the_rate_passes_at_once_and_the_rest_waits() {
    let mut world = World::started();
    let one = world.listen(1, limited(3, json!({})));
    world.pass_s(2);
    world.take(&one);
    for number in 0..5 {
        world.say("tool.invoked", tool(number));
    }
    assert_eq!(world.heard(&one).len(), 3);
    world.pass_us(SECOND - 1);
    assert_eq!(world.heard(&one).len(), 3);
    world.pass_us(SECOND / 10);
    assert_eq!(world.heard(&one).len(), 4, "one by one");
    world.pass_us(SECOND / 3);
    assert_eq!(world.heard(&one).len(), 5);
}

#[test]
fn the_budget_comes_back_piece_by_piece() {
    let mut world = World::started();
    let one = world.listen(1, limited(2, json!({})));
    world.pass_s(2);
    world.take(&one);
    world.say("tool.invoked", tool(0));
    world.pass_us(600_000);
    world.say("tool.invoked", tool(1));
    world.say("tool.invoked", tool(2));
    world.say("tool.invoked", tool(3));
    world.pass_s(3);
    let begin_us = world.heard(&one)[0].at_us;
    let at: Vec<u64> = world.heard(&one).iter().map(|it| (it.at_us - begin_us) / 100_000).collect();
    assert_eq!(at, [0, 6, 11, 16]);
}

#[test]
fn each_subscriber_has_a_budget_of_its_own() {
    let mut world = World::started();
    let all = world.listen(1, json!({}));
    let three = world.listen(2, json!({ "max_events_per_second": 3 }));
    let one = world.listen(3, json!({ "max_events_per_second": 1 }));
    world.pass_s(2);
    for subscriber in [&all, &three, &one] {
        world.take(subscriber);
    }
    for number in 0..5 {
        world.say("tool.invoked", tool(number));
    }
    let counts = [&all, &three, &one].map(|it| world.heard(it).len());
    assert_eq!(counts, [5, 3, 1]);
    assert_eq!(world.engine.audiences(), 1, "the same words for all of them");
}

#[test]
fn a_subscriber_that_joins_many_sessions_is_not_overrun_by_summaries() {
    let mut world = World::new();
    for number in 0..6 {
        world.start(&format!("sess_{number}"));
    }
    let one = world.listen(1, limited(2, json!({})));
    assert!(world.heard(&one).len() <= 2, "{:?}", kinds(world.heard(&one)));
    world.pass_s(5);
    assert_eq!(world.heard(&one).len(), 6);
}

#[test]
fn words_have_the_length_that_was_asked_for() {
    let words = json!({
        "tool": "list", "summary_normal": "Lists the folder.",
        "summary_terse": "Lists.", "summary_detailed": "Lists the folder photos.",
    });
    for (verbosity, field) in
        [("terse", "summary_terse"), ("normal", "summary_normal"), ("detailed", "summary_detailed")]
    {
        let mut world = World::started();
        let one = world.listen(1, json!({ "preferred_verbosity": verbosity }));
        world.say("tool.invoked", words.clone());
        let heard = world.heard(&one).last().expect("told");
        assert_eq!(heard.text(field), words[field].as_str().unwrap_or_default());
        assert_eq!(heard.text("verbosity"), verbosity);
        let others = ["summary_terse", "summary_detailed"].iter().filter(|it| **it != field);
        assert!(others.into_iter().all(|it| heard.json.get(*it).is_none()));
    }
}

#[test]
fn nobody_misses_an_event_because_of_the_length_that_was_asked_for() {
    let told = |verbosity: &str| {
        let mut world = World::started();
        let one = world.listen(1, json!({ "preferred_verbosity": verbosity }));
        world.take(&one);
        for kind in ["terse", "normal", "detailed"] {
            let mut words = tool(1);
            words["tool_call_id"] = format!("call_{kind}").into();
            words["verbosity"] = kind.into();
            world.say("tool.invoked", words);
        }
        world.say("progress.updated", json!({ "progress": { "percent": 40 } }));
        world.say("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }));
        world.heard(&one).iter().map(|heard| heard.text("type").to_owned()).collect::<Vec<_>>()
    };
    let normal = told("normal");
    assert_eq!(normal.len(), 5, "{normal:?}");
    assert_eq!(told("terse"), normal);
    assert_eq!(told("detailed"), normal);
}

#[test]
fn each_subscriber_gets_one_language_the_best_of_its_own() {
    let words = json!({
        "tool": "list", "summary_normal": "Lists the folder.",
        "summary_normal_yo": "Ó ń ka àpò.", "summary_normal_es": "Lista la carpeta.",
    });
    let cases = [
        (json!(["yo-NG", "en"]), "Ó ń ka àpò.", "yo"),
        (json!(["es-419"]), "Lista la carpeta.", "es"),
        (json!(["en-US", "es"]), "Lists the folder.", "en-US"),
        (json!(["fr"]), "Lists the folder.", "en-US"),
    ];
    for (languages, text, tag) in cases {
        let mut world = World::started();
        let one = world.listen(1, json!({ "languages": languages }));
        world.say("tool.invoked", words.clone());
        let heard = world.heard(&one).last().expect("told");
        assert_eq!(heard.text("summary_normal"), text, "{languages}");
        assert_eq!(heard.json["localization_hints"]["primary_language"], json!(tag));
        let keys = heard.json.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
        assert!(keys.into_iter().flatten().all(|key| !key.starts_with("summary_normal_")));
    }
}

#[test]
fn a_language_is_listed_once_even_if_an_event_has_a_variant_in_its_own() {
    let words = json!({
        "tool": "list", "summary_normal": "Lists the folder.",
        "summary_normal_es": "Lista la carpeta.", "summary_normal_en-US": "Lists the folder.",
    });
    let mut world = World::started();
    let one = world.listen(1, json!({ "languages": ["es"] }));
    world.say("tool.invoked", words);
    let heard = world.heard(&one).last().expect("told");
    let available = &heard.json["localization_hints"]["available_languages"];
    assert_eq!(available, &json!(["en-US", "es"]));
}

#[test]
fn every_event_with_words_says_in_which_language_they_are() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let mut draft = World::draft(SESSION, "tool.invoked", tool(1));
    draft.remove("localization_hints");
    world.publish(AGENT, draft);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.pass_s(40);
    for heard in world.heard(&one) {
        assert_eq!(heard.json["localization_hints"]["primary_language"], json!("en-US"));
    }
}

#[test]
fn text_comes_in_the_pieces_that_were_asked_for() {
    let cases = [
        ("word", vec!["One ", "cat. ", "Two ", "dogs.\n\n", "Three."]),
        ("sentence", vec!["One cat. ", "Two dogs.\n\n", "Three."]),
        ("paragraph", vec!["One cat. Two dogs.\n\n", "Three."]),
        ("completion", vec!["One cat. Two dogs.\n\nThree."]),
    ];
    for (boundary, pieces) in cases {
        let mut world = World::started();
        let one = world.listen(1, json!({ "coalesce_boundaries": [boundary] }));
        world.take(&one);
        let text = "One cat. Two dogs.\n\nThree.";
        for (position, c) in text.chars().enumerate() {
            world.chunk(&c.to_string(), position, false);
        }
        world.chunk("", text.len(), true);
        let heard = world.heard(&one);
        let chunks: Vec<&str> =
            heard.iter().map(|it| it.text("chunk")).filter(|it| !it.is_empty()).collect();
        assert_eq!(chunks, pieces, "{boundary}");
        assert_eq!(text_of(heard, None), text);
        assert_eq!(heard.last().map(|it| it.json["complete"].clone()), Some(json!(true)));
        assert!(heard.iter().rev().skip(1).all(|it| it.text("coalesce_hint") == boundary));
    }
}

#[test]
fn a_long_text_is_told_in_several_events_that_each_fit_into_a_message() {
    for boundary in ["none", "word", "paragraph", "completion"] {
        let mut world = World::new();
        let one = world.listen(1, json!({ "coalesce_boundaries": [boundary] }));
        world.start(SESSION);
        let chunk = "Ünd so wéiter ohne Ende".repeat(400);
        let length = chunk.chars().count();
        for number in 0..12 {
            world.chunk(&chunk, number * length, number == 11);
        }
        let heard = world.heard(&one);
        assert_eq!(text_of(heard, None), chunk.repeat(12), "{boundary}");
        let longest = heard.iter().map(|it| it.text("chunk").chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= 16_384), "{boundary}: {longest:?}");
        let largest = heard.iter().map(|it| it.json.to_string().len()).max();
        assert!(largest.is_some_and(|largest| largest <= aaep::MAX_MESSAGE_BYTES), "{boundary}");
    }
}

#[test]
fn a_terse_subscriber_gets_whole_answers_and_nothing_from_the_background() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "cognitive_load": "low" }));
    world.take(&one);
    let quiet = json!({ "from_state": "idle", "to_state": "thinking", "urgency": "background" });
    world.say("state.changed", quiet);
    world.chunk("One. Two. ", 0, false);
    assert!(world.heard(&one).is_empty());
    world.chunk("Three.", 10, true);
    assert_eq!(kinds(world.heard(&one)), ["output.streaming"]);
    assert_eq!(text_of(world.heard(&one), None), "One. Two. Three.");
}

#[test]
fn the_slower_someone_reads_the_fewer_events_the_same_text_takes() {
    let mut counts = Vec::new();
    for pace in [60, 200, 1000] {
        let mut world = World::started();
        let one = world.listen(1, json!({ "pace_wpm": pace }));
        world.take(&one);
        let mut position = 0;
        for _ in 0..30 {
            world.chunk("Here are five more words. ", position, false);
            position += 26;
            world.pass_us(500_000);
        }
        world.chunk("", position, true);
        world.pass_s(300);
        assert_eq!(text_of(world.heard(&one), None).chars().count(), position);
        counts.push(world.heard(&one).len());
    }
    assert!(counts.is_sorted() && counts[0] * 2 < counts[2], "{counts:?}");
}

#[test]
fn a_pace_makes_pieces_of_text_larger_and_holds_back_nothing_else() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "pace_wpm": 60 }));
    world.pass_s(30);
    world.take(&one);
    world.chunk("This sentence takes a while to speak. ", 0, false);
    world.chunk("So does this one. ", 38, false);
    world.chunk("And this. ", 56, false);
    assert_eq!(kinds(world.heard(&one)), ["output.streaming"], "the rest would be too early");
    world.start("sess_2");
    world.say("tool.invoked", tool(1));
    let told = ["output.streaming", "session.started", "output.streaming", "tool.invoked"];
    assert_eq!(kinds(world.heard(&one)), told, "at once, and after the text of the same session");
    assert_eq!(world.heard(&one)[2].json["chunk"], "So does this one. ");
}

/// The chunks that a subscriber got, each with its language and its hint.
fn pieces(heard: &[Heard]) -> Vec<(String, Json, Json)> {
    let text = heard.iter().filter(|it| it.kind() == "output.streaming");
    text.map(|it| {
        let [chunk, language, hint] =
            ["chunk", "language", "coalesce_hint"].map(|it_is| it.json[it_is].clone());
        (chunk.as_str().unwrap_or_default().to_owned(), language, hint)
    })
    .collect()
}

#[test]
fn a_change_of_language_or_content_type_is_a_boundary_under_every_setting() {
    let settings = [
        json!({}),
        json!({ "coalesce_boundaries": ["completion"] }),
        json!({ "max_events_per_second": 1 }),
        json!({ "pace_wpm": 60 }),
        json!({ "cognitive_load": "low" }),
    ];
    for wishes in settings {
        let mut world = World::started();
        let one = world.listen(1, wishes);
        let parts = [
            ("He said ", "en-US", "text/plain"),
            ("bonjour ", "fr-FR", "text/plain"),
            ("and left. ", "en-US", "text/plain"),
            ("<b>Really.</b>", "en-US", "text/html"),
        ];
        let mut position = 0;
        for (index, (text, language, content_type)) in parts.into_iter().enumerate() {
            let fields = json!({ "chunk": text, "position": position, "complete": index == 3,
                "language": language, "content_type": content_type });
            world.say("output.streaming", fields);
            position += text.chars().count();
        }
        world.pass_s(60);
        let got: Vec<(String, Json)> =
            pieces(world.heard(&one)).into_iter().map(|it| (it.0, it.1)).collect();
        let sent: Vec<(String, Json)> =
            parts.iter().map(|it| (it.0.to_owned(), it.1.into())).collect();
        assert_eq!(got, sent);
    }
}

#[test]
fn with_none_the_chunks_pass_as_they_came_and_the_hint_is_a_negotiated_one() {
    for include in ["aaep:agent.*", "*"] {
        let mut world = World::started();
        let filters = json!({ "include": [include] });
        let wishes = json!({ "coalesce_boundaries": ["none"], "event_filters": filters });
        let one = world.listen(1, wishes);
        let chunks = ["T", "he", " ", "cat"];
        let mut position = 0;
        for (index, text) in chunks.into_iter().enumerate() {
            let fields = json!({ "chunk": text, "position": position, "complete": index == 3,
                "coalesce_hint": if index == 3 { "completion" } else { "sentence" } });
            world.say("output.streaming", fields);
            position += text.len();
            assert_eq!(pieces(world.heard(&one)).len(), index + 1, "each at once");
        }
        let got = pieces(world.heard(&one));
        assert_eq!(got.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), chunks);
        assert!(got.iter().all(|it| it.2 == "none"), "{got:?}");
    }
}

#[test]
fn what_is_held_leaves_one_by_one() {
    let mut world = World::started();
    let one = world.listen(1, limited(5, json!({})));
    world.pass_s(2);
    world.take(&one);
    for number in 0..15 {
        let fields = json!({ "tool": "x", "summary_normal": "x", "tool_call_id": format!("call_{number}"),
            "irreversible": false });
        world.say("tool.invoked", fields);
    }
    world.pass_s(5);
    let at: Vec<u64> = world.heard(&one).iter().map(|it| it.at_us).collect();
    assert!(at[4] == at[0] && at[5] >= at[0] + SECOND, "a burst after quiet: {at:?}");
    assert!(at[5..].windows(2).all(|pair| pair[1] - pair[0] >= SECOND / 5), "{at:?}");
}

#[test]
fn timestamps_of_a_session_do_not_go_back_where_text_is_merged() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.pass_s(2);
    for (number, text) in ["One. ", "Two. ", "Three. "].into_iter().enumerate() {
        world.chunk(text, [0, 5, 10][number], false);
        world.pass_us(100_000);
    }
    world.say("tool.invoked", tool(1));
    world.pass_s(9);
    let stamps: Vec<&str> =
        world.heard(&one).iter().filter_map(|it| it.json["timestamp"].as_str()).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn no_second_has_more_than_the_rate_and_nothing_critical_waits(
        rate in 1u64..6,
        steps in proptest::collection::vec((0u64..700_000, 0u8..6), 1..60),
    ) {
        let mut world = World::new();
        let one = world.listen(1, limited(rate, json!({})));
        world.start(SESSION);
        let mut position = 0;
        for (number, (wait_us, what)) in steps.into_iter().enumerate() {
            world.pass_us(wait_us);
            match what {
                0 => drop(world.say("progress.updated", progress(number as u64 % 100))),
                1 | 2 => {
                    world.chunk("One more. ", position, false);
                    position += 10;
                }
                3 => {
                    let before = world.heard(&one).len();
                    world.say("handoff.requested", json!({ "reason": "x", "target_kind": "human" }));
                    prop_assert!(world.heard(&one)[before..].iter().any(|it| it.is_critical));
                }
                _ => drop(world.say("tool.invoked", tool(number))),
            }
        }
        world.pass_s(120);
        let sent: Vec<u64> =
            world.heard(&one).iter().filter(|it| !it.is_critical).map(|it| it.at_us).collect();
        for (at, first) in sent.iter().enumerate() {
            let in_window = sent[at..].iter().take_while(|it| **it < first + SECOND).count();
            prop_assert!(in_window as u64 <= rate);
        }
        prop_assert!("One more. ".repeat(position / 10).starts_with(&text_of(world.heard(&one), None)));
    }
}
