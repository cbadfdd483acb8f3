//! Shares: one principal at its limit is refused, and a person still listens and answers (ruling 38).

use aaep_engine::Now;
use aaep_hub::access::{Scope, Tokens};
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

/// Opens streams with this header until one is refused.
fn take_streams(hub: &TestHub, headers: &str) -> Vec<Client> {
    let open = || {
        let mut client = hub.connect();
        let end = "host: localhost";
        client.send(&format!("GET /events HTTP/1.1\r\n{end}\r\n{headers}\r\n"));
        client.head().starts_with("HTTP/1.1 200 ").then_some(client)
    };
    std::iter::from_fn(open).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn one_local_program_leaves_room_for_others_and_for_those_that_are_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut tokens = Tokens::load(&folder.path().join("tokens.toml")).expect("tokens");
    let now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
    tokens.allow_program("test", now).expect("allowed");
    let hub = TestHub::in_folder(folder, |options| {
        options.config.limits.connections_per_principal = 16;
        options.config.access.trust_local_programs = false;
    });
    let hogged = take_streams(&hub, "");
    assert!((8..16).contains(&hogged.len()), "{} streams", hogged.len());
    hub.get("/aaep/v1/agents").refuses(429, "too_many_connections");
    let other = std::process::Command::new("curl")
        .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}"])
        .arg(format!("http://{}/aaep/v1/agents", hub.address()))
        .output()
        .expect("curl runs");
    assert_eq!(String::from_utf8_lossy(&other.stdout), "200", "another program gets in");
    let mut allowed = hub.stream("", &hub.subscribe(""));
    let key = person(&hub);
    let mut listening = hub.stream(&key, &hub.subscribe(&key));
    let begun =
        hub.as_someone(&key, "POST", "/aaep/v1/publish", &started("sess_1", "a").to_string());
    assert_eq!(begun.status, 200, "{}", begun.body);
    assert_eq!(allowed.event()["session_id"], "sess_1", "and one that the person allowed");
    assert_eq!(listening.event()["session_id"], "sess_1");
}

#[test]
fn subscriptions_of_others_leave_room_for_the_person() {
    let hub = TestHub::with(|options| options.config.hub.max_subscriptions = 8);
    let tokens: Vec<_> =
        (0..4).map(|n| token(&hub.folder, &format!("hog {n}"), &[Scope::Listen])).collect();
    let body = subscription_request().to_string();
    let mut held = Vec::new();
    for hog in &tokens {
        for _ in 0..4 {
            let answer = hub.as_someone(hog, "POST", "/aaep/v1/subscriptions", &body);
            if answer.status == 201 {
                let id = answer.json()["subscription_id"].as_str().expect("an id").to_owned();
                held.push(hub.listening_stream(hog, &id));
            }
        }
    }
    assert_eq!(held.len(), 6, "two places are kept");
    let key = person(&hub);
    hub.listening_stream(&key, &hub.subscribe(&key));
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
