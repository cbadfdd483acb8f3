//! Shares: one principal at its limit is refused, and a person beside it listens and answers (ruling 38).

use aaep_hub::access::Scope;
use serde_json::json;

use crate::support::*;

/// A hub with small limits, and the token of an agent that takes all it can.
fn crowded() -> (TestHub, String) {
    let hub = TestHub::with(|options| {
        options.config.limits.sessions_per_principal = 3;
        options.config.limits.asks_per_principal = 2;
    });
    let hog = token(&hub.folder, "hog", &[Scope::Publish]);
    (hub, hog)
}

fn started(session: &str, agent: &str) -> serde_json::Value {
    json!({
        "type": "aaep:agent.session.started", "session_id": session,
        "producer": { "agent_id": agent }, "summary_normal": "Begins.",
    })
}

#[test]
fn one_agent_cannot_take_all_sessions() {
    let (hub, hog) = crowded();
    let publish = |session: &str| {
        hub.as_someone(&hog, "POST", "/aaep/v1/publish", &started(session, "hog").to_string())
    };
    for number in 0..3 {
        assert_eq!(publish(&format!("sess_hog{number}")).status, 200);
    }
    publish("sess_hog3").refuses(429, "over_share");
    let mut person = hub.stream("", &hub.subscribe(""));
    hub.begin("sess_1");
    assert_eq!(
        std::iter::repeat_with(|| person.event())
            .find(|it| it["session_id"] == "sess_1")
            .expect("an event")["session_id"],
        "sess_1"
    );
}

#[test]
fn one_agent_cannot_fill_the_disk_with_a_running_session() {
    let hub = TestHub::with(|options| {
        options.config.limits.running_bytes_per_principal = 20_000;
    });
    let hog = token(&hub.folder, "hog", &[Scope::Publish]);
    let publish = |event: &serde_json::Value| {
        hub.as_someone(&hog, "POST", "/aaep/v1/publish", &event.to_string())
    };
    assert_eq!(publish(&started("sess_hog", "hog")).status, 200);
    let large = |number: u32| {
        json!({
            "type": "aaep:agent.progress.updated", "session_id": "sess_hog",
            "producer": { "agent_id": "hog" }, "progress": { "percent": 50 },
            "summary_normal": "Half. ".repeat(1000), "correlation_id": format!("c{number}"),
        })
    };
    let refused = (0..100).map(|number| publish(&large(number))).find(|it| it.status != 200);
    let refused = refused.expect("a bound");
    assert!(refused.body.contains("End one"), "{}", refused.body);
    refused.refuses(429, "over_share");
    publish(&started("sess_more", "hog")).refuses(429, "over_share");
    // Others notice nothing, and the end of the session is taken.
    hub.begin("sess_1");
    let end = json!({
        "type": "aaep:agent.session.completed", "session_id": "sess_hog",
        "producer": { "agent_id": "hog" }, "summary_normal": "Done.",
    });
    let ended = publish(&end);
    assert_eq!(ended.status, 200, "{}", ended.body);
    assert_eq!(publish(&started("sess_more", "hog")).status, 200);
}

#[test]
fn a_session_is_ended_by_hand_and_everyone_hears_so() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let mut person = hub.stream("", &hub.subscribe(""));
    let asked = hub.post("/aaep/v1/publish", &question("sess_1"));
    assert_eq!(asked.status, 200, "{}", asked.body);
    let ended = hub.post("/aaep/v1/sessions/sess_1/end", &json!({}));
    assert_eq!(ended.status, 204, "{}", ended.body);
    let end = std::iter::repeat_with(|| person.event())
        .find(|event| event["type"] == "aaep:agent.session.errored")
        .expect("the end");
    assert!(end["summary_normal"].as_str().is_some_and(|it| it.starts_with("Ended by hand")));
    assert_eq!(hub.get("/aaep/v1/asks").json()["asks"], json!([]), "its question is withdrawn");
    hub.post("/aaep/v1/sessions/sess_1/end", &json!({})).refuses(409, "already_ended");
    hub.post("/aaep/v1/sessions/sess_none/end", &json!({})).refuses(404, "no_such_session");
}
