//! How connections end: the last bytes, the WebSocket close handshake in both directions (RFC 6455 §7),
//! and patience with a bound.
//!
//! Each connection is reported gone exactly once.

use std::io;

use serde_json::json;

use super::backlog::Item;
use super::connection::Phase;
use super::event_loop::EventLoop;
use super::{MAX_CONNECTIONS, Report, Why};
use crate::chunk::LAST_CHUNK;
use crate::packet::Protocol;
use crate::websocket::{self, Violation};

/// The type of the message that ends a connection where the wire itself has no word for it. It has the code
/// and the reason that a WebSocket would have (B.2.6).
pub const CLOSED: &str = "agentvoice:closed";

impl EventLoop {
    /// Ends an open connection from our side; reported when the peer has taken it or patience ends.
    pub(super) fn end(
        &mut self,
        place: usize,
        code: u16,
        reason: &str,
        after_flush: bool,
        why: Why,
    ) {
        let connection = &mut self.connections[place];
        if !connection.is_open() {
            return;
        }
        if !after_flush {
            connection.backlog.drop_unbegun(connection.protocol);
        }
        let last: Box<[u8]> = match connection.protocol {
            Protocol::SseChunked { .. } => LAST_CHUNK.into(),
            Protocol::SsePlain { .. } => Box::default(),
            Protocol::WebSocket => {
                let mut bytes = Vec::new();
                websocket::close(code, reason, None, &mut bytes);
                bytes.into_boxed_slice()
            }
            Protocol::Framed(framing) => {
                // There is no word for the end but its message; nothing is heard after it.
                if let Some(hearing) = &mut connection.hearing {
                    hearing.is_heard_out = true;
                }
                let closed = json!({ "type": CLOSED, "code": code, "reason": reason });
                let mut bytes = Vec::new();
                framing.message(closed.to_string().as_bytes(), &mut bytes);
                bytes.into_boxed_slice()
            }
        };
        connection.push(Item::Own(last));
        connection.phase = Phase::Ending;
        connection.untold = Some(why);
        let key = connection.key;
        let late_ms =
            u32::try_from(self.settings.close_timeout.as_millis()).unwrap_or(u32::MAX / 2);
        self.ending.push_back((self.now_ms.wrapping_add(late_ms), key));
        if self.ending.len() > MAX_CONNECTIONS {
            self.leave_first();
        }
        if self.by_key.contains_key(&key) {
            self.touch(place);
        }
    }

    /// A peer broke a rule: it is told which, and not listened to again.
    pub(super) fn violate(&mut self, place: usize, violation: Violation) {
        let why = Why::Violation(violation);
        let connection = &mut self.connections[place];
        if !connection.is_open() {
            // Our own close is out; no other word is worth waiting for.
            return self.leave(place, why);
        }
        if let Some(hearing) = &mut connection.hearing {
            hearing.is_heard_out = true;
        }
        let key = connection.key;
        self.end(place, violation.close_code(), &violation.to_string(), false, why);
        self.tell(place);
        // At once: whoever goes on sending is let go before the end of the turn.
        if self.by_key.contains_key(&key) {
            self.flush(place);
        }
    }

    /// A WebSocket client sent its close frame: the answer to ours, or the first, which gets an answer.
    pub(super) fn peer_closes(&mut self, place: usize, code: Option<u16>) {
        let connection = &mut self.connections[place];
        if let Some(hearing) = &mut connection.hearing {
            hearing.is_heard_out = true;
            hearing.has_peer_closed = true;
        }
        if connection.phase == Phase::Ended {
            self.leave(place, Why::ClosedByPeer { code });
            return;
        }
        // Without a code, 1005 stands for it here, which makes the answer as empty as the question.
        self.end(place, code.unwrap_or(1005), "", false, Why::ClosedByPeer { code });
        self.tell(place);
    }

    /// Nothing waits for this connection. If it was ending, its last bytes are out.
    pub(super) fn all_is_written(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if connection.phase != Phase::Ending {
            return;
        }
        connection.phase = Phase::Ended;
        let (is_heard_out, has_peer_closed) = connection
            .hearing
            .as_ref()
            .map_or((true, false), |it| (it.is_heard_out, it.has_peer_closed));
        if has_peer_closed {
            self.leave(place, Why::ClosedByUs);
        } else if is_heard_out {
            // The peer sees the end and closes its side. Closing ours at once, with bytes of the peer
            // unread, would make the kernel throw away what the peer has not read yet.
            match connection.stream.end_writing() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    self.leave(place, Why::Failed(error.kind()));
                }
                _ => connection.is_blocked = connection.stream.has_unsent(),
            }
        }
    }

    /// Reports a connection that is ending as gone already, because its peer has caused it.
    fn tell(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if let Some(why) = connection.untold.take() {
            let connection = connection.key;
            let subscriber = self.forget_subscriber(place);
            self.report(Report::Gone { connection, subscriber, why });
        }
    }

    /// Lets a connection go. If it was ending, it is for the reason that it had, not for this one.
    pub(super) fn leave(&mut self, place: usize, why: Why) {
        let was_open = self.connections[place].is_open();
        let subscriber = self.forget_subscriber(place);
        let mut connection = self.connections.remove(place);
        self.by_key.remove(&connection.key);
        connection.stream.deregister(self.poll.registry());
        let why = if was_open { Some(why) } else { connection.untold };
        let key = connection.key;
        // Closed before it is told, so that whoever hears it finds nothing left.
        drop(connection);
        if let Some(why) = why {
            self.report(Report::Gone { connection: key, subscriber, why });
        }
    }

    /// Lets those go who did not answer the end in time.
    pub(super) fn leave_the_late(&mut self) {
        while let Some((at, _)) = self.ending.front() {
            let late_ms = self.now_ms.wrapping_sub(*at);
            // Less than half the circle ahead means that the time has come.
            if late_ms > u32::MAX / 2 {
                return;
            }
            self.leave_first();
        }
    }

    fn leave_first(&mut self) {
        let Some((_, key)) = self.ending.pop_front() else { return };
        if let Some(place) = self.by_key.get(&key) {
            self.leave(*place, Why::ClosedByUs);
        }
    }

    pub(super) fn leave_all(&mut self, why: Why) {
        let places: Vec<usize> = self.connections.iter().map(|(place, _)| place).collect();
        for place in places {
            self.leave(place, why);
        }
    }
}
