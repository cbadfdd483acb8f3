//! Reads while the writer writes: each call sees one consistent snapshot of the store.
//!
//! Every result is bounded, whatever the size of the file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::PrincipalNumber;
use redb::{ReadTransaction, ReadableTable};

use crate::store::asks::SettledAsk;
use crate::store::cursor::{SessionCursor, SessionPosition};
use crate::store::database::SharedDatabase;
use crate::store::error::ReadError;
use crate::store::event_ids;
use crate::store::fault::StoreFault;
use crate::store::session::{StoredEvent, StoredSession, events_of};
use crate::store::table::{
    ANSWERS, AUDIT_DETAILS, AUDIT_WAITING, ENDED, EVENTS, RUNNING, RowReader, SESSIONS, SETTLED,
    answer_key, pair, parse, second,
};

/// The most events or sessions that one call returns.
pub const MAX_PAGE_ROWS: usize = 1024;

/// The most bytes of events that one call returns, give or take one chunk and one event.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// Reads the store, from any thread.
#[derive(Clone)]
pub struct Reader {
    pub(super) shared: Arc<SharedDatabase>,
    pub(super) audit_path: Option<Arc<PathBuf>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("audit_path", &self.audit_path).finish_non_exhaustive()
    }
}

impl Reader {
    /// Lists sessions: running ones, then ended ones, the newest first. `skip` counts over both.
    pub fn sessions(&self, skip: usize, limit: usize) -> Result<Vec<StoredSession>, ReadError> {
        let limit = limit.min(MAX_PAGE_ROWS);
        self.read(|transaction| {
            let sessions = transaction.open_table(SESSIONS)?;
            let mut found = Vec::new();
            let running = transaction.open_table(RUNNING)?;
            let ended = transaction.open_table(ENDED)?;
            let running = running.iter()?.rev().map(|row| row.map(|(_, id)| id));
            let ended = ended.iter()?.rev().map(|row| row.map(|(_, id)| id));
            for session_id in running.chain(ended).skip(skip).take(limit) {
                let session_id = session_id?;
                found.extend(session_of(&sessions, session_id.value())?);
            }
            Ok(found)
        })
    }

    /// Lists the sessions after a position in the same order, or from the beginning. Whatever begins, ends or
    /// is deleted between two pages, no session that remains is left out.
    pub fn sessions_after(
        &self,
        place: Option<SessionCursor>,
        limit: usize,
    ) -> Result<Vec<StoredSession>, ReadError> {
        let limit = limit.min(MAX_PAGE_ROWS);
        // No session has the number zero.
        let (below, before) = match place.map(|it| it.0) {
            None => (u64::MAX, [255; 16]),
            Some(SessionPosition::Running(number)) => (number, [255; 16]),
            Some(SessionPosition::Ended(key)) => (0, key),
        };
        self.read(|transaction| {
            let sessions = transaction.open_table(SESSIONS)?;
            let running = transaction.open_table(RUNNING)?;
            let ended = transaction.open_table(ENDED)?;
            let running = running.range(..below)?.rev().map(|row| row.map(|(_, id)| id));
            let ended = ended.range(..before)?.rev().map(|row| row.map(|(_, id)| id));
            let mut found = Vec::new();
            for session_id in running.chain(ended).take(limit) {
                found.extend(session_of(&sessions, session_id?.value())?);
            }
            Ok(found)
        })
    }

    /// One session.
    pub fn session(&self, session_id: &SessionId) -> Result<Option<StoredSession>, ReadError> {
        self.read(|transaction| session_of(&transaction.open_table(SESSIONS)?, session_id.as_str()))
    }

    /// Returns events of a session from this order on, in order. Fewer than `limit` if there are no more, or if
    /// they are many or large: continue after the last one.
    pub fn events(
        &self,
        session_id: &SessionId,
        from_order: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let limit = limit.min(MAX_PAGE_ROWS);
        self.read(|transaction| {
            let mut found: Vec<StoredEvent> = Vec::new();
            let mut bytes = 0;
            each_chunk(transaction, session_id, from_order, |events| {
                for event in events {
                    bytes += event.json.len();
                    found.push(event);
                }
                found.len() < limit && bytes < MAX_PAGE_BYTES
            })?;
            found.truncate(limit);
            Ok(found)
        })
    }

