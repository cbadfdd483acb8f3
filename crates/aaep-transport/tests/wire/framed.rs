//! Whole messages on a stream of bytes, by length and by line, on both kinds of sockets that carry them.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::framed::{Framing, Messages, NoMessage};
use aaep_transport::websocket::WebSocketViolation;
use aaep_transport::wire::{
    CLOSED, Command, ConnectionKey, MAX_BACKLOG_BYTES, MAX_MESSAGES_PER_SECOND, WireReport,
};
use aaep_transport::wire::{GoneReason, Socket, pair};
use tokio::io::AsyncWriteExt as _;

use crate::support::*;

const BOTH: [Framing; 2] = [Framing::Length, Framing::Lines];

fn framed(framing: Framing, json: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    framing.message(json.as_bytes(), &mut bytes);
    bytes
}

fn close(connection: ConnectionKey, code: u16) -> Command {
    Command::Close { connection, code, reason: "\"So\".".to_owned(), after_flush: true }
}

#[test]
fn messages_go_both_ways_whichever_framing() {
    for framing in BOTH {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect(Protocol::Framed(framing), 1);
        write(&mut client, &framed(framing, r#"{"a":1}"#));
        let text = r#"{"a":1}"#.to_owned();
        assert_eq!(rig.next_report(), WireReport::Message { connection, text });
        rig.deliver(&packet("evt_1", r#"{"b":2}"#), &[1]);
        expect_bytes(&mut client, &framed(framing, r#"{"b":2}"#));
        drop(client);
        assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
    }
}

#[test]
fn the_end_is_said_in_a_message_and_nothing_is_heard_after_it() {
    for framing in BOTH {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect(Protocol::Framed(framing), 1);
        rig.deliver(&packet("evt_1", "{}"), &[1]);
        rig.tell(vec![close(connection, 4003)]);
        expect_bytes(&mut client, &framed(framing, "{}"));
        let closed = serde_json::json!({ "type": CLOSED, "code": 4003, "reason": "\"So\"." });
        expect_bytes(&mut client, &framed(framing, &closed.to_string()));
        expect_end(&mut client);
        write(&mut client, &framed(framing, "{\"late\":1}"));
        drop(client);
        assert!(matches!(rig.next_report(), WireReport::Gone { why: GoneReason::ClosedByUs, .. }));
    }
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_why_and_disconnected() {
    let line = |text: &[u8]| (Framing::Lines, text.to_vec());
    let long = vec![b' '; (1 << 20) + 1];
    for ((framing, bytes), violation, code) in [
        ((Framing::Length, b"\x00\x10\x00\x01".to_vec()), WebSocketViolation::TooBig, 1009),
        ((Framing::Length, b"GET / HTTP/1.1\r\n\r\n".to_vec()), WebSocketViolation::TooBig, 1009),
        (
            (Framing::Length, b"\x00\x00\x00\x01\xff".to_vec()),
            WebSocketViolation::InvalidText,
            1007,
        ),
        (line(b"\xff\n"), WebSocketViolation::InvalidText, 1007),
        (line(&long), WebSocketViolation::TooBig, 1009),
        (
            line(&b"\n".repeat(usize::from(MAX_MESSAGES_PER_SECOND) + 1)),
            WebSocketViolation::TooManyMessages,
            1008,
        ),
    ] {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect(Protocol::Framed(framing), 1);
        // The loop may close the connection before the client has sent everything.
        let _ = client.write_all(&bytes);
        assert_eq!(rig.why_gone(connection), GoneReason::Violation(violation));
        let closed = serde_json::json!({
            "type": CLOSED, "code": code, "reason": violation.to_string(),
        });
        expect_bytes(&mut client, &framed(framing, &closed.to_string()));
    }
}

#[cfg(unix)]
#[test]
fn a_peer_that_breaks_a_rule_and_goes_on_sending_is_still_told_why() {
    for framing in BOTH {
        let rig = Rig::new();
        // Over TCP the end may overtake the last message; a local socket keeps it.
        let (mut client, server) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let connection = rig.add(Socket::Unix(server), Protocol::Framed(framing));
        let mut bytes = b"\xff\xff\xff\xff".to_vec();
        bytes.extend(vec![b'x'; 2 << 20]);
        let mut writer = client.try_clone().expect("a copy");
        let writing = std::thread::spawn(move || {
            // The loop closes the connection before the client has sent everything.
            let _ = writer.write_all(&bytes);
        });
        assert_eq!(rig.why_gone(connection), GoneReason::Violation(WebSocketViolation::TooBig));
        let mut said = vec![0; 256];
        let count = std::io::Read::read(&mut client, &mut said).expect("the last word");
        assert!(String::from_utf8_lossy(&said[..count]).contains(CLOSED), "{said:?}");
        drop(client);
        writing.join().expect("it ends");
    }
}

#[test]
fn half_a_close_is_a_whole_one_after_what_was_said() {
    for framing in BOTH {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect(Protocol::Framed(framing), 1);
        write(&mut client, &framed(framing, "{}"));
        client.shutdown(Shutdown::Write).expect("half a close");
        assert!(matches!(rig.next_report(), WireReport::Message { .. }));
        assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
        expect_end(&mut client);
    }
}

#[test]
fn one_message_may_be_longer_than_all_that_may_wait_and_two_may_not() {
    for framing in BOTH {
        let rig = Rig::new();
        let (_, mut client) = rig.connect(Protocol::Framed(framing), 1);
        let long = large(1, 8 * MAX_BACKLOG_BYTES);
        rig.deliver(&long, &[1]);
        assert!(matches!(rig.next_report(), WireReport::Blocked { .. }), "it waits, and stays");
        expect_bytes(&mut client, long.bytes(Protocol::Framed(framing)));
        assert!(matches!(rig.next_report(), WireReport::Unblocked { .. }));
        let (connection, client) = rig.connect(Protocol::Framed(framing), 2);
        (0..2).for_each(|_| rig.deliver(&long, &[2]));
        assert_eq!(rig.why_gone(connection), GoneReason::TooSlow);
        drop(client);
    }
}

#[test]
fn an_idle_local_connection_is_left_alone() {
    let heartbeat = Duration::from_millis(40);
    let settings = aaep_transport::wire::WireSettings { heartbeat, ..Default::default() };
    let rig = Rig::with(settings, aaep_transport::wire::Flow::Continue);
    let (_, mut client) = rig.connect(Protocol::Framed(Framing::Length), 1);
    client.set_read_timeout(Some(Duration::from_millis(400))).expect("a timeout");
    let nothing = std::io::Read::read(&mut client, &mut [0; 1]).expect_err("nothing comes");
    assert!(matches!(
        nothing.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
    ));
    assert_eq!(rig.settle(), []);
}

#[tokio::test]
async fn a_pair_carries_messages_between_a_loop_and_a_task() {
    let rig = Rig::new();
    let (socket, end) = pair().expect("a pair");
    #[cfg(unix)]
    assert!(matches!(socket, Socket::Unix(_)));
    let connection = rig.add(socket, Protocol::Framed(Framing::Length));
    let (reading, mut writing) = end.into_split();
    let mut messages = Messages::new(reading, Framing::Length, 1 << 20);
    writing.write_all(&framed(Framing::Length, "{\"up\":1}")).await.expect("open");
    let text = "{\"up\":1}".to_owned();
    assert_eq!(rig.next_report(), WireReport::Message { connection, text });
    rig.tell(vec![Command::Send { connection, packet: packet("", "{\"down\":1}") }]);
    assert_eq!(messages.next().await.expect("a message"), "{\"down\":1}");
    rig.tell(vec![close(connection, 4005)]);
    assert!(messages.next().await.expect("the last word").contains(CLOSED));
    assert!(matches!(messages.next().await, Err(NoMessage::Ended)));
}
