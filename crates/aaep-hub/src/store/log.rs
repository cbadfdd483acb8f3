//! The writer's side of the audit log: entries go into the store first, then into the file.
//!
//! The store keeps every entry until the file is known to be on disk, so that the two never disagree after a
//! crash.

use std::borrow::Cow;

use aaep::SessionId;
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, Table, WriteTransaction};

use crate::audit::{AuditFile, ChainHead, Entry, Hash, details_hash, new_salt};
use crate::bounds::MAX_NAME_BYTES;
use crate::store::error::CommitError;
use crate::store::fault::StoreFault;
use crate::store::reader::Reader;
use crate::store::table::{
    AUDIT_DETAILS, AUDIT_OF_SESSION, AUDIT_WAITING, META, RowReader, SyncedAudit, pair,
};
use crate::store::{AuditState, asks};

/// How many entries may be waiting in the store before the file is synced.
const MAX_WAITING_ENTRIES: u64 = 256;

/// How many entries a store in memory keeps.
const MAX_ENTRIES_IN_MEMORY: u64 = 65_536;

/// How many missing lines are appended to the file at a time.
const CATCH_UP_LINES: usize = 256;

/// How far the log has got, in the store and in the file.
#[derive(Debug)]
pub(super) struct AuditLogWriter {
    /// The last entry in the store.
    head: ChainHead,
    /// The number of the last entry in the file.
    seq_in_file: u64,
    /// The part of the file that is on disk, as recorded in the store.
    safe: SyncedAudit,
    /// The part of the file that is on disk, if the store has not recorded it yet.
    newly_safe: Option<SyncedAudit>,
    /// `None` for a store in memory.
    file: Option<AuditFile>,
}

/// An entry that is about to be written.
#[derive(Debug)]
pub(super) struct PreparedEntry {
    pub(super) head: ChainHead,
    pub(super) line: Vec<u8>,
    pub(super) session_id: Option<SessionId>,
    pub(super) unix_us: i64,
    /// The salt and the words.
    pub(super) details: Option<([u8; 32], String)>,
}

impl AuditLogWriter {
    /// A log whose file, if it has one, contains everything that the store has.
    pub(super) fn new(head: ChainHead, safe: SyncedAudit, file: Option<AuditFile>) -> Self {
        AuditLogWriter { head, seq_in_file: head.seq, safe, newly_safe: None, file }
    }

    /// A new log after this head: the store drops the entries that waited before it.
    pub(super) fn after_broken_log(head: ChainHead, safe: SyncedAudit) -> Self {
        AuditLogWriter { head, seq_in_file: head.seq, safe, newly_safe: Some(safe), file: None }
    }

    /// A log whose file lacks this many of the last entries, because there was no room.
    pub(super) fn with_missing_lines(
        head: ChainHead,
        missing: u64,
        safe: SyncedAudit,
        file: AuditFile,
    ) -> Self {
        let seq_in_file = head.seq.saturating_sub(missing);
        AuditLogWriter { head, seq_in_file, safe, newly_safe: None, file: Some(file) }
    }

    /// A log whose file is ahead of the store, because the store lost commits. The store continues from the end
    /// of the file.
    pub(super) fn with_file_ahead(head: ChainHead, safe: SyncedAudit, file: AuditFile) -> Self {
        let file = Some(file);
        AuditLogWriter { head, seq_in_file: head.seq, safe, newly_safe: Some(safe), file }
    }

    pub(super) fn state(&self) -> AuditState {
        let missing = self.file.as_ref().map_or(0, |_| self.head.seq - self.seq_in_file);
        AuditState { last_seq: self.head.seq, last_hash: self.head.hash, missing_in_file: missing }
    }

