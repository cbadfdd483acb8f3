//! Opens the store: the folder, the database, its format, its contents, the audit log.
//!
//! If it finds anything that it does not understand, it refuses and changes nothing; or, if the caller wants that,
//! it keeps the file under another name, goes on with what can be read, and says so.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{DatabaseError, Durability, ReadTransaction, ReadableDatabase, TableError};

use crate::audit::{
    AdoptError, AdoptedLog, Broken, ChainHead, Entry, KeptLog, KnownLog, LOG_BROKEN, adopt, look,
};
use crate::store::age::{AgeClock, CountedTime};
use crate::store::database::{DatabaseOpener, SharedDatabase, builder, journal_of};
use crate::store::error::{CommitError, OpenError};
use crate::store::fault::{StoreFault, guarded};
use crate::store::folder::{AUDIT, DATABASE, JOURNAL, LockedFolder, create_file, io_error};
use crate::store::journal::{JournalEnd, JournalWriter, StoreId};
use crate::store::log::{self, AuditLogWriter};
use crate::store::recover::{RecoveredStore, counters, recover};
use crate::store::table::{
    AUDIT_WAITING, FORMAT, META, SyncedAudit, create_all, give_id, is_incomplete, store_id,
};
use crate::store::{
    Retention, Store, event_ids, held_names, salvage, set_aside, settled_shares, spare,
};

/// The row that contains the format.
pub(super) const FORMAT_KEY: &str = "format";

/// The first format that stores who holds which name.
const FORMAT_WITH_HELD_NAMES: u32 = 6;

/// The first format with runs of event ids.
const FORMAT_WITH_EVENT_ID_RUNS: u32 = 5;

/// The first format with shares of settled asks.
const FORMAT_WITH_SETTLED_SHARES: u32 = 4;

/// How the store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// How long ended sessions are kept.
    pub retention: Retention,
    /// Whether to set aside what cannot be read, under another name, and go on with the rest: a damaged
    /// database, and an audit log that was changed. Otherwise the store does not open, and nothing is changed.
    pub repairs: bool,
}

/// Opens the store in a folder.
pub(super) fn open(
    folder: &Path,
    options: OpenOptions,
) -> Result<(Store, RecoveredStore), OpenError> {
    let open = || {
        let path = folder.join(DATABASE);
        let opener: DatabaseOpener = Box::new(move |builder| {
            builder.create_with_backend(FileBackend::new(open_file(&path)?)?)
        });
        open_on(folder, options, opener)
    };
    let with_room = || match open() {
        Err(OpenError::Full { .. }) if spare::release(folder) => open(),
        opened => opened,
    };
    let opened = match with_room() {
        Err(OpenError::Corrupt { why, .. }) if options.repairs => {
            return rebuild(folder, options, &why);
        }
        opened => opened,
    };
    if let Ok((store, _)) = &opened {
        store.keep_spare_room();
    }
    opened
}

/// Opens the store in a folder after everything that can be read was taken over into a new database.
pub(super) fn rebuild(
    folder: &Path,
    options: OpenOptions,
    why: &str,
) -> Result<(Store, RecoveredStore), OpenError> {
    let note = salvage::salvage(folder, why, now_unix_us())?;
    // What is still damaged now cannot be repaired.
    let opened = open(folder, OpenOptions { repairs: false, ..options });
    let (mut store, mut recovered) = match opened {
        // The audit log may be broken as well.
        Err(OpenError::AuditBroken { .. }) => open(folder, options)?,
        opened => opened?,
    };
    record(&mut store, std::slice::from_ref(&note)).map_err(|fault| open_error(folder, fault))?;
    recovered.notes.insert(0, note);
    Ok((store, recovered))
}

