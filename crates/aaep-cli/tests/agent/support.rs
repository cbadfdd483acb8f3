//! A hub in a process of its own, and a person who listens to it and answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// A command that knows nothing of the hubs of this machine.
pub(crate) fn aaep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(arguments);
    for name in [
        "AAEP_HUB",
        "AAEP_TOKEN",
        "AAEP_AGENT",
        "AAEP_PROJECT",
        "AAEP_SESSION",
        "AAEP_LANGUAGE",
        "AAEP_CONFIG",
        "AAEP_PROFILE",
        "AAEP_LANGUAGES",
        "AAEP_WORDS_PER_MINUTE",
    ] {
        command.env_remove(name);
    }
    command
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// The first length of a hub's journal.
#[cfg(target_os = "linux")]
const JOURNAL_BYTES: u64 = 256 << 10;

/// A hub, with the scripted agent or without, that is killed at the end.
pub(crate) struct Hub {
    process: Child,
    /// Kept open, because the hub prints more.
    _output: BufReader<ChildStdout>,
    pub(crate) origin: String,
    /// Where the demonstration keeps its store: it cannot clean up when it is killed.
    _folder: Option<TempDir>,
}

impl Hub {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = aaep(&["demo", "--serve", "--ask-every", "0", "--bind", "127.0.0.1:0"]);
        command.env("TMPDIR", folder.path());
        Hub::run_in(&mut command, Some(folder))
    }

    /// A hub that keeps everything in this folder, at this address.
    pub(crate) fn serve(folder: &Path, address: &str) -> Self {
        Hub::serve_with(folder, address, &[])
    }

    /// The same with more arguments.
    pub(crate) fn serve_with(folder: &Path, address: &str, arguments: &[&str]) -> Self {
        let arguments = [&["--trust-local-programs", "--bind", address], arguments].concat();
        Hub::serve_as(folder, &arguments)
    }

    /// A hub as a person starts it: local programs are not trusted.
    pub(crate) fn serve_without_trust(folder: &Path) -> Self {
        Hub::serve_as(folder, &["--bind", "127.0.0.1:0"])
    }

    /// A hub whose disk can be filled.
    #[cfg(target_os = "linux")]
    pub(crate) fn serve_on_small_disk(folder: &Path) -> Self {
        let arguments = ["--trust-local-programs", "--bind", "127.0.0.1:0"];
        Hub::serve_as(folder, &arguments)
    }

    /// Limits the files of the hub to the length of its journal, or removes that limit.
    #[cfg(target_os = "linux")]
    pub(crate) fn fill_disk(&self, is_full: bool) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let pid = Pid::from_child(&self.process);
        let current = is_full.then_some(JOURNAL_BYTES);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum: None }).expect("a limit");
    }

    fn serve_as(folder: &Path, arguments: &[&str]) -> Self {
        Hub::serve_command(aaep(&["serve"]), folder, arguments)
    }

    fn serve_command(mut command: Command, folder: &Path, arguments: &[&str]) -> Self {
        command.args(arguments).arg("--store").arg(folder.join("store"));
        for name in
            ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
        {
            command.env(name, folder);
        }
        Hub::run_as(&mut command)
    }

    /// A hub that has this program as its child.
    pub(crate) fn serve_child(folder: &Path, program: &[&str]) -> Self {
        let trusting = ["serve", "--trust-local-programs", "--socket", "none"];
        let mut command = aaep(&trusting);
        command.args(["--bind", "127.0.0.1:0", "--child"]);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            command.env(name, folder);
        }
        Hub::run_as(command.arg("--").args(program))
    }

    fn run_as(command: &mut Command) -> Self {
        Hub::run_in(command, None)
    }

    fn run_in(command: &mut Command, folder: Option<TempDir>) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("aaep runs");
        let output = process.stdout.take().expect("its output");
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output.read_line(&mut line).expect("a line");
        let origin = line.trim().strip_prefix("Listening on ").expect(&line).to_owned();
        Hub { process, _output: output, origin, _folder: folder }
    }

    /// A command that speaks to this hub.
    pub(crate) fn aaep(&self, arguments: &[&str]) -> Command {
        let mut command = aaep(arguments);
        command.env("AAEP_HUB", &self.origin);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.aaep(arguments).output().expect("aaep runs")
    }

    /// Stops it in order, and waits until it has ended.
    #[cfg(unix)]
    pub(crate) fn stop(mut self) {
        let number = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &number]).status().expect("kill runs");
        assert!(told.success());
        self.process.wait().expect("it ends");
    }

    /// Calls the hub over HTTP, and gives the body of its answer; null if it has none.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut answer = String::new();
        send(&self.origin, method, path, &body).read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        serde_json::from_str(body).unwrap_or_default()
    }

    /// A person who listens and can answer.
    pub(crate) fn person(&self) -> Person {
        Person::new(&self.origin)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A person who listens to a hub.
pub(crate) struct Person {
    origin: String,
    subscription_id: String,
    heard: Receiver<Value>,
}

impl Person {
    fn new(origin: &str) -> Self {
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
            "capabilities": {
                "languages": ["en"],
                "supports_confirmation_reply": true, "supports_clarification_reply": true,
                "supported_extensions": [aaep::extension::CONTEXT],
            },
        });
        let (status, body) = post(origin, "/aaep/v1/subscriptions", &request);
        assert_eq!(status, 201, "{body}");
        let subscription_id = body["subscription_id"].as_str().expect("an id").to_owned();
        let path = format!("/aaep/v1/events?subscription_id={subscription_id}");
        let mut stream = BufReader::new(send(origin, "GET", &path, ""));
        let mut line = String::new();
        stream.read_line(&mut line).expect("a status");
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || {
            for line in stream.lines().map_while(Result::ok) {
                let data = line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:"));
                let Some(event) = data.and_then(|it| serde_json::from_str(it).ok()) else {
                    continue;
                };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Person { origin: origin.to_owned(), subscription_id, heard }
    }

    /// Waits for the next event of this type, after `aaep:agent.`.
    pub(crate) fn hears(&self, kind: &str) -> Value {
        self.hears_where(kind, |_| true)
    }

    /// Waits for the next event of one of these types.
    pub(crate) fn hears_any(&self, kinds: &[&str]) -> Value {
        loop {
            let event = self.heard.recv_timeout(PATIENCE).expect("one of them");
            if kinds.iter().any(|kind| event["type"] == format!("aaep:agent.{kind}").as_str()) {
                return event;
            }
        }
    }

    pub(crate) fn hears_where(&self, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let kind = format!("aaep:agent.{kind}");
        loop {
            let event = self.heard.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {kind}"));
            if event["type"] == kind.as_str() && is_it(&event) {
                return event;
            }
        }
    }

    /// Waits until a question is settled, and says how and by what.
    pub(crate) fn hears_how_it_was_settled(&self) -> (String, String) {
        let resolution = |event: &Value| event["extensions"]["agentvoice"]["resolution"].clone();
        let event = self.hears_where("state.changed", |event| resolution(event).is_object());
        let resolution = resolution(&event);
        let word = |key: &str| resolution[key].as_str().expect("a word").to_owned();
        (word("outcome"), word("decided_by"))
    }

    /// Decides about a confirmation; whether the hub says that it counts.
    pub(crate) fn decides(&self, question: &Value, decision: &str) -> bool {
        self.replies("confirmation.reply", "decision", question, decision)
    }

    /// Answers a clarification; whether the hub says that it counts.
    pub(crate) fn answers(&self, question: &Value, response: &str) -> bool {
        self.replies("clarification.reply", "response", question, response)
    }

    fn replies(&self, kind: &str, field: &str, question: &Value, answer: &str) -> bool {
        let mut reply = json!({
            "type": kind, "reply_token": question["reply_token"],
            "timestamp": "2020-01-01T00:00:00.000Z", "decided_by": "user",
        });
        reply[field] = answer.into();
        self.says(reply).0 == 204
    }

    /// Sends any message on its subscription.
    pub(crate) fn says(&self, mut message: Value) -> (u16, Value) {
        message["subscription_id"] = self.subscription_id.as_str().into();
        post(&self.origin, "/aaep/v1/replies", &message)
    }
}

pub(crate) fn post(origin: &str, path: &str, message: &Value) -> (u16, Value) {
    try_post(origin, path, message).expect("an answer")
}

/// The same to a hub that may not be there, or may not live until it has answered.
pub(crate) fn try_post(origin: &str, path: &str, message: &Value) -> Option<(u16, Value)> {
    let mut stream = try_send(origin, "POST", path, &message.to_string()).ok()?;
    answer(&mut stream)
}

/// Another request.
pub(crate) fn request(origin: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    answer(&mut send(origin, method, path, &body)).expect("an answer")
}

fn answer(stream: &mut TcpStream) -> Option<(u16, Value)> {
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.get(9..12).and_then(|it| it.parse().ok())?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Some((status, serde_json::from_str(body).unwrap_or_default()))
}

fn send(origin: &str, method: &str, path: &str, body: &str) -> TcpStream {
    try_send(origin, method, path, body).expect("the hub")
}

fn try_send(origin: &str, method: &str, path: &str, body: &str) -> std::io::Result<TcpStream> {
    let authority = origin.strip_prefix("http://").expect("plain http");
    let mut stream = TcpStream::connect(authority)?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}
