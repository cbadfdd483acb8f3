//! The wires, and how a subscriber connects on each of them to each server.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::serve::read_head;

/// The receive buffer of a subscriber that does not read.
const SMALL_BUFFER: usize = 4096;

/// The wire on which events travel.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FanoutWire {
    Sse,
    #[value(name = "websocket")]
    WebSocket,
    Unix,
}

impl FanoutWire {
    pub(super) const ALL: [FanoutWire; 3] =
        [FanoutWire::Sse, FanoutWire::WebSocket, FanoutWire::Unix];

    pub(super) fn name(self) -> &'static str {
        match self {
            FanoutWire::Sse => "SSE",
            FanoutWire::WebSocket => "WebSocket",
            FanoutWire::Unix => "Unix socket",
        }
    }

    /// Its name on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            FanoutWire::Sse => "sse",
            FanoutWire::WebSocket => "websocket",
            FanoutWire::Unix => "unix",
        }
    }
}

/// The kind of server that a subscriber connects to.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerKind {
    Hub,
    Raw,
    Axum,
    Nchan,
}

impl ServerKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            ServerKind::Hub => "the hub",
            ServerKind::Raw => "only writing",
            ServerKind::Axum => "axum by hand",
            ServerKind::Nchan => "nginx with nchan",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            ServerKind::Hub => "hub",
            ServerKind::Raw => "raw",
            ServerKind::Axum => "axum",
            ServerKind::Nchan => "nchan",
        }
    }

    /// Whether the server supports this wire.
    pub(super) fn speaks(self, wire: FanoutWire) -> bool {
        match self {
            ServerKind::Hub | ServerKind::Raw => true,
            ServerKind::Axum => wire != FanoutWire::Unix,
            ServerKind::Nchan => wire == FanoutWire::Sse,
        }
    }
}

/// The address of a server.
#[derive(Clone)]
pub(crate) enum MeasuredAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl MeasuredAddress {
    /// Reads an address. A path begins with a slash; everything else is a network address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(MeasuredAddress::Unix(text.into()));
        }
        text.parse().map(MeasuredAddress::Tcp).map_err(|_| format!("{text} is not an address"))
    }

    pub(super) fn text(&self) -> String {
        match self {
            MeasuredAddress::Tcp(address) => address.to_string(),
            MeasuredAddress::Unix(path) => path.display().to_string(),
        }
    }
}

/// A server and a wire to connect to.
pub(super) struct ListenTarget<'a> {
    pub(super) kind: ServerKind,
    pub(super) wire: FanoutWire,
    pub(super) address: &'a MeasuredAddress,
}

impl ListenTarget<'_> {
    /// Connects a subscriber with these capabilities, as far as the server supports them, and
    /// completes the handshake.
    pub(super) fn listen(&self, capabilities: &Value, reads: bool) -> Result<File, String> {
        let file = self.open(reads).map_err(|error| error.to_string())?;
        let mut line =
            GreetingConnection { stream: BufReader::new(file), host: self.address.text() };
        match (self.kind, self.wire) {
            (ServerKind::Raw, _) => {}
            (ServerKind::Hub, FanoutWire::Sse) => {
                let id = line.subscribe(capabilities)?;
                line.stream(&format!("/aaep/v1/events?subscription_id={id}"))?;
            }
            (ServerKind::Hub, FanoutWire::WebSocket) => {
                line.upgrade("/aaep/v1/ws")?;
                line.send(&masked(request(capabilities).as_bytes()))?;
                line.await_acceptance()?;
            }
            (ServerKind::Hub, FanoutWire::Unix) => {
                line.send(&after_length(request(capabilities).as_bytes()))?;
                line.await_acceptance()?;
            }
            (_, FanoutWire::Sse) => line.stream("/events")?,
            (_, FanoutWire::WebSocket) => line.upgrade("/ws")?,
            (_, FanoutWire::Unix) => return Err("this server has no local socket".to_owned()),
        }
        Ok(line.stream.into_inner())
    }

    fn open(&self, reads: bool) -> std::io::Result<File> {
        let (domain, address) = match self.address {
            MeasuredAddress::Tcp(address) => (Domain::for_address(*address), (*address).into()),
            MeasuredAddress::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        if !reads {
            socket.set_recv_buffer_size(SMALL_BUFFER)?;
        }
        socket.connect(&address)?;
        if matches!(self.address, MeasuredAddress::Tcp(_)) {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(File::from(OwnedFd::from(socket)))
    }
}

fn request(capabilities: &Value) -> String {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "bench",
        "capabilities": capabilities,
    });
    request.to_string()
}