/// The same as `open`, with any way to open the database.
pub(super) fn open_on(
    folder: &Path,
    options: OpenOptions,
    opener: DatabaseOpener,
) -> Result<(Store, RecoveredStore), OpenError> {
    let lock = LockedFolder::open(folder)?;
    let path = folder.join(DATABASE);
    create_file(&path).map_err(|error| io_error(folder, &path, &error))?;
    let failed = |fault| open_error(folder, fault);
    let audit_path = Arc::new(folder.join(AUDIT));
    let looked = inspect_first(folder, &audit_path)?;
    let refused = |broken| OpenError::AuditBroken { path: audit_path.to_path_buf(), broken };
    if let Some(StoreInspection { broken: Some(broken), .. }) = &looked
        && !options.repairs
    {
        return Err(refused(broken.clone()));
    }
    let journal_path = folder.join(JOURNAL);
    let (shared, lost) =
        SharedDatabase::open(opener, Some(journal_path.clone())).map_err(failed)?;
    let shared = Arc::new(shared);
    let is_full = match upgrade_format(&shared, folder, looked.is_none()) {
        Ok(()) => false,
        // Nothing can be written except what makes room. What only the journal has stays there.
        Err(OpenError::Full { .. })
            if shared.read(format).is_ok_and(|format| format == Some(FORMAT)) =>
        {
            true
        }
        Err(error) => return Err(error),
    };
    let mut found = match looked {
        Some(found) => found,
        None => shared.read(|it| found_in(it, &audit_path)).map_err(failed)?,
    };
    let was_incomplete = shared.read(|it| is_incomplete(&it.open_table(META)?)).map_err(failed)?;
    found.recovered.is_incomplete = lost.is_some() || was_incomplete;
    let may_be_ahead = lost.is_some() || was_incomplete;
    found.recovered.notes.extend(lost);
    let (log, broken) = match open_log(&shared, &audit_path, may_be_ahead).map_err(failed)? {
        Ok((log, note)) => {
            found.recovered.notes.extend(note);
            (log, None)
        }
        Err(broken) if options.repairs => {
            let head = shared.read(log::head).map_err(failed)?;
            (AuditLogWriter::new(head, SyncedAudit::NOTHING, None), Some(broken))
        }
        Err(broken) => return Err(refused(broken)),
    };
    let (id, counted) = shared
        .read(|it| {
            let meta = it.open_table(META)?;
            Ok((store_id(&meta)?, CountedTime::read(&meta)?))
        })
        .map_err(failed)?;
    let mut store = Store {
        shared,
        log,
        journal: None,
        retention: options.retention,
        commits: found.commits,
        is_full: false,
        is_stale: false,
        doubt: None,
        is_incomplete: found.recovered.is_incomplete,
        beyond_bounds: 0,
        newest_ids: event_ids::NewestIds::default(),
        age: AgeClock::new(counted),
        audit_path: Some(Arc::clone(&audit_path)),
        _lock: Some(lock),
    };
    // Any program that opens the store records what was found, not only a hub.
    let notes = found.recovered.notes.clone();
    if let Some(broken) = broken {
        let note = begin_new_log(&mut store, &audit_path, &broken).map_err(failed)?;
        found.recovered.notes.push(note);
    }
    record(&mut store, &notes).map_err(failed)?;
    match store.sync_audit() {
        // The entries stay in the store until there is room.
        Ok(_) | Err(CommitError::Full) => {}
        Err(error) => return Err(failed(StoreFault::Refused(error))),
    }
    if !is_full {
        begin_journal(&mut store, &journal_path, id);
    }
    Ok((store, found.recovered))
}

/// Writes into the audit log what a start found.
fn record(store: &mut Store, notes: &[String]) -> Result<(), StoreFault> {
    let entries = set_aside::entries(notes, now_unix_us());
    let entries: Vec<&Entry> = entries.iter().collect();
    if entries.is_empty() {
        return Ok(());
    }
    match store.transact(&entries, |_, _| Ok(())) {
        Ok(()) | Err(CommitError::Full) => Ok(()),
        Err(error) => Err(StoreFault::Refused(error)),
    }
}

/// Starts the journal: from now on commits may be in the journal alone, which the database records first.
/// Without a journal, as on a full disk, commits take longer.
fn begin_journal(store: &mut Store, path: &Path, id: Option<StoreId>) {
    store.journal = id.and_then(|id| JournalWriter::open(path, id).ok());
    if store.journal.is_some() && store.transact(&[], |_, _| Ok(())).is_err() {
        store.journal = None;
    }
}

/// A store without a folder.
pub(super) fn in_memory() -> Store {
    let is_used = AtomicBool::new(false);
    let opener: DatabaseOpener = Box::new(move |builder| {
        if is_used.swap(true, Ordering::Relaxed) {
            // The contents were in memory and are gone; a new database would be empty.
            return Err(redb::StorageError::DatabaseClosed.into());
        }
        builder.create_with_backend(InMemoryBackend::new())
    });
    let (shared, _) = SharedDatabase::open(opener, None).expect("memory does not fail");
    upgrade_format(&shared, Path::new(""), true).expect("a new database has no format yet");
    let head = ChainHead { seq: 0, hash: SyncedAudit::NOTHING.hash };
    Store {
        shared: Arc::new(shared),
        log: AuditLogWriter::new(head, SyncedAudit::NOTHING, None),
        journal: None,
        retention: Retention::default(),
        commits: 0,
        is_full: false,
        is_stale: false,
        doubt: None,
        is_incomplete: false,
        beyond_bounds: 0,
        newest_ids: event_ids::NewestIds::default(),
        age: AgeClock::default(),
        audit_path: None,
        _lock: None,
    }
}

