//! `aaep serve --stdio` and `--child` as programs use them: what is on which stream, and how it ends.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(30);

struct Hub {
    process: Child,
    input: Option<ChildStdin>,
    /// Standard output, line by line.
    output: mpsc::Receiver<String>,
    address: String,
    /// Standard error, line by line.
    log: mpsc::Receiver<String>,
}

impl Hub {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command
            .args(["serve", "--bind", "127.0.0.1:0", "--socket", "none", "--stdio"])
            .args(arguments);
        command
            .env_clear()
            .env("HOME", home)
            .env("PATH", std::env::var_os("PATH").expect("a path"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("aaep runs");
        let mut errors = BufReader::new(process.stderr.take().expect("its log"));
        let address = loop {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).expect("a line") > 0, "it did not start");
            // A child may have been started before.
            if let Some(address) = line.trim().strip_prefix("Listening on http://") {
                break address.to_owned();
            }
        };
        let output = lines(BufReader::new(process.stdout.take().expect("its output")));
        let (input, log) = (process.stdin.take(), lines(errors));
        Hub { process, input, output, address, log }
    }

    fn say(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{line}").expect("it reads");
    }

    fn next(&mut self) -> Value {
        let line = self.output.recv_timeout(PATIENCE).expect("a line comes");
        serde_json::from_str(&line).expect(&line)
    }

    fn event_of(&mut self, kind: &str) -> Value {
        loop {
            let line = self.next();
            if line["method"] == "aaep.event" && line["params"]["type"] == kind {
                return line["params"].clone();
            }
        }
    }

    fn subscribe(&mut self) -> Value {
        let params = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "parent",
            "capabilities": { "supports_confirmation_reply": true },
        });
        self.say(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "aaep.subscribe", "params": params }),
        );
        let answer = self.next();
        assert_eq!(
            (&answer["id"], &answer["result"]["type"]),
            (&json!(1), &json!("subscription.accepted"))
        );
        answer["result"]["subscription_id"].clone()
    }

    /// An agent publishes over HTTP, as usual.
    fn publish(&self, event: &Value) {
        let answer = post(&self.address, "/aaep/v1/publish", event);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    /// Waits for the end. Returns the rest of standard output, the exit code and the log.
    fn end(mut self) -> (Vec<String>, Option<i32>, String) {
        let rest = all(&self.output);
        let log = all(&self.log).join("\n");
        (rest, self.process.wait().expect("it ends").code(), log)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
    }
}

/// Reads lines as they come.
fn lines(from: impl BufRead + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in from.lines() {
            // A subscriber that left does not need it.
            let _ = sender.send(line.expect("UTF-8"));
        }
    });
    receiver
}

/// All lines up to the end.
fn all(lines: &mpsc::Receiver<String>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => all.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end, after: {all:?}"),
        }
    }
}

