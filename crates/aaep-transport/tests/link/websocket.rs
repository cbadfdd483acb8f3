//! A WebSocket of a producer that behaves, and of producers that do not.

use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd};
use aaep_transport::websocket::{self as frame, Decoder, Incoming, Role};
use tokio::net::TcpStream;

use crate::support::*;

/// A WebSocket that is open, and its producer's end.
async fn open(producer: &Producer, options: DialOptions) -> (Link, Server) {
    let dialling = dialling(&producer.target("ws", "/"), options);
    let mut peer = producer.accept().await;
    let (head, _) = peer.request().await;
    assert!(head.starts_with("GET /aaep/v1/ws HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "sec-websocket-protocol"), Some("aaep.v1"));
    assert_eq!(header(&head, "sec-websocket-version"), Some("13"));
    let accept = frame::accept_key(header(&head, "sec-websocket-key").expect("a key"));
    peer.write(switching(&accept, "aaep.v1")).await;
    let link = dialled(dialling).await.expect("a link");
    (link, Server { peer, decoder: Decoder::new(Role::Server, 2 << 20), read: Vec::new() })
}

fn switching(accept: &str, subprotocol: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {accept}\r\nsec-websocket-protocol: {subprotocol}\r\n\r\n"
    )
}

struct Server {
    peer: Peer<TcpStream>,
    /// It takes masked frames only.
    decoder: Decoder,
    read: Vec<u8>,
}

impl Server {
    async fn next(&mut self) -> Incoming {
        loop {
            let mut bytes = self.read.as_slice();
            let incoming = self.decoder.next(&mut bytes).expect("valid frames");
            self.read = bytes.to_vec();
            if let Some(incoming) = incoming {
                return incoming;
            }
            self.read.extend(self.peer.exactly(1).await);
        }
    }

    async fn say(&mut self, text: &str) {
        let mut bytes = Vec::new();
        frame::text(text.as_bytes(), None, &mut bytes);
        self.peer.write(bytes).await;
    }

    /// Reads until the client closes. Nothing comes after its close.
    async fn until_closed(&mut self) -> (Vec<Incoming>, Option<u16>) {
        let mut before = Vec::new();
        loop {
            match self.next().await {
                Incoming::Close { code, .. } => return (before, code),
                other => before.push(other),
            }
        }
    }
}

#[tokio::test]
async fn messages_as_long_as_any_may_be_pass_both_ways() {
    let producer = Producer::new().await;
    let (mut link, mut server) = open(&producer, DialOptions::default()).await;
    for text in ["{}".to_owned(), message_of(64 << 10), long_message()] {
        link.sender.send(text.clone()).await.expect("open");
        assert!(matches!(server.next().await, Incoming::Text(it) if it == text));
        let writing = async { server.say(&text).await };
        let reading = async { heard(&mut link).await };
        let ((), read) = tokio::join!(writing, reading);
        assert!(read.is_ok_and(|it| it == text));
    }
}

#[tokio::test]
async fn no_two_frames_have_the_same_mask() {
    let producer = Producer::new().await;
    let (link, mut server) = open(&producer, DialOptions::default()).await;
    let mut masks = std::collections::BTreeSet::new();
    for _ in 0..32 {
        link.sender.send("{}".to_owned()).await.expect("open");
        let bytes = server.peer.exactly(8).await;
        assert_eq!(bytes[..2], [0x81, 0x82]);
        masks.insert(bytes[2..6].to_vec());
    }
    assert!(masks.len() > 30, "{masks:?}");
}

#[tokio::test]
async fn pings_are_answered_with_what_they_held() {
    let producer = Producer::new().await;
    let (_link, mut server) = open(&producer, DialOptions::default()).await;
    for content in [b"".as_slice(), b"are you there?", &[0xff; 125]] {
        let mut bytes = Vec::new();
        frame::ping(content, None, &mut bytes);
        server.peer.write(bytes).await;
        assert_eq!(server.next().await, Incoming::Pong(content.to_vec()));
    }
}

#[tokio::test]
async fn a_flood_of_pings_takes_no_memory_and_hinders_no_message() {
    let producer = Producer::new().await;
    let (mut link, mut server) = open(&producer, DialOptions::default()).await;
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        frame::ping(&[b'x'; 125], None, &mut bytes);
    }
    frame::text(b"after it", None, &mut bytes);
    server.peer.write(bytes).await;
    assert_eq!(heard(&mut link).await.as_deref(), Ok("after it"));
    link.sender.send("still here".to_owned()).await.expect("open");
    loop {
        match server.next().await {
            Incoming::Pong(_) => {}
            other => break assert_eq!(other, Incoming::Text("still here".to_owned())),
        }
    }
}

#[tokio::test]
async fn the_producers_close_code_says_why_the_link_ends() {
    let producer = Producer::new().await;
    let closed = |code, reason: &str| LinkEnd::Closed { code, reason: reason.to_owned() };
    let refused = |reason: &str| LinkEnd::Refused { reason: reason.to_owned() };
    for (code, expected, answer) in [
        (1000, closed(Some(1000), "Why."), Some(1000)),
        (1001, closed(Some(1001), "Why."), Some(1001)),
        (4000, closed(Some(4000), "Why."), Some(4000)),
        (4001, closed(Some(4001), "Why."), Some(4001)),
        (4002, refused("Why."), Some(4002)),
        (4003, refused("Why."), Some(4003)),
        (4004, closed(Some(4004), "Why."), Some(4004)),
        // A code that must not be sent makes an empty close.
        (1005, closed(None, ""), None),
    ] {
        let (mut link, mut server) = open(&producer, DialOptions::default()).await;
        let mut bytes = Vec::new();
        frame::close(code, "Why.", None, &mut bytes);
        server.peer.write(bytes).await;
        assert_eq!(end(&mut link).await, expected);
        assert_eq!(server.until_closed().await, (Vec::new(), answer), "it is answered");
        assert!(server.peer.rest().await.is_empty());
    }
}

