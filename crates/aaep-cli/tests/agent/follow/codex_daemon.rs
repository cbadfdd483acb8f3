//! A daemon that speaks as that of Codex was recorded to.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use aaep_transport::websocket::{self, Decoder, Incoming, Role};
use serde_json::{Value, json};

use super::PATIENCE;

const FOLDER: &str = "/home/ada/work/shop";

pub(crate) struct PlayedDaemon {
    place: PathBuf,
    stream: UnixStream,
    /// What the client sent, without what is answered here.
    answers: Receiver<Value>,
    resumed: Receiver<Value>,
}

impl PlayedDaemon {
    /// Listens, in a thread of its own, for the one client that comes.
    pub(crate) fn start(home: &Path) -> WaitingDaemon {
        let folder = home.join(".codex/app-server-control");
        fs::create_dir_all(&folder).expect("a folder");
        let place = folder.join("app-server-control.sock");
        let _ = fs::remove_file(&place);
        let listener = UnixListener::bind(&place).expect("a socket");
        WaitingDaemon { place, listener, daemon: std::cell::OnceCell::new() }
    }

    fn accept(place: PathBuf, listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
        let mut key = String::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("sec-websocket-key:") {
                line[line.len() - value.len()..].trim().clone_into(&mut key);
            }
        }
        let accept = websocket::accept_key(&key);
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        );
        (&stream).write_all(head.as_bytes()).expect("it reads");
        let (answer_sender, answers) = mpsc::channel();
        let (resume_sender, resumed) = mpsc::channel();
        let own = stream.try_clone().expect("a handle");
        thread::spawn(move || read(reader, &own, &answer_sender, &resume_sender));
        PlayedDaemon { place, stream, answers, resumed }
    }
}

/// A daemon whose client may not have come yet.
pub(crate) struct WaitingDaemon {
    place: PathBuf,
    listener: UnixListener,
    daemon: std::cell::OnceCell<PlayedDaemon>,
}

impl WaitingDaemon {
    fn daemon(&self) -> &PlayedDaemon {
        self.daemon.get_or_init(|| PlayedDaemon::accept(self.place.clone(), &self.listener))
    }

    pub(crate) fn says(&self, message: &Value) {
        self.says_text(&message.to_string());
    }

    pub(crate) fn says_text(&self, text: &str) {
        let mut bytes = Vec::new();
        websocket::text(text.as_bytes(), None, &mut bytes);
        (&self.daemon().stream).write_all(&bytes).expect("it reads");
    }

    fn notice(&self, method: &str, params: impl Into<Value>) {
        self.says(&json!({ "method": method, "params": params.into(), "emittedAtMs": 1 }));
    }

    /// Lets the client hear a thread.
    pub(crate) fn resumes(&self, thread: &str) {
        let request = self.daemon().resumed.recv_timeout(PATIENCE).expect("a request");
        assert_eq!(request["params"]["threadId"], thread);
        self.says(
            &json!({ "id": request["id"], "result": { "thread": { "id": thread, "cwd": FOLDER,
            "ephemeral": false, "status": { "type": "idle" }, "turns": [] } } }),
        );
    }

    fn item(&self, thread: &str, method: &str, item: &Value) {
        self.notice(method, json!({ "threadId": thread, "turnId": "u1", "item": item }));
    }

    /// A turn begins.
    pub(crate) fn begins(&self, thread: &str) {
        self.notice("turn/started", json!({ "threadId": thread, "turn": { "id": "u1" } }));
        let prompt = json!({ "type": "userMessage", "id": "i1",
            "content": [{ "type": "text", "text": "Tidy up." }] });
        self.item(thread, "item/started", &prompt);
        self.item(thread, "item/completed", &prompt);
    }

    /// Asks whether it may remove the build folder.
    pub(crate) fn asks(&self, thread: &str) {
        self.notice(
            "thread/status/changed",
            json!({ "threadId": thread,
            "status": { "type": "active", "activeFlags": ["waitingOnApproval"] } }),
        );
        self.item(thread, "item/started", &command("inProgress"));
        self.says(&json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params": {
            "kind": "command", "threadId": thread, "turnId": "u1", "itemId": "c1",
            "command": "/bin/bash -lc 'rm -rf build'", "cwd": FOLDER,
            "availableDecisions": ["accept", "cancel"] } }));
    }

    /// The question was answered somewhere, and the turn ends.
    pub(crate) fn settles(&self, thread: &str, status: &str) {
        self.notice("serverRequest/resolved", json!({ "threadId": thread, "requestId": 0 }));
        self.item(thread, "item/completed", &command(status));
        self.notice(
            "turn/completed",
            json!({ "threadId": thread, "turn": { "id": "u1", "status": "completed" } }),
        );
    }

    /// The next answer of the client.
    pub(crate) fn answer(&self) -> Value {
        self.daemon().answers.recv_timeout(PATIENCE).expect("an answer")
    }

    pub(crate) fn has_no_more_answers(&self) -> bool {
        self.daemon().answers.recv_timeout(Duration::from_millis(200)).is_err()
    }

    /// It is killed.
    pub(crate) fn dies(self) {
        let daemon = self.daemon();
        let _ = daemon.stream.shutdown(Shutdown::Both);
        let _ = fs::remove_file(&daemon.place);
    }
}

fn command(status: &str) -> Value {
    json!({ "type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'rm -rf build'",
        "cwd": FOLDER, "source": "agent", "status": status, "exitCode": null })
}

/// Answers what every client asks, and passes on the rest.
fn read(
    mut reader: BufReader<UnixStream>,
    mut stream: &UnixStream,
    answers: &Sender<Value>,
    resumed: &Sender<Value>,
) {
    let mut decoder = Decoder::new(Role::Server, 1 << 20);
    let mut buffer = [0; 4096];
    while let Ok(count) = reader.read(&mut buffer) {
        let mut bytes = &buffer[..count];
        if bytes.is_empty() {
            return;
        }
        while let Ok(Some(incoming)) = decoder.next(&mut bytes) {
            let Incoming::Text(text) = incoming else { continue };
            let message: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(message.get("jsonrpc"), None, "{message}");
            let result = match message["method"].as_str() {
                Some("initialize") => json!({ "codexHome": "/home/ada/.codex" }),
                Some("thread/loaded/list") => json!({ "data": ["t1"], "nextCursor": null }),
                Some("thread/resume") => {
                    let _ = resumed.send(message);
                    continue;
                }
                Some(_) => continue,
                None => {
                    let _ = answers.send(message);
                    continue;
                }
            };
            let mut frame = Vec::new();
            let answer = json!({ "id": message["id"], "result": result }).to_string();
            websocket::text(answer.as_bytes(), None, &mut frame);
            if stream.write_all(&frame).is_err() {
                return;
            }
        }
    }
}
