//! The simplest client of gRPC.

use std::sync::LazyLock;
use std::time::Duration;

use aaep_transport::grpc::proto::aaep_service_client::AaepServiceClient;
use aaep_transport::grpc::{AaepMessage, Channel, close_code};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};

use crate::support::*;

/// Clients live apart from hubs, so that they see how a hub ends.
pub(super) static CLIENTS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Waits, within a bound.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    CLIENTS.block_on(async { timeout(PATIENCE, future).await.expect("it comes in time") })
}

/// A connection to a hub.
pub(super) fn channel(hub: &TestHub) -> Channel {
    wait(async {
        let stream = TcpStream::connect(hub.address()).await.expect("connects");
        Channel::open(stream, PATIENCE).await.expect("HTTP/2")
    })
}

pub(super) fn origin(hub: &TestHub) -> http::Uri {
    format!("http://{}", hub.address()).parse().expect("an address")
}

pub(super) fn client(hub: &TestHub) -> AaepServiceClient<Channel> {
    AaepServiceClient::with_origin(channel(hub), origin(hub))
}

/// One call of a subscriber.
pub(super) struct Call {
    pub(super) say: Option<mpsc::Sender<AaepMessage>>,
    pub(super) heard: Streaming<AaepMessage>,
}

impl Call {
    /// A call on a connection of its own, by the principal that this header names, or by none.
    pub(super) fn begin(hub: &TestHub, token: &str) -> Result<Self, Box<Status>> {
        Call::with(&mut client(hub), token, None)
    }

    pub(super) fn with(
        client: &mut AaepServiceClient<Channel>,
        token: &str,
        time: Option<Duration>,
    ) -> Result<Self, Box<Status>> {
        let (say, said) = mpsc::channel(8);
        let mut request = Request::new(ReceiverStream::new(said));
        if let Some((_, value)) = token.trim().split_once(": ") {
            let value = value.parse().expect("a value");
            request.metadata_mut().insert("authorization", value);
        }
        if let Some(time) = time {
            request.set_timeout(time);
        }
        let heard = wait(client.subscribe(request))?.into_inner();
        Ok(Call { say: Some(say), heard })
    }

    pub(super) fn say_bytes(&self, json: &[u8]) {
        let message = AaepMessage { json: json.to_vec(), message_type: "a lie".to_owned() };
        let say = self.say.as_ref().expect("it has not said all");
        wait(say.send(message)).expect("the call goes on");
    }

    pub(super) fn say(&self, message: &Value) {
        self.say_bytes(message.to_string().as_bytes());
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Value {
        let message = wait(self.heard.message()).expect("no end").expect("a message");
        let json: Value = serde_json::from_slice(&message.json).expect("JSON");
        assert_eq!(json["type"], message.message_type, "the type is said once more");
        json
    }

    pub(super) fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next();
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Subscribes to everything. Returns the id of the subscription.
    pub(super) fn subscribe(&mut self) -> String {
        self.say(&subscription_request());
        let accepted = self.next();
        assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
        accepted["subscription_id"].as_str().expect("an id").to_owned()
    }

    /// How the call ended, with its close code. Skips pending messages.
    pub(super) fn end(&mut self) -> (Code, Option<u16>) {
        loop {
            match wait(self.heard.message()) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let trailers = wait(self.heard.trailers()).expect("an end").unwrap_or_default();
                    return (Code::Ok, close_code(&trailers));
                }
                Err(status) => return (status.code(), close_code(status.metadata())),
            }
        }
    }
}

/// The state of a question.
pub(super) fn outcome(hub: &TestHub, open: &Reply) -> (Value, Value) {
    let state = hub.get(open.header("location").expect("a place")).json();
    (state["outcome"].clone(), state["decided_by"].clone())
}

pub(super) fn asked(hub: &TestHub) -> Reply {
    hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"))
}

pub(super) fn close(subscription_id: &str) -> Value {
    json!({ "type": "subscription.close", "subscription_id": subscription_id })
}
