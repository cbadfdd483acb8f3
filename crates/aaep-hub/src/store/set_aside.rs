//! Sets aside rows that cannot be read: moves them into a table of their own, and reports them.
//!
//! One bad row must not prevent everything else from being served, and must not be skipped silently. This never
//! deletes a row, and never guesses its contents.

use aaep::{SessionId, printable};
use redb::{ReadableTable, WriteTransaction};

use crate::audit::Entry;
use crate::store::apply::end_session;
use crate::store::fault::StoreFault;
use crate::store::recover::DamagedRow;
use crate::store::table::{
    ANSWERS, ASKS, ENDED, EVENTS, HELD_NAMES, RUNNING, SESSIONS, SET_ASIDE, SETTLED, SUBSCRIPTIONS,
    StoreCounters,
};
use crate::store::{CommitError, DamagedEvents, ReadError, RecoveredStore, Store};

/// The kind of the audit entry that records what a start found.
const KIND: &str = "start_repaired";

/// How many rows of each kind are named one by one. The others are counted.
const MAX_NAMED: usize = 20;

/// A session with data that cannot be read. It accepts no more events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostSession {
    /// The session.
    pub session_id: SessionId,
    /// The row that cannot be read; `None` if the row is intact but contains an event that cannot be
    /// understood, which stays where it is.
    pub damaged: Option<DamagedEvents>,
}

pub(super) fn set_aside(
    store: &mut Store,
    recovered: &RecoveredStore,
    lost: &[LostSession],
    now_unix_us: i64,
) -> Result<Vec<String>, ReadError> {
    let mut notes = Vec::new();
    let rows = &recovered.damaged;
    for DamagedRow { table, key, .. } in rows.iter().take(MAX_NAMED) {
        let key = printable(&String::from_utf8_lossy(key)).into_owned();
        notes.push(format!("A row of {table} cannot be read and was set aside: {key}."));
    }
    for LostSession { session_id, .. } in lost.iter().take(MAX_NAMED) {
        notes.push(format!(
            "Some events of {session_id} cannot be read and were set aside. The session takes no more \
             events; what can be read of it is still there."
        ));
    }
    let unnamed = rows.len().saturating_sub(MAX_NAMED) + lost.len().saturating_sub(MAX_NAMED);
    if unnamed > 0 {
        notes.push(format!("{unnamed} more rows cannot be read and were set aside."));
    }
    if notes.is_empty() {
        return Ok(recovered.notes.clone());
    }
    let entries = entries(&notes, now_unix_us);
    let entries: Vec<&Entry> = entries.iter().collect();
    let moved = store.transact(&entries, |transaction, counters| {
        rows.iter().try_for_each(|row| move_row(transaction, row))?;
        lost.iter().try_for_each(|lost| end_lost_session(transaction, counters, lost, now_unix_us))
    });
    if let Err(CommitError::Corrupt { why }) = moved {
        return Err(ReadError::Corrupt { why });
    } else if let Err(error) = moved {
        notes.push(format!("What cannot be read was left where it is. {error}"));
    }
    // What was found when the store was opened is in the audit log already.
    Ok(recovered.notes.iter().cloned().chain(notes).collect())
}

/// The audit entries that record what a start found.
pub(super) fn entries(notes: &[String], unix_us: i64) -> Vec<Entry> {
    let entry = |note: &String| Entry {
        unix_us,
        kind: KIND,
        session_id: None,
        reply_token: None,
        who: None,
        outcome: note.clone(),
        details: None,
    };
    notes.iter().map(entry).collect()
}

pub(super) fn keep(
    transaction: &WriteTransaction,
    table: &str,
    key: &[u8],
    row: &[u8],
) -> Result<(), StoreFault> {
    let name = [table.as_bytes(), b"\0", key].concat();
    transaction.open_table(SET_ASIDE)?.insert(name.as_slice(), row)?;
    Ok(())
}

pub(super) fn move_row(
    transaction: &WriteTransaction,
    damaged: &DamagedRow,
) -> Result<(), StoreFault> {
    let DamagedRow { table, key, row } = damaged;
    keep(transaction, table, key, row)?;
    if *table == "answers" {
        transaction.open_table(ANSWERS)?.remove(key.as_slice())?;
        return Ok(());
    }
    let Ok(text) = std::str::from_utf8(key) else { return Ok(()) };
    let of_table = match *table {
        "sessions" => SESSIONS,
        "asks" => ASKS,
        "settled" => SETTLED,
        "subscriptions" => SUBSCRIPTIONS,
        "held names" => HELD_NAMES,
        _ => return Ok(()),
    };
    transaction.open_table(of_table)?.remove(text)?;
    if *table == "sessions" {
        transaction.open_table(RUNNING)?.retain(|_, id| id != text)?;
        transaction.open_table(ENDED)?.retain(|_, id| id != text)?;
    }
    Ok(())
}

/// Ends the session, so that it accepts no more events and can be deleted one day.
fn end_lost_session(
    transaction: &WriteTransaction,
    counters: &StoreCounters,
    lost: &LostSession,
    now_unix_us: i64,
) -> Result<(), StoreFault> {
    if let Some(DamagedEvents { key, .. }) = lost.damaged {
        let mut events = transaction.open_table(EVENTS)?;
        let row = events.get(key)?.map(|row| row.value().to_vec());
        if let Some(row) = row {
            keep(transaction, "events", &key, &row)?;
            events.remove(key)?;
        }
    }
    end_session(transaction, counters, &lost.session_id, now_unix_us)
}
