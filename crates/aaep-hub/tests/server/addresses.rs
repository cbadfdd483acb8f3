//! Addresses with a secret in them, for programs that say no name and send no header: the public subscribers work
//! with one, and nobody else does (rulings 3, 14, 27 and 37).

use aaep_engine::Now;
use aaep_hub::access::{Tokens, path_for_secret};
use serde_json::{Value, json};

use crate::support::*;

const NOW: Now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
const PAGE: &str = "http://localhost:5173";

/// A hub as a person starts it: local programs are not trusted.
fn hub() -> TestHub {
    TestHub::with(|options| {
        options.config.access.trust_local_programs = false;
        options.config.access.allowed_origins = vec![PAGE.to_owned()];
    })
}

fn tokens(hub: &TestHub) -> Tokens {
    Tokens::load(&hub.folder.path().join("tokens.toml")).expect("tokens")
}

/// Makes an address for a program. Returns its path.
fn address(hub: &TestHub, name: &str) -> String {
    let (secret, _) = tokens(hub).make_address(name, NOW).expect("an address");
    path_for_secret(secret.reveal())
}

/// Opens a stream and waits until it hears what happens.
fn listen(hub: &TestHub, path: &str, session_id: &str) -> Client {
    let mut stream = hub.open_stream("", path);
    hub.begin(session_id);
    while stream.event()["session_id"] != session_id {}
    stream
}

/// An agent on this machine begins a session and asks in it. Returns the hub's answer.
fn ask(hub: &TestHub, session_id: &str) -> Reply {
    hub.begin(session_id);
    hub.post("/aaep/v1/asks?wait_seconds=0", &question(session_id))
}

fn token_of(asked: &Reply) -> String {
    assert_eq!(asked.status, 202, "somebody can be asked: {}", asked.body);
    asked.json()["reply_token"].as_str().expect("a token").to_owned()
}

/// An answer as the public subscribers send it: it names no subscription.
fn nameless(token: &str, decision: &str) -> Value {
    json!({
        "type": "confirmation.reply", "reply_token": token, "decision": decision,
        "timestamp": "2020-01-01T00:00:00.123456+00:00",
    })
}

fn outcome(hub: &TestHub, token: &str) -> Value {
    hub.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0")).json()["outcome"].clone()
}

#[test]
fn a_program_at_its_address_hears_and_answers_without_a_handshake() {
    let hub = hub();
    let address = address(&hub, "nvda");
    let mut stream = listen(&hub, &format!("{address}/events"), "sess_here1");
    for (session, decision) in [("sess_1", "accept"), ("sess_2", "reject")] {
        let token = token_of(&ask(&hub, session));
        let heard = stream.event_of("aaep:agent.awaiting.confirmation");
        assert_eq!(heard["reply_token"], token.as_str());
        let answered = hub.post(&format!("{address}/messages"), &nameless(&token, decision));
        assert_eq!(answered.status, 202, "{}", answered.body);
        assert_eq!(outcome(&hub, &token), decision);
    }
    let audit = hub.as_someone(&person(&hub), "GET", "/aaep/v1/audit", "").body;
    assert!(audit.contains("address:nvda"), "the log says who answered: {audit}");
    assert!(!audit.contains(&address[5..]), "and no log has the secret");
}

#[test]
fn an_answer_belongs_to_whichever_stream_of_the_program_was_sent_the_ask() {
    let hub = hub();
    let address = address(&hub, "react");
    let mut first = listen(&hub, &format!("{address}/events"), "sess_here2");
    let mut second = listen(&hub, &format!("{address}/events"), "sess_here3");
    let token = token_of(&ask(&hub, "sess_1"));
    first.event_of("aaep:agent.awaiting.confirmation");
    second.event_of("aaep:agent.awaiting.confirmation");
    // A third one asks for terms with which it is sent no asks, and is the newest.
    let mut third = listen(&hub, &format!("{address}/events"), "sess_here4");
    let mut deaf = subscription_request();
    deaf["capabilities"]["supports_confirmation_reply"] = false.into();
    deaf["capabilities"]["supports_clarification_reply"] = false.into();
    assert_eq!(hub.post(&format!("{address}/messages"), &deaf).status, 202);
    third.event_of("subscription.accepted");
    hub.post(&format!("{address}/messages"), &nameless(&token, "accept"));
    assert_eq!(outcome(&hub, &token), "accept");
}

