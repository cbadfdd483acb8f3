//! A hub, and peers that speak to it over loopback sockets.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aaep::handshake::SubscriptionRequest;
use aaep::{Message, Mode, Object, ReplyToken, SubscriptionId};
use aaep_engine::terms::Door;
use aaep_hub::access::{Principal, Roster};
use aaep_hub::hub::{ConnectionPurpose, Hub, MessageOutcome, NewConnection, Published, Refused};
use aaep_transport::Protocol;
use aaep_transport::wire::Socket;
use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message as Frame, WebSocket};

/// Longer than anything here takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that keeps everything in this folder.
pub(crate) fn hub_in(folder: &Path) -> Hub {
    Hub::builder().roster(trusting()).store(folder).start().expect("a hub")
}

/// A hub that keeps everything in memory.
pub(crate) fn hub() -> Hub {
    Hub::builder().roster(trusting()).start().expect("a hub")
}

/// Every local program may answer.
fn trusting() -> Arc<Roster> {
    Arc::new(Roster::new(true))
}

pub(crate) fn me() -> Principal {
    Principal::local()
}

/// Another principal, with the same rights.
pub(crate) fn somebody_else() -> Principal {
    Principal { id: "token other".to_owned(), name: "other".to_owned(), ..Principal::local() }
}

/// An event with this type and these fields.
pub(crate) fn event(kind: &str, session: Option<&str>, fields: &Value) -> Object {
    let mut event = json!({
        "type": format!("aaep:agent.{kind}"),
        "producer": { "agent_id": "builder" },
    });
    if let Some(session) = session {
        event["session_id"] = session.into();
    }
    let mut event = event.as_object().cloned().expect("an object");
    event.extend(fields.as_object().cloned().expect("an object"));
    event
}

pub(crate) fn started(session: &str) -> Object {
    event(
        "session.started",
        Some(session),
        &json!({ "summary_normal": "Tidying the build folder." }),
    )
}

pub(crate) fn progress(session: &str, text: &str) -> Object {
    event(
        "progress.updated",
        Some(session),
        &json!({ "progress": { "percent": 50 }, "summary_normal": text }),
    )
}

pub(crate) fn tool(session: &str, call: &str) -> Object {
    let fields = json!({ "tool": "look", "tool_call_id": call, "summary_normal": "Looking." });
    event("tool.invoked", Some(session), &fields)
}

/// A question about something that cannot be undone.
pub(crate) fn confirmation(session: &str, token: &str) -> Object {
    event(
        "awaiting.confirmation",
        Some(session),
        &json!({
            "reply_token": token,
            "action": "Delete the build folder",
            "consequence": "All files in it are gone.",
            "risk_level": "high",
            "irreversible": true,
            "reversibility": "irreversible",
            "timeout_seconds": 60,
            "default_decision": "reject",
            "allowed_replies": ["accept", "reject"],
            "summary_normal": "May I delete the build folder?",
        }),
    )
}

pub(crate) fn token(text: &str) -> ReplyToken {
    ReplyToken::parse(text).expect("a token")
}

/// Publishes one event that is taken.
pub(crate) async fn publish(hub: &Hub, event: Object) -> Published {
    try_publish(hub, &me(), event).await.expect("taken")
}

pub(crate) async fn try_publish(
    hub: &Hub,
    principal: &Principal,
    event: Object,
) -> Result<Published, Refused> {
    let mut outcomes = hub.publish(principal, vec![event], None).await.expect("answered");
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// A request for everything, with the right to answer.
pub(crate) fn request(capabilities: &Value) -> SubscriptionRequest {
    let mut all =
        json!({ "supports_confirmation_reply": true, "supports_clarification_reply": true });
    all.as_object_mut()
        .expect("an object")
        .extend(capabilities.as_object().cloned().expect("an object"));
    let text = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": all,
    });
    match read(&text) {
        Message::SubscriptionRequest(request) => *request,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn read(text: &Value) -> Message {
    aaep::read(text.to_string().as_bytes(), Mode::Strict).into_result().expect("valid")
}

/// Subscribes without a connection, as a POST does.
pub(crate) async fn subscribe(hub: &Hub, capabilities: Value) -> SubscriptionId {
    let accepted =
        hub.subscribe(&me(), Door::Open, request(&capabilities)).await.expect("answered");
    accepted.expect("accepted").subscription_id.clone()
}

pub(crate) async fn reply(
    hub: &Hub,
    who: &Principal,
    subscription: &SubscriptionId,
    token: &str,
    decision: &str,
) -> MessageOutcome {
    let reply = json!({
        "type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription, "timestamp": "2020-01-01T00:00:00.000Z",
    });
    hub.tell(who, read(&reply)).await.expect("answered")
}

/// Two ends of a loopback connection: ours, and that of the hub.
fn pair(principal: &Principal, protocol: Protocol) -> (TcpStream, NewConnection) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let (server, _) = listener.accept().expect("accepted");
    server.set_nonblocking(true).expect("not blocking");
    let connection = NewConnection {
        principal: Arc::new(principal.clone()),
        socket: Socket::Tcp(server),
        read_ahead: Vec::new(),
        protocol,
        permit: None,
    };
    (client, connection)
}

