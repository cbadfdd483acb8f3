//! The first answer: each reason to reject, each capability granted or narrowed, and the notes.

use super::*;

#[test]
fn a_closed_door_is_answered_before_anything_else() {
    // The request would also fail because of its version and because of the limit.
    let request = request_of("9.0.0", &json!({}));
    for (door, code) in [
        (Door::AuthenticationRequired, ReasonCode::AuthenticationRequired),
        (Door::AuthorizationDenied, ReasonCode::AuthorizationDenied),
        (Door::TransportUnavailable, ReasonCode::TransportUnavailable),
        (Door::Failing, ReasonCode::Unknown),
    ] {
        let rejected = negotiate(&offer(), door, 99, &request, id()).expect_err("shut");
        assert_valid(&aaep::check(&rejected));
        assert_eq!(rejected.reason_code, code);
        assert!(rejected.reason_message.ends_with('.'), "{}", rejected.reason_message);
        assert_eq!(rejected.retry_after_seconds.is_some(), door == Door::Failing);
    }
}

#[test]
fn the_lower_version_of_the_same_major_is_spoken() {
    for (ours, asked, spoken) in [
        (&["1.0.0"][..], "1.0.0", Some("1.0.0")),
        (&["1.0.0"], "1.4.0", Some("1.0.0")),
        (&["1.0.0", "1.2.0"], "1.0.0", Some("1.0.0")),
        (&["1.2.0", "1.0.0"], "1.1.7", Some("1.0.0")),
        (&["1.0.0", "1.2.0", "1.10.0"], "1.11.0", Some("1.10.0")),
        (&["1.2.0"], "1.1.0", Some("1.1.0")),
        (&["1.0.0"], "2.0.0", None),
        (&["1.0.0"], "0.9.0", None),
        (&["1.0.0"], "1.0.0-rc.1", None),
        (&["1.0.0"], "1.1.0-rc.1", None),
        (&["0.1.0-draft", "1.0.0"], "0.1.0-draft", Some("0.1.0-draft")),
        (&["0.1.0-draft", "1.0.0"], "0.1.0", None),
    ] {
        let offer = Offer { versions: versions(ours), ..offer() };
        let answer = negotiate(&offer, Door::Open, 0, &request_of(asked, &json!({})), id());
        match (answer, spoken) {
            (Ok((accepted, terms)), Some(spoken)) => {
                assert_eq!(accepted.aaep_version.as_str(), spoken, "{asked}");
                assert_eq!(terms.version.as_str(), spoken);
                assert_eq!(accepted.negotiation_notes.is_some(), spoken != asked);
            }
            (Err(rejected), None) => {
                assert_eq!(rejected.reason_code, ReasonCode::VersionUnsupported);
                assert!(rejected.reason_message.contains(asked), "{}", rejected.reason_message);
                assert!(rejected.reason_message.contains("1.0.0"));
                assert_eq!(rejected.alternative_manifest_uri, offer.manifest_uri);
            }
            (answer, spoken) => panic!("{asked}: {answer:?}, not {spoken:?}"),
        }
    }
}

#[test]
fn a_demand_for_a_signed_manifest_is_met_or_refused() {
    let demand = json!({ "accept_signed_manifests_only": true });
    let refused = rejected(&offer(), &demand);
    assert_eq!(refused.reason_code, ReasonCode::ManifestSignatureRequired);
    let (accepted, terms) = accepted(&signed_offer(), &demand);
    assert_eq!(accepted.signed_manifest, signed_offer().signed_manifest);
    assert_eq!(accepted.honored_capabilities.accept_signed_manifests_only, Some(true));
    assert!(terms.signed_only);
}

#[test]
fn when_all_places_are_taken_the_subscriber_is_told_when_to_come_back() {
    let offer = Offer { max_concurrent_subscriptions: 2, ..offer() };
    assert!(negotiate(&offer, Door::Open, 1, &request(&json!({})), id()).is_ok());
    for active in [2, 3, usize::MAX] {
        let rejected =
            negotiate(&offer, Door::Open, active, &request(&json!({})), id()).expect_err("full");
        assert_valid(&aaep::check(&rejected));
        assert_eq!(rejected.reason_code, ReasonCode::RateLimit);
        assert_eq!(rejected.retry_after_seconds, Some(RETRY_AFTER_SECONDS));
    }
}

