//! Builds a store from the stream of a backup.
//!
//! The store is built next to its destination under another name, and gets its final name when everything is on
//! disk and the audit log is verified. A failure before that leaves nothing behind that looks complete.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use redb::{Durability, Key, TableDefinition, TableHandle, Value, WriteTransaction};
use sha2::{Digest, Sha256};

use super::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ASKS, AUDIT_DETAILS, AUDIT_LOG, AUDIT_OF_SESSION,
    AUDIT_WAITING, BEGINNING, END, ENDED, EVENTS, HELD_NAMES, META, PRINCIPALS, ROW, RUNNING,
    SESSIONS, SET_ASIDE, SETTLED, SETTLED_BY_AGE, SETTLED_OF_SESSION, SUBSCRIPTIONS, TABLE,
    each_table, is_fitting,
};
use crate::audit::verify;
use crate::store::fault::StoreFault;
use crate::store::folder::{AUDIT, create_file, sync_folder};
use crate::store::{
    CommitError, OpenError, Retention, Store, event_ids, held_names, log, settled_shares,
};

/// How many bytes of rows are stored at a time.
const GROUP_BYTES: usize = 8 << 20;

/// The longest part of a record.
const MAX_PART_BYTES: u64 = 256 << 20;

/// Whether a row belongs to one store only: its id, its format, or the state of its journal.
fn is_store_specific(key: &[u8]) -> bool {
    matches!(key, b"id" | b"format") || key.starts_with(b"journal")
}

/// The result of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// How many entries its audit log has.
    pub audit_entries: u64,
    /// How many sessions it has.
    pub sessions: u64,
}

/// Why a backup could not be made or restored.
#[derive(Debug)]
pub enum BackupError {
    /// The destination is not empty.
    NotEmpty(PathBuf),
    /// The stream ended early or was changed.
    Incomplete,
    /// There is no room.
    Full,
    /// A file could not be read or written.
    Io(String),
    /// The audit log of the backup cannot be trusted.
    AuditBroken(String),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::NotEmpty(path) => {
                let path = path.to_string_lossy();
                let path = aaep::printable(&path);
                write!(f, "There is something in {path} already. Choose a new or an empty folder.")
            }
            BackupError::Incomplete => f.write_str(
                "The backup broke off before it was complete, so nothing was kept. Try again.",
            ),
            BackupError::Full => f.write_str(
                "There is no room for the backup, so nothing was kept. Free some room, or choose another disk.",
            ),
            BackupError::Io(why) => {
                let why = aaep::printable(why);
                write!(f, "The backup could not be written: {why}. Nothing was kept. Check the folder and the disk.")
            }
            BackupError::AuditBroken(why) => write!(
                f,
                "The audit log cannot be trusted, so no backup was kept. {why} Keep a copy of the store as it is, and find out who changed it."
            ),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BackupError::Full,
            io::ErrorKind::UnexpectedEof => BackupError::Incomplete,
            _ => BackupError::Io(error.to_string()),
        }
    }
}

impl From<StoreFault> for BackupError {
    fn from(fault: StoreFault) -> Self {
        match CommitError::from(fault) {
            CommitError::Full => BackupError::Full,
            CommitError::Corrupt { .. } => BackupError::Incomplete,
            other => BackupError::Io(other.to_string()),
        }
    }
}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Full { .. } => BackupError::Full,
            OpenError::AuditBroken { broken, .. } => BackupError::AuditBroken(broken.to_string()),
            other => BackupError::Io(other.to_string()),
        }
    }
}

/// Builds a store from a backup, in a folder that must be new or empty.
pub fn restore(from: &mut impl Read, folder: &Path) -> Result<Restored, BackupError> {
    if fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()) || folder.is_file() {
        return Err(BackupError::NotEmpty(folder.to_owned()));
    }
    let partial = partial_name(folder)?;
    let restored = restore_in(from, &partial).and_then(|restored| {
        if cfg!(not(unix)) && folder.is_dir() {
            fs::remove_dir(folder)?;
        }
        // This replaces an empty folder of this name, but not one that has been filled meanwhile.
        fs::rename(&partial, folder)?;
        let parent = partial.parent().filter(|it| !it.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
        Ok(restored)
    });
    if restored.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    restored
}

/// An unused name next to the destination.
fn partial_name(folder: &Path) -> Result<PathBuf, BackupError> {
    let name = folder.file_name().ok_or_else(|| BackupError::NotEmpty(folder.to_owned()))?;
    let mut name = name.to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    let partial = folder.with_file_name(name);
    if partial.exists() { Err(BackupError::NotEmpty(partial)) } else { Ok(partial) }
}

