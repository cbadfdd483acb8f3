//! A running loop, clients on real sockets, and bounded waits instead of sleeping.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use aaep_transport::wire::{
    Command, ConnectionKey, Flow, GoneReason, Reports, Socket, Wire, WireHandle, WireReport,
    WireSettings, WireSubscriber,
};
use aaep_transport::{Protocol, WirePacket};
use tungstenite::WebSocket;
use tungstenite::protocol::Role;

/// How long anything may take before a test says that it does not happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const CHUNKED: Protocol = Protocol::SseChunked { named: true };
pub(crate) const PLAIN: Protocol = Protocol::SsePlain { named: false };

pub(crate) struct Rig {
    pub(crate) wire: Wire,
    pub(crate) reports: Receiver<WireReport>,
}

struct Recorder {
    reports: Sender<WireReport>,
    flow: Flow,
}

impl Reports for Recorder {
    fn report(&mut self, report: WireReport) -> Flow {
        // The test has ended.
        let _ = self.reports.send(report);
        self.flow
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(WireSettings::default(), Flow::Continue)
    }

    pub(crate) fn with(settings: WireSettings, flow: Flow) -> Self {
        let (sender, reports) = mpsc::channel();
        let wire = Wire::start(settings, Recorder { reports: sender, flow }).expect("a loop");
        Self { wire, reports }
    }

    pub(crate) fn handle(&self) -> &WireHandle {
        self.wire.handle()
    }

    pub(crate) fn tell(&self, commands: Vec<Command>) {
        self.handle().send(commands).expect("the loop runs");
    }

    pub(crate) fn add(&self, socket: Socket, protocol: Protocol) -> ConnectionKey {
        let connection = self.handle().new_key();
        self.tell(vec![Command::Add { connection, socket, protocol, read_ahead: Vec::new() }]);
        connection
    }

    /// A client over TCP, with a subscriber attached.
    pub(crate) fn connect(
        &self,
        protocol: Protocol,
        subscriber: u32,
    ) -> (ConnectionKey, TcpStream) {
        let (client, server) = tcp_pair();
        let (connection, socket) = (self.handle().new_key(), Socket::Tcp(server));
        // In one batch, so that nothing from the client comes between them.
        self.tell(vec![
            Command::Add { connection, socket, protocol, read_ahead: Vec::new() },
            Command::Attach { connection, subscriber: WireSubscriber(subscriber) },
        ]);
        (connection, client)
    }

    pub(crate) fn connect_websocket(
        &self,
        subscriber: u32,
    ) -> (ConnectionKey, WebSocket<TcpStream>) {
        let (connection, client) = self.connect(Protocol::WebSocket, subscriber);
        (connection, WebSocket::from_raw_socket(client, Role::Client, None))
    }

    pub(crate) fn deliver(&self, packet: &Arc<WirePacket>, to: &[u32]) {
        let to = to.iter().copied().map(WireSubscriber).collect();
        self.tell(vec![Command::Deliver { packet: Arc::clone(packet), to }]);
    }

    pub(crate) fn next_report(&self) -> WireReport {
        self.reports.recv_timeout(PATIENCE).expect("a report")
    }

    /// Why the connection ended. Skips all reports before.
    pub(crate) fn why_gone(&self, which: ConnectionKey) -> GoneReason {
        loop {
            match self.next_report() {
                WireReport::Gone { connection, why, .. } if connection == which => return why,
                _ => {}
            }
        }
    }

    /// Waits until all commands so far were carried out. Returns the reports of that time.
    pub(crate) fn settle(&self) -> Vec<WireReport> {
        let mark = u32::MAX;
        self.tell(vec![Command::Attach {
            connection: ConnectionKey(u64::MAX),
            subscriber: WireSubscriber(mark),
        }]);
        let is_mark = |report: &WireReport| matches!(report, WireReport::Gone { subscriber: Some(it), .. } if *it == WireSubscriber(mark));
        std::iter::from_fn(|| Some(self.next_report())).take_while(|it| !is_mark(it)).collect()
    }
}

pub(crate) fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    (client, listener.accept().expect("accepts").0)
}

pub(crate) fn packet(id: &str, json: &str) -> Arc<WirePacket> {
    Arc::new(WirePacket::new(id, json.to_owned()))
}

/// A packet of about this many bytes.
pub(crate) fn large(id: usize, bytes: usize) -> Arc<WirePacket> {
    packet(&format!("evt_{id}"), &format!("\"{}\"", "x".repeat(bytes)))
}

pub(crate) fn read_exactly(from: &mut impl Read, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).expect("bytes come");
    bytes
}

pub(crate) fn expect_bytes(from: &mut impl Read, expected: &[u8]) {
    assert_eq!(
        String::from_utf8_lossy(&read_exactly(from, expected.len())),
        String::from_utf8_lossy(expected)
    );
}

pub(crate) fn expect_end(from: &mut impl Read) {
    assert_eq!(from.read(&mut [0; 1]).expect("an end"), 0, "something came instead of the end");
}

pub(crate) fn write(to: &mut impl Write, bytes: &[u8]) {
    to.write_all(bytes).expect("takes bytes");
}

/// A frame that a client sends.
pub(crate) fn masked(first: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0][..], content].concat()
}

/// The close frame that a server sends, up to its reason.
pub(crate) fn expect_close(from: &mut impl Read, code: u16) {
    let header = read_exactly(from, 2);
    assert_eq!(header[0], 0x88);
    let content = read_exactly(from, usize::from(header[1]));
    assert_eq!(content[..2], code.to_be_bytes());
}
