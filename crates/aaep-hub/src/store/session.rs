//! A session as it is stored, and its events in chunks.
//!
//! The events that one commit adds to a session form one row, or a few if they are large. That makes large
//! groups cheap: one row of fifty kilobytes takes one run of pages, a hundred rows take a hundred inserts.

use std::sync::Arc;

use aaep::{EventId, SessionId};
use aaep_engine::PrincipalNumber;
use sha2::{Digest, Sha256};

use crate::store::event_ids::{RunEntry, entry_of};
use crate::store::fault::StoreFault;
use crate::store::table::RowReader;

/// A session as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Its id.
    pub session_id: SessionId,
    /// The number of its agent in stores from when agents had numbers; 0 since.
    pub agent: u64,
    /// The principal that it belongs to.
    pub principal: PrincipalNumber,
    /// When its first event was taken in.
    pub first_unix_us: i64,
    /// When its last event was taken in.
    pub last_unix_us: i64,
    /// When it ended; `None` while it runs.
    pub ended_unix_us: Option<i64>,
    /// How many events it has.
    pub events: u64,
    /// How many bytes the events have.
    pub bytes: u64,
    pub(crate) number: u64,
    /// Its agent and which subscribers may hear it, as JSON; empty if it was stored before that was known.
    pub about: Arc<[u8]>,
    /// How much time was counted when it ended; zero before that, and in stores that did not count yet.
    pub(crate) ended_counted_us: u64,
}

impl StoredSession {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(72);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.agent.to_le_bytes());
        bytes.extend(self.principal.0.to_le_bytes());
        bytes.extend(self.first_unix_us.to_le_bytes());
        bytes.extend(self.last_unix_us.to_le_bytes());
        bytes.extend(self.ended_unix_us.unwrap_or(i64::MIN).to_le_bytes());
        bytes.extend(self.events.to_le_bytes());
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(self.ended_counted_us.to_le_bytes());
        bytes.extend(&*self.about);
        bytes
    }

    pub(crate) fn parse(session_id: SessionId, bytes: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(bytes, "sessions");
        Ok(StoredSession {
            session_id,
            number: row.number()?,
            agent: row.number()?,
            principal: PrincipalNumber(row.number()?),
            first_unix_us: row.moment()?,
            last_unix_us: row.moment()?,
            ended_unix_us: row.optional_moment()?,
            events: row.number()?,
            bytes: row.number()?,
            // Rows of earlier versions end here.
            ended_counted_us: if row.is_empty() { 0 } else { row.number()? },
            about: row.rest().into(),
        })
    }
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its position among all events of this store.
    pub order: u64,
    /// Its session.
    pub session_id: SessionId,
    /// Its id.
    pub event_id: EventId,
    /// The agent that the session belongs to.
    pub agent: u64,
    /// Whether the hub made it, not the agent.
    pub by_hub: bool,
    /// When it was taken in.
    pub unix_us: i64,
    /// The event as it was taken in.
    pub json: Arc<[u8]>,
}

/// Who made an event, as one byte of its row.
const BY_AGENT: u8 = 2;
const BY_HUB: u8 = 3;

/// Reads who made an event. Up to format 6, that byte was 0 or 1, and another one followed which said whether the
/// event is critical. The event itself says that.
fn is_by_hub(row: &mut RowReader<'_>) -> Result<bool, StoreFault> {
    match row.array()? {
        [BY_AGENT] => Ok(false),
        [BY_HUB] => Ok(true),
        [before @ (0 | 1)] => {
            row.flag()?;
            Ok(before == 1)
        }
        _ => Err(StoreFault::row("events")),
    }
}

/// The facts of an event apart from its session and its JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventFacts<'a> {
    pub(crate) order: u64,
    pub(crate) event_id: &'a EventId,
    pub(crate) agent: u64,
    pub(crate) by_hub: bool,
    pub(crate) unix_us: i64,
}

/// How many bytes at the beginning of a chunk are its checksum. redb checks its pages only after a crash; what
/// people are told is checked at every read.
const CHECKSUM_BYTES: usize = 8;

/// The most bytes in a chunk, unless it is a single event, so that readers hold little at a time. With its key
/// it just fits into sixty-four kilobytes, because redb rounds rows up to powers of two.
const MAX_CHUNK_BYTES: usize = (64 << 10) - 256;

/// The most bytes that an event takes in addition to its JSON.
const MAX_FACTS_BYTES: usize = 128;

/// Events that one commit adds to one session.
#[derive(Debug)]
pub(crate) struct EventChunk {
    bytes: Vec<u8>,
    pub(crate) first_order: u64,
    pub(crate) events: u64,
    pub(crate) ids: Vec<RunEntry>,
}