fn open_file(path: &Path) -> Result<File, redb::DatabaseError> {
    // The file was created before. If it is gone by now, a new one would be an empty store.
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|error| redb::StorageError::Io(error).into())
}

/// What inspecting the store found.
struct StoreInspection {
    recovered: RecoveredStore,
    commits: u64,
    /// How the audit file is broken, if it is.
    broken: Option<Broken>,
}

/// Reads everything without writing a byte, so that a damaged store stays as it is. Returns `None` for a new
/// store, and for one that a crash left behind: in that case redb checks every page before it writes, and the
/// journal has to be applied.
fn inspect_first(folder: &Path, audit_path: &Path) -> Result<Option<StoreInspection>, OpenError> {
    let path = folder.join(DATABASE);
    if fs::metadata(&path).map_err(|error| io_error(folder, &path, &error))?.len() == 0 {
        return Ok(None);
    }
    let looked = guarded(|| {
        let database = match builder().open_read_only(&path) {
            Ok(database) => database,
            Err(DatabaseError::RepairAborted) => return Ok(Ok(None)),
            Err(error) => return Err(error.into()),
        };
        let transaction = database.begin_read()?;
        match format(&transaction)? {
            Some(found) if found > FORMAT => Ok(Err(found)),
            // It is read after it was upgraded.
            Some(found) if found < FORMAT => Ok(Ok(None)),
            Some(_) => {
                let found = found_in(&transaction, audit_path)?;
                let meta = transaction.open_table(META)?;
                let journal = journal_of(&meta, &folder.join(JOURNAL))?;
                let is_closed = journal.records.is_empty()
                    && matches!(journal.end, JournalEnd::Whole | JournalEnd::Cut);
                Ok(Ok(is_closed.then_some(found)))
            }
            None => Ok(Ok(None)),
        }
    });
    looked.map_err(|fault| open_error(folder, fault))?.map_err(|found| OpenError::FutureFormat {
        path,
        found,
        known: FORMAT,
    })
}

fn found_in(
    transaction: &ReadTransaction,
    audit_path: &Path,
) -> Result<StoreInspection, StoreFault> {
    let looked = look(audit_path, log::safe(transaction)?, || waiting(transaction));
    let broken = match looked {
        Ok(()) => None,
        Err(AdoptError::Broken(broken)) => Some(broken),
        Err(AdoptError::Fault(fault)) => return Err(fault),
    };
    let commits = counters(&transaction.open_table(META)?)?.commits;
    Ok(StoreInspection { recovered: recover(transaction)?, commits, broken })
}

/// Creates the tables of a new store, updates older formats, and refuses future ones. If it writes to the disk,
/// that includes everything that was taken from the journal.
fn upgrade_format(
    shared: &SharedDatabase,
    folder: &Path,
    must_write: bool,
) -> Result<(), OpenError> {
    let failed = |fault| open_error(folder, fault);
    let before = shared.read(format).map_err(failed)?;
    match before {
        Some(FORMAT) if !must_write => Ok(()),
        Some(found) if found > FORMAT => {
            Err(OpenError::FutureFormat { path: folder.join(DATABASE), found, known: FORMAT })
        }
        _ => {
            let (_, made) = shared.write(|transaction| {
                create_all(transaction)?;
                if before.is_some_and(|before| before < FORMAT_WITH_EVENT_ID_RUNS) {
                    event_ids::add_all(transaction)?;
                }
                if before.is_some_and(|before| before < FORMAT_WITH_SETTLED_SHARES) {
                    settled_shares::add_all(transaction)?;
                }
                if before.is_some_and(|before| before < FORMAT_WITH_HELD_NAMES) {
                    held_names::add_all(transaction)?;
                }
                let mut meta = transaction.open_table(META)?;
                meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
                give_id(&mut meta)?;
                Ok(Durability::Immediate)
            });
            made.map(drop).map_err(failed)
        }
    }
}