    /// Returns one event of a session. Reads only the chunk that contains it, however long the session is.
    pub fn event(
        &self,
        session_id: &SessionId,
        event_id: &EventId,
    ) -> Result<Option<StoredEvent>, ReadError> {
        self.read(|transaction| {
            let sessions = transaction.open_table(SESSIONS)?;
            let Some(session) = session_of(&sessions, session_id.as_str())? else {
                return Ok(None);
            };
            let Some(order) = event_ids::find(transaction, session.number, event_id)? else {
                return Ok(None);
            };
            let chunks = transaction.open_table(EVENTS)?;
            let mut until = chunks.range(pair(session.number, 0)..=pair(session.number, order))?;
            let Some(row) = until.next_back() else { return Ok(None) };
            let events = events_of(session_id, row?.1.value(), order)?;
            Ok(events.into_iter().find(|event| event.event_id == *event_id))
        })
    }

    /// Looks up a settled ask.
    pub fn settled(&self, reply_token: &ReplyToken) -> Result<Option<SettledAsk>, ReadError> {
        self.read(|transaction| {
            let settled = transaction.open_table(SETTLED)?;
            let row = settled.get(reply_token.as_str())?;
            row.map(|row| SettledAsk::parse(reply_token.clone(), row.value())).transpose()
        })
    }

    /// Returns the answer that a principal got under this key.
    pub fn answer(
        &self,
        principal: PrincipalNumber,
        idempotency_key: &str,
    ) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.read(|transaction| {
            let answers = transaction.open_table(ANSWERS)?;
            let Some(row) = answers.get(answer_key(principal, idempotency_key).as_slice())? else {
                return Ok(None);
            };
            let mut row = RowReader::new(row.value(), "answers");
            let (_age, _unix_us) = (row.number()?, row.moment()?);
            Ok(Some(row.rest().into()))
        })
    }

    /// Returns the words of an audit entry; `None` if it has none, or if they were deleted.
    pub fn details(&self, seq: u64) -> Result<Option<String>, ReadError> {
        Ok(self.salted_words(seq)?.map(|(_, words)| words))
    }

    /// The path of the audit log; `None` for a store in memory.
    pub fn audit_path(&self) -> Option<&Path> {
        self.audit_path.as_deref().map(PathBuf::as_path)
    }

    pub(crate) fn salted_words(&self, seq: u64) -> Result<Option<([u8; 32], String)>, ReadError> {
        self.read(|transaction| {
            let details = transaction.open_table(AUDIT_DETAILS)?;
            let Some(row) = details.get(seq)? else { return Ok(None) };
            let mut row = RowReader::new(row.value(), "audit details");
            let (_session, _unix_us) = (row.number()?, row.moment()?);
            Ok(Some((row.array()?, row.parsed()?)))
        })
    }

    /// Audit lines that the file may lack, from this number on.
    pub(crate) fn waiting_lines(
        &self,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, ReadError> {
        self.read(|transaction| {
            let waiting = transaction.open_table(AUDIT_WAITING)?;
            let rows = waiting.range(from_seq..)?.take(limit);
            rows.map(|row| {
                let (seq, line) = row?;
                Ok((seq.value(), line.value().to_vec()))
            })
            .collect()
        })
    }

    fn read<T>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreFault>,
    ) -> Result<T, ReadError> {
        Ok(self.shared.read(work)?)
    }
}

/// Reads the row of a session.
pub(super) fn session_of(
    sessions: &impl ReadableTable<&'static str, &'static [u8]>,
    session_id: &str,
) -> Result<Option<StoredSession>, StoreFault> {
    let Some(row) = sessions.get(session_id)? else { return Ok(None) };
    StoredSession::parse(parse(Some(session_id), "sessions")?, row.value()).map(Some)
}

/// Passes the events of a session from this order on to `wanted`, chunk by chunk, until it returns false.
pub(super) fn each_chunk(
    transaction: &ReadTransaction,
    session_id: &SessionId,
    from_order: u64,
    mut wanted: impl FnMut(Vec<StoredEvent>) -> bool,
) -> Result<(), StoreFault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let Some(session) = session_of(&sessions, session_id.as_str())? else { return Ok(()) };
    let chunks = transaction.open_table(EVENTS)?;
    let (first, last) = (pair(session.number, 0), pair(session.number, u64::MAX));
    // The chunk that contains this order may have begun before it.
    let mut before = chunks.range(first..=pair(session.number, from_order))?;
    let start = match before.next_back() {
        Some(row) => second(row?.0.value()),
        None => 0,
    };
    for row in chunks.range(pair(session.number, start)..=last)? {
        let (_, chunk) = row?;
        if !wanted(events_of(session_id, chunk.value(), from_order)?) {
            break;
        }
    }
    Ok(())
}
