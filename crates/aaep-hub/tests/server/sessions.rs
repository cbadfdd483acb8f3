//! Looking back at sessions, and what happens to those whose access ends.

use aaep_engine::Now;
use aaep_hub::access::{HeardAgents, Scope, Tokens};
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
fn a_page_of_sessions_leads_to_the_next_one() {
    let hub = TestHub::new();
    for at in 0..5 {
        hub.begin(&format!("sess_{at}"));
    }
    hub.post("/aaep/v1/publish", &ended("sess_4"));
    let mut found: Vec<String> = Vec::new();
    let mut path = "/aaep/v1/sessions?limit=2".to_owned();
    loop {
        let page = hub.get(&path).json();
        let rows = page["sessions"].as_array().expect("rows").iter();
        found.extend(rows.map(|it| it["session_id"].as_str().expect("an id").to_owned()));
        let Some(next) = page.get("next").and_then(Value::as_str) else { break };
        path = format!("/aaep/v1/sessions?limit=2&after={next}");
    }
    assert_eq!(found, ["sess_3", "sess_2", "sess_1", "sess_0", "sess_4"]);
    let skipped = hub.get("/aaep/v1/sessions?skip=4").json();
    assert_eq!(skipped["sessions"][0]["session_id"], "sess_4");
    assert_eq!(hub.get("/aaep/v1/sessions?skip=5").json(), json!({ "sessions": [] }));
    for wrong in ["after=x", "after=", "skip=4097"] {
        hub.get(&format!("/aaep/v1/sessions?{wrong}")).refuses(400, "wrong_parameter");
    }
}

#[test]
fn an_admin_who_hears_some_agents_deletes_only_their_sessions() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let agents = token(&hub.folder, "agents", &[Scope::Publish]);
    let mail = HeardAgents::Only(["mail".to_owned()].into());
    let scopes = [Scope::Admin, Scope::Listen];
    let restricted = token_hearing(&hub.folder, "mail admin", &scopes, mail);
    let admin = token(&hub.folder, "admin", &scopes);
    hub.wait_until_known(&admin);
    for event in [started("sess_1"), ended("sess_1")] {
        let body = event.to_string();
        assert_eq!(hub.as_someone(&agents, "POST", "/aaep/v1/publish", &body).status, 200);
    }
    let delete = |who: &str| hub.as_someone(who, "DELETE", "/aaep/v1/sessions/sess_1", "");
    delete(&restricted).refuses(404, "no_such_session");
    let events = hub.as_someone(&admin, "GET", "/aaep/v1/sessions/sess_1/events", "");
    assert_eq!(events.status, 200, "it is still there");
    assert_eq!(delete(&admin).status, 204);
}

#[test]
fn deleting_takes_the_scope_for_it() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen]);
    let delete = hub.as_someone(&subscriber, "DELETE", "/aaep/v1/sessions/sess_1", "");
    delete.refuses(403, "scope_missing");
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    hub.wait_until_known(&agent);
    hub.as_someone(&agent, "GET", "/aaep/v1/sessions", "").refuses(403, "scope_missing");
}

#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply]);
    let id = hub.subscribe(&subscriber);
    let mut stream = hub.stream(&subscriber, &id);
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    tokens.refresh(Now { monotonic_us: 0, unix_us: 0 });
    let id_of_token = tokens.list()[0].id.clone();
    tokens.revoke(&id_of_token).expect("revoked");
    stream.rest();
    let path = format!("/aaep/v1/events?subscription_id={id}");
    hub.as_someone(&subscriber, "GET", &path, "").refuses(401, "credentials_refused");
}

/// Asks in a session of its own and answers it as this person, with more fields in the reply.
fn answered(hub: &TestHub, agents: &str, person: &str, session_id: &str, more: &Value) {
    let id = hub.subscribe(person);
    let _stream = hub.stream(person, &id);
    let by = |event: &Value| hub.as_someone(agents, "POST", "/aaep/v1/publish", &event.to_string());
    assert_eq!(by(&started(session_id)).status, 200);
    let asked = by(&question(session_id));
    let token = asked.json()["reply_token"].as_str().expect("a token").to_owned();
    let mut said = reply(&token, &id, "reject");
    for (key, value) in more.as_object().into_iter().flatten() {
        said[key] = value.clone();
    }
    let said = hub.as_someone(person, "POST", "/aaep/v1/replies", &said.to_string());
    assert_eq!(said.status, 204, "{}", said.body);
}

fn answers_in(hub: &TestHub, headers: &str, session_id: &str) -> Vec<Value> {
    let path = format!("/aaep/v1/sessions/{session_id}/events");
    let page = hub.as_someone(headers, "GET", &path, "");
    assert_eq!(page.status, 200, "{}", page.body);
    let page = page.json();
    let rows = page["events"].as_array().expect("rows").iter();
    rows.filter_map(|row| row.get("answer").cloned()).collect()
}

#[test]
fn the_history_says_whether_the_person_or_a_rule_answered() {
    let with_store = |options: &mut aaep_hub::server::DaemonOptions| {
        options.config.access.loopback_needs_credentials = true;
        let folder = options.tokens.parent().expect("a folder").join("store");
        options.store = Some(folder);
    };
    let hub = TestHub::with(with_store);
    let agents = token(&hub.folder, "agents", &[Scope::Publish]);
    let person = token(&hub.folder, "person", &[Scope::Listen, Scope::Reply]);
    let other = token(&hub.folder, "other", &[Scope::Listen]);
    let mail = HeardAgents::Only(["mail".to_owned()].into());
    let stranger = token_hearing(&hub.folder, "stranger", &[Scope::Listen], mail);
    hub.wait_until_known(&stranger);
    answered(&hub, &agents, &person, "sess_1", &json!({}));
    answered(&hub, &agents, &person, "sess_2", &json!({ "decided_by": "automatic: no photos" }));
    let hub = TestHub::in_folder(hub.stop(), with_store);
    for (headers, by_you) in [(&person, true), (&other, false)] {
        for (session_id, automatic) in [("sess_1", false), ("sess_2", true)] {
            let told = json!({ "by_you": by_you, "automatic": automatic });
            assert_eq!(answers_in(&hub, headers, session_id), [told], "{session_id}");
        }
    }
    let path = "/aaep/v1/sessions/sess_1/events";
    hub.as_someone(&stranger, "GET", path, "").refuses(404, "no_such_session");
    let listed = hub.as_someone(&stranger, "GET", "/aaep/v1/sessions", "").json();
    assert_eq!(listed, json!({ "sessions": [] }));
}

#[test]
fn an_unanswered_question_has_no_answer_next_to_it() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let asked = hub.post("/aaep/v1/publish", &question("sess_1"));
    assert_eq!(asked.status, 200, "{}", asked.body);
    assert_eq!(answers_in(&hub, "", "sess_1"), Vec::<Value>::new());
}
