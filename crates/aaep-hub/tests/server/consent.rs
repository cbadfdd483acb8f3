//! What consent covers, over HTTP (rulings 16, 17, 35): an agent gets no more out of an answer than what
//! was asked, out of silence nothing, and never keeps a person from saying no.

use aaep_hub::access::Scope;
use serde_json::{Value, json};

use crate::support::*;

/// A question about something harmless.
fn harmless(more: Value) -> Value {
    let mut asked = question("sess_1");
    asked["action"] = "Sort the photos by date".into();
    asked["risk_level"] = "low".into();
    asked["reversibility"] = "reversible".into();
    if let Value::Object(more) = more {
        more.into_iter().for_each(|(key, value)| asked[key] = value);
    }
    asked
}

fn wipe() -> Value {
    json!({
        "type": "aaep:agent.tool.invoked", "session_id": "sess_1",
        "producer": { "agent_id": "builder" }, "tool": "wipe_disk",
        "summary_normal": "Wiping the disk.", "irreversible": true, "risk_level": "high",
    })
}

/// Asks, and has the person answer. Returns the outcome.
fn decided(hub: &TestHub, asked: &Value, decision: &str) -> Value {
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", asked);
    assert_eq!(open.status, 202, "{}", open.body);
    let token = open.json()["reply_token"].as_str().expect("a token").to_owned();
    stream.event_of("aaep:agent.awaiting.confirmation");
    let answered = hub.post("/aaep/v1/replies", &reply(&token, &id, decision));
    assert_eq!((answered.status, answered.body.as_str()), (204, ""));
    hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0")).json()
}

#[test]
fn an_unanswered_ask_lets_nothing_irreversible_pass() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let asked = harmless(json!({ "action": "List the photos", "default_decision": "accept" }));
    let settled = hub.post("/aaep/v1/asks?wait_seconds=0", &asked).json();
    assert_eq!(
        (&settled["outcome"], &settled["decided_by"]),
        (&json!("accept"), &json!("no_listener"))
    );
    let refused = hub.post("/aaep/v1/publish", &wipe());
    refused.refuses(409, "accepted_by_default");
    assert!(
        refused.body.contains("Ask again and wait for the accept of a person"),
        "{}",
        refused.body
    );
    let listing = json!({
        "type": "aaep:agent.tool.invoked", "session_id": "sess_1",
        "producer": { "agent_id": "builder" }, "tool": "list_photos",
        "summary_normal": "Listing the photos.",
    });
    assert_eq!(hub.post("/aaep/v1/publish", &listing).status, 200, "what is harmless goes on");
}

#[test]
fn a_yes_to_something_harmless_does_not_let_something_worse_pass() {
    let hub = TestHub::new();
    let settled = decided(&hub, &harmless(json!({})), "accept");
    assert_eq!(settled["outcome"], "accept");
    let refused = hub.post("/aaep/v1/publish", &wipe());
    refused.refuses(409, "accepted_as_reversible");
    assert!(refused.body.contains("irreversible set to true"), "{}", refused.body);
}

#[test]
fn a_yes_to_exactly_that_lets_it_pass_once() {
    let hub = TestHub::new();
    decided(&hub, &question("sess_1"), "accept");
    assert_eq!(hub.post("/aaep/v1/publish", &wipe()).status, 200);
    hub.post("/aaep/v1/publish", &wipe()).refuses(409, "irreversible_without_accept");
}

#[test]
fn a_reject_counts_whatever_the_agent_allows() {
    let hub = TestHub::new();
    let asked = harmless(json!({ "allowed_replies": ["accept"], "default_decision": "accept" }));
    let settled = decided(&hub, &asked, "reject");
    assert_eq!((&settled["outcome"], &settled["decided_by"]), (&json!("reject"), &json!("reply")));
}

#[test]
fn a_rule_does_not_accept_what_only_a_person_may() {
    let hub = TestHub::new();
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply]);
    let id = hub.subscribe(&subscriber);
    let mut stream = hub.stream(&subscriber, &id);
    hub.begin("sess_1");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    let token = open.json()["reply_token"].as_str().expect("a token").to_owned();
    stream.event_of("aaep:agent.awaiting.confirmation");
    for rule in ["auto:configured_policy", "automatic", "rule: x", "timeout"] {
        let mut by_rule = reply(&token, &id, "accept");
        by_rule["decided_by"] = rule.into();
        let answer = hub.as_someone(&subscriber, "POST", "/aaep/v1/replies", &by_rule.to_string());
        answer.refuses(400, "invalid_token");
    }
    let mut by_person = reply(&token, &id, "accept");
    by_person["decided_by"] = "user:ines".into();
    let by_person = by_person.to_string();
    assert_eq!(hub.as_someone(&subscriber, "POST", "/aaep/v1/replies", &by_person).status, 204);
}
