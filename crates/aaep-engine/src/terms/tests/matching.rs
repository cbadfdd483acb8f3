//! Languages, filters, and which terms are one audience.

use std::collections::BTreeSet;

use aaep::event::action::CoalesceBoundary;

use super::*;

fn chosen(asked: &[&str], available: &[&str]) -> Option<String> {
    let terms = Terms { languages: tags(asked), ..Terms::defaults() };
    terms.choose_language(&tags(available)).map(ToString::to_string)
}

#[test]
fn languages_match_exactly_then_by_region_then_by_script_in_the_asked_order() {
    for (asked, available, expected) in [
        // 1. Exact, regardless of case.
        (&["en-US"][..], &["en", "en-US"][..], Some("en-US")),
        (&["EN-us"], &["en", "en-US"], Some("en-US")),
        // 2. Region, both ways (§11.1.2), but never from one region to another.
        (&["en-US"], &["es", "en"], Some("en")),
        (&["en"], &["es", "en-US", "en-GB"], Some("en-US")),
        (&["en-US"], &["en-GB"], None),
        (&["zh-Hant"], &["zh", "zh-Hant-TW"], Some("zh-Hant-TW")),
        (&["zh-Hant-TW"], &["zh", "zh-Hant"], Some("zh-Hant")),
        // 3. Script.
        (&["zh-Hant"], &["zh"], Some("zh")),
        (&["zh-Hant-TW"], &["zh", "zh-TW"], Some("zh-TW")),
        (&["zh-Hant-TW"], &["zh"], Some("zh")),
        (&["zh-Hant"], &["zh-Hans"], None),
        // 4. The next language of the list.
        (&["yo-NG", "en-NG", "en-US", "en"], &["en-US", "fr"], Some("en-US")),
        (&["yo-NG", "en"], &["en-US", "yo"], Some("yo")),
        (&["fr", "es"], &["es", "fr"], Some("fr")),
        // 6. No match.
        (&["yo"], &["en-US"], None),
        (&["yo"], &[], None),
        (&[], &["en-US"], None),
        // Subtags after region and script are removed first.
        (&["de-CH-1996"], &["de", "de-CH"], Some("de-CH")),
        (&["en-US-u-hc-h12"], &["en"], Some("en")),
        (&["x-house"], &["x-other", "en"], None),
        (&["x-house"], &["x-house-kitchen"], Some("x-house-kitchen")),
        // A prefix that is not a whole subtag does not match.
        (&["en"], &["enm", "enm-US"], None),
    ] {
        assert_eq!(chosen(asked, available).as_deref(), expected, "{asked:?} of {available:?}");
    }
}

#[test]
fn a_type_passes_when_an_include_matches_and_no_exclude_does() {
    const TOOL: &str = "aaep:agent.tool.invoked";
    for (include, exclude, name, expected) in [
        (Some(json!(["aaep:agent.*"])), Some(json!([])), TOOL, true),
        (None, None, TOOL, true),
        (None, None, "medai:patient.consulted", false),
        (Some(json!(["*"])), None, "medai:patient.consulted", true),
        (Some(json!(["medai:*"])), None, TOOL, false),
        (Some(json!([TOOL])), None, TOOL, true),
        (Some(json!([TOOL])), None, "aaep:agent.tool.completed", false),
        (None, Some(json!([TOOL])), TOOL, false),
        (Some(json!([TOOL])), Some(json!(["aaep:agent.tool.*"])), TOOL, false),
        (Some(json!(["aaep:agent.tool.*"])), Some(json!(["medai:*"])), TOOL, true),
        (Some(json!([])), None, TOOL, false),
        (Some(json!(["https://aaep-protocol.org/types/agent.tool.*"])), None, TOOL, true),
    ] {
        let mut filters = json!({});
        if let Some(include) = include {
            filters["include"] = include;
        }
        if let Some(exclude) = exclude {
            filters["exclude"] = exclude;
        }
        let (_, terms) = accepted(&offer(), &json!({ "event_filters": filters }));
        let event_type = EventType::parse(name).expect("type");
        assert_eq!(terms.wants(&event_type), expected, "{name} through {filters}");
    }
}

