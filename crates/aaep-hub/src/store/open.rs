//! Opening the store: the folder, the database, its format, what it holds, the audit log.
//!
//! Refuses what it does not understand and changes nothing then.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{DatabaseError, Durability, ReadTransaction, ReadableDatabase, TableError};

use crate::audit::{
    AdoptError, AuditFile, Broken, Entry, Head, LOG_BROKEN, adopt, look, set_aside,
};
use crate::store::database::{Opener, Shared, builder, journal_of};
use crate::store::error::{CommitError, OpenError};
use crate::store::fault::{Fault, guarded};
use crate::store::folder::{AUDIT, DATABASE, Folder, JOURNAL, create_file, io_error};
use crate::store::journal::Journal;
use crate::store::log::{self, Log};
use crate::store::recover::{Recovered, counters, recover};
use crate::store::table::{AUDIT_WAITING, FORMAT, META, Safe, create_all, give_id, store_id};
use crate::store::{Retention, Store};

/// The row that has the format.
const FORMAT_KEY: &str = "format";

/// How the store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// How long ended sessions are kept.
    pub retention: Retention,
    /// Whether an audit log that is broken is set aside under another name, and a new one begun
    /// whose first entry says so. Otherwise such a log is a reason not to open.
    pub begin_new_audit_log: bool,
}

/// Opens the store in a folder.
pub(super) fn open(folder: &Path, options: OpenOptions) -> Result<(Store, Recovered), OpenError> {
    let path = folder.join(DATABASE);
    open_on(
        folder,
        options,
        Box::new(move |builder| builder.create_with_backend(FileBackend::new(open_file(&path)?)?)),
    )
}

/// The same with any way to open the database.
pub(super) fn open_on(
    folder: &Path,
    options: OpenOptions,
    opener: Opener,
) -> Result<(Store, Recovered), OpenError> {
    let lock = Folder::open(folder)?;
    let path = folder.join(DATABASE);
    create_file(&path).map_err(|error| io_error(folder, &path, &error))?;
    let failed = |fault| open_error(folder, fault);
    let audit_path = Arc::new(folder.join(AUDIT));
    let looked = look_first(folder, &audit_path)?;
    let refused = |broken| OpenError::AuditBroken { path: audit_path.to_path_buf(), broken };
    if let Some(Found { broken: Some(broken), .. }) = &looked
        && !options.begin_new_audit_log
    {
        return Err(refused(broken.clone()));
    }
    let journal_path = folder.join(JOURNAL);
    let shared = Shared::open(opener, Some(journal_path.clone())).map_err(failed)?;
    let shared = Arc::new(shared);
    take_on_format(&shared, folder, looked.is_none())?;
    let found = match looked {
        Some(found) => found,
        None => shared.read(|it| found_in(it, &audit_path)).map_err(failed)?,
    };
    let (log, broken) = match open_log(&shared, &audit_path).map_err(failed)? {
        Ok(log) => (log, None),
        Err(broken) if options.begin_new_audit_log => {
            let head = shared.read(log::head).map_err(failed)?;
            (Log::new(head, Safe::NOTHING, None), Some(broken))
        }
        Err(broken) => return Err(refused(broken)),
    };
    let id = shared.read(|it| store_id(&it.open_table(META)?)).map_err(failed)?;
    let mut store = Store {
        shared,
        log,
        // Without one, commits take longer.
        journal: id.and_then(|id| Journal::open(&journal_path, id).ok()),
        retention: options.retention,
        commits: found.commits,
        audit_path: Some(Arc::clone(&audit_path)),
        _lock: Some(lock),
    };
    if let Some(broken) = broken {
        begin_new_log(&mut store, &audit_path, &broken).map_err(failed)?;
    }
    store.sync_audit().map_err(|error| failed(Fault::Refused(error)))?;
    Ok((store, found.recovered))
}

/// A store without a folder.
pub(super) fn in_memory() -> Store {
    let is_used = AtomicBool::new(false);
    let opener: Opener = Box::new(move |builder| {
        if is_used.swap(true, Ordering::Relaxed) {
            // What was in memory is gone; a new one would be empty.
            return Err(redb::StorageError::DatabaseClosed.into());
        }
        builder.create_with_backend(InMemoryBackend::new())
    });
    let shared = Shared::open(opener, None).expect("memory does not fail");
    take_on_format(&shared, Path::new(""), true).expect("a new database has no format yet");
    let head = Head { seq: 0, hash: Safe::NOTHING.hash };
    Store {
        shared: Arc::new(shared),
        log: Log::new(head, Safe::NOTHING, None),
        journal: None,
        retention: Retention::default(),
        commits: 0,
        audit_path: None,
        _lock: None,
    }
}

fn open_file(path: &Path) -> Result<File, redb::DatabaseError> {
    // Made beforehand. If it is gone meanwhile, a new one would be an empty store.
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|error| redb::StorageError::Io(error).into())
}

/// What a look at the store gives.
struct Found {
    recovered: Recovered,
    commits: u64,
    /// How the audit file is broken, if it is.
    broken: Option<Broken>,
}

