//! Server-sent events from producers that behave and from those that do not.

use std::time::Duration;

use aaep_transport::chunk;
use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd, LinkResume};
use aaep_transport::sse;
use tokio::net::TcpStream;

use crate::support::*;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n";
const REQUEST: &str = r#"{"type":"subscription.request"}"#;
const ACCEPTED: &str = r#"{"type":"subscription.accepted","subscription_id":"sub_1"}"#;

fn chunked(json: &str) -> Vec<u8> {
    let (mut event, mut bytes) = (Vec::new(), Vec::new());
    sse::event("evt_1", Some(sse::EVENT_NAME), json.as_bytes(), &mut event);
    chunk::chunk(&event, &mut bytes);
    bytes
}

/// A stream without a handshake, whose head has been answered.
async fn listening(producer: &Producer, options: DialOptions) -> (Link, Peer<TcpStream>) {
    let options = DialOptions { without_handshake: true, ..options };
    let dialling = dialling(&producer.target("http", "/any/path?x=y"), options);
    let mut peer = producer.accept().await;
    let (head, _) = peer.request().await;
    assert!(head.starts_with("GET /any/path?x=y HTTP/1.1\r\n"), "{head}");
    peer.write(format!("{STREAM}transfer-encoding: chunked\r\n\r\n")).await;
    (dialled(dialling).await.expect("a link"), peer)
}