    /// Formats the lines of these entries, without counting them yet.
    pub(super) fn prepare(&self, entries: &[&Entry]) -> Result<Vec<PreparedEntry>, CommitError> {
        let mut head = self.head;
        let prepare = |entry: &&Entry| {
            let details = match &entry.details {
                None => None,
                Some(words) => {
                    let salt =
                        new_salt().map_err(|error| CommitError::Io { why: error.to_string() })?;
                    Some((salt, words.clone()))
                }
            };
            let hash = details.as_ref().map(|(salt, words)| details_hash(salt, words));
            let line = head.write(&clipped(entry), hash);
            let session_id = entry.session_id.clone();
            Ok(PreparedEntry { head, line, session_id, unix_us: entry.unix_us, details })
        };
        entries.iter().map(prepare).collect()
    }

    /// Writes the lines into the store, and drops those that are safe in the file.
    pub(super) fn write(
        &self,
        transaction: &WriteTransaction,
        meta: &mut Table<'_, &'static str, &'static [u8]>,
        lines: &[PreparedEntry],
    ) -> Result<(), StoreFault> {
        if let Some(safe) = self.newly_safe {
            transaction.open_table(AUDIT_WAITING)?.retain_in(..=safe.seq, |_, _| false)?;
            meta.insert(SyncedAudit::KEY, safe.to_bytes().as_slice())?;
        }
        write_lines(transaction, meta, lines)?;
        if self.file.is_none() && !lines.is_empty() {
            let mut waiting = transaction.open_table(AUDIT_WAITING)?;
            while waiting.len()? > MAX_ENTRIES_IN_MEMORY {
                waiting.pop_first()?;
            }
        }
        Ok(())
    }

    /// After the lines are in the store: appends them to the file. If that fails, they wait in the store.
    pub(super) fn append_to_file(&mut self, lines: Vec<PreparedEntry>, reader: &Reader) {
        if let Some(safe) = self.newly_safe.take() {
            self.safe = safe;
        }
        let Some(last) = lines.last() else { return };
        let was_level = self.seq_in_file == self.head.seq;
        self.head = last.head;
        let Some(file) = &mut self.file else { return };
        if was_level {
            let all: Vec<u8> = lines.into_iter().flat_map(|prepared| prepared.line).collect();
            if file.append(&all).is_ok() {
                self.seq_in_file = self.head.seq;
            }
        } else {
            self.catch_up(reader);
        }
        if self.head.seq - self.safe.seq >= MAX_WAITING_ENTRIES {
            self.sync();
        }
    }

    /// Appends the lines that an earlier failure kept out of the file.
    pub(super) fn catch_up(&mut self, reader: &Reader) {
        let Some(file) = &mut self.file else { return };
        while self.seq_in_file < self.head.seq {
            let from_seq = self.seq_in_file + 1;
            let Ok(lines) = reader.waiting_lines(from_seq, CATCH_UP_LINES) else { return };
            let Some((last_seq, _)) = lines.last() else { return };
            let last_seq = *last_seq;
            let all: Vec<u8> = lines.into_iter().flat_map(|(_, line)| line).collect();
            if file.append(&all).is_err() {
                return;
            }
            self.seq_in_file = last_seq;
        }
    }

    /// Waits until the file is on disk, if it has everything that the store has.
    pub(super) fn sync(&mut self) {
        let Some(file) = &mut self.file else { return };
        if self.seq_in_file != self.head.seq || self.safe.seq == self.head.seq {
            return;
        }
        if let Ok(bytes) = file.sync() {
            let ChainHead { seq, hash } = self.head;
            self.newly_safe =
                Some(SyncedAudit { first_seq: self.safe.first_seq, seq, hash, bytes });
        }
    }

    /// Whether the store still has lines that are safe in the file.
    pub(super) fn has_forgettable(&self) -> bool {
        self.newly_safe.is_some()
    }

    /// Continues from the head that the store has after it was opened again.
    pub(super) fn reload(&mut self, head: ChainHead) {
        self.head = head;
    }
}

