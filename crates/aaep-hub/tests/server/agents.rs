//! Agents: publishing, asking, and hearing what people tell them.

use aaep_hub::access::{HeardAgents, Scope};
use serde_json::{Value, json};

use crate::support::*;

const LINES: &str = "content-type: application/x-ndjson\r\n";

#[test]
fn what_an_event_leaves_out_is_filled_in() {
    let hub = TestHub::new();
    let mut event = started("x");
    event.as_object_mut().expect("an object").remove("session_id");
    let reply = hub.post("/aaep/v1/publish", &event);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let body = reply.json();
    assert!(body["event_id"].as_str().expect("an id").starts_with("evt_"));
    assert!(body["session_id"].as_str().expect("an id").starts_with("sess_"));
    assert_eq!(body.get("reply_token"), None);
    assert_eq!(body.get("repeated"), None);
}

#[test]
fn what_is_sent_again_is_published_once() {
    let hub = TestHub::new();
    let mut stream = hub.open_stream("", "/events");
    hub.begin("sess_1");
    stream.event();
    let event = progress("sess_1", "evt_1");
    assert_eq!(hub.post("/aaep/v1/publish", &event).json().get("repeated"), None);
    let again = hub.post("/aaep/v1/publish", &event);
    assert_eq!((again.status, &again.json()["repeated"]), (200, &json!(true)));
    let mut nameless = progress("sess_1", "");
    nameless.as_object_mut().expect("an object").remove("event_id");
    let key = "idempotency-key: once-only\r\n";
    let send = || hub.as_someone(key, "POST", "/aaep/v1/publish", &nameless.to_string());
    let (first, second) = (send(), send());
    assert_eq!(first.json()["event_id"], second.json()["event_id"]);
    assert_eq!(second.json()["repeated"], true);
    assert_eq!(stream.event()["event_id"], "evt_1");
    assert_eq!(stream.event()["event_id"], first.json()["event_id"]);
    hub.post("/aaep/v1/publish", &progress("sess_1", "evt_last"));
    assert_eq!(stream.event()["event_id"], "evt_last", "nothing came twice");
}

#[test]
fn another_question_under_a_used_key_or_id_is_a_conflict_and_has_no_outcome() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let key = "idempotency-key: once-only\r\n";
    let ask = |headers: &str, event: &Value| {
        hub.as_someone(headers, "POST", "/aaep/v1/asks?wait_seconds=0", &event.to_string())
    };
    let mut first = question("sess_1");
    first["event_id"] = "evt_ask".into();
    assert_eq!(ask(key, &first).status, 202);
    let token = stream.event_of("aaep:agent.awaiting.confirmation")["reply_token"].clone();
    let token = token.as_str().expect("a token");
    assert_eq!(hub.post("/aaep/v1/replies", &reply(token, &id, "accept")).status, 204);
    for (headers, code) in [(key, "idempotency_key_used"), ("", "event_id_used")] {
        assert_eq!(ask(headers, &first).json()["outcome"], "accept", "sent again, answered again");
        let mut other = first.clone();
        other["action"] = "Delete the home folder".into();
        let refused = ask(headers, &other);
        refused.refuses(409, code);
        assert_eq!(refused.json().get("outcome"), None);
        let lines = format!("{headers}{LINES}");
        let refused = hub.as_someone(&lines, "POST", "/aaep/v1/publish", &other.to_string());
        assert_eq!((refused.status, &refused.json()["error"]), (409, &json!(code)));
    }
}

#[test]
fn idempotency_keys_have_a_form() {
    let hub = TestHub::new();
    let long = format!("idempotency-key: {}\r\n", "k".repeat(256));
    for headers in [
        "idempotency-key: \r\n",
        "idempotency-key: two words\r\n",
        "idempotency-key: a\r\nidempotency-key: b\r\n",
        &long,
    ] {
        let body = started("sess_1").to_string();
        let refused = hub.as_someone(headers, "POST", "/aaep/v1/publish", &body);
        refused.refuses(400, "wrong_idempotency_key");
    }
}

#[test]
fn each_line_stands_alone() {
    let hub = TestHub::new();
    let lines = [
        started("sess_1").to_string(),
        String::new(),
        "{ this is no JSON".to_owned(),
        progress("sess_other", "evt_1").to_string(),
        progress("sess_1", "evt_2").to_string(),
    ]
    .join("\r\n");
    let reply = hub.as_someone(LINES, "POST", "/aaep/v1/publish", &lines);
    assert_eq!(reply.status, 409);
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let answers: Vec<Value> =
        reply.body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 4, "{}", reply.body);
    assert_eq!(answers[0]["session_id"], "sess_1");
    assert_eq!(answers[1]["error"], "not_valid");
    assert_eq!(
        (&answers[2]["error"], &answers[2]["event_id"]),
        (&json!("not_started"), &json!("evt_1"))
    );
    assert_eq!(answers[3]["event_id"], "evt_2");
    let good =
        hub.as_someone(LINES, "POST", "/aaep/v1/publish", &progress("sess_1", "evt_3").to_string());
    assert_eq!(good.status, 200);
}