/// The format; `None` for a new database.
fn format(transaction: &ReadTransaction) -> Result<Option<u32>, StoreFault> {
    let not_ours = || StoreFault::Corrupt("it is a database, but not of this program".to_owned());
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) if transaction.list_tables()?.next().is_none() => {
            return Ok(None);
        }
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(not_ours()),
    };
    let row = meta.get(FORMAT_KEY)?.ok_or_else(not_ours)?;
    let bytes = row.value().try_into().map_err(|_| not_ours())?;
    match u32::from_le_bytes(bytes) {
        0 => Err(not_ours()),
        format => Ok(Some(format)),
    }
}

/// Opens the audit file, or returns how it is broken. If the store lost commits, the file may be ahead of it.
fn open_log(
    shared: &SharedDatabase,
    path: &Path,
    may_be_ahead: bool,
) -> Result<Result<(AuditLogWriter, Option<String>), Broken>, StoreFault> {
    let (safe, head, adopted) = shared.read(|transaction| {
        let safe = log::safe(transaction)?;
        let head = log::head(transaction)?;
        let newest_commit = log::newest_commit(transaction)?;
        let known = KnownLog { safe, head, may_be_ahead, newest_commit };
        Ok((safe, head, adopt(path, known, || waiting(transaction))))
    })?;
    match adopted {
        Ok(AdoptedLog { file, ahead: Some((head, bytes)), note, .. }) => {
            let safe =
                SyncedAudit { first_seq: safe.first_seq, seq: head.seq, hash: head.hash, bytes };
            Ok(Ok((AuditLogWriter::with_file_ahead(head, safe, file), note)))
        }
        Ok(AdoptedLog { file, ahead: None, note, missing }) => {
            Ok(Ok((AuditLogWriter::with_missing_lines(head, missing, safe, file), note)))
        }
        Err(AdoptError::Broken(broken)) => Ok(Err(broken)),
        Err(AdoptError::Fault(fault)) => Err(fault),
    }
}

/// The lines that the file may lack, one at a time.
fn waiting(
    transaction: &ReadTransaction,
) -> Result<impl Iterator<Item = Result<Vec<u8>, StoreFault>>, StoreFault> {
    let table = transaction.open_table(AUDIT_WAITING)?;
    Ok(table.range(0..)?.map(|row| Ok(row?.1.value().to_vec())))
}

/// Sets the broken log aside and begins a new one, whose first entry says so. Returns the same for people.
fn begin_new_log(store: &mut Store, path: &Path, broken: &Broken) -> Result<String, StoreFault> {
    let shared = Arc::clone(&store.shared);
    let KeptLog { name, digest } = shared.read(|it| crate::audit::set_aside(path, waiting(it)?))?;
    let digest = match digest {
        Some(digest) => format!("SHA-256 {digest}"),
        None => "it cannot be read".to_owned(),
    };
    let outcome = format!(
        "The audit log before this one is broken and was kept as {name} ({digest}). {broken}"
    );
    let entry = Entry {
        unix_us: now_unix_us(),
        kind: LOG_BROKEN,
        session_id: None,
        reply_token: None,
        who: None,
        outcome: outcome.clone(),
        details: None,
    };
    // The new file begins after the store's last entry; none of the earlier entries waits for it.
    let head = shared.read(log::head)?;
    let safe = SyncedAudit { first_seq: head.seq + 1, seq: head.seq, hash: head.hash, bytes: 0 };
    store.log = AuditLogWriter::after_broken_log(head, safe);
    store.transact(&[&entry], |_, _| Ok(())).map_err(StoreFault::Refused)?;
    match open_log(&shared, path, false)? {
        Ok((log, _)) => {
            store.log = log;
            Ok(outcome)
        }
        Err(broken) => Err(StoreFault::Corrupt(broken.to_string())),
    }
}

fn now_unix_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn open_error(folder: &Path, fault: StoreFault) -> OpenError {
    let path = folder.join(DATABASE);
    match fault {
        StoreFault::Full | StoreFault::Refused(CommitError::Full) => {
            OpenError::Full { folder: folder.to_owned() }
        }
        StoreFault::InUse => OpenError::InUse { folder: folder.to_owned() },
        StoreFault::Corrupt(why) | StoreFault::Refused(CommitError::Corrupt { why }) => {
            OpenError::Corrupt { path, why }
        }
        StoreFault::Io(why) => OpenError::Io { path, why },
        StoreFault::Latched => OpenError::Io { path, why: "an earlier write failed".to_owned() },
        StoreFault::Refused(error) => OpenError::Io { path, why: error.to_string() },
    }
}
