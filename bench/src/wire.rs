//! The three wires as a subscriber sees them: how a connection begins, and how to read its bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::HttpConnection;

/// The longest that the hub may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The receive buffer of a subscriber that does not read.
const SMALL_BUFFER_BYTES: usize = 4096;

/// The four bytes with which a client masks its messages. Any value will do: nothing between client
/// and server needs protection from what this program sends.
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriberWire {
    Stream,
    WebSocket,
    Local,
}

/// The address of the hub.
#[derive(Clone)]
pub(crate) struct HubAddress {
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
}

/// A connection that carries events.
pub(crate) enum EventSocket {
    Tcp(TcpStream),
    Local(UnixStream),
}

/// A subscription with its connection, and the bytes already read from it.
pub(crate) struct OpenedSubscription {
    pub(crate) socket: EventSocket,
    pub(crate) subscription_id: String,
    pub(crate) read: Vec<u8>,
}

/// The point from which a subscriber resumes.
pub(crate) struct ResumeFrom {
    pub(crate) subscription_id: String,
    /// Empty if it never received an event.
    pub(crate) last_event_id: String,
}

/// A complete frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WireFrame<'a> {
    Message(&'a [u8]),
    /// Lines of server-sent events.
    Lines(&'a [u8]),
    Ping(&'a [u8]),
    /// The hub ends the connection.
    End,
    /// A frame that does not concern a subscriber.
    Other,
}

impl SubscriberWire {
    /// Subscribes, or resumes a subscription.
    pub(crate) fn open(
        self,
        place: &HubAddress,
        capabilities: &Value,
        resume: Option<&ResumeFrom>,
        has_small_buffer: bool,
    ) -> Result<OpenedSubscription, String> {
        match self {
            SubscriberWire::Stream => open_stream(place, capabilities, resume, has_small_buffer),
            SubscriberWire::WebSocket => {
                let mut stream = tcp(place.address, has_small_buffer)?;
                let request = format!(
                    "GET /aaep/v1/ws HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\n\
                     upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                     sec-websocket-key: AAECAwQFBgcICQoLDA0ODw==\r\n\
                     sec-websocket-protocol: aaep.v1\r\n\r\n",
                    place.address
                );
                stream.write_all(request.as_bytes()).map_err(text)?;
                let read = head(&mut stream, 101)?;
                self.subscribe(EventSocket::Tcp(stream), read, capabilities, resume)
            }
            SubscriberWire::Local => {
                let stream = UnixStream::connect(&place.socket).map_err(text)?;
                stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
                self.subscribe(EventSocket::Local(stream), Vec::new(), capabilities, resume)
            }
        }
    }

    /// Performs the handshake on a bidirectional connection.
    fn subscribe(
        self,
        mut socket: EventSocket,
        mut read: Vec<u8>,
        capabilities: &Value,
        resume: Option<&ResumeFrom>,
    ) -> Result<OpenedSubscription, String> {
        socket.write_all(&self.message(&request(capabilities, resume))).map_err(text)?;
        loop {
            if let Some((frame, used)) = self.frame(&read)? {
                let WireFrame::Message(message) = frame else {
                    return Err("the hub did not begin with an answer".to_owned());
                };
                let answer: Value = serde_json::from_slice(message).map_err(text)?;
                let id = answer["subscription_id"].as_str();
                let subscription_id =
                    id.ok_or_else(|| format!("a subscriber was refused: {answer}"))?.to_owned();
                read.drain(..used);
                return Ok(OpenedSubscription { socket, subscription_id, read });
            }
            more(&mut socket, &mut read)?;
        }
    }

    /// Encodes a message of a subscriber.
    pub(crate) fn message(self, message: &Value) -> Vec<u8> {
        let json = message.to_string();
        match self {
            SubscriberWire::Stream => json.into_bytes(),
            SubscriberWire::WebSocket => masked(0x1, json.as_bytes()),
            SubscriberWire::Local => {
                let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
                [&length.to_be_bytes(), json.as_bytes()].concat()
            }
        }
    }

    /// The answer to a ping.
    pub(crate) fn pong(content: &[u8]) -> Vec<u8> {
        masked(0xa, content)
    }

    /// The first complete frame in these bytes and its length, if there is one.
    pub(crate) fn frame(self, bytes: &[u8]) -> Result<Option<(WireFrame<'_>, usize)>, String> {
        match self {
            SubscriberWire::Stream => chunk(bytes),
            SubscriberWire::WebSocket => websocket(bytes),
            SubscriberWire::Local => Ok(after_length(bytes)),
        }
    }
}

impl Read for EventSocket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            EventSocket::Tcp(stream) => stream.read(buffer),
            EventSocket::Local(stream) => stream.read(buffer),
        }
    }
}

