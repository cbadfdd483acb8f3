//! A hub in a process of its own, an agent that speaks to it over HTTP, and a subscriber on the wire that is
//! tried.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aaep_transport::link::{DialOptions, Link, LinkEnd, LinkResume, Target, dial};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test says that it does not happen.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The agent that speaks.
const AGENT: &str = "builder";

/// The particulars of a wire.
pub(crate) trait Wire {
    /// Whether the subscriber starts the hub, as its child.
    const IS_CHILD: bool = false;

    /// Whether the system itself identifies the other end, so that no proof is needed.
    const IS_VOUCHED_FOR: bool = false;

    /// Whether the end of a connection has a code.
    const HAS_CODES: bool = true;

    /// Where the hub is on this wire.
    fn target(world: &World) -> String;

    /// Subscribes, and then breaks the rules of this wire, in every way that there is.
    async fn speak_wrongly(world: &World);

    /// Subscribes, waits for a question, and then ends its own half of the connection. The returned value
    /// keeps the other half.
    async fn close_half(world: &World) -> Box<dyn std::any::Any>;
}

/// A hub with an agent and subscribers.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    child: Option<Child>,
}

impl World {
    pub(crate) fn new<W: Wire>(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hub.toml"), config).expect("a file");
        // The port is free again when the hub opens it; nobody else asks for exactly this one.
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let mut world = World { folder, address, child: None };
        if !W::IS_CHILD {
            world.start();
        }
        world
    }

    /// The words of a command that starts the hub of this world.
    pub(crate) fn command(&self) -> Vec<String> {
        let inside = |name: &str| self.folder.path().join(name).display().to_string();
        let mut words = vec![env!("CARGO_BIN_EXE_aaep").to_owned(), "serve".to_owned()];
        words.push("--trust-local-programs".to_owned());
        for (flag, value) in [
            ("--bind", self.address.to_string()),
            ("--socket", inside("hub.sock")),
            ("--config", inside("hub.toml")),
            ("--store", inside("store")),
            ("--tokens", inside("tokens.toml")),
            ("--keys", inside("keys")),
            ("--log", "warn".to_owned()),
        ] {
            words.extend([flag.to_owned(), value]);
        }
        words
    }

    fn start(&mut self) {
        let words = self.command();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("aaep runs");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        while !line.contains("To stop") {
            line.clear();
            assert!(said.read_line(&mut line).expect("a line") > 0, "the hub did not start");
        }
        self.child = Some(child);
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("hub.sock")
    }

    /// A subscriber on the wire that shows this token, or why there is none.
    pub(crate) async fn come<W: Wire>(&self, bearer: Option<&str>) -> Result<Subscriber, LinkEnd> {
        let target = Target::parse(&W::target(self)).expect("a target");
        let bearer = bearer.map(str::to_owned);
        let link = dial(&target, &DialOptions { bearer, ..DialOptions::default() }).await?;
        Ok(Subscriber { link, subscription_id: String::new() })
    }

    /// A subscriber on the wire.
    pub(crate) async fn listen<W: Wire>(&self) -> Subscriber {
        self.listen_with::<W>(None).await
    }

    /// The same, continuing where it left off.
    pub(crate) async fn listen_with<W: Wire>(&self, resume: Option<LinkResume>) -> Subscriber {
        let target = Target::parse(&W::target(self)).expect("a target");
        let options = DialOptions { resume, ..DialOptions::default() };
        let link = dial(&target, &options).await.expect("a link");
        Subscriber { link, subscription_id: String::new() }
    }

    /// A connected subscriber, with a subscription that hears everything and can answer.
    pub(crate) async fn subscribed<W: Wire>(&self) -> Subscriber {
        let mut subscriber = self.listen::<W>().await;
        subscriber.subscribe(&request()).await;
        subscriber
    }

    /// Publishes an event of the agent.
    pub(crate) async fn publish(&self, kind: &str, more: Value) -> Value {
        let mut event = json!({
            "type": format!("aaep:agent.{kind}"), "session_id": "sess_1",
            "producer": { "agent_id": AGENT },
        });
        if kind != "output.streaming" {
            event["summary_normal"] = json!("Something happens.");
        }
        merge(&mut event, more);
        let (status, body) = self.post("/aaep/v1/publish", &event).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Asks, with nobody answering yet; the token of the question.
    pub(crate) async fn ask(&self) -> String {
        let asked = self.publish("awaiting.confirmation", question()).await;
        asked["reply_token"].as_str().expect("a token").to_owned()
    }

    /// How a question was settled.
    pub(crate) async fn outcome(&self, token: &str) -> Value {
        for _ in 0..4 {
            let path = format!("/aaep/v1/asks/{token}?wait_seconds=15");
            let (status, body) = self.http("GET", &path, "").await;
            assert!(status < 300, "{body}");
            if body["status"] == "settled" {
                return body;
            }
        }
        panic!("nobody settled the question");
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.http("POST", path, &body.to_string()).await
    }

    async fn http(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let address = self.address;
        let asking = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).expect("connects");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            stream.write_all(text.as_bytes()).expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            answer
        });
        let answer = asking.await.expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A subscriber on the wire.
pub(crate) struct Subscriber {
    pub(crate) link: Link,
    pub(crate) subscription_id: String,
}

impl Subscriber {
    pub(crate) async fn say(&self, message: &Value) {
        self.link.sender.send(message.to_string()).await.expect("open");
    }

    /// The next message, or how the link ended.
    pub(crate) async fn hear(&mut self) -> Result<Value, LinkEnd> {
        let heard = tokio::time::timeout(PATIENCE, self.link.receiver.next()).await;
        let heard = heard.expect("something comes, or the end")?;
        Ok(serde_json::from_str(&heard).expect("JSON"))
    }

    /// The next message of this type.
    pub(crate) async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.hear().await.expect("something of this kind before the end");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// How the link ends. Skips all messages before.
    pub(crate) async fn end(&mut self) -> LinkEnd {
        loop {
            if let Err(end) = self.hear().await {
                return end;
            }
        }
    }

    /// Asks for a subscription and gets it.
    pub(crate) async fn subscribe(&mut self, request: &Value) -> Value {
        self.say(request).await;
        let accepted = self.hear().await.expect("an answer");
        assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().expect("an id").clone_into(&mut self.subscription_id);
        accepted
    }

    /// Answers a question.
    pub(crate) async fn answer(&self, asked: &Value, decision: &str) {
        self.say(&json!({
            "type": "confirmation.reply", "reply_token": asked["reply_token"],
            "subscription_id": self.subscription_id, "decision": decision,
            "timestamp": "2020-01-01T00:00:00.000Z",
        }))
        .await;
    }
}

/// A request for everything, from a subscriber that can answer.
pub(crate) fn request() -> Value {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "table",
        "capabilities": {
            "supports_confirmation_reply": true, "supports_clarification_reply": true,
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
        },
    })
}

/// A question that nobody answers by accident.
pub(crate) fn question() -> Value {
    json!({
        "action": "Delete the database", "consequence": "Everything in it is lost.",
        "reversibility": "irreversible", "risk_level": "high",
        "timeout_seconds": 600, "default_decision": "reject",
        "summary_normal": "Delete the database?",
    })
}

/// Puts the members of one object into another.
pub(crate) fn merge(into: &mut Value, more: Value) {
    let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) else { return };
    into.extend(more);
}
