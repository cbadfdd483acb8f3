//! Subscribers and agents on a WebSocket.

use std::net::TcpStream;

use aaep_hub::access::Scope;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message as Frame, WebSocket};

use crate::support::*;

pub(crate) fn open(
    hub: &TestHub,
    path: &str,
    subprotocol: &'static str,
    token: &str,
) -> WebSocket<TcpStream> {
    let mut request = format!("ws://{}{path}", hub.address()).into_client_request().expect("one");
    if !subprotocol.is_empty() {
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(subprotocol));
    }
    if let Some((_, value)) = token.trim().split_once(": ") {
        let value = HeaderValue::from_str(value).expect("a value");
        request.headers_mut().insert("authorization", value);
    }
    let (socket, answer) = tungstenite::client(request, hub.connect().socket).expect("a WebSocket");
    let spoken = answer.headers().get("sec-websocket-protocol");
    assert_eq!(spoken.map_or("", |it| it.to_str().expect("text")), subprotocol);
    socket
}

pub(crate) fn send(socket: &mut WebSocket<TcpStream>, message: &Value) {
    socket.send(Frame::text(message.to_string())).expect("sent");
}

pub(crate) fn next(socket: &mut WebSocket<TcpStream>) -> Value {
    loop {
        match socket.read().expect("a frame") {
            Frame::Text(text) => return serde_json::from_str(&text).expect("JSON"),
            Frame::Ping(_) | Frame::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn close_code(socket: &mut WebSocket<TcpStream>) -> u16 {
    loop {
        if let Frame::Close(frame) = socket.read().expect("a frame") {
            return frame.expect("a code").code.into();
        }
    }
}

#[test]
fn a_subscriber_does_everything_on_its_socket() {
    let hub = TestHub::new();
    let mut socket = open(&hub, "/aaep/v1/ws", "aaep.v1", "");
    send(&mut socket, &subscription_request());
    let accepted = next(&mut socket);
    assert_eq!(accepted["type"], "subscription.accepted");
    let id = accepted["subscription_id"].as_str().expect("an id").to_owned();
    hub.begin("sess_1");
    assert_eq!(next(&mut socket)["type"], "aaep:agent.session.started");
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    let asked = loop {
        let event = next(&mut socket);
        if event["type"] == "aaep:agent.awaiting.confirmation" {
            break event;
        }
    };
    let token = asked["reply_token"].as_str().expect("a token").to_owned();
    send(&mut socket, &reply(&token, &id, "accept"));
    let place = open.header("location").expect("a place").to_owned();
    assert_eq!(hub.get(&place).json()["outcome"], "accept");
}

#[test]
fn a_socket_is_made_only_as_the_standard_says() {
    let hub = TestHub::new();
    hub.get("/aaep/v1/ws").refuses(426, "upgrade_required");
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\n";
    let key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let version = "sec-websocket-version: 13\r\n";
    let protocol = "sec-websocket-protocol: aaep.v1\r\n";
    let send = |headers: String| {
        hub.raw(&format!("GET /aaep/v1/ws HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"))
    };
    let old = send(format!("{upgrade}{key}{protocol}sec-websocket-version: 8\r\n"));
    old.refuses(426, "upgrade_required");
    assert_eq!(old.header("sec-websocket-version"), Some("13"));
    send(format!("{upgrade}{version}{protocol}")).refuses(400, "wrong_key");
    send(format!("{upgrade}{version}{key}")).refuses(400, "no_subprotocol");
    let other = "sec-websocket-protocol: chat, aaep.v2\r\n";
    send(format!("{upgrade}{version}{key}{other}")).refuses(400, "no_subprotocol");
    let head = format!("{upgrade}{version}{key}{protocol}");
    let mut client = hub.connect();
    client.send(&format!("HEAD /aaep/v1/ws HTTP/1.1\r\nhost: localhost\r\n{head}\r\n"));
    assert!(client.head().starts_with("HTTP/1.1 426 "), "HEAD takes no connection away");
}

#[test]
fn a_refused_websocket_is_told_why_by_its_close_code() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen]);
    let wrong = "authorization: Bearer aaep_wrong";
    for (path, subprotocol, who, code) in [
        ("/aaep/v1/ws", "aaep.v1", "", 4002),
        ("/aaep/v1/ws", "aaep.v1", wrong, 4002),
        ("/aaep/v1/ws", "aaep.v1", agent.as_str(), 4003),
        ("/aaep/v1/agent", "aaep.agent.v1", subscriber.as_str(), 4003),
        ("/events", "", "", 4002),
    ] {
        let mut socket = open(&hub, path, subprotocol, who);
        assert_eq!(close_code(&mut socket), code, "{path} {who}");
    }
    let mut good = open(&hub, "/aaep/v1/ws", "aaep.v1", &subscriber);
    send(&mut good, &subscription_request());
    assert_eq!(next(&mut good)["type"], "subscription.accepted");
}

#[test]
fn an_agent_publishes_and_hears_outcomes_on_its_socket() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    let mut agent = open(&hub, "/aaep/v1/agent", "aaep.agent.v1", "");
    send(&mut agent, &started("sess_1"));
    assert_eq!(next(&mut agent)["type"], "agentvoice:published");
    send(&mut agent, &progress("sess_other", "evt_1"));
    let refused = next(&mut agent);
    assert_eq!(
        (&refused["type"], &refused["error"]),
        (&json!("agentvoice:refused"), &json!("not_started"))
    );
    send(&mut agent, &question("sess_1"));
    let published = next(&mut agent);
    let token = published["reply_token"].as_str().expect("a token");
    stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(hub.post("/aaep/v1/replies", &reply(token, &id, "accept")).status, 204);
    let resolved = next(&mut agent);
    assert_eq!(resolved["type"], "agentvoice:resolved");
    assert_eq!(
        (&resolved["outcome"], &resolved["decided_by"]),
        (&json!("accept"), &json!("reply"))
    );
}

#[test]
fn a_socket_that_goes_away_gives_its_place_back() {
    let hub = TestHub::with(|options| options.config.limits.connections = 1);
    for _ in 0..3 {
        let mut socket = open(&hub, "/aaep/v1/ws", "aaep.v1", "");
        socket.close(None).expect("closing");
        while socket.read().is_ok() {}
        drop(socket);
        hub.wait_until_empty();
    }
}