#[test]
fn an_agent_answers_nothing_by_the_stream_of_a_program_with_an_address() {
    let hub = hub();
    let address = address(&hub, "nvda");
    let mut stream = listen(&hub, &format!("{address}/events"), "sess_here5");
    let _own = listen(&hub, "/events", "sess_here6");
    let token = token_of(&ask(&hub, "sess_1"));
    stream.event_of("aaep:agent.awaiting.confirmation");
    let own = hub.post("/messages", &nameless(&token, "accept"));
    own.refuses(403, "may_not_answer");
    let by_name = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "nvda",
        "capabilities": { "supports_confirmation_reply": true },
    });
    let posing = hub.post("/aaep/v1/subscriptions", &by_name).json();
    assert_ne!(posing["honored_capabilities"]["supports_confirmation_reply"], true, "{posing}");
    let guess = path_for_secret(&format!("aaep_{:043}", 7));
    let guessed = hub.post(&format!("{guess}/messages"), &nameless(&token, "accept"));
    guessed.refuses(401, "credentials_refused");
    assert_eq!(outcome(&hub, &token), Value::Null);
}

#[test]
fn the_same_message_twice_in_one_is_not_an_answer() {
    let hub = hub();
    let address = address(&hub, "nvda");
    let mut stream = listen(&hub, &format!("{address}/events"), "sess_here7");
    let token = token_of(&ask(&hub, "sess_1"));
    stream.event_of("aaep:agent.awaiting.confirmation");
    let both = nameless(&token, "reject").to_string().replacen('{', "{\"decision\":\"accept\",", 1);
    let refused = hub.as_someone("", "POST", &format!("{address}/messages"), &both);
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(outcome(&hub, &token), Value::Null);
}

#[test]
fn an_address_that_was_taken_back_or_replaced_is_refused_and_its_streams_end() {
    let hub = hub();
    for (way, session_id) in [("taken back", "sess_1"), ("replaced", "sess_2")] {
        let before = address(&hub, "nvda");
        let mut stream = listen(&hub, &format!("{before}/events"), session_id);
        if way == "replaced" {
            address(&hub, "nvda");
        } else {
            tokens(&hub).forbid_program("nvda").expect("taken back");
        }
        stream.rest();
        let again = hub.as_someone("", "GET", &format!("{before}/events"), "");
        again.refuses(401, "credentials_refused");
    }
}

#[test]
fn an_address_is_for_listening_and_answering_alone() {
    let hub = hub();
    let address = address(&hub, "nvda");
    let there = |method: &str, path: &str, headers: &str| {
        hub.as_someone(headers, method, &format!("{address}{path}"), "")
    };
    assert_eq!(there("GET", "/aaep/v1/sessions", "").status, 200);
    there("POST", "/aaep/v1/publish", "").refuses(403, "scope_missing");
    there("GET", "/aaep/v1/audit", "").refuses(403, "scope_missing");
    there("GET", "/metrics", "").refuses(403, "scope_missing");
    for path in ["", "/", "/healthz", "/.well-known/aaep-manifest.json", "/for/x/events"] {
        there("GET", path, "").refuses(404, "not_found");
    }
    // With a second credential, it is unclear which one counts.
    there("GET", "/aaep/v1/sessions", &person(&hub)).refuses(401, "credentials_refused");
    there("GET", "/aaep/v1/sessions", "x-forwarded-for: 192.0.2.1\r\n")
        .refuses(401, "credentials_refused");
    let secret = address.rsplit('/').next().expect("a secret");
    let as_token = format!("authorization: Bearer {secret}\r\n");
    hub.as_someone(&as_token, "GET", "/aaep/v1/sessions", "").refuses(401, "credentials_refused");
}

#[test]
fn guesses_of_addresses_count_as_guesses_of_tokens() {
    let hub = hub();
    let mut guesses: Vec<Client> = (0..100)
        .map(|at| {
            let guess = path_for_secret(&format!("aaep_{at:043}"));
            let mut client = hub.connect();
            client.send(&request("", "GET", &format!("{guess}/aaep/v1/sessions"), ""));
            client
        })
        .collect();
    let answers: Vec<u16> = guesses.iter_mut().map(|it| it.reply().status).collect();
    let checked = answers.iter().filter(|it| **it == 401).count();
    assert!((10..20).contains(&checked), "{checked} guesses were checked");
    assert!(answers.iter().all(|it| matches!(it, 401 | 429)), "{answers:?}");
}

#[test]
fn a_page_uses_an_address_only_where_its_origin_was_allowed() {
    let hub = hub();
    let address = address(&hub, "react");
    let events = format!("{address}/events");
    for headers in ["origin: https://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
        hub.as_someone(headers, "GET", &events, "").refuses(403, "not_for_this_hub");
    }
    let origin = format!("origin: {PAGE}\r\n");
    let asking = format!(
        "{origin}access-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n"
    );
    let preflight = hub.as_someone(&asking, "OPTIONS", &format!("{address}/messages"), "");
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some(PAGE));
    let allowed = preflight.header("access-control-allow-headers").expect("headers");
    assert!(allowed.contains("Content-Type"), "{allowed}");
    let mut stream = hub.connect();
    stream.send(&format!("GET {events} HTTP/1.1\r\nhost: localhost\r\n{origin}\r\n"));
    let head = stream.head();
    assert!(head.contains(&format!("access-control-allow-origin: {PAGE}")), "{head}");
    assert!(head.contains("referrer-policy: no-referrer"), "{head}");
}

