//! Every kind of socket, for streams and for WebSocket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use aaep_transport::steal::ServeEnd;
use aaep_transport::wire::{GoneReason, WireReport};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tokio_rustls::TlsAcceptor;

use crate::server::*;

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A text frame of a client with a mask of zeros.
const FRAME: &[u8] = b"\x81\x82\0\0\0\0hi";

fn unix(server: &Server) -> UnixStream {
    let (client, ours) = UnixStream::pair().expect("a pair");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    ours.set_nonblocking(true).expect("an option");
    let _context = server.runtime.enter();
    server.serve(tokio::net::UnixStream::from_std(ours).expect("a stream"));
    client
}

fn tls(server: &Server) -> StreamOwned<ClientConnection, TcpStream> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let configuration = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("a configuration");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let connecting = std::thread::spawn(move || {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("a certificate");
        let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let mut session = ClientConnection::new(Arc::new(client), name).expect("a client");
        let mut tcp = TcpStream::connect(address).expect("connects");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        while session.is_handshaking() {
            session.complete_io(&mut tcp).expect("shakes hands");
        }
        StreamOwned::new(session, tcp)
    });
    let (tcp, _) = listener.accept().expect("accepts");
    tcp.set_nonblocking(true).expect("an option");
    let accepted = server.runtime.block_on(async {
        let tcp = tokio::net::TcpStream::from_std(tcp).expect("a stream");
        TlsAcceptor::from(Arc::new(configuration)).accept(tcp).await.expect("shakes hands")
    });
    server.serve(accepted);
    connecting.join().expect("a client")
}

fn streams_events(server: &Server, mut client: impl Read + Write) {
    ask(&mut client, "GET /events HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(read_head(&mut client).contains("chunked"));
    assert_eq!(server.next_end(), Ok(ServeEnd::Stolen));
    let connection = server.next_taken();
    for _ in 0..3 {
        server.send(connection, "{}");
        expect_bytes(&mut client, CHUNKED_EVENT);
    }
    drop(client);
    let why = GoneReason::ClosedByPeer { code: None };
    let gone = WireReport::Gone { connection, subscriber: None, why };
    assert_eq!(server.reports.recv_timeout(PATIENCE), Ok(gone));
}

fn speaks_websocket(server: &Server, mut client: impl Read + Write) {
    // The first frame follows the handshake at once, so hyper reads it.
    client.write_all(&[UPGRADE.as_bytes(), FRAME].concat()).expect("takes bytes");
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    let connection = server.next_taken();
    let message = WireReport::Message { connection, text: "hi".to_owned() };
    assert_eq!(server.reports.recv_timeout(PATIENCE), Ok(message.clone()));
    client.write_all(FRAME).expect("takes bytes");
    assert_eq!(server.reports.recv_timeout(PATIENCE), Ok(message));
    server.send(connection, "{}");
    let mut frame = [0; 4];
    client.read_exact(&mut frame).expect("a frame");
    assert_eq!(frame, *b"\x81\x02{}");
}

#[test]
fn streams_and_websockets_over_tcp() {
    let server = Server::new();
    streams_events(&server, server.connect());
    speaks_websocket(&server, server.connect());
}

#[test]
fn streams_and_websockets_over_a_unix_socket() {
    let server = Server::new();
    streams_events(&server, unix(&server));
    speaks_websocket(&server, unix(&server));
}

#[test]
fn streams_and_websockets_over_tls() {
    let server = Server::new();
    streams_events(&server, tls(&server));
    speaks_websocket(&server, tls(&server));
}
