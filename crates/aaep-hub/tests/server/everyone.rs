//! Health, readiness, counts, and the manifest with its keys.

use aaep_trust::keys::{DEFAULT_OVERLAP, Jwks, KeyRing, SigningAlgorithm};
use aaep_trust::manifest::{Expected, verify};

use crate::support::*;

fn now_unix_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    i64::try_from(since.as_millis()).expect("a time")
}

fn signed() -> TestHub {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    let mut ring = KeyRing::open(&keys).expect("a ring");
    ring.new_key(SigningAlgorithm::Es256, DEFAULT_OVERLAP, now_unix_ms()).expect("a key");
    TestHub::in_folder(folder, |options| options.keys = Some(keys))
}

#[test]
fn a_hub_lives_and_is_ready() {
    let hub = TestHub::new();
    assert_eq!(hub.get("/healthz").json()["status"], "alive");
    assert_eq!(hub.get("/readyz").json()["status"], "ready");
}

#[test]
fn a_hub_that_cannot_work_says_so_and_still_lives() {
    let hub = TestHub::new();
    let inner = hub.daemon().hub().clone();
    hub.runtime.block_on(inner.stop());
    let refused = hub.get("/readyz");
    refused.refuses(503, "not_ready");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(hub.get("/healthz").status, 200);
    hub.post("/aaep/v1/publish", &started("sess_1")).refuses(503, "stopping");
    let rejected = hub.post("/aaep/v1/subscriptions", &subscription_request());
    assert_eq!((rejected.status, &rejected.json()["reason_code"]), (503, &"unknown".into()));
    assert!(rejected.json()["retry_after_seconds"].is_u64(), "{}", rejected.body);
    hub.runtime.block_on(hub.daemon().died());
}

#[test]
fn head_is_get_without_the_body() {
    let hub = TestHub::new();
    for path in ["/healthz", "/readyz", "/metrics", "/.well-known/aaep-manifest.json"] {
        let mut client = hub.connect();
        client
            .send(&format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(client.rest(), "", "{path}");
    }
}

#[test]
fn counts_are_there_and_count() {
    let hub = TestHub::new();
    let stream = hub.open_stream("", "/events");
    hub.begin("sess_1");
    hub.post("/aaep/v1/publish", &progress("sess_other", "evt_1")).refuses(409, "not_started");
    let text = hub.get("/metrics").body;
    for line in [
        "aaep_published_events_total 1",
        "aaep_subscriptions 1",
        "aaep_refusals_total{reason=\"not_started\"} 1",
        "aaep_http_answers_total{status=\"409\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing in:\n{text}");
    }
    drop(stream);
}

#[test]
fn the_manifest_names_the_real_addresses() {
    let hub = TestHub::new();
    let reply = hub.get("/.well-known/aaep-manifest.json");
    assert_eq!(reply.header("vary"), Some("Accept"));
    let manifest = reply.json();
    let violations = aaep::validate(reply.body.as_bytes(), aaep::Mode::Strict);
    assert!(violations.is_empty(), "{violations:?}");
    let endpoints = &manifest["extensions"]["agentvoice"]["endpoints"];
    let uri = format!("http://{}/aaep/v1/events", hub.address());
    assert_eq!(endpoints[0]["uri"], uri);
    let jose = "accept: application/jose\r\n";
    let refused = hub.as_someone(jose, "GET", "/.well-known/aaep-manifest.json", "");
    refused.refuses(406, "not_signed");
}

#[test]
fn a_hub_with_keys_signs_its_manifest_and_sends_it_along() {
    let hub = signed();
    let path = "/.well-known/aaep-manifest.json";
    let jws = hub.as_someone("accept: application/jose\r\n", "GET", path, "");
    assert_eq!(jws.header("content-type"), Some("application/jose"));
    let keys = hub.get("/.well-known/aaep-jwks.json").body;
    let keys = Jwks::parse(keys.as_bytes()).expect("keys");
    let document = hub.get(path).body;
    let origin = format!("http://{}", hub.address());
    for bytes in [&document, &jws.body] {
        let expected = Expected { pins: &[], origin: Some(&origin), agent_id: Some("aaep-hub") };
        let verified = verify(bytes.as_bytes(), &keys, &expected, now_unix_ms());
        let verified = verified.expect("verified");
        assert_eq!(verified.manifest.agent_id, "aaep-hub");
    }
    let mut request = subscription_request();
    request["capabilities"]["accept_signed_manifests_only"] = true.into();
    let accepted = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(accepted.status, 201, "{}", accepted.body);
    assert_eq!(accepted.json()["signed_manifest"], jws.body);
}

#[test]
fn a_subscriber_that_insists_on_a_signature_is_rejected_where_the_hub_has_no_key() {
    let hub = TestHub::new();
    let mut request = subscription_request();
    request["capabilities"]["accept_signed_manifests_only"] = true.into();
    let rejected = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(rejected.status, 409);
    assert_eq!(rejected.json()["type"], "subscription.rejected");
    assert_eq!(rejected.json()["reason_code"], "manifest_signature_required");
}
