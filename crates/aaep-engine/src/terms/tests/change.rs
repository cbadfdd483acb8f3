//! Renegotiation: what is named changes, and nothing else (§5.7, ruling 25).

use super::*;

/// A subscription whose every term differs from its default, as negotiated and as requested.
fn rich() -> (Offer, Terms, Capabilities) {
    let mut fields = json!({ "medai": { "phi": true } });
    for (field, value) in each_capability() {
        fields[field] = value;
    }
    let (_, terms) = accepted(&signed_offer(), &fields);
    (signed_offer(), terms, capabilities(&fields))
}

fn renegotiated(fields: &Json) -> (SubscriptionAccepted, Terms, Capabilities) {
    let (offer, terms, asked) = rich();
    let (accepted, terms, asked) =
        renegotiate(&offer, &terms, &asked, &change(fields)).expect("to be accepted");
    assert_valid(&aaep::check(&accepted));
    assert_eq!(wider_than(&accepted.honored_capabilities, &asked), [""; 0]);
    (accepted, terms, asked)
}

#[test]
fn a_change_that_names_nothing_changes_nothing() {
    let (_, before, asked_before) = rich();
    let (accepted, terms, asked) = renegotiated(&json!({}));
    assert_eq!(terms, before);
    assert_eq!(asked, asked_before);
    assert_eq!(accepted.subscription_id, id());
    assert_eq!(accepted.negotiation_notes, None);
}

#[test]
fn each_field_alone_changes_only_itself() {
    let (_, before, asked_before) = rich();
    let changes = [
        ("max_events_per_second", json!(7)),
        ("preferred_verbosity", json!("detailed")),
        ("languages", json!(["es"])),
        ("supports_confirmation_reply", json!(false)),
        ("supports_clarification_reply", json!(false)),
        ("coalesce_boundaries", json!(["none"])),
        ("event_filters", json!({ "include": ["*"], "exclude": ["aaep:agent.state.changed"] })),
        ("supported_conformance_levels", json!([1])),
        ("supported_extensions", json!([])),
        ("cognitive_load", json!("high")),
        ("pace_wpm", json!(400)),
        ("accept_signed_manifests_only", json!(false)),
        ("medai", json!({ "phi": false })),
    ];
    assert_eq!(changes.len(), each_capability().len() + 1);
    for (field, value) in changes {
        let (accepted, terms, asked) = renegotiated(&json!({ field: value }));
        let mut expected = to_json(&before.to_capabilities(&asked_before));
        assert_ne!(expected[field], value, "{field}");
        expected[field] = value;
        if field == "supports_confirmation_reply" {
            expected["supported_conformance_levels"] = json!([1]);
        }
        assert_eq!(to_json(&accepted.honored_capabilities), expected, "{field}");
        assert_eq!(to_json(&terms.to_capabilities(&asked)), expected, "{field}");
        assert_eq!(terms.version, before.version);
    }
}

#[test]
fn the_levels_that_need_replies_come_and_go_with_them() {
    let (_, before, asked) = rich();
    assert_eq!(before.levels, [1, 2]);
    let given_up = change(&json!({ "supports_confirmation_reply": false }));
    let (_, terms, asked) =
        renegotiate(&signed_offer(), &before, &asked, &given_up).expect("other terms");
    assert_eq!(terms.levels, [1]);
    let able_again = change(&json!({ "supports_confirmation_reply": true }));
    let (_, terms, _) =
        renegotiate(&signed_offer(), &terms, &asked, &able_again).expect("other terms");
    assert_eq!(terms.levels, [1, 2]);
}

#[test]
fn named_filters_replace_both_and_the_subscriber_is_told() {
    let (accepted, terms, _) =
        renegotiated(&json!({ "event_filters": { "exclude": ["aaep:agent.state.changed"] } }));
    assert_eq!(terms.include, Terms::defaults().include);
    assert_eq!(terms.exclude.len(), 1);
    assert!(accepted.negotiation_notes.expect("notes").contains("include is the default"));

    let (accepted, terms, _) = renegotiated(&json!({ "event_filters": { "include": ["*"] } }));
    assert!(terms.exclude.is_empty());
    assert!(accepted.negotiation_notes.expect("notes").contains("nothing is excluded"));
}

