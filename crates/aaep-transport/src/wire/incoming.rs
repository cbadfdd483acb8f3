//! What clients send: messages where they have something to say, nothing worth keeping elsewhere.
//!
//! Everything is read into the loop's one buffer. A connection keeps only a message that is not yet whole,
//! or what came behind a pause.

use std::io;

use super::backlog::Item;
use super::event_loop::EventLoop;
use super::{Flow, MAX_DISCARDED_BYTES, Report, Why};
use crate::websocket::{self, Incoming, Violation};

/// How often one connection is read before the others have their turn.
const MAX_READS_PER_TURN: usize = 4;

impl EventLoop {
    /// Reads what has come, up to a fair share.
    pub(super) fn read(&mut self, place: usize) {
        let Some(key) = self.connections.get(place).map(|it| it.key) else { return };
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let is_unread = self.read_into(place, &mut buffer);
        self.read_buffer = buffer;
        if is_unread && self.by_key.contains_key(&key) {
            self.unread.push(key);
        }
    }

    /// Says whether there may be more.
    fn read_into(&mut self, place: usize, buffer: &mut [u8]) -> bool {
        for _ in 0..MAX_READS_PER_TURN {
            let connection = &mut self.connections[place];
            if connection.hearing.as_ref().is_some_and(|it| it.is_paused) {
                return false;
            }
            match connection.stream.read(buffer) {
                Ok(0) => {
                    self.leave(place, Why::ClosedByPeer { code: None });
                    return false;
                }
                Ok(count) => {
                    if !self.take(place, &buffer[..count]) {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.leave(place, Why::Failed(error.kind()));
                    return false;
                }
            }
        }
        true
    }

    /// Takes bytes that have come and says whether the connection is still there.
    pub(super) fn take(&mut self, place: usize, bytes: &[u8]) -> bool {
        let connection = &mut self.connections[place];
        let key = connection.key;
        match &mut connection.hearing {
            Some(hearing) if !hearing.is_heard_out => {
                hearing.unanswered_pings = 0;
                self.take_frames(place, bytes);
            }
            _ => self.discard(place, bytes.len()),
        }
        self.by_key.contains_key(&key)
    }

    /// Reads on where a pause was asked for.
    pub(super) fn resume(&mut self, place: usize) {
        let Some(hearing) = &mut self.connections[place].hearing else { return };
        if !std::mem::take(&mut hearing.is_paused) {
            return;
        }
        let held = std::mem::take(&mut hearing.held);
        let key = self.connections[place].key;
        if self.take(place, &held) {
            self.unread.push(key);
        }
    }

    fn discard(&mut self, place: usize, count: usize) {
        let connection = &mut self.connections[place];
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        connection.discarded_bytes = connection.discarded_bytes.saturating_add(count);
        if connection.discarded_bytes > MAX_DISCARDED_BYTES {
            self.leave(place, Why::UnexpectedBytes);
        }
    }

    fn take_frames(&mut self, place: usize, mut bytes: &[u8]) {
        loop {
            let connection = &mut self.connections[place];
            let (key, is_open) = (connection.key, connection.is_open());
            let Some(hearing) = &mut connection.hearing else { return };
            let incoming = match hearing.decoder.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(incoming)) => incoming,
                Err(violation) => return self.violate(place, violation),
            };
            if !hearing.is_within_rate(self.now_ms, self.settings.max_messages_per_second) {
                return self.violate(place, Violation::TooManyMessages);
            }
            match incoming {
                Incoming::Text(text) if is_open => {
                    let flow = self.report(Report::Message { connection: key, text });
                    if flow == Flow::Pause {
                        return self.pause(place, bytes);
                    }
                }
                Incoming::Ping(content) => {
                    let mut pong = Vec::new();
                    websocket::pong(&content, None, &mut pong);
                    self.push(place, Item::Own(pong.into_boxed_slice()));
                    if !self.by_key.contains_key(&key) {
                        return;
                    }
                }
                Incoming::Close { code, .. } => return self.peer_closes(place, code),
                // What comes between our close and the answer to it is too late.
                Incoming::Pong(_) | Incoming::Text(_) => {}
            }
        }
    }

    fn pause(&mut self, place: usize, held: &[u8]) {
        if let Some(hearing) = &mut self.connections[place].hearing {
            hearing.is_paused = true;
            hearing.held = held.to_vec();
        }
    }
}
