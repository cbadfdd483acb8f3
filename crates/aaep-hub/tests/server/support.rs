//! A hub that can be reached over real sockets, and the simplest clients.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aaep_engine::Now;
use aaep_hub::access::{HeardAgents, NewToken, PersonKey, Scope, Tokens, read_person_key};
use aaep_hub::server::{Daemon, DaemonOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long anything may take before a test fails. Nothing is asserted about less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something holds, and fails if that takes too long.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        // A pause between two tries.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A hub on a free port of this machine.
pub(crate) struct TestHub {
    pub(crate) runtime: Runtime,
    pub(crate) folder: TempDir,
    daemon: Option<Daemon>,
}

impl TestHub {
    /// A hub with everything at its default, in memory.
    pub(crate) fn new() -> Self {
        TestHub::with(|_| {})
    }

    /// A hub with other options.
    pub(crate) fn with(change: impl FnOnce(&mut DaemonOptions)) -> Self {
        TestHub::in_folder(tempfile::tempdir().expect("a folder"), change)
    }

    /// A hub whose files are in an existing folder.
    pub(crate) fn in_folder(folder: TempDir, change: impl FnOnce(&mut DaemonOptions)) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let mut options = DaemonOptions::new(folder.path().join("tokens.toml"));
        options.bind = vec!["127.0.0.1:0".parse().expect("an address")];
        // Tests about the right to answer change this.
        options.config.access.trust_local_programs = true;
        change(&mut options);
        let daemon = runtime.block_on(Daemon::start(options)).expect("a hub");
        TestHub { runtime, folder, daemon: Some(daemon) }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.daemon().addresses()[0]
    }

    /// Stops it and gives back its folder.
    pub(crate) fn stop(mut self) -> TempDir {
        let daemon = self.daemon.take().expect("it runs");
        assert!(self.runtime.block_on(daemon.stop()), "nobody has to be cut off");
        self.folder
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Sends a request unchanged on its own connection.
    pub(crate) fn raw(&self, request: &str) -> Reply {
        let mut client = self.connect();
        client.send(request);
        client.reply()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.as_someone("", "GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.as_someone("", "POST", path, &body.to_string())
    }

    /// A request with more headers, each with its line end.
    pub(crate) fn as_someone(&self, headers: &str, method: &str, path: &str, body: &str) -> Reply {
        self.raw(&request(headers, method, path, body))
    }

    /// Makes a subscription that hears everything and can answer. Returns its id.
    pub(crate) fn subscribe(&self, headers: &str) -> String {
        let body = subscription_request().to_string();
        let reply = self.as_someone(headers, "POST", "/aaep/v1/subscriptions", &body);
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()["subscription_id"].as_str().expect("an id").to_owned()
    }

    /// Opens the stream of a subscription.
    pub(crate) fn stream(&self, headers: &str, subscription_id: &str) -> Client {
        let path = format!("/aaep/v1/events?subscription_id={subscription_id}");
        self.open_stream(headers, &path)
    }

    /// The same, and waits until it hears what happens: until then, its subscription counts as away.
    pub(crate) fn listening_stream(&self, headers: &str, subscription_id: &str) -> Client {
        let mut stream = self.stream(headers, subscription_id);
        let session_id = subscription_id.replace("sub_", "sess_");
        self.begin(&session_id);
        while stream.event()["session_id"] != session_id.as_str() {}
        stream
    }

    pub(crate) fn open_stream(&self, headers: &str, path: &str) -> Client {
        let mut client = self.connect();
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        client
    }

    /// Waits until the hub has noticed that all connections are gone.
    pub(crate) fn wait_until_empty(&self) {
        wait_until("all connections are given back", || {
            self.daemon().hub().guard().connections() == 0
        });
    }

    /// Waits until the hub has read a token that was just made; it looks about once a second.
    pub(crate) fn wait_until_known(&self, credential: &str) {
        wait_until("the token is known", || {
            self.as_someone(credential, "GET", "/aaep/v1/sessions", "").status != 401
        });
    }

    /// Waits until the hub counts this many subscribers whose sockets are full.
    pub(crate) fn wait_until_blocked(&self, count: u64) {
        wait_until("a socket is full", || self.has_blocked(count));
    }

    /// Whether the hub counts this many subscribers whose sockets are full.
    pub(crate) fn has_blocked(&self, count: u64) -> bool {
        let line = format!("subscribers_blocked {count}");
        self.get("/metrics").body.lines().any(|it| it.starts_with("aaep_") && it.ends_with(&line))
    }

    /// Begins a session.
    pub(crate) fn begin(&self, session_id: &str) {
        let reply = self.post("/aaep/v1/publish", &started(session_id));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
}

/// The header that identifies the person's own programs.
pub(crate) fn person(hub: &TestHub) -> String {
    let path = PersonKey::path_beside(&hub.folder.path().join("tokens.toml"));
    format!("authorization: Bearer {}\r\n", read_person_key(&path).expect("a key"))
}

/// Makes a token in the file of a folder. Returns its header.
pub(crate) fn token(folder: &TempDir, name: &str, scopes: &[Scope]) -> String {
    token_hearing(folder, name, scopes, HeardAgents::All)
}

/// The same for a principal that hears these agents.
pub(crate) fn token_hearing(
    folder: &TempDir,
    name: &str,
    scopes: &[Scope],
    hears: HeardAgents,
) -> String {
    let path: PathBuf = folder.path().join("tokens.toml");
    let mut tokens = Tokens::load(&path).expect("tokens");
    let new = NewToken {
        name: name.to_owned(),
        scopes: scopes.iter().copied().collect(),
        hears,
        owners: [name.to_owned()].into(),
        speaks_as: [].into(),
        expires: None,
    };
    let now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
    let (secret, _) = tokens.create(new, now).expect("a token");
    format!("authorization: Bearer {}\r\n", secret.reveal())
}

pub(crate) fn request(headers: &str, method: &str, path: &str, body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}");
    let has = |name: &str| headers.to_ascii_lowercase().contains(name);
    if !body.is_empty() && !has("content-type:") {
        text.push_str("content-type: application/json\r\n");
    }
    if !body.is_empty() {
        write!(text, "content-length: {}\r\n", body.len()).expect("writes");
    }
    write!(text, "connection: close\r\n\r\n{body}").expect("writes");
    text
}

pub(crate) fn subscription_request() -> Value {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "test",
        "capabilities": {
            "supports_confirmation_reply": true, "supports_clarification_reply": true,
            "event_filters": { "include": ["*"] },
        },
    })
}

