//! Bodies of requests: of the wrong type, too large, cut off, too slow.

use std::net::Shutdown;

use serde_json::json;

use crate::support::*;

fn small() -> TestHub {
    TestHub::with(|options| {
        options.config.limits.body_bytes = 2000;
        options.config.limits.idle_ms = 300;
    })
}

#[test]
fn a_body_that_is_not_said_to_be_json_is_refused() {
    let hub = TestHub::new();
    let text = started("sess_1").to_string();
    for kind in ["text/plain", "application/jsonx", "multipart/form-data", ""] {
        let headers = format!("content-type: {kind}\r\n");
        for path in
            ["/aaep/v1/publish", "/aaep/v1/asks", "/aaep/v1/replies", "/aaep/v1/subscriptions"]
        {
            let refused = hub.as_someone(&headers, "POST", path, &text);
            refused.refuses(415, "unsupported_media_type");
        }
    }
    let headers = "content-type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(hub.as_someone(headers, "POST", "/aaep/v1/publish", &text).status, 200);
}

#[test]
fn a_body_that_says_that_it_is_too_large_is_refused_before_it_comes() {
    let hub = small();
    let head = "POST /aaep/v1/publish HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 2001\r\n\r\n";
    hub.raw(head).refuses(413, "too_large");
}

#[test]
fn a_body_that_grows_too_large_is_refused() {
    let hub = small();
    let mut client = hub.connect();
    client.send(
        "POST /aaep/v1/publish HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for _ in 0..3 {
        client.send(&format!("3e8\r\n{}\r\n", " ".repeat(1000)));
    }
    client.reply().refuses(413, "too_large");
}

#[test]
fn a_body_of_exactly_the_limit_is_read() {
    let hub = small();
    let mut text = started("sess_1").to_string();
    text.push_str(&" ".repeat(2000 - text.len()));
    assert_eq!(hub.as_someone("", "POST", "/aaep/v1/publish", &text).status, 200);
}

#[test]
fn a_body_that_is_cut_off_publishes_nothing() {
    let hub = TestHub::new();
    let text = request("", "POST", "/aaep/v1/publish", &started("sess_1").to_string());
    let mut client = hub.connect();
    client.send(&text[..text.len() - 1]);
    client.socket.shutdown(Shutdown::Write).expect("shuts down");
    client.rest();
    // The session was not begun, so this is its first event and breaks the order.
    let refused = hub.post("/aaep/v1/publish", &progress("sess_1", "evt_1"));
    refused.refuses(409, "not_started");
}

#[test]
fn a_body_that_never_ends_is_not_waited_for() {
    let hub = small();
    let mut client = hub.connect();
    client.send(
        "POST /aaep/v1/publish HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    client.reply().refuses(408, "too_slow");
}

#[test]
fn what_is_malformed_is_said_exactly() {
    let hub = TestHub::new();
    let refused = hub.as_someone("", "POST", "/aaep/v1/replies", "{\"type\":");
    refused.refuses(400, "not_valid");
    assert_eq!(refused.json()["violations"][0]["code"], "not_json");
    let wrong = json!({ "type": "confirmation.reply", "decision": "maybe" });
    let refused = hub.post("/aaep/v1/replies", &wrong);
    refused.refuses(400, "not_valid");
    let pointers: Vec<_> = refused.json()["violations"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["pointer"].as_str().expect("a pointer").to_owned())
        .collect();
    assert!(pointers.contains(&"/reply_token".to_owned()), "{pointers:?}");
    assert!(pointers.contains(&"/decision".to_owned()), "{pointers:?}");
}

#[test]
fn deep_and_strange_json_is_refused_and_the_hub_lives() {
    let hub = TestHub::new();
    for text in
        ["[".repeat(100_000), "{\"a\":".repeat(50_000), "\u{0}".to_owned(), "nul".to_owned()]
    {
        for path in ["/aaep/v1/publish", "/aaep/v1/asks"] {
            let refused = hub.as_someone("", "POST", path, &text);
            assert_eq!(refused.status, 422, "{}", refused.body);
        }
        let refused = hub.as_someone("", "POST", "/aaep/v1/replies", &text);
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
    assert_eq!(hub.get("/readyz").status, 200);
}
