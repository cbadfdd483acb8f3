//! One message for the wires: its bytes in each form are made at most once and shared by all connections.
//!
//! It knows an id and opaque JSON, never their meaning.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::framed::Framing;
use crate::{chunk, sse, websocket};

/// How bytes are framed on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Server-sent events in an HTTP/1.1 chunked body.
    SseChunked {
        /// Whether each event has an `event:` line (B.1.3); on the legacy path it has none (ruling 27).
        named: bool,
    },
    /// Server-sent events in a body that ends with the connection, as in HTTP/1.0.
    SsePlain {
        /// Whether each event has an `event:` line.
        named: bool,
    },
    /// WebSocket, server side.
    WebSocket,
    /// Whole messages on a stream of bytes: a Unix socket, or one end of [`crate::wire::pair`].
    Framed(Framing),
}

/// One message, shared by every connection that it is sent to.
pub struct WirePacket {
    event_id: Box<str>,
    is_critical: bool,
    json: Bytes,
    chunked: OnceLock<Box<[u8]>>,
    chunked_named: OnceLock<Box<[u8]>>,
    plain: OnceLock<Box<[u8]>>,
    plain_named: OnceLock<Box<[u8]>>,
    websocket: OnceLock<Box<[u8]>>,
    length: OnceLock<Box<[u8]>>,
    line: OnceLock<Box<[u8]>>,
}

impl WirePacket {
    /// A JSON message. A message that is not an event, such as the answer to a handshake, has an empty id, so
    /// that it does not change where a subscriber resumes.
    pub fn new(event_id: impl Into<Box<str>>, json: impl Into<Bytes>) -> Self {
        Self {
            event_id: event_id.into(),
            is_critical: false,
            json: json.into(),
            chunked: OnceLock::new(),
            chunked_named: OnceLock::new(),
            plain: OnceLock::new(),
            plain_named: OnceLock::new(),
            websocket: OnceLock::new(),
            length: OnceLock::new(),
            line: OnceLock::new(),
        }
    }

    /// Sets whether the message is critical and must not wait behind others.
    #[must_use]
    pub fn critical(self, is_critical: bool) -> Self {
        Self { is_critical, ..self }
    }

    /// Whether the message is critical and must not wait behind others.
    pub fn is_critical(&self) -> bool {
        self.is_critical
    }

    /// The id of the event, or an empty string.
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// The JSON, as it was given.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The bytes as they are written to a connection.
    pub fn bytes(&self, protocol: Protocol) -> &[u8] {
        match protocol {
            Protocol::SseChunked { named: true } => {
                self.chunked_named.get_or_init(|| in_chunk(&self.sse(Some(sse::EVENT_NAME))))
            }
            Protocol::SseChunked { named: false } => {
                self.chunked.get_or_init(|| in_chunk(&self.sse(None)))
            }
            Protocol::SsePlain { named: true } => {
                self.plain_named.get_or_init(|| self.sse(Some(sse::EVENT_NAME)).into_boxed_slice())
            }
            Protocol::SsePlain { named: false } => {
                self.plain.get_or_init(|| self.sse(None).into_boxed_slice())
            }
            Protocol::WebSocket => self.websocket.get_or_init(|| {
                let mut bytes = Vec::new();
                websocket::text(&self.json, None, &mut bytes);
                bytes.into_boxed_slice()
            }),
            Protocol::Framed(Framing::Length) => {
                self.length.get_or_init(|| self.framed(Framing::Length))
            }
            Protocol::Framed(Framing::Lines) => {
                self.line.get_or_init(|| self.framed(Framing::Lines))
            }
        }
    }

    fn framed(&self, framing: Framing) -> Box<[u8]> {
        let mut bytes = Vec::new();
        framing.message(&self.json, &mut bytes);
        bytes.into_boxed_slice()
    }

    fn sse(&self, name: Option<&str>) -> Vec<u8> {
        let mut bytes = Vec::new();
        sse::event(&self.event_id, name, &self.json, &mut bytes);
        bytes
    }
}

impl fmt::Debug for WirePacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content may be private and long; its length is enough.
        f.debug_struct("Packet")
            .field("event_id", &self.event_id)
            .field("json_bytes", &self.json.len())
            .finish_non_exhaustive()
    }
}

fn in_chunk(bytes: &[u8]) -> Box<[u8]> {
    let mut framed = Vec::new();
    chunk::chunk(bytes, &mut framed);
    framed.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_made_once_and_shared() {
        let packet = WirePacket::new("evt_1", r#"{"a":1}"#);
        for protocol in [
            Protocol::SseChunked { named: true },
            Protocol::SseChunked { named: false },
            Protocol::SsePlain { named: true },
            Protocol::SsePlain { named: false },
            Protocol::WebSocket,
            Protocol::Framed(Framing::Length),
            Protocol::Framed(Framing::Lines),
        ] {
            let first = packet.bytes(protocol);
            assert!(std::ptr::eq(first, packet.bytes(protocol)));
        }
        assert_eq!(
            packet.bytes(Protocol::SseChunked { named: true }),
            b"2b\r\nevent: aaep.event\nid: evt_1\ndata: {\"a\":1}\n\n\r\n".as_slice()
        );
        assert_eq!(
            packet.bytes(Protocol::SsePlain { named: false }),
            b"id: evt_1\ndata: {\"a\":1}\n\n"
        );
        assert_eq!(packet.bytes(Protocol::WebSocket), b"\x81\x07{\"a\":1}");
    }
}
