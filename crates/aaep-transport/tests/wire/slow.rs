//! Subscribers that read slowly or not at all cost bounded memory and delay nobody (§8.8).

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use aaep_transport::wire::{
    Command, GoneReason, MAX_BACKLOG_BYTES, Socket, WireReport, WireSubscriber,
};

use crate::support::*;

/// Delivers to a subscriber that does not read until bytes wait for it. Returns what was delivered.
fn block(rig: &Rig, subscriber: u32) -> Vec<Arc<aaep_transport::WirePacket>> {
    let mut packets = Vec::new();
    loop {
        let packet = large(packets.len(), 10_000);
        rig.deliver(&packet, &[subscriber]);
        packets.push(packet);
        if rig.settle().iter().any(
            |it| matches!(it, WireReport::Blocked { subscriber: it, .. }  if *it == WireSubscriber(subscriber)),
        ) {
            return packets;
        }
        assert!(packets.len() < 10_000, "the kernel takes no end of bytes");
    }
}

fn read_all_of(packets: &[Arc<aaep_transport::WirePacket>], client: &mut impl Read) {
    for packet in packets {
        assert_eq!(read_exactly(client, packet.bytes(PLAIN).len()), packet.bytes(PLAIN));
    }
}

#[test]
fn pending_events_arrive_once_the_subscriber_reads_and_are_reported_once_each_way() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(PLAIN, 1);
    let mut packets = block(&rig, 1);
    for id in 0..20 {
        let packet = large(id, 10_000);
        rig.deliver(&packet, &[1]);
        packets.push(packet);
    }
    assert_eq!(rig.settle(), [], "blocked is told once");
    read_all_of(&packets, &mut client);
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
    let last = packet("evt_last", "{}");
    rig.deliver(&last, &[1]);
    expect_bytes(&mut client, last.bytes(PLAIN));
    assert_eq!(rig.settle(), [], "unblocked is told once");
}

#[test]
fn the_same_holds_on_a_unix_socket() {
    let rig = Rig::new();
    let (mut client, server) = UnixStream::pair().expect("a pair");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let connection = rig.add(Socket::Unix(server), PLAIN);
    rig.tell(vec![Command::Attach { connection, subscriber: WireSubscriber(1) }]);
    for _ in 0..3 {
        let packets = block(&rig, 1);
        read_all_of(&packets, &mut client);
        assert!(matches!(
            rig.next_report(),
            WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
        ));
    }
    drop(client);
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
}

#[test]
fn a_subscriber_that_never_reads_is_disconnected_and_the_others_hear_everything() {
    let rig = Rig::new();
    let (slow, stuck) = rig.connect(PLAIN, 1);
    let (_, mut quick) = rig.connect(PLAIN, 2);
    let first = block(&rig, 1);
    let mut waiting = 0;
    let mut count = 0;
    let gone = loop {
        let packet = large(count, 50_000);
        rig.deliver(&packet, &[1, 2]);
        assert_eq!(read_exactly(&mut quick, packet.bytes(PLAIN).len()), packet.bytes(PLAIN));
        count += 1;
        waiting += packet.bytes(PLAIN).len();
        if let Some(gone) =
            rig.settle().into_iter().find(|it| matches!(it, WireReport::Gone { .. }))
        {
            break gone;
        }
        assert!(waiting < 2 * MAX_BACKLOG_BYTES, "more waits than the bound allows");
    };
    assert_eq!(
        gone,
        WireReport::Gone {
            connection: slow,
            subscriber: Some(WireSubscriber(1)),
            why: GoneReason::TooSlow
        }
    );
    assert!(waiting + first.len() * 10_100 > MAX_BACKLOG_BYTES, "let go too early");
    // Nothing else holds the packets that were meant for it.
    assert_eq!(Arc::strong_count(first.last().expect("at least one")), 1);
    drop(stuck);
}

#[test]
fn many_small_packets_are_bounded_as_well() {
    let rig = Rig::new();
    let (connection, _client) = rig.connect(PLAIN, 1);
    block(&rig, 1);
    let small = packet("evt", "{}");
    for _ in 0..6 {
        let commands = (0..1000)
            .map(|_| Command::Deliver { packet: Arc::clone(&small), to: vec![WireSubscriber(1)] });
        rig.tell(commands.collect());
    }
    assert_eq!(rig.why_gone(connection), GoneReason::TooSlow);
}

#[test]
fn one_batch_larger_than_the_bound_does_no_harm_to_a_subscriber_that_reads() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(PLAIN, 1);
    let packet = large(0, 1000);
    let expected = packet.bytes(PLAIN).to_vec();
    let reader = std::thread::spawn(move || {
        (0..1000).all(|_| read_exactly(&mut client, expected.len()) == expected)
    });
    let deliver = || Command::Deliver { packet: Arc::clone(&packet), to: vec![WireSubscriber(1)] };
    rig.tell((0..1000).map(|_| deliver()).collect());
    assert!(reader.join().expect("a reader"));
}

