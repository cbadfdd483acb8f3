//! Server-sent events, and POST for the messages of a subscriber (B.1).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::json;

use crate::world::{PATIENCE, Wire, World, request};

pub(crate) struct Sse;

impl Wire for Sse {
    /// A stream ends without a code.
    const HAS_CODES: bool = false;

    fn target(world: &World) -> String {
        format!("http://{}", world.address)
    }

    async fn speak_wrongly(world: &World) {
        for body in ["not JSON", "[]", "{\"type\":\"subscription.request\"", "\u{0}"] {
            let (status, answer) = post(world, body);
            assert_eq!(status, 400, "{body:?}: {answer}");
        }
        // A stream cannot carry messages to the hub, so this waits within a bound.
        let mut stream = streaming(world).await;
        let nonsense = vec![b'x'; 1 << 20];
        let _ = stream.get_mut().write_all(&nonsense);
        let mut rest = Vec::new();
        // The rest of the messages may be lost with the connection.
        let _ = stream.read_to_end(&mut rest);
    }

    async fn close_half(world: &World) -> Box<dyn std::any::Any> {
        let mut stream = streaming(world).await;
        world.publish("session.started", json!({})).await;
        let token = world.ask().await;
        let mut line = String::new();
        while !line.contains("awaiting.confirmation") {
            line.clear();
            assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream ended");
        }
        stream.get_ref().shutdown(Shutdown::Write).expect("half a close");
        let outcome = world.outcome(&token).await;
        assert_eq!(outcome["outcome"], "reject", "{outcome}");
        Box::new(stream)
    }
}

fn post(world: &World, body: &str) -> (u16, String) {
    let mut stream = connect(world);
    let text = format!(
        "POST /aaep/v1/subscriptions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    (status, answer)
}

/// A stream whose head was answered.
async fn streaming(world: &World) -> BufReader<TcpStream> {
    let (status, accepted) = world.post("/aaep/v1/subscriptions", &request()).await;
    assert_eq!(status, 201, "{accepted}");
    let id = accepted["subscription_id"].as_str().expect("an id");
    let mut stream = connect(world);
    let text =
        format!("GET /aaep/v1/events?subscription_id={id} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("sent");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).expect("a status");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    stream
}

fn connect(world: &World) -> TcpStream {
    let stream = TcpStream::connect(world.address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream
}