impl Write for EventSocket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            EventSocket::Tcp(stream) => stream.write(bytes),
            EventSocket::Local(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The subscription request of a subscriber.
fn request(capabilities: &Value, resume: Option<&ResumeFrom>) -> Value {
    let mut request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "bench",
        "capabilities": capabilities,
    });
    if let Some(resume) = resume {
        let mut wish = json!({ "subscription_id": resume.subscription_id });
        if !resume.last_event_id.is_empty() {
            wish["last_event_id"] = resume.last_event_id.as_str().into();
        }
        request["extensions"] = json!({ "agentvoice": { "resume": wish } });
    }
    request
}

fn open_stream(
    place: &HubAddress,
    capabilities: &Value,
    resume: Option<&ResumeFrom>,
    has_small_buffer: bool,
) -> Result<OpenedSubscription, String> {
    let subscription_id = if let Some(resume) = resume {
        resume.subscription_id.clone()
    } else {
        let mut connection = HttpConnection::open(place.address)?;
        let body = request(capabilities, None).to_string();
        let accepted = connection.post("/aaep/v1/subscriptions", "application/json", &body)?;
        let accepted: Value = serde_json::from_str(&accepted).map_err(text)?;
        accepted["subscription_id"].as_str().ok_or("no subscription")?.to_owned()
    };
    let last = resume.map(|it| it.last_event_id.as_str()).filter(|it| !it.is_empty());
    let last = last.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
    let mut stream = tcp(place.address, has_small_buffer)?;
    let request = format!(
        "GET /aaep/v1/events?subscription_id={subscription_id} HTTP/1.1\r\nhost: {}\r\n\
         accept: text/event-stream\r\n{last}\r\n",
        place.address
    );
    stream.write_all(request.as_bytes()).map_err(text)?;
    let read = head(&mut stream, 200)?;
    Ok(OpenedSubscription { socket: EventSocket::Tcp(stream), subscription_id, read })
}

fn tcp(address: SocketAddr, has_small_buffer: bool) -> Result<TcpStream, String> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    );
    let socket = socket.map_err(|error| format!("{error}. More may help: ulimit -n 20000"))?;
    if has_small_buffer {
        socket.set_recv_buffer_size(SMALL_BUFFER_BYTES).map_err(text)?;
    }
    socket.connect(&address.into()).map_err(text)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    Ok(stream)
}

/// Reads the head of an answer. Returns the bytes that came after it.
fn head(stream: &mut TcpStream, wanted: u16) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            let behind = read.split_off(at + 4);
            let head = String::from_utf8_lossy(&read);
            if head.split(' ').nth(1) == Some(wanted.to_string().as_str()) {
                return Ok(behind);
            }
            return Err(format!("a subscriber was refused: {}", head.lines().next().unwrap_or("")));
        }
        more(stream, &mut read)?;
    }
}

fn more(stream: &mut impl Read, read: &mut Vec<u8>) -> Result<(), String> {
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) => Err("the hub ended the connection".to_owned()),
        Ok(count) => {
            read.extend(buffer.iter().take(count));
            Ok(())
        }
        Err(error) => Err(text(error)),
    }
}

