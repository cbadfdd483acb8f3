//! gRPC calls: their messages, and which callers are let in.

use aaep_hub::access::Scope;
use aaep_transport::grpc::GetManifestRequest;
use serde_json::{Value, json};
use tonic::Code;
use tonic::codegen::tokio_stream;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::support::*;
use crate::support::*;

#[test]
fn a_subscriber_does_everything_on_one_call() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let id = call.subscribe();
    hub.begin("sess_1");
    assert_eq!(call.next()["type"], "aaep:agent.session.started");
    let open = asked(&hub);
    let asked = call.next_of("aaep:agent.awaiting.confirmation");
    let token = asked["reply_token"].as_str().expect("a token");
    call.say(&reply("rpl_0123456789abcdef0123456789abcdef", &id, "accept"));
    assert_eq!(call.next_of("agentvoice:error")["error"], "invalid_token", "a forged reply");
    let location = open.header("location").expect("a place");
    let state = hub.get(&format!("{location}?wait_seconds=0")).json();
    assert_eq!(state["status"], "open", "and it decided nothing");
    call.say(&reply(token, &id, "accept"));
    assert_eq!(outcome(&hub, &open), (json!("accept"), json!("reply")));
}

#[test]
fn a_clarification_is_answered_on_a_call() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let id = call.subscribe();
    hub.begin("sess_1");
    let question = json!({
        "type": "aaep:agent.awaiting.clarification", "session_id": "sess_1",
        "producer": { "agent_id": "builder" },
        "question": "Which branch?", "accepted_response_kinds": ["freetext"],
        "timeout_seconds": 600,
    });
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question);
    assert_eq!(open.status, 202, "{}", open.body);
    let asked = call.next_of("aaep:agent.awaiting.clarification");
    call.say(&json!({
        "type": "clarification.reply", "reply_token": asked["reply_token"], "subscription_id": id,
        "response": "main", "timestamp": "2020-01-01T00:00:00.000Z",
    }));
    let state = hub.get(open.header("location").expect("a place")).json();
    assert_eq!((&state["response"], &state["decided_by"]), (&json!("main"), &json!("reply")));
}

#[test]
fn an_invalid_message_is_reported_and_the_call_goes_on() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    call.say_bytes(b"{");
    call.say_bytes(b"");
    assert_eq!(call.next()["error"], "not_valid");
    call.subscribe();
}

#[test]
fn a_caller_without_the_listen_scope_is_refused_and_hears_nothing() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen]);
    for (who, code) in [
        ("", Code::Unauthenticated),
        ("authorization: Bearer aaep_wrong", Code::Unauthenticated),
        ("authorization: Basic aaep_wrong", Code::Unauthenticated),
        (agent.as_str(), Code::PermissionDenied),
    ] {
        let refused = Call::begin(&hub, who).err().expect("a refusal");
        assert_eq!(refused.code(), code, "{who}: {refused}");
        assert!(refused.message().contains(". "), "with a next step: {}", refused.message());
    }
    Call::begin(&hub, &subscriber).expect("a call").subscribe();
}

#[test]
fn a_call_for_another_host_or_from_a_foreign_page_is_refused() {
    let hub = TestHub::new();
    let manifest = |authority: &str, page: Option<&'static str>| {
        let origin = format!("http://{authority}").parse().expect("an address");
        let mut client =
            aaep_transport::grpc::proto::aaep_service_client::AaepServiceClient::with_origin(
                channel(&hub),
                origin,
            );
        let mut request = tonic::Request::new(GetManifestRequest {});
        if let Some(page) = page {
            request.metadata_mut().insert("origin", page.parse().expect("a value"));
        }
        wait(client.get_manifest(request)).map_or_else(|status| status.code(), |_| Code::Ok)
    };
    assert_eq!(manifest("localhost", None), Code::Ok);
    assert_eq!(manifest("rebound.example.org", None), Code::PermissionDenied);
    assert_eq!(manifest("localhost", Some("https://example.org")), Code::PermissionDenied);
}

#[test]
fn everyone_may_see_the_manifest_and_it_names_this_wire() {
    let hub = TestHub::new();
    let answer = wait(client(&hub).get_manifest(GetManifestRequest {})).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&answer.into_inner().json).expect("JSON");
    assert_eq!(manifest, hub.get("/.well-known/aaep-manifest.json").json());
    let transports = manifest["transports_supported"].as_array().expect("transports");
    assert!(transports.contains(&json!("grpc")), "{transports:?}");
    let endpoints = manifest["extensions"]["agentvoice"]["endpoints"].as_array().expect("a list");
    let grpc = endpoints.iter().find(|it| it["transport"] == "grpc").expect("gRPC");
    assert_eq!(grpc["uri"], format!("grpc://{}", hub.address()));
}

#[test]
fn the_hub_says_how_it_is() {
    let hub = TestHub::new();
    let mut client = HealthClient::with_origin(channel(&hub), origin(&hub));
    let check = |service: &str| HealthCheckRequest { service: service.to_owned() };
    for service in ["", "aaep.v1.AaepService"] {
        let answer = wait(client.check(check(service))).expect("an answer").into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = wait(client.check(check("other"))).expect_err("not known");
    assert_eq!(unknown.code(), Code::NotFound);
    let mut watched = wait(client.watch(check(""))).expect("an answer").into_inner();
    let first = wait(watched.message()).expect("no end").expect("a status");
    assert_eq!(first.status(), ServingStatus::Serving);
    wait(async { hub.daemon().hub().stop().await });
    let second = wait(watched.message()).expect("no end").expect("a status");
    assert_eq!(second.status(), ServingStatus::NotServing);
}

#[test]
fn the_hub_says_what_it_speaks() {
    let hub = TestHub::new();
    let mut client = ServerReflectionClient::with_origin(channel(&hub), origin(&hub));
    let asked = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let requests = tokio_stream::iter([asked]);
    let mut said = wait(client.server_reflection_info(requests)).expect("an answer").into_inner();
    let answer = wait(said.message()).expect("no end").expect("a message");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}");
    };
    let names: Vec<&str> = list.service.iter().map(|it| it.name.as_str()).collect();
    for name in ["aaep.v1.AaepService", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{names:?}");
    }
}
