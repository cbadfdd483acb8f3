//! gRPC (B.5).

use aaep_transport::grpc::proto::aaep_service_client::AaepServiceClient;
use aaep_transport::grpc::{AaepMessage, Channel, close_code};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::world::{PATIENCE, Wire, World, request};

pub(crate) struct Grpc;

impl Wire for Grpc {
    fn target(world: &World) -> String {
        format!("grpc://{}", world.address)
    }

    async fn speak_wrongly(world: &World) {
        for (bytes, status, code) in [
            (b"\xff\xfe".to_vec(), Code::InvalidArgument, 1007),
            (vec![b' '; (1 << 20) + 1], Code::ResourceExhausted, 1009),
            (vec![b' '; 4 << 20], Code::ResourceExhausted, 1009),
        ] {
            let mut call = Call::subscribed(world).await;
            call.say(bytes).await;
            let ended = call.end().await;
            assert_eq!((ended.code(), close_code(ended.metadata())), (status, Some(code)));
        }
        for bytes in ["not JSON", "[]", "null"] {
            let mut call = Call::subscribed(world).await;
            call.say(bytes.into()).await;
            let error = call.hear_of("agentvoice:error").await;
            assert_eq!(error["error"], "not_valid", "{error}");
        }
    }

    async fn close_half(world: &World) -> Box<dyn std::any::Any> {
        let mut call = Call::subscribed(world).await;
        world.publish("session.started", json!({})).await;
        let token = world.ask().await;
        call.hear_of("aaep:agent.awaiting.confirmation").await;
        let Call { sender, heard } = call;
        drop(sender);
        let outcome = world.outcome(&token).await;
        assert_eq!(outcome["outcome"], "reject", "{outcome}");
        Box::new(heard)
    }
}

struct Call {
    sender: mpsc::Sender<AaepMessage>,
    heard: Streaming<AaepMessage>,
}

impl Call {
    async fn subscribed(world: &World) -> Self {
        let stream = TcpStream::connect(world.address).await.expect("connects");
        let channel = Channel::open(stream, PATIENCE).await.expect("HTTP/2");
        let origin = format!("http://{}", world.address).parse().expect("an address");
        let (sender, said) = mpsc::channel(1);
        let call = AaepServiceClient::with_origin(channel, origin)
            .subscribe(ReceiverStream::new(said))
            .await
            .expect("a call");
        let mut call = Call { sender, heard: call.into_inner() };
        call.say(request().to_string().into()).await;
        call.hear_of("subscription.accepted").await;
        call
    }

    async fn say(&mut self, json: Vec<u8>) {
        let message = AaepMessage { json, message_type: String::new() };
        self.sender.send(message).await.expect("the call goes on");
    }

    async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.heard.message().await.expect("no end").expect("a message");
            if message.message_type == kind {
                return serde_json::from_slice(&message.json).expect("JSON");
            }
        }
    }

    async fn end(&mut self) -> Status {
        loop {
            if let Err(status) = self.heard.message().await {
                return status;
            }
        }
    }
}
