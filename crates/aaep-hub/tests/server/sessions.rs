//! Looking back at sessions, and what happens to those whose access ends.

use aaep_engine::Now;
use aaep_hub::access::{Scope, Tokens};
use serde_json::{Value, json};

use crate::support::*;

fn ended(session_id: &str) -> Value {
    json!({
        "type": "aaep:agent.session.completed", "session_id": session_id,
        "producer": { "agent_id": "builder" }, "summary_normal": "Done.",
    })
}

#[test]
fn sessions_are_listed_read_and_deleted_once_they_are_over() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let listed = hub.get("/aaep/v1/sessions").json();
    assert_eq!(listed["sessions"][0]["session_id"], "sess_1", "{listed}");
    let events = hub.get("/aaep/v1/sessions/sess_1/events").json();
    assert_eq!(events["events"][0]["event"]["type"], "aaep:agent.session.started");
    let delete = || hub.as_someone("", "DELETE", "/aaep/v1/sessions/sess_1", "");
    delete().refuses(409, "still_running");
    let done = hub.post("/aaep/v1/publish", &ended("sess_1"));
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(delete().status, 204);
    delete().refuses(404, "no_such_session");
    hub.get("/aaep/v1/sessions/sess_1/events").refuses(404, "no_such_session");
    hub.get("/aaep/v1/sessions/x/events").refuses(404, "no_such_session");
    hub.get("/aaep/v1/sessions?skip=x").refuses(400, "wrong_parameter");
}

#[test]
fn deleting_takes_the_scope_for_it() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let listener = token(&hub.folder, "listener", &[Scope::Listen]);
    let delete = hub.as_someone(&listener, "DELETE", "/aaep/v1/sessions/sess_1", "");
    delete.refuses(403, "scope_missing");
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    // A new token is known within about a second.
    while hub.as_someone(&agent, "GET", "/aaep/v1/sessions", "").status == 401 {}
    hub.as_someone(&agent, "GET", "/aaep/v1/sessions", "").refuses(403, "scope_missing");
}

#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let listener = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply]);
    let id = hub.subscribe(&listener);
    let mut stream = hub.stream(&listener, &id);
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    tokens.refresh(Now { monotonic_us: 0, unix_us: 0 });
    let id_of_token = tokens.list()[0].id.clone();
    tokens.revoke(&id_of_token).expect("revoked");
    stream.rest();
    let path = format!("/aaep/v1/events?subscription_id={id}");
    hub.as_someone(&listener, "GET", &path, "").refuses(401, "credentials_refused");
}
