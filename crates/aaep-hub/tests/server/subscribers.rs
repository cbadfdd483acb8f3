//! Subscriptions and their streams.

use aaep_hub::access::Scope;
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn a_subscriber_subscribes_and_hears() {
    let hub = TestHub::new();
    let accepted = hub.post("/aaep/v1/subscriptions", &subscription_request());
    assert_eq!(accepted.status, 201);
    let message = accepted.json();
    assert_eq!(message["type"], "subscription.accepted");
    let place = accepted.header("location").expect("a place").to_owned();
    let id = message["subscription_id"].as_str().expect("an id");
    assert_eq!(place, format!("/aaep/v1/events?subscription_id={id}"));
    let mut stream = hub.open_stream("accept: text/event-stream\r\n", &place);
    hub.begin("sess_1");
    let text = stream.until("data: ");
    assert!(text.contains("event: aaep.event\n") && text.contains("\nid: evt_"), "{text}");
    assert!(text.contains("retry: "), "{text}");
}

#[test]
fn a_stream_goes_on_where_it_broke_off() {
    let hub = TestHub::new();
    let (id, last) = someone_who_left(&hub);
    hub.post("/aaep/v1/publish", &progress("sess_1", "evt_missed"));
    let mut second = hub.stream(&format!("last-event-id: {last}\r\n"), &id);
    assert_eq!(second.event()["event_id"], "evt_missed");
    drop(second);
    hub.post("/aaep/v1/publish", &progress("sess_1", "evt_missed2"));
    let path = format!("/aaep/v1/events?subscription_id={id}&last_event_id=evt_missed");
    let mut third = hub.open_stream("", &path);
    assert_eq!(third.event()["event_id"], "evt_missed2");
}

#[test]
fn a_subscriber_takes_its_place_back_with_a_new_request() {
    let hub = TestHub::new();
    let (id, last) = someone_who_left(&hub);
    hub.post("/aaep/v1/publish", &progress("sess_1", "evt_missed"));
    let mut request = subscription_request();
    request["extensions"] =
        json!({ "agentvoice": { "resume": { "subscription_id": id, "last_event_id": last } } });
    let accepted = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(accepted.status, 201, "{}", accepted.body);
    let new = accepted.json()["subscription_id"].as_str().expect("an id").to_owned();
    let mut stream = hub.stream("", &new);
    assert_eq!(stream.event()["event_id"], "evt_missed");
}

#[test]
fn head_on_a_stream_takes_nothing_away() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut client = hub.connect();
    for path in [format!("/aaep/v1/events?subscription_id={id}"), "/events".to_owned()] {
        client.send(&format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
    }
    client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(client.reply().status, 200, "the connection is still that of requests");
}

#[test]
fn a_stream_says_that_the_connection_ends_with_it() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    for path in [format!("/aaep/v1/events?subscription_id={id}"), "/events".to_owned()] {
        let mut client = hub.connect();
        client.send(&format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        let head = client.head();
        assert!(!head.contains("connection: close"), "requests may follow: {head}");
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("connection: close"), "{head}");
    }
    let mut stream = hub.stream("", &id);
    let close = json!({ "type": "subscription.close", "subscription_id": id });
    hub.post("/aaep/v1/replies", &close);
    assert!(stream.rest().ends_with("0\r\n\r\n"), "the body has its end before the connection");
}

#[test]
fn an_old_client_hears_without_chunks() {
    let hub = TestHub::new();
    let mut client = hub.connect();
    client.send("GET /events HTTP/1.0\r\nhost: localhost\r\n\r\n");
    let head = client.head();
    assert!(head.contains(" 200 ") && !head.contains("transfer-encoding"), "{head}");
    hub.begin("sess_1");
    assert_eq!(client.event()["session_id"], "sess_1");
}

#[test]
fn streams_of_nobody_and_of_somebody_else_are_not_found() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let mine = token(&hub.folder, "mine", &[Scope::Listen]);
    let theirs = token(&hub.folder, "theirs", &[Scope::Listen]);
    let id = hub.subscribe(&mine);
    let path = format!("/aaep/v1/events?subscription_id={id}");
    let unknown = "/aaep/v1/events?subscription_id=sub_unknown";
    let foreign = hub.as_someone(&theirs, "GET", &path, "");
    foreign.refuses(404, "no_such_subscription");
    assert_eq!(hub.as_someone(&mine, "GET", unknown, "").body, foreign.body);
    let odd = "/aaep/v1/events?subscription_id=%1b%5b2J";
    hub.as_someone(&mine, "GET", odd, "").refuses(404, "no_such_subscription");
}

