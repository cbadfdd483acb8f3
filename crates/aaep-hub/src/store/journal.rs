//! The journal: commits that are on the disk here before they are in the database there.
//!
//! A commit is appended as one record, with one wait for the disk, and the database takes it into memory
//! only. Now and then the database writes all of it at once, and the journal begins anew. After a crash the
//! database takes the records that it lacks from here. Why, and what was measured, is in
//! `docs/decisions/journal.md`.
//!
//! A record has a number, one more than the one before, and a checksum that holds for one store only. What a crash cut off at the end was
//! never acknowledged and does not count; a record that is damaged before others that are whole is damage,
//! and refused.

mod record;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

pub(super) use record::decode;
use record::encode;

use crate::store::change::Change;
use crate::store::fault::Fault;
use crate::store::folder::create_file;
use crate::store::log::Prepared;

/// How long the journal may get. As much has to be read after a crash.
const MAX_BYTES: u64 = 4 << 20;

/// The file grows by so much at a time, filled with zeros: to write where something is already makes the
/// disk do half of the work.
const STEP_BYTES: u64 = 256 << 10;

/// Tells the journal of one store from that of another, as one that was moved away.
pub(super) type StoreId = [u8; 16];

/// What every record begins with.
const MARK: [u8; 8] = *b"AAEP rec";

/// Mark, number, length and checksum.
const HEAD_BYTES: usize = 32;

/// Where the writer is in the journal.
#[derive(Debug)]
pub(super) struct Journal {
    id: StoreId,
    file: File,
    /// Where the next record goes. Those before it are on the disk, and the database may lack them there.
    end: u64,
    /// How long the file is.
    length: u64,
    /// Whether a record may stand at the end of which nobody knows whether it counts.
    is_in_doubt: bool,
}

impl Journal {
    /// Opens the file or makes it. The database must have all that is in it.
    pub(super) fn open(path: &Path, id: StoreId) -> io::Result<Self> {
        let file = create_file(path)?;
        let length = file.metadata()?.len();
        Ok(Journal { id, file, end: 0, length, is_in_doubt: false })
    }

    /// Whether the database has all of it on the disk.
    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Whether a failed commit may be counted after the next start all the same.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// The database has all of it on the disk.
    pub(super) fn begin_anew(&mut self) {
        self.end = 0;
        self.is_in_doubt = false;
    }

    /// Takes out what it had before it began anew, as far as the disk takes it: people wanted it gone.
    pub(super) fn wipe(&mut self) {
        if self.is_empty() {
            let zeros = vec![0; usize::try_from(self.length.min(MAX_BYTES)).unwrap_or_default()];
            let _ = self.write_at(0, &zeros);
        }
    }

    /// Appends a commit and waits for the disk. Says whether that was done; if not, the database has to
    /// write it.
    pub(super) fn append(&mut self, number: u64, changes: &[Change], lines: &[Prepared]) -> bool {
        let record = &encode(&self.id, number, changes, lines);
        let end = self.end + record.len() as u64;
        if end > MAX_BYTES || self.write(record, end).is_err() {
            return false;
        }
        if self.file.sync_data().is_err() {
            // It may be read again as long as this process lives, and must not count.
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

/// The contents of the records that come after this commit, in their order. None if there is no journal.
pub(super) fn read(path: &Path, id: &StoreId, after: u64) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAX_BYTES + STEP_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    let (mut last, mut rest) = (after, bytes.as_slice());
    while let Some((number, content, next)) = first_record(id, rest) {
        if number == last + 1 {
            found.push((number, content.to_vec()));
            last = number;
        } else if number > last {
            break;
        }
        rest = next;
    }
    while let Some(at) = rest.windows(MARK.len()).position(|it| it == MARK) {
        let later = first_record(id, rest.get(at..).unwrap_or_default());
        if later.is_some_and(|(number, ..)| number > last) {
            let why = format!("its journal lacks what was stored after commit {last}");
            return Err(Fault::Corrupt(why));
        }
        rest = rest.get(at + MARK.len()..).unwrap_or_default();
    }
    Ok(found)
}

/// The number and the content of the record that the bytes begin with, and what comes after it.
fn first_record<'a>(id: &StoreId, bytes: &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (content, next) = rest.split_at_checked(usize::try_from(number(16)?).ok()?)?;
    let is_whole = head.starts_with(&MARK) && head[24..] == checksum(id, &head[..24], content);
    is_whole.then_some((number(8)?, content, next))
}

fn checksum(id: &StoreId, head: &[u8], content: &[u8]) -> [u8; 8] {
    let hash = Sha256::new().chain_update(id).chain_update(head).chain_update(content).finalize();
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&hash[..8]);
    checksum
}

#[cfg(test)]
impl Journal {
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// From now on it writes to this device.
    pub(super) fn write_to(&mut self, device: &str) {
        let device = std::fs::OpenOptions::new().write(true).open(device);
        self.file = device.expect("Linux has it");
    }
}
