//! A WebSocket (B.2): correct frames come from tungstenite, and wrong ones are written by hand.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket as Socket};

use crate::world::{PATIENCE, Wire, World, request};

pub(crate) struct WebSocket;

impl Wire for WebSocket {
    fn target(world: &World) -> String {
        format!("ws://{}/aaep/v1/ws", world.address)
    }

    async fn speak_wrongly(world: &World) {
        for (bytes, code) in [
            (b"\x81\x02{}".as_slice(), 1002_u16),
            (b"\xf1\x80\0\0\0\0", 1002),
            (b"\x82\x81\0\0\0\0x", 1003),
            (b"\x81\x81\0\0\0\0\xff", 1007),
            (b"\x81\xff\0\0\0\0\x40\0\0\0", 1009),
        ] {
            let mut socket = subscribed(world);
            socket.get_mut().write_all(bytes).expect("sent");
            let mut answer = Vec::new();
            socket.get_mut().read_to_end(&mut answer).expect("an end");
            let close = answer.iter().position(|byte| *byte == 0x88).expect("a close");
            assert_eq!(answer[close + 2..close + 4], code.to_be_bytes(), "{answer:?}");
        }
        let mut socket = subscribed(world);
        socket.send(Message::text("not JSON")).expect("sent");
        assert_eq!(hear_of(&mut socket, "agentvoice:error")["error"], "not_valid");
    }

    async fn close_half(world: &World) -> Box<dyn std::any::Any> {
        let mut socket = subscribed(world);
        world.publish("session.started", json!({})).await;
        let token = world.ask().await;
        hear_of(&mut socket, "aaep:agent.awaiting.confirmation");
        socket.get_ref().shutdown(Shutdown::Write).expect("half a close");
        let outcome = world.outcome(&token).await;
        assert_eq!(outcome["outcome"], "reject", "{outcome}");
        Box::new(socket)
    }
}

fn subscribed(world: &World) -> Socket<TcpStream> {
    let stream = TcpStream::connect(world.address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let mut asked = WebSocket::target(world).into_client_request().expect("a request");
    asked.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("aaep.v1"));
    let (mut socket, _) = tungstenite::client(asked, stream).expect("a WebSocket");
    socket.send(Message::text(request().to_string())).expect("sent");
    hear_of(&mut socket, "subscription.accepted");
    socket
}

fn hear_of(socket: &mut Socket<TcpStream>, kind: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().expect("a message") {
            let message: Value = serde_json::from_str(&text).expect("JSON");
            if message["type"] == kind {
                return message;
            }
        }
    }
}