#[test]
fn a_stream_needs_to_say_which_and_from_where() {
    let hub = TestHub::new();
    hub.get("/aaep/v1/events").refuses(400, "wrong_request");
    hub.get("/aaep/v1/events?subscription_id=a&subscription_id=b").refuses(400, "wrong_parameter");
    let id = hub.subscribe("");
    let path = format!("/aaep/v1/events?subscription_id={id}");
    let headers = "last-event-id: what was that\r\n";
    hub.as_someone(headers, "GET", &path, "").refuses(400, "wrong_request");
}

#[test]
fn requests_that_cannot_be_granted_are_rejected_in_the_words_of_the_handshake() {
    let hub = TestHub::new();
    let mut request = subscription_request();
    request["aaep_version"] = "99.99.99".into();
    let rejected = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(rejected.status, 409);
    assert_eq!(rejected.json()["reason_code"], "version_unsupported");
    request["what_version_99_has"] = true.into();
    let rejected = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(rejected.json()["reason_code"], "version_unsupported", "{}", rejected.body);
    request["aaep_version"] = "1.0.0".into();
    let rejected = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!((rejected.status, &rejected.json()["reason_code"]), (400, &"unknown".into()));
    let other = reply("rpl_00000000000000000000000000000000", "sub_1", "accept");
    hub.post("/aaep/v1/subscriptions", &other).refuses(400, "wrong_request");
}

#[test]
fn strangers_are_rejected_in_the_words_of_the_handshake() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let rejected = hub.post("/aaep/v1/subscriptions", &subscription_request());
    assert_eq!(rejected.status, 401);
    assert!(rejected.header("www-authenticate").is_some());
    assert_eq!(rejected.json()["type"], "subscription.rejected");
    assert_eq!(rejected.json()["reason_code"], "authentication_required");
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    let body = subscription_request().to_string();
    let rejected = hub.as_someone(&agent, "POST", "/aaep/v1/subscriptions", &body);
    assert_eq!(rejected.status, 403);
    assert_eq!(rejected.json()["reason_code"], "authorization_denied");
    let violations = aaep::validate(rejected.body.as_bytes(), aaep::Mode::Strict);
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn one_person_cannot_take_all_subscriptions() {
    let hub = TestHub::with(|options| options.config.limits.subscriptions_per_principal = 2);
    let _both = [(); 2].map(|()| hub.listening_stream("", &hub.subscribe("")));
    let rejected = hub.post("/aaep/v1/subscriptions", &subscription_request());
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.json()["reason_code"], "rate_limit");
    assert!(rejected.header("retry-after").is_some());
}

#[test]
fn subscriptions_that_are_away_give_way_to_new_ones_the_oldest_first() {
    let hub = TestHub::with(|options| options.config.limits.subscriptions_per_principal = 3);
    let here = hub.subscribe("");
    let mut stream = hub.stream("", &here);
    let broken: Vec<String> = (0..8).map(|_| hub.subscribe("")).collect();
    let events = |id: &String| hub.get(&format!("/aaep/v1/events?subscription_id={id}")).status;
    let gone: Vec<bool> = broken[..6].iter().map(|id| events(id) == 404).collect();
    assert_eq!(gone, [true; 6], "only the two newest are left");
    hub.begin("sess_1");
    assert_eq!(stream.event()["session_id"], "sess_1", "whoever listens notices nothing");
}

#[test]
fn a_question_overtakes_pending_events_of_a_blocked_subscriber_and_nothing_is_lost() {
    let hub = TestHub::new();
    let mut slow = hub.stream("", &hub.subscribe(""));
    let quick = hears_only_questions(&hub);
    hub.begin("sess_1");
    (0..8).for_each(|round| invoke_tools(&hub, round * 30..(round + 1) * 30, 3200));
    ask_and_wait(&hub, quick);
    let heard: Vec<Value> = (0..242).map(|_| slow.event()).collect();
    let at = heard.iter().position(|it| it["type"] == "aaep:agent.awaiting.confirmation");
    assert!(at.is_some_and(|at| at < 200), "the question came at place {at:?} of 242");
    assert_eq!(tools_of(&heard), (0..240).map(|at| format!("evt_{at}")).collect::<Vec<_>>());
}