#[test]
fn more_lines_than_may_ever_come_at_once_are_not_even_read() {
    let hub = TestHub::with(|options| options.config.limits.publish_burst = 10);
    let wrong = hub.as_someone(LINES, "POST", "/aaep/v1/publish", &"1\n".repeat(10));
    assert_eq!((wrong.status, wrong.body.lines().count()), (409, 10));
    let many = hub.as_someone(LINES, "POST", "/aaep/v1/publish", &"1\n".repeat(400_000));
    many.refuses(413, "too_many_at_once");
}

#[test]
fn events_that_are_not_valid_are_refused_with_all_that_is_wrong() {
    let hub = TestHub::new();
    let mut event = started("sess_1");
    event["summary_normal"] = 7.into();
    event["colour"] = "red".into();
    let refused = hub.post("/aaep/v1/publish", &event);
    refused.refuses(422, "not_valid");
    let body = refused.json();
    let pointers: Vec<_> = body["violations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["pointer"].as_str())
        .collect();
    assert!(pointers.contains(&"/summary_normal") && pointers.contains(&"/colour"), "{pointers:?}");
    hub.post("/aaep/v1/publish", &json!([1])).refuses(422, "not_valid");
}

#[test]
fn a_question_that_says_two_things_is_refused() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let text = question("sess_1").to_string();
    let twice = text.replacen('{', "{\"default_decision\":\"accept\",", 1);
    let refused = hub.as_someone("", "POST", "/aaep/v1/asks?wait_seconds=0", &twice);
    refused.refuses(422, "not_valid");
    assert_eq!(refused.json()["violations"][0]["code"], "duplicate_key");
}

#[test]
fn too_fast_is_refused_with_a_time() {
    let hub = TestHub::with(|options| {
        options.config.limits.publish_burst = 2;
        options.config.limits.publishes_per_second = 1;
    });
    hub.begin("sess_1");
    let many: Vec<String> =
        (0..3).map(|at| progress("sess_1", &format!("evt_{at}")).to_string()).collect();
    let refused = hub.as_someone(LINES, "POST", "/aaep/v1/publish", &many.join("\n"));
    refused.refuses(413, "too_many_at_once");
    let two = hub.as_someone(LINES, "POST", "/aaep/v1/publish", &many[..2].join("\n"));
    two.refuses(429, "too_fast");
    assert!(two.header("retry-after").expect("a time").parse::<u64>().expect("seconds") >= 1);
}

#[test]
fn an_agent_asks_waits_and_hears_the_answer() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let mut asking = hub.connect();
    asking.send(&request(
        "",
        "POST",
        "/aaep/v1/asks?wait_seconds=60",
        &question("sess_1").to_string(),
    ));
    let heard = stream.event_of("aaep:agent.awaiting.confirmation");
    let token = heard["reply_token"].as_str().expect("a token");
    assert_eq!(hub.post("/aaep/v1/replies", &reply(token, &id, "reject")).status, 204);
    let settled = asking.reply();
    assert_eq!(settled.status, 200);
    let body = settled.json();
    assert_eq!(body["status"], "settled");
    assert_eq!(body["outcome"], "reject");
    assert_eq!(body["decided_by"], "reply");
    assert_eq!(body["reply_token"], token);
    assert_eq!(body["session_id"], "sess_1");
    assert_eq!(body["event_id"], heard["event_id"]);
}

#[test]
fn a_clarification_brings_back_what_was_said() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let ask = json!({
        "type": "aaep:agent.awaiting.clarification", "session_id": "sess_1",
        "producer": { "agent_id": "builder" }, "question": "Which folder?",
        "accepted_response_kinds": ["freetext"], "timeout_seconds": 600,
    });
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &ask);
    assert_eq!(open.status, 202, "{}", open.body);
    let token = stream.event_of("aaep:agent.awaiting.clarification")["reply_token"].clone();
    let answer = json!({
        "type": "clarification.reply", "reply_token": token, "subscription_id": id,
        "response": "The old one", "timestamp": "2020-01-01T00:00:00.000Z",
    });
    assert_eq!(hub.post("/aaep/v1/replies", &answer).status, 204);
    let place = open.header("location").expect("a place").to_owned();
    let settled = hub.get(&place).json();
    assert_eq!(
        (&settled["outcome"], &settled["response"]),
        (&json!("answered"), &json!("The old one"))
    );
}

#[test]
fn nobody_to_ask_is_never_a_yes() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let settled = hub.post("/aaep/v1/asks", &question("sess_1"));
    assert_eq!(settled.status, 200, "{}", settled.body);
    let body = settled.json();
    assert_eq!((&body["outcome"], &body["decided_by"]), (&json!("reject"), &json!("no_listener")));
}

