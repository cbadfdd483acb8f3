//! The way to the server of OpenCode: a stream of events over HTTP on this machine, and a request for each answer.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aaep_bridge::follow::ServerMessage;
use aaep_http::HttpAddress;
use aaep_transport::sse::Parser;
use serde_json::{Value, json};

use super::run::FollowRun;
use crate::console;
use crate::english::following;
use crate::http::{HubClient, HubRequest, NoAnswer};
use crate::person::is_foreign_port;

/// The longest event. One that is longer ends the connection, and a new one begins.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// How long one request may take. While OpenCode starts, it can take a connection and never answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a stream may be silent. OpenCode gives a sign of life every ten seconds.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(35);

const PAUSE: Duration = Duration::from_secs(1);

/// The most sessions at work that are looked at when a connection begins.
const MAX_SESSIONS: usize = 64;

/// Follows OpenCode on this port for ever.
pub(super) fn follow(run: &Arc<FollowRun>, port: u16) {
    let origin = format!("http://127.0.0.1:{port}");
    let Ok(address) = HttpAddress::parse(&origin) else { return };
    let client = HubClient::new(address, None);
    loop {
        let end = if is_foreign_port(port) {
            Err(following::OTHER_USER.to_owned())
        } else {
            stay(run, &client, &origin)
        };
        match end {
            Ok(()) => {
                let words = following::connection_lost(run.agent.name());
                run.lost(&words);
                run.say_away(&words);
            }
            Err(why) => run.say_away(&following::waits_for(run.agent.name(), &origin, &why)),
        }
        thread::sleep(PAUSE);
    }
}

/// Hears events until the stream ends. An error says why it did not begin.
fn stay(run: &Arc<FollowRun>, client: &HubClient, origin: &str) -> Result<(), String> {
    let why = |error: &NoAnswer| error.to_string();
    let mut stream = client.stream(&get("/event")).map_err(|error| why(&error))?;
    if stream.status() != 200 {
        return Err(following::answered_with_status(stream.status()));
    }
    let (name, own) = (run.agent.name(), client.clone());
    let way = move |message: ServerMessage| match message {
        ServerMessage::Post { path, body } => {
            let client = own.clone();
            thread::spawn(move || post(&client, name, &path, &body));
            true
        }
        ServerMessage::Message(_) => false,
    };
    run.connected(origin, Box::new(way));
    hear_what_is_open(run, client);
    let mut parser = Parser::default();
    while let Ok(Some(bytes)) = stream.next_within(SILENCE_TIMEOUT) {
        let Ok(events) = parser.push(&bytes, MAX_EVENT_BYTES) else { break };
        for event in events {
            if let Ok(message) = serde_json::from_str(&event.data) {
                run.hear(&message);
            }
        }
    }
    Ok(())
}

/// Hears what began before the connection: sessions at work, and dialogs that are open.
fn hear_what_is_open(run: &FollowRun, client: &HubClient) {
    let ask = |path: &str| {
        client.send(&get(path)).ok().filter(super::super::http::HubAnswer::is_success)?.json()
    };
    let tell = |kind: &str, properties: &Value| {
        run.hear(&json!({ "type": kind, "properties": properties }));
    };
    let working = ask("/session/status").unwrap_or_default();
    for (id, status) in working.as_object().into_iter().flatten().take(MAX_SESSIONS) {
        let is_plain = id.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        let info = if is_plain { ask(&format!("/session/{id}")) } else { None };
        tell("session.updated", &json!({ "sessionID": id, "info": info }));
        tell("session.status", &json!({ "sessionID": id, "status": status }));
    }
    for (path, kind) in [("/permission", "permission.asked"), ("/question", "question.asked")] {
        let open = ask(path).unwrap_or_default();
        open.as_array().into_iter().flatten().for_each(|it| tell(kind, it));
    }
}

fn get(path: &str) -> HubRequest<'_> {
    HubRequest { method: "GET", path, body: None, timeout: REQUEST_TIMEOUT }
}

/// Gives an answer. If it was answered at the keyboard before, this one counts for nothing.
fn post(client: &HubClient, name: &str, path: &str, body: &Value) {
    let body = body.to_string();
    let request = HubRequest {
        method: "POST",
        path,
        body: Some(("application/json", body.as_bytes())),
        timeout: REQUEST_TIMEOUT,
    };
    let why = match client.send(&request) {
        Ok(answer) if answer.is_success() => return,
        Ok(answer) => following::answered_with_status(answer.status),
        Err(error) => error.to_string(),
    };
    console::say(&aaep::printable(&following::not_answered(name, &why)));
}
