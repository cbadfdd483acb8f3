//! Which requests are let in, and the answer to those that are not.

use aaep_hub::access::Scope;

use crate::support::*;

fn with_credentials() -> TestHub {
    TestHub::with(|options| options.config.access.loopback_needs_credentials = true)
}

#[test]
fn a_name_that_is_not_ours_is_refused() {
    let hub = TestHub::new();
    let foreign = hub.raw("GET /healthz HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    foreign.refuses(421, "not_for_this_hub");
    let two = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n";
    hub.raw(two).refuses(400, "not_for_this_hub");
    hub.raw("GET /healthz HTTP/1.1\r\n\r\n").refuses(400, "not_for_this_hub");
    let absolute = "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    hub.raw(absolute).refuses(400, "not_for_this_hub");
}

#[test]
fn pages_of_others_are_refused_on_every_address() {
    let hub = TestHub::new();
    for (method, path) in [
        ("GET", "/healthz"),
        ("GET", "/events"),
        ("POST", "/messages"),
        ("POST", "/aaep/v1/publish"),
        ("POST", "/aaep/v1/replies"),
        ("GET", "/aaep/v1/ws"),
        ("GET", "/nothing"),
    ] {
        for origin in ["https://evil.example", "null", "http://localhost:1"] {
            let headers = format!("origin: {origin}\r\n");
            hub.as_someone(&headers, method, path, "").refuses(403, "not_for_this_hub");
        }
    }
    let hidden = hub.as_someone("sec-fetch-site: cross-site\r\n", "GET", "/events", "");
    hidden.refuses(403, "not_for_this_hub");
}

#[test]
fn what_another_site_makes_a_browser_send_without_an_origin_is_refused() {
    let hub = TestHub::new();
    for site in ["cross-site", "same-site"] {
        let link = format!("sec-fetch-site: {site}\r\nsec-fetch-mode: navigate\r\n");
        for path in ["/aaep/v1/publish", "/aaep/v1/asks", "/aaep/v1/replies", "/messages"] {
            let form = hub.as_someone(&link, "POST", path, "{}");
            form.refuses(403, "not_for_this_hub");
        }
        for path in
            ["/events", "/aaep/v1/events?subscription_id=x", "/aaep/v1/ws", "/aaep/v1/agent"]
        {
            hub.as_someone(&link, "GET", path, "").refuses(403, "not_for_this_hub");
            let socket = format!("{link}connection: upgrade\r\nupgrade: websocket\r\n");
            hub.as_someone(&socket, "GET", path, "").refuses(403, "not_for_this_hub");
        }
        hub.as_someone(&link, "DELETE", "/aaep/v1/sessions/sess_1", "")
            .refuses(403, "not_for_this_hub");
        assert_eq!(hub.as_someone(&link, "GET", "/healthz", "").status, 200, "a link is fine");
    }
    for (site, session_id) in [("none", "sess_1"), ("same-origin", "sess_2")] {
        let own = format!("sec-fetch-site: {site}\r\nsec-fetch-mode: navigate\r\n");
        let body = started(session_id).to_string();
        assert_eq!(hub.as_someone(&own, "POST", "/aaep/v1/publish", &body).status, 200);
        hub.open_stream(&own, "/events");
    }
}

#[test]
fn a_link_of_another_site_does_nothing_in_the_name_of_the_person_who_follows_it() {
    let hub = TestHub::new();
    hub.begin("sess_1");
    let id = hub.subscribe("");
    let accepts = serde_json::json!({ "accepts": ["prompt"] }).to_string();
    assert_eq!(hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &accepts).status, 204);
    let prompt = serde_json::json!({
        "type": "agentvoice:agent.prompt", "subscription_id": id, "text": "Go on.",
    });
    let told = hub.post("/aaep/v1/replies", &prompt);
    assert!(told.status < 300, "{}", told.body);
    let inbox = "/aaep/v1/agents/builder/inbox?wait_seconds=0";
    let waiting = hub.get(inbox).json();
    assert_eq!(waiting["instructions"].as_array().map(Vec::len), Some(1));
    let link = "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n\
                sec-fetch-dest: document\r\n";
    for path in [
        "/aaep/v1/agents/builder/inbox?after=1000000",
        "/aaep/v1/agents",
        "/aaep/v1/asks",
        "/aaep/v1/asks/rpl_0123456789abcdef",
        "/aaep/v1/sessions",
        "/aaep/v1/sessions/sess_1/events",
        "/aaep/v1/audit",
        "/aaep/v1/backup",
        "/metrics",
    ] {
        hub.as_someone(link, "GET", path, "").refuses(403, "not_for_this_hub");
    }
    assert_eq!(hub.get(inbox).json(), waiting, "and the instruction is still there");
}

