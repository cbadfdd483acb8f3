//! The local socket: messages by length and by line, HTTP, and which users may use it.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use aaep_hub::access::{Access, AccessConfig, AccessError, Peer, Scope, Tokens};
use aaep_hub::server::{Daemon, DaemonOptions, Given};
use aaep_transport::framed::{Decoder, Framing};
use aaep_transport::local::LocalDoor;
use http::{HeaderMap, Uri};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::{PATIENCE, question, request, subscription_request};

const BOTH: [Framing; 2] = [Framing::Length, Framing::Lines];

struct LocalHub {
    runtime: Runtime,
    daemon: Option<Daemon>,
    path: PathBuf,
    folder: TempDir,
}

impl LocalHub {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.sock");
        let runtime = Runtime::new().expect("a runtime");
        let mut options = DaemonOptions::new(folder.path().join("tokens.toml"));
        options.bind = vec!["127.0.0.1:0".parse().expect("an address")];
        options.config.access.trust_local_programs = true;
        let daemon = runtime.block_on(async {
            let door = LocalDoor::bind(&path, false).expect("a socket");
            Daemon::start_with(options, vec![Given::Local(door)]).await.expect("a hub")
        });
        LocalHub { runtime, daemon: Some(daemon), path, folder }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    fn speak(&self, framing: Framing) -> Speaker {
        Speaker {
            stream: self.connect(),
            framing,
            decoder: Decoder::new(framing, 1 << 21),
            read: Vec::new(),
        }
    }

    fn http(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request("", method, path, body).as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// The status of an answer. The rest is not read.
    fn status(&self, headers: &str, method: &str, path: &str, body: &str) -> u16 {
        let mut stream = self.connect();
        stream.write_all(request(headers, method, path, body).as_bytes()).expect("sent");
        let mut start = [0; 12];
        stream.read_exact(&mut start).expect("an answer");
        String::from_utf8_lossy(&start[9..]).parse().expect("a status")
    }

    fn begin(&self, session_id: &str) {
        let event = crate::support::started(session_id).to_string();
        let answer = self.http("POST", "/aaep/v1/publish", &event);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

impl Drop for LocalHub {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            self.runtime.block_on(daemon.stop());
        }
    }
}

/// A subscriber that speaks in messages.
struct Speaker {
    stream: UnixStream,
    framing: Framing,
    decoder: Decoder,
    read: Vec<u8>,
}

impl Speaker {
    fn say(&mut self, message: &Value) {
        let mut bytes = Vec::new();
        self.framing.message(message.to_string().as_bytes(), &mut bytes);
        self.stream.write_all(&bytes).expect("sent");
    }

    /// The next message; none at the end.
    fn hear(&mut self) -> Option<Value> {
        loop {
            let mut bytes = self.read.as_slice();
            let message = self.decoder.next(&mut bytes).expect("a message");
            self.read = bytes.to_vec();
            if let Some(message) = message {
                return Some(serde_json::from_str(&message).expect("JSON"));
            }
            let mut more = [0; 4096];
            let count = self.stream.read(&mut more).expect("more");
            if count == 0 {
                return None;
            }
            self.read.extend_from_slice(&more[..count]);
        }
    }

    fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.hear().expect("something of this kind before the end");
            if message["type"] == kind {
                return message;
            }
        }
    }

    fn subscribe(&mut self) -> String {
        self.say(&subscription_request());
        let accepted = self.hear_of("subscription.accepted");
        accepted["subscription_id"].as_str().expect("an id").to_owned()
    }
}

