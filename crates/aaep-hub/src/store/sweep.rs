//! Deletes data: what is beyond the retention, and what people want deleted.
//!
//! Only whole ended sessions are deleted. Never a running one, and never an entry of the audit log: only the
//! words behind it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaep::SessionId;
use aaep_engine::PrincipalNumber;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::audit::Entry;
use crate::store::error::{CommitError, DeleteError};
use crate::store::fault::StoreFault;
use crate::store::reader::session_of;
use crate::store::session::StoredSession;
use crate::store::table::{
    ANSWERS, ANSWERS_BY_AGE, AUDIT_DETAILS, AUDIT_OF_SESSION, ENDED, EVENTS, META, RowReader,
    SESSIONS, StoreCounters, pair, parse, second, sortable,
};
use crate::store::{Store, apply, asks, event_ids, recover};

/// The most sessions that one sweep deletes.
pub const MAX_SWEPT_SESSIONS: usize = 64;

/// The most events that one sweep deletes, give or take those of one session.
const MAX_SWEPT_EVENTS: u64 = 16_384;

/// The most answers, and the most words without a session, that one sweep forgets.
const MAX_SWEPT_ROWS: usize = 1024;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many sessions were deleted.
    pub sessions: u64,
    /// How many events they had.
    pub events: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// Whether nothing else is beyond the retention.
    pub is_done: bool,
}

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// How many events.
    pub events: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

/// Deletes data beyond the retention. In any case, the journal is empty afterwards.
pub(super) fn sweep(store: &mut Store, now_unix_us: i64) -> Result<Swept, CommitError> {
    let max_age_us = store.retention.max_age_seconds.saturating_mul(1_000_000);
    let age_us = i64::try_from(max_age_us).unwrap_or(i64::MAX);
    // Rows that only have a time of the machine's clock stay as long as that clock is doubted.
    let is_believed = store.age.now.is_believed();
    let before_unix_us = if is_believed { now_unix_us.saturating_sub(age_us) } else { i64::MIN };
    let (due, swept) = find_due(store, max_age_us)?;
    store.log.catch_up(&store.reader());
    store.log.sync();
    let entry = Entry {
        unix_us: now_unix_us,
        kind: "retention",
        session_id: None,
        reply_token: None,
        who: None,
        outcome: format!("sessions deleted: {}, events: {}", swept.sessions, swept.events),
        details: None,
    };
    let is_nothing = due.is_empty() && !store.log.has_forgettable() && !store.age.is_behind();
    if is_nothing && !has_old_rows(store, before_unix_us)? {
        store.checkpoint()?;
        return Ok(swept);
    }
    let entries: &[&Entry] = if due.is_empty() { &[] } else { &[&entry] };
    let is_done = store.transact(entries, |transaction, counters| {
        for session in &due {
            remove(transaction, counters, session)?;
        }
        let answers = apply::forget_answers(transaction, before_unix_us, MAX_SWEPT_ROWS)?;
        let words = forget_old_words(transaction, before_unix_us)?;
        Ok(answers < MAX_SWEPT_ROWS && words < MAX_SWEPT_ROWS)
    })?;
    Ok(Swept { is_done: swept.is_done && is_done, ..swept })
}

/// Whether there are answers, or words without a session, from before this time.
fn has_old_rows(store: &Store, before_unix_us: i64) -> Result<bool, CommitError> {
    let found = store.shared.read(|transaction| {
        let answers = transaction.open_table(ANSWERS)?;
        if let Some((_, key)) = transaction.open_table(ANSWERS_BY_AGE)?.first()?
            && let Some(row) = answers.get(key.value())?
            && is_before(row.value(), before_unix_us)?
        {
            return Ok(true);
        }
        let details = transaction.open_table(AUDIT_DETAILS)?;
        let of_session = transaction.open_table(AUDIT_OF_SESSION)?;
        let Some(row) = of_session.range(pair(0, 0)..=pair(0, u64::MAX))?.next() else {
            return Ok(false);
        };
        let row = details.get(second(row?.0.value()))?;
        row.map_or(Ok(true), |row| is_before(row.value(), before_unix_us))
    });
    Ok(found?)
}

