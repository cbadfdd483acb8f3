//! How connections end: the last bytes, the WebSocket close handshake in both directions (RFC 6455 §7), and a
//! time limit for the peer.
//!
//! Each connection is reported gone exactly once.

use std::io;

use serde_json::json;

use super::backlog::BacklogItem;
use super::connection::ConnectionPhase;
use super::event_loop::EventLoop;
use super::{GoneReason, MAX_CONNECTIONS, WireReport};
use crate::chunk::LAST_CHUNK;
use crate::packet::Protocol;
use crate::websocket::{self, WebSocketViolation};

/// The type of the message that ends a connection on wires without a close frame. It carries the code and the
/// reason that a WebSocket would have (B.2.6).
pub const CLOSED: &str = "agentvoice:closed";

impl EventLoop {
    /// Ends an open connection from our side. It is reported when the peer has accepted the end or the time limit
    /// is over.
    pub(super) fn end(
        &mut self,
        index: usize,
        code: u16,
        reason: &str,
        after_flush: bool,
        why: GoneReason,
    ) {
        let connection = &mut self.connections[index];
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
                // The message is the only way to end this wire; nothing is read after it.
                if let Some(input) = &mut connection.input {
                    input.is_done_reading = true;
                }
                let closed = json!({ "type": CLOSED, "code": code, "reason": reason });
                let mut bytes = Vec::new();
                framing.message(closed.to_string().as_bytes(), &mut bytes);
                bytes.into_boxed_slice()
            }
        };
        connection.push(BacklogItem::Own(last));
        connection.phase = ConnectionPhase::Ending;
        connection.unreported = Some(why);
        let key = connection.key;
        let late_ms =
            u32::try_from(self.settings.close_timeout.as_millis()).unwrap_or(u32::MAX / 2);
        self.ending.push_back((self.now_ms.wrapping_add(late_ms), key));
        if self.ending.len() > MAX_CONNECTIONS {
            self.leave_first();
        }
        if self.by_key.contains_key(&key) {
            self.touch(index);
        }
    }

    /// Handles a peer that broke a rule: tells it which one, and ignores it from then on.
    pub(super) fn violate(&mut self, index: usize, violation: WebSocketViolation) {
        let why = GoneReason::Violation(violation);
        let connection = &mut self.connections[index];
        if !connection.is_open() {
            // Our own close is sent; nothing else is worth waiting for.
            return self.leave(index, why);
        }
        if let Some(input) = &mut connection.input {
            input.is_done_reading = true;
        }
        let key = connection.key;
        self.end(index, violation.close_code(), &violation.to_string(), false, why);
        self.tell(index);
        // Written at once: a peer that keeps sending is dropped before the end of the turn.
        if self.by_key.contains_key(&key) {
            self.flush(index);
        }
    }

    /// Handles a client's WebSocket close frame: the answer to ours, or the first one, which gets an answer.
    pub(super) fn peer_closes(&mut self, index: usize, code: Option<u16>) {
        let connection = &mut self.connections[index];
        if let Some(input) = &mut connection.input {
            input.is_done_reading = true;
            input.has_peer_closed = true;
        }
        if connection.phase == ConnectionPhase::Ended {
            self.leave(index, GoneReason::ClosedByPeer { code });
            return;
        }
        // 1005 stands for a missing code here, so that the answering close is empty too.
        self.end(index, code.unwrap_or(1005), "", false, GoneReason::ClosedByPeer { code });
        self.tell(index);
    }

    /// Handles a connection whose queue is empty. If it was ending, its last bytes are sent.
    pub(super) fn all_is_written(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if connection.phase != ConnectionPhase::Ending {
            return;
        }
        connection.phase = ConnectionPhase::Ended;
        let (is_done_reading, has_peer_closed) = connection
            .input
            .as_ref()
            .map_or((true, false), |it| (it.is_done_reading, it.has_peer_closed));
        if has_peer_closed {
            self.leave(index, GoneReason::ClosedByUs);
        } else if is_done_reading {
            // The peer sees the end and closes its side. Closing ours at once, with unread bytes of the peer,
            // would make the kernel discard what the peer has not read yet.
            match connection.stream.end_writing() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    self.leave(index, GoneReason::Failed(error.kind()));
                }
                _ => connection.is_blocked = connection.stream.has_unsent(),
            }
        }
    }

    /// Reports an ending connection as gone already, because its peer has caused the end.
    fn tell(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        if let Some(why) = connection.unreported.take() {
            let connection = connection.key;
            let subscriber = self.forget_subscriber(index);
            self.report(WireReport::Gone { connection, subscriber, why });
        }
    }

    /// Drops a connection. If it was ending, the earlier reason is reported, not this one.
    pub(super) fn leave(&mut self, index: usize, why: GoneReason) {
        let was_open = self.connections[index].is_open();
        let subscriber = self.forget_subscriber(index);
        let mut connection = self.connections.remove(index);
        self.by_key.remove(&connection.key);
        connection.stream.deregister(self.poll.registry());
        let why = if was_open { Some(why) } else { connection.unreported };
        let key = connection.key;
        // Closed before it is reported, so that the receiver of the report finds nothing left.
        drop(connection);
        if let Some(why) = why {
            self.report(WireReport::Gone { connection: key, subscriber, why });
        }
    }

    /// Drops the connections whose peers did not answer the end in time.
    pub(super) fn drop_late_connections(&mut self) {
        while let Some((at, _)) = self.ending.front() {
            let late_ms = self.now_ms.wrapping_sub(*at);
            // A difference of less than half the range means that the time has come.
            if late_ms > u32::MAX / 2 {
                return;
            }
            self.leave_first();
        }
    }

    fn leave_first(&mut self) {
        let Some((_, key)) = self.ending.pop_front() else { return };
        if let Some(index) = self.by_key.get(&key) {
            self.leave(*index, GoneReason::ClosedByUs);
        }
    }

    pub(super) fn leave_all(&mut self, why: GoneReason) {
        let places: Vec<usize> = self.connections.iter().map(|(index, _)| index).collect();
        for index in places {
            self.leave(index, why);
        }
    }
}