#[test]
fn a_subscriber_that_reconnects_to_a_large_backlog_hears_all_of_it_on_one_connection_and_a_question_early()
 {
    let hub = TestHub::new();
    let (id, last) = someone_who_left(&hub);
    // Four times as much as may wait for a connection.
    (0..8).for_each(|round| invoke_tools(&hub, round * 30..(round + 1) * 30, 3200));
    let quick = hears_only_questions(&hub);
    let mut back = hub.stream(&format!("last-event-id: {last}\r\n"), &id);
    back.event();
    hub.wait_until_blocked(1);
    ask_and_wait(&hub, quick);
    let mut heard: Vec<Value> = (0..241).map(|_| back.event()).collect();
    let at = heard.iter().position(|it| it["type"] == "aaep:agent.awaiting.confirmation");
    assert!(at.is_some_and(|at| at < 200), "the question came at place {at:?} of 241");
    heard.retain(|it| it["event_id"] != "evt_0");
    assert_eq!(tools_of(&heard), (1..240).map(|at| format!("evt_{at}")).collect::<Vec<_>>());
}

/// A subscriber that is told of questions and of nothing else.
fn hears_only_questions(hub: &TestHub) -> Client {
    let mut request = subscription_request();
    request["capabilities"]["event_filters"] = json!({ "include": ["aaep:agent.nothing"] });
    let id = hub.post("/aaep/v1/subscriptions", &request).json()["subscription_id"].clone();
    hub.stream("", id.as_str().expect("an id"))
}

/// An agent asks. Once another subscriber heard the question, it is on its way to all of them.
fn ask_and_wait(hub: &TestHub, mut other: Client) {
    let asked = hub.post("/aaep/v1/publish", &question("sess_1"));
    assert_eq!(asked.status, 200, "{}", asked.body);
    while other.event()["type"] != "aaep:agent.awaiting.confirmation" {}
}

/// A subscriber hears a session begin, and leaves. Returns the subscription and the last event that it heard.
fn someone_who_left(hub: &TestHub) -> (String, String) {
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let last = stream.event()["event_id"].as_str().expect("an id").to_owned();
    (id, last)
}

/// An agent calls these tools, each with this many words.
fn invoke_tools(hub: &TestHub, numbers: std::ops::Range<usize>, words: usize) {
    let words = "word ".repeat(words);
    let tools = numbers.map(|at| {
        let tool = json!({
            "type": "aaep:agent.tool.invoked", "session_id": "sess_1", "tool": "list",
            "event_id": format!("evt_{at}"), "tool_call_id": format!("call_{at}"),
            "producer": { "agent_id": "builder" }, "summary_normal": words,
        });
        tool.to_string()
    });
    let headers = "content-type: application/x-ndjson\r\n";
    let body = tools.collect::<Vec<_>>().join("\n");
    let reply = hub.as_someone(headers, "POST", "/aaep/v1/publish", &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// The ids of the tools that were called, in the order in which they were heard.
fn tools_of(heard: &[Value]) -> Vec<&str> {
    let tools = heard.iter().filter(|it| it["type"] == "aaep:agent.tool.invoked");
    tools.filter_map(|it| it["event_id"].as_str()).collect()
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected_and_others_hear_everything() {
    let hub = TestHub::with(|options| {
        options.config.limits.publish_burst = 100_000;
        options.config.limits.publishes_per_second = 100_000;
    });
    let _deaf = hub.open_stream("", "/events");
    let mut good = hub.stream("", &hub.subscribe(""));
    hub.begin("sess_1");
    good.event();
    let words = "word ".repeat(600);
    for round in 0..40 {
        let lines: Vec<String> = (0..50)
            .map(|at| {
                let mut event = progress("sess_1", &format!("evt_{round}x{at}"));
                event["summary_normal"] = words.clone().into();
                event.to_string()
            })
            .collect();
        let headers = "content-type: application/x-ndjson\r\n";
        let reply = hub.as_someone(headers, "POST", "/aaep/v1/publish", &lines.join("\n"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        for at in 0..50 {
            assert_eq!(good.event()["event_id"], format!("evt_{round}x{at}"));
        }
    }
    assert_eq!(hub.get("/readyz").status, 200);
}
