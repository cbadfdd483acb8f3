//! Correct and wrong bytes from clients.

use std::io::{Read, Write};
use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::websocket::WebSocketViolation;
use aaep_transport::wire::{
    Command, ConnectionKey, Flow, GoneReason, MAX_DISCARDED_BYTES, Socket, WireReport,
    WireSettings, WireSubscriber,
};
use socket2::SockRef;

use crate::support::*;

fn message(connection: ConnectionKey, text: &str) -> WireReport {
    WireReport::Message { connection, text: text.to_owned() }
}

#[test]
fn two_frames_cut_at_every_byte_are_two_messages() {
    let rig = Rig::new();
    let bytes = [masked(0x01, b"gr\xc3"), masked(0x89, b"?"), masked(0x80, b"\xbcn")].concat();
    for cut in 0..=bytes.len() {
        let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
        client.set_nodelay(true).expect("an option");
        write(&mut client, &bytes[..cut]);
        let mut told = rig.settle();
        write(&mut client, &bytes[cut..]);
        while told.is_empty() {
            told.push(rig.next_report());
        }
        assert_eq!(told, [message(connection, "grün")]);
        expect_bytes(&mut client, b"\x8a\x01?");
        drop(client);
        assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
    }
}

#[test]
fn what_hyper_had_read_ahead_is_read_first() {
    let rig = Rig::new();
    let (mut client, server) = tcp_pair();
    let connection = rig.handle().new_key();
    rig.tell(vec![Command::Add {
        connection,
        socket: Socket::Tcp(server),
        protocol: Protocol::WebSocket,
        read_ahead: [masked(0x81, b"one"), masked(0x81, b"two")[..4].to_vec()].concat(),
    }]);
    assert_eq!(rig.next_report(), message(connection, "one"));
    write(&mut client, &masked(0x81, b"two")[4..]);
    assert_eq!(rig.next_report(), message(connection, "two"));
}

#[test]
fn broken_frames_are_answered_with_their_code_and_told_once() {
    let gibibyte = [&[0x81, 0xff][..], &(1_u64 << 30).to_be_bytes()].concat();
    for (bytes, violation, code) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), WebSocketViolation::ReservedBits, 1002),
        (vec![0x81, 0x01, b'x'], WebSocketViolation::Unmasked, 1002),
        (masked(0x81, b"\xff\xfe"), WebSocketViolation::InvalidText, 1007),
        (masked(0x82, b"x"), WebSocketViolation::Binary, 1003),
        (masked(0x88, &1005_u16.to_be_bytes()), WebSocketViolation::InvalidCloseCode, 1002),
        (gibibyte, WebSocketViolation::TooBig, 1009),
    ] {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
        write(&mut client, &bytes);
        let gone = WireReport::Gone {
            connection,
            subscriber: Some(WireSubscriber(1)),
            why: GoneReason::Violation(violation),
        };
        assert_eq!(rig.next_report(), gone);
        expect_close(&mut client, code);
        expect_end(&mut client);
        rig.deliver(&packet("evt", "{}"), &[1]);
        drop(client);
        assert_eq!(rig.settle(), []);
    }
}

#[test]
fn a_flood_of_pings_or_messages_is_ended() {
    for frame in [masked(0x89, b"ping"), masked(0x81, b"text"), masked(0x8a, b"pong")] {
        let settings = WireSettings { max_messages_per_second: 10, ..WireSettings::default() };
        let rig = Rig::with(settings, Flow::Continue);
        let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
        write(&mut client, &frame.repeat(1000));
        assert_eq!(
            rig.why_gone(connection),
            GoneReason::Violation(WebSocketViolation::TooManyMessages)
        );
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an end");
        assert!(answer.len() < 500, "{} bytes of answers", answer.len());
    }
}

#[test]
fn reading_pauses_when_asked_and_goes_on_without_loss() {
    let rig = Rig::with(WireSettings::default(), Flow::Pause);
    let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
    let all = [masked(0x81, b"one"), masked(0x81, b"two"), masked(0x81, b"three")].concat();
    write(&mut client, &all[..all.len() - 1]);
    assert_eq!(rig.next_report(), message(connection, "one"));
    write(&mut client, &all[all.len() - 1..]);
    assert_eq!(rig.settle(), []);
    rig.tell(vec![Command::Resume { connection }]);
    assert_eq!(rig.next_report(), message(connection, "two"));
    rig.tell(vec![Command::Resume { connection }, Command::Resume { connection }]);
    assert_eq!(rig.next_report(), message(connection, "three"));
    rig.tell(vec![Command::Resume { connection }]);
    drop(client);
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
}

#[test]
fn a_subscriber_of_a_stream_may_say_a_little_but_not_much() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(PLAIN, 1);
    write(&mut client, b"GET /pipelined HTTP/1.1\r\n\r\n");
    rig.deliver(&packet("evt", "{}"), &[1]);
    expect_bytes(&mut client, b"id: evt\ndata: {}\n\n");
    // The loop may close the connection before everything is written.
    let _ = client.write_all(&vec![b'x'; MAX_DISCARDED_BYTES as usize]);
    assert_eq!(rig.why_gone(connection), GoneReason::UnexpectedBytes);
}

#[test]
fn half_closing_and_resetting_end_a_connection() {
    for protocol in [CHUNKED, PLAIN, Protocol::WebSocket] {
        let rig = Rig::new();
        let (connection, client) = rig.connect(protocol, 1);
        client.shutdown(std::net::Shutdown::Write).expect("half closes");
        let gone = WireReport::Gone {
            connection,
            subscriber: Some(WireSubscriber(1)),
            why: GoneReason::ClosedByPeer { code: None },
        };
        assert_eq!(rig.next_report(), gone);
        let (connection, client) = rig.connect(protocol, 1);
        rig.settle();
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("an option");
        drop(client);
        assert_eq!(
            rig.why_gone(connection),
            GoneReason::Failed(std::io::ErrorKind::ConnectionReset)
        );
        rig.deliver(&packet("evt", "{}"), &[1]);
        assert_eq!(rig.settle(), []);
    }
}
