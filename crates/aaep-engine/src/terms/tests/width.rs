//! The check of §5.4.4 itself: it finds manipulated answers and lets honest ones pass.

use super::*;

fn wider(honored: &Json, asked: &Json) -> Vec<&'static str> {
    wider_than(&capabilities(honored), &capabilities(asked))
}

#[test]
fn the_answer_of_the_specification_is_not_wider_than_its_request() {
    // §5.2.3 and §5.4.3: filters were requested, and the answer does not mention them.
    let mut asked = json!({
        "max_events_per_second": 3,
        "preferred_verbosity": "normal",
        "languages": ["en-US"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["sentence", "completion"],
        "supported_conformance_levels": [1, 2],
    });
    let honored = asked.clone();
    asked["event_filters"] =
        json!({ "include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"] });
    assert_eq!(wider(&honored, &asked), [""; 0]);
}

#[test]
fn each_field_that_was_widened_is_found_by_name() {
    for (field, honored, asked) in [
        ("max_events_per_second", json!(4), json!(3)),
        ("preferred_verbosity", json!("detailed"), json!("terse")),
        ("languages", json!(["en-US", "es"]), json!(["en-US"])),
        ("languages", json!(["en"]), json!(["en-US"])),
        ("supports_confirmation_reply", json!(true), json!(false)),
        ("supports_clarification_reply", json!(true), json!(false)),
        ("coalesce_boundaries", json!(["word"]), json!(["sentence"])),
        ("event_filters", json!({}), json!({ "include": ["aaep:agent.tool.*"] })),
        ("supported_conformance_levels", json!([1, 3]), json!([1, 2])),
        ("supported_extensions", json!([MEDAI]), json!([MEDAI_2])),
        ("cognitive_load", json!("medium"), json!("low")),
        ("pace_wpm", json!(200), json!(180)),
        ("accept_signed_manifests_only", json!(false), json!(true)),
    ] {
        assert_eq!(wider(&json!({ field: honored }), &json!({ field: asked })), [field]);
    }
    assert_eq!(wider(&json!({ "medai": {} }), &json!({})), ["extension capabilities"]);
}

#[test]
fn what_was_not_asked_for_counts_as_asked_with_its_default() {
    for (field, honored) in [
        ("preferred_verbosity", json!("detailed")),
        ("languages", json!(["es"])),
        ("supports_confirmation_reply", json!(true)),
        ("supports_clarification_reply", json!(true)),
        ("coalesce_boundaries", json!(["none"])),
        ("event_filters", json!({ "include": ["*"] })),
        ("supported_conformance_levels", json!([2])),
        ("supported_extensions", json!([MEDAI])),
        ("cognitive_load", json!("high")),
        ("pace_wpm", json!(150)),
    ] {
        assert_eq!(wider(&json!({ field: honored }), &json!({})), [field]);
    }
    let narrower = json!({
        "max_events_per_second": 1,
        "preferred_verbosity": "terse",
        "coalesce_boundaries": ["completion"],
        "event_filters": { "exclude": ["aaep:agent.tool.*"] },
        "cognitive_load": "low",
        "accept_signed_manifests_only": true,
    });
    assert_eq!(wider(&narrower, &json!({})), [""; 0]);
}

#[test]
fn every_sabotage_at_once_is_listed_in_the_order_of_the_specification() {
    let honored = json!({
        "pace_wpm": 1000, "max_events_per_second": 9, "languages": ["es"], "medai": {},
    });
    let asked = json!({ "max_events_per_second": 8 });
    assert_eq!(
        wider(&honored, &asked),
        ["max_events_per_second", "languages", "pace_wpm", "extension capabilities"]
    );
}

#[test]
fn filters_are_compared_by_what_passes_and_not_by_how_they_are_written() {
    const ALL: &str = "aaep:agent.*";
    const TOOLS: &str = "aaep:agent.tool.*";
    const INVOKED: &str = "aaep:agent.tool.invoked";
    let filters = |include: &[&str], exclude: &[&str]| json!({ "event_filters": { "include": include, "exclude": exclude } });
    let cases = [
        (filters(&[TOOLS], &[]), filters(&[ALL], &[]), true),
        (filters(&[INVOKED], &[]), filters(&[TOOLS], &[]), true),
        (filters(&["https://aaep-protocol.org/types/agent.*"], &[]), filters(&[ALL], &[]), true),
        (filters(&[], &[]), filters(&[INVOKED], &[]), true),
        (filters(&[ALL], &["*"]), filters(&[INVOKED], &[]), true),
        (filters(&[ALL], &[TOOLS]), filters(&[ALL], &[INVOKED]), true),
        (filters(&[TOOLS], &[]), filters(&[ALL], &["aaep:agent.state.changed"]), true),
        (filters(&[TOOLS], &[]), filters(&["medai:*", ALL], &[]), true),
        (filters(&[ALL], &[]), filters(&[TOOLS], &[]), false),
        (filters(&[TOOLS], &[]), filters(&[INVOKED], &[]), false),
        (filters(&[ALL], &[]), filters(&[ALL], &[INVOKED]), false),
        (filters(&[ALL], &[INVOKED]), filters(&[ALL], &[TOOLS]), false),
        (filters(&[INVOKED], &[]), filters(&[ALL], &[TOOLS]), false),
        (filters(&["aaep:agent.tool"], &[]), filters(&[TOOLS], &[]), false),
        (filters(&[INVOKED], &[]), filters(&["aaep:agent.tool"], &[]), false),
        (filters(&[ALL], &["aaep:agent.tool"]), filters(&[ALL], &[INVOKED]), false),
    ];
    for (honored, asked, is_within) in cases {
        assert_eq!(wider(&honored, &asked).is_empty(), is_within, "{honored} of {asked}");
    }
}
