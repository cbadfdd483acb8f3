//! Takes over what can be read of a damaged database into a new one.
//!
//! The damaged files are kept under names that say so. Rows are read from both ends of each table up to the
//! damage, and the journal follows. A session that lost events keeps those before the loss and takes no more.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use aaep::printable;
use redb::backends::FileBackend;
use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableHandle,
    Value, WriteTransaction,
};

use crate::audit;
use crate::store::backup::{each_table, is_fitting};
use crate::store::database::{apply_journal, builder, journal_of};
use crate::store::fault::{StoreFault, guarded};
use crate::store::folder::{AUDIT, DATABASE, JOURNAL, LockedFolder, create_file, sync_folder};
use crate::store::journal;
use crate::store::open::FORMAT_KEY;
use crate::store::recover::{counters, recover};
use crate::store::session::{StoredSession, checked_count, ids_of};
use crate::store::set_aside::{keep, move_row};
use crate::store::table::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ASKS, AUDIT_DETAILS, AUDIT_OF_SESSION, AUDIT_WAITING, ENDED,
    EVENTS, FORMAT, HELD_NAMES, META, PRINCIPALS, RUNNING, RowReader, SESSIONS, SET_ASIDE, SETTLED,
    SETTLED_BY_AGE, SETTLED_OF_SESSION, SUBSCRIPTIONS, StoreCounters, SyncedAudit, create_all,
    give_id, pair, parse, put_id, replace_id, set_has_journal, set_incomplete, sortable,
};
use crate::store::{OpenError, StoreChange, apply, event_ids, held_names, settled_shares};

/// The new database, until it is complete.
const UNFINISHED: &str = "store.redb.new";

/// How many damaged stores are kept. If there are more, something else is wrong.
const MAX_DAMAGED_STORES: u32 = 1000;

/// How far numbers jump if the highest that was used is not known.
const NUMBER_MARGIN: u64 = 1 << 32;

/// What could not be read of the old database.
#[derive(Debug, Default)]
struct Losses {
    /// The tables with rows that could not be read.
    tables: BTreeSet<String>,
    /// The last chunk of events before those that could not be read.
    last_chunk: Option<[u8; 16]>,
    /// The last entry of the audit log before those that could not be read.
    last_waiting: Option<u64>,
    /// How many sessions lost events.
    sessions: u64,
}

/// Replaces the database of a folder by a new one with everything that can be read. Returns what was done, for
/// people.
pub(super) fn salvage(folder: &Path, why: &str, now_unix_us: i64) -> Result<String, OpenError> {
    let _lock = LockedFolder::open(folder)?;
    rebuild(folder, why, now_unix_us).map_err(|fault| super::open::open_error(folder, fault))
}