#[test]
fn what_waiting_cannot_change_is_refused_before_lack_of_room() {
    let demand = request(&json!({ "accept_signed_manifests_only": true }));
    let rejected = negotiate(&offer(), Door::Open, 99, &demand, id()).expect_err("unsigned");
    assert_eq!(rejected.reason_code, ReasonCode::ManifestSignatureRequired);
    assert_eq!(rejected.retry_after_seconds, None);
}

#[test]
fn two_extensions_under_one_prefix_are_refused_by_its_name() {
    let refused = rejected(&offer(), &json!({ "supported_extensions": [MEDAI, IMPOSTOR] }));
    assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible);
    assert!(refused.reason_message.contains("the prefix medai,"), "{}", refused.reason_message);
    assert_eq!(refused.alternative_manifest_uri, offer().manifest_uri);
}

#[test]
fn two_versions_of_a_vocabulary_coexist_only_under_different_prefixes() {
    let both = json!({ "supported_extensions": [MEDAI, MEDAI_2] });
    assert_eq!(accepted(&offer(), &both).1.extensions, [uri(MEDAI), uri(MEDAI_2)]);
    let mut offer = offer();
    offer.extensions[2].1 = Prefix::parse("medai").expect("prefix");
    assert_eq!(rejected(&offer, &both).reason_code, ReasonCode::CapabilitiesIncompatible);
}

#[test]
fn a_capability_under_a_reserved_prefix_is_refused_by_its_name() {
    for prefix in ["aaep", "xsd", "rdf", "rdfs", "@id", "@", "aaep:braille"] {
        let refused = rejected(&offer(), &json!({ prefix: {} }));
        assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible, "{prefix}");
        assert!(refused.reason_message.contains(prefix), "{}", refused.reason_message);
    }
    for prefix in ["aaepx", "rdfa", "AAEP", "a@b"] {
        accepted(&offer(), &json!({ prefix: {} }));
    }
}

#[test]
fn hostile_text_in_a_refusal_is_cut_and_escaped() {
    let refused = rejected(&offer(), &json!({ format!("@\u{1b}[2J{}", "x".repeat(5000)): {} }));
    assert!(!refused.reason_message.contains('\u{1b}'));
    assert!(refused.reason_message.len() < 300);
}

#[test]
fn a_refusal_says_the_same_whatever_goes_on_inside() {
    let doors = [
        Door::AuthenticationRequired,
        Door::AuthorizationDenied,
        Door::TransportUnavailable,
        Door::Failing,
        Door::Open,
    ];
    let full = Offer { max_concurrent_subscriptions: 3, ..offer() };
    let larger = Offer { max_concurrent_subscriptions: 4711, ..offer() };
    for door in doors {
        let refusal = |offer: &Offer, active: usize| {
            negotiate(offer, door, active, &request(&json!({})), id()).expect_err("refused")
        };
        let said = refusal(&full, 3);
        assert_eq!(refusal(&full, 4711), said, "how many listen is nobody's business");
        assert_eq!(refusal(&larger, 4711), said, "nor how many could");
        assert!(!said.reason_message.contains(full.producer.agent_id.as_str()), "{said:?}");
    }
}

#[test]
fn without_a_common_language_the_offer_decides() {
    let yoruba = json!({ "languages": ["yo-NG", "ha"] });
    let strict = Offer { only_offered_languages: true, ..offer() };
    let refused = rejected(&strict, &yoruba);
    assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible);
    assert!(refused.reason_message.contains("en-US, es"), "{}", refused.reason_message);

    let (accepted, terms) = accepted(&offer(), &yoruba);
    assert_eq!(accepted.honored_capabilities.languages, None);
    assert_eq!(terms.languages, []);
    assert_eq!(terms.choose_language(&tags(&["en-US"])), None);
    let notes = accepted.negotiation_notes.expect("notes");
    assert!(notes.contains("en-US") && notes.contains("left out"), "{notes}");
}

#[test]
fn silence_about_languages_asks_for_american_english() {
    let german = Offer { languages: tags(&["de"]), only_offered_languages: true, ..offer() };
    assert_eq!(rejected(&german, &json!({})).reason_code, ReasonCode::CapabilitiesIncompatible);
    let english = Offer { languages: tags(&["en"]), only_offered_languages: true, ..offer() };
    assert_eq!(accepted(&english, &json!({})).1.languages, tags(&["en-US"]));
}

