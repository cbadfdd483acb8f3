//! The three wires as a subscriber sees them: how a connection begins, and what the bytes on it mean.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::Connection;

/// How long the hub may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much the system keeps for a subscriber that does not read.
const SMALL_BUFFER_BYTES: usize = 4096;

/// Four bytes with which a client masks what it sends. Any will do: nothing between here and there is to be
/// protected from what this program says.
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Stream,
    WebSocket,
    Local,
}

/// Where the hub is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
}

/// A connection on which events come.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Local(UnixStream),
}

/// A subscription with its connection, and what was read from it already.
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) subscription_id: String,
    pub(crate) read: Vec<u8>,
}

/// Where a subscriber left off.
pub(crate) struct Resume {
    pub(crate) subscription_id: String,
    /// Empty if it never heard anything.
    pub(crate) last_event_id: String,
}

/// Something whole that came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Message(&'a [u8]),
    /// Lines of server-sent events.
    Lines(&'a [u8]),
    Ping(&'a [u8]),
    /// The hub ends the connection.
    End,
    /// Nothing that concerns a subscriber.
    Other,
}

impl Wire {
    /// Subscribes, or goes on with a subscription.
    pub(crate) fn open(
        self,
        place: &Place,
        capabilities: &Value,
        resume: Option<&Resume>,
        has_small_buffer: bool,
    ) -> Result<Opened, String> {
        match self {
            Wire::Stream => open_stream(place, capabilities, resume, has_small_buffer),
            Wire::WebSocket => {
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
                self.subscribe(Socket::Tcp(stream), read, capabilities, resume)
            }
            Wire::Local => {
                let stream = UnixStream::connect(&place.socket).map_err(text)?;
                stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
                self.subscribe(Socket::Local(stream), Vec::new(), capabilities, resume)
            }
        }
    }

    /// The handshake on a connection that goes both ways.
    fn subscribe(
        self,
        mut socket: Socket,
        mut read: Vec<u8>,
        capabilities: &Value,
        resume: Option<&Resume>,
    ) -> Result<Opened, String> {
        socket.write_all(&self.message(&request(capabilities, resume))).map_err(text)?;
        loop {
            if let Some((frame, used)) = self.frame(&read)? {
                let Frame::Message(message) = frame else {
                    return Err("the hub did not begin with an answer".to_owned());
                };
                let answer: Value = serde_json::from_slice(message).map_err(text)?;
                let id = answer["subscription_id"].as_str();
                let subscription_id =
                    id.ok_or_else(|| format!("a subscriber was refused: {answer}"))?.to_owned();
                read.drain(..used);
                return Ok(Opened { socket, subscription_id, read });
            }
            more(&mut socket, &mut read)?;
        }
    }

    /// A message of a subscriber as bytes.
    pub(crate) fn message(self, message: &Value) -> Vec<u8> {
        let json = message.to_string();
        match self {
            Wire::Stream => json.into_bytes(),
            Wire::WebSocket => masked(0x1, json.as_bytes()),
            Wire::Local => {
                let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
                [&length.to_be_bytes(), json.as_bytes()].concat()
            }
        }
    }

    /// The answer to a ping.
    pub(crate) fn pong(content: &[u8]) -> Vec<u8> {
        masked(0xa, content)
    }

    /// The first whole frame of these bytes and how long it is, if there is one.
    pub(crate) fn frame(self, bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, String> {
        match self {
            Wire::Stream => chunk(bytes),
            Wire::WebSocket => websocket(bytes),
            Wire::Local => Ok(after_length(bytes)),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Local(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Local(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a subscriber says when it comes.
fn request(capabilities: &Value, resume: Option<&Resume>) -> Value {
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
    place: &Place,
    capabilities: &Value,
    resume: Option<&Resume>,
    has_small_buffer: bool,
) -> Result<Opened, String> {
    let subscription_id = if let Some(resume) = resume {
        resume.subscription_id.clone()
    } else {
        let mut connection = Connection::open(place.address)?;
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
    Ok(Opened { socket: Socket::Tcp(stream), subscription_id, read })
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

/// Reads the head of an answer; what came behind it.
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

/// One chunk of HTTP. The hub puts whole events into each.
fn chunk(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, String> {
    let Some(end) = bytes.iter().take(20).position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let size = std::str::from_utf8(&bytes[..end]).map_err(text)?.trim();
    let size = usize::from_str_radix(size, 16).map_err(|_| "a chunk has no size".to_owned())?;
    let Some(content) = bytes.get(end + 1..end + 1 + size + 2) else { return Ok(None) };
    let frame = if size == 0 { Frame::End } else { Frame::Lines(&content[..size]) };
    Ok(Some((frame, end + 1 + size + 2)))
}

/// One frame of a WebSocket, from a server.
fn websocket(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, String> {
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
        0x81 => Frame::Message(content),
        0x88 => Frame::End,
        0x89 => Frame::Ping(content),
        0x8a => Frame::Other,
        _ => return Err(format!("a frame of the hub begins with {first:x}")),
    };
    Ok(Some((frame, header + length)))
}

fn after_length(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let &[a, b, c, d, ref rest @ ..] = bytes else { return None };
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let content = rest.get(..length)?;
    // A sign of life has no content.
    let frame = if content.is_empty() { Frame::Other } else { Frame::Message(content) };
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
            (Wire::Stream, b"7\r\ndata: a\r\n".as_slice(), Frame::Lines(b"data: a")),
            (Wire::Stream, b"0\r\n\r\n", Frame::End),
            (Wire::WebSocket, b"\x81\x02{}", Frame::Message(b"{}")),
            (Wire::WebSocket, &long, Frame::Message(&content)),
            (Wire::WebSocket, b"\x89\x01p", Frame::Ping(b"p")),
            (Wire::Local, b"\0\0\0\x02{}", Frame::Message(b"{}")),
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
    fn what_makes_no_sense_is_no_frame() {
        assert!(Wire::Stream.frame(b"wrong\r\n").is_err());
        assert!(Wire::WebSocket.frame(b"\x81\x82abcdef").is_err());
        assert!(Wire::WebSocket.frame(b"\x01\x00").is_err());
    }
}