/// A link that requested a subscription, with the request to answer.
async fn asking(producer: &Producer, path: &str, options: DialOptions) -> (Link, Peer<TcpStream>) {
    let dialling = dialling(&producer.target("http", path), options);
    let mut peer = producer.accept().await;
    let link = dialled(dialling).await.expect("a link");
    link.sender.send(REQUEST.to_owned()).await.expect("open");
    let (head, body) = peer.request().await;
    assert!(head.contains("/subscriptions HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "content-type"), Some("application/json"));
    assert_eq!(body, REQUEST);
    (link, peer)
}

#[tokio::test]
async fn a_subscription_is_asked_for_and_its_stream_opened_where_the_producer_says() {
    let producer = Producer::new().await;
    for (path, location, expected) in [
        ("/", "", "/aaep/v1/events?subscription_id=sub_1"),
        ("/my/events", "", "/my/events?subscription_id=sub_1"),
        ("/my", "location: /stream/of/sub_1\r\n", "/stream/of/sub_1"),
        ("/", "location: http://example.org/steal\r\n", "/aaep/v1/events?subscription_id=sub_1"),
        ("/", "location: //example.org/steal\r\n", "/aaep/v1/events?subscription_id=sub_1"),
    ] {
        let (mut link, mut peer) = asking(&producer, path, DialOptions::default()).await;
        peer.answer("201 Created", location, ACCEPTED).await;
        let mut stream = producer.accept().await;
        let (head, _) = stream.request().await;
        assert!(head.starts_with(&format!("GET {expected} HTTP/1.1\r\n")), "{head}");
        stream.write(format!("{STREAM}\r\nevent: aaep.event\nid: 1\ndata: {{}}\n\n")).await;
        assert_eq!(heard(&mut link).await.as_deref(), Ok(ACCEPTED));
        assert_eq!(heard(&mut link).await.as_deref(), Ok("{}"));
        link.sender.send(r#"{"type":"confirmation.reply"}"#.to_owned()).await.expect("open");
        let mut reply = producer.accept().await;
        let (head, _) = reply.request().await;
        assert!(head.contains("/replies HTTP/1.1\r\n"), "{head}");
        reply.answer("204 No Content", "", "").await;
        drop(stream);
        assert_eq!(end(&mut link).await, LinkEnd::Closed { code: None, reason: String::new() });
    }
}

#[tokio::test]
async fn a_stream_that_ends_because_of_what_was_said_ends_after_the_answer() {
    const REJECTED: &str = r#"{"type":"subscription.rejected","reason_code":"rate_limit"}"#;
    let producer = Producer::new().await;
    let (mut link, mut peer) = asking(&producer, "/", DialOptions::default()).await;
    peer.answer("201 Created", "", ACCEPTED).await;
    let mut stream = producer.accept().await;
    stream.request().await;
    stream.write(format!("{STREAM}\r\ndata: {{}}\n\n")).await;
    assert_eq!(heard(&mut link).await.as_deref(), Ok(ACCEPTED));
    assert_eq!(heard(&mut link).await.as_deref(), Ok("{}"));
    let wish = r#"{"type":"subscription.renegotiate"}"#;
    link.sender.send(wish.to_owned()).await.expect("open");
    let mut answer = producer.accept().await;
    answer.request().await;
    drop(stream);
    // From outside, nobody can see whether the link has seen the end. If this pause is too short, the test checks
    // less, but does not fail.
    tokio::time::sleep(Duration::from_millis(100)).await;
    answer.answer("409 Conflict", "", REJECTED).await;
    assert_eq!(heard(&mut link).await.as_deref(), Ok(REJECTED));
    assert!(matches!(end(&mut link).await, LinkEnd::Closed { .. }));
}

#[tokio::test]
async fn every_request_for_a_stream_says_what_it_wants_and_who_asks() {
    let producer = Producer::new().await;
    let resume = LinkResume { subscription_id: Some("sub_1".to_owned()), last_event_id: None };
    let options = DialOptions { bearer: Some("secret".to_owned()), ..DialOptions::default() };
    let (_link, mut peer) = asking(&producer, "/", options.clone()).await;
    peer.answer("201 Created", "", ACCEPTED).await;
    let opened = producer.accept().await;
    let resumed = DialOptions { resume: Some(resume), ..options.clone() };
    let _resuming = dialling(&producer.target("http", "/"), resumed);
    let again = producer.accept().await;
    let level_1 = DialOptions { without_handshake: true, ..options };
    let _listening = dialling(&producer.target("http", "/events"), level_1);
    for mut stream in [opened, again, producer.accept().await] {
        let (head, _) = stream.request().await;
        assert_eq!(header(&head, "accept"), Some("text/event-stream"), "{head}");
        assert_eq!(header(&head, "cache-control"), Some("no-cache"), "{head}");
        assert_eq!(header(&head, "authorization"), Some("Bearer secret"), "{head}");
    }
}

#[tokio::test]
async fn a_stream_is_resumed_without_asking_again() {
    let producer = Producer::new().await;
    let resume = LinkResume {
        subscription_id: Some("sub_1".to_owned()),
        last_event_id: Some("evt_7".to_owned()),
    };
    for status in ["200", "404", "410"] {
        let options = DialOptions { resume: Some(resume.clone()), ..DialOptions::default() };
        let dialling = dialling(&producer.target("http", "/"), options);
        let mut peer = producer.accept().await;
        let (head, _) = peer.request().await;
        assert!(head.starts_with("GET /aaep/v1/events?subscription_id=sub_1 "), "{head}");
        assert_eq!(header(&head, "last-event-id"), Some("evt_7"));
        let headers = "content-type: text/event-stream\r\n";
        peer.answer(&format!("{status} X"), headers, "data: 1\n\n").await;
        match dialled(dialling).await {
            Ok(mut link) => assert_eq!(heard(&mut link).await.as_deref(), Ok("1"), "{status}"),
            Err(error) => {
                assert_eq!((error, status == "200"), (DialError::NoSuchSubscription, false));
            }
        }
    }
}

#[tokio::test]
async fn messages_as_long_as_any_may_be_come_whole_and_longer_ones_end_the_link() {
    let producer = Producer::new().await;
    let (mut link, mut peer) = listening(&producer, DialOptions::default()).await;
    for long in [message_of(64 << 10), long_message()] {
        peer.write(chunked(&long)).await;
        assert!(heard(&mut link).await.is_ok_and(|text| text == long));
    }
    let writing = tokio::spawn(async move {
        // The link may hang up before everything is written.
        let bytes = chunked(&message_of(2 << 20));
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &bytes).await;
    });
    let ended = end(&mut link).await;
    assert!(matches!(ended, LinkEnd::Violation(_)), "{ended:?}");
    patiently(writing).await.expect("no panic");
}

#[tokio::test]
async fn lines_without_end_take_no_memory_without_end() {
    let producer = Producer::new().await;
    for piece in ["x", ":", "data: x\n", "event: y\n", "id: z\n"] {
        let options = DialOptions { max_message_bytes: 10_000, ..impatient() };
        let (mut link, mut peer) = listening(&producer, options).await;
        let flood = tokio::spawn(async move {
            let mut bytes = Vec::new();
            chunk::chunk(piece.repeat(1000).as_bytes(), &mut bytes);
            for _ in 0..10_000 {
                if tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &bytes).await.is_err() {
                    return true;
                }
            }
            false
        });
        if piece.starts_with("event") || piece.starts_with("id") {
            // Such a line takes the place of the one before, so nothing grows.
            drop(link);
        } else {
            let ended = end(&mut link).await;
            assert!(matches!(ended, LinkEnd::Violation(_)), "{piece:?} {ended:?}");
        }
        assert!(patiently(flood).await.expect("no panic"), "{piece:?} is hung up on");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_gives_no_half_message() {
    let producer = Producer::new().await;
    let (mut link, mut peer) = listening(&producer, DialOptions::default()).await;
    peer.write(chunked("whole")).await;
    peer.write("20\r\ndata: {\"type\":\"half").await;
    drop(peer);
    assert_eq!(heard(&mut link).await.as_deref(), Ok("whole"));
    let ended = heard(&mut link).await;
    assert!(matches!(ended, Err(LinkEnd::Cut(_))), "{ended:?}");
}

#[tokio::test]
async fn a_chunk_that_is_none_ends_the_link() {
    let producer = Producer::new().await;
    for garbage in ["zz\r\n", "-1\r\nx\r\n", "ffffffffffffffffff\r\n", "2\r\ndata: x"] {
        let (mut link, mut peer) = listening(&producer, DialOptions::default()).await;
        peer.write(garbage).await;
        let ended = end(&mut link).await;
        assert!(matches!(ended, LinkEnd::Cut(_)), "{garbage:?} {ended:?}");
    }
}

#[tokio::test]
async fn silence_is_a_cut_and_signs_of_life_are_not_silence() {
    let producer = Producer::new().await;
    let silence_timeout = Duration::from_millis(1500);
    let options = DialOptions { silence_timeout, ..DialOptions::default() };
    let (mut link, mut peer) = listening(&producer, options).await;
    for _ in 0..6 {
        // The pauses are what is tested: together longer than the timeout, each far shorter.
        tokio::time::sleep(silence_timeout / 4).await;
        let mut bytes = Vec::new();
        chunk::chunk(sse::HEARTBEAT, &mut bytes);
        peer.write(bytes).await;
    }
    peer.write(chunked("alive")).await;
    assert_eq!(heard(&mut link).await.as_deref(), Ok("alive"));
    let ended = heard(&mut link).await;
    assert!(matches!(ended, Err(LinkEnd::Cut(_))), "{ended:?}");
}

#[tokio::test]
async fn an_answer_with_another_content_type_is_not_a_stream() {
    let producer = Producer::new().await;
    for headers in ["", "content-type: text/html\r\n", "content-type: text/event-streams\r\n"] {
        let options = DialOptions { without_handshake: true, ..DialOptions::default() };
        let dialling = dialling(&producer.target("http", "/"), options);
        let mut peer = producer.accept().await;
        peer.request().await;
        peer.answer("200 OK", headers, "data: forged\n\n").await;
        let error = dialled(dialling).await.expect_err("no stream");
        assert!(matches!(error, DialError::Violation(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_message_whose_answer_never_comes_is_not_sent_again() {
    let producer = Producer::new().await;
    let (mut link, peer) = asking(&producer, "/", impatient()).await;
    let ended = end(&mut link).await;
    assert!(matches!(ended, LinkEnd::Cut(_)), "{ended:?}");
    drop(peer);
    let (mut link, peer) = asking(&producer, "/", DialOptions::default()).await;
    drop(peer);
    let ended = end(&mut link).await;
    assert!(matches!(ended, LinkEnd::Cut(_)), "{ended:?}");
    assert!(producer.is_alone().await, "nothing is said twice");
}

#[tokio::test]
async fn an_endless_answer_and_one_that_is_not_text_end_the_link() {
    let producer = Producer::new().await;
    let long = format!("\"{}\"", "x".repeat(3 << 20));
    for body in [long.as_bytes(), b"\xff\xfe"] {
        let (mut link, mut peer) = asking(&producer, "/", DialOptions::default()).await;
        let head = format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n", body.len());
        peer.write(head).await;
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, body).await;
        let ended = end(&mut link).await;
        assert!(matches!(ended, LinkEnd::Violation(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn an_acceptance_that_grants_nothing_opens_nothing() {
    let producer = Producer::new().await;
    for (status, body) in [
        ("200 OK", r#"{"type":"subscription.accepted"}"#),
        ("500 Oh", ACCEPTED),
        ("200 OK", r#"{"type":"something","subscription_id":"sub_1"}"#),
    ] {
        let (mut link, mut peer) = asking(&producer, "/", DialOptions::default()).await;
        peer.answer(status, "", body).await;
        assert_eq!(heard(&mut link).await.as_deref(), Ok(body));
        assert!(producer.is_alone().await, "{status} {body}");
    }
}

#[tokio::test]
async fn a_subscriber_that_does_not_hear_can_still_speak() {
    let producer = Producer::new().await;
    let (link, mut peer) = asking(&producer, "/", DialOptions::default()).await;
    peer.answer("201 Created", "", ACCEPTED).await;
    let mut stream = producer.accept().await;
    stream.request().await;
    stream.write(format!("{STREAM}\r\n")).await;
    let flood = tokio::spawn(async move {
        let piece = "data: {}\n\n".repeat(1000);
        while tokio::io::AsyncWriteExt::write_all(&mut stream.stream, piece.as_bytes())
            .await
            .is_ok()
        {}
    });
    for _ in 0..3 {
        link.sender.send(r#"{"type":"confirmation.reply"}"#.to_owned()).await.expect("open");
        let mut reply = producer.accept().await;
        reply.request().await;
        reply.answer("204 No Content", "", "").await;
    }
    drop(link);
    patiently(flood).await.expect("it is hung up on");
}
