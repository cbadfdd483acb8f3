//! Replays the events that are needed to resume after a start, one at a time.
//!
//! Running sessions are replayed completely, however long they are; of long ended ones only the end. For each
//! session, one chunk is in memory. A row that cannot be read ends its session here and is reported; nothing is
//! skipped silently.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aaep::SessionId;

use crate::store::error::ReadError;
use crate::store::fault::StoreFault;
use crate::store::reader::Reader;
use crate::store::recover::MAX_RECOVERED_EVENTS;
use crate::store::session::{StoredEvent, StoredSession, events_of};
use crate::store::table::{EVENTS, pair};

/// One step of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayedEvent {
    /// The next event.
    Event(StoredEvent),
    /// Some events of this session cannot be read, and none of its later events follow.
    Damaged(DamagedEvents),
}

/// Events that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedEvents {
    /// Their session.
    pub session_id: SessionId,
    /// What is wrong.
    pub why: String,
    /// The row that contains them.
    pub(crate) key: [u8; 16],
}

/// The events of several sessions, in one common order.
#[derive(Debug)]
pub struct Replay {
    reader: Reader,
    parts: Vec<SessionReplay>,
    /// Which part has the event with this order next.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// The parts that were not read yet.
    unread: usize,
    failed: Option<StoreFault>,
    damaged: Vec<DamagedEvents>,
}

#[derive(Debug)]
struct SessionReplay {
    session: StoredSession,
    /// The rest of the chunk in memory, the next event last.
    chunk: Vec<StoredEvent>,
    /// The smallest order at which the next chunk can begin.
    from_order: u64,
    /// How many events still have to be skipped.
    skip: u64,
}

impl Replay {
    pub(super) fn new(reader: Reader, sessions: &[StoredSession]) -> Self {
        let part = |session: &StoredSession| {
            let most = if session.ended_unix_us.is_some() {
                MAX_RECOVERED_EVENTS as u64
            } else {
                u64::MAX
            };
            let skip = session.events.saturating_sub(most);
            SessionReplay { session: session.clone(), chunk: Vec::new(), from_order: 0, skip }
        };
        let parts: Vec<SessionReplay> = sessions.iter().map(part).collect();
        let unread = parts.len();
        let (next, damaged) = (BinaryHeap::new(), Vec::new());
        Replay { reader, parts, next, unread, failed: None, damaged }
    }

    /// Reads the next chunk of a part and queues it by its first event.
    fn fill(&mut self, at: usize) {
        let Some(part) = self.parts.get_mut(at) else { return };
        while part.chunk.is_empty() {
            match part.read(&self.reader) {
                Ok(true) => {}
                Ok(false) => return,
                Err((key, StoreFault::Corrupt(why))) => {
                    let session_id = part.session.session_id.clone();
                    self.damaged.push(DamagedEvents { session_id, why, key });
                    return;
                }
                Err((_, fault)) => {
                    self.failed.get_or_insert(fault);
                    return;
                }
            }
        }
        if let Some(event) = part.chunk.last() {
            self.next.push(Reverse((event.order, at)));
        }
    }
}

impl SessionReplay {
    /// Reads the next chunk. Returns whether there was one.
    fn read(&mut self, reader: &Reader) -> Result<bool, ([u8; 16], StoreFault)> {
        let (number, from) = (self.session.number, self.from_order);
        let (first, last) = (pair(number, from), pair(number, u64::MAX));
        let mut key = first;
        let found = reader.shared.read(|transaction| {
            let chunks = transaction.open_table(EVENTS)?;
            let Some(row) = chunks.range(first..=last)?.next() else { return Ok(None) };
            let (key, chunk) = row?;
            Ok(Some((key.value(), chunk.value().to_vec())))
        });
        let Some((found, bytes)) = found.map_err(|fault| (key, fault))? else { return Ok(false) };
        key = found;
        let events =
            events_of(&self.session.session_id, &bytes, 0).map_err(|fault| (key, fault))?;
        let next_order = events.last().map_or(u64::MAX, |event| event.order.saturating_add(1));
        self.from_order = next_order.max(from.saturating_add(1));
        let skipped = self.skip.min(events.len() as u64);
        self.skip -= skipped;
        self.chunk = events;
        self.chunk.drain(..usize::try_from(skipped).unwrap_or(usize::MAX));
        self.chunk.reverse();
        Ok(true)
    }
}

impl Iterator for Replay {
    type Item = Result<ReplayedEvent, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.unread > 0 {
            self.unread -= 1;
            self.fill(self.unread);
        }
        if let Some(fault) = self.failed.take() {
            self.next.clear();
            return Some(Err(fault.into()));
        }
        if let Some(damaged) = self.damaged.pop() {
            return Some(Ok(ReplayedEvent::Damaged(damaged)));
        }
        let Reverse((_, at)) = self.next.pop()?;
        let part = self.parts.get_mut(at)?;
        let event = part.chunk.pop()?;
        match part.chunk.last() {
            Some(following) => self.next.push(Reverse((following.order, at))),
            None => self.fill(at),
        }
        Some(Ok(ReplayedEvent::Event(event)))
    }
}
