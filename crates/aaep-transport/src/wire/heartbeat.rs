//! Signs of life for idle connections, from one coarse sweep over all connections.
//!
//! A write only has to note the time. Each sweep visits a small part of the connections, so that it hardly delays
//! an event.

use std::time::Duration;

use super::backlog::BacklogItem;
use super::event_loop::EventLoop;
use super::{GoneReason, MAX_HEARTBEAT, WireSettings};
use crate::packet::Protocol;
use crate::{chunk, sse, websocket};

/// How often every connection is visited within one heartbeat.
const VISITS_PER_HEARTBEAT: u32 = 4;

/// Into how many parts one round of visits is divided.
const PARTS: u32 = 8;

/// How many pings a WebSocket client may leave unanswered.
const MAX_UNANSWERED_PINGS: u8 = 2;

/// The position of the sweep.
pub(super) struct HeartbeatSweep {
    part_ms: u32,
    /// How long a connection must have been idle to get a sign of life at a visit.
    due_ms: u32,
    next_at_ms: u32,
    index: usize,
}

impl HeartbeatSweep {
    pub(super) fn new(settings: &WireSettings) -> Self {
        let heartbeat_ms = settings.heartbeat.min(MAX_HEARTBEAT).as_millis();
        let heartbeat_ms = u32::try_from(heartbeat_ms).expect("at most fifteen seconds");
        let part_ms = (heartbeat_ms / VISITS_PER_HEARTBEAT / PARTS).max(1);
        // Early by one round of visits and one part, so that it is never late.
        let early_ms = part_ms * (PARTS + 1);
        Self { part_ms, due_ms: heartbeat_ms.saturating_sub(early_ms), next_at_ms: 0, index: 0 }
    }

    /// The time until the next part.
    pub(super) fn wait(&self, now_ms: u32) -> Duration {
        let wait_ms = self.next_at_ms.wrapping_sub(now_ms);
        Duration::from_millis(u64::from(if wait_ms > self.part_ms { 0 } else { wait_ms }))
    }
}

impl EventLoop {
    /// Sweeps as many parts as are due, after a long turn at most all of them.
    pub(super) fn send_due_heartbeats(&mut self) {
        for _ in 0..PARTS {
            if !self.sweep.wait(self.now_ms).is_zero() {
                return;
            }
            let count = self.connections.capacity().div_ceil(PARTS as usize);
            let from =
                if self.sweep.index < self.connections.capacity() { self.sweep.index } else { 0 };
            for index in from..from + count {
                if self.connections.contains(index) {
                    self.visit(index);
                }
            }
            self.sweep.index = from + count;
            let missed_ms = self.now_ms.wrapping_sub(self.sweep.next_at_ms);
            let is_far_behind = missed_ms > self.sweep.part_ms * PARTS;
            let from_ms = if is_far_behind { self.now_ms } else { self.sweep.next_at_ms };
            self.sweep.next_at_ms = from_ms.wrapping_add(self.sweep.part_ms);
        }
    }

    fn visit(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let idle_ms = self.now_ms.wrapping_sub(connection.written_ms);
        if idle_ms < self.sweep.due_ms || connection.is_blocked || !connection.is_open() {
            return;
        }
        if let Some(input) = &mut connection.input
            && connection.protocol == Protocol::WebSocket
            && !input.is_paused
        {
            if input.unanswered_pings >= MAX_UNANSWERED_PINGS {
                self.leave(index, GoneReason::Silent);
                return;
            }
            input.unanswered_pings += 1;
        }
        let sign = sign_of_life(connection.protocol);
        connection.push(BacklogItem::Own(sign));
        self.flush(index);
    }
}

fn sign_of_life(protocol: Protocol) -> Box<[u8]> {
    let mut bytes = Vec::new();
    match protocol {
        Protocol::SseChunked { .. } => chunk::chunk(sse::HEARTBEAT, &mut bytes),
        Protocol::SsePlain { .. } => bytes.extend_from_slice(sse::HEARTBEAT),
        Protocol::WebSocket => websocket::ping(b"", None, &mut bytes),
        // On one machine the kernel reports at once that a peer is gone.
        Protocol::Framed(_) => {}
    }
    bytes.into_boxed_slice()
}
