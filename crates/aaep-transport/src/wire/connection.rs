//! One connection of a loop: its socket, its backlog, and its phase.
//!
//! It is kept small because there are many. It reports nothing by itself; the loop does.

use std::io::{self, IoSlice};

use super::backlog::{BacklogItem, MAX_SLICES, WriteBacklog};
use super::socket::LoopSocket;
use super::{ConnectionKey, GoneReason, WireSubscriber};
use crate::framed;
use crate::packet::Protocol;
use crate::websocket::{self, Incoming, Role, WebSocketViolation};

pub(super) struct WireConnection {
    pub(super) stream: LoopSocket,
    pub(super) backlog: WriteBacklog,
    /// The state for reading messages, on wires where the peer sends any.
    pub(super) input: Option<Box<PeerInput>>,
    pub(super) key: ConnectionKey,
    pub(super) subscriber: Option<WireSubscriber>,
    /// When bytes were last given to the kernel.
    pub(super) written_ms: u32,
    /// How many bytes arrived that are not read as messages.
    pub(super) discarded_bytes: u32,
    pub(super) protocol: Protocol,
    pub(super) phase: ConnectionPhase,
    /// Why it ends, until that is reported.
    pub(super) unreported: Option<GoneReason>,
    pub(super) is_blocked: bool,
    /// The caller waits for everything to be written.
    pub(super) must_tell_written: bool,
    pub(super) withdrawal: WithdrawalState,
    /// Whether it is on the list of connections to write to in this turn.
    pub(super) is_touched: bool,
}

/// The phase of a connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    Open,
    /// The last bytes are queued; nothing may follow them.
    Ending,
    /// The last bytes are written; the peer has yet to end its side.
    Ended,
}

/// Whether queued events can be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WithdrawalState {
    Possible,
    /// Events were given back, and the caller has yet to take note. Until then, events delivered here are
    /// dropped.
    Unacknowledged,
    /// Another subscriber was attached here before, so the queued events may not belong to this one.
    Impossible,
}

/// The state for reading a peer's messages.
pub(super) struct PeerInput {
    pub(super) decoder: PeerDecoder,
    /// Bytes that arrived after a message at which reading was paused.
    pub(super) held: Vec<u8>,
    pub(super) is_paused: bool,
    /// Nothing more is read from the peer: its close or a violation was read, or we have ended the connection.
    pub(super) is_done_reading: bool,
    pub(super) has_peer_closed: bool,
    pub(super) unanswered_pings: u8,
    count_in_window: u16,
    window_began_ms: u32,
}

impl WireConnection {
    pub(super) fn new(
        stream: LoopSocket,
        key: ConnectionKey,
        protocol: Protocol,
        max_message_bytes: u32,
        now_ms: u32,
    ) -> Self {
        let input = PeerDecoder::new(protocol, max_message_bytes).map(|decoder| {
            Box::new(PeerInput {
                decoder,
                held: Vec::new(),
                is_paused: false,
                is_done_reading: false,
                has_peer_closed: false,
                unanswered_pings: 0,
                count_in_window: 0,
                window_began_ms: now_ms,
            })
        });
        Self {
            stream,
            backlog: WriteBacklog::default(),
            input,
            key,
            subscriber: None,
            written_ms: now_ms,
            discarded_bytes: 0,
            protocol,
            phase: ConnectionPhase::Open,
            unreported: None,
            is_blocked: false,
            must_tell_written: false,
            withdrawal: WithdrawalState::Possible,
            is_touched: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == ConnectionPhase::Open
    }

    /// Detaches the subscriber. The queued events were for it, so they are never given back in the name of
    /// another one.
    pub(super) fn lose_subscriber(&mut self) {
        self.subscriber = None;
        self.withdrawal = WithdrawalState::Impossible;
    }

    pub(super) fn push(&mut self, item: BacklogItem) {
        self.backlog.push(item, self.protocol);
    }

    /// Whether bytes are queued that the kernel has not accepted.
    pub(super) fn has_unsent(&self) -> bool {
        !self.backlog.is_empty() || self.stream.has_unsent()
    }

    /// Writes until everything is written or the kernel accepts no more.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        loop {
            if self.backlog.is_empty() {
                return match self.stream.flush() {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                    _ => Ok(()),
                };
            }
            let outcome = if let Some(bytes) = self.backlog.only(self.protocol) {
                self.stream.write(&[IoSlice::new(bytes)])
            } else {
                let mut slices = [IoSlice::new(&[]); MAX_SLICES];
                let count = self.backlog.gather(self.protocol, &mut slices);
                self.stream.write(&slices[..count])
            };
            match outcome {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.backlog.advance(written, self.protocol),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads messages in any framing.
pub(super) enum PeerDecoder {
    WebSocket(websocket::Decoder),
    Framed(framed::Decoder),
}

impl PeerDecoder {
    /// `None` on wires where the peer sends no messages.
    fn new(protocol: Protocol, max_message_bytes: u32) -> Option<Self> {
        match protocol {
            Protocol::SseChunked { .. } | Protocol::SsePlain { .. } => None,
            Protocol::WebSocket => {
                Some(Self::WebSocket(websocket::Decoder::new(Role::Server, max_message_bytes)))
            }
            Protocol::Framed(framing) => {
                Some(Self::Framed(framed::Decoder::new(framing, max_message_bytes)))
            }
        }
    }

    /// Reads from the front of `bytes` up to the end of one message.
    pub(super) fn next(
        &mut self,
        bytes: &mut &[u8],
    ) -> Result<Option<Incoming>, WebSocketViolation> {
        match self {
            Self::WebSocket(decoder) => decoder.next(bytes),
            Self::Framed(decoder) => match decoder.next(bytes) {
                // An empty frame is a sign of life, which needs no answer.
                Ok(Some(text)) if text.is_empty() => Ok(Some(Incoming::Pong(Vec::new()))),
                Ok(text) => Ok(text.map(Incoming::Text)),
                Err(framed::FrameViolation::TooBig) => Err(WebSocketViolation::TooBig),
                Err(framed::FrameViolation::InvalidText) => Err(WebSocketViolation::InvalidText),
            },
        }
    }
}

impl PeerInput {
    /// Counts an incoming message and returns whether the peer is still within its rate.
    pub(super) fn is_within_rate(&mut self, now_ms: u32, max_per_second: u16) -> bool {
        if now_ms.wrapping_sub(self.window_began_ms) >= 1000 {
            self.window_began_ms = now_ms;
            self.count_in_window = 0;
        }
        self.count_in_window = self.count_in_window.saturating_add(1);
        self.count_in_window <= max_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        let websocket = size_of::<WireConnection>() + size_of::<PeerInput>();
        assert!(size_of::<WireConnection>() <= 152, "{}", size_of::<WireConnection>());
        assert!(websocket <= 320, "{websocket}");
    }
}