fn rebuild(folder: &Path, why: &str, now_unix_us: i64) -> Result<String, StoreFault> {
    let kept_as = keep_damaged(folder)?;
    let unfinished = folder.join(UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let new = builder().create_with_backend(FileBackend::new(create_file(&unfinished)?)?)?;
    let mut losses = Losses::default();
    copy_rows(&folder.join(DATABASE), &new, &mut losses)?;
    remove_damaged_rows(&new)?;
    write(&new, |transaction| {
        keep_prefixes(transaction, &mut losses, now_unix_us)?;
        rebuild_order(transaction)?;
        set_counters(transaction, 0)?;
        event_ids::add_all(transaction)?;
        settled_shares::add_all(transaction)?;
        held_names::add_all(transaction)
    })?;
    let before = guarded(|| Ok(counters(&new.begin_read()?.open_table(META)?)?.next_session))?;
    follow_journal(&new, &folder.join(JOURNAL), &losses)?;
    write(&new, |transaction| {
        if !losses.tables.is_empty() {
            end_sessions_after(transaction, before, now_unix_us)?;
        }
        let is_unknown = losses.tables.contains(META.name());
        set_counters(transaction, if is_unknown { NUMBER_MARGIN } else { 0 })?;
        keep_numbers_unused(transaction, &losses)?;
        continue_audit_log(transaction, &folder.join(AUDIT), &losses)
    })?;
    let (sessions, events) = guarded(|| count(&new.begin_read()?))?;
    drop(new);
    fs::rename(&unfinished, folder.join(DATABASE))?;
    sync_folder(folder)?;
    let broken = match losses.sessions {
        0 => String::new(),
        many => format!(" {many} of them lost events and take no more."),
    };
    Ok(format!(
        "The store was damaged and was kept as {kept_as}: {}. {sessions} sessions with {events} events could be \
         read and are served.{broken} What could not be read is only in the kept file. All open questions end \
         without consent.",
        printable(why)
    ))
}

/// Keeps copies of the database and its journal under new names, and returns the name of the first.
fn keep_damaged(folder: &Path) -> Result<String, StoreFault> {
    let free = |number: &u32| {
        let is_there = |end| folder.join(format!("store-damaged-{number}.{end}")).exists();
        !is_there("redb") && !is_there("journal")
    };
    let number = (1..=MAX_DAMAGED_STORES)
        .find(free)
        .ok_or_else(|| StoreFault::Io("there are too many damaged stores".to_owned()))?;
    let name = format!("store-damaged-{number}.redb");
    copy(&folder.join(DATABASE), &folder.join(&name))?;
    let journal = folder.join(JOURNAL);
    if journal.is_file() {
        copy(&journal, &folder.join(format!("store-damaged-{number}.journal")))?;
    }
    sync_folder(folder)?;
    Ok(name)
}

fn copy(from: &Path, to: &PathBuf) -> Result<(), StoreFault> {
    let mut copy = create_file(to)?;
    let copied = io::copy(&mut File::open(from)?, &mut copy).and_then(|_| copy.sync_all());
    if copied.is_err() {
        // Half a copy is of no use, and the disk may be full.
        let _ = fs::remove_file(to);
    }
    Ok(copied?)
}

fn write(
    database: &Database,
    work: impl FnOnce(&WriteTransaction) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
    guarded(|| {
        let transaction = database.begin_write()?;
        work(&transaction)?;
        Ok(transaction.commit()?)
    })
}

/// Copies every row that can be read. A database that cannot even be opened has none.
fn copy_rows(path: &Path, new: &Database, losses: &mut Losses) -> Result<(), StoreFault> {
    let max_rows = fs::metadata(path)?.len();
    // Reading needs less of the file than writing; after a crash, only a writer can put it in order.
    let read_only = guarded(|| Ok(builder().open_read_only(path)?));
    if let Ok(old) = read_only
        && let Ok(from) = guarded(|| Ok(old.begin_read()?))
    {
        return copy_tables(Some(&from), new, max_rows, losses);
    }
    let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    let old = guarded(|| Ok(builder().create_with_backend(FileBackend::new(file)?)?));
    let from = old.as_ref().map_err(|_| ()).and_then(|old| {
        guarded(|| Ok(old.begin_read()?)).map_err(|fault| tracing::debug!(?fault, "No snapshot."))
    });
    copy_tables(from.as_ref().ok(), new, max_rows, losses)
}

fn copy_tables(
    from: Option<&ReadTransaction>,
    new: &Database,
    max_rows: u64,
    losses: &mut Losses,
) -> Result<(), StoreFault> {
    write(new, |to| {
        create_all(to)?;
        each_table!(copy_table(from, to, max_rows, losses));
        Ok(())
    })
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    definition: TableDefinition<'static, K, V>,
    from: Option<&ReadTransaction>,
    to: &WriteTransaction,
    max_rows: u64,
    losses: &mut Losses,
) -> Result<(), StoreFault> {
    let mut to = to.open_table(definition)?;
    let mut last = None;
    let copied = match from {
        None => Err(StoreFault::row("the database")),
        Some(from) => copy_from_both_ends(definition, from, max_rows, &mut last, |key, value| {
            if is_fitting::<K, V>(key, value) {
                guarded(|| Ok(to.insert(K::from_bytes(key), V::from_bytes(value)).map(drop)?))
            } else {
                Err(StoreFault::row("a damaged table"))
            }
        }),
    };
    match copied {
        Ok(()) => return Ok(()),
        Err(fault @ (StoreFault::Full | StoreFault::Refused(_))) => return Err(fault),
        Err(_) => {}
    }
    losses.tables.insert(definition.name().to_owned());
    if definition.name() == EVENTS.name() {
        losses.last_chunk = last.as_deref().and_then(|key| key.try_into().ok());
    } else if definition.name() == AUDIT_WAITING.name() {
        losses.last_waiting =
            last.as_deref().and_then(|key| key.try_into().ok()).map(u64::from_le_bytes);
    }
    Ok(())
}

/// Copies rows from the beginning, and after damage from the end. Leaves the last key before the damage.
fn copy_from_both_ends<K: Key + 'static, V: Value + 'static>(
    definition: TableDefinition<'static, K, V>,
    from: &ReadTransaction,
    max_rows: u64,
    last: &mut Option<Vec<u8>>,
    mut put: impl FnMut(&[u8], &[u8]) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
    let table = match guarded(|| Ok(from.open_table(definition))) {
        Ok(Err(redb::TableError::TableDoesNotExist(_))) => return Ok(()),
        Ok(table) => table?,
        Err(fault) => return Err(fault),
    };
    let mut rows = guarded(|| Ok(table.iter()?))?;
    // A damaged tree may lead in a circle.
    let mut left = max_rows;
    let damage = loop {
        left = left.saturating_sub(1);
        match guarded(|| rows.next().map(|row| Ok(to_bytes(row?))).transpose()) {
            Ok(None) => return Ok(()),
            Ok(Some((key, value))) if left > 0 => match put(&key, &value) {
                Err(fault @ (StoreFault::Full | StoreFault::Refused(_))) => return Err(fault),
                Err(fault) => break fault,
                Ok(()) => *last = Some(key),
            },
            Ok(Some(_)) => break StoreFault::row("a damaged table"),
            Err(fault) => break fault,
        }
    };
    let Ok(mut rows) = guarded(|| Ok(table.iter()?)) else { return Err(damage) };
    while let Ok(Some((key, value))) =
        guarded(|| rows.next_back().map(|row| Ok(to_bytes(row?))).transpose())
    {
        left = left.saturating_sub(1);
        if left == 0 || Some(&key) == last.as_ref() || put(&key, &value).is_err() {
            break;
        }
    }
    Err(damage)
}

type RowGuards<'a, K, V> = (redb::AccessGuard<'a, K>, redb::AccessGuard<'a, V>);

fn to_bytes<K: Key + 'static, V: Value + 'static>(
    (key, value): RowGuards<'_, K, V>,
) -> (Vec<u8>, Vec<u8>) {
    let key = K::as_bytes(&key.value()).as_ref().to_vec();
    (key, V::as_bytes(&value.value()).as_ref().to_vec())
}

/// Moves rows that are not valid into the table for such rows.
fn remove_damaged_rows(new: &Database) -> Result<(), StoreFault> {
    let damaged = guarded(|| Ok(recover(&new.begin_read()?)?.damaged));
    // The counters may be among what cannot be read.
    let damaged = damaged.or_else(|_| {
        write(new, |it| Ok(it.open_table(META)?.remove(StoreCounters::KEY).map(drop)?))?;
        guarded(|| Ok(recover(&new.begin_read()?)?.damaged))
    })?;
    write(new, |transaction| damaged.iter().try_for_each(|row| move_row(transaction, row)))
}

/// Keeps, of every session, the events up to the first that cannot be read. The others are set aside.
fn keep_prefixes(
    transaction: &WriteTransaction,
    losses: &mut Losses,
    now_unix_us: i64,
) -> Result<(), StoreFault> {
    let (mut known, mut ends) = (BTreeSet::new(), Vec::new());
    for mut session in all_sessions(transaction)? {
        known.insert(session.number);
        let (mut kept, mut bytes, mut lost) = (0, 0, Vec::new());
        let mut events = transaction.open_table(EVENTS)?;
        let all = pair(session.number, 0)..=pair(session.number, u64::MAX);
        let mut found = 0;
        for row in events.range(all)? {
            let (key, chunk) = row?;
            let (key, chunk) = (key.value(), chunk.value());
            let count = checked_count(&session.session_id, chunk);
            found += count.unwrap_or(0);
            let is_behind = losses.last_chunk.is_some_and(|last| key > last)
                || (losses.last_chunk.is_none() && losses.tables.contains(EVENTS.name()));
            match count {
                Some(count) if lost.is_empty() && !is_behind => {
                    (kept, bytes) = (kept + count, bytes + chunk.len() as u64);
                }
                _ => lost.push((key, chunk.to_vec())),
            }
        }
        if found == session.events {
            continue;
        }
        for (key, chunk) in lost {
            keep(transaction, "events", &key, &chunk)?;
            events.remove(key)?;
        }
        (session.events, session.bytes) = (kept, bytes);
        losses.sessions += 1;
        let mut sessions = transaction.open_table(SESSIONS)?;
        sessions.insert(session.session_id.as_str(), session.to_bytes().as_slice())?;
        ends.push(session.session_id);
    }
    let counters = StoreCounters::default();
    for session_id in ends {
        apply::end_session(transaction, &counters, &session_id, now_unix_us)?;
    }
    // Events of sessions that are not known any more cannot be found by anyone.
    let mut events = transaction.open_table(EVENTS)?;
    Ok(events.retain(|key, _| known.contains(&first(key)))?)
}

fn first(key: [u8; 16]) -> u64 {
    key.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn all_sessions(transaction: &WriteTransaction) -> Result<Vec<StoredSession>, StoreFault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let mut found = Vec::new();
    for row in sessions.iter()? {
        let (id, row) = row?;
        let id = parse(Some(id.value()), "sessions")?;
        found.push(StoredSession::parse(id, row.value())?);
    }
    Ok(found)
}

/// Writes the tables that only give others an order.
fn rebuild_order(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    let (mut running, mut ended) =
        (transaction.open_table(RUNNING)?, transaction.open_table(ENDED)?);
    running.retain(|_, _| false)?;
    ended.retain(|_, _| false)?;
    for session in all_sessions(transaction)? {
        let id = session.session_id.as_str();
        match session.ended_unix_us {
            None => running.insert(session.number, id)?,
            Some(unix_us) => ended.insert(pair(sortable(unix_us), session.number), id)?,
        };
    }
    let mut by_age = transaction.open_table(SETTLED_BY_AGE)?;
    for row in transaction.open_table(SETTLED)?.iter()? {
        let (token, row) = row?;
        by_age.insert(RowReader::new(row.value(), "settled").number()?, token.value())?;
    }
    let mut by_age = transaction.open_table(ANSWERS_BY_AGE)?;
    for row in transaction.open_table(ANSWERS)?.iter()? {
        let (key, row) = row?;
        by_age.insert(RowReader::new(row.value(), "answers").number()?, key.value())?;
    }
    Ok(())
}

/// Sets the counters to values that were never used, this far beyond those that are there.
fn set_counters(transaction: &WriteTransaction, margin: u64) -> Result<(), StoreFault> {
    let after = |highest: Option<u64>| highest.map_or(0, |it| it.saturating_add(1 + margin));
    let (mut session, mut bytes) = (None, 0);
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let row = row?;
        let mut row = RowReader::new(row.1.value(), "sessions");
        session = session.max(Some(row.number()?));
    }
    for row in transaction.open_table(EVENTS)?.iter()? {
        bytes += row?.1.value().len() as u64;
    }
    let settled = transaction.open_table(SETTLED_BY_AGE)?.last()?.map(|row| row.0.value());
    let answers = transaction.open_table(ANSWERS_BY_AGE)?.last()?.map(|row| row.0.value());
    let order = highest_order(transaction)?;
    let mut meta = transaction.open_table(META)?;
    let mut known = counters(&meta)?;
    known.next_order = known.next_order.max(after(order));
    known.next_session = known.next_session.max(after(session));
    known.next_age = known.next_age.max(after(settled.max(answers)));
    known.event_bytes = bytes;
    meta.insert(StoreCounters::KEY, known.to_bytes().as_slice())?;
    meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
    set_incomplete(&mut meta, true)
}

