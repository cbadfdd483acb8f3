//! The journal: commits that are on disk here before they are in the database.
//!
//! A commit is appended as one record, with one wait for the disk, and the database only takes it into memory.
//! Now and then the database writes everything at once, and the journal is emptied. After a crash the database
//! takes the records that it lacks from here. Why, and what was measured, is in `docs/decisions/journal.md`.
//!
//! A record has a number, one more than the previous one, and a checksum that is valid for one store only. The
//! bytes after the last record are zeros, on disk too. So a record that a power cut tore still has a sector of
//! zeros, or lacks its last byte; it was never acknowledged and does not count. A complete record with a wrong
//! checksum is damage, and so is a missing journal if the store was not closed. Both are reported and never
//! taken for a power cut; the caller decides what to do about them.

mod older;
mod record;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

pub(super) use record::decode;
use record::encode;

use crate::store::change::StoreChange;
use crate::store::folder::create_file;
use crate::store::log::PreparedEntry;

/// The longest journal. After a crash, this much has to be read.
pub(super) const MAX_BYTES: u64 = 4 << 20;

/// How many bytes the file grows at a time, filled with zeros: overwriting existing bytes is half the work for
/// the disk.
const STEP_BYTES: u64 = 256 << 10;

/// Identifies the journal of one store, so that one from another store is not used.
pub(super) type StoreId = [u8; 16];

/// The beginning of the file, and the length of its head.
const FILE_MARK: [u8; 8] = *b"AAEP jrn";
const FILE_HEAD_BYTES: u64 = 512;

/// The beginning of every record, the end of its head, and the end of the record.
const MARK: [u8; 8] = *b"AAEP rc2";
const HEAD_END: [u8; 8] = *b"AAEP hd:";
const END: [u8; 8] = *b"AAEP end";

/// Mark, number, length, checksum of the content, checksum of these, and the end of the head.
const HEAD_BYTES: usize = 48;

/// The smallest unit that a disk writes completely or not at all.
const SECTOR_BYTES: usize = 512;

/// The writer's end of the journal.
#[derive(Debug)]
pub(super) struct JournalWriter {
    id: StoreId,
    file: File,
    /// Where the next record goes. Earlier records are on disk, and the database may lack them there.
    end: u64,
    /// The length of the file.
    length: u64,
    /// Whether there may be a record at the end that might or might not count.
    is_in_doubt: bool,
}

impl JournalWriter {
    /// Opens or creates the file. The database must have all of its contents on disk.
    pub(super) fn open(path: &Path, id: StoreId) -> io::Result<Self> {
        let file = create_file(path)?;
        let length = file.metadata()?.len();
        let mut journal =
            JournalWriter { id, file, end: FILE_HEAD_BYTES, length, is_in_doubt: false };
        let mut bytes = Vec::new();
        journal.file.seek(SeekFrom::Start(0))?;
        (&journal.file).take(MAX_BYTES + STEP_BYTES).read_to_end(&mut bytes)?;
        let head = file_head(&id);
        let is_clean = bytes
            .split_at_checked(head.len())
            .is_some_and(|(found, rest)| found == head && rest.iter().all(|byte| *byte == 0));
        if !is_clean {
            bytes.fill(0);
            journal.write_at(0, &bytes)?;
            journal.write_at(0, &head)?;
            journal.length = length.max(head.len() as u64);
            journal.file.sync_all()?;
        }
        Ok(journal)
    }

    /// Whether the database has all of its contents on disk.
    pub(super) fn is_empty(&self) -> bool {
        self.end == FILE_HEAD_BYTES
    }

    /// Whether a failed commit may still count after the next start.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Empties the journal, because the database has everything on disk. The contents are overwritten with
    /// zeros: people may want them deleted, and a record that a power cut tears later is recognised by the
    /// zeros that remain.
    pub(super) fn clear(&mut self) {
        let used = self.end.max(FILE_HEAD_BYTES) - FILE_HEAD_BYTES;
        let torn = if self.is_in_doubt { STEP_BYTES } else { HEAD_BYTES as u64 };
        let used = (used + torn).min(self.length.saturating_sub(FILE_HEAD_BYTES));
        if !self.is_empty() || self.is_in_doubt {
            let zeros = vec![0; usize::try_from(used).unwrap_or_default()];
            // If this fails, the numbers of the records show that the database has them.
            let _ = self.write_at(FILE_HEAD_BYTES, &zeros).and_then(|()| self.file.sync_data());
        }
        self.end = FILE_HEAD_BYTES;
        self.is_in_doubt = false;
    }