/// Encodes a WebSocket message of less than 64 KiB. The mask of zeros changes nothing.
fn masked(text: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[0x81, 0x80 | 0x7e, high, low, 0, 0, 0, 0], text].concat()
}

fn after_length(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length, text].concat()
}

/// A connection during the handshake.
struct GreetingConnection {
    stream: BufReader<File>,
    host: String,
}

impl GreetingConnection {
    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).map_err(|error| error.to_string())
    }

    /// Subscribes and returns the id of the subscription.
    fn subscribe(&mut self, capabilities: &Value) -> Result<String, String> {
        let body = request(capabilities);
        let (host, length) = (&self.host, body.len());
        let head = format!(
            "POST /aaep/v1/subscriptions HTTP/1.1\r\nhost: {host}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.send(head.as_bytes())?;
        let (status, length) = read_head(&mut self.stream)?;
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).map_err(|error| error.to_string())?;
        let accepted: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let id = accepted["subscription_id"].as_str();
        id.map(str::to_owned).ok_or_else(|| format!("{status}, and no subscription"))
    }

    /// Requests a stream of events.
    fn stream(&mut self, path: &str) -> Result<(), String> {
        let host = &self.host;
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n");
        self.send(head.as_bytes())?;
        match read_head(&mut self.stream)? {
            (200, _) => Ok(()),
            (status, _) => Err(format!("a stream was refused with {status}")),
        }
    }

    /// Requests a WebSocket.
    fn upgrade(&mut self, path: &str) -> Result<(), String> {
        let host = &self.host;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: YSBsaXN0ZW5lciBoZXJlIQ==\r\n\
             sec-websocket-protocol: aaep.v1\r\n\r\n"
        );
        self.send(head.as_bytes())?;
        match read_head(&mut self.stream)? {
            (101, _) => Ok(()),
            (status, _) => Err(format!("a WebSocket was refused with {status}")),
        }
    }

    /// Reads up to the answer to a subscription request.
    fn await_acceptance(&mut self) -> Result<(), String> {
        let mut came = Vec::new();
        loop {
            let bytes = self.stream.fill_buf().map_err(|error| error.to_string())?;
            let count = bytes.len();
            came.extend_from_slice(bytes);
            self.stream.consume(count);
            let text = String::from_utf8_lossy(&came);
            if text.contains("subscription.accepted") {
                return Ok(());
            }
            if count == 0 || text.contains("subscription.rejected") {
                return Err(format!("the hub did not accept a subscriber: {text:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_framed_with_their_lengths() {
        assert_eq!(masked(b"{}"), [0x81, 0xfe, 0, 2, 0, 0, 0, 0, b'{', b'}']);
        assert_eq!(after_length(b"{}"), [0, 0, 0, 2, b'{', b'}']);
    }

    #[test]
    fn a_path_and_a_network_address_are_told_apart() {
        assert!(matches!(MeasuredAddress::parse("/tmp/hub.sock"), Ok(MeasuredAddress::Unix(_))));
        assert!(matches!(MeasuredAddress::parse("127.0.0.1:7"), Ok(MeasuredAddress::Tcp(_))));
        assert!(MeasuredAddress::parse("hub").is_err());
    }
}