fn highest_order(transaction: &WriteTransaction) -> Result<Option<u64>, StoreFault> {
    let mut highest = None;
    for row in transaction.open_table(EVENTS)?.iter()? {
        let row = row?;
        highest = highest.max(ids_of(row.1.value())?.last().map(|(_, order)| *order));
    }
    Ok(highest)
}

/// Applies the commits that only the journal has. If they do not fit, the store goes on without them; the journal
/// was kept.
fn follow_journal(new: &Database, path: &Path, losses: &Losses) -> Result<(), StoreFault> {
    if losses.tables.contains(META.name()) {
        adopt_journal(new, path)?;
    }
    let found = guarded(|| journal_of(&new.begin_read()?.open_table(META)?, path))?;
    match guarded(|| apply_journal(new, found, redb::Durability::Immediate)) {
        Err(StoreFault::Corrupt(why)) => {
            tracing::error!(why, "The journal does not fit what is left of the store.");
            // It belongs to the store with the earlier id.
            write(new, |it| replace_id(&mut it.open_table(META)?))
        }
        applied => applied,
    }
}

/// Takes from the journal whose it is and how far the database got, because the database has lost that.
fn adopt_journal(new: &Database, path: &Path) -> Result<(), StoreFault> {
    let Ok(Some((id, first))) = journal::identify(path) else { return Ok(()) };
    let found = journal::read(path, &id, first.saturating_sub(1), Some(true));
    write(new, |transaction| {
        let highest = highest_order(transaction)?;
        let mut meta = transaction.open_table(META)?;
        if !put_id(&mut meta, id)? {
            return Ok(());
        }
        let mut known = counters(&meta)?;
        known.commits = first.saturating_sub(1);
        for (number, content) in found.records {
            let has_known_event = |change: &StoreChange| matches!(change, StoreChange::Event { order, .. } if Some(*order) <= highest);
            if journal::decode(&content)?.changes.iter().any(has_known_event) {
                known.commits = number;
            }
        }
        meta.insert(StoreCounters::KEY, known.to_bytes().as_slice())?;
        set_has_journal(&mut meta, true)
    })
}

