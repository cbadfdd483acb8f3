//! The file of the audit log: appended to, compared with the store when it is opened, never repaired.
//!
//! Every entry is in the store before it is in the file, and stays there until the file is known to be on
//! disk. So if a crash cut off the end of the file or left zeros there, the entries are written again, byte
//! for byte. Any other difference was not caused by a crash, and is left as it is.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::audit::chain::{Broken, BrokenReason, ChainCheck, read_line, unreadable};
use crate::audit::line::{ChainHead, Hash};
use crate::store::folder::{create_file, sync_folder};
use crate::store::{StoreFault, SyncedAudit};

/// The kind of the entry that begins a new log after a broken one.
pub const LOG_BROKEN: &str = "log_broken";

/// How much of the end of the log is verified whenever it is opened. [`crate::audit::verify`] verifies all
/// of it.
const MAX_VERIFIED_BYTES: u64 = 4 << 20;

/// The most broken logs that are kept. With more, something else is wrong.
const MAX_BROKEN_LOGS: u32 = 1000;

/// Why the file could not be adopted.
#[derive(Debug)]
pub(crate) enum AdoptError {
    /// It cannot be trusted.
    Broken(Broken),
    /// It could not be written, or the store could not be read.
    Fault(StoreFault),
}

impl From<Broken> for AdoptError {
    fn from(broken: Broken) -> Self {
        AdoptError::Broken(broken)
    }
}

/// A file that cannot be read cannot be trusted either. A full disk says nothing about the file.
impl From<io::Error> for AdoptError {
    fn from(error: io::Error) -> Self {
        match StoreFault::from(error) {
            StoreFault::Full => AdoptError::Fault(StoreFault::Full),
            StoreFault::Io(why) | StoreFault::Corrupt(why) => {
                AdoptError::Broken(Broken { line: 1, why: BrokenReason::Unreadable(why) })
            }
            fault => AdoptError::Fault(fault),
        }
    }
}

#[derive(Debug)]
pub(crate) struct AuditFile {
    file: File,
    /// Where the last whole line ends.
    end: u64,
    /// Whether an incomplete line may follow.
    is_torn: bool,
}

impl AuditFile {
    /// Appends whole lines. After a failure none of them counts, and the next attempt first truncates the
    /// file.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.end)?;
        }
        self.is_torn = true;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(lines)?;
        self.end += lines.len() as u64;
        self.is_torn = false;
        Ok(())
    }

    /// Waits until everything that was appended is on disk, and returns where it ends.
    pub(crate) fn sync(&mut self) -> io::Result<u64> {
        self.file.sync_data()?;
        Ok(self.end)
    }
}

