//! The list of pending questions: which principal sees which, and what the list says about each.

use aaep_hub::access::{HeardAgents, Scope};
use serde_json::{Value, json};

use crate::support::*;

const ASKS: &str = "/aaep/v1/asks";

/// A question of an agent, asked in a session of its own.
fn ask(hub: &TestHub, headers: &str, agent_id: &str) -> String {
    let session_id = format!("sess_{agent_id}");
    let by = |mut event: Value| {
        event["producer"]["agent_id"] = agent_id.into();
        event.to_string()
    };
    for event in [by(started(&session_id)), by(extensible(&session_id))] {
        let reply = hub.as_someone(headers, "POST", "/aaep/v1/publish", &event);
        assert_eq!(reply.status, 200, "{}", reply.body);
        if let Some(token) = reply.json()["reply_token"].as_str() {
            return token.to_owned();
        }
    }
    panic!("a question has a token");
}

/// A question whose time can be extended up to an hour.
fn extensible(session_id: &str) -> Value {
    let mut question = question(session_id);
    question["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    question["extensions"] = json!({ "agentvoice": { "max_timeout_seconds": 3600 } });
    question
}

fn waiting(hub: &TestHub, headers: &str) -> Vec<Value> {
    let reply = hub.as_someone(headers, "GET", ASKS, "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    let body = reply.json();
    let asks = body["asks"].as_array().expect("a list").clone();
    assert_eq!(body["waiting"], asks.len(), "{body}");
    asks
}

fn tokens_of(asks: &[Value]) -> Vec<&str> {
    asks.iter().map(|ask| ask["reply_token"].as_str().expect("a token")).collect()
}

/// A subscriber who can answer, so that questions stay open.
fn listen(hub: &TestHub, headers: &str) -> (String, Client) {
    let mut request = subscription_request();
    let capabilities = &mut request["capabilities"];
    capabilities["supported_extensions"] = json!([aaep::extension::CONTEXT]);
    capabilities["agentvoice"] = json!({ "extend": true });
    let reply = hub.as_someone(headers, "POST", "/aaep/v1/subscriptions", &request.to_string());
    assert_eq!(reply.status, 201, "{}", reply.body);
    let id = reply.json()["subscription_id"].as_str().expect("an id").to_owned();
    let stream = hub.stream(headers, &id);
    (id, stream)
}

#[test]
fn pending_asks_are_listed_oldest_first_until_they_are_settled() {
    let hub = TestHub::new();
    assert_eq!(waiting(&hub, ""), Vec::<Value>::new());
    let (subscription, _stream) = listen(&hub, "");
    let first = ask(&hub, "", "photos");
    let second = ask(&hub, "", "mail");
    let asks = waiting(&hub, "");
    assert_eq!(tokens_of(&asks), [&first, &second]);
    let one = &asks[0];
    assert_eq!((&one["agent_id"], &one["session_id"]), (&"photos".into(), &"sess_photos".into()));
    assert_eq!(one["event"]["action"], "Delete the database");
    assert_eq!(one["event"]["reply_token"], first.as_str());
    assert_eq!(one["paused"], false);
    let left_ms = one["left_ms"].as_u64().expect("a time");
    assert!((1..=600_000).contains(&left_ms), "{left_ms}");
    assert!(aaep::Timestamp::parse(one["asked_at"].as_str().expect("a moment")).is_ok());

    let no = reply(&first, &subscription, "reject");
    assert_eq!(hub.post("/aaep/v1/replies", &no).status, 204);
    assert_eq!(tokens_of(&waiting(&hub, "")), [&second]);
    let withdrawn = hub.as_someone("", "DELETE", &format!("{ASKS}/{second}"), "");
    assert_eq!(withdrawn.status, 204);
    assert_eq!(waiting(&hub, ""), Vec::<Value>::new());
}

#[test]
fn looking_keeps_no_question_open() {
    let hub = TestHub::new();
    waiting(&hub, "");
    ask(&hub, "", "photos");
    assert_eq!(waiting(&hub, ""), Vec::<Value>::new(), "nobody was there who could answer");
}

#[test]
fn more_time_and_a_pause_are_shown() {
    let hub = TestHub::new();
    let (subscription, _stream) = listen(&hub, "");
    let token = ask(&hub, "", "photos");
    let say = |kind: &str, more: Value| {
        let mut message = json!({
            "type": format!("agentvoice:ask.{kind}"),
            "reply_token": token, "subscription_id": subscription,
        });
        if let Some(seconds) = more.as_u64() {
            message["by_seconds"] = seconds.into();
        }
        let reply = hub.post("/aaep/v1/replies", &message);
        assert_eq!(reply.status, 204, "{}", reply.body);
    };
    say("extend", json!(1200));
    let left_ms = waiting(&hub, "")[0]["left_ms"].as_u64().expect("a time");
    assert!((600_001..=1_800_000).contains(&left_ms), "{left_ms}");
    say("pause", Value::Null);
    assert_eq!(waiting(&hub, "")[0]["paused"], true);
    say("resume", Value::Null);
    assert_eq!(waiting(&hub, "")[0]["paused"], false);
}

#[test]
fn everyone_sees_what_they_may_hear_and_no_more() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let make = |name, scopes: &[Scope], hears| token_hearing(&hub.folder, name, scopes, hears);
    let person = make("person", &[Scope::Listen, Scope::Reply], HeardAgents::All);
    let agents = make("agents", &[Scope::Publish], HeardAgents::All);
    let onlooker = make("onlooker", &[Scope::Listen], HeardAgents::All);
    let mail = HeardAgents::Only(["mail".to_owned()].into());
    let of_mail = make("of mail", &[Scope::Listen, Scope::Reply], mail);
    hub.wait_until_known(&of_mail);

    let (_, _stream) = listen(&hub, &person);
    let photos = ask(&hub, &agents, "photos");
    let mail = ask(&hub, &agents, "mail");
    assert_eq!(tokens_of(&waiting(&hub, &person)), [&photos, &mail]);
    assert_eq!(tokens_of(&waiting(&hub, &of_mail)), [&mail]);
    let seen = waiting(&hub, &onlooker);
    assert_eq!(seen.len(), 2);
    for ask in seen {
        assert!(ask.get("reply_token").is_none(), "{ask}");
        assert!(ask["event"].get("reply_token").is_none(), "{ask}");
    }
    hub.as_someone("", "GET", ASKS, "").refuses(401, "credentials_required");
    hub.as_someone(&agents, "GET", ASKS, "").refuses(403, "scope_missing");
}

#[test]
fn a_question_that_outlives_a_stop_still_waits_with_when_it_was_asked() {
    let with_store = |options: &mut aaep_hub::server::DaemonOptions| {
        let folder = options.tokens.parent().expect("a folder").join("store");
        options.store = Some(folder);
    };
    let hub = TestHub::with(with_store);
    let (_, stream) = listen(&hub, "");
    ask(&hub, "", "photos");
    let before = waiting(&hub, "");
    drop(stream);
    let hub = TestHub::in_folder(hub.stop(), with_store);
    let after = waiting(&hub, "");
    assert_eq!(tokens_of(&after), tokens_of(&before));
    assert_eq!(after[0]["asked_at"], before[0]["asked_at"]);
    assert_eq!(after[0]["event"], before[0]["event"]);
}

#[test]
fn a_list_can_be_shorter_and_says_how_many_there_are() {
    let hub = TestHub::new();
    let (_, _stream) = listen(&hub, "");
    let first = ask(&hub, "", "photos");
    ask(&hub, "", "mail");
    let body = hub.get("/aaep/v1/asks?limit=1").json();
    assert_eq!(
        (&body["waiting"], body["asks"][0]["reply_token"].as_str()),
        (&json!(2), Some(&*first))
    );
    assert_eq!(body["asks"].as_array().map(Vec::len), Some(1));
    hub.get("/aaep/v1/asks?limit=0").refuses(400, "wrong_parameter");
    hub.as_someone("", "PUT", ASKS, "").refuses(405, "method_not_allowed");
}

#[test]
fn one_agent_hides_no_question_of_another() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let make = |name, scopes: &[Scope]| token(&hub.folder, name, scopes);
    let person = make("person", &[Scope::Listen, Scope::Reply]);
    let hog = make("hog", &[Scope::Publish]);
    let quiet = make("quiet", &[Scope::Publish]);
    hub.wait_until_known(&quiet);
    let (_, _stream) = listen(&hub, &person);
    // More than fits into one page.
    let begun = hub.as_someone(&hog, "POST", "/aaep/v1/publish", &of_hog(started("sess_hog")));
    assert_eq!(begun.status, 200, "{}", begun.body);
    let mut asked = Vec::new();
    for number in 0..50 {
        let mut large = extensible("sess_hog");
        large["action"] = format!("Delete number {number}").into();
        for name in ["consequence", "summary_detailed", "summary_normal"] {
            large[name] = "x".repeat(15_000).into();
        }
        let reply = hub.as_someone(&hog, "POST", "/aaep/v1/publish", &of_hog(large));
        assert_eq!(reply.status, 200, "{}", reply.body);
        asked.push(reply.json()["reply_token"].as_str().expect("a token").to_owned());
    }
    let own = ask(&hub, &quiet, "quiet");
    let page = |after: &str| hub.as_someone(&person, "GET", &format!("{ASKS}?{after}"), "").json();
    let first = page("limit=1024");
    assert_eq!(first["waiting"], 51);
    let rows = first["asks"].as_array().expect("a list").clone();
    assert_eq!(tokens_of(&rows)[..2], [&asked[0], &own], "the first of each");
    let mut all: Vec<String> = tokens_of(&rows).into_iter().map(str::to_owned).collect();
    let mut next = first["next"].as_str().map(str::to_owned);
    assert!(next.is_some(), "they do not fit into one page");
    while let Some(after) = next {
        let page = page(&format!("limit=1024&after={after}"));
        let rows = page["asks"].as_array().expect("a list").clone();
        all.extend(tokens_of(&rows).into_iter().map(str::to_owned));
        next = page["next"].as_str().map(str::to_owned);
    }
    all.sort();
    asked.push(own);
    asked.sort();
    assert_eq!(all, asked);
    hub.as_someone(&person, "GET", &format!("{ASKS}?after=x"), "").refuses(400, "wrong_parameter");
}

fn of_hog(mut event: Value) -> String {
    event["producer"]["agent_id"] = "hog".into();
    event.to_string()
}