#[test]
fn a_request_that_no_strict_reader_takes_is_answered_and_not_repeated() {
    let mut wrong = request(&json!({}));
    wrong.capabilities.max_events_per_second = Some(0);
    let rejected = negotiate(&offer(), Door::Open, 0, &wrong, id()).expect_err("malformed");
    assert_valid(&aaep::check(&rejected));
    assert_eq!(rejected.reason_code, ReasonCode::Unknown);
    assert!(rejected.reason_message.contains("max_events_per_second"));
}

#[test]
fn terms_that_no_acceptance_could_repeat_are_refused() {
    let offer = Offer {
        signed_manifest: Some(
            CompactJws::parse(&format!("a.{}.c", "b".repeat(9000))).expect("jws"),
        ),
        ..offer()
    };
    let patterns: Vec<String> = (0..600).map(|n| format!("medai:{n:0>90}")).collect();
    let refused = rejected(&offer, &json!({ "event_filters": { "include": patterns } }));
    assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible);
    accepted(&offer, &json!({ "event_filters": { "include": patterns[..500] } }));
}

#[test]
fn an_empty_request_gets_the_defaults_and_no_notes() {
    let (accepted, terms) = accepted(&offer(), &json!({}));
    assert_eq!(terms, Terms::defaults());
    assert_eq!(to_json(&accepted.honored_capabilities), json!({}));
    assert_eq!(accepted.negotiation_notes, None);
    assert_eq!(accepted.subscription_id, id());
    assert_eq!(accepted.producer, offer().producer);
    assert_eq!(accepted.manifest_uri, offer().manifest_uri);
}

#[test]
fn each_capability_that_can_be_granted_is_honored_as_asked() {
    for (field, value) in each_capability() {
        let mut asked = json!({ field: value });
        if field == "supported_conformance_levels" {
            asked["supports_confirmation_reply"] = true.into();
        }
        let (accepted, terms) = accepted(&signed_offer(), &asked);
        assert_eq!(to_json(&accepted.honored_capabilities), asked, "{field}");
        assert_eq!(accepted.negotiation_notes, None, "{field}");
        assert_ne!(terms, Terms::defaults(), "{field}");
    }
}

#[test]
fn each_capability_named_with_its_default_is_stated_and_changes_nothing() {
    let defaults = json!({
        "preferred_verbosity": "normal",
        "languages": ["en-US"],
        "supports_confirmation_reply": false,
        "supports_clarification_reply": false,
        "coalesce_boundaries": ["completion", "sentence"],
        "event_filters": {},
        "supported_conformance_levels": [1],
        "supported_extensions": [],
        "cognitive_load": "medium",
        "accept_signed_manifests_only": false,
    });
    let (accepted, terms) = accepted(&offer(), &defaults);
    assert_eq!(terms, Terms::defaults());
    assert_eq!(accepted.negotiation_notes, None);
    let mut stated = defaults;
    stated["coalesce_boundaries"] = json!(["sentence", "completion"]);
    stated["event_filters"] = json!({ "include": ["aaep:agent.*"], "exclude": [] });
    assert_eq!(to_json(&accepted.honored_capabilities), stated);
}

#[test]
fn the_rate_is_the_lower_of_the_asked_one_and_our_ceiling() {
    let with = |ceiling| Offer { max_events_per_second: Some(ceiling), ..offer() };
    for (ceiling, asked, honored) in [
        (10, Some(50), 10),
        (10, Some(11), 10),
        (10, Some(10), 10),
        (10, Some(3), 3),
        (10, None, 10),
        (0, None, 1),
    ] {
        let fields = asked.map_or(json!({}), |rate| json!({ "max_events_per_second": rate }));
        let (accepted, terms) = accepted(&with(ceiling), &fields);
        assert_eq!(accepted.honored_capabilities.max_events_per_second, Some(honored));
        assert_eq!(terms.max_events_per_second, Some(honored));
        let notes = accepted.negotiation_notes;
        assert_eq!(notes.is_some(), asked != Some(honored), "{notes:?}");
        assert!(notes.is_none_or(|notes| notes.contains(&format!("{honored} events per second"))));
    }
    accepted(&with(u64::MAX), &json!({}));
}

