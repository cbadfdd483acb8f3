//! Unix sockets of producers that behave and of those that do not.

use aaep_transport::framed::Framing;
use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd, Target, dial};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use crate::support::*;

struct Door {
    _folder: TempDir,
    listener: UnixListener,
    target: Target,
}

impl Door {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("producer.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let target = Target::parse(&format!("unix:{}", path.display())).expect("a target");
        Door { _folder: folder, listener, target }
    }

    async fn open(&self, framing: Framing) -> (Link, Peer<UnixStream>) {
        let options = DialOptions { framing, ..DialOptions::default() };
        let link = dial(&self.target, &options).await.expect("a link");
        let (stream, _) = patiently(self.listener.accept()).await.expect("a connection");
        (link, Peer::new(stream))
    }
}

const FRAMINGS: [Framing; 2] = [Framing::Length, Framing::Lines];

fn framed(framing: Framing, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    framing.message(text.as_bytes(), &mut bytes);
    bytes
}

#[tokio::test]
async fn messages_as_long_as_any_may_be_pass_both_ways() {
    let door = Door::new();
    for framing in FRAMINGS {
        let (mut link, mut peer) = door.open(framing).await;
        for text in ["{}".to_owned(), message_of(64 << 10), long_message()] {
            let bytes = framed(framing, &text);
            link.sender.send(text.clone()).await.expect("open");
            assert!(peer.exactly(bytes.len()).await == bytes);
            let ((), read) = tokio::join!(peer.write(bytes), heard(&mut link));
            assert!(read.is_ok_and(|it| it == text));
        }
    }
}

#[tokio::test]
async fn what_is_too_long_or_no_text_ends_the_link() {
    let door = Door::new();
    let endless = "x".repeat((1 << 20) + 1);
    for (framing, bytes) in [
        (Framing::Length, b"\x00\x10\x00\x01".as_slice()),
        (Framing::Length, b"\xff\xff\xff\xff"),
        (Framing::Length, b"HTTP/1.1 400 Bad Request\r\n"),
        (Framing::Length, b"\0\0\0\x02\xff\xfe"),
        (Framing::Lines, b"\xff\xfe\n"),
        (Framing::Lines, endless.as_bytes()),
    ] {
        let (mut link, mut peer) = door.open(framing).await;
        peer.write(framed(framing, "before")).await;
        let ((), first) = tokio::join!(peer.write(bytes), heard(&mut link));
        assert_eq!(first.as_deref(), Ok("before"));
        let ended = heard(&mut link).await;
        assert!(matches!(ended, Err(LinkEnd::Violation(_))), "{framing:?} {ended:?}");
        assert!(peer.rest().await.is_empty(), "it is hung up on");
    }
}

#[tokio::test]
async fn a_socket_that_is_cut_gives_no_half_message() {
    let door = Door::new();
    for (framing, half) in [
        (Framing::Length, b"".as_slice()),
        (Framing::Length, b"\0\0"),
        (Framing::Length, b"\0\0\0\x05{\"a\""),
        (Framing::Lines, b"{\"a\""),
    ] {
        let (mut link, mut peer) = door.open(framing).await;
        peer.write(framed(framing, "whole")).await;
        peer.write(half).await;
        drop(peer);
        assert_eq!(heard(&mut link).await.as_deref(), Ok("whole"));
        let ended = heard(&mut link).await;
        assert!(matches!(ended, Err(LinkEnd::Cut(_))), "{ended:?}");
        assert!(link.sender.send("late".to_owned()).await.is_err());
    }
}

#[tokio::test]
async fn the_last_frame_says_why_and_is_not_given_as_a_message() {
    let door = Door::new();
    for framing in FRAMINGS {
        let (mut link, mut peer) = door.open(framing).await;
        let last = r#"{"type":"agentvoice:closed","code":4004,"reason":"Too much."}"#;
        let bytes = [framed(framing, last), framed(framing, "after it")].concat();
        peer.write(bytes).await;
        let expected = LinkEnd::Closed { code: Some(4004), reason: "Too much.".to_owned() };
        assert_eq!(heard(&mut link).await, Err(expected));
    }
}

#[tokio::test]
async fn a_subscriber_that_leaves_is_heard_out() {
    let door = Door::new();
    for framing in FRAMINGS {
        let (link, mut peer) = door.open(framing).await;
        // Unread messages must not discard the ones that it sent.
        peer.write(framed(framing, "unread")).await;
        let long = message_of(500_000);
        for text in [&long, "last"] {
            link.sender.send(text.to_owned()).await.expect("open");
        }
        drop(link);
        let expected = [framed(framing, &long), framed(framing, "last")].concat();
        assert!(peer.rest().await == expected);
    }
}

#[tokio::test]
async fn a_subscriber_that_does_not_hear_can_still_speak() {
    let door = Door::new();
    let (link, mut peer) = door.open(Framing::Length).await;
    let flood = framed(Framing::Length, "{}").repeat(1000);
    peer.write(flood).await;
    link.sender.send("reply".to_owned()).await.expect("open");
    let reply = framed(Framing::Length, "reply");
    assert_eq!(peer.exactly(reply.len()).await, reply);
    drop(link);
}

#[tokio::test]
async fn where_no_socket_is_is_said_with_the_path() {
    let target = Target::parse("unix:/nowhere/producer.sock").expect("a target");
    let error = dial(&target, &DialOptions::default()).await.expect_err("nothing there");
    assert!(matches!(error, DialError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere/producer.sock"), "{error}");
}
