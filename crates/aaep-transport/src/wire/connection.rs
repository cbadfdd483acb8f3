//! One connection of a loop: its socket, what waits for it, and how far its life has gone.
//!
//! It is kept small because there are many. It never speaks to the outside; the loop does.

use std::io::{self, IoSlice};

use super::backlog::{Backlog, Item, MAX_SLICES};
use super::socket::Stream;
use super::{ConnectionKey, Why};
use crate::framed;
use crate::packet::Protocol;
use crate::websocket::{self, Incoming, Role, Violation};

pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) backlog: Backlog,
    /// What is needed where the peer has something to say.
    pub(super) hearing: Option<Box<Hearing>>,
    pub(super) key: ConnectionKey,
    pub(super) subscriber: Option<u32>,
    /// When something was last given to the kernel.
    pub(super) written_ms: u32,
    /// How many bytes came that nobody reads.
    pub(super) discarded_bytes: u32,
    pub(super) protocol: Protocol,
    pub(super) phase: Phase,
    /// Why it ends, while nobody has been told.
    pub(super) untold: Option<Why>,
    pub(super) is_blocked: bool,
    /// Someone waits for everything to be written.
    pub(super) must_tell_written: bool,
    pub(super) withdrawal: Withdrawal,
    /// It is on the list of those to write to in this turn.
    pub(super) is_touched: bool,
}

/// How far the life of a connection has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// The last bytes are waiting to be written; nothing may follow them.
    Ending,
    /// The last bytes are written; the peer has yet to end its side.
    Ended,
}

/// Whether what waits can be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawal {
    Possible,
    /// It was, and the caller has yet to take note of it. Until then, nothing that is delivered belongs here.
    Untold,
    /// Another subscriber was heard here before, so that what waits may not be this one's.
    Impossible,
}

/// How a peer is heard.
pub(super) struct Hearing {
    pub(super) decoder: Decoder,
    /// Bytes that came after a message at which reading was paused.
    pub(super) held: Vec<u8>,
    pub(super) is_paused: bool,
    /// The peer's last word has been read: its close, or something that broke a rule.
    pub(super) is_heard_out: bool,
    pub(super) has_peer_closed: bool,
    pub(super) unanswered_pings: u8,
    count_in_window: u16,
    window_began_ms: u32,
}

impl Connection {
    pub(super) fn new(
        stream: Stream,
        key: ConnectionKey,
        protocol: Protocol,
        max_message_bytes: u32,
        now_ms: u32,
    ) -> Self {
        let hearing = Decoder::new(protocol, max_message_bytes).map(|decoder| {
            Box::new(Hearing {
                decoder,
                held: Vec::new(),
                is_paused: false,
                is_heard_out: false,
                has_peer_closed: false,
                unanswered_pings: 0,
                count_in_window: 0,
                window_began_ms: now_ms,
            })
        });
        Self {
            stream,
            backlog: Backlog::default(),
            hearing,
            key,
            subscriber: None,
            written_ms: now_ms,
            discarded_bytes: 0,
            protocol,
            phase: Phase::Open,
            untold: None,
            is_blocked: false,
            must_tell_written: false,
            withdrawal: Withdrawal::Possible,
            is_touched: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Nobody is heard here any more. What waits was theirs: it is never given back in the name of another.
    pub(super) fn lose_subscriber(&mut self) {
        self.subscriber = None;
        self.withdrawal = Withdrawal::Impossible;
    }

    pub(super) fn push(&mut self, item: Item) {
        self.backlog.push(item, self.protocol);
    }

    /// Whether something waits that the kernel has not taken.
    pub(super) fn has_unsent(&self) -> bool {
        !self.backlog.is_empty() || self.stream.has_unsent()
    }

    /// Writes until all is written or the kernel takes no more.
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

/// Reads messages, however they are framed.
pub(super) enum Decoder {
    WebSocket(websocket::Decoder),
    Framed(framed::Decoder),
}

impl Decoder {
    /// None where a peer has nothing to say.
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
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Incoming>, Violation> {
        match self {
            Self::WebSocket(decoder) => decoder.next(bytes),
            Self::Framed(decoder) => match decoder.next(bytes) {
                // Nothing in a frame is a sign of life, which needs no answer.
                Ok(Some(text)) if text.is_empty() => Ok(Some(Incoming::Pong(Vec::new()))),
                Ok(text) => Ok(text.map(Incoming::Text)),
                Err(framed::Violation::TooBig) => Err(Violation::TooBig),
                Err(framed::Violation::InvalidText) => Err(Violation::InvalidText),
            },
        }
    }
}

impl Hearing {
    /// Counts something that came in and says whether it is still within the rate.
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
        let websocket = size_of::<Connection>() + size_of::<Hearing>();
        assert!(size_of::<Connection>() <= 152, "{}", size_of::<Connection>());
        assert!(websocket <= 320, "{websocket}");
    }
}
