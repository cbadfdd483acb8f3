//! How connections and the loop end.

use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::wire::{
    Command, ConnectionKey, Flow, GoneReason, Socket, WireReport, WireSettings, WireSubscriber,
};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message};

use crate::support::*;

fn close(connection: ConnectionKey, code: u16, after_flush: bool) -> Command {
    Command::Close { connection, code, reason: "because".to_owned(), after_flush }
}

#[test]
fn the_codes_of_the_appendix_reach_the_client_and_its_answer_ends_it() {
    for code in 4000..=4005 {
        let rig = Rig::new();
        let (connection, mut client) = rig.connect_websocket(1);
        rig.deliver(&packet("evt", "last"), &[1]);
        rig.tell(vec![close(connection, code, true)]);
        rig.deliver(&packet("evt", "too late"), &[1]);
        rig.tell(vec![Command::Send { connection, packet: packet("", "too late") }]);
        assert_eq!(client.read().expect("a message"), Message::text("last"));
        let Ok(Message::Close(Some(frame))) = client.read() else { panic!("no close") };
        assert_eq!((frame.code, frame.reason.as_str()), (CloseCode::from(code), "because"));
        assert!(matches!(client.read(), Err(Error::ConnectionClosed)), "nothing comes after");
        let gone = WireReport::Gone {
            connection,
            subscriber: Some(WireSubscriber(1)),
            why: GoneReason::ClosedByUs,
        };
        assert_eq!(rig.next_report(), gone);
    }
}

#[test]
fn a_clients_close_is_answered_with_its_code() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
    write(&mut client, &masked(0x88, &[0x0f, 0xa5]));
    let why = GoneReason::ClosedByPeer { code: Some(4005) };
    assert_eq!(
        rig.next_report(),
        WireReport::Gone { connection, subscriber: Some(WireSubscriber(1)), why }
    );
    expect_bytes(&mut client, &[0x88, 2, 0x0f, 0xa5]);
    expect_end(&mut client);
    let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
    write(&mut client, &masked(0x88, b""));
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
    expect_bytes(&mut client, &[0x88, 0]);
    expect_end(&mut client);
}

#[test]
fn a_close_that_crosses_a_close_ends_once() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
    write(&mut client, &masked(0x88, &[0x03, 0xe8]));
    rig.tell(vec![close(connection, 4000, true)]);
    let why = rig.why_gone(connection);
    assert!(
        matches!(why, GoneReason::ClosedByUs | GoneReason::ClosedByPeer { code: Some(1000) }),
        "{why:?}"
    );
    let answer = read_exactly(&mut client, 2);
    assert_eq!(answer[0], 0x88);
    read_exactly(&mut client, usize::from(answer[1]));
    expect_end(&mut client);
    assert_eq!(rig.settle(), []);
}

#[test]
fn a_message_between_our_close_and_its_answer_is_not_told() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(Protocol::WebSocket, 1);
    rig.tell(vec![close(connection, 4000, true)]);
    expect_close(&mut client, 4000);
    write(&mut client, &masked(0x81, b"late"));
    write(&mut client, &masked(0x88, &[0x0f, 0xa0]));
    assert!(matches!(rig.next_report(), WireReport::Gone { why: GoneReason::ClosedByUs, .. }));
}

#[test]
fn a_client_that_does_not_answer_a_close_is_disconnected() {
    let close_timeout = Duration::from_millis(50);
    let settings = || WireSettings { close_timeout, ..WireSettings::default() };
    for protocol in [Protocol::WebSocket, CHUNKED] {
        let rig = Rig::with(settings(), Flow::Continue);
        let (connection, mut client) = rig.connect(protocol, 1);
        rig.tell(vec![close(connection, 4000, true)]);
        assert_eq!(rig.why_gone(connection), GoneReason::ClosedByUs);
        client.set_nonblocking(false).expect("an option");
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut client, &mut rest).expect("an end");
    }
}

#[test]
fn closing_without_flushing_keeps_frames_whole() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(PLAIN, 1);
    let mut count = 0;
    while !rig
        .settle()
        .iter()
        .any(|it| matches!(it, WireReport::Blocked { subscriber: WireSubscriber(1), .. }))
    {
        rig.deliver(&large(count, 10_000), &[1]);
        count += 1;
        assert!(count < 10_000, "the kernel takes no end of bytes");
    }
    (0..10).for_each(|_| rig.deliver(&large(count, 10_000), &[1]));
    rig.tell(vec![close(connection, 4000, false)]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut client, &mut text).expect("an end");
    drop(client);
    assert!(text.ends_with("\"\n\n"), "the last event is cut");
    assert!(text.matches("data: ").count() <= count, "what waited was sent");
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByUs);
}

#[test]
fn stopping_writes_pending_packets_and_says_goodbye() {
    let rig = Rig::new();
    let (_, mut chunked) = rig.connect(CHUNKED, 1);
    let (_, mut websocket) = rig.connect_websocket(2);
    let (_, stuck) = rig.connect(PLAIN, 3);
    let packets: Vec<_> = (0..30).map(|id| large(id, 30_000)).collect();
    for packet in &packets {
        rig.deliver(packet, &[1, 2, 3]);
    }
    rig.tell(vec![Command::Stop { grace: Duration::from_secs(2) }]);
    let (client, server) = tcp_pair();
    let late = rig.add(Socket::Tcp(server), PLAIN);
    assert_eq!(rig.why_gone(late), GoneReason::Stopped);
    drop(client);
    for packet in &packets {
        assert_eq!(read_exactly(&mut chunked, packet.bytes(CHUNKED).len()), packet.bytes(CHUNKED));
    }
    expect_bytes(&mut chunked, b"0\r\n\r\n");
    expect_end(&mut chunked);
    drop(chunked);
    for packet in &packets {
        assert_eq!(websocket.read().expect("a message").into_data(), packet.json());
    }
    let Ok(Message::Close(Some(frame))) = websocket.read() else { panic!("no close") };
    assert_eq!(frame.code, CloseCode::Away);
    let handle = rig.handle().clone();
    assert!(rig.wire.join(), "the loop ended well");
    let whys: Vec<WireReport> = rig.reports.iter().collect();
    let is_stopped =
        |it: &&WireReport| matches!(it, WireReport::Gone { why: GoneReason::Stopped, .. });
    assert_eq!(whys.iter().filter(is_stopped).count(), 3, "{whys:?}");
    assert!(handle.send(Vec::new()).is_err(), "a stopped loop takes nothing");
    drop(stuck);
}

#[test]
fn a_loop_that_nobody_can_tell_anything_ends() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(CHUNKED, 1);
    let reports = rig.reports;
    assert!(rig.wire.join());
    expect_bytes(&mut client, b"0\r\n\r\n");
    expect_end(&mut client);
    assert!(matches!(reports.try_recv(), Ok(WireReport::Gone { why: GoneReason::Stopped, .. })));
}