/// Shortens an entry so that its line can be verified. It only cuts foreign text, which should have been
/// refused earlier; the entry itself is never omitted.
fn clipped(entry: &Entry) -> Cow<'_, Entry> {
    let is_long = |text: &str| text.len() > MAX_NAME_BYTES;
    if !entry.who.as_deref().is_some_and(is_long) && !is_long(&entry.outcome) {
        return Cow::Borrowed(entry);
    }
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
    let mut clipped = entry.clone();
    clipped.who = entry.who.as_deref().map(cut);
    clipped.outcome = cut(&entry.outcome);
    Cow::Owned(clipped)
}

/// The number of the first entry of the newest commit that has entries.
const NEWEST_COMMIT_KEY: &str = "audit commit";

/// Writes the lines of a commit into the store.
pub(super) fn write_lines(
    transaction: &WriteTransaction,
    meta: &mut Table<'_, &'static str, &'static [u8]>,
    lines: &[PreparedEntry],
) -> Result<(), StoreFault> {
    if let Some(first) = lines.first() {
        meta.insert(NEWEST_COMMIT_KEY, first.head.seq.to_le_bytes().as_slice())?;
    }
    for prepared in lines {
        let seq = prepared.head.seq;
        transaction.open_table(AUDIT_WAITING)?.insert(seq, prepared.line.as_slice())?;
        let Some((salt, words)) = &prepared.details else { continue };
        let session = match &prepared.session_id {
            Some(session_id) => asks::session_number(transaction, session_id)?,
            None => 0,
        };
        let row =
            [&session.to_le_bytes(), &prepared.unix_us.to_le_bytes(), &salt[..], words.as_bytes()]
                .concat();
        transaction.open_table(AUDIT_DETAILS)?.insert(seq, row.as_slice())?;
        transaction.open_table(AUDIT_OF_SESSION)?.insert(pair(session, seq), ())?;
    }
    Ok(())
}

/// The last entry that the store knows.
pub(super) fn head(transaction: &ReadTransaction) -> Result<ChainHead, StoreFault> {
    let waiting = transaction.open_table(AUDIT_WAITING)?;
    if let Some((seq, line)) = waiting.last()? {
        let hash = hash_of(line.value()).ok_or_else(|| StoreFault::row("audit waiting"))?;
        return Ok(ChainHead { seq: seq.value(), hash });
    }
    let SyncedAudit { seq, hash, .. } = safe(transaction)?;
    Ok(ChainHead { seq, hash })
}

/// The number of the first entry of the newest commit that has entries; 0 if a version before stored that commit. A kill
/// keeps no earlier entry out of the file.
pub(super) fn newest_commit(transaction: &ReadTransaction) -> Result<u64, StoreFault> {
    let meta = transaction.open_table(META)?;
    let row = meta.get(NEWEST_COMMIT_KEY)?;
    row.map_or(Ok(0), |row| RowReader::new(row.value(), "meta").number())
}

/// For a restored backup, whose file ends where the one of the store was known to be on disk.
pub(super) fn forget_newest_commit(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    transaction.open_table(META)?.remove(NEWEST_COMMIT_KEY)?;
    Ok(())
}

/// How much of the file is known to be on disk.
pub(super) fn safe(transaction: &ReadTransaction) -> Result<SyncedAudit, StoreFault> {
    let meta = transaction.open_table(META)?;
    let row = meta.get(SyncedAudit::KEY)?;
    row.map_or(Ok(SyncedAudit::NOTHING), |row| SyncedAudit::parse(row.value()))
}

/// The hash at the end of a line that we wrote.
fn hash_of(line: &[u8]) -> Option<Hash> {
    let digits = line.strip_suffix(b"\"}\n")?.last_chunk::<64>()?;
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Hash(hash))
}

#[cfg(test)]
impl AuditLogWriter {
    /// From now on the file has no room.
    pub(super) fn write_to_full_device(&mut self) {
        let device = std::fs::OpenOptions::new().write(true).open("/dev/full");
        self.file = Some(AuditFile::on(device.expect("Linux has it")));
    }
}