/// Checks whether the file could be adopted, without changing anything. Whether a file that is ahead of the
/// store can be adopted is decided later.
pub(crate) fn look<Waiting: Iterator<Item = Result<Vec<u8>, StoreFault>>>(
    path: &Path,
    safe: SyncedAudit,
    waiting: impl Fn() -> Result<Waiting, StoreFault>,
) -> Result<(), AdoptError> {
    match File::open(path) {
        Ok(file) => compare(&file, safe, None, waiting).map(|_| ()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && safe.bytes == 0 => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Broken { line: 1, why: BrokenReason::Gone }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A file that was adopted.
pub(crate) struct AdoptedLog {
    pub(crate) file: AuditFile,
    /// Its last entry and where that ends, if the file is ahead of the store.
    pub(crate) ahead: Option<(ChainHead, u64)>,
    /// What had to be restored, for people.
    pub(crate) note: Option<String>,
    /// The number of last entries that could not be written to it.
    pub(crate) missing: u64,
}

/// What the store knows of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownLog {
    /// The part that is on disk.
    pub(crate) safe: SyncedAudit,
    /// The last entry.
    pub(crate) head: ChainHead,
    /// Whether the store lost commits, so that the file may be ahead of it.
    pub(crate) may_be_ahead: bool,
    /// The number of the first entry of the newest commit. A kill keeps no earlier entry out of the file.
    pub(crate) newest_commit: u64,
}

/// Adopts the file: verifies its end, compares the lines after the safe part with those that the store still
/// has, truncates what a crash tore, and writes what is missing. If the store lost commits, whole entries
/// after the last one that it knows are adopted too.
pub(crate) fn adopt<Waiting: Iterator<Item = Result<Vec<u8>, StoreFault>>>(
    path: &Path,
    KnownLog { safe, head, may_be_ahead, newest_commit }: KnownLog,
    waiting: impl Fn() -> Result<Waiting, StoreFault>,
) -> Result<AdoptedLog, AdoptError> {
    let was_there = path.try_exists()?;
    let file = create_file(path)?;
    let found = compare(&file, safe, may_be_ahead.then_some(head), &waiting)?;
    let is_torn = file.metadata()?.len() > found.end;
    let mut adopted = AuditFile { file, end: found.end, is_torn };
    adopted.append(b"")?;
    let (mut written, mut missing) = (0, 0);
    for line in waiting().map_err(AdoptError::Fault)?.skip(found.whole) {
        let line = line.map_err(AdoptError::Fault)?;
        // Lines that cannot be written wait in the store.
        if missing == 0 && adopted.append(&line).is_ok() {
            written += 1;
        } else {
            missing += 1;
        }
    }
    adopted.sync()?;
    let note = (written > 0).then(|| match (was_there, is_torn) {
        (false, _) => Some(format!(
            "The audit log was missing, though the store has entries for it: somebody deleted it, or a power cut lost \
             it. {written} entries were written to a new one from the store; none is missing."
        )),
        (true, true) => Some(format!(
            "A power cut left the end of the audit log cut off or as zeros. {written} entries were written \
             there again from the store; none is missing."
        )),
        (true, false) if safe.seq + found.whole as u64 + 1 < newest_commit => Some(format!(
            "The last {written} entries of the audit log were missing, more than a kill can explain: somebody removed \
             them, a power cut lost them, or the disk was full. They were written there again from the store; none is \
             missing."
        )),
        // A kill between the store and the file leaves whole lines.
        (true, false) => None,
    });
    let note = note.flatten();
    Ok(AdoptedLog { file: adopted, ahead: found.ahead, note, missing })
}

/// The result of comparing the file with the store.
struct LogComparison {
    /// Where the last whole line ends.
    end: u64,
    /// The number of the store's lines that are whole in the file.
    whole: usize,
    ahead: Option<(ChainHead, u64)>,
}

/// Compares the file with the store. `head` is the last entry of a store that lost commits.
fn compare<Waiting: Iterator<Item = Result<Vec<u8>, StoreFault>>>(
    file: &File,
    safe: SyncedAudit,
    head: Option<ChainHead>,
    waiting: impl Fn() -> Result<Waiting, StoreFault>,
) -> Result<LogComparison, AdoptError> {
    verify_safe_part(file, safe)?;
    let mut rest = BufReader::new(file);
    rest.seek(SeekFrom::Start(safe.bytes))?;
    let mut found = LogComparison { end: safe.bytes, whole: 0, ahead: None };
    let mut line = safe.seq + 2 - safe.first_seq;
    let mut has_hole = false;
    for expected in waiting().map_err(AdoptError::Fault)? {
        let expected = expected.map_err(AdoptError::Fault)?;
        let mut bytes = Vec::with_capacity(expected.len());
        rest.by_ref().take(expected.len() as u64).read_to_end(&mut bytes)?;
        if !is_torn(&expected, &bytes) {
            return Err(Broken { line, why: BrokenReason::Foreign }.into());
        }
        has_hole |= bytes != expected;
        if !has_hole {
            found.end += expected.len() as u64;
            found.whole += 1;
        }
        line += 1;
    }
    if let Some(head) = head.filter(|_| !has_hole) {
        found.follow_ahead(&mut rest, head, line)?;
    }
    if !is_all_zero(&mut rest)? {
        return Err(Broken { line, why: BrokenReason::Foreign }.into());
    }
    Ok(found)
}

impl LogComparison {
    /// Follows the chain beyond the last entry that the store knows. A line that a power cut tore ends it.
    fn follow_ahead(
        &mut self,
        rest: &mut BufReader<&File>,
        head: ChainHead,
        line: u64,
    ) -> Result<(), AdoptError> {
        let mut chain = ChainCheck::after(head, line);
        let mut text = Vec::new();
        while read_line(rest, &mut text)? {
            if text.last() != Some(&b'\n') || text.contains(&0) {
                return Ok(());
            }
            chain.follow(&text)?;
            self.end += text.len() as u64;
            self.ahead = chain.head.map(|head| (head, self.end));
        }
        Ok(())
    }
}

/// Verifies the end of the safely written part, which must be unchanged.
fn verify_safe_part(file: &File, safe: SyncedAudit) -> Result<(), AdoptError> {
    let last_line = (safe.seq + 1).saturating_sub(safe.first_seq);
    if file.metadata()?.len() < safe.bytes {
        return Err(Broken { line: last_line, why: BrokenReason::Gone }.into());
    }
    if safe.bytes == 0 {
        return Ok(());
    }
    let start = safe.bytes.saturating_sub(MAX_VERIFIED_BYTES);
    let mut reader = file;
    reader.seek(SeekFrom::Start(start))?;
    let mut lines = BufReader::new(reader.take(safe.bytes - start));
    let mut text = Vec::new();
    let mut chain = ChainCheck::from_the_first();
    if start > 0 {
        // The first line from here is probably cut; its number is counted from the end.
        read_line(&mut lines, &mut text)?;
        let left = count_lines(file, start + text.len() as u64, safe.bytes)?;
        chain = ChainCheck::from_the_middle((last_line + 1).saturating_sub(left));
        reader.seek(SeekFrom::Start(start + text.len() as u64))?;
        lines = BufReader::new(reader.take(safe.bytes - start - text.len() as u64));
    }
    while read_line(&mut lines, &mut text).map_err(|error| unreadable(chain.line, &error))? {
        chain.follow(&text)?;
    }
    match chain.head {
        Some(head) if head.seq == safe.seq && head.hash == safe.hash => Ok(()),
        _ => Err(Broken { line: chain.line.saturating_sub(1), why: BrokenReason::Foreign }.into()),
    }
}

fn count_lines(mut file: &File, from: u64, to: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut left = file.take(to - from);
    let mut buffer = [0; 8192];
    let mut lines = 0;
    loop {
        let count = left.read(&mut buffer)?;
        if count == 0 {
            return Ok(lines);
        }
        lines += buffer[..count].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
    }
}

/// Whether the found bytes are the expected ones as a crash leaves them: cut short, or with zeros where
/// nothing was written yet. A disk may write later blocks first.
fn is_torn(expected: &[u8], found: &[u8]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| found == expected || *found == 0)
}

fn is_all_zero(rest: &mut impl Read) -> io::Result<bool> {
    let mut buffer = [0; 8192];
    loop {
        let count = rest.read(&mut buffer)?;
        if count == 0 {
            return Ok(true);
        }
        if buffer[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
}

/// A broken log that was set aside.
pub(crate) struct KeptLog {
    /// The new name of the file.
    pub(crate) name: String,
    /// The digest of the file; `None` if it is gone or cannot be read.
    pub(crate) digest: Option<Hash>,
}

/// Renames a broken log to an unused name, and writes the lines that only the store has to a second file.
pub(crate) fn set_aside(
    path: &Path,
    waiting: impl Iterator<Item = Result<Vec<u8>, StoreFault>>,
) -> Result<KeptLog, StoreFault> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = (1..=MAX_BROKEN_LOGS)
        .map(|number| format!("audit-broken-{number}"))
        .find(|name| !aside(folder, name).exists() && !tail(folder, name).exists())
        .ok_or_else(|| StoreFault::Io("there are too many broken logs".to_owned()))?;
    match fs::rename(path, aside(folder, &name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut lines = waiting.peekable();
    if lines.peek().is_some() {
        let mut file = create_file(&tail(folder, &name))?;
        for line in lines {
            file.write_all(&line?)?;
        }
        file.sync_data()?;
    }
    sync_folder(folder)?;
    let digest = digest_of(&aside(folder, &name)).ok();
    Ok(KeptLog { name: format!("{name}.jsonl"), digest })
}

fn digest_of(path: &Path) -> io::Result<Hash> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = [0; 8192];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Hash(digest.finalize().into())),
            count => digest.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

fn aside(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.jsonl"))
}

fn tail(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-tail.jsonl"))
}

#[cfg(test)]
impl AuditFile {
    /// Wraps any file, from its beginning.
    pub(crate) fn on(file: File) -> Self {
        AuditFile { file, end: 0, is_torn: false }
    }
}