/// Reads one HTTP chunk. The hub puts whole events into each.
fn chunk(bytes: &[u8]) -> Result<Option<(WireFrame<'_>, usize)>, String> {
    let Some(end) = bytes.iter().take(20).position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let size = std::str::from_utf8(&bytes[..end]).map_err(text)?.trim();
    let size = usize::from_str_radix(size, 16).map_err(|_| "a chunk has no size".to_owned())?;
    let Some(content) = bytes.get(end + 1..end + 1 + size + 2) else { return Ok(None) };
    let frame = if size == 0 { WireFrame::End } else { WireFrame::Lines(&content[..size]) };
    Ok(Some((frame, end + 1 + size + 2)))
}

/// Reads one WebSocket frame from a server.
fn websocket(bytes: &[u8]) -> Result<Option<(WireFrame<'_>, usize)>, String> {
    let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
    let number = |count: usize| {
        let bytes = rest.get(..count)?;
        Some(bytes.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (length, header): (_, usize) = match second {
        0..=125 => (Some(usize::from(second)), 2),
        126 => (number(2), 4),
        127 => (number(8), 10),
        _ => return Err("a frame of the hub is masked".to_owned()),
    };
    let Some(length) = length else { return Ok(None) };
    let Some(content) = bytes.get(header..header.saturating_add(length)) else { return Ok(None) };
    let frame = match first {
        0x81 => WireFrame::Message(content),
        0x88 => WireFrame::End,
        0x89 => WireFrame::Ping(content),
        0x8a => WireFrame::Other,
        _ => return Err(format!("a frame of the hub begins with {first:x}")),
    };
    Ok(Some((frame, header + length)))
}

fn after_length(bytes: &[u8]) -> Option<(WireFrame<'_>, usize)> {
    let &[a, b, c, d, ref rest @ ..] = bytes else { return None };
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let content = rest.get(..length)?;
    // A keep-alive has no content.
    let frame = if content.is_empty() { WireFrame::Other } else { WireFrame::Message(content) };
    Some((frame, 4 + length))
}

fn masked(opcode: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | opcode];
    match content.len() {
        length @ 0..=125 => bytes.push(0x80 | u8::try_from(length).unwrap_or(0)),
        length => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(content.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_when_it_is_whole_and_not_before() {
        let long = [b"\x81\x7e\x01\x00".as_slice(), &[b'x'; 256]].concat();
        let content = [b'x'; 256];
        let cases = [
            (SubscriberWire::Stream, b"7\r\ndata: a\r\n".as_slice(), WireFrame::Lines(b"data: a")),
            (SubscriberWire::Stream, b"0\r\n\r\n", WireFrame::End),
            (SubscriberWire::WebSocket, b"\x81\x02{}", WireFrame::Message(b"{}")),
            (SubscriberWire::WebSocket, &long, WireFrame::Message(&content)),
            (SubscriberWire::WebSocket, b"\x89\x01p", WireFrame::Ping(b"p")),
            (SubscriberWire::Local, b"\0\0\0\x02{}", WireFrame::Message(b"{}")),
        ];
        for (wire, bytes, wanted) in cases {
            for length in 0..bytes.len() {
                assert_eq!(wire.frame(&bytes[..length]), Ok(None));
            }
            let more = [bytes, b"\0\0\0\0"].concat();
            assert_eq!(wire.frame(&more), Ok(Some((wanted, bytes.len()))));
        }
    }

    #[test]
    fn an_invalid_frame_is_refused() {
        assert!(SubscriberWire::Stream.frame(b"wrong\r\n").is_err());
        assert!(SubscriberWire::WebSocket.frame(b"\x81\x82abcdef").is_err());
        assert!(SubscriberWire::WebSocket.frame(b"\x01\x00").is_err());
    }
}
