//! The local socket (B.4).

use aaep_transport::framed::Framing;
use aaep_transport::wire::CLOSED;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::world::{Wire, World, request};

pub(crate) struct Unix;

impl Wire for Unix {
    const IS_VOUCHED_FOR: bool = true;

    fn target(world: &World) -> String {
        format!("unix:{}", world.socket().display())
    }

    async fn speak_wrongly(world: &World) {
        for (bytes, code) in [(b"\0\0\0\x02\xff\xfe".as_slice(), 1007), (b"\xff\xff\xff\xff", 1009)]
        {
            let mut stream = subscribed(world).await;
            stream.write_all(bytes).await.expect("sent");
            let closed = hear_of(&mut stream, CLOSED).await;
            assert_eq!(closed["code"], code, "{closed}");
        }
        for bytes in [b"\0\0\0\x08not JSON".as_slice(), b"\0\0\0\x02[]", b"\0\0\0\x04null"] {
            let mut stream = subscribed(world).await;
            stream.write_all(bytes).await.expect("sent");
            let error = hear_of(&mut stream, "agentvoice:error").await;
            assert_eq!(error["error"], "not_valid", "{error}");
        }
    }

    async fn close_half(world: &World) -> Box<dyn std::any::Any> {
        let mut stream = subscribed(world).await;
        world.publish("session.started", json!({})).await;
        let token = world.ask().await;
        hear_of(&mut stream, "aaep:agent.awaiting.confirmation").await;
        stream.shutdown().await.expect("half a close");
        let outcome = world.outcome(&token).await;
        assert_eq!(outcome["outcome"], "reject", "{outcome}");
        Box::new(stream)
    }
}

async fn subscribed(world: &World) -> UnixStream {
    let mut stream = UnixStream::connect(world.socket()).await.expect("connects");
    let mut bytes = Vec::new();
    Framing::Length.message(request().to_string().as_bytes(), &mut bytes);
    stream.write_all(&bytes).await.expect("sent");
    hear_of(&mut stream, "subscription.accepted").await;
    stream
}

async fn hear_of(stream: &mut UnixStream, kind: &str) -> Value {
    loop {
        let length = stream.read_u32().await.expect("a length");
        let mut message = vec![0; length as usize];
        stream.read_exact(&mut message).await.expect("a message");
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        if message["type"] == kind {
            return message;
        }
    }
}