#[test]
fn only_the_languages_that_can_be_served_are_honored_in_the_asked_order() {
    let asked = json!({ "languages": ["yo-NG", "es-MX", "en", "en-GB"] });
    let (accepted, terms) = accepted(&offer(), &asked);
    assert_eq!(accepted.honored_capabilities.languages, Some(tags(&["es-MX", "en"])));
    assert_eq!(terms.languages, tags(&["es-MX", "en"]));
    let notes = accepted.negotiation_notes.expect("notes");
    assert!(notes.contains("yo-NG, en-GB"), "{notes}");
}

#[test]
fn only_shared_levels_and_extensions_are_honored() {
    let asked = json!({
        "supported_conformance_levels": [3, 2, 1], "supports_confirmation_reply": true,
        "supported_extensions": ["https://example.org/haptic/v1", aaep::extension::CONTEXT],
    });
    let (accepted, terms) = accepted(&offer(), &asked);
    assert_eq!(terms.levels, [1, 2]);
    assert_eq!(terms.extensions, [uri(aaep::extension::CONTEXT)]);
    assert!(terms.understands_our_extension());
    let notes = accepted.negotiation_notes.expect("notes");
    assert!(notes.contains("levels are not offered here: 3."), "{notes}");
    assert!(notes.contains("https://example.org/haptic/v1"), "{notes}");
}

#[test]
fn levels_that_need_replies_are_granted_only_to_subscribers_that_can_reply() {
    for unable in [json!({}), json!({ "supports_confirmation_reply": false })] {
        let mut asked = unable;
        asked["supported_conformance_levels"] = json!([1, 2]);
        asked["supports_clarification_reply"] = true.into();
        let (accepted, terms) = accepted(&offer(), &asked);
        assert_eq!(terms.levels, [1], "{asked}");
        assert_eq!(accepted.honored_capabilities.supported_conformance_levels, Some(vec![1]));
        assert!(accepted.negotiation_notes.expect("notes").contains("can reply"));
    }
    let (accepted, _) = accepted(&offer(), &json!({ "supported_conformance_levels": [2] }));
    assert_eq!(accepted.honored_capabilities.supported_conformance_levels, None);
}

#[test]
fn a_subscriber_without_a_shared_level_is_served_and_told() {
    let (accepted, terms) = accepted(&offer(), &json!({ "supported_conformance_levels": [3] }));
    assert_eq!(terms.levels, [0; 0]);
    assert_eq!(accepted.honored_capabilities.supported_conformance_levels, None);
    assert!(accepted.negotiation_notes.is_some());
}

#[test]
fn capabilities_of_known_extensions_are_echoed_and_others_ignored() {
    let asked = json!({ "medai": { "phi": true }, "haptic": { "body_locations": ["wrist"] } });
    let (accepted, terms) = accepted(&offer(), &asked);
    assert_eq!(to_json(&accepted.honored_capabilities), json!({ "medai": { "phi": true } }));
    assert_eq!(terms.other.len(), 1);
    assert!(accepted.negotiation_notes.expect("notes").contains("haptic"));
}

#[test]
fn only_subscribers_that_declare_it_count_as_able_to_answer() {
    // Ruling 3: a subscriber with a working reply path may answer without having negotiated it.
    let able = Terms { confirmation_reply: true, clarification_reply: true, ..Terms::defaults() };
    assert_eq!(to_json(&able.to_capabilities(&Capabilities::new())), json!({}));
}

#[test]
fn notes_stay_short_whatever_was_asked() {
    let languages: Vec<String> = (0..32).map(|n| format!("yo-x-{n}")).collect();
    let uris: Vec<String> = (0..64).map(|n| format!("urn:x:{}{n}", "y".repeat(300))).collect();
    let mut asked = json!({
        "languages": languages,
        "supported_extensions": uris,
        "supported_conformance_levels": [3],
    });
    for n in 0..50 {
        asked[format!("\u{202e}{}{n}", "\u{e000}".repeat(100))] = json!({});
    }
    let limited = Offer { max_events_per_second: Some(1), ..offer() };
    let notes = accepted(&limited, &asked).0.negotiation_notes.expect("notes");
    assert!(notes.chars().count() < 2000, "{}", notes.len());
    assert!(notes.contains("and 59 more"));
}