/// Reads all that is needed without writing a byte, so that a damaged store stays as it is. None for
/// a new store, and for one that a crash left: there redb checks every page before it writes, and takes on
/// what the journal has.
fn look_first(folder: &Path, audit_path: &Path) -> Result<Option<Found>, OpenError> {
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
            Some(_) => {
                let found = found_in(&transaction, audit_path)?;
                let meta = transaction.open_table(META)?;
                let records = journal_of(&meta, &folder.join(JOURNAL))?;
                Ok(Ok(records.is_empty().then_some(found)))
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

fn found_in(transaction: &ReadTransaction, audit_path: &Path) -> Result<Found, Fault> {
    let looked = look(audit_path, log::safe(transaction)?, waiting(transaction)?);
    let broken = match looked {
        Ok(()) => None,
        Err(AdoptError::Broken(broken)) => Some(broken),
        Err(AdoptError::Fault(fault)) => return Err(fault),
    };
    let commits = counters(&transaction.open_table(META)?)?.commits;
    Ok(Found { recovered: recover(transaction)?, commits, broken })
}

/// Makes the tables of a new store, and refuses formats of the future. Writes to the disk if it must, and
/// then all that was taken on from the journal.
fn take_on_format(shared: &Shared, folder: &Path, must_write: bool) -> Result<(), OpenError> {
    let failed = |fault| open_error(folder, fault);
    match shared.read(format).map_err(failed)? {
        Some(FORMAT) if !must_write => Ok(()),
        Some(found) if found > FORMAT => {
            Err(OpenError::FutureFormat { path: folder.join(DATABASE), found, known: FORMAT })
        }
        _ => {
            let (_, made) = shared.write(|transaction| {
                create_all(transaction)?;
                let mut meta = transaction.open_table(META)?;
                meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
                give_id(&mut meta)?;
                Ok(Durability::Immediate)
            });
            made.map(drop).map_err(failed)
        }
    }
}

/// The format; none for a new database.
fn format(transaction: &ReadTransaction) -> Result<Option<u32>, Fault> {
    let not_ours = || Fault::Corrupt("it is a database, but not of this program".to_owned());
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

/// Takes the audit file on, or says how it is broken.
fn open_log(shared: &Shared, path: &Path) -> Result<Result<Log, Broken>, Fault> {
    let (safe, head, adopted) = shared.read(|transaction| {
        let safe = log::safe(transaction)?;
        let head = log::head(transaction)?;
        Ok((safe, head, adopt_with(transaction, path, safe)))
    })?;
    match adopted {
        Ok(file) => Ok(Ok(Log::new(head, safe, Some(file)))),
        Err(AdoptError::Broken(broken)) => Ok(Err(broken)),
        Err(AdoptError::Fault(fault)) => Err(fault),
    }
}

fn adopt_with(
    transaction: &ReadTransaction,
    path: &Path,
    safe: Safe,
) -> Result<AuditFile, AdoptError> {
    let lines = waiting(transaction).map_err(AdoptError::Fault)?;
    adopt(path, safe, lines)
}

/// The lines that the file may lack, one at a time.
fn waiting(
    transaction: &ReadTransaction,
) -> Result<impl Iterator<Item = Result<Vec<u8>, Fault>>, Fault> {
    let table = transaction.open_table(AUDIT_WAITING)?;
    Ok(table.range(0..)?.map(|row| Ok(row?.1.value().to_vec())))
}

/// Sets the broken log aside and begins a new one, whose first entry says so.
fn begin_new_log(store: &mut Store, path: &Path, broken: &Broken) -> Result<(), Fault> {
    let shared = Arc::clone(&store.shared);
    let kept_as = shared.read(|transaction| set_aside(path, waiting(transaction)?))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let entry = Entry {
        unix_us: i64::try_from(now.as_micros()).unwrap_or(i64::MAX),
        kind: LOG_BROKEN,
        session_id: None,
        reply_token: None,
        who: None,
        outcome: format!("The log before this one is broken and was kept as {kept_as}. {broken}"),
        details: None,
    };
    // The file of the new log begins after what the store had; none of that waits for it.
    let head = shared.read(log::head)?;
    let safe = Safe { first_seq: head.seq + 1, seq: head.seq, hash: head.hash, bytes: 0 };
    store.log = Log::beginning(head, safe);
    store.transact(&[&entry], |_, _| Ok(())).map_err(Fault::Refused)?;
    match open_log(&shared, path)? {
        Ok(log) => {
            store.log = log;
            Ok(())
        }
        Err(broken) => Err(Fault::Corrupt(broken.to_string())),
    }
}

fn open_error(folder: &Path, fault: Fault) -> OpenError {
    let path = folder.join(DATABASE);
    match fault {
        Fault::Full | Fault::Refused(CommitError::Full) => {
            OpenError::Full { folder: folder.to_owned() }
        }
        Fault::InUse => OpenError::InUse { folder: folder.to_owned() },
        Fault::Corrupt(why) | Fault::Refused(CommitError::Corrupt { why }) => {
            OpenError::Corrupt { path, why }
        }
        Fault::Io(why) => OpenError::Io { path, why },
        Fault::Latched => OpenError::Io { path, why: "an earlier write failed".to_owned() },
        Fault::Refused(error) => OpenError::Io { path, why: error.to_string() },
    }
}
