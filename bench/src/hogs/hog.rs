//! Programs that take all they can get, each in one way. Their requests are meant to be refused.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::{HttpConnection, ServedHub};

/// A way to take too much.
#[derive(Clone, Copy)]
pub(super) enum HogBehavior {
    /// Publishes large events as fast as it can.
    Publishes,
    /// Begins sessions and never ends them.
    Begins,
    /// Asks, with a day to answer each ask.
    Asks,
    /// Declares one agent after the other.
    Names,
    /// Subscribes with ever-changing filters, and leaves without closing the subscription.
    Subscribes,
    /// Answers asks that do not exist.
    Forges,
    /// Presents tokens that do not exist.
    Guesses,
    /// Opens connections and sends nothing.
    Connects,
    /// Opens HTTP/2 connections and sends no request.
    ConnectsHttp2,
    /// Opens sockets as an agent and sends nothing.
    OpensSockets,
}

impl HogBehavior {
    pub(super) const EVERY: [HogBehavior; 10] = [
        HogBehavior::Publishes,
        HogBehavior::Begins,
        HogBehavior::Asks,
        HogBehavior::Names,
        HogBehavior::Subscribes,
        HogBehavior::Forges,
        HogBehavior::Guesses,
        HogBehavior::Connects,
        HogBehavior::ConnectsHttp2,
        HogBehavior::OpensSockets,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            HogBehavior::Publishes => "Published",
            HogBehavior::Begins => "Began a session",
            HogBehavior::Asks => "Asked",
            HogBehavior::Names => "Declared an agent",
            HogBehavior::Subscribes => "Subscribed and went",
            HogBehavior::Forges => "Answered what nobody asked",
            HogBehavior::Guesses => "Guessed a token",
            HogBehavior::Connects => "Opened a connection",
            HogBehavior::ConnectsHttp2 => "Opened a connection of HTTP/2",
            HogBehavior::OpensSockets => "Opened a socket as an agent",
        }
    }

    /// Starts a thread that goes on until it is told to stop, and returns how often it tried.
    pub(super) fn start(
        self,
        served: &ServedHub,
        token: &str,
        stop: &Arc<AtomicBool>,
    ) -> JoinHandle<u64> {
        let (address, token, stop) = (served.address(), token.to_owned(), Arc::clone(stop));
        thread::spawn(move || {
            let (mut number, mut held) = (0, Vec::new());
            while !stop.load(Ordering::SeqCst) {
                // If a connection is refused, try again a little later.
                if self.go_on(address, &token, &mut number, &mut held, &stop).is_err() {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            number
        })
    }

    /// Goes on until it is stopped or disconnected.
    fn go_on(
        self,
        address: SocketAddr,
        token: &str,
        number: &mut u64,
        held: &mut Vec<TcpStream>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut connection = HttpConnection::open(address)?.with_headers(token.to_owned());
        while !stop.load(Ordering::SeqCst) {
            *number += 1;
            let it = *number;
            match self {
                HogBehavior::Publishes => {
                    let text = json!({
                        "type": "aaep:agent.session.started", "session_id": format!("sess_p{it}"),
                        "producer": { "agent_id": "hog" }, "summary_normal": "x".repeat(1000),
                    });
                    post(&mut connection, "/aaep/v1/publish", &text)?;
                    let end = json!({
                        "type": "aaep:agent.session.completed", "session_id": format!("sess_p{it}"),
                        "producer": { "agent_id": "hog" }, "summary_normal": "x".repeat(1000),
                    });
                    post(&mut connection, "/aaep/v1/publish", &end)?;
                }
                HogBehavior::Begins => {
                    post(&mut connection, "/aaep/v1/publish", &started(it, "b"))?;
                }
                HogBehavior::Asks => {
                    post(&mut connection, "/aaep/v1/publish", &started(it / 16, "a"))?;
                    let ask = json!({
                        "type": "aaep:agent.awaiting.confirmation",
                        "session_id": format!("sess_a{}", it / 16),
                        "producer": { "agent_id": "hog" }, "action": format!("Do {it}."),
                        "consequence": "It is done.", "risk_level": "high", "irreversible": true,
                        "default_decision": "reject", "timeout_seconds": 86_400,
                        "summary_normal": "May I?",
                    });
                    post(&mut connection, "/aaep/v1/asks?wait_seconds=0", &ask)?;
                }
                HogBehavior::Names => {
                    let body = json!({ "accepts": ["prompt"] }).to_string();
                    let length = body.len();
                    connection.send(&format!(
                        "PUT /aaep/v1/agents/hog{it} HTTP/1.1\r\nhost: localhost\r\n{token}\
                         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                    ))?;
                    connection.answer()?;
                }
                HogBehavior::Subscribes => {
                    let request = json!({
                        "type": "subscription.request", "aaep_version": "1.0.0",
                        "subscriber_id": "hog", "capabilities": {
                            "supports_confirmation_reply": true,
                            "event_filters": { "include": [format!("aaep:x{it}*"), "*"] },
                        },
                    });
                    post(&mut connection, "/aaep/v1/subscriptions", &request)?;
                }
                HogBehavior::Forges => {
                    let reply = json!({
                        "type": "confirmation.reply", "decision": "accept",
                        "reply_token": format!("rpl_{it:032x}"), "subscription_id": "sub_1",
                        "timestamp": crate::timing::timestamp(),
                    });
                    post(&mut connection, "/aaep/v1/replies", &reply)?;
                }
                HogBehavior::Guesses => {
                    let guess = format!("authorization: Bearer aaep_{it:043x}\r\n");
                    let mut connection = HttpConnection::open(address)?.with_headers(guess);
                    connection.get("/aaep/v1/sessions")?;
                }
                HogBehavior::Connects => hold(held, connect(address, "")?),
                HogBehavior::ConnectsHttp2 => hold(held, connect(address, HTTP2)?),
                HogBehavior::OpensSockets => {
                    let upgrade = format!(
                        "GET /aaep/v1/agent HTTP/1.1\r\nhost: localhost\r\n{token}\
                         connection: upgrade\r\nupgrade: websocket\r\n\
                         sec-websocket-version: 13\r\nsec-websocket-protocol: aaep.agent.v1\r\n\
                         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                    );
                    hold(held, connect(address, &upgrade)?);
                }
            }
        }
        Ok(())
    }
}

/// The beginning of an HTTP/2 connection: the preface and default settings.
const HTTP2: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";

/// The number of connections that a hog holds before it closes all of them and begins again.
const MAX_HELD: usize = 2000;

/// Opens a connection and sends these bytes.
fn connect(address: SocketAddr, said: &str) -> Result<TcpStream, String> {
    let connected = TcpStream::connect(address).and_then(|mut stream| {
        stream.write_all(said.as_bytes())?;
        Ok(stream)
    });
    connected.map_err(|error| error.to_string())
}

/// Holds a connection for as long as it can.
fn hold(held: &mut Vec<TcpStream>, stream: TcpStream) {
    held.push(stream);
    if held.len() > MAX_HELD {
        held.clear();
    }
    thread::sleep(Duration::from_millis(1));
}

fn started(number: u64, kind: &str) -> Value {
    json!({
        "type": "aaep:agent.session.started", "session_id": format!("sess_{kind}{number}"),
        "producer": { "agent_id": "hog" }, "summary_normal": "I begin.",
    })
}

/// Posts a body and ignores the answer.
fn post(connection: &mut HttpConnection, path: &str, body: &Value) -> Result<(), String> {
    connection.request(path, "application/json", &body.to_string()).map(drop)
}
