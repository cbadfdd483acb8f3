//! A manifest is complete, valid by our own schema, and refuses what would make it invalid.

use aaep::extension::{CONTEXT, PREFIX};
use aaep::{Message, Mode};
use aaep_trust::manifest::{self, Endpoint, MAX_JWS_CHARACTERS, ManifestDescription, SignError};
use serde_json::{Value, json};

use crate::support::*;

/// Our own schema of the manifest, as `aaep schema` writes it.
fn schema_accepts(manifest: &Value) -> bool {
    let files = aaep::schemas();
    let schema = files
        .iter()
        .find(|file| {
            file.schema["properties"]["agent_id"].is_object() && file.path.contains("manifest")
        })
        .expect("there is a schema of the manifest");
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema.schema)
        .expect("a schema");
    validator.is_valid(manifest)
}

#[test]
fn a_manifest_says_all_that_the_specification_asks_for() {
    let manifest = serde_json::to_value(built()).expect("JSON");
    assert!(schema_accepts(&manifest), "{manifest:#}");
    assert_eq!(
        manifest,
        json!({
            "@context": ["https://aaep-protocol.org/context/v1", CONTEXT],
            "type": "aaep:producer.manifest",
            "agent_id": "photo-tidier",
            "agent_version": "2.3.0",
            "agent_name": "Photo Tidier",
            "aaep_versions_supported": ["1.0.0"],
            "conformance_levels_supported": [1, 2, 3],
            "transports_supported": ["sse", "websocket", "unix-socket"],
            "languages_supported": ["en-GB", "yo-NG"],
            "event_types_emitted": ["aaep:agent.*"],
            "extensions_supported": [CONTEXT],
            "default_verbosity": "normal",
            "max_concurrent_subscriptions": 1000,
            "contact": "help@example.org",
            "extensions": { PREFIX: {
                "capabilities": { "max_events_per_second": 50 },
                "endpoints": [
                    { "transport": "sse", "uri": "https://agents.example.org/aaep/v1/events" },
                    { "transport": "websocket", "uri": "wss://agents.example.org/aaep/v1/ws" },
                    { "transport": "unix-socket", "framing": "length-prefixed" },
                ],
                "jwks_uri": "https://agents.example.org/.well-known/aaep-jwks.json",
                "manifest_uri": "https://agents.example.org/.well-known/aaep-manifest.json",
                "signing_keys": [],
            }},
        })
    );
}

#[test]
fn a_manifest_of_a_name_alone_is_valid() {
    let built = manifest::build(&ManifestDescription::new("x")).expect("a manifest");
    let manifest = serde_json::to_value(&built).expect("JSON");
    assert!(schema_accepts(&manifest), "{manifest:#}");
    let reading = aaep::read(manifest.to_string().as_bytes(), Mode::Strict);
    assert_eq!(reading.message, Some(Message::Manifest(Box::new(built))));
    assert_eq!(manifest["extensions_supported"], json!([CONTEXT]), "our extension is always named");
}

#[test]
fn what_would_not_be_valid_is_not_made() {
    let refused = |change: &dyn Fn(&mut ManifestDescription), pointer: &str| {
        let mut description = description();
        change(&mut description);
        let error = manifest::build(&description).expect_err(pointer);
        assert!(error.violations.iter().any(|it| it.pointer == pointer), "{error}");
    };
    refused(&|it| it.agent_id.clear(), "/agent_id");
    refused(&|it| it.aaep_versions.clear(), "/aaep_versions_supported");
    refused(&|it| it.contact = Some("x".repeat(257)), "/contact");
    refused(&|it| it.conformance_levels.push(4), "/conformance_levels_supported");
    refused(&|it| it.max_concurrent_subscriptions = Some(0), "/max_concurrent_subscriptions");
}

#[test]
fn one_transport_at_two_addresses_is_named_once() {
    let mut description = description();
    description.endpoints.push(Endpoint {
        transport: "sse".to_owned(),
        uri: Some(uri("https://agents.example.org/events")),
        framing: None,
    });
    let manifest = serde_json::to_value(manifest::build(&description).expect("a manifest"));
    let manifest = manifest.expect("JSON");
    assert_eq!(manifest["transports_supported"], json!(["sse", "websocket", "unix-socket"]));
    assert_eq!(manifest["extensions"][PREFIX]["endpoints"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_signed_manifest_is_still_a_valid_manifest() {
    for (algorithm, _) in both() {
        let signed = signed(&key(algorithm));
        let document = document(&signed);
        assert!(schema_accepts(&document), "{document:#}");
        let violations = aaep::validate(document.to_string().as_bytes(), Mode::Strict);
        assert_eq!(violations, []);
        assert_eq!(document["extensions"][PREFIX]["signed_manifest"], signed.jws.as_str());
    }
}

#[test]
fn what_is_signed_is_the_canonical_manifest_with_its_times() {
    let signed = signed(&key(aaep_trust::keys::SigningAlgorithm::EdDsa));
    let payload = payload(signed.jws.as_str());
    let value: Value = serde_json::from_slice(&payload).expect("JSON");
    assert_eq!(serde_json_canonicalizer::to_vec(&value).expect("JSON"), payload);
    let data = &value["extensions"][PREFIX];
    assert_eq!(data["issued_at"], "2026-09-21T14:13:20.000Z");
    assert_eq!(data["expires_at"], "2026-09-21T15:13:20.000Z");
    assert_eq!(data.get("signed_manifest"), None);
}

#[test]
fn signing_again_replaces_the_signature() {
    let key = key(aaep_trust::keys::SigningAlgorithm::EdDsa);
    let once = signed(&key);
    let twice = manifest::sign(&once.document, &key, NOW, HOUR).expect("signed");
    assert_eq!(twice, once, "Ed25519 signs the same bytes the same way");
}

#[test]
fn what_is_too_large_to_send_is_not_signed() {
    let mut description = description();
    description.agent_name = Some("x".repeat(MAX_JWS_CHARACTERS - 100));
    let manifest = manifest::build(&description).expect("a manifest");
    let key = key(aaep_trust::keys::SigningAlgorithm::EdDsa);
    assert_eq!(manifest::sign(&manifest, &key, NOW, HOUR), Err(SignError::TooLarge));
    let for_ever = std::time::Duration::MAX;
    assert_eq!(manifest::sign(&built(), &key, NOW, for_ever), Err(SignError::Time));
}