#[test]
fn a_handshake_at_an_address_leads_to_a_stream_at_the_same_address() {
    let hub = hub();
    let address = address(&hub, "reader");
    let subscriptions = format!("{address}/aaep/v1/subscriptions");
    let granted = hub.post(&subscriptions, &subscription_request());
    assert_eq!(granted.status, 201, "{}", granted.body);
    let place = granted.header("location").expect("a place").to_owned();
    assert!(place.starts_with(&format!("{address}/aaep/v1/events?")), "{place}");
    let mut stream = listen(&hub, &place, "sess_here9");
    let token = token_of(&ask(&hub, "sess_1"));
    stream.event_of("aaep:agent.awaiting.confirmation");
    let id = granted.json()["subscription_id"].as_str().expect("an id").to_owned();
    let replies = format!("{address}/aaep/v1/replies");
    assert_eq!(hub.post(&replies, &reply(&token, &id, "accept")).status, 204);
}

#[test]
fn a_program_without_a_handshake_that_may_not_answer_is_told_so_first_and_is_not_asked() {
    let hub = hub();
    let mut stream = hub.open_stream("", "/events");
    let first = stream.event();
    assert_eq!(
        (&first["type"], &first["error"]),
        (&json!("agentvoice:error"), &json!("may_not_answer"))
    );
    let words = first["summary_normal"].as_str().expect("words that programs show and speak");
    assert!(words.contains("aaep allow NAME --address"), "{words}");
    let asked = ask(&hub, "sess_1");
    assert_eq!(asked.json()["decided_by"], "no_listener", "{}", asked.body);
    let told = stream.event_of("aaep:agent.state.changed");
    assert_eq!(told["to_state"], "awaiting_input");
    let token = asked.json()["reply_token"].as_str().expect("a token").to_owned();
    hub.post("/messages", &nameless(&token, "accept")).refuses(403, "may_not_answer");
}

#[test]
fn a_program_that_may_not_answer_is_told_so_at_the_handshake_with_the_next_step() {
    let hub = hub();
    let notes = |hub: &TestHub, request: &Value| {
        let accepted = hub.post("/aaep/v1/subscriptions", request).json();
        accepted["negotiation_notes"].as_str().unwrap_or_default().to_owned()
    };
    let mut request = subscription_request();
    let told = notes(&hub, &request);
    assert!(told.contains("may listen, but not answer"), "{told}");
    assert!(told.ends_with("aaep allow test"), "{told}");
    request["subscriber_id"] = "x; rm -rf ~".into();
    let told = notes(&hub, &request);
    assert!(told.contains("aaep allow NAME") && !told.contains("rm -rf"), "{told}");
    tokens(&hub).allow_program("test", NOW).expect("allowed");
    let allowed = || notes(&hub, &subscription_request());
    wait_until("the program is allowed", || !allowed().contains("aaep allow"));
    let mut hears = subscription_request();
    hears["subscriber_id"] = "display".into();
    hears["capabilities"] = json!({ "event_filters": { "include": ["*"] } });
    assert!(!notes(&hub, &hears).contains("aaep allow"), "it did not want to answer");
}

#[test]
fn where_all_local_programs_are_trusted_an_answer_without_a_subscription_counts_at_once() {
    let hub = TestHub::new();
    let mut stream = hub.open_stream("", "/events");
    hub.begin("sess_2");
    assert_eq!(stream.event()["session_id"], "sess_2", "nothing is in its way");
    let token = token_of(&ask(&hub, "sess_1"));
    stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(hub.post("/messages", &nameless(&token, "accept")).status, 202);
    assert_eq!(outcome(&hub, &token), "accept");
}

#[test]
fn a_prompt_by_an_address_that_was_replaced_reaches_no_agent() {
    let hub = hub();
    let accepts = json!({ "accepts": ["prompt"] }).to_string();
    hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &accepts);
    let prompt = |address: &str, text: &str| {
        hub.post(&format!("{address}/messages"), &json!({ "kind": "user_input", "text": text }))
    };
    let old = address(&hub, "nvda");
    assert_eq!(prompt(&old, "Old").status, 202, "it waits for a stream");
    let new = address(&hub, "nvda");
    wait_until("the old address is refused", || prompt(&old, "Old").status == 401);
    let mut stream = listen(&hub, &format!("{new}/events"), "sess_here12");
    assert_eq!(prompt(&new, "New").status, 202);
    stream.event_of("input.accepted");
    let inbox = hub.get("/aaep/v1/agents/builder/inbox?after=0").json();
    let told: Vec<&Value> = inbox["instructions"].as_array().expect("a list").iter().collect();
    assert_eq!(told.len(), 1, "{inbox}");
    assert_eq!(told[0]["text"], "New");
}
