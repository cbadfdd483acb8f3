//! Identity: agents that would answer themselves, speak under a name of another, or hear and answer
//! what is somebody else's (rulings 36 and 37).

use std::collections::BTreeSet;

use aaep_engine::Now;
use aaep_hub::access::{HeardAgents, NewToken, Scope, Tokens};
use serde_json::{Value, json};

use crate::support::*;

const NOW: Now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
const ALL: &[Scope] = &[Scope::Listen, Scope::Reply, Scope::Publish];
const LISTENER: &[Scope] = &[Scope::Listen, Scope::Reply];

/// A hub as a person starts it: local programs are not trusted.
fn hub() -> TestHub {
    TestHub::with(|options| options.config.access.trust_local_programs = false)
}

/// Makes a token for an owner, bound to these names. Returns its header.
fn token_for(hub: &TestHub, owner: &str, scopes: &[Scope], speaks_as: &[&str]) -> String {
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    let new = NewToken {
        name: format!("a token for {owner}"),
        scopes: scopes.iter().copied().collect(),
        hears: HeardAgents::Own,
        owners: BTreeSet::from([owner.to_owned()]),
        speaks_as: speaks_as.iter().map(|name| (*name).to_owned()).collect(),
        expires: None,
    };
    let (secret, _) = tokens.create(new, NOW).expect("a token");
    format!("authorization: Bearer {}\r\n", secret.reveal())
}

fn publish(hub: &TestHub, who: &str, event: &Value) -> Reply {
    hub.as_someone(who, "POST", "/aaep/v1/publish", &event.to_string())
}

/// The same event under another name.
fn named(mut event: Value, agent_id: &str) -> Value {
    event["producer"]["agent_id"] = agent_id.into();
    event
}

/// Begins a session and asks in it. Returns the hub's answer.
fn ask(hub: &TestHub, who: &str, session_id: &str) -> Reply {
    assert_eq!(publish(hub, who, &started(session_id)).status, 200);
    let body = question(session_id).to_string();
    hub.as_someone(who, "POST", "/aaep/v1/asks?wait_seconds=0", &body)
}

fn answer(hub: &TestHub, who: &str, subscription_id: &str, token: &str) -> Reply {
    let body = reply(token, subscription_id, "accept").to_string();
    hub.as_someone(who, "POST", "/aaep/v1/replies", &body)
}

