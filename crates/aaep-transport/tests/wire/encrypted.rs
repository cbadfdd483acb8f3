//! The same over TLS, where bytes also wait inside rustls.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use aaep_transport::Protocol;
use aaep_transport::wire::{Command, GoneReason, Socket, WireReport, WireSubscriber};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::support::*;

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Both ends of a TLS connection, its handshake done.
fn tls_pair() -> (Client, Socket) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("a configuration");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let (client_tcp, mut server_tcp) = tcp_pair();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(client), name).expect("a client");
    let mut server = ServerConnection::new(Arc::new(server)).expect("a server");
    let shaking = thread::spawn(move || {
        server.complete_io(&mut server_tcp).expect("shakes hands");
        Socket::Tls(Box::new((server_tcp, server)))
    });
    let mut client = StreamOwned::new(client, client_tcp);
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock).expect("shakes hands");
    }
    (client, shaking.join().expect("a server"))
}

#[test]
fn a_subscriber_over_tls_gets_everything_in_order_however_slowly_it_reads() {
    let rig = Rig::new();
    let (mut client, socket) = tls_pair();
    let connection = rig.add(socket, CHUNKED);
    rig.tell(vec![Command::Attach { connection, subscriber: WireSubscriber(1) }]);
    let mut packets = Vec::new();
    while !rig
        .settle()
        .iter()
        .any(|it| matches!(it, WireReport::Blocked { subscriber: WireSubscriber(1), .. }))
    {
        packets.push(large(packets.len(), 20_000));
        rig.deliver(packets.last().expect("just put"), &[1]);
        assert!(packets.len() < 10_000, "the kernel takes no end of bytes");
    }
    for packet in &packets {
        assert_eq!(read_exactly(&mut client, packet.bytes(CHUNKED).len()), packet.bytes(CHUNKED));
    }
    assert!(matches!(
        rig.next_report(),
        WireReport::Unblocked { subscriber: WireSubscriber(1), .. }
    ));
    rig.tell(vec![Command::Close {
        connection,
        code: 4000,
        reason: String::new(),
        after_flush: true,
    }]);
    expect_bytes(&mut client, b"0\r\n\r\n");
    expect_end(&mut client);
    drop(client);
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByUs);
}

#[test]
fn messages_over_tls_are_read_and_a_cut_connection_is_noticed() {
    let rig = Rig::new();
    let (mut client, socket) = tls_pair();
    write(&mut client, &masked(0x81, b"early"));
    let connection = rig.add(socket, Protocol::WebSocket);
    assert_eq!(rig.next_report(), WireReport::Message { connection, text: "early".to_owned() });
    write(&mut client, &masked(0x81, &[b'x'; 100]));
    assert_eq!(rig.next_report(), WireReport::Message { connection, text: "x".repeat(100) });
    rig.tell(vec![Command::Send { connection, packet: packet("", "{}") }]);
    expect_bytes(&mut client, b"\x81\x02{}");
    drop(client.sock.shutdown(std::net::Shutdown::Both));
    assert_eq!(rig.why_gone(connection), GoneReason::ClosedByPeer { code: None });
}

#[test]
fn garbage_instead_of_tls_ends_the_connection() {
    let rig = Rig::new();
    let (mut client, socket) = tls_pair();
    let connection = rig.add(socket, CHUNKED);
    write(&mut client.sock, b"this is no record of TLS at all");
    assert_eq!(rig.why_gone(connection), GoneReason::Failed(std::io::ErrorKind::InvalidData));
    // The end follows in any case.
    let _ = client.sock.read_to_end(&mut Vec::new());
}