#[test]
fn an_open_question_says_until_when_and_where_to_ask_again() {
    let hub = TestHub::new();
    let _stream = hub.stream("", &hub.subscribe(""));
    hub.begin("sess_1");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    assert_eq!(open.status, 202, "{}", open.body);
    let body = open.json();
    assert_eq!(body["status"], "open");
    assert!(body["deadline"].as_str().expect("a time").ends_with('Z'), "{body}");
    let token = body["reply_token"].as_str().expect("a token");
    assert_eq!(open.header("location"), Some(format!("/aaep/v1/asks/{token}").as_str()));
    let again = hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0"));
    assert_eq!((again.status, again.json()), (202, body.clone()));
    let mut repeated = question("sess_1");
    repeated["event_id"] = body["event_id"].clone();
    repeated["reply_token"] = body["reply_token"].clone();
    let repeated = hub.post("/aaep/v1/asks?wait_seconds=0", &repeated);
    assert_eq!((repeated.status, repeated.json()), (202, body), "asking again asks nobody twice");
}

#[test]
fn a_question_is_taken_back_once() {
    let hub = TestHub::new();
    let _stream = hub.stream("", &hub.subscribe(""));
    hub.begin("sess_1");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    let place = open.header("location").expect("a place").to_owned();
    assert_eq!(hub.as_someone("", "DELETE", &place, "").status, 204);
    hub.as_someone("", "DELETE", &place, "").refuses(404, "no_such_ask");
    let settled = hub.get(&place).json();
    assert_eq!(
        (&settled["outcome"], &settled["decided_by"]),
        (&json!("withdrawn"), &json!("withdrawn"))
    );
}

#[test]
fn questions_of_others_are_not_found() {
    let hub = TestHub::new();
    let mine = token(&hub.folder, "mine", &[Scope::Publish]);
    let theirs = token(&hub.folder, "theirs", &[Scope::Publish]);
    let hears = [Scope::Listen, Scope::Reply];
    let person = token_hearing(&hub.folder, "person", &hears, HeardAgents::All);
    let _stream = hub.stream(&person, &hub.subscribe(&person));
    let publish = |event: &Value| {
        hub.as_someone(&mine, "POST", "/aaep/v1/asks?wait_seconds=0", &event.to_string())
    };
    hub.as_someone(&mine, "POST", "/aaep/v1/publish", &started("sess_1").to_string());
    let open = publish(&question("sess_1"));
    assert_eq!(open.status, 202, "{}", open.body);
    let place = open.header("location").expect("a place").to_owned();
    let foreign = hub.as_someone(&theirs, "GET", &place, "");
    foreign.refuses(404, "no_such_ask");
    hub.as_someone(&theirs, "DELETE", &place, "").refuses(404, "no_such_ask");
    for unknown in ["rpl_00000000000000000000000000000000", "x", "%1b"] {
        let path = format!("/aaep/v1/asks/{unknown}?wait_seconds=0");
        assert_eq!(hub.as_someone(&mine, "GET", &path, "").body, foreign.body, "{unknown}");
    }
    assert_eq!(hub.as_someone(&mine, "GET", &format!("{place}?wait_seconds=0"), "").status, 202);
    let stolen = progress("sess_1", "evt_1").to_string();
    let refused = hub.as_someone(&theirs, "POST", "/aaep/v1/publish", &stolen);
    refused.refuses(409, "not_your_session");
}

#[test]
fn only_questions_are_asked_and_only_for_a_minute() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let event = progress("sess_1", "evt_1");
    hub.post("/aaep/v1/asks", &event).refuses(422, "not_a_question");
    assert_eq!(
        hub.post("/aaep/v1/publish", &event).json().get("repeated"),
        None,
        "nothing was published"
    );
    for wait in ["61", "-1", "1.5", "", "x"] {
        let path = format!("/aaep/v1/asks?wait_seconds={wait}");
        hub.post(&path, &question("sess_1")).refuses(400, "wrong_parameter");
    }
}

#[test]
fn an_agent_speaks_for_itself_alone() {
    let hub = TestHub::new();
    let mine = token(&hub.folder, "mine", &[Scope::Publish]);
    let theirs = token(&hub.folder, "theirs", &[Scope::Publish]);
    let accepts = json!({ "accepts": ["prompt"] }).to_string();
    let put = |who: &str, body: &str| hub.as_someone(who, "PUT", "/aaep/v1/agents/builder", body);
    assert_eq!(put(&mine, &accepts).status, 204);
    put(&theirs, &accepts).refuses(409, "name_taken");
    let inbox = "/aaep/v1/agents/builder/inbox?wait_seconds=0";
    assert_eq!(hub.as_someone(&mine, "GET", inbox, "").json()["instructions"], json!([]));
    hub.as_someone(&theirs, "GET", inbox, "").refuses(404, "no_such_agent");
    let unknown = "/aaep/v1/agents/nobody/inbox?wait_seconds=0";
    hub.as_someone(&mine, "GET", unknown, "").refuses(404, "no_such_agent");
    for wrong in ["{}", "[]", "{\"accepts\":[\"sing\"]}", "{\"accepts\":\"prompt\"}"] {
        put(&mine, wrong).refuses(400, "not_valid");
    }
}
