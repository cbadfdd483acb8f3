//! Copies a whole store while the hub keeps working: one consistent snapshot, as a stream of bytes.
//!
//! The stream has every row of every table, and the part of the audit log that the store knows to be on disk;
//! the rest of the log is among the rows. Deleted data is in neither. The last record is the digest of
//! everything before it, so that an incomplete stream is always recognised.

mod restore;

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, TableHandle, Value};
use sha2::{Digest, Sha256};

pub use restore::{BackupError, Restored, restore};

use crate::store::fault::StoreFault;
use crate::store::log;
use crate::store::reader::Reader;
use crate::store::table::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ASKS, AUDIT_DETAILS, AUDIT_OF_SESSION, AUDIT_WAITING, ENDED,
    EVENT_ID_RUNS, EVENTS, HELD_NAMES, META, PRINCIPALS, RUNNING, SESSIONS, SET_ASIDE, SETTLED,
    SETTLED_BY_AGE, SETTLED_COUNTS, SETTLED_OF_PRINCIPAL, SETTLED_OF_SESSION, SUBSCRIPTIONS,
};
use crate::store::{ReadError, Store};

/// The beginning of every stream.
const BEGINNING: &[u8] = b"aaep backup 1\n";

/// The kinds of records.
const TABLE: u8 = 1;
const ROW: u8 = 2;
const AUDIT_LOG: u8 = 3;
const END: u8 = 4;

/// How many bytes of the audit log one record has at most.
const PIECE_BYTES: usize = 64 * 1024;

/// Does something with every table, one after the other.
macro_rules! each_table {
    ($call:ident($($argument:expr),*)) => {
        $call(META, $($argument),*)?;
        $call(SESSIONS, $($argument),*)?;
        $call(RUNNING, $($argument),*)?;
        $call(ENDED, $($argument),*)?;
        $call(EVENTS, $($argument),*)?;
        $call(ASKS, $($argument),*)?;
        $call(SETTLED, $($argument),*)?;
        $call(SETTLED_BY_AGE, $($argument),*)?;
        $call(SETTLED_OF_SESSION, $($argument),*)?;
        $call(SUBSCRIPTIONS, $($argument),*)?;
        $call(AGENTS, $($argument),*)?;
        $call(PRINCIPALS, $($argument),*)?;
        $call(HELD_NAMES, $($argument),*)?;
        $call(ANSWERS, $($argument),*)?;
        $call(ANSWERS_BY_AGE, $($argument),*)?;
        $call(AUDIT_WAITING, $($argument),*)?;
        $call(AUDIT_DETAILS, $($argument),*)?;
        $call(AUDIT_OF_SESSION, $($argument),*)?;
        $call(SET_ASIDE, $($argument),*)?;
    };
}
pub(in crate::store) use each_table;

/// Whether these bytes have the width that the types of a table want.
pub(in crate::store) fn is_fitting<K: Key + 'static, V: Value + 'static>(
    key: &[u8],
    value: &[u8],
) -> bool {
    let is_wide = |width: Option<usize>, bytes: &[u8]| width.is_none_or(|it| it == bytes.len());
    is_wide(K::fixed_width(), key) && is_wide(V::fixed_width(), value)
}

impl Reader {
    /// Writes a snapshot of the store into a file, from the beginning of the file.
    pub fn write_backup(&self, to: &File) -> Result<(), ReadError> {
        Ok(self.shared.read(|transaction| {
            let mut to = to;
            to.seek(SeekFrom::Start(0))?;
            to.set_len(0)?;
            let mut sink = BackupWriter { to: BufWriter::new(to), digest: Sha256::new() };
            sink.put(BEGINNING)?;
            write_tables(transaction, &mut sink)?;
            if let Some(path) = self.audit_path() {
                write_audit_log(transaction, path, &mut sink)?;
            }
            sink.end()?;
            Ok(())
        })?)
    }
}

impl Store {
    /// Writes the store into a file, as [`Reader::write_backup`] does.
    pub fn write_backup(&self, to: &File) -> Result<(), ReadError> {
        self.reader().write_backup(to)
    }
}

/// The destination of the stream, with the digest so far.
struct BackupWriter<W: Write> {
    to: W,
    digest: Sha256,
}

impl<W: Write> BackupWriter<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.to.write_all(bytes)
    }

    fn sized(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(&(bytes.len() as u64).to_le_bytes())?;
        self.put(bytes)
    }

    fn end(mut self) -> io::Result<()> {
        let digest = self.digest.finalize();
        self.to.write_all(&[END])?;
        self.to.write_all(&digest)?;
        self.to.flush()
    }
}

fn write_tables(
    transaction: &ReadTransaction,
    sink: &mut BackupWriter<impl Write>,
) -> Result<(), StoreFault> {
    let mut written = Vec::new();
    each_table!(write_table(transaction, sink, &mut written));
    // These tables are derived from the others, and are rebuilt when those are restored.
    let derived = [EVENT_ID_RUNS.name(), SETTLED_OF_PRINCIPAL.name(), SETTLED_COUNTS.name()];
    written.extend(derived.map(str::to_owned));
    // A table that is missing here would be missing from every backup.
    for table in transaction.list_tables()? {
        if !written.iter().any(|name| name == table.name()) {
            let why = format!("there is a table {} that cannot be backed up", table.name());
            return Err(StoreFault::Corrupt(why));
        }
    }
    Ok(())
}

fn write_table<K: Key + 'static, V: Value + 'static>(
    definition: TableDefinition<'static, K, V>,
    transaction: &ReadTransaction,
    sink: &mut BackupWriter<impl Write>,
    written: &mut Vec<String>,
) -> Result<(), StoreFault> {
    sink.put(&[TABLE])?;
    sink.sized(definition.name().as_bytes())?;
    for row in transaction.open_table(definition)?.iter()? {
        let (key, value) = row?;
        sink.put(&[ROW])?;
        sink.sized(K::as_bytes(&key.value()).as_ref())?;
        sink.sized(V::as_bytes(&value.value()).as_ref())?;
    }
    written.push(definition.name().to_owned());
    Ok(())
}

/// Writes the part of the file that the store knows to be on disk. That part never changes.
fn write_audit_log(
    transaction: &ReadTransaction,
    path: &Path,
    sink: &mut BackupWriter<impl Write>,
) -> Result<(), StoreFault> {
    let mut left = log::safe(transaction)?.bytes;
    if left == 0 {
        return Ok(());
    }
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let piece = piece.get_mut(..most).unwrap_or_default();
        file.read_exact(piece)?;
        sink.put(&[AUDIT_LOG])?;
        sink.sized(piece)?;
        left -= piece.len() as u64;
    }
    Ok(())
}
