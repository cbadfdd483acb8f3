//! Requests that are not granted: every code of the specification, with what helps (§5.5.3, rulings 12 and 22).

use aaep_hub::access::Scope;
use serde_json::{Value, json};

use crate::sockets::{next, open, send};
use crate::support::*;

const SUBSCRIBE: &str = "/aaep/v1/subscriptions";

/// A rejection over HTTP: its status, and what it says.
fn rejected(reply: &Reply, status: u16, code: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.body);
    let rejected = reply.json();
    assert_eq!(rejected["type"], "subscription.rejected", "{rejected}");
    assert_eq!(rejected["reason_code"], code, "{rejected}");
    let violations = aaep::validate(reply.body.as_bytes(), aaep::Mode::Strict);
    assert!(violations.is_empty(), "{violations:?}");
    rejected
}

fn request_with(field: &str, value: Value) -> Value {
    let mut request = subscription_request();
    request["capabilities"][field] = value;
    request
}

#[test]
fn version_unsupported_names_the_versions_and_the_manifest() {
    let hub = TestHub::new();
    let mut request = subscription_request();
    request["aaep_version"] = "2.0.0".into();
    let rejected = rejected(&hub.post(SUBSCRIBE, &request), 409, "version_unsupported");
    assert!(rejected["reason_message"].as_str().expect("words").contains("1.0.0"));
    assert!(rejected["alternative_manifest_uri"].is_string());
}

#[test]
fn manifest_signature_required_where_there_are_no_keys() {
    let hub = TestHub::new();
    let request = request_with("accept_signed_manifests_only", json!(true));
    let rejected = rejected(&hub.post(SUBSCRIBE, &request), 409, "manifest_signature_required");
    assert!(rejected["alternative_manifest_uri"].is_string());
}

#[test]
fn capabilities_incompatible_where_a_common_language_is_required_and_there_is_none() {
    let hub = TestHub::with(|options| {
        options.config.hub.languages = vec!["de-DE".to_owned()];
        options.config.hub.require_language = true;
    });
    let request = request_with("languages", json!(["yo", "fr-CA"]));
    let rejected = rejected(&hub.post(SUBSCRIBE, &request), 409, "capabilities_incompatible");
    let words = rejected["reason_message"].as_str().expect("words");
    assert!(words.contains("de-DE") && words.contains("en-US"), "{words}");
    let uri = rejected["alternative_manifest_uri"].as_str().expect("where to look");
    let path = uri.split_once("//").and_then(|it| it.1.split_once('/')).expect("a path").1;
    let manifest = hub.get(&format!("/{path}")).json();
    assert_eq!(manifest["languages_supported"], json!(["de-DE", "en-US"]));
    for served in [json!(["yo", "de-AT", "de"]), json!(["en"])] {
        let reply = hub.post(SUBSCRIBE, &request_with("languages", served));
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
}

#[test]
fn without_a_common_language_the_primary_one_is_served_and_said() {
    let hub = TestHub::new();
    let reply = hub.post(SUBSCRIBE, &request_with("languages", json!(["yo"])));
    assert_eq!(reply.status, 201);
    let accepted = reply.json();
    assert!(accepted["honored_capabilities"].get("languages").is_none());
    let notes = accepted["negotiation_notes"].as_str().expect("notes");
    assert!(notes.contains("en-US") && notes.contains("left out"), "{notes}");
}

#[test]
fn rate_limit_says_when_to_try_again() {
    let hub = TestHub::with(|options| options.config.limits.subscriptions_per_principal = 1);
    let _stream = hub.listening_stream("", &hub.subscribe(""));
    let reply = hub.post(SUBSCRIBE, &subscription_request());
    let rejected = rejected(&reply, 429, "rate_limit");
    assert!(rejected["retry_after_seconds"].is_u64());
    assert!(reply.header("retry-after").is_some());
}

#[test]
fn authentication_required_and_authorization_denied_at_the_door() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    rejected(&hub.post(SUBSCRIBE, &subscription_request()), 401, "authentication_required");
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    let body = subscription_request().to_string();
    let reply = hub.as_someone(&agent, "POST", SUBSCRIBE, &body);
    rejected(&reply, 403, "authorization_denied");
}

#[test]
fn transport_unavailable_where_no_subscription_is_served() {
    let hub = TestHub::new();
    for request in [subscription_request(), json!({ "type": "subscription.request" })] {
        let reply = hub.post("/aaep/v1/replies", &request);
        let rejected = rejected(&reply, 409, "transport_unavailable");
        assert!(rejected["alternative_manifest_uri"].is_string());
        let mut agent = open(&hub, "/aaep/v1/agent", "aaep.agent.v1", "");
        send(&mut agent, &request);
        let rejected = next(&mut agent);
        assert_eq!(rejected["reason_code"], "transport_unavailable", "{rejected}");
    }
}

#[test]
fn unknown_with_all_that_is_malformed() {
    let hub = TestHub::new();
    let mut request = request_with("max_events_per_second", json!(0));
    request["subscriber_id"] = 7.into();
    request["extra"] = true.into();
    let rejected = rejected(&hub.post(SUBSCRIBE, &request), 400, "unknown");
    let words = rejected["reason_message"].as_str().expect("words");
    for pointer in ["/subscriber_id", "/extra", "/capabilities/max_events_per_second"] {
        assert!(words.contains(pointer), "{pointer}: {words}");
    }
}

#[test]
fn what_does_not_name_itself_a_request_gets_an_error() {
    let hub = TestHub::new();
    hub.as_someone("", "POST", SUBSCRIBE, "{").refuses(400, "not_valid");
    hub.post(SUBSCRIBE, &json!({})).refuses(400, "not_valid");
    hub.post(SUBSCRIBE, &json!({ "type": "subscription.requests" })).refuses(400, "not_valid");
    hub.post("/aaep/v1/replies", &json!({ "type": "confirmation.reply" }))
        .refuses(400, "not_valid");
}

#[test]
fn the_legacy_path_rejects_in_its_answer_and_on_its_stream() {
    let hub = TestHub::new();
    let malformed = json!({ "type": "subscription.request", "aaep_version": "1.0.0" });
    rejected(&hub.post("/messages", &malformed), 400, "unknown");
    let mut old = subscription_request();
    old["aaep_version"] = "0.9.0".into();
    rejected(&hub.post("/messages", &old), 409, "version_unsupported");
    let mut stream = hub.open_stream("", "/events");
    rejected(&hub.post("/messages", &malformed), 400, "unknown");
    assert_eq!(stream.event_of("subscription.rejected")["reason_code"], "unknown");
    // The stream goes on with the terms that it has.
    hub.begin("sess_1");
    stream.event_of("aaep:agent.session.started");
    let mut socket = open(&hub, "/events", "", "");
    send(&mut socket, &malformed);
    let mut heard = next(&mut socket);
    while heard["type"] != "subscription.rejected" {
        heard = next(&mut socket);
    }
    assert_eq!(heard["reason_code"], "unknown");
}