fn token_of(asked: &Reply) -> String {
    asked.json()["reply_token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_local_program_that_was_not_allowed_does_not_count_as_able_to_answer() {
    let hub = hub();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    let asked = ask(&hub, "", "sess_1");
    assert_eq!(asked.status, 200, "settled at once: {}", asked.body);
    assert_eq!(asked.json()["outcome"], "reject");
    assert_eq!(asked.json()["decided_by"], "no_listener");
    let told = stream.event_of("aaep:agent.state.changed");
    assert_eq!(told["to_state"], "awaiting_input", "it still hears what is asked");
    answer(&hub, "", &id, &token_of(&asked)).refuses(400, "invalid_token");
}

#[test]
fn the_person_answers_with_the_key_and_agents_lack_it() {
    let hub = hub();
    let me = person(&hub);
    let id = hub.subscribe(&me);
    let mut stream = hub.stream(&me, &id);
    let asked = ask(&hub, "", "sess_1");
    assert_eq!(asked.status, 202, "{}", asked.body);
    let heard = stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(heard["extensions"]["agentvoice"]["publisher"], "local", "who asks is told");
    let token = token_of(&asked);
    answer(&hub, "", &id, &token).refuses(400, "invalid_token");
    let wrong = "authorization: Bearer aaep_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n";
    assert_eq!(answer(&hub, wrong, &id, &token).status, 401);
    assert_eq!(answer(&hub, &me, &id, &token).status, 204);
}

#[test]
fn a_program_answers_once_the_person_allowed_it_and_no_longer_than_that() {
    let hub = hub();
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    let id = hub.subscribe("");
    let mut before = hub.stream("", &id);
    tokens.allow_program("test", NOW).expect("allowed");
    let ended = before.rest();
    assert!(ended.contains("permission_changed"), "it is told to subscribe again: {ended}");
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    let asked = ask(&hub, "", "sess_1");
    assert_eq!(asked.status, 202, "{}", asked.body);
    stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(answer(&hub, "", &id, &token_of(&asked)).status, 204);
    tokens.forbid_program("test").expect("forbidden");
    let ended = stream.rest();
    assert!(ended.contains("permission_changed"), "{ended}");
    let _listens = hub.stream("", &hub.subscribe(""));
    assert_eq!(ask(&hub, "", "sess_2").json()["decided_by"], "no_listener");
}

#[test]
fn another_program_does_not_answer_under_its_own_name() {
    let hub = hub();
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    tokens.allow_program("the reader", NOW).expect("allowed");
    let id = hub.subscribe("");
    let _stream = hub.stream("", &id);
    assert_eq!(ask(&hub, "", "sess_1").json()["decided_by"], "no_listener");
}

#[test]
fn a_token_that_may_do_everything_does_not_answer_itself() {
    let hub = hub();
    let agent = token_for(&hub, "ada", ALL, &[]);
    let id = hub.subscribe(&agent);
    let _stream = hub.stream(&agent, &id);
    let alone = ask(&hub, &agent, "sess_1");
    assert_eq!(alone.json()["decided_by"], "no_listener");
    let ada = token_for(&hub, "ada", LISTENER, &[]);
    let ada_id = hub.subscribe(&ada);
    let _heard = hub.stream(&ada, &ada_id);
    let asked = ask(&hub, &agent, "sess_2");
    assert_eq!(asked.status, 202, "{}", asked.body);
    answer(&hub, &agent, &id, &token_of(&asked)).refuses(400, "invalid_token");
    assert_eq!(answer(&hub, &ada, &ada_id, &token_of(&asked)).status, 204);
}

#[test]
fn what_belongs_to_somebody_else_is_neither_heard_nor_seen_nor_answered() {
    let hub = hub();
    let agent = token_for(&hub, "ada", &[Scope::Publish], &[]);
    let ada = token_for(&hub, "ada", LISTENER, &[]);
    let eve = token_for(&hub, "eve", LISTENER, &[]);
    let (ada_id, eve_id) = (hub.subscribe(&ada), hub.subscribe(&eve));
    let mut heard = hub.stream(&ada, &ada_id);
    let mut deaf = hub.stream(&eve, &eve_id);
    let asked = ask(&hub, &agent, "sess_1");
    let token = token_of(&asked);
    heard.event_of("aaep:agent.awaiting.confirmation");
    answer(&hub, &eve, &eve_id, &token).refuses(400, "invalid_token");
    answer(&hub, &eve, &ada_id, &token).refuses(400, "invalid_token");
    for who in [&eve, &person(&hub)] {
        let seen = |path: &str| hub.as_someone(who, "GET", path, "");
        assert_eq!(seen("/aaep/v1/asks").json()["asks"], json!([]));
        assert_eq!(seen("/aaep/v1/sessions").json()["sessions"], json!([]));
        assert_eq!(seen("/aaep/v1/sessions/sess_1/events").status, 404);
        assert_eq!(seen("/aaep/v1/agents").json()["agents"], json!([]));
    }
    // Eve hears her own agents, so the silence before did not come from a broken stream.
    let her_agent = token_for(&hub, "eve", &[Scope::Publish], &[]);
    let other = named(started("sess_2"), "notes");
    assert_eq!(publish(&hub, &her_agent, &other).status, 200);
    assert_eq!(deaf.event()["session_id"], "sess_2");
    assert_eq!(answer(&hub, &ada, &ada_id, &token).status, 204);
}

#[test]
fn a_name_is_not_taken_over_when_its_session_has_ended() {
    let hub = hub();
    let first = token_for(&hub, "ada", &[Scope::Publish], &[]);
    let second = token_for(&hub, "eve", &[Scope::Publish], &[]);
    let begin = |who: &str, session: &str| publish(&hub, who, &named(started(session), "payroll"));
    assert_eq!(begin(&first, "sess_1").status, 200);
    let done = json!({
        "type": "aaep:agent.session.completed", "session_id": "sess_1",
        "producer": { "agent_id": "payroll" }, "summary_normal": "Done.",
    });
    assert_eq!(publish(&hub, &first, &done).status, 200);
    begin(&second, "sess_2").refuses(409, "name_taken");
    begin("", "sess_3").refuses(409, "name_taken");
    let hello = json!({ "accepts": ["prompt"] }).to_string();
    let declared = hub.as_someone(&second, "PUT", "/aaep/v1/agents/payroll", &hello);
    assert!(declared.status >= 400, "{}", declared.body);
    assert_eq!(begin(&first, "sess_4").status, 200);
}

#[test]
fn an_agent_does_not_speak_as_another_in_its_own_session() {
    let hub = hub();
    let photos = token_for(&hub, "ada", &[Scope::Publish], &[]);
    let impostor = token_for(&hub, "ada", &[Scope::Publish], &[]);
    assert_eq!(publish(&hub, &photos, &named(started("sess_1"), "photos")).status, 200);
    assert_eq!(publish(&hub, &impostor, &named(started("sess_2"), "notes")).status, 200);
    let posing = named(question("sess_2"), "photos");
    publish(&hub, &impostor, &posing).refuses(409, "name_taken");
}

#[test]
fn an_agent_does_not_take_a_name_that_reads_like_the_name_of_another() {
    let hub = hub();
    let first = token_for(&hub, "ada", &[Scope::Publish], &[]);
    let second = token_for(&hub, "eve", &[Scope::Publish], &[]);
    assert_eq!(publish(&hub, &first, &named(started("sess_1"), "caf\u{e9}")).status, 200);
    publish(&hub, &second, &named(started("sess_2"), "caf\u{e9}")).refuses(409, "name_taken");
    let decomposed = named(started("sess_3"), "cafe\u{301}");
    publish(&hub, &second, &decomposed).refuses(422, "name_not_composed");
}

#[test]
fn no_agent_speaks_in_the_name_of_the_hub() {
    let hub = hub();
    for name in ["aaep-hub", "AAEP hub", "aaep_hub", "Aaep.Hub"] {
        publish(&hub, "", &named(started("sess_1"), name)).refuses(409, "name_taken");
        let mut renamed = named(started("sess_2"), "photos");
        renamed["producer"]["agent_name"] = name.into();
        publish(&hub, "", &renamed).refuses(409, "name_taken");
    }
}

#[test]
fn a_bound_name_is_its_tokens_alone_from_the_beginning() {
    let hub = hub();
    let bound = token_for(&hub, "ada", &[Scope::Publish], &["payroll"]);
    publish(&hub, "", &named(started("sess_1"), "payroll")).refuses(409, "name_taken");
    publish(&hub, &bound, &named(started("sess_2"), "photos")).refuses(403, "name_not_yours");
    assert_eq!(publish(&hub, &bound, &named(started("sess_3"), "payroll")).status, 200);
}

/// Before the bound token has said anything.
#[test]
fn nobody_else_gets_or_is_heard_under_a_name_that_reads_like_a_bound_one() {
    let hub = hub();
    let me = person(&hub);
    let bound = token_for(&hub, "me", &[Scope::Publish], &["payroll"]);
    for name in ["Payroll", "payro11", "p\u{430}yroll", "pay-roll"] {
        publish(&hub, "", &named(started("sess_1"), name)).refuses(409, "name_taken");
    }
    let mut stream = hub.stream(&me, &hub.subscribe(&me));
    let mut posing = started("sess_2");
    posing["producer"]["agent_name"] = "P\u{430}yroll".into();
    assert_eq!(publish(&hub, "", &posing).status, 200);
    let heard = stream.event_of("aaep:agent.session.started");
    assert_eq!(heard["producer"]["agent_name"], "P\u{430}yroll (local program)");
    assert_eq!(publish(&hub, &bound, &named(started("sess_3"), "payroll")).status, 200);
    let heard = stream.event_of("aaep:agent.session.started");
    assert_eq!(heard["producer"], json!({ "agent_id": "payroll" }), "it keeps its name");
}

#[test]
fn a_token_bound_to_a_name_has_it_at_once_and_everyone_hears_of_it_before_anything_else() {
    let hub = hub();
    let me = person(&hub);
    let mut stream = hub.stream(&me, &hub.subscribe(&me));
    assert_eq!(publish(&hub, "", &named(started("sess_1"), "payroll")).status, 200);
    let bound = token_for(&hub, "me", &[Scope::Publish], &["payroll", "books"]);
    assert_eq!(publish(&hub, &bound, &named(started("sess_2"), "books")).status, 200);
    let asked = publish(&hub, &bound, &named(question("sess_2"), "payroll"));
    assert_eq!(asked.status, 200, "{}", asked.body);
    let mut heard = Vec::new();
    while heard.last() != Some(&"aaep:agent.awaiting.confirmation".to_owned()) {
        let event = stream.event();
        let words = event["summary_normal"].as_str().unwrap_or_default();
        let is_told = words.contains("Another program speaks as payroll now");
        let kind = if is_told { "told" } else { event["type"].as_str().unwrap_or_default() };
        heard.push(kind.to_owned());
    }
    assert!(heard.contains(&"told".to_owned()), "{heard:?}");
    publish(&hub, "", &named(question("sess_1"), "payroll")).refuses(409, "name_taken");
    let audit = hub.as_someone(&me, "GET", "/aaep/v1/audit", "");
    assert!(audit.body.contains("name_taken_over"), "{}", audit.body);
}

#[test]
fn tokens_that_are_bound_to_one_name_do_not_take_it_from_each_other() {
    let hub = hub();
    let me = person(&hub);
    let first = token_for(&hub, "ada", &[Scope::Publish], &["payroll"]);
    let second = token_for(&hub, "eve", &[Scope::Publish], &["payroll", "books"]);
    let begin = |who: &str, session: &str| publish(&hub, who, &named(started(session), "payroll"));
    assert_eq!(begin(&first, "sess_1").status, 200);
    begin(&second, "sess_2").refuses(409, "name_taken");
    assert_eq!(publish(&hub, &second, &named(started("sess_3"), "books")).status, 200);
    publish(&hub, &second, &named(question("sess_3"), "payroll")).refuses(409, "name_taken");
    assert_eq!(begin(&first, "sess_4").status, 200);
    let audit = hub.as_someone(&me, "GET", "/aaep/v1/audit", "");
    assert!(!audit.body.contains("name_taken_over"), "{}", audit.body);
}

#[test]
fn a_name_that_a_second_agent_of_a_session_uses_is_held_over_a_restart() {
    let with_store = |options: &mut aaep_hub::server::DaemonOptions| {
        options.config.access.trust_local_programs = false;
        options.store = options.tokens.parent().map(|folder| folder.join("store"));
    };
    let folder = TestHub::with(|options| options.store = None).stop();
    let hub = TestHub::in_folder(folder, with_store);
    let first = token_for(&hub, "ada", &[Scope::Publish], &[]);
    let second = token_for(&hub, "ada", &[Scope::Publish], &[]);
    assert_eq!(publish(&hub, &first, &named(started("sess_1"), "books")).status, 200);
    let state = |to: &str| {
        json!({
            "type": "aaep:agent.state.changed", "session_id": "sess_1", "to_state": to,
            "producer": { "agent_id": "payroll" },
        })
    };
    assert_eq!(publish(&hub, &first, &state("thinking")).status, 200);
    let hub = TestHub::in_folder(hub.stop(), with_store);
    publish(&hub, &second, &named(started("sess_2"), "payroll")).refuses(409, "name_taken");
    assert_eq!(publish(&hub, &first, &state("responding")).status, 200);
}

#[test]
fn a_name_longer_than_any_that_is_kept_is_refused_and_the_hub_goes_on() {
    let hub = hub();
    for characters in [1025, 4096] {
        let long = named(started("sess_1"), &"x".repeat(characters));
        let refused = publish(&hub, "", &long);
        assert_eq!(refused.status, 422, "{}", refused.body);
    }
    assert_eq!(publish(&hub, "", &started("sess_2")).status, 200);
}

#[test]
fn an_agent_does_not_say_who_it_is_for_the_hub() {
    let hub = hub();
    hub.begin("sess_1");
    let mut posing = question("sess_1");
    posing["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    posing["extensions"] = json!({ "agentvoice": { "publisher": "person" } });
    publish(&hub, "", &posing).refuses(409, "speaks_for_the_hub");
}

#[test]
fn a_local_program_that_was_not_allowed_tells_no_agent_what_to_do_and_administers_nothing() {
    let hub = hub();
    let hello = json!({ "accepts": ["prompt"] }).to_string();
    let declared = hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &hello);
    assert!(declared.status < 300, "{}", declared.body);
    let id = hub.subscribe("");
    let prompt = json!({
        "type": "agentvoice:agent.prompt", "subscription_id": id, "text": "Delete everything.",
    });
    let refused = hub.post("/aaep/v1/replies", &prompt);
    refused.refuses(409, "not_accepted");
    assert_eq!(hub.as_someone("", "DELETE", "/aaep/v1/sessions/sess_1", "").status, 403);
    let legacy = json!({ "kind": "user_input", "text": "Delete everything." });
    let mut stream = hub.open_stream("", "/events");
    assert_eq!(stream.event_of("agentvoice:error")["error"], "may_not_answer");
    hub.post("/messages", &legacy);
    assert_eq!(stream.event_of("agentvoice:error")["error"], "not_accepted");
}

#[test]
fn a_program_that_names_itself_after_its_stream_began_is_what_it_says() {
    let hub = hub();
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    tokens.allow_program("test", NOW).expect("allowed");
    let mut stream = hub.open_stream("", "/events");
    let asked = ask(&hub, "", "sess_1");
    assert_eq!(asked.json()["decided_by"], "no_listener", "it has not said who it is");
    assert!(hub.post("/messages", &subscription_request()).status < 300);
    let accepted = stream.event_of("subscription.accepted");
    let id = accepted["subscription_id"].as_str().expect("an id");
    let asked = ask(&hub, "", "sess_2");
    assert_eq!(asked.status, 202, "{}", asked.body);
    stream.event_of("aaep:agent.awaiting.confirmation");
    let token = token_of(&asked);
    let answered = hub.post("/messages", &reply(&token, id, "accept"));
    assert!(answered.status < 300, "{}", answered.body);
    let settled = hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=10")).json();
    assert_eq!(settled["outcome"], "accept");
}

#[test]
fn an_agent_does_not_answer_prompt_or_close_on_the_legacy_stream_of_an_allowed_program() {
    let hub = hub();
    let mut tokens = Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens");
    tokens.allow_program("test", NOW).expect("allowed");
    let hello = json!({ "accepts": ["prompt"] }).to_string();
    assert!(hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &hello).status < 300);
    let mut stream = hub.open_stream("", "/events");
    assert!(hub.post("/messages", &subscription_request()).status < 300);
    stream.event_of("subscription.accepted");
    let asked = ask(&hub, "", "sess_1");
    assert_eq!(asked.status, 202, "{}", asked.body);
    stream.event_of("aaep:agent.awaiting.confirmation");
    let token = token_of(&asked);
    hub.post("/messages", &reply(&token, "whatever", "accept"));
    let mut nameless = reply(&token, "whatever", "accept");
    nameless.as_object_mut().expect("an object").remove("subscription_id");
    hub.post("/messages", &nameless);
    let close = json!({
        "type": "subscription.close", "subscription_id": "whatever", "reason_code": "normal",
    });
    hub.post("/messages", &close);
    let prompt = json!({ "kind": "user_input", "text": "Delete everything." });
    let prompted = hub.post("/messages", &prompt).json();
    assert_eq!(prompted["status"], "not_accepted");
    let open = hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0"));
    assert_eq!(open.json()["outcome"], Value::Null, "{}", open.body);
}