#[test]
fn a_configured_page_may_ask_and_read_the_answer() {
    let hub = TestHub::with(|options| {
        options.config.access.allowed_origins = vec!["https://reader.example".to_owned()];
    });
    let origin = "origin: https://reader.example\r\n";
    let asked = format!("{origin}access-control-request-method: POST\r\n");
    let preflight = hub.as_someone(&asked, "OPTIONS", "/aaep/v1/replies", "");
    assert_eq!(preflight.status, 204);
    let allowed = "access-control-allow-origin";
    assert_eq!(preflight.header(allowed), Some("https://reader.example"));
    let answer = hub.as_someone(origin, "GET", "/healthz", "");
    assert_eq!((answer.status, answer.header(allowed)), (200, Some("https://reader.example")));
    let refused = hub.as_someone(origin, "GET", "/nothing", "");
    assert_eq!(refused.header(allowed), Some("https://reader.example"), "refusals can be read too");
    let program = hub.get("/healthz");
    assert_eq!(program.header(allowed), None);
}

#[test]
fn unknown_addresses_and_methods_are_told_apart() {
    let hub = TestHub::new();
    hub.get("/nothing").refuses(404, "not_found");
    hub.get("/aaep/v1/asks/").refuses(404, "not_found");
    let refused = hub.get("/aaep/v1/publish");
    refused.refuses(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("POST"));
    hub.as_someone("", "OPTIONS", "/aaep/v1/publish", "").refuses(405, "method_not_allowed");
}

#[test]
fn without_credentials_nobody_is_let_in_where_they_are_needed() {
    let hub = with_credentials();
    for (method, path) in [
        ("GET", "/events"),
        ("POST", "/messages"),
        ("GET", "/metrics"),
        ("GET", "/aaep/v1/events?subscription_id=sub_1"),
        ("GET", "/aaep/v1/agents"),
        ("POST", "/aaep/v1/replies"),
        ("POST", "/aaep/v1/publish"),
        ("POST", "/aaep/v1/asks"),
        ("GET", "/aaep/v1/asks/rpl_0123456789abcdef"),
        ("DELETE", "/aaep/v1/asks/rpl_0123456789abcdef"),
        ("PUT", "/aaep/v1/agents/builder"),
        ("GET", "/aaep/v1/agents/builder/inbox"),
    ] {
        let refused = hub.as_someone("", method, path, "");
        refused.refuses(401, "credentials_required");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"aaep\""), "{path}");
    }
    assert_eq!(hub.get("/healthz").status, 200, "whether it lives, everyone may know");
}

