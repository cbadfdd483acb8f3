//! Bytes from clients: messages on wires that have them, discarded bytes on the others.
//!
//! Everything is read into the loop's one buffer. A connection keeps only an incomplete message, or the bytes
//! that arrived after a pause.

use std::io;

use super::backlog::BacklogItem;
use super::event_loop::EventLoop;
use super::{Flow, GoneReason, MAX_DISCARDED_BYTES, WireReport};
use crate::websocket::{self, Incoming, WebSocketViolation};

/// How often one connection is read before the others have their turn.
const MAX_READS_PER_TURN: usize = 4;

impl EventLoop {
    /// Reads the bytes that have arrived, up to a fair share.
    pub(super) fn read(&mut self, index: usize) {
        let Some(key) = self.connections.get(index).map(|it| it.key) else { return };
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let is_unread = self.read_into(index, &mut buffer);
        self.read_buffer = buffer;
        if is_unread && self.by_key.contains_key(&key) {
            self.unread.push(key);
        }
    }

    /// Returns whether there may be more to read.
    fn read_into(&mut self, index: usize, buffer: &mut [u8]) -> bool {
        for _ in 0..MAX_READS_PER_TURN {
            let connection = &mut self.connections[index];
            if connection.input.as_ref().is_some_and(|it| it.is_paused) {
                return false;
            }
            match connection.stream.read(buffer) {
                Ok(0) => {
                    self.leave(index, GoneReason::ClosedByPeer { code: None });
                    return false;
                }
                Ok(count) => {
                    if !self.take(index, &buffer[..count]) {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.leave(index, GoneReason::Failed(error.kind()));
                    return false;
                }
            }
        }
        true
    }

    /// Processes received bytes and returns whether the connection still exists.
    pub(super) fn take(&mut self, index: usize, bytes: &[u8]) -> bool {
        let connection = &mut self.connections[index];
        let key = connection.key;
        match &mut connection.input {
            Some(input) if !input.is_done_reading => {
                input.unanswered_pings = 0;
                self.take_frames(index, bytes);
            }
            _ => self.discard(index, bytes.len()),
        }
        self.by_key.contains_key(&key)
    }

    /// Continues reading after a pause.
    pub(super) fn resume(&mut self, index: usize) {
        let Some(input) = &mut self.connections[index].input else { return };
        if !std::mem::take(&mut input.is_paused) {
            return;
        }
        let held = std::mem::take(&mut input.held);
        let key = self.connections[index].key;
        if self.take(index, &held) {
            self.unread.push(key);
        }
    }

    fn discard(&mut self, index: usize, count: usize) {
        let connection = &mut self.connections[index];
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        connection.discarded_bytes = connection.discarded_bytes.saturating_add(count);
        if connection.discarded_bytes > MAX_DISCARDED_BYTES {
            self.leave(index, GoneReason::UnexpectedBytes);
        }
    }

    fn take_frames(&mut self, index: usize, mut bytes: &[u8]) {
        loop {
            let connection = &mut self.connections[index];
            let (key, is_open) = (connection.key, connection.is_open());
            let Some(input) = &mut connection.input else { return };
            let incoming = match input.decoder.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(incoming)) => incoming,
                Err(violation) => return self.violate(index, violation),
            };
            if !input.is_within_rate(self.now_ms, self.settings.max_messages_per_second) {
                return self.violate(index, WebSocketViolation::TooManyMessages);
            }
            match incoming {
                Incoming::Text(text) if is_open => {
                    let flow = self.report(WireReport::Message { connection: key, text });
                    if flow == Flow::Pause {
                        return self.pause(index, bytes);
                    }
                }
                Incoming::Ping(content) => {
                    let mut pong = Vec::new();
                    websocket::pong(&content, None, &mut pong);
                    self.push(index, BacklogItem::Own(pong.into_boxed_slice()));
                    if !self.by_key.contains_key(&key) {
                        return;
                    }
                }
                Incoming::Close { code, .. } => return self.peer_closes(index, code),
                // A message between our close and the answer to it is too late.
                Incoming::Pong(_) | Incoming::Text(_) => {}
            }
        }
    }

    fn pause(&mut self, index: usize, held: &[u8]) {
        if let Some(input) = &mut self.connections[index].input {
            input.is_paused = true;
            input.held = held.to_vec();
        }
    }
}
