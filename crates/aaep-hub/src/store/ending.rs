//! Ending a session in the store alone: in a folder that no hub uses, and on a disk that is full, where the
//! end that people hear has to wait for room.
//!
//! No event is written. A hub that finds such a session takes no more events for it.

use aaep::SessionId;

use crate::audit::Entry;
use crate::store::error::CommitError;
use crate::store::reader::session_of;
use crate::store::table::SESSIONS;
use crate::store::{Store, apply, asks};

/// What came of ending a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedSession {
    /// It was running, and has ended now. Its open questions are withdrawn.
    Ended,
    /// It had ended before. Nothing was changed.
    AlreadyEnded,
    /// There is no such session.
    NoSuchSession,
}

pub(super) fn end(
    store: &mut Store,
    session_id: &SessionId,
    who: Option<&str>,
    now_unix_us: i64,
) -> Result<EndedSession, CommitError> {
    let found = store
        .shared
        .read(|transaction| session_of(&transaction.open_table(SESSIONS)?, session_id.as_str()));
    match found? {
        None => return Ok(EndedSession::NoSuchSession),
        Some(session) if session.ended_unix_us.is_some() => return Ok(EndedSession::AlreadyEnded),
        Some(_) => {}
    }
    let entry = Entry {
        unix_us: now_unix_us,
        kind: "session_ended",
        session_id: Some(session_id.clone()),
        reply_token: None,
        who: who.map(str::to_owned),
        outcome: "ended by hand".to_owned(),
        details: None,
    };
    store.transact(&[&entry], |transaction, counters| {
        apply::end_session(transaction, counters, session_id, now_unix_us)?;
        asks::withdraw_all(transaction, counters, session_id, now_unix_us)
    })?;
    Ok(EndedSession::Ended)
}