#[test]
fn wrong_credentials_get_one_answer_whatever_is_wrong() {
    let hub = with_credentials();
    let good = token(&hub.folder, "good", &[Scope::Listen]);
    let mut answers = Vec::new();
    for wrong in [
        "authorization: Bearer aaep_000000000000000000000000000000000000000000\r\n".to_owned(),
        "authorization: Basic dXNlcjpwYXNz\r\n".to_owned(),
        "authorization: Bearer \r\n".to_owned(),
        format!("{good}{good}"),
        good.replace("Bearer ", "Bearer x"),
    ] {
        let refused = hub.as_someone(&wrong, "GET", "/aaep/v1/agents", "");
        refused.refuses(401, "credentials_refused");
        answers.push((refused.body.clone(), refused.header("www-authenticate").map(str::to_owned)));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(hub.as_someone(&good, "GET", "/aaep/v1/agents", "").status, 200);
}

#[test]
fn a_wrong_credential_is_refused_even_where_none_is_needed() {
    let hub = TestHub::new();
    let wrong = "authorization: Bearer aaep_wrong\r\n";
    hub.as_someone(wrong, "GET", "/aaep/v1/agents", "").refuses(401, "credentials_refused");
}

#[test]
fn a_token_in_the_address_is_refused_unless_it_is_configured() {
    let hub = with_credentials();
    let good = token(&hub.folder, "good", &[Scope::Listen]);
    let secret = good.trim().rsplit(' ').next().expect("a secret").to_owned();
    let path = format!("/aaep/v1/agents?access_token={secret}");
    hub.get(&path).refuses(401, "credentials_refused");
    let hub = TestHub::in_folder(hub.stop(), |options| {
        options.config.access.loopback_needs_credentials = true;
        options.config.access.token_in_query = true;
    });
    assert_eq!(hub.get(&path).status, 200);
}

#[test]
fn a_scope_allows_what_it_is_for_and_nothing_else() {
    let hub = with_credentials();
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply]);
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    let admin = token(&hub.folder, "admin", &[Scope::Admin]);
    for (who, method, path) in [
        (&subscriber, "POST", "/aaep/v1/publish"),
        (&subscriber, "POST", "/aaep/v1/asks"),
        (&subscriber, "GET", "/aaep/v1/agents/builder/inbox"),
        (&subscriber, "GET", "/metrics"),
        (&agent, "GET", "/events"),
        (&agent, "POST", "/aaep/v1/replies"),
        (&agent, "GET", "/metrics"),
    ] {
        let refused = hub.as_someone(who, method, path, "");
        refused.refuses(403, "scope_missing");
        assert_eq!(refused.header("www-authenticate"), None);
    }
    let counts = hub.as_someone(&admin, "GET", "/metrics", "");
    assert_eq!(counts.status, 200);
    let line = "aaep_refusals_total{reason=\"scope_missing\"} 7";
    assert!(counts.body.lines().any(|it| it == line), "{}", counts.body);
}

#[test]
fn what_a_proxy_passes_on_is_never_taken_for_the_person_at_this_machine() {
    let hub = TestHub::new();
    for header in ["x-forwarded-for: 10.0.0.1\r\n", "forwarded: for=10.0.0.1\r\n", "via: 1.1 p\r\n"]
    {
        hub.as_someone(header, "GET", "/events", "").refuses(401, "credentials_required");
    }
}

#[test]
fn nothing_of_a_request_comes_back_unescaped() {
    let hub = TestHub::new();
    let odd = "GET /\u{1b}[2J HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut client = hub.connect();
    client.send(odd);
    assert!(!client.rest().contains('\u{1b}'));
    let origin = "origin: http://a\u{9b}b\r\n";
    let answer = hub.as_someone(origin, "GET", "/healthz", "");
    assert!(answer.status >= 400 && !answer.body.contains('\u{9b}'), "{}", answer.body);
}

#[test]
fn guesses_of_a_flood_are_not_told_to_be_wrong_and_keep_no_good_token_out() {
    let hub = with_credentials();
    let right = token(&hub.folder, "right", &[Scope::Listen]);
    hub.wait_until_known(&right);
    let unused = token(&hub.folder, "unused", &[Scope::Listen]);
    let mut guesses: Vec<Client> = (0..200)
        .map(|at| {
            let wrong = format!("authorization: Bearer aaep_{at:043}\r\n");
            let mut client = hub.connect();
            client.send(&request(&wrong, "GET", "/aaep/v1/sessions", ""));
            client
        })
        .collect();
    let right = hub.as_someone(&right, "GET", "/aaep/v1/sessions", "");
    assert_eq!(right.status, 200, "{}", right.body);
    let key = person(&hub);
    assert_eq!(hub.as_someone(&key, "GET", "/aaep/v1/sessions", "").status, 200);
    let unused = hub.as_someone(&unused, "GET", "/aaep/v1/sessions", "");
    assert_eq!(unused.status, 200, "nobody used it before: {}", unused.body);
    let answers: Vec<Reply> = guesses.iter_mut().map(Client::reply).collect();
    assert!(answers.iter().all(|it| matches!(it.status, 401 | 429)), "{answers:?}");
    let checked = answers.iter().filter(|it| it.status == 401).count();
    assert!((10..20).contains(&checked), "{checked} guesses were told to be wrong");
    let refused = answers.iter().find(|it| it.status == 429).expect("not all are told");
    refused.refuses(429, "too_many_failures");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("connection"), Some("close"));
}
