//! The behaviour that the handshake promises, and the builders that all of these tests share.

mod answer;
mod change;
mod matching;
mod property;
mod width;

use aaep::handshake::{
    ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::{
    Capabilities, CompactJws, LanguageTag, Message, Mode, Prefix, Producer, Severity,
    SubscriptionId, Uri, Version,
};
use serde_json::{Value as Json, json};

use super::*;

/// A vocabulary that the offer knows, its next version under another prefix, and an unrelated one
/// that uses the prefix of the first.
const MEDAI: &str = "https://example.org/medai/context/v1";
const MEDAI_2: &str = "https://example.org/medai/context/v2";
const IMPOSTOR: &str = "https://example.com/other/medai/v1";

fn uri(text: &str) -> Uri {
    Uri::parse(text).expect("uri")
}

fn tags(texts: &[&str]) -> Vec<LanguageTag> {
    texts.iter().map(|text| LanguageTag::parse(text).expect("tag")).collect()
}

fn versions(texts: &[&str]) -> Vec<Version> {
    texts.iter().map(|text| Version::parse(text).expect("version")).collect()
}

/// A producer that supports everything, in English and Spanish, without limits.
fn offer() -> Offer {
    let extension = |uri: &str, prefix: &str| {
        (Uri::parse(uri).expect("uri"), Prefix::parse(prefix).expect("prefix"))
    };
    Offer {
        producer: Producer::new("retirement-planner"),
        versions: versions(&["1.0.0"]),
        languages: tags(&["en-US", "es"]),
        max_events_per_second: None,
        extensions: vec![
            extension(aaep::extension::CONTEXT, aaep::extension::PREFIX),
            extension(MEDAI, "medai"),
            extension(MEDAI_2, "medai2"),
            extension(IMPOSTOR, "medai"),
        ],
        conformance_levels: vec![1, 2],
        max_concurrent_subscriptions: 16,
        manifest_uri: Some(uri("https://example.com/.well-known/aaep-manifest.json")),
        signed_manifest: None,
        only_offered_languages: false,
    }
}

fn id() -> SubscriptionId {
    SubscriptionId::parse("sub_8a4f2c9d").expect("id")
}

fn read(message: &Json) -> Message {
    aaep::read(message.to_string().as_bytes(), Mode::Strict).into_result().expect("a valid message")
}

fn request_of(version: &str, capabilities: &Json) -> SubscriptionRequest {
    let Message::SubscriptionRequest(request) = read(&json!({
        "type": "subscription.request",
        "aaep_version": version,
        "subscriber_id": "my-reader",
        "capabilities": capabilities,
    })) else {
        panic!("a request")
    };
    *request
}

fn request(capabilities: &Json) -> SubscriptionRequest {
    request_of("1.0.0", capabilities)
}

fn capabilities(fields: &Json) -> Capabilities {
    request(fields).capabilities
}

fn change(fields: &Json) -> SubscriptionRenegotiate {
    let Message::SubscriptionRenegotiate(change) = read(&json!({
        "type": "subscription.renegotiate",
        "subscription_id": "sub_8a4f2c9d",
        "capabilities": fields,
    })) else {
        panic!("a renegotiation")
    };
    *change
}

/// Asserts that a message of ours passes a strict reader.
fn assert_valid(violations: &[aaep::Violation]) {
    let errors: Vec<_> = violations.iter().filter(|it| it.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

fn accepted(offer: &Offer, fields: &Json) -> (SubscriptionAccepted, Terms) {
    let request = request(fields);
    let (accepted, terms) =
        negotiate(offer, Door::Open, 0, &request, id()).expect("to be accepted");
    assert_valid(&aaep::check(&accepted));
    assert_eq!(wider_than(&accepted.honored_capabilities, &request.capabilities), [""; 0]);
    (accepted, terms)
}

fn rejected(offer: &Offer, fields: &Json) -> SubscriptionRejected {
    let rejected =
        negotiate(offer, Door::Open, 0, &request(fields), id()).expect_err("to be rejected");
    assert_valid(&aaep::check(&rejected));
    rejected
}

fn to_json(message: &Capabilities) -> Json {
    serde_json::to_value(message).expect("json")
}

/// For each of the twelve capabilities, one value other than the default, which [`offer`] grants.
fn each_capability() -> Vec<(&'static str, Json)> {
    vec![
        ("max_events_per_second", json!(3)),
        ("preferred_verbosity", json!("terse")),
        ("languages", json!(["es-419", "en-US"])),
        ("supports_confirmation_reply", json!(true)),
        ("supports_clarification_reply", json!(true)),
        ("coalesce_boundaries", json!(["word", "paragraph"])),
        (
            "event_filters",
            json!({ "include": ["aaep:agent.tool.*"], "exclude": ["aaep:agent.tool.invoked"] }),
        ),
        ("supported_conformance_levels", json!([1, 2])),
        ("supported_extensions", json!([aaep::extension::CONTEXT])),
        ("cognitive_load", json!("low")),
        ("pace_wpm", json!(180)),
        ("accept_signed_manifests_only", json!(true)),
    ]
}

/// The offer, with a signed manifest.
fn signed_offer() -> Offer {
    Offer { signed_manifest: Some(CompactJws::parse("a.b.c").expect("jws")), ..offer() }
}
