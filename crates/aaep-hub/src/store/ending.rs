//! Ends a session only in the store: in a folder that no hub uses, and on a full disk, where the event that
//! tells subscribers has to wait for room.
//!
//! No event is written. A hub that finds such a session accepts no more events for it.

use aaep::SessionId;

use crate::audit::Entry;
use crate::store::error::CommitError;
use crate::store::reader::session_of;
use crate::store::table::SESSIONS;
use crate::store::{Store, apply, asks};

/// The result of ending a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedSession {
    /// It was running and has now ended. Its open asks are withdrawn.
    Ended,
    /// It had already ended. Nothing was changed.
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
