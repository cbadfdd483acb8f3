//! Delivery: each subscriber gets its own form, in order, with nothing lost and nothing twice.

use std::io::Read;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::wire::{
    Command, ConnectionKey, Flow, GoneReason, Socket, WireHandle, WireReport, WireSettings,
    WireSubscriber,
};

use crate::support::*;

#[test]
fn every_subscriber_gets_the_same_packet_in_its_own_form() {
    let rig = Rig::new();
    let (_, mut chunked) = rig.connect(CHUNKED, 1);
    let (_, mut plain) = rig.connect(PLAIN, 2);
    let (_, mut websocket) = rig.connect_websocket(3);
    let (_, mut other) = rig.connect(PLAIN, 4);
    let (first, second) = (packet("evt_1", "{}"), packet("evt_2", "{}"));
    rig.deliver(&first, &[1, 2, 3, 999]);
    rig.deliver(&second, &[4]);
    expect_bytes(&mut chunked, first.bytes(CHUNKED));
    expect_bytes(&mut plain, b"id: evt_1\ndata: {}\n\n");
    assert_eq!(websocket.read().expect("a message").into_text().expect("text"), "{}");
    expect_bytes(&mut other, b"id: evt_2\ndata: {}\n\n");
}

#[test]
fn order_is_kept_through_bursts_and_batches() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(PLAIN, 1);
    let packets: Vec<_> = (0..3000).map(|id| large(id, id % 700)).collect();
    for batch in packets.chunks(97) {
        let commands = batch.iter().enumerate().map(|(at, packet)| {
            let packet = Arc::clone(packet);
            if at % 2 == 0 {
                Command::Deliver { packet, to: vec![WireSubscriber(1)] }
            } else {
                Command::Send { connection, packet }
            }
        });
        rig.tell(commands.collect());
    }
    for packet in &packets {
        expect_bytes(&mut client, packet.bytes(PLAIN));
    }
}

#[test]
fn a_subscriber_that_reads_one_byte_at_a_time_gets_everything() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(CHUNKED, 1);
    let packets: Vec<_> = (0..20).map(|id| large(id, 1000)).collect();
    let expected: Vec<u8> = packets.iter().flat_map(|it| it.bytes(CHUNKED).to_vec()).collect();
    for packet in &packets {
        rig.deliver(packet, &[1]);
    }
    let mut one = [0];
    for byte in expected {
        client.read_exact(&mut one).expect("a byte");
        assert_eq!(one[0], byte);
    }
}

