//! The index from an event id to its position, so that an event is found without reading its whole session.
//!
//! Ids are random. With a row for each id, nearly every event would touch another page, and the pages to write
//! would be many times the size of the events. So sixteen chunks of events form one run: their ids, sorted by
//! digest. Sixteen runs of about the same length are merged into one. A long run is divided by the first bits
//! of the digests, and is never merged again. The newest chunks, fewer than sixteen, have no run yet: the
//! writer remembers their ids, and a reader looks into the chunks. However often an agent repeats an old event,
//! finding it takes a few rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use aaep::EventId;
use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};
use sha2::{Digest, Sha256};

use crate::store::fault::StoreFault;
use crate::store::session::ids_of;
use crate::store::table::{EVENT_ID_RUNS, EVENTS, OLD_EVENT_IDS, RowReader, SESSIONS, pair};

/// The key of a run: the number of its session, its length class, its part, and the order of its first event.
pub(crate) type RunKey = [u8; 18];

/// How many bytes of a digest are kept: enough that nobody finds two ids with the same ones.
const DIGEST_BYTES: usize = 16;

/// How many bytes one event takes in a run: a digest and an order.
const ENTRY_BYTES: usize = DIGEST_BYTES + 8;

/// One event of a run.
pub(super) type RunEntry = [u8; ENTRY_BYTES];

/// How many chunks form a run, and how many runs of one class form one of a higher class.
const TO_MERGE: usize = 16;

/// The class of runs that had 4,096 events or more before they were divided. They are never merged.
const LONG: u8 = 3;

/// How many parts a long run is divided into.
const PARTS: u8 = 16;

/// With more sessions or events than this, the remembered ids are dropped, and the newest chunks are read
/// again.
const MAX_SESSIONS: usize = 2048;
const MAX_ENTRIES: usize = 1 << 20;

/// Chunks with this many events in total form a run before there are sixteen, so that one session does not make
/// the writer drop the ids of others.
const MANY_ENTRIES: usize = 512;

/// In place of a class: the row that contains the order from which on no event of the session is in a run.
const REACH: u8 = u8::MAX;

fn key(session: u64, (class, part): (u8, u8), first_order: u64) -> RunKey {
    let mut key = [0; 18];
    key[..8].copy_from_slice(&session.to_be_bytes());
    key[8..10].copy_from_slice(&[class, part]);
    key[10..].copy_from_slice(&first_order.to_be_bytes());
    key
}

/// Class 0 is for runs of fewer than 16 events, class 1 for fewer than 256, and so on.
fn class_of(events: usize) -> u8 {
    let class = events.max(1).ilog2() / TO_MERGE.ilog2();
    u8::try_from(class).map_or(LONG, |class| class.min(LONG))
}

/// The part of a long run that a digest belongs to.
fn part_of(digest: &[u8]) -> u8 {
    digest.first().map_or(0, |first| first / (u8::MAX / PARTS + 1))
}

/// The entries of a run. Ignores trailing bytes that do not form a whole entry.
fn entries(run: &[u8]) -> &[RunEntry] {
    run.as_chunks().0
}

fn order_of(entry: &RunEntry) -> u64 {
    entry.last_chunk().copied().map_or(0, u64::from_le_bytes)
}

pub(super) fn entry_of(id: &[u8], order: u64) -> RunEntry {
    let mut entry = [0; ENTRY_BYTES];
    entry[..DIGEST_BYTES].copy_from_slice(&Sha256::digest(id)[..DIGEST_BYTES]);
    entry[DIGEST_BYTES..].copy_from_slice(&order.to_le_bytes());
    entry
}

/// The order from which on no event of a session is in a run.
fn reach(
    runs: &impl ReadableTable<RunKey, &'static [u8]>,
    session: u64,
) -> Result<u64, StoreFault> {
    let row = runs.get(key(session, (REACH, 0), 0))?;
    row.map_or(Ok(0), |row| RowReader::new(row.value(), "event id runs").number())
}

/// The ids in the newest chunks of sessions, which have no run yet. They equal what reading those chunks would
/// give, and can be dropped at any time.
#[derive(Debug, Default)]
pub(super) struct NewestIds {
    sessions: HashMap<u64, NewestOfSession>,
    entries: usize,
}

#[derive(Debug, Default)]
struct NewestOfSession {
    chunks: usize,
    entries: Vec<RunEntry>,
}

impl NewestIds {
    /// Adds the ids of new chunks of a session, which are in the table already.
    pub(super) fn add(
        &mut self,
        events: &impl ReadableTable<[u8; 16], &'static [u8]>,
        runs: &mut Table<'_, RunKey, &'static [u8]>,
        session: u64,
        (chunks, entries): (usize, &[RunEntry]),
    ) -> Result<(), StoreFault> {
        if self.sessions.len() >= MAX_SESSIONS || self.entries > MAX_ENTRIES {
            *self = NewestIds::default();
        }
        let newest = match self.sessions.entry(session) {
            Entry::Vacant(vacant) => {
                add(events, runs, session)?;
                let newest = vacant.insert(NewestOfSession::read(events, runs, session)?);
                self.entries += newest.entries.len();
                newest
            }
            Entry::Occupied(newest) => {
                let newest = newest.into_mut();
                newest.chunks += chunks;
                newest.entries.extend(entries);
                self.entries += entries.len();
                newest
            }
        };
        if newest.chunks >= TO_MERGE || newest.entries.len() >= MANY_ENTRIES {
            let run = std::mem::take(newest).entries;
            self.entries = self.entries.saturating_sub(run.len());
            if let Some(last) = run.iter().map(order_of).max() {
                let reach = last.saturating_add(1).to_le_bytes();
                runs.insert(key(session, (REACH, 0), 0), reach.as_slice())?;
            }
            add_run(runs, session, run)?;
        }
        Ok(())
    }
}