#[test]
fn pending_events_are_given_back_for_a_critical_one_and_later_ones_dropped_until_the_owner_knows() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(PLAIN, 1);
    let mut begun = block(&rig, 1);
    let rest = [large(901, 100), large(902, 100)];
    for packet in &rest {
        rig.deliver(packet, &[1]);
    }
    assert_eq!(rig.settle(), [], "nothing critical has come");
    let critical = Arc::new(aaep_transport::WirePacket::new("evt_critical", "{}").critical(true));
    rig.deliver(&critical, &[1]);
    let WireReport::Withdrawn { connection: on, subscriber: WireSubscriber(1), last_event_id } =
        rig.next_report()
    else {
        panic!("nothing was given back");
    };
    assert_eq!(on, connection);
    let last = begun.iter().position(|it| it.event_id() == &*last_event_id).expect("a begun one");
    begun.truncate(last + 1);
    rig.deliver(&large(903, 100), &[1]);
    read_all_of(&begun, &mut client);
    assert_eq!(rig.settle(), [], "it is free, and waits until what was given back is known");
    rig.tell(vec![Command::GoOn { connection }]);
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
    rig.deliver(&critical, &[1]);
    rig.deliver(&rest[0], &[1]);
    read_all_of(&[critical, Arc::clone(&rest[0])], &mut client);
}

#[test]
fn pending_events_are_given_back_on_request_and_an_answer_between_them_stays() {
    let rig = Rig::new();
    let (connection, mut client) = rig.connect(PLAIN, 1);
    let mut begun = block(&rig, 1);
    rig.deliver(&large(901, 100), &[1]);
    let answer = packet("", r#"{"answer":1}"#);
    rig.tell(vec![Command::Send { connection, packet: Arc::clone(&answer) }]);
    rig.tell(vec![Command::Withdraw { connection }]);
    let WireReport::Withdrawn { subscriber: WireSubscriber(1), last_event_id, .. } =
        rig.next_report()
    else {
        panic!("nothing was given back");
    };
    let last = begun.iter().position(|it| it.event_id() == &*last_event_id).expect("a begun one");
    begun.truncate(last + 1);
    rig.tell(vec![Command::Withdraw { connection }, Command::GoOn { connection }]);
    assert_eq!(rig.settle(), [], "once, and it is still full");
    read_all_of(&begun, &mut client);
    read_all_of(&[answer], &mut client);
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
}

#[test]
fn nothing_is_given_back_where_another_subscriber_was_heard_before() {
    let rig = Rig::new();
    let (connection, _client) = rig.connect(PLAIN, 1);
    block(&rig, 1);
    rig.deliver(&large(901, 100), &[1]);
    rig.tell(vec![
        Command::Attach { connection, subscriber: WireSubscriber(2) },
        Command::Withdraw { connection },
    ]);
    assert!(matches!(rig.next_report(), WireReport::Blocked { subscriber: WireSubscriber(2), .. }));
    assert_eq!(rig.settle(), []);
}

#[test]
fn nor_where_the_subscriber_before_had_left() {
    let rig = Rig::new();
    let (connection, _client) = rig.connect(PLAIN, 1);
    block(&rig, 1);
    rig.deliver(&large(901, 100), &[1]);
    rig.tell(vec![
        Command::Detach { subscriber: WireSubscriber(1) },
        Command::Attach { connection, subscriber: WireSubscriber(2) },
        Command::Withdraw { connection },
    ]);
    assert!(matches!(rig.next_report(), WireReport::Blocked { subscriber: WireSubscriber(2), .. }));
    assert_eq!(rig.settle(), []);
}

#[test]
fn a_subscriber_that_is_attached_again_where_it_is_can_still_be_overtaken() {
    let rig = Rig::new();
    let (connection, _client) = rig.connect(PLAIN, 1);
    block(&rig, 1);
    rig.deliver(&large(901, 100), &[1]);
    rig.tell(vec![
        Command::Attach { connection, subscriber: WireSubscriber(1) },
        Command::Withdraw { connection },
    ]);
    assert!(matches!(rig.next_report(), WireReport::Blocked { subscriber: WireSubscriber(1), .. }));
    assert!(matches!(
        rig.next_report(),
        WireReport::Withdrawn { subscriber: WireSubscriber(1), .. }
    ));
}

#[test]
fn a_subscriber_attached_to_a_blocked_connection_is_told_so() {
    let rig = Rig::new();
    let (connection, _client) = rig.connect(PLAIN, 1);
    block(&rig, 1);
    rig.tell(vec![Command::Attach { connection, subscriber: WireSubscriber(2) }]);
    assert!(matches!(rig.next_report(), WireReport::Blocked { subscriber: WireSubscriber(2), .. }));
}

#[test]
fn everything_written_is_reported_once_to_the_connection_that_asked() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(PLAIN, 1);
    let one = packet("evt_one", "{}");
    let deliver = Command::Deliver { packet: Arc::clone(&one), to: vec![WireSubscriber(1)] };
    rig.tell(vec![deliver, Command::TellWhenWritten { subscriber: WireSubscriber(1) }]);
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
    rig.tell(vec![Command::TellWhenWritten { subscriber: WireSubscriber(2) }]);
    assert_eq!(rig.settle(), [], "nobody else, and nobody who is not there");
    expect_bytes(&mut client, one.bytes(PLAIN));
}

#[test]
fn where_something_waits_it_is_heard_when_that_is_read() {
    let rig = Rig::new();
    let (_, mut client) = rig.connect(PLAIN, 1);
    let packets = block(&rig, 1);
    rig.tell(vec![Command::TellWhenWritten { subscriber: WireSubscriber(1) }]);
    assert_eq!(rig.settle(), []);
    read_all_of(&packets, &mut client);
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
    assert_eq!(rig.settle(), [], "once");
}