#[tokio::test]
async fn a_subscriber_that_leaves_says_goodbye_after_all_that_it_said() {
    let producer = Producer::new().await;
    let (link, mut server) = open(&producer, DialOptions::default()).await;
    // Unread messages must not discard the ones that it sent.
    server.say("unread").await;
    let long = message_of(500_000);
    for text in [&long, "last"] {
        link.sender.send(text.to_owned()).await.expect("open");
    }
    drop(link);
    let (before, code) = server.until_closed().await;
    assert_eq!(before, [Incoming::Text(long), Incoming::Text("last".to_owned())]);
    assert_eq!(code, Some(1000));
}

#[tokio::test]
async fn frames_that_no_server_sends_end_the_link_with_their_code() {
    let producer = Producer::new().await;
    let too_long = [&[0x81, 127][..], &(2_u64 << 20).to_be_bytes()].concat();
    for (bytes, code) in [
        (b"\x81\x82\0\0\0\0hi".to_vec(), 1002),
        (b"\x82\x02hi".to_vec(), 1003),
        (b"\xc1\x02hi".to_vec(), 1002),
        (b"\x83\x00".to_vec(), 1002),
        (b"\x80\x02hi".to_vec(), 1002),
        (b"\x09\x00".to_vec(), 1002),
        (b"\x89\x7e\x00\x7e".to_vec(), 1002),
        (b"\x81\x02\xff\xfe".to_vec(), 1007),
        (b"\x88\x01x".to_vec(), 1002),
        (b"\x88\x02\x03\xed".to_vec(), 1002),
        (too_long, 1009),
    ] {
        let (mut link, mut server) = open(&producer, DialOptions::default()).await;
        server.say("before").await;
        server.peer.write(&bytes).await;
        assert_eq!(heard(&mut link).await.as_deref(), Ok("before"));
        let ended = heard(&mut link).await;
        assert!(matches!(ended, Err(LinkEnd::Violation(_))), "{bytes:?} {ended:?}");
        assert_eq!(server.until_closed().await.1, Some(code), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_socket_that_is_cut_gives_no_half_message() {
    let producer = Producer::new().await;
    for half in [b"".as_slice(), b"\x81", b"\x81\x05ha", b"\x01\x02ha"] {
        let (mut link, mut server) = open(&producer, DialOptions::default()).await;
        server.say("whole").await;
        server.peer.write(half).await;
        drop(server);
        assert_eq!(heard(&mut link).await.as_deref(), Ok("whole"));
        let ended = heard(&mut link).await;
        assert!(matches!(ended, Err(LinkEnd::Cut(_))), "{half:?} {ended:?}");
    }
}

#[tokio::test]
async fn a_silent_peer_is_pinged_and_then_given_up() {
    let producer = Producer::new().await;
    let silence_timeout = std::time::Duration::from_millis(1500);
    let options = DialOptions { silence_timeout, ..DialOptions::default() };
    let (mut link, mut server) = open(&producer, options).await;
    for _ in 0..3 {
        assert_eq!(server.next().await, Incoming::Ping(Vec::new()));
        let mut bytes = Vec::new();
        frame::pong(b"", None, &mut bytes);
        server.peer.write(bytes).await;
    }
    server.say("alive").await;
    assert_eq!(heard(&mut link).await.as_deref(), Ok("alive"));
    let ended = heard(&mut link).await;
    assert!(matches!(ended, Err(LinkEnd::Cut(_))), "{ended:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_ours_opens_nothing() {
    let producer = Producer::new().await;
    for (accept, subprotocol) in
        [("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "aaep.v1"), ("", "aaep.v1"), ("right", "chat")]
    {
        let dialling = dialling(&producer.target("ws", "/"), DialOptions::default());
        let mut peer = producer.accept().await;
        let (head, _) = peer.request().await;
        let right = frame::accept_key(header(&head, "sec-websocket-key").expect("a key"));
        let accept = if accept == "right" { &right } else { accept };
        peer.write(switching(accept, subprotocol)).await;
        let error = dialled(dialling).await.expect_err("not ours");
        assert!(matches!(error, DialError::Violation(_)), "{error:?}");
    }
}

#[tokio::test]
async fn what_comes_together_with_the_answer_is_not_lost() {
    let producer = Producer::new().await;
    let dialling = dialling(&producer.target("ws", "/"), DialOptions::default());
    let mut peer = producer.accept().await;
    let (head, _) = peer.request().await;
    let accept = frame::accept_key(header(&head, "sec-websocket-key").expect("a key"));
    let mut bytes = switching(&accept, "aaep.v1").into_bytes();
    frame::text(b"at once", None, &mut bytes);
    peer.write(bytes).await;
    let mut link = dialled(dialling).await.expect("a link");
    assert_eq!(heard(&mut link).await.as_deref(), Ok("at once"));
}

#[tokio::test]
async fn a_subscriber_that_does_not_hear_can_still_speak() {
    let producer = Producer::new().await;
    let (link, mut server) = open(&producer, DialOptions::default()).await;
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        frame::text(b"{}", None, &mut bytes);
    }
    server.peer.write(bytes).await;
    link.sender.send("reply".to_owned()).await.expect("open");
    assert_eq!(server.next().await, Incoming::Text("reply".to_owned()));
    drop(link);
}