pub(crate) fn started(session_id: &str) -> Value {
    json!({
        "type": "aaep:agent.session.started", "session_id": session_id,
        "producer": { "agent_id": "builder" }, "summary_normal": "I begin.",
    })
}

/// A harmless event that is valid at any time in a running session.
pub(crate) fn progress(session_id: &str, event_id: &str) -> Value {
    json!({
        "type": "aaep:agent.progress.updated", "session_id": session_id, "event_id": event_id,
        "producer": { "agent_id": "builder" }, "summary_normal": "Half is done.",
        "progress": { "percent": 50 },
    })
}

pub(crate) fn question(session_id: &str) -> Value {
    json!({
        "type": "aaep:agent.awaiting.confirmation", "session_id": session_id,
        "producer": { "agent_id": "builder" }, "summary_normal": "Delete the database?",
        "action": "Delete the database", "consequence": "Everything in it is lost.",
        "reversibility": "irreversible", "risk_level": "high",
        "timeout_seconds": 600, "default_decision": "reject",
    })
}

pub(crate) fn reply(token: &str, subscription_id: &str, decision: &str) -> Value {
    json!({
        "type": "confirmation.reply", "reply_token": token, "subscription_id": subscription_id,
        "decision": decision, "timestamp": "2020-01-01T00:00:00.000Z",
    })
}

/// A connection.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        socket.set_write_timeout(Some(PATIENCE)).expect("a time limit");
        Client { socket, read: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        // A server may answer and close before it has read everything.
        let _ = self.socket.write_all(bytes);
    }

    /// Reads up to and with these bytes.
    pub(crate) fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|it| it == end.as_bytes());
            if let Some(at) = found {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(text).expect("text");
            }
            let so_far = String::from_utf8_lossy(&self.read).into_owned();
            assert!(self.more() > 0, "the connection ended before {end:?}, after: {so_far}");
        }
    }

    /// Reads this many bytes.
    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more() > 0, "the connection ended early");
        }
        let rest = self.read.split_off(count);
        std::mem::replace(&mut self.read, rest)
    }

    /// Reads the rest. A connection that is reset has ended as well.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() > 0 {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    fn more(&mut self) -> usize {
        let mut bytes = [0; 4096];
        match self.socket.read(&mut bytes) {
            Ok(count) => {
                self.read.extend_from_slice(&bytes[..count]);
                count
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        }
    }

    /// The head of an answer.
    pub(crate) fn head(&mut self) -> String {
        self.until("\r\n\r\n")
    }

    /// A whole answer.
    pub(crate) fn reply(&mut self) -> Reply {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let mut reply = Reply { status, head, body: String::new() };
        if let Some(length) = reply.header("content-length") {
            let bytes = self.exactly(length.parse().expect("a length"));
            reply.body = String::from_utf8(bytes).expect("text");
        }
        reply
    }

    /// The next event of a stream, as JSON. Skips keep-alive comments.
    pub(crate) fn event(&mut self) -> Value {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "no event came");
            let line = self.until("\n");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }

    /// The next event of this type.
    pub(crate) fn event_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.event();
            if event["type"] == kind {
                return event;
            }
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Fails unless it is a refusal of this kind, in the form that every refusal has.
    pub(crate) fn refuses(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{} {}", self.head, self.body);
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.head);
        let body = self.json();
        assert_eq!(body["error"], code, "{body}");
        let message = body["message"].as_str().expect("words");
        assert!(message.ends_with(['.', 'w']) && message.contains(". "), "a next step: {message}");
    }
}