fn key(fields: &Json) -> AudienceKey {
    accepted(&signed_offer(), fields).1.audience_key()
}

#[test]
fn what_is_personal_or_has_no_shape_does_not_split_an_audience() {
    let plain = key(&json!({}));
    for same in [
        json!({ "max_events_per_second": 1 }),
        json!({ "max_events_per_second": 100 }),
        json!({ "pace_wpm": 50 }),
        json!({ "accept_signed_manifests_only": true }),
        json!({ "languages": ["EN-us"] }),
        json!({ "coalesce_boundaries": ["completion", "sentence"] }),
        json!({ "event_filters": { "include": ["https://aaep-protocol.org/types/agent.*"] } }),
        json!({ "haptic": { "pulse": true } }),
    ] {
        assert_eq!(key(&same), plain, "{same}");
    }
    let two = |one: &str, other: &str| {
        key(&json!({
            "event_filters": { "exclude": [one, other] }, "supports_confirmation_reply": true,
            "supported_extensions": if one < other { [MEDAI, MEDAI_2] } else { [MEDAI_2, MEDAI] },
            "supported_conformance_levels": if one < other { json!([1, 2]) } else { json!([2]) },
        }))
    };
    assert_eq!(two("a", "b"), two("b", "a"));
}

#[test]
fn every_term_that_shapes_events_splits_an_audience() {
    let different = [
        json!({}),
        json!({ "preferred_verbosity": "terse" }),
        json!({ "preferred_verbosity": "detailed" }),
        json!({ "languages": ["es"] }),
        json!({ "languages": ["es", "en-US"] }),
        json!({ "languages": ["en-US", "es"] }),
        json!({ "languages": ["yo"] }),
        json!({ "supports_confirmation_reply": true }),
        json!({ "supports_clarification_reply": true }),
        json!({ "coalesce_boundaries": ["none"] }),
        json!({ "coalesce_boundaries": ["sentence"] }),
        json!({ "event_filters": { "include": ["*"] } }),
        json!({ "event_filters": { "include": ["a", "b"] } }),
        json!({ "event_filters": { "include": ["a\",\"b"] } }),
        json!({ "event_filters": { "exclude": ["*"] } }),
        json!({ "supported_conformance_levels": [2] }),
        json!({ "supported_extensions": [MEDAI] }),
        json!({ "cognitive_load": "low" }),
        json!({ "cognitive_load": "high" }),
        json!({ "medai": {} }),
        json!({ "medai": { "phi": true } }),
    ];
    let keys: BTreeSet<AudienceKey> = different.iter().map(key).collect();
    assert_eq!(keys.len(), different.len());
    let newer = Terms { version: Version::parse("1.1.0").expect("version"), ..Terms::defaults() };
    assert_ne!(newer.audience_key(), Terms::defaults().audience_key());
}

#[test]
fn a_rate_matters_to_the_audience_only_where_sequence_numbers_are_at_stake() {
    let every = |rate| Terms {
        max_events_per_second: rate,
        boundaries: vec![CoalesceBoundary::None],
        include: vec![TypePattern::parse("*").expect("pattern")],
        ..Terms::defaults()
    };
    assert!(every(None).keeps_every_event());
    assert!(!every(Some(9)).keeps_every_event());
    assert_ne!(every(None).audience_key(), every(Some(9)).audience_key());
    assert_eq!(every(Some(8)).audience_key(), every(Some(9)).audience_key());
    assert!(!Terms::defaults().keeps_every_event());
}

#[test]
fn whatever_drops_or_merges_an_event_is_noticed() {
    let every = json!({ "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] } });
    assert!(accepted(&offer(), &every).1.keeps_every_event());
    for (field, value) in [
        ("max_events_per_second", json!(100_000)),
        ("coalesce_boundaries", json!(["sentence"])),
        ("event_filters", json!({ "include": ["aaep:agent.*"] })),
        ("event_filters", json!({ "include": ["*"], "exclude": ["medai:*"] })),
        ("cognitive_load", json!("low")),
    ] {
        let mut fields = every.clone();
        fields[field] = value;
        assert!(!accepted(&offer(), &fields).1.keeps_every_event(), "{fields}");
    }
}