    /// Appends a commit and waits for the disk. Returns whether that worked; if not, the database has to write
    /// the commit.
    pub(super) fn append(
        &mut self,
        number: u64,
        changes: &[StoreChange],
        lines: &[PreparedEntry],
    ) -> bool {
        let record = &encode(&self.id, number, changes, lines);
        let end = self.end + record.len() as u64;
        if end > MAX_BYTES || self.write(record, end).is_err() {
            return false;
        }
        if self.file.sync_data().is_err() {
            // The record could be read as long as this process lives, and must not count.
            self.is_in_doubt = self.write_at(self.end, &[0; HEAD_BYTES]).is_err();
            return false;
        }
        self.end = end;
        true
    }

    fn write(&mut self, record: &[u8], end: u64) -> io::Result<()> {
        while self.length < end {
            let step = vec![0; usize::try_from(STEP_BYTES).unwrap_or_default()];
            self.write_at(self.length, &step)?;
            self.length += STEP_BYTES;
        }
        self.write_at(self.end, record)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)
    }
}

/// The contents of a journal.
#[derive(Debug)]
pub(super) struct JournalContents {
    /// The commits that the database lacks, with their numbers, in order.
    pub(super) records: Vec<(u64, Vec<u8>)>,
    pub(super) end: JournalEnd,
}

/// How a journal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalEnd {
    /// After its last record.
    Whole,
    /// In a record that a power cut tore. It was not acknowledged.
    Cut,
    /// It is damaged from this position on. Everything stored after it is lost.
    Damaged { at: u64 },
    /// There is no journal, though the store was not closed. Its contents are lost.
    Missing,
    /// The system does not let it be read.
    Unreadable,
}

/// Reads the records after this commit. `is_expected` is true if the store was not closed, so that there must
/// be a journal; `None` if an earlier version wrote the store, which did not record this.
pub(super) fn read(
    path: &Path,
    id: &StoreId,
    after: u64,
    is_expected: Option<bool>,
) -> JournalContents {
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|it| it.take(MAX_BYTES + STEP_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::debug!(%error, "The journal cannot be read.");
            return JournalContents { records: Vec::new(), end: JournalEnd::Unreadable };
        }
    }
    let head = file_head(id);
    if bytes.starts_with(&head) {
        return scan(id, &bytes, head.len(), after);
    }
    let end = match is_expected {
        // Written by an earlier version.
        None => return older::scan(id, &bytes, after),
        Some(true) => JournalEnd::Missing,
        Some(false) => JournalEnd::Whole,
    };
    JournalContents { records: Vec::new(), end }
}

/// Whose journal this is, and the number of its first record; `None` if that cannot be read.
pub(super) fn identify(path: &Path) -> io::Result<Option<(StoreId, u64)>> {
    let mut head = file_head(&StoreId::default());
    let mut record = [0; HEAD_BYTES];
    let mut file = File::open(path)?;
    file.read_exact(&mut head)?;
    file.read_exact(&mut record)?;
    let Some(id) = head.get(16..32).and_then(|id| StoreId::try_from(id).ok()) else {
        return Ok(None);
    };
    let is_whole = head == file_head(&id);
    Ok(read_head(&id, &record).filter(|_| is_whole).map(|(number, ..)| (id, number)))
}

/// Overwrites a journal with zeros from this position on.
pub(super) fn zero_from(path: &Path, at: u64) -> io::Result<()> {
    let mut file = create_file(path)?;
    let zeros = file.metadata()?.len().saturating_sub(at).min(MAX_BYTES + STEP_BYTES);
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&vec![0; usize::try_from(zeros).unwrap_or_default()])?;
    file.sync_data()
}

fn file_head(id: &StoreId) -> Vec<u8> {
    let mut head = [&FILE_MARK[..], &2_u64.to_le_bytes(), id].concat();
    let checksum = checksum(id, &head, &[]);
    head.extend(checksum);
    head.resize(usize::try_from(FILE_HEAD_BYTES).unwrap_or(SECTOR_BYTES), 0);
    head
}