fn restore_in(from: &mut impl Read, folder: &Path) -> Result<Restored, BackupError> {
    let (store, _) = Store::open(folder, Retention::default())?;
    let audit_path = folder.join(AUDIT);
    let audit_log = create_file(&audit_path)?;
    audit_log.set_len(0)?;
    let mut source = BackupReader { from, digest: Sha256::new() };
    read_stream(&mut source, &store, audit_log)?;
    let (_, indexed) = store.shared.write(|transaction| {
        event_ids::add_all(transaction)?;
        settled_shares::add_all(transaction)?;
        // A backup of an earlier version has no names.
        held_names::add_all(transaction)?;
        log::forget_newest_commit(transaction)?;
        Ok(Durability::Immediate)
    });
    indexed?;
    drop(store);
    // Opening writes the entries that the log lacked, as after a crash.
    let (store, _) = Store::open(folder, Retention::default())?;
    let sessions = count_sessions(&store)?;
    drop(store);
    let verified = verify(&audit_path);
    let verified = verified.map_err(|broken| BackupError::AuditBroken(broken.to_string()))?;
    Ok(Restored { audit_entries: verified.entries, sessions })
}

fn count_sessions(store: &Store) -> Result<u64, BackupError> {
    use redb::ReadableTableMetadata as _;
    Ok(store.shared.read(|transaction| Ok(transaction.open_table(SESSIONS)?.len()?))?)
}

/// The source of the stream, with the digest so far.
struct BackupReader<'r, R: Read> {
    from: &'r mut R,
    digest: Sha256,
}

impl<R: Read> BackupReader<'_, R> {
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], BackupError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.digest.update(bytes);
        Ok(bytes)
    }

    fn sized(&mut self) -> Result<Vec<u8>, BackupError> {
        let length = u64::from_le_bytes(self.read_array()?);
        if length > MAX_PART_BYTES {
            return Err(BackupError::Incomplete);
        }
        let mut bytes = Vec::new();
        self.from.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(BackupError::Incomplete);
        }
        self.digest.update(&bytes);
        Ok(bytes)
    }
}

type BackupRow = (Vec<u8>, Vec<u8>);

fn read_stream<R: Read>(
    source: &mut BackupReader<'_, R>,
    store: &Store,
    mut audit_log: File,
) -> Result<(), BackupError> {
    if source.read_array::<{ BEGINNING.len() }>()? != *BEGINNING {
        return Err(BackupError::Incomplete);
    }
    let (mut table, mut rows, mut bytes) = (String::new(), Vec::new(), 0);
    loop {
        let before = source.digest.clone();
        let [kind] = source.read_array()?;
        if kind != ROW || bytes >= GROUP_BYTES {
            store_rows(store, &table, &std::mem::take(&mut rows))?;
            bytes = 0;
        }
        match kind {
            TABLE => {
                table = String::from_utf8(source.sized()?).map_err(|_| BackupError::Incomplete)?;
            }
            ROW => {
                let row = (source.sized()?, source.sized()?);
                bytes += row.0.len() + row.1.len();
                rows.push(row);
            }
            AUDIT_LOG => audit_log.write_all(&source.sized()?)?,
            END => {
                let expected: [u8; 32] = before.finalize().into();
                if source.read_array::<32>()? != expected {
                    return Err(BackupError::Incomplete);
                }
                return Ok(audit_log.sync_all()?);
            }
            _ => return Err(BackupError::Incomplete),
        }
    }
}

fn store_rows(store: &Store, table: &str, rows: &[BackupRow]) -> Result<(), BackupError> {
    if rows.is_empty() {
        return Ok(());
    }
    let (_, stored) = store.shared.write(|transaction| {
        let mut is_known = false;
        each_table!(fill_table(transaction, table, rows, &mut is_known));
        if is_known {
            Ok(Durability::Immediate)
        } else {
            Err(StoreFault::Corrupt(format!("a table {table} is not known")))
        }
    });
    Ok(stored.map(drop)?)
}

/// Puts rows into this table, if `name` is its name. Bytes that do not fit the table are a fault of the stream.
fn fill_table<K: Key + 'static, V: Value + 'static>(
    definition: TableDefinition<'static, K, V>,
    transaction: &WriteTransaction,
    name: &str,
    rows: &[BackupRow],
    is_known: &mut bool,
) -> Result<(), StoreFault> {
    if definition.name() != name {
        return Ok(());
    }
    *is_known = true;
    let mut table = transaction.open_table(definition)?;
    for (key, value) in rows {
        if name == META.name() && is_store_specific(key) {
            continue;
        }
        if !is_fitting::<K, V>(key, value) {
            return Err(StoreFault::row("a backup"));
        }
        table.insert(K::from_bytes(key), V::from_bytes(value))?;
    }
    Ok(())
}