#[test]
fn what_was_shared_before_a_restart_and_no_longer_is_is_not_heard_after_it() {
    let hub = TestHub::with(|options| options.store = None);
    let folder = hub.stop();
    let with_store = |options: &mut aaep_hub::server::DaemonOptions| {
        options.config.access.trust_local_programs = false;
        options.store = options.tokens.parent().map(|folder| folder.join("store"));
    };
    let hub = TestHub::in_folder(folder, with_store);
    let eve = token_hearing(&hub.folder, "eve", LISTENER, HeardAgents::All);
    let id = hub.subscribe(&eve);
    drop(hub.stream(&eve, &id));
    let folder = hub.stop();
    let file = folder.path().join("tokens.toml");
    let text = std::fs::read_to_string(&file).expect("tokens");
    let narrow = text.replace("hears = \"all\"", "hears = \"own\"");
    assert_ne!(text, narrow);
    std::fs::write(&file, narrow).expect("written");
    let hub = TestHub::in_folder(folder, with_store);
    let path = format!("/aaep/v1/events?subscription_id={id}");
    let mut client = hub.connect();
    client.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{eve}\r\n"));
    assert_eq!(publish(&hub, "", &started("sess_1")).status, 200);
    let heard = client.rest();
    assert!(!heard.contains("sess_1"), "{heard}");
}