fn scan(id: &StoreId, bytes: &[u8], from: usize, after: u64) -> JournalContents {
    let mut records = Vec::new();
    let (mut last, mut at) = (after, from);
    let damaged = |at: usize| JournalEnd::Damaged { at: at as u64 };
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    while let Some((number, content, length)) = first_record(id, rest(at)) {
        if number > last + 1 {
            return JournalContents { records, end: damaged(at) };
        }
        if number == last + 1 {
            // It is whole, but nothing that this version understands.
            if decode(content).is_err() {
                return JournalContents { records, end: damaged(at) };
            }
            records.push((number, content.to_vec()));
            last = number;
        }
        at += length;
    }
    let mut later = rest(at);
    let mut is_later = false;
    while let Some(found) = later.windows(MARK.len()).position(|it| it == MARK) {
        let record = first_record(id, later.get(found..).unwrap_or_default());
        is_later |= record.is_some_and(|(number, ..)| number > last);
        later = later.get(found + MARK.len()..).unwrap_or_default();
    }
    let end = if is_later { damaged(at) } else { classify_end(id, rest(at), at, last) };
    JournalContents { records, end }
}

/// Classifies the bytes after the last complete record.
fn classify_end(id: &StoreId, rest: &[u8], at: usize, last: u64) -> JournalEnd {
    if rest.iter().all(|byte| *byte == 0) {
        return JournalEnd::Whole;
    }
    let Some((head, _)) = rest.split_first_chunk::<HEAD_BYTES>() else { return JournalEnd::Cut };
    let torn = |part: &[u8]| part.last() == Some(&0) || has_empty_sector(part, at);
    match read_head(id, head) {
        None if torn(head) => JournalEnd::Cut,
        None => JournalEnd::Damaged { at: at as u64 },
        // The database has this record; it was being overwritten.
        Some((number, ..)) if number <= last => JournalEnd::Cut,
        Some((_, length, _)) => {
            let whole = HEAD_BYTES.saturating_add(length).saturating_add(END.len());
            match rest.get(..whole) {
                Some(record) if !torn(record) => JournalEnd::Damaged { at: at as u64 },
                _ => JournalEnd::Cut,
            }
        }
    }
}

/// Whether these bytes, which begin at position `at` of the file, leave a whole disk sector empty.
fn has_empty_sector(part: &[u8], at: usize) -> bool {
    let first = SECTOR_BYTES - at % SECTOR_BYTES;
    let (head, rest) = part.split_at(first.min(part.len()));
    let is_empty = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
    (!head.is_empty() && is_empty(head)) || rest.chunks(SECTOR_BYTES).any(is_empty)
}

/// The number, the length and the checksum in a head, if the head is complete.
fn read_head(id: &StoreId, head: &[u8; HEAD_BYTES]) -> Option<(u64, usize, [u8; 8])> {
    let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let is_whole = head.starts_with(&MARK)
        && head[32..40] == checksum(id, &head[..32], &[])
        && head.ends_with(&HEAD_END);
    let length = usize::try_from(number(16)?).ok()?;
    is_whole.then_some((number(8)?, length, head[24..32].try_into().ok()?))
}

/// The number and the content of the record at the beginning of the bytes, and its total length.
fn first_record<'a>(id: &StoreId, bytes: &'a [u8]) -> Option<(u64, &'a [u8], usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let (number, length, expected) = read_head(id, head)?;
    let (content, rest) = rest.split_at_checked(length)?;
    let is_whole = rest.starts_with(&END) && expected == checksum(id, &head[..24], content);
    is_whole.then_some((number, content, HEAD_BYTES + length + END.len()))
}

fn checksum(id: &StoreId, head: &[u8], content: &[u8]) -> [u8; 8] {
    let hash = Sha256::new().chain_update(id).chain_update(head).chain_update(content).finalize();
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&hash[..8]);
    checksum
}

#[cfg(test)]
impl JournalWriter {
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Writes to this device from now on.
    pub(super) fn write_to(&mut self, device: &str) {
        let device = std::fs::OpenOptions::new().write(true).open(device);
        self.file = device.expect("Linux has it");
    }
}