/// Whether a row, whose time is its second number, is from before this time.
pub(super) fn is_before(row: &[u8], before_unix_us: i64) -> Result<bool, StoreFault> {
    let mut row = RowReader::new(row, "rows with a moment");
    row.number()?;
    Ok(row.moment()? < before_unix_us)
}

/// The ended sessions that are too old or exceed the size limit, as many as one sweep takes.
fn find_due(store: &Store, max_age_us: u64) -> Result<(Vec<StoredSession>, Swept), CommitError> {
    let max_bytes = store.retention.max_bytes;
    let counted_us = store.age.now.counted_us;
    let found = store.shared.read(|transaction| {
        let mut due = DueSessions {
            sessions: Vec::new(),
            swept: Swept { is_done: true, ..Swept::default() },
            left_bytes: recover::counters(&transaction.open_table(META)?)?.event_bytes,
        };
        for session in ended_sessions(transaction)? {
            let session = session?;
            let is_old = counted_us.saturating_sub(session.ended_counted_us) > max_age_us;
            if !is_old || !due.take(session) {
                break;
            }
        }
        if due.swept.is_done && due.left_bytes > max_bytes {
            take_from_largest(transaction, &mut due, max_bytes)?;
        }
        Ok((due.sessions, due.swept))
    });
    Ok(found?)
}

/// The sessions that one sweep deletes.
struct DueSessions {
    sessions: Vec<StoredSession>,
    swept: Swept,
    /// How many bytes of events remain without them.
    left_bytes: u64,
}

impl DueSessions {
    /// Adds a session. Returns whether there was room for it.
    fn take(&mut self, session: StoredSession) -> bool {
        if self.sessions.len() == MAX_SWEPT_SESSIONS || self.swept.events >= MAX_SWEPT_EVENTS {
            self.swept.is_done = false;
            return false;
        }
        self.left_bytes = self.left_bytes.saturating_sub(session.bytes);
        self.swept.sessions += 1;
        self.swept.events += session.events;
        self.swept.bytes += session.bytes;
        self.sessions.push(session);
        true
    }
}

/// The ended sessions, the oldest first. A session that cannot be read is set aside at the next start.
fn ended_sessions(
    transaction: &ReadTransaction,
) -> Result<impl Iterator<Item = Result<StoredSession, StoreFault>>, StoreFault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let ended = transaction.open_table(ENDED)?;
    Ok(ended.range::<[u8; 16]>(..)?.filter_map(move |row| match row {
        Ok((_, session_id)) => session_of(&sessions, session_id.value()).ok()?.map(Ok),
        Err(error) => Some(Err(error.into())),
    }))
}

/// The stored data of one principal.
#[derive(Default)]
struct PrincipalStorage {
    bytes: u64,
    /// Its ended sessions that may be deleted, the oldest first.
    ended: VecDeque<StoredSession>,
}

/// Takes sessions from the principal with the most bytes, the oldest first (ruling 38). A principal with no
/// more than an equal part loses nothing for others, even if the rest is in running sessions.
fn take_from_largest(
    transaction: &ReadTransaction,
    due: &mut DueSessions,
    max_bytes: u64,
) -> Result<(), StoreFault> {
    let mut stored: BTreeMap<PrincipalNumber, PrincipalStorage> = BTreeMap::new();
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let (session_id, row) = row?;
        let Ok(session_id) = parse(Some(session_id.value()), "sessions") else { continue };
        let Ok(session) = StoredSession::parse(session_id, row.value()) else { continue };
        stored.entry(session.principal).or_default().bytes += session.bytes;
    }
    let taken: BTreeSet<u64> = due.sessions.iter().map(|session| session.number).collect();
    for session in &due.sessions {
        let own = stored.entry(session.principal).or_default();
        own.bytes = own.bytes.saturating_sub(session.bytes);
    }
    for session in ended_sessions(transaction)? {
        let session = session?;
        let own = stored.entry(session.principal).or_default();
        if own.ended.len() < MAX_SWEPT_SESSIONS && !taken.contains(&session.number) {
            own.ended.push_back(session);
        }
    }
    let even_part = max_bytes / (stored.len() as u64).max(1);
    while due.left_bytes > max_bytes {
        let may_lose =
            stored.values_mut().filter(|it| it.bytes > even_part && !it.ended.is_empty());
        let Some(most) = may_lose.max_by_key(|it| it.bytes) else { break };
        let Some(oldest) = most.ended.pop_front() else { break };
        most.bytes = most.bytes.saturating_sub(oldest.bytes);
        if !due.take(oldest) {
            break;
        }
    }
    Ok(())
}