/// Ends the sessions that only the journal knows: what came before is lost.
fn end_sessions_after(
    transaction: &WriteTransaction,
    number: u64,
    now_unix_us: i64,
) -> Result<(), StoreFault> {
    let counters = counters(&transaction.open_table(META)?)?;
    for session in all_sessions(transaction)? {
        if session.number > number {
            apply::end_session(transaction, &counters, &session.session_id, now_unix_us)?;
        }
    }
    Ok(())
}

/// If principals were lost, nobody may get the number of one of them, because sessions belong to numbers.
fn keep_numbers_unused(transaction: &WriteTransaction, losses: &Losses) -> Result<(), StoreFault> {
    if !losses.tables.contains(PRINCIPALS.name()) {
        return Ok(());
    }
    let mut principals = transaction.open_table(PRINCIPALS)?;
    let mut highest = principals.last()?.map_or(0, |row| row.0.value());
    for session in all_sessions(transaction)? {
        highest = highest.max(session.principal.0);
    }
    for row in transaction.open_table(SUBSCRIPTIONS)?.iter()? {
        highest = highest.max(RowReader::new(row?.1.value(), "subscriptions").number()?);
    }
    // No principal has such a name.
    principals.insert(highest.saturating_add(NUMBER_MARGIN), "lost in a damaged store")?;
    Ok(())
}