impl NewestOfSession {
    fn read(
        events: &impl ReadableTable<[u8; 16], &'static [u8]>,
        runs: &impl ReadableTable<RunKey, &'static [u8]>,
        session: u64,
    ) -> Result<Self, StoreFault> {
        let mut newest = NewestOfSession::default();
        for row in events.range(pair(session, reach(runs, session)?)..=pair(session, u64::MAX))? {
            let row = row?.1;
            let ids = ids_of(row.value()).unwrap_or_default();
            newest.chunks += 1;
            newest.entries.extend(ids.into_iter().map(|(id, order)| entry_of(id, order)));
        }
        Ok(newest)
    }
}

/// Forms runs from the chunks of a session that have none, if there are enough of them.
fn add(
    events: &impl ReadableTable<[u8; 16], &'static [u8]>,
    runs: &mut Table<'_, RunKey, &'static [u8]>,
    session: u64,
) -> Result<(), StoreFault> {
    loop {
        let newer = pair(session, reach(runs, session)?)..=pair(session, u64::MAX);
        if events.range(newer.clone())?.take(TO_MERGE).count() < TO_MERGE {
            return Ok(());
        }
        let mut run = Vec::new();
        let mut reach = 0;
        for row in events.range(newer)?.take(TO_MERGE) {
            let (key, row) = row?;
            reach = crate::store::table::second(key.value()).saturating_add(1);
            // A chunk that cannot be read is set aside at replay. Until then its events are not found.
            for (id, order) in ids_of(row.value()).unwrap_or_default() {
                run.push(entry_of(id, order));
                reach = reach.max(order.saturating_add(1));
            }
        }
        runs.insert(key(session, (REACH, 0), 0), reach.to_le_bytes().as_slice())?;
        add_run(runs, session, run)?;
    }
}

fn add_run(
    runs: &mut Table<'_, RunKey, &'static [u8]>,
    session: u64,
    mut run: Vec<RunEntry>,
) -> Result<(), StoreFault> {
    loop {
        let Some(first_order) = run.iter().map(order_of).min() else { return Ok(()) };
        run.sort_unstable();
        let class = class_of(run.len());
        if class == LONG {
            for part in run.chunk_by(|a, b| part_of(a) == part_of(b)) {
                let part_number = part.first().map_or(0, |entry| part_of(entry));
                let key = key(session, (class, part_number), first_order);
                runs.insert(key, part.as_flattened())?;
            }
            return Ok(());
        }
        runs.insert(key(session, (class, 0), first_order), run.as_flattened())?;
        let of_class = key(session, (class, 0), 0)..=key(session, (class, 0), u64::MAX);
        if runs.range(of_class.clone())?.count() < TO_MERGE {
            return Ok(());
        }
        run.clear();
        for row in runs.range(of_class.clone())? {
            run.extend(entries(row?.1.value()));
        }
        runs.retain_in(of_class, |_, _| false)?;
    }
}

/// The order of an event of a session; `None` if the session never had it.
pub(super) fn find(
    transaction: &ReadTransaction,
    session: u64,
    id: &EventId,
) -> Result<Option<u64>, StoreFault> {
    let runs = transaction.open_table(EVENT_ID_RUNS)?;
    let events = transaction.open_table(EVENTS)?;
    let id = id.as_str().as_bytes();
    for row in events.range(pair(session, reach(&runs, session)?)..=pair(session, u64::MAX))? {
        let row = row?.1;
        let ids = ids_of(row.value()).unwrap_or_default();
        if let Some((_, order)) = ids.into_iter().find(|(it, _)| *it == id) {
            return Ok(Some(order));
        }
    }
    let digest = &entry_of(id, 0)[..DIGEST_BYTES];
    for class in 0..=LONG {
        let part = if class == LONG { part_of(digest) } else { 0 };
        let all = key(session, (class, part), 0)..=key(session, (class, part), u64::MAX);
        for row in runs.range(all)? {
            let row = row?.1;
            let entries = entries(row.value());
            let found = entries.binary_search_by(|entry| entry[..DIGEST_BYTES].cmp(digest));
            if let Some(entry) = found.ok().and_then(|at| entries.get(at)) {
                return Ok(Some(order_of(entry)));
            }
        }
    }
    Ok(None)
}

/// Removes all runs of a session.
pub(super) fn remove_session(
    transaction: &WriteTransaction,
    session: u64,
) -> Result<(), StoreFault> {
    let all = key(session, (0, 0), 0)..=key(session, (u8::MAX, u8::MAX), u64::MAX);
    transaction.open_table(EVENT_ID_RUNS)?.retain_in(all, |_, _| false)?;
    Ok(())
}

/// Forms the runs of all sessions, in a store whose format had another index or none.
pub(super) fn add_all(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    transaction.delete_table(OLD_EVENT_IDS)?;
    let (sessions, events) = (transaction.open_table(SESSIONS)?, transaction.open_table(EVENTS)?);
    let mut runs = transaction.open_table(EVENT_ID_RUNS)?;
    for row in sessions.iter()? {
        let (_, row) = row?;
        if let Ok(number) = RowReader::new(row.value(), "sessions").number() {
            add(&events, &mut runs, number)?;
        }
    }
    Ok(())
}