fn post(address: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let mut socket = TcpStream::connect(address).expect("connects");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn started(session: &str) -> Value {
    json!({
        "type": "aaep:agent.session.started", "session_id": session,
        "producer": { "agent_id": "builder" }, "summary_normal": "I begin.",
    })
}

#[test]
fn a_parent_hears_agents_and_the_hub_ends_in_order_with_its_standard_input() {
    let home = home();
    let mut hub = Hub::start(home.path(), &[]);
    hub.subscribe();
    hub.publish(&started("sess_1"));
    assert_eq!(hub.event_of("aaep:agent.session.started")["session_id"], "sess_1");
    drop(hub.input.take());
    let (rest, code, log) = hub.end();
    assert_eq!(code, Some(0), "{log}");
    for line in rest {
        let line: Value = serde_json::from_str(&line).expect("nothing but JSON-RPC");
        assert_eq!(line["jsonrpc"], "2.0");
    }
    assert!(log.contains("listens no more") && log.contains("The hub stops."), "{log}");
    // Everything that it acknowledged is there when it runs again.
    let mut hub = Hub::start(home.path(), &[]);
    hub.subscribe();
    let summed_up = hub.event_of("aaep:agent.state.changed");
    assert_eq!(summed_up["session_id"], "sess_1");
    drop(hub.input.take());
    hub.end();
}

#[test]
fn a_signal_ends_it_while_standard_input_is_open_and_the_parent_is_told() {
    let home = home();
    let mut hub = Hub::start(home.path(), &[]);
    hub.subscribe();
    let process = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &process]).status().expect("kill").success());
    let goodbye = hub.next();
    assert_eq!(goodbye["params"]["reason_code"], "producer_shutdown", "{goodbye}");
    let told = hub.next();
    assert_eq!((&told["method"], &told["params"]["code"]), (&json!("aaep.close"), &json!(1001)));
    let (_, code, log) = hub.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_line_that_is_too_long_is_answered_and_harms_nobody() {
    let home = home();
    let mut hub = Hub::start(home.path(), &[]);
    hub.subscribe();
    hub.say(&json!("x".repeat(3 << 20)));
    assert_eq!(hub.next()["error"]["code"], -32600);
    hub.publish(&started("sess_1"));
    hub.event_of("aaep:agent.session.started");
    drop(hub.input.take());
    let (_, code, log) = hub.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_hub_can_be_the_child_of_a_hub_and_a_question_passes_both() {
    let (outer_home, inner_home) = (home(), home());
    let program = env!("CARGO_BIN_EXE_aaep");
    let store = inner_home.path().join("store");
    let store = store.to_str().expect("a path");
    let serve = ["serve", "--stdio", "--bind", "127.0.0.1:0", "--socket", "none", "--store", store];
    let inner = [["--child", "--", program].as_slice(), &serve].concat();
    let mut outer = Hub::start(outer_home.path(), &inner);
    let subscription_id = outer.subscribe();
    // What the inner hub says to people is in the log of the outer one, with its name in front.
    let inner = loop {
        let line = outer.log.recv_timeout(PATIENCE).expect("the inner hub says where it listens");
        if let Some(address) = line.strip_prefix("aaep: Listening on http://") {
            break address.to_owned();
        }
    };
    let answer = post(&inner, "/aaep/v1/publish", &started("sess_1"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The outer hub hears it from its start, or from where it comes in.
    outer.event_of("aaep:agent.session.started");
    let question = json!({
        "type": "aaep:agent.awaiting.confirmation", "session_id": "sess_1",
        "producer": { "agent_id": "builder" }, "summary_normal": "Delete the database?",
        "action": "Delete the database", "consequence": "Everything in it is lost.",
        "irreversible": true, "risk_level": "high", "timeout_seconds": 600, "default_decision": "reject",
    });
    let waiting =
        std::thread::spawn(move || post(&inner, "/aaep/v1/asks?wait_seconds=30", &question));
    let asked = outer.event_of("aaep:agent.awaiting.confirmation");
    let reply = json!({
        "type": "confirmation.reply", "reply_token": asked["reply_token"], "decision": "accept",
        "subscription_id": subscription_id, "timestamp": "2020-01-01T00:00:00.000Z",
    });
    outer.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "aaep.reply", "params": reply }));
    let outcome = waiting.join().expect("an outcome");
    assert!(
        outcome.contains(r#""outcome":"accept""#) && outcome.contains(r#""decided_by":"reply""#),
        "{outcome}"
    );
    assert!(
        !outcome.contains(asked["reply_token"].as_str().expect("a token")),
        "each has its own token"
    );
    drop(outer.input.take());
    let (_, code, log) = outer.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("aaep: ") && log.contains("The hub stops."), "{log}");
}

#[test]
fn a_program_for_a_child_is_named_after_two_dashes() {
    let home = home();
    for arguments in [["serve", "--child"].as_slice(), &["serve", "--", "agent"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        let output = command.args(arguments).env_clear().env("HOME", home.path()).output();
        let output = output.expect("aaep runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
    }
}
