//! Answers to questions, and all other messages of subscribers: once, twice, forged, from the wrong subscriber.

use aaep_hub::access::Scope;
use serde_json::{Value, json};

use crate::support::*;

/// A hub with an open question, its subscriber, and the token of the question.
fn asked(headers: &str, hub: &TestHub) -> (String, Client, String) {
    let id = hub.subscribe(headers);
    let mut stream = hub.stream(headers, &id);
    hub.begin("sess_1");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    assert_eq!(open.status, 202, "{}", open.body);
    let token = open.json()["reply_token"].as_str().expect("a token").to_owned();
    let heard = stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(heard["reply_token"], token);
    (id, stream, token)
}

fn outcome(hub: &TestHub, token: &str) -> Value {
    hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0")).json()
}

#[test]
fn a_reply_counts_once() {
    let hub = TestHub::new();
    let (id, mut stream, token) = asked("", &hub);
    let accept = reply(&token, &id, "accept");
    let counted = hub.post("/aaep/v1/replies", &accept);
    assert_eq!((counted.status, counted.body.as_str()), (204, ""));
    let settled = outcome(&hub, &token);
    assert_eq!(settled["status"], "settled");
    assert_eq!((&settled["outcome"], &settled["decided_by"]), (&json!("accept"), &json!("reply")));
    stream.event_of("aaep:agent.state.changed");
    hub.post("/aaep/v1/replies", &accept).refuses(400, "invalid_token");
    hub.post("/aaep/v1/replies", &reply(&token, &id, "reject")).refuses(400, "invalid_token");
    assert_eq!(outcome(&hub, &token)["outcome"], "accept", "the first one stands");
}

#[test]
fn a_reply_stamped_after_the_deadline_is_refused_and_the_answer_names_the_clock() {
    let hub = TestHub::new();
    let (id, _stream, token) = asked("", &hub);
    let mut late = reply(&token, &id, "accept");
    late["timestamp"] = "2999-01-01T00:00:00.000Z".into();
    let refused = hub.post("/aaep/v1/replies", &late);
    refused.refuses(400, "invalid_token");
    assert!(refused.body.contains("the clock of this machine may be wrong"), "{}", refused.body);
    assert_eq!(outcome(&hub, &token)["status"], "open", "nothing was decided");
    let in_time = hub.post("/aaep/v1/replies", &reply(&token, &id, "accept"));
    assert_eq!(in_time.status, 204, "with the right time the same answer counts");
    assert_eq!(outcome(&hub, &token)["outcome"], "accept");
}

#[test]
fn replies_that_do_not_count_get_one_answer_whatever_the_reason() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = false);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply]);
    let deaf = token(&hub.folder, "may not reply", &[Scope::Listen]);
    let stranger = token(&hub.folder, "stranger", &[Scope::Listen, Scope::Reply]);
    let deaf_id = hub.subscribe(&deaf);
    let stranger_id = hub.subscribe(&stranger);
    let (id, _stream, open) = asked(&subscriber, &hub);
    let forged = "rpl_00000000000000000000000000000000";
    let mut answers = Vec::new();
    for (who, token, subscription) in [
        (&subscriber, forged, id.as_str()),
        (&subscriber, open.as_str(), "sub_unknown"),
        (&subscriber, open.as_str(), stranger_id.as_str()),
        (&stranger, open.as_str(), id.as_str()),
        (&deaf, open.as_str(), deaf_id.as_str()),
        (&deaf, open.as_str(), id.as_str()),
    ] {
        let body = reply(token, subscription, "accept").to_string();
        let refused = hub.as_someone(who, "POST", "/aaep/v1/replies", &body);
        refused.refuses(400, "invalid_token");
        answers.push(refused.body);
    }
    let maybe = reply(&open, &id, "postpone").to_string();
    let refused = hub.as_someone(&subscriber, "POST", "/aaep/v1/replies", &maybe);
    assert_eq!(refused.status, 400);
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(outcome(&hub, &open)["status"], "open", "nothing was decided");
    let accept = reply(&open, &id, "accept").to_string();
    assert_eq!(hub.as_someone(&subscriber, "POST", "/aaep/v1/replies", &accept).status, 204);
}

#[test]
fn terms_change_and_a_subscription_ends_when_its_owner_says_so() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let change = json!({
        "type": "subscription.renegotiate", "subscription_id": id,
        "capabilities": { "max_events_per_second": 3 },
    });
    let changed = hub.post("/aaep/v1/replies", &change);
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(changed.json()["honored_capabilities"]["max_events_per_second"], 3);
    let close = json!({ "type": "subscription.close", "subscription_id": id });
    assert_eq!(hub.post("/aaep/v1/replies", &close).status, 204);
    hub.post("/aaep/v1/replies", &close).refuses(404, "no_such_subscription");
    hub.post("/aaep/v1/replies", &change).refuses(404, "no_such_subscription");
}

#[test]
fn a_wish_for_time_that_does_not_count_is_answered_like_a_reply() {
    let hub = TestHub::new();
    let (id, _stream, token) = asked("", &hub);
    let wish = json!({
        "type": "agentvoice:ask.extend", "subscription_id": id, "reply_token": token,
        "by_seconds": 60,
    });
    hub.post("/aaep/v1/replies", &wish).refuses(400, "invalid_token");
}

#[test]
fn what_is_not_sent_here_is_refused() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let mut event = progress("sess_1", "evt_1");
    event["@context"] = "https://aaep-protocol.org/context/v1".into();
    event["timestamp"] = "2026-11-16T04:00:00.000Z".into();
    hub.post("/aaep/v1/replies", &event).refuses(400, "not_for_here");
}

#[test]
fn a_person_prompts_and_cancels_an_agent_that_accepts_it() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let prompt = json!({
        "type": "agentvoice:agent.prompt", "subscription_id": id, "text": "Tidy up",
    });
    hub.post("/aaep/v1/replies", &prompt).refuses(409, "not_accepted");
    let accepts = json!({ "accepts": ["prompt", "cancel"] }).to_string();
    let put = hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &accepts);
    assert_eq!(put.status, 204, "{}", put.body);
    let agents = hub.get("/aaep/v1/agents").json();
    assert_eq!(agents["agents"][0]["agent_id"], "builder");
    let taken = hub.post("/aaep/v1/replies", &prompt);
    assert_eq!(taken.status, 202, "{}", taken.body);
    let session_id = taken.json()["session_id"].as_str().expect("a session").to_owned();
    let inbox = hub.get("/aaep/v1/agents/builder/inbox?after=0").json();
    let instruction = &inbox["instructions"][0];
    assert_eq!(instruction["type"], "agentvoice:agent.prompt");
    assert_eq!(
        (&instruction["text"], &instruction["session_id"]),
        (&json!("Tidy up"), &json!(session_id))
    );
    hub.begin(&session_id);
    let cancel = json!({ "type": "agentvoice:session.cancel", "subscription_id": id, "session_id": session_id });
    assert_eq!(hub.post("/aaep/v1/replies", &cancel).status, 202);
    let steer = json!({
        "type": "agentvoice:session.steer", "subscription_id": id, "session_id": session_id,
        "text": "Slower",
    });
    hub.post("/aaep/v1/replies", &steer).refuses(409, "not_accepted");
    let after = instruction["number"].as_u64().expect("a number");
    let inbox = hub.get(&format!("/aaep/v1/agents/builder/inbox?after={after}")).json();
    assert_eq!(inbox["instructions"].as_array().expect("a list").len(), 1);
    assert_eq!(inbox["instructions"][0]["type"], "agentvoice:session.cancel");
}