impl EventChunk {
    /// A chunk with its first event.
    pub(crate) fn begin(facts: EventFacts<'_>, json: &[u8]) -> Self {
        let bytes = vec![0; CHECKSUM_BYTES];
        let mut chunk = EventChunk { bytes, first_order: facts.order, events: 0, ids: Vec::new() };
        chunk.push(facts, json);
        chunk
    }

    /// Whether there is room for another event.
    pub(crate) fn has_room(&self, json: &[u8]) -> bool {
        self.bytes.len() + MAX_FACTS_BYTES + json.len() <= MAX_CHUNK_BYTES
    }

    pub(crate) fn push(&mut self, facts: EventFacts<'_>, json: &[u8]) {
        let EventFacts { order, event_id, agent, by_hub, unix_us } = facts;
        let event_id = event_id.as_str().as_bytes();
        self.ids.push(entry_of(event_id, order));
        self.bytes.reserve(48 + event_id.len() + json.len());
        self.bytes.extend(order.to_le_bytes());
        self.bytes.extend(agent.to_le_bytes());
        self.bytes.extend(unix_us.to_le_bytes());
        self.bytes.push(if by_hub { BY_HUB } else { BY_AGENT });
        self.bytes.extend((event_id.len() as u64).to_le_bytes());
        self.bytes.extend(event_id);
        self.bytes.extend((json.len() as u64).to_le_bytes());
        self.bytes.extend(json);
        self.events += 1;
    }

    /// The row, with its checksum.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        let checksum = checksum(&self.bytes[CHECKSUM_BYTES..]);
        self.bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum);
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The events of a row, from this order on.
pub(crate) fn events_of(
    session_id: &SessionId,
    bytes: &[u8],
    from_order: u64,
) -> Result<Vec<StoredEvent>, StoreFault> {
    let mut row = RowReader::new(bytes, "events");
    if row.array()? != checksum(bytes.get(CHECKSUM_BYTES..).unwrap_or_default()) {
        return Err(StoreFault::row("events"));
    }
    let mut events = Vec::new();
    while !row.is_empty() {
        let order = row.number()?;
        let agent = row.number()?;
        let unix_us = row.moment()?;
        let by_hub = is_by_hub(&mut row)?;
        let event_id = row.sized()?;
        let json = row.sized()?;
        if order < from_order {
            continue;
        }
        events.push(StoredEvent {
            order,
            session_id: session_id.clone(),
            event_id: RowReader::new(event_id, "events").parsed()?,
            agent,
            by_hub,
            unix_us,
            json: json.into(),
        });
    }
    Ok(events)
}

/// How many events a row has; `None` if it cannot be read.
pub(crate) fn checked_count(session_id: &SessionId, bytes: &[u8]) -> Option<u64> {
    events_of(session_id, bytes, 0).ok().map(|events| events.len() as u64)
}

/// The ids of the events of a row, with their orders. The checksum is verified when the event itself is read.
pub(crate) fn ids_of(bytes: &[u8]) -> Result<Vec<(&[u8], u64)>, StoreFault> {
    let mut row = RowReader::new(bytes, "events");
    row.array::<CHECKSUM_BYTES>()?;
    let mut ids = Vec::new();
    while !row.is_empty() {
        let order = row.number()?;
        let (_agent, _unix_us) = (row.number()?, row.moment()?);
        is_by_hub(&mut row)?;
        ids.push((row.sized()?, order));
        row.sized()?;
    }
    Ok(ids)
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&Sha256::digest(bytes)[..CHECKSUM_BYTES]);
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_formats_with_a_byte_for_critical_events_are_read() {
        let ids = ["evt_1", "evt_2"].map(|id| EventId::parse(id).expect("an id"));
        let session_id = SessionId::parse("sess_1").expect("an id");
        let facts = |order: u64, by_hub| EventFacts {
            order,
            event_id: &ids[usize::from(by_hub)],
            agent: 0,
            by_hub,
            unix_us: 5,
        };
        let mut chunk = EventChunk::begin(facts(1, false), b"{}");
        chunk.push(facts(2, true), b"[]");
        let row = chunk.into_bytes();
        let read = events_of(&session_id, &row, 0).expect("read");
        assert_eq!(read.iter().map(|it| it.by_hub).collect::<Vec<_>>(), [false, true]);

        let mut before = Vec::new();
        for byte in &row[CHECKSUM_BYTES..] {
            match *byte {
                BY_AGENT if before.len() == 24 => before.extend([0, 0]),
                BY_HUB => before.extend([1, 1]),
                other => before.push(other),
            }
        }
        let before = [&checksum(&before)[..], &before].concat();
        assert_eq!(before.len(), row.len() + 2, "each event took a byte more");
        assert_eq!(events_of(&session_id, &before, 0).expect("read"), read);
        assert_eq!(ids_of(&before).expect("read"), ids_of(&row).expect("read"));
    }
}
