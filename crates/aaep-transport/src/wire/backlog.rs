//! The queue of one connection: shared packets in order, and how far the first one has been written.
//!
//! When empty, it owns no memory. A single packet needs none either.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use super::{MAX_BACKLOG_BYTES, MAX_BACKLOG_PACKETS};
use crate::packet::{Protocol, WirePacket};

/// The most slices in one write.
pub(super) const MAX_SLICES: usize = 64;

/// The approximate number of bytes in one write.
const MAX_WRITE_BYTES: usize = 256 << 10;

/// The most events that are given back at once. The caller remembers a subscriber's position for slightly more
/// events.
const MAX_WITHDRAWN: usize = 100;

/// Something to write.
#[derive(Debug)]
pub(super) enum BacklogItem {
    /// A packet that many connections share.
    Packet(Arc<WirePacket>),
    /// A control frame, a heartbeat or a final message, for this connection alone.
    Own(Box<[u8]>),
}

impl BacklogItem {
    pub(super) fn bytes(&self, protocol: Protocol) -> &[u8] {
        match self {
            Self::Packet(packet) => packet.bytes(protocol),
            Self::Own(bytes) => bytes,
        }
    }

    /// The packet, if it carries an event.
    fn event(&self) -> Option<&Arc<WirePacket>> {
        match self {
            Self::Packet(packet) if !packet.event_id().is_empty() => Some(packet),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct WriteBacklog {
    first: Option<BacklogItem>,
    rest: VecDeque<BacklogItem>,
    /// How much of the first item is written.
    written: usize,
    /// How many bytes of all items are not written yet.
    bytes: usize,
}

impl WriteBacklog {
    pub(super) fn push(&mut self, item: BacklogItem, protocol: Protocol) {
        let length = item.bytes(protocol).len();
        if length == 0 {
            return;
        }
        self.bytes += length;
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn is_over(&self) -> bool {
        // A single message may have any length: otherwise it could never be delivered.
        let is_one = self.rest.is_empty();
        (self.bytes > MAX_BACKLOG_BYTES && !is_one) || self.rest.len() >= MAX_BACKLOG_PACKETS
    }

    /// The bytes to write, if they are one slice.
    pub(super) fn only(&self, protocol: Protocol) -> Option<&[u8]> {
        let first = self.first.as_ref().filter(|_| self.rest.is_empty())?;
        Some(&first.bytes(protocol)[self.written..])
    }

    /// Fills in the slices for one write and returns their number.
    pub(super) fn gather<'a>(&'a self, protocol: Protocol, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut bytes = 0;
        for (slice, item) in slices.iter_mut().zip(self.first.iter().chain(&self.rest)) {
            let skipped = if count == 0 { self.written } else { 0 };
            let part = &item.bytes(protocol)[skipped..];
            *slice = IoSlice::new(part);
            count += 1;
            bytes += part.len();
            if bytes >= MAX_WRITE_BYTES {
                break;
            }
        }
        count
    }

    /// Records that this many bytes were written.
    pub(super) fn advance(&mut self, mut count: usize, protocol: Protocol) {
        self.bytes -= count;
        while let Some(item) = &self.first {
            let left = item.bytes(protocol).len() - self.written;
            if count < left {
                self.written += count;
                return;
            }
            count -= left;
            self.written = 0;
            self.first = self.rest.pop_front();
        }
        // The queue is empty: free its memory.
        self.rest = VecDeque::new();
    }

    /// Whether a critical event is queued behind other events that are not begun. The first event counts as
    /// begun.
    pub(super) fn has_critical_behind_others(&self) -> bool {
        let events = self.first.iter().chain(&self.rest).filter_map(BacklogItem::event);
        let waiting = events.skip(1).skip_while(|packet| packet.is_critical());
        waiting.skip(1).any(|packet| packet.is_critical())
    }

    /// Drops all events after the first one, and returns the packet of the first one. Returns `None` if there is
    /// nothing to drop, or more than can be given back. Items that are not events stay.
    pub(super) fn withdraw(&mut self, protocol: Protocol) -> Option<Arc<WirePacket>> {
        let mut events = self.first.iter().chain(&self.rest).filter_map(BacklogItem::event);
        let kept = Arc::clone(events.next()?);
        if !(1..=MAX_WITHDRAWN).contains(&events.count()) {
            return None;
        }
        let mut is_kept = self.first.as_ref().is_some_and(|it| it.event().is_some());
        let mut dropped = 0;
        self.rest.retain(|item| {
            let stays = item.event().is_none() || !std::mem::replace(&mut is_kept, true);
            if !stays {
                dropped += item.bytes(protocol).len();
            }
            stays
        });
        self.bytes -= dropped;
        Some(kept)
    }

    /// Drops everything except an item that is partly written and must be finished.
    pub(super) fn drop_unbegun(&mut self, protocol: Protocol) {
        self.rest = VecDeque::new();
        if self.written == 0 {
            self.first = None;
        }
        self.bytes = self.first.as_ref().map_or(0, |it| it.bytes(protocol).len() - self.written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Protocol = Protocol::SsePlain { named: false };

    fn own(text: &str) -> BacklogItem {
        BacklogItem::Own(text.as_bytes().into())
    }

    fn waiting(backlog: &WriteBacklog) -> String {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let count = backlog.gather(PLAIN, &mut slices);
        slices[..count].iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
    }

    #[test]
    fn partial_writes_lose_and_repeat_nothing() {
        for step in 1..12 {
            let mut backlog = WriteBacklog::default();
            for text in ["ab", "", "cdef", "g", "hijk"] {
                backlog.push(own(text), PLAIN);
            }
            let mut out = String::new();
            while !backlog.is_empty() {
                let next = waiting(&backlog);
                let taken = step.min(next.len());
                out.push_str(&next[..taken]);
                backlog.advance(taken, PLAIN);
            }
            assert_eq!(out, "abcdefghijk");
            assert_eq!((backlog.bytes, backlog.rest.capacity()), (0, 0));
        }
    }

    #[test]
    fn dropping_keeps_what_is_half_written() {
        let mut backlog = WriteBacklog::default();
        for text in ["abc", "def"] {
            backlog.push(own(text), PLAIN);
        }
        backlog.advance(1, PLAIN);
        backlog.drop_unbegun(PLAIN);
        backlog.push(own("!"), PLAIN);
        assert_eq!((waiting(&backlog).as_str(), backlog.bytes), ("bc!", 3));
        backlog.advance(2, PLAIN);
        backlog.drop_unbegun(PLAIN);
        assert!(backlog.is_empty());
    }

    fn event(id: &str, is_critical: bool) -> BacklogItem {
        let packet = WirePacket::new(id, format!("{{\"{id}\":1}}"));
        BacklogItem::Packet(Arc::new(packet.critical(is_critical)))
    }

    #[test]
    fn withdrawing_leaves_the_first_event_and_everything_that_is_not_an_event() {
        let mut backlog = WriteBacklog::default();
        backlog.push(own("beat;"), PLAIN);
        for id in ["evt_1", "evt_2"] {
            backlog.push(event(id, false), PLAIN);
        }
        backlog.push(own("pong;"), PLAIN);
        assert!(!backlog.has_critical_behind_others());
        backlog.push(event("evt_3", true), PLAIN);
        assert!(backlog.has_critical_behind_others());
        let kept = backlog.withdraw(PLAIN).map(|it| it.event_id().to_owned());
        assert_eq!(kept.as_deref(), Some("evt_1"));
        let left = "beat;id: evt_1\ndata: {\"evt_1\":1}\n\npong;";
        assert_eq!((waiting(&backlog).as_str(), backlog.bytes), (left, left.len()));
        assert!(backlog.withdraw(PLAIN).is_none(), "there is nothing more to give back");
    }

    #[test]
    fn critical_events_one_after_the_other_wait_for_nobody() {
        let mut backlog = WriteBacklog::default();
        for (id, is_critical) in [("evt_1", false), ("evt_2", true), ("evt_3", true)] {
            backlog.push(event(id, is_critical), PLAIN);
        }
        assert!(!backlog.has_critical_behind_others(), "the first event counts as begun");
        backlog.push(event("evt_4", false), PLAIN);
        assert!(!backlog.has_critical_behind_others());
        backlog.push(event("evt_5", true), PLAIN);
        assert!(backlog.has_critical_behind_others());
    }

    #[test]
    fn more_than_can_be_taken_back_is_not_given_back() {
        let mut backlog = WriteBacklog::default();
        (0..=MAX_WITHDRAWN).for_each(|_| backlog.push(event("evt_1", false), PLAIN));
        backlog.push(event("evt_2", true), PLAIN);
        assert!(backlog.withdraw(PLAIN).is_none());
        assert_eq!(backlog.rest.len(), MAX_WITHDRAWN + 1);
    }

    #[test]
    fn both_bounds_are_noticed() {
        let mut backlog = WriteBacklog::default();
        backlog.push(BacklogItem::Own(vec![0; MAX_BACKLOG_BYTES].into()), PLAIN);
        assert!(!backlog.is_over());
        backlog.push(own("x"), PLAIN);
        assert!(backlog.is_over());
        let mut backlog = WriteBacklog::default();
        (0..MAX_BACKLOG_PACKETS).for_each(|_| backlog.push(own("x"), PLAIN));
        assert!(!backlog.is_over());
        backlog.push(own("x"), PLAIN);
        assert!(backlog.is_over());
    }
}