#[test]
fn what_is_named_is_narrowed_as_in_a_request_and_the_rest_keeps_its_value() {
    let (mut offer, terms, asked) = rich();
    // The offer has shrunk since languages and rate were granted.
    offer.max_events_per_second = Some(2);
    offer.languages = tags(&["de"]);
    let (accepted, unchanged, _) =
        renegotiate(&offer, &terms, &asked, &change(&json!({ "pace_wpm": 200 }))).expect("ok");
    assert_eq!(unchanged.max_events_per_second, Some(3));
    assert_eq!(unchanged.languages, terms.languages);
    assert_eq!(accepted.negotiation_notes, None);
    let faster = change(&json!({ "max_events_per_second": 9 }));
    let (accepted, narrowed, asked) = renegotiate(&offer, &terms, &asked, &faster).expect("ok");
    assert_eq!(narrowed.max_events_per_second, Some(2));
    assert_eq!(asked.max_events_per_second, Some(9));
    assert!(accepted.negotiation_notes.is_some());
}

#[test]
fn a_change_that_cannot_be_granted_ends_the_subscription() {
    let (signed, terms, asked) = rich();
    let strict = Offer { only_offered_languages: true, ..offer() };
    for (offer, fields, code) in [
        (
            &strict,
            json!({ "accept_signed_manifests_only": true }),
            ReasonCode::ManifestSignatureRequired,
        ),
        (&strict, json!({ "languages": ["yo"] }), ReasonCode::CapabilitiesIncompatible),
        (&signed, json!({ "rdf": {} }), ReasonCode::CapabilitiesIncompatible),
        (
            &signed,
            json!({ "supported_extensions": [IMPOSTOR, MEDAI] }),
            ReasonCode::CapabilitiesIncompatible,
        ),
    ] {
        let rejected = renegotiate(offer, &terms, &asked, &change(&fields)).expect_err("rejected");
        assert_valid(&aaep::check(&rejected));
        assert_eq!(rejected.reason_code, code, "{fields}");
    }
    let mut wrong = change(&json!({}));
    wrong.capabilities.pace_wpm = Some(1);
    let rejected = renegotiate(&signed, &terms, &asked, &wrong).expect_err("malformed");
    assert_eq!(rejected.reason_code, ReasonCode::Unknown);
}

#[test]
fn the_version_stays_the_negotiated_one() {
    let offer = Offer { versions: versions(&["1.0.0", "1.1.0"]), ..offer() };
    let newer = request_of("1.1.0", &json!({}));
    let (_, terms) = negotiate(&offer, Door::Open, 0, &newer, id()).expect("accepted");
    let shrunk = Offer { versions: versions(&["1.0.0"]), ..offer };
    let (accepted, ..) =
        renegotiate(&shrunk, &terms, &newer.capabilities, &change(&json!({}))).expect("accepted");
    assert_eq!(accepted.aaep_version.as_str(), "1.1.0");
}

#[test]
fn what_was_asked_does_not_grow_with_unknown_extensions() {
    let (offer, mut terms, mut asked) = rich();
    for n in 0..100 {
        let change = change(&json!({ format!("haptic{n}"): { "pulse": true } }));
        (_, terms, asked) = renegotiate(&offer, &terms, &asked, &change).expect("accepted");
    }
    assert_eq!(asked.other.len(), 1);
    assert_eq!(terms.other.len(), 1);
}

#[test]
fn a_subscriber_without_a_handshake_keeps_its_ability_to_answer_through_a_change() {
    let able = Terms { confirmation_reply: true, ..Terms::defaults() };
    let slower = change(&json!({ "max_events_per_second": 1 }));
    let (accepted, terms, _) =
        renegotiate(&offer(), &able, &Capabilities::new(), &slower).expect("accepted");
    assert!(terms.confirmation_reply);
    assert_eq!(accepted.honored_capabilities.supports_confirmation_reply, None);
}