/// Lets the store go on as a whole one, and from an audit log whose end it may not know any more.
fn continue_audit_log(
    transaction: &WriteTransaction,
    path: &Path,
    losses: &Losses,
) -> Result<(), StoreFault> {
    if losses.tables.contains(AUDIT_WAITING.name()) {
        let last = losses.last_waiting.unwrap_or(0);
        transaction.open_table(AUDIT_WAITING)?.retain(|seq, _| seq <= last)?;
    }
    let mut meta = transaction.open_table(META)?;
    give_id(&mut meta)?;
    let is_known = meta.get(SyncedAudit::KEY)?.is_some();
    let Ok(log) = audit::verify(path) else { return Ok(()) };
    if !is_known && losses.tables.contains(META.name()) && log.entries > 0 {
        let safe = SyncedAudit {
            first_seq: (log.last_seq + 1).saturating_sub(log.entries),
            seq: log.last_seq,
            hash: log.last_hash,
            bytes: fs::metadata(path)?.len(),
        };
        meta.insert(SyncedAudit::KEY, safe.to_bytes().as_slice())?;
        transaction.open_table(AUDIT_WAITING)?.retain(|seq, _| seq > safe.seq)?;
    }
    Ok(())
}

fn count(transaction: &ReadTransaction) -> Result<(u64, u64), StoreFault> {
    let (mut sessions, mut events) = (0, 0);
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let (id, row) = row?;
        let session = StoredSession::parse(parse(Some(id.value()), "sessions")?, row.value())?;
        (sessions, events) = (sessions + 1, events + session.events);
    }
    Ok((sessions, events))
}
