//! The index from an event id to its place, so that an event is found again without reading its session.
//!
//! A key is the number of the session and a digest of the id: the entries of a session are together, and go with it. Whoever
//! repeats an old event, however often, costs one look and one chunk each time.

use aaep::EventId;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use sha2::{Digest, Sha256};

use crate::store::fault::Fault;
use crate::store::session::{EventPlace, events_of};
use crate::store::table::{EVENT_IDS, EVENTS, SESSIONS, pair};

/// The key of an event: the number of its session, and the beginning of the digest of its id.
pub(crate) type EventIdKey = [u8; 24];

/// How much of a digest is kept: enough that nobody finds two ids with the same one.
pub(crate) const DIGEST_BYTES: usize = 16;

/// A digest of an event id.
pub(super) fn digest(id: &EventId) -> [u8; DIGEST_BYTES] {
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&Sha256::digest(id.as_str())[..DIGEST_BYTES]);
    digest
}

fn key(session: u64, digest: [u8; DIGEST_BYTES]) -> EventIdKey {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&session.to_be_bytes());
    key[8..].copy_from_slice(&digest);
    key
}

/// Writes down where these events of a session are.
pub(super) fn add(
    transaction: &WriteTransaction,
    session: u64,
    places: &[EventPlace],
) -> Result<(), Fault> {
    let mut table = transaction.open_table(EVENT_IDS)?;
    for EventPlace { digest, order } in places {
        table.insert(key(session, *digest), order)?;
    }
    Ok(())
}

/// The order of an event of a session; none if the session never had it.
pub(super) fn find(
    transaction: &ReadTransaction,
    session: u64,
    id: &EventId,
) -> Result<Option<u64>, Fault> {
    let table = transaction.open_table(EVENT_IDS)?;
    Ok(table.get(key(session, digest(id)))?.map(|order| order.value()))
}

/// Forgets all events of a session.
pub(super) fn remove_session(transaction: &WriteTransaction, session: u64) -> Result<(), Fault> {
    let all = key(session, [0; DIGEST_BYTES])..=key(session, [255; DIGEST_BYTES]);
    transaction.open_table(EVENT_IDS)?.retain_in(all, |_, _| false)?;
    Ok(())
}

/// Writes down where all events are, in a store whose format had no index. What cannot be read is set aside when it is
/// played again, and has no place until then.
pub(super) fn add_all(transaction: &WriteTransaction) -> Result<(), Fault> {
    let mut numbers = Vec::new();
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let (id, row) = row?;
        let number = crate::store::table::Row::new(row.value(), "sessions").number();
        if let (Ok(id), Ok(number)) = (id.value().parse(), number) {
            numbers.push((id, number));
        }
    }
    let chunks = transaction.open_table(EVENTS)?;
    for (session_id, number) in numbers {
        for row in chunks.range(pair(number, 0)..=pair(number, u64::MAX))? {
            let Ok(events) = events_of(&session_id, row?.1.value(), 0) else { continue };
            let place = |event: &crate::store::StoredEvent| EventPlace {
                digest: digest(&event.event_id),
                order: event.order,
            };
            add(transaction, number, &events.iter().map(place).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}