#[test]
fn a_subscriber_does_everything_on_the_local_socket_whichever_framing() {
    for framing in BOTH {
        let hub = LocalHub::new();
        let mode = std::fs::metadata(&hub.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut subscriber = hub.speak(framing);
        let id = subscriber.subscribe();
        hub.begin("sess_1");
        subscriber.hear_of("aaep:agent.session.started");
        let answer = hub.http("POST", "/aaep/v1/publish", &question("sess_1").to_string());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let ask = subscriber.hear_of("aaep:agent.awaiting.confirmation");
        let token = ask["reply_token"].as_str().expect("a token");
        subscriber.say(&crate::support::reply(token, &id, "accept"));
        let state = hub.http("GET", &format!("/aaep/v1/asks/{token}?wait_seconds=10"), "");
        assert!(state.contains("\"accept\""), "{state}");
        subscriber.say(&json!({ "type": "subscription.close", "subscription_id": id }));
        let closed = subscriber.hear_of("agentvoice:closed");
        assert_eq!(closed["code"], 4005);
        assert_eq!(subscriber.hear(), None);
    }
}

#[test]
fn an_invalid_message_is_answered_and_the_connection_stays() {
    for framing in BOTH {
        let hub = LocalHub::new();
        let mut subscriber = hub.speak(framing);
        subscriber.say(&json!({ "type": "nonsense" }));
        let error = subscriber.hear_of("agentvoice:error");
        assert_eq!(error["error"], "not_valid");
        subscriber.subscribe();
    }
}

#[test]
fn a_peer_that_speaks_neither_messages_nor_http_is_disconnected_and_nobody_else_is_harmed() {
    let hub = LocalHub::new();
    let mut subscriber = hub.speak(Framing::Length);
    subscriber.subscribe();
    let mut stranger = hub.connect();
    stranger.write_all(b"\x16\x03\x01 a TLS hello").expect("sent");
    let mut rest = Vec::new();
    // The system may say that not everything was read, or only end.
    let _ = stranger.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
    drop(hub.connect());
    hub.begin("sess_1");
    subscriber.hear_of("aaep:agent.session.started");
}

#[test]
fn the_socket_is_gone_when_the_hub_is_and_subscribers_are_told_why() {
    let mut hub = LocalHub::new();
    let mut subscriber = hub.speak(Framing::Lines);
    subscriber.subscribe();
    let daemon = hub.daemon.take().expect("it runs");
    hub.runtime.block_on(daemon.stop());
    assert_eq!(subscriber.hear_of("agentvoice:closed")["code"], 1001);
    assert!(!hub.path.exists());
}

#[test]
fn the_manifest_says_where_the_socket_is_and_how_it_is_framed() {
    let hub = LocalHub::new();
    let manifest = hub.http("GET", "/.well-known/aaep-manifest.json", "");
    assert!(manifest.contains("unix-socket") && manifest.contains("length-prefixed"), "{manifest}");
    assert!(manifest.contains(&format!("unix:{}", hub.path.display())), "{manifest}");
}

#[test]
fn another_user_is_let_in_only_if_the_configuration_names_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = || Tokens::load(&folder.path().join("tokens.toml")).expect("tokens");
    let config: AccessConfig =
        toml::from_str("[[users]]\nuid = 1001\nname = \"Ada\"\nscopes = [\"listen\"]")
            .expect("a configuration");
    let access = |config| Access::new(config, tokens(), None, false).expect("doors");
    let now = aaep_engine::Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
    let come = |access: &Access, user_id| {
        access.authenticate(&Peer::other_user(user_id), &HeaderMap::new(), &Uri::default(), now)
    };
    let ada = come(&access(config.clone()), 1001).expect("known");
    assert!(ada.allow(Scope::Listen).is_ok() && ada.allow(Scope::Reply).is_err());
    assert_ne!(ada.id, "local");
    assert_eq!(come(&access(config), 1002), Err(AccessError::UnknownUser(1002)));
    let default = access(AccessConfig::default());
    assert_eq!(come(&default, 1001), Err(AccessError::UnknownUser(1001)));
    assert_eq!(come(&default, 0), Err(AccessError::UnknownUser(0)), "nor is the administrator");
}

#[test]
fn every_address_lets_in_those_who_have_its_scope_and_nobody_else_on_the_local_socket() {
    let hub = LocalHub::new();
    let visitors = crate::refusals::visitors(&hub.folder);
    for row in crate::refusals::ADDRESSES {
        let (method, path, body, ..) = *row;
        for visitor in &visitors {
            let status = hub.status(&visitor.headers, method, path, body);
            assert_eq!(status, visitor.expects(row), "{method} {path}: {}", visitor.name);
        }
    }
}