#[test]
fn large_messages_get_through_both_ways() {
    for bytes in [(64 << 10) - 2, (1 << 20) - 2] {
        let rig = Rig::new();
        let packet = large(0, bytes);
        let (_, mut chunked) = rig.connect(CHUNKED, 1);
        let (_, mut plain) = rig.connect(PLAIN, 2);
        let (connection, mut websocket) = rig.connect_websocket(3);
        rig.deliver(&packet, &[1, 2, 3]);
        assert!(read_exactly(&mut chunked, packet.bytes(CHUNKED).len()) == packet.bytes(CHUNKED));
        assert!(read_exactly(&mut plain, packet.bytes(PLAIN).len()) == packet.bytes(PLAIN));
        let text = websocket.read().expect("a message").into_text().expect("text");
        assert_eq!(text.len(), bytes + 2);
        let client = thread::spawn(move || {
            websocket.send(tungstenite::Message::Text(text.clone())).expect("sent");
            (websocket, text)
        });
        loop {
            match rig.next_report() {
                WireReport::Message { connection: from, text: came } => {
                    let (_websocket, sent) = client.join().expect("a client");
                    assert!(from == connection && came == sent.as_str());
                    break;
                }
                WireReport::Gone { why, .. } => panic!("{why:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn a_message_can_go_to_a_connection_without_a_subscriber() {
    let rig = Rig::new();
    let (mut client, server) = tcp_pair();
    let connection = rig.add(Socket::Tcp(server), PLAIN);
    rig.tell(vec![Command::Send { connection, packet: packet("", "{}") }]);
    expect_bytes(&mut client, b"data: {}\n\n");
}

#[test]
fn a_subscriber_moves_to_its_newest_connection_and_can_leave_it() {
    let rig = Rig::new();
    let (_, mut old) = rig.connect(PLAIN, 1);
    let (connection, mut new) = rig.connect(PLAIN, 1);
    rig.deliver(&packet("evt_1", "1"), &[1]);
    rig.tell(vec![Command::Detach { subscriber: WireSubscriber(1) }]);
    rig.deliver(&packet("evt_2", "2"), &[1]);
    rig.tell(vec![
        Command::Attach { connection, subscriber: WireSubscriber(2) },
        Command::Attach { connection, subscriber: WireSubscriber(3) },
    ]);
    rig.deliver(&packet("evt_3", "3"), &[1, 2, 3]);
    rig.tell(vec![Command::Stop { grace: PATIENCE }]);
    expect_bytes(&mut new, b"id: evt_1\ndata: 1\n\nid: evt_3\ndata: 3\n\n");
    expect_end(&mut new);
    expect_end(&mut old);
}

#[test]
fn attaching_to_a_connection_that_is_not_there_is_answered() {
    let rig = Rig::new();
    rig.tell(vec![Command::Attach {
        connection: ConnectionKey(12),
        subscriber: WireSubscriber(7),
    }]);
    assert_eq!(
        rig.next_report(),
        WireReport::Gone {
            connection: ConnectionKey(12),
            subscriber: Some(WireSubscriber(7)),
            why: GoneReason::Unknown
        }
    );
}

#[test]
fn an_idle_subscriber_hears_that_the_connection_lives() {
    let heartbeat = Duration::from_millis(100);
    let rig = Rig::with(WireSettings { heartbeat, ..WireSettings::default() }, Flow::Continue);
    let (_, mut chunked) = rig.connect(CHUNKED, 1);
    let (_, mut plain) = rig.connect(PLAIN, 2);
    let (_, mut websocket) = rig.connect(Protocol::WebSocket, 3);
    expect_bytes(&mut chunked, b"2\r\n:\n\r\n2\r\n:\n\r\n");
    expect_bytes(&mut plain, b":\n:\n");
    expect_bytes(&mut websocket, &[0x89, 0]);
}

#[test]
fn a_websocket_client_that_answers_no_ping_is_disconnected_and_one_that_does_stays() {
    let heartbeat = Duration::from_millis(100);
    let rig = Rig::with(WireSettings { heartbeat, ..WireSettings::default() }, Flow::Continue);
    let (living, mut client) = rig.connect_websocket(1);
    let living_client = thread::spawn(move || {
        // Reading answers pings. The hub sends the last frame.
        loop {
            match client.read() {
                Ok(tungstenite::Message::Text(text)) => return text.to_string(),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let (silent, mut dead) = rig.connect(Protocol::WebSocket, 2);
    let gone = WireReport::Gone {
        connection: silent,
        subscriber: Some(WireSubscriber(2)),
        why: GoneReason::Silent,
    };
    assert_eq!(rig.next_report(), gone);
    expect_bytes(&mut dead, &[0x89, 0, 0x89, 0]);
    expect_end(&mut dead);
    rig.tell(vec![Command::Send { connection: living, packet: packet("", "still here") }]);
    assert_eq!(living_client.join().expect("a client"), "still here");
}

#[test]
fn a_key_says_which_loop_it_belongs_to() {
    let rig = Rig::with(WireSettings { number: 513, ..WireSettings::default() }, Flow::Continue);
    let (first, second) = (rig.handle().new_key(), rig.handle().new_key());
    assert_ne!(first, second);
    assert_eq!(WireHandle::loop_number(first), 513);
    assert_eq!(WireHandle::loop_number(second), 513);
}
