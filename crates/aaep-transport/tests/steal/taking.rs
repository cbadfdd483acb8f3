//! Taking a connection from hyper, and the moments before and after.

use std::io::Read;

use aaep_transport::steal::ServeEnd;
use aaep_transport::wire::{Command, GoneReason, WireReport};

use crate::server::*;

const EVENTS: &str = "GET /events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n";

#[test]
fn hyper_writes_the_head_and_the_wire_writes_the_events() {
    let server = Server::new();
    let mut client = server.connect();
    ask(&mut client, EVENTS);
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in
        ["content-type: text/event-stream", "cache-control: no-store", "transfer-encoding: chunked"]
    {
        assert!(head.contains(line), "{head}");
    }
    assert_eq!(server.next_end(), Ok(ServeEnd::Stolen), "hyper has let go");
    let connection = server.next_taken();
    server.send(connection, "{}");
    expect_bytes(&mut client, CHUNKED_EVENT);
    let close = Command::Close { connection, code: 4000, reason: String::new(), after_flush: true };
    server.wire.handle().send(vec![close]).expect("runs");
    let mut rest = String::new();
    client.read_to_string(&mut rest).expect("an end");
    assert_eq!(rest, "0\r\n\r\n");
}

#[test]
fn a_connection_is_kept_alive_until_it_is_taken() {
    let server = Server::new();
    let mut client = server.connect();
    for _ in 0..3 {
        ask(&mut client, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(read_head(&mut client).contains("chunked"));
        expect_bytes(&mut client, "5\r\nhello\r\n0\r\n\r\n");
    }
    ask(&mut client, EVENTS);
    read_head(&mut client);
    server.send(server.next_taken(), "{}");
    expect_bytes(&mut client, CHUNKED_EVENT);
}

#[test]
fn requests_sent_together_are_answered_up_to_the_stream_and_dropped_behind_it() {
    let server = Server::new();
    let mut client = server.connect();
    let hello = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";
    ask(&mut client, &format!("{hello}{EVENTS}{hello}"));
    read_head(&mut client);
    expect_bytes(&mut client, "5\r\nhello\r\n0\r\n\r\n");
    assert!(read_head(&mut client).contains("text/event-stream"));
    server.send(server.next_taken(), "{}");
    expect_bytes(&mut client, CHUNKED_EVENT);
}

#[test]
fn http_1_0_gets_a_body_without_chunks() {
    let server = Server::new();
    let mut client = server.connect();
    ask(&mut client, "GET /events HTTP/1.0\r\n\r\n");
    let head = read_head(&mut client);
    assert!(!head.contains("chunked"), "{head}");
    server.send(server.next_taken(), "{}");
    expect_bytes(&mut client, "event: aaep.event\nid: evt\ndata: {}\n\n");
}

#[test]
fn asking_only_for_the_head_takes_nothing() {
    let server = Server::new();
    let mut client = server.connect();
    ask(&mut client, "HEAD /events HTTP/1.1\r\nhost: x\r\n\r\n");
    read_head(&mut client);
    ask(&mut client, "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut rest = String::new();
    client.read_to_string(&mut rest).expect("an end");
    assert!(rest.ends_with("hello\r\n0\r\n\r\n"), "{rest}");
    assert_eq!(server.next_end(), Ok(ServeEnd::Done));
    assert!(server.taken.try_recv().is_err());
}

#[test]
fn a_client_that_leaves_after_it_was_taken_is_noticed() {
    let server = Server::new();
    let mut client = server.connect();
    ask(&mut client, EVENTS);
    read_head(&mut client);
    let connection = server.next_taken();
    drop(client);
    let why = GoneReason::ClosedByPeer { code: None };
    assert_eq!(
        server.reports.recv_timeout(PATIENCE),
        Ok(WireReport::Gone { connection, subscriber: None, why })
    );
}

#[test]
fn many_streams_are_taken_at_once() {
    let server = Server::new();
    let address = server.listen();
    let mut clients: Vec<_> = (0..100)
        .map(|_| {
            let mut client = std::net::TcpStream::connect(address).expect("connects");
            client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ask(&mut client, EVENTS);
            client
        })
        .collect();
    for _ in 0..100 {
        server.send(server.next_taken(), "{}");
    }
    for client in &mut clients {
        read_head(client);
        expect_bytes(client, CHUNKED_EVENT);
    }
}
