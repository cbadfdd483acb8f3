//! Producers that know no handshake: they speak at `/events` and take answers at `/messages` (rulings 3 and 27).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use aaep_subscriber::{Ask, AskState, ConnectError, News, SayError, Subscriber, Wishes, connect};
use serde_json::{Value, json};

use crate::producer::{confirmation, progress};

/// How long anything may take before a test fails. Nothing is asserted about less.
const PATIENCE: Duration = Duration::from_secs(20);

/// Such a producer: what it heard, and how it takes answers.
struct Producer {
    address: String,
    heard: Receiver<(String, String)>,
}

impl Producer {
    /// One that says these events to whoever listens, and answers what is posted with this status and body.
    fn new(events: Vec<Value>, status: &'static str, body: &'static str) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", socket.local_addr().expect("an address"));
        let (heard_sender, heard) = channel();
        std::thread::spawn(move || {
            for stream in socket.incoming().map_while(Result::ok) {
                let (events, heard) = (events.clone(), heard_sender.clone());
                std::thread::spawn(move || serve(stream, &events, status, body, &heard));
            }
        });
        Producer { address, heard }
    }

    /// What it hears next at this address: the head, and the body.
    fn hears(&self, line: &str) -> (String, String) {
        loop {
            let heard = self.heard.recv_timeout(PATIENCE).expect("something is said");
            if heard.0.starts_with(line) {
                return heard;
            }
        }
    }
}

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    events: &[Value],
    status: &str,
    body: &str,
    told: &Sender<(String, String)>,
) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut said = vec![0; length];
        reader.read_exact(&mut said).ok()?;
        told.send((head.clone(), String::from_utf8(said).ok()?)).ok()?;
        let answer = if head.starts_with("GET /events ") {
            let lines: Vec<String> = events.iter().map(|it| format!("data: {it}\n\n")).collect();
            let data = lines.concat();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: connected\n\n{data}"
            )
        } else if head.starts_with("POST /messages ") {
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        } else {
            "HTTP/1.1 404 Not Found\r\ncontent-length: 14\r\n\r\n404: Not Found".to_owned()
        };
        writer.write_all(answer.as_bytes()).ok()?;
    }
}

async fn next(subscriber: &mut Subscriber) -> News {
    tokio::time::timeout(PATIENCE, subscriber.next()).await.expect("in time").expect("news")
}

async fn next_ask(subscriber: &mut Subscriber) -> Ask {
    loop {
        if let News::Ask(ask) = next(subscriber).await {
            return ask;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_with_nothing_but_events_and_messages_is_heard_and_answered() {
    let events = vec![progress(1), confirmation(2, 600)];
    let producer = Producer::new(events, "200 OK", r#"{"status":"received"}"#);
    let mut wishes = Wishes::new("reader").bearer("the-persons-key");
    wishes.is_bearer_for_hubs = true;
    let mut subscriber = connect(&producer.address, wishes).await.expect("a stream");
    assert!(matches!(next(&mut subscriber).await, News::WithoutHandshake), "it is said plainly");
    let ask = next_ask(&mut subscriber).await;
    assert!(matches!(ask.extend(30).await, Err(SayError::OnlyAnswers)), "its time is its own");
    ask.presented().await.expect("nobody there wants to know");
    ask.accept().await.expect("said");
    let (head, body) = producer.hears("POST");
    assert!(head.starts_with("POST /aaep/v1/subscriptions "), "asked first: {head}");
    assert!(!head.to_ascii_lowercase().contains("authorization"), "it is no hub: {head}");
    drop(body);
    let (_, body) = producer.hears("POST /messages ");
    let reply: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(reply["type"], "confirmation.reply");
    assert_eq!(reply["decision"], "accept");
    assert_eq!(reply["reply_token"], json!(ask.reply_token()));
    assert!(matches!(ask.accept().await, Err(SayError::CannotReply(_))), "an answer goes once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_such_a_producer_does_not_take_is_not_told_as_taken() {
    let huge = Box::leak("x".repeat(100_000).into_boxed_str());
    for body in ["{\"type\":\"subscription.close\"}", "<html>\u{1b}[2J", &*huge] {
        let producer = Producer::new(vec![confirmation(1, 600)], "500 Oh no", body);
        let mut subscriber =
            connect(&producer.address, Wishes::new("reader")).await.expect("a stream");
        let ask = next_ask(&mut subscriber).await;
        ask.accept().await.expect("said");
        let ended = loop {
            if let News::AskEnded(ask) = next(&mut subscriber).await {
                break ask;
            }
        };
        assert_eq!(ended.state(), AskState::Unknown);
        let News::Refused { error, message } = next(&mut subscriber).await else {
            panic!("refused")
        };
        assert_eq!(error, "status");
        assert!(message.contains("status 500") && !message.contains('\u{1b}'), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_such_a_producer_refuses_is_told_not_to_count() {
    let producer = Producer::new(vec![confirmation(1, 600)], "409 Conflict", "{}");
    let mut subscriber = connect(&producer.address, Wishes::new("reader")).await.expect("a stream");
    let ask = next_ask(&mut subscriber).await;
    ask.accept().await.expect("said");
    let (told, message) = loop {
        if let News::AnswerNotCounted { ask, message, .. } = next(&mut subscriber).await {
            break (ask, message);
        }
    };
    assert_eq!((told.reply_token(), ask.state()), (ask.reply_token(), AskState::Open));
    assert!(message.contains("status 409"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_signature_is_wanted_a_producer_without_a_handshake_will_not_do() {
    let producer = Producer::new(vec![progress(1)], "200 OK", "");
    let refused = connect(&producer.address, Wishes::new("reader").signed_only()).await;
    assert!(refused.is_err(), "{refused:?}");
    let path = format!("{}/aaep/v1", producer.address);
    let refused = connect(&path, Wishes::new("reader")).await;
    assert!(
        matches!(refused, Err(ConnectError::NoHandshake)),
        "an address with a path is meant as it stands"
    );
}
