//! A hub that is reached over every wire, and a subscriber that sees no difference between them.

use std::path::PathBuf;
use std::time::Duration;

use aaep::ReplyToken;
use aaep_engine::Now;
use aaep_hub::access::{HeardAgents, NewToken, Principal, Scope, Tokens};
use aaep_hub::hub::Settlement;
use aaep_hub::server::{Daemon, DaemonOptions, Given};
use aaep_transport::framed::Framing;
use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd, Target, dial};
use aaep_transport::local::LocalDoor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

/// How long anything may take before a test fails. Nothing is asserted about less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Sse,
    WebSocket,
    UnixLength,
    UnixLines,
    #[cfg(feature = "grpc")]
    Grpc,
}

pub(crate) const WIRES: &[Wire] = &[
    Wire::Sse,
    Wire::WebSocket,
    Wire::UnixLength,
    Wire::UnixLines,
    #[cfg(feature = "grpc")]
    Wire::Grpc,
];

/// The wires that other machines can use.
pub(crate) const NETWORK_WIRES: &[Wire] = &[
    Wire::Sse,
    Wire::WebSocket,
    #[cfg(feature = "grpc")]
    Wire::Grpc,
];

pub(crate) struct TestHub {
    daemon: Option<Daemon>,
    pub(crate) folder: TempDir,
}

impl TestHub {
    pub(crate) async fn new() -> Self {
        TestHub::with(|_, _| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut DaemonOptions, &TempDir)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options = DaemonOptions::new(folder.path().join("tokens.toml"));
        options.bind = vec!["127.0.0.1:0".parse().expect("an address")];
        options.config.access.trust_local_programs = true;
        change(&mut options, &folder);
        let door = LocalDoor::bind(&folder.path().join("hub.sock"), false).expect("a socket");
        let daemon = Daemon::start_with(options, vec![Given::Local(door)]).await.expect("a hub");
        TestHub { daemon: Some(daemon), folder }
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    pub(crate) fn hub(&self) -> &aaep_hub::hub::Hub {
        self.daemon().hub()
    }

    pub(crate) fn port(&self) -> u16 {
        self.daemon().addresses()[0].port()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("hub.sock")
    }

    pub(crate) fn target(&self, wire: Wire) -> Target {
        let port = self.port();
        target(&match wire {
            Wire::Sse => format!("http://127.0.0.1:{port}"),
            Wire::WebSocket => format!("ws://127.0.0.1:{port}"),
            #[cfg(feature = "grpc")]
            Wire::Grpc => format!("grpc://127.0.0.1:{port}"),
            Wire::UnixLength | Wire::UnixLines => format!("unix:{}", self.socket().display()),
        })
    }

    /// A link without any message yet.
    pub(crate) async fn dial(
        &self,
        wire: Wire,
        options: DialOptions,
    ) -> Result<Subscriber, DialError> {
        let framing = if wire == Wire::UnixLines { Framing::Lines } else { Framing::Length };
        let link = dial(&self.target(wire), &DialOptions { framing, ..options }).await?;
        Ok(Subscriber { link, id: String::new() })
    }

    /// A subscriber that hears everything and may answer.
    pub(crate) async fn subscriber(&self, wire: Wire) -> Subscriber {
        let mut subscriber = self.dial(wire, DialOptions::default()).await.expect("a link");
        subscriber.subscribe(subscription_request()).await;
        subscriber
    }

    pub(crate) async fn publish(&self, event: Value) -> Option<ReplyToken> {
        let Value::Object(event) = event else { panic!("no event") };
        let published = self.hub().publish(&Principal::local(), vec![event], None).await;
        let published = published.expect("stored").remove(0).expect("it stands");
        published.reply_token
    }

    /// Asks. Returns the token.
    pub(crate) async fn ask(&self, session_id: &str) -> ReplyToken {
        self.publish(question(session_id)).await.expect("a token")
    }

    /// The settlement of a question.
    pub(crate) async fn settlement(&self, token: &ReplyToken) -> Settlement {
        let state = self.hub().ask_state(&Principal::local(), token, PATIENCE).await;
        state.expect("a question").settlement.expect("it is settled")
    }

    pub(crate) async fn is_open(&self, token: &ReplyToken) -> bool {
        let state = self.hub().ask_state(&Principal::local(), token, Duration::ZERO).await;
        state.expect("a question").settlement.is_none()
    }

    pub(crate) async fn stop(&mut self) {
        self.daemon.take().expect("it runs").stop().await;
    }
}

pub(crate) struct Subscriber {
    pub(crate) link: Link,
    pub(crate) id: String,
}

impl Subscriber {
    pub(crate) async fn subscribe(&mut self, request: Value) {
        self.say(&request).await;
        let accepted = self.next().await;
        assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().expect("an id").clone_into(&mut self.id);
    }

    pub(crate) async fn say(&self, message: &Value) {
        self.link.sender.send(message.to_string()).await.expect("the link is open");
    }

    pub(crate) async fn heard(&mut self) -> Result<Value, LinkEnd> {
        let next = timeout(PATIENCE, self.link.receiver.next()).await.expect("something comes");
        next.map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.heard().await.expect("a message")
    }

    /// The next message of this type.
    pub(crate) async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Why the link ends. Skips all messages before.
    pub(crate) async fn end(&mut self) -> LinkEnd {
        loop {
            if let Err(end) = self.heard().await {
                return end;
            }
        }
    }

    pub(crate) async fn decide(&self, token: &ReplyToken, decision: &str) {
        self.say(&reply(token.as_str(), &self.id, decision)).await;
    }
}

pub(crate) fn target(text: &str) -> Target {
    Target::parse(text).expect("a target")
}

/// Makes a token for the hub of this folder.
pub(crate) fn token(folder: &TempDir, name: &str, scopes: &[Scope]) -> String {
    let mut tokens = Tokens::load(&folder.path().join("tokens.toml")).expect("tokens");
    let new = NewToken {
        name: name.to_owned(),
        scopes: scopes.iter().copied().collect(),
        hears: HeardAgents::All,
        owners: [].into(),
        speaks_as: [].into(),
        expires: None,
    };
    let now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
    tokens.create(new, now).expect("a token").0.reveal().to_owned()
}

pub(crate) fn subscription_request() -> Value {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "test",
        "capabilities": {
            "supports_confirmation_reply": true, "event_filters": { "include": ["*"] },
        },
    })
}

pub(crate) fn started(session_id: &str, words: &str) -> Value {
    json!({
        "type": "aaep:agent.session.started", "session_id": session_id,
        "producer": { "agent_id": "builder" }, "summary_normal": words,
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