/// Deletes one ended session.
pub(super) fn delete(
    store: &mut Store,
    session_id: &SessionId,
    who: Option<&str>,
    now_unix_us: i64,
) -> Result<Deleted, DeleteError> {
    let found = store.shared.read(|transaction| {
        let sessions = transaction.open_table(SESSIONS)?;
        let session = session_of(&sessions, session_id.as_str())?;
        Ok(session.map(|session| (session, asks::has_open(transaction, session_id))))
    });
    let (session, has_open) =
        found.map_err(CommitError::from)?.ok_or(DeleteError::NoSuchSession)?;
    if session.ended_unix_us.is_none() || has_open.map_err(CommitError::from)? {
        return Err(DeleteError::StillRunning);
    }
    let entry = Entry {
        unix_us: now_unix_us,
        kind: "session_deleted",
        session_id: Some(session_id.clone()),
        reply_token: None,
        who: who.map(str::to_owned),
        outcome: format!("events deleted: {}", session.events),
        details: None,
    };
    store.transact(&[&entry], |transaction, counters| remove(transaction, counters, &session))?;
    Ok(Deleted { events: session.events, bytes: session.bytes })
}

fn remove(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    session: &StoredSession,
) -> Result<(), StoreFault> {
    let number = session.number;
    let all = pair(number, 0)..=pair(number, u64::MAX);
    transaction.open_table(EVENTS)?.retain_in(all, |_, _| false)?;
    event_ids::remove_session(transaction, number)?;
    transaction.open_table(SESSIONS)?.remove(session.session_id.as_str())?;
    let ended = session.ended_unix_us.unwrap_or(i64::MIN);
    transaction.open_table(ENDED)?.remove(pair(sortable(ended), number))?;
    counters.event_bytes = counters.event_bytes.saturating_sub(session.bytes);
    asks::forget_resolutions(transaction, number)?;
    let mut details = transaction.open_table(AUDIT_DETAILS)?;
    let mut of_session = transaction.open_table(AUDIT_OF_SESSION)?;
    let mut seqs = Vec::new();
    for row in of_session.range(pair(number, 0)..=pair(number, u64::MAX))? {
        seqs.push(second(row?.0.value()));
    }
    for seq in seqs {
        details.remove(seq)?;
        of_session.remove(pair(number, seq))?;
    }
    Ok(())
}

/// Forgets old words that belong to no stored session; returns how many.
fn forget_old_words(
    transaction: &WriteTransaction,
    before_unix_us: i64,
) -> Result<usize, StoreFault> {
    let mut details = transaction.open_table(AUDIT_DETAILS)?;
    let mut of_session = transaction.open_table(AUDIT_OF_SESSION)?;
    let mut seqs = Vec::new();
    for row in of_session.range(pair(0, 0)..=pair(0, u64::MAX))?.take(MAX_SWEPT_ROWS) {
        let seq = second(row?.0.value());
        if let Some(row) = details.get(seq)?
            && !is_before(row.value(), before_unix_us)?
        {
            break;
        }
        seqs.push(seq);
    }
    for seq in &seqs {
        details.remove(seq)?;
        of_session.remove(pair(0, *seq))?;
    }
    Ok(seqs.len())
}
