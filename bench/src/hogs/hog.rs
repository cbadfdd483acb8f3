//! Programs that take all that they are let have, each in one way. What is refused to them is as wanted.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::{Connection, Served};

/// A way to take too much.
#[derive(Clone, Copy)]
pub(super) enum Hog {
    /// Publishes large events as fast as it is let.
    Publishes,
    /// Begins sessions and ends none.
    Begins,
    /// Asks, with a day to answer.
    Asks,
    /// Declares one agent after the other.
    Names,
    /// Subscribes with ever other filters, and goes without a word.
    Subscribes,
    /// Answers questions that there are not.
    Forges,
    /// Shows tokens that there are not.
    Guesses,
    /// Opens connections and says nothing.
    Connects,
    /// Opens connections of HTTP/2 and calls nothing.
    ConnectsHttp2,
    /// Opens sockets as an agent and says nothing.
    OpensSockets,
}

impl Hog {
    pub(super) const EVERY: [Hog; 10] = [
        Hog::Publishes,
        Hog::Begins,
        Hog::Asks,
        Hog::Names,
        Hog::Subscribes,
        Hog::Forges,
        Hog::Guesses,
        Hog::Connects,
        Hog::ConnectsHttp2,
        Hog::OpensSockets,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Hog::Publishes => "Published",
            Hog::Begins => "Began a session",
            Hog::Asks => "Asked",
            Hog::Names => "Declared an agent",
            Hog::Subscribes => "Subscribed and went",
            Hog::Forges => "Answered what nobody asked",
            Hog::Guesses => "Guessed a token",
            Hog::Connects => "Opened a connection",
            Hog::ConnectsHttp2 => "Opened a connection of HTTP/2",
            Hog::OpensSockets => "Opened a socket as an agent",
        }
    }

    /// Goes on until it is told to stop. How often it tried.
    pub(super) fn start(
        self,
        served: &Served,
        token: &str,
        stop: &Arc<AtomicBool>,
    ) -> JoinHandle<u64> {
        let (address, token, stop) = (served.address(), token.to_owned(), Arc::clone(stop));
        thread::spawn(move || {
            let (mut number, mut held) = (0, Vec::new());
            while !stop.load(Ordering::SeqCst) {
                // One that is refused a connection tries again a little later.
                if self.go_on(address, &token, &mut number, &mut held, &stop).is_err() {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            number
        })
    }

    /// Goes on until it is stopped, or cut off.
    fn go_on(
        self,
        address: SocketAddr,
        token: &str,
        number: &mut u64,
        held: &mut Vec<TcpStream>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut connection = Connection::open(address)?.with_headers(token.to_owned());
        while !stop.load(Ordering::SeqCst) {
            *number += 1;
            let it = *number;
            match self {
                Hog::Publishes => {
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
                Hog::Begins => post(&mut connection, "/aaep/v1/publish", &started(it, "b"))?,
                Hog::Asks => {
                    post(&mut connection, "/aaep/v1/publish", &started(it / 16, "a"))?;
                    let question = json!({
                        "type": "aaep:agent.awaiting.confirmation",
                        "session_id": format!("sess_a{}", it / 16),
                        "producer": { "agent_id": "hog" }, "action": format!("Do {it}."),
                        "consequence": "It is done.", "risk_level": "high", "irreversible": true,
                        "default_decision": "reject", "timeout_seconds": 86_400,
                        "summary_normal": "May I?",
                    });
                    post(&mut connection, "/aaep/v1/asks?wait_seconds=0", &question)?;
                }
                Hog::Names => {
                    let body = json!({ "accepts": ["prompt"] }).to_string();
                    let length = body.len();
                    connection.send(&format!(
                        "PUT /aaep/v1/agents/hog{it} HTTP/1.1\r\nhost: localhost\r\n{token}\
                         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                    ))?;
                    connection.answer()?;
                }
                Hog::Subscribes => {
                    let request = json!({
                        "type": "subscription.request", "aaep_version": "1.0.0",
                        "subscriber_id": "hog", "capabilities": {
                            "supports_confirmation_reply": true,
                            "event_filters": { "include": [format!("aaep:x{it}*"), "*"] },
                        },
                    });
                    post(&mut connection, "/aaep/v1/subscriptions", &request)?;
                }
                Hog::Forges => {
                    let reply = json!({
                        "type": "confirmation.reply", "decision": "accept",
                        "reply_token": format!("rpl_{it:032x}"), "subscription_id": "sub_1",
                        "timestamp": crate::timing::timestamp(),
                    });
                    post(&mut connection, "/aaep/v1/replies", &reply)?;
                }
                Hog::Guesses => {
                    let guess = format!("authorization: Bearer aaep_{it:043x}\r\n");
                    let mut connection = Connection::open(address)?.with_headers(guess);
                    connection.get("/aaep/v1/sessions")?;
                }
                Hog::Connects => hold(held, connect(address, "")?),
                Hog::ConnectsHttp2 => hold(held, connect(address, HTTP2)?),
                Hog::OpensSockets => {
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

/// How a connection of HTTP/2 begins: the preface, and settings that are all as usual.
const HTTP2: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";

/// How many connections a hog holds before it lets all of them go and begins again.
const MAX_HELD: usize = 2000;

/// A connection on which this was said.
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

/// Posts something, whatever comes of it.
fn post(connection: &mut Connection, path: &str, body: &Value) -> Result<(), String> {
    connection.request(path, "application/json", &body.to_string()).map(drop)
}