/// A stream of server-sent events.
pub(crate) struct Stream {
    lines: BufReader<TcpStream>,
    /// The last id that came.
    pub(crate) last_id: Option<String>,
}

impl Stream {
    pub(crate) async fn open(hub: &Hub, id: &SubscriptionId, last: Option<&str>) -> Self {
        let (client, connection) = pair(&me(), Protocol::SsePlain { named: true });
        let last = last.map(|last| aaep::EventId::parse(last).expect("an id"));
        let purpose =
            ConnectionPurpose::Stream { subscription_id: id.clone(), last_event_id: last };
        hub.attach(connection, purpose).await.expect("streamed");
        Stream { lines: BufReader::new(client), last_id: None }
    }

    pub(crate) async fn legacy(hub: &Hub) -> Self {
        let (client, connection) = pair(&me(), Protocol::SsePlain { named: false });
        hub.attach(connection, ConnectionPurpose::LegacyStream { last_event_id: None })
            .await
            .expect("streamed");
        Stream { lines: BufReader::new(client), last_id: None }
    }

    /// The next event or message.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let bytes = self.lines.read_line(&mut line).expect("something within the time");
            assert!(bytes > 0, "the stream ended");
            if let Some(id) = line.strip_prefix("id: ") {
                self.last_id = Some(id.trim_end().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }

    /// The next event of this type; those before it are passed over.
    pub(crate) fn next_of(&mut self, kind: &str) -> Value {
        let kind = format!("aaep:agent.{kind}");
        loop {
            let event = self.next();
            if event["type"] == kind.as_str() {
                return event;
            }
        }
    }

    /// Waits for the end of the stream.
    pub(crate) fn ends(mut self) {
        let mut rest = Vec::new();
        self.lines.read_to_end(&mut rest).expect("the end within the time");
    }
}

/// A WebSocket whose HTTP part is done.
pub(crate) struct Peer {
    socket: WebSocket<TcpStream>,
    waiting: VecDeque<Value>,
}

impl Peer {
    pub(crate) async fn subscriber(hub: &Hub) -> Self {
        let (client, connection) = pair(&me(), Protocol::WebSocket);
        hub.attach(connection, ConnectionPurpose::SubscriberSocket).await.expect("connected");
        Peer::new(client)
    }

    pub(crate) async fn agent(hub: &Hub) -> Self {
        let (client, connection) = pair(&me(), Protocol::WebSocket);
        hub.attach(connection, ConnectionPurpose::AgentSocket).await.expect("connected");
        Peer::new(client)
    }

    pub(crate) async fn legacy(hub: &Hub) -> Self {
        let (client, connection) = pair(&me(), Protocol::WebSocket);
        hub.attach(connection, ConnectionPurpose::LegacySocket).await.expect("connected");
        Peer::new(client)
    }

    fn new(client: TcpStream) -> Self {
        let socket = WebSocket::from_raw_socket(client, Role::Client, None);
        Peer { socket, waiting: VecDeque::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.say(&message.to_string());
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.socket.send(Frame::text(text)).expect("sent");
    }

    /// Sends a text, unless the hub has ended the connection.
    pub(crate) fn try_say(&mut self, text: &str) {
        drop(self.socket.send(Frame::text(text)));
    }

    pub(crate) fn next(&mut self) -> Value {
        if let Some(waiting) = self.waiting.pop_front() {
            return waiting;
        }
        loop {
            match self.socket.read().expect("something within the time") {
                Frame::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Frame::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    pub(crate) fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next();
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// The code with which the hub ends the connection.
    pub(crate) fn close_code(&mut self) -> u16 {
        loop {
            if let Frame::Close(Some(frame)) = self.socket.read().expect("a close frame") {
                return frame.code.into();
            }
        }
    }
}
