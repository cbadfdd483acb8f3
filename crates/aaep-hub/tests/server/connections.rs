//! Connections: too many, too slow, with heads that are too long, with several requests.

use crate::support::*;

#[test]
fn one_connection_too_many_is_told_so() {
    let hub = TestHub::with(|options| options.config.limits.connections = 2);
    let streams = [hub.open_stream("", "/events"), hub.open_stream("", "/events")];
    let refused = hub.get("/aaep/v1/agents");
    refused.refuses(503, "too_many_connections");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(hub.get("/aaep/v1/asks").status, 200, "a place is kept for whoever answers");
    drop(streams);
    hub.wait_until_empty();
    assert_eq!(hub.get("/aaep/v1/agents").status, 200, "the places came back");
}

#[test]
fn connections_on_which_nothing_happens_lock_nobody_out() {
    let hub = TestHub::with(|options| {
        options.config.limits.connections = 4;
        options.config.limits.connections_per_principal = 3;
    });
    let mut quiet: Vec<Client> = (0..8).map(|_| hub.connect()).collect();
    for client in &mut quiet[6..] {
        client.send("GET /aaep/v1/agents HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert_eq!(client.reply().status, 200);
    }
    let mut stream = hub.stream("", &hub.subscribe(""));
    hub.begin("sess_1");
    assert_eq!(stream.event()["session_id"], "sess_1");
    assert_eq!(hub.get("/aaep/v1/asks").status, 200);
}

#[test]
fn refused_sockets_lock_nobody_out() {
    let hub = TestHub::with(|options| {
        options.config.limits.connections = 4;
        options.config.access.loopback_needs_credentials = true;
    });
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut codes = Vec::new();
    let _refused: Vec<Client> = (0..100)
        .map(|number| {
            let (path, name) = [("ws", "aaep.v1"), ("agent", "aaep.agent.v1")][number % 2];
            let mut client = hub.connect();
            client.send(&format!(
                "GET /aaep/v1/{path} HTTP/1.1\r\nhost: localhost\r\n{upgrade}\
                 sec-websocket-protocol: {name}\r\n\r\n"
            ));
            codes.push(client.head().split(' ').nth(1).expect("a status").to_owned());
            client
        })
        .collect();
    assert_eq!(codes[0], "101", "a page in a browser sees only a close code");
    assert_eq!(codes[99], "401", "but only a few are told so at once");
    let key = person(&hub);
    let mut person = hub.stream(&key, &hub.subscribe(&key));
    let published =
        hub.as_someone(&key, "POST", "/aaep/v1/publish", &started("sess_1").to_string());
    assert_eq!(published.status, 200, "{}", published.body);
    assert_eq!(person.event()["session_id"], "sess_1");
}

#[test]
fn one_person_cannot_take_all_connections() {
    let hub = TestHub::with(|options| options.config.limits.connections_per_principal = 2);
    let _streams = [hub.open_stream("", "/events"), hub.open_stream("", "/events")];
    let refused = hub.get("/aaep/v1/agents");
    refused.refuses(429, "too_many_connections");
    assert_eq!(hub.get("/healthz").status, 200, "what takes no principal goes on");
}

#[test]
fn a_connection_on_which_nothing_comes_is_closed() {
    let hub = TestHub::with(|options| options.config.limits.handshake_ms = 200);
    let mut silent = hub.connect();
    assert_eq!(silent.rest(), "");
    let mut slow = hub.connect();
    slow.send("GET /healthz HTTP/1.1\r\nho");
    assert!(!slow.rest().contains(" 200 "), "half a head is no request");
}

#[test]
fn a_connection_that_was_used_is_closed_when_it_stays_silent() {
    let hub = TestHub::with(|options| options.config.limits.idle_ms = 200);
    let mut client = hub.connect();
    client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    client.rest();
}

#[test]
fn a_stream_outlives_the_limits_of_requests() {
    let hub = TestHub::with(|options| {
        options.config.limits.handshake_ms = 100;
        options.config.limits.idle_ms = 100;
    });
    let mut stream = hub.open_stream("", "/events");
    // Both limits are over when this connection is.
    let mut silent = hub.connect();
    silent.rest();
    hub.begin("sess_1");
    assert_eq!(stream.event()["session_id"], "sess_1");
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let hub = TestHub::with(|options| options.config.limits.header_bytes = 8192);
    let long =
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(9000));
    let mut client = hub.connect();
    client.send(&long);
    assert!(client.rest().starts_with("HTTP/1.1 431 "));
}

#[test]
fn garbage_is_refused_and_the_hub_lives() {
    let hub = TestHub::new();
    for garbage in [
        "\r\n\r\n\r\n\u{1}\u{2}",
        "GET\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut client = hub.connect();
        client.send(garbage);
        client.socket.shutdown(std::net::Shutdown::Write).expect("shuts down");
        assert!(!client.rest().contains(" 200 "), "{garbage:?}");
    }
    assert_eq!(hub.get("/healthz").status, 200);
}

#[test]
fn many_requests_go_over_one_connection() {
    let hub = TestHub::new();
    let mut client = hub.connect();
    let one = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(&one.repeat(3));
    for _ in 0..3 {
        assert_eq!(client.reply().status, 200);
    }
}
