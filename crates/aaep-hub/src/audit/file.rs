//! The file of the audit log: appended to, held against the store when it is opened, never mended.
//!
//! Every entry is in the store before it is in the file, and stays there until the file is known to
//! be on the disk. So what a crash took from the end of the file is put back, byte for byte. What
//! differs in any other way was not a crash, and is left as it is.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::audit::chain::{Broken, Chain, Why, read_line, unreadable};
use crate::store::folder::{create_file, sync_folder};
use crate::store::{Fault, Safe};

/// The kind of the entry that begins a new log after a broken one.
pub(crate) const LOG_BROKEN: &str = "log_broken";

/// How much of the end of the log is verified whenever it is opened. All of it is verified by
/// [`crate::audit::verify`].
const MAX_VERIFIED_BYTES: u64 = 4 << 20;

/// How many broken logs are kept aside. With more than that something else is wrong.
const MAX_BROKEN_LOGS: u32 = 1000;

/// Why the file could not be taken on.
#[derive(Debug)]
pub(crate) enum AdoptError {
    /// It cannot be trusted.
    Broken(Broken),
    /// It could not be written, or the store could not be read.
    Fault(Fault),
}

impl From<Broken> for AdoptError {
    fn from(broken: Broken) -> Self {
        AdoptError::Broken(broken)
    }
}

impl From<io::Error> for AdoptError {
    fn from(error: io::Error) -> Self {
        AdoptError::Fault(error.into())
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct AuditFile {
    file: File,
    /// Where the last whole line ends.
    end: u64,
    /// Whether something incomplete may follow that.
    is_torn: bool,
}

impl AuditFile {
    /// Appends whole lines. After a failure nothing of them counts, and the next try cuts the rest
    /// away first.
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

    /// Waits until all that was appended is on the disk, and says where it ends.
    pub(crate) fn sync(&mut self) -> io::Result<u64> {
        self.file.sync_data()?;
        Ok(self.end)
    }
}

/// Looks whether the file could be taken on, and changes nothing.
pub(crate) fn look(
    path: &Path,
    safe: Safe,
    waiting: impl Iterator<Item = Result<Vec<u8>, Fault>>,
) -> Result<(), AdoptError> {
    match File::open(path) {
        Ok(file) => compare(&file, safe, waiting).map(|_| ()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && safe.bytes == 0 => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Broken { line: 1, why: Why::Gone }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes the file on: verifies its end, holds what follows the safe part against the lines that the
/// store still has, cuts what a crash tore, and appends what is missing.
pub(crate) fn adopt(
    path: &Path,
    safe: Safe,
    waiting: impl Iterator<Item = Result<Vec<u8>, Fault>>,
) -> Result<AuditFile, AdoptError> {
    let file = create_file(path)?;
    let (end, missing) = compare(&file, safe, waiting)?;
    let is_torn = file.metadata()?.len() > end;
    let mut adopted = AuditFile { file, end, is_torn };
    adopted.append(b"")?;
    for line in missing {
        adopted.append(&line.map_err(AdoptError::Fault)?)?;
    }
    adopted.sync()?;
    Ok(adopted)
}

/// Compares the file with what the store knows. Gives where its last whole line ends, and the lines
/// that are missing from there on.
fn compare<Waiting: Iterator<Item = Result<Vec<u8>, Fault>>>(
    file: &File,
    safe: Safe,
    mut waiting: Waiting,
) -> Result<(u64, impl Iterator<Item = Result<Vec<u8>, Fault>> + use<Waiting>), AdoptError> {
    verify_safe_part(file, safe)?;
    let mut rest = BufReader::new(file);
    rest.seek(SeekFrom::Start(safe.bytes))?;
    let mut end = safe.bytes;
    let mut line = safe.seq + 2 - safe.first_seq;
    let mut first_missing = None;
    for expected in waiting.by_ref() {
        let expected = expected.map_err(AdoptError::Fault)?;
        let mut found = Vec::with_capacity(expected.len());
        rest.by_ref().take(expected.len() as u64).read_to_end(&mut found)?;
        if found != expected {
            if !is_torn(&expected, &found) {
                return Err(Broken { line, why: Why::Foreign }.into());
            }
            first_missing = Some(Ok(expected));
            break;
        }
        end += expected.len() as u64;
        line += 1;
    }
    if !is_all_zero(&mut rest)? {
        return Err(Broken { line, why: Why::Foreign }.into());
    }
    Ok((end, first_missing.into_iter().chain(waiting)))
}

/// Verifies the end of what was safely written, which must be there as it was.
fn verify_safe_part(file: &File, safe: Safe) -> Result<(), AdoptError> {
    let last_line = (safe.seq + 1).saturating_sub(safe.first_seq);
    if file.metadata()?.len() < safe.bytes {
        return Err(Broken { line: last_line, why: Why::Gone }.into());
    }
    if safe.bytes == 0 {
        return Ok(());
    }
    let start = safe.bytes.saturating_sub(MAX_VERIFIED_BYTES);
    let mut reader = file;
    reader.seek(SeekFrom::Start(start))?;
    let mut lines = BufReader::new(reader.take(safe.bytes - start));
    let mut text = Vec::new();
    let mut chain = Chain::from_the_first();
    if start > 0 {
        // The first line from here on is likely cut; count from the end which one comes next.
        read_line(&mut lines, &mut text)?;
        let left = count_lines(file, start + text.len() as u64, safe.bytes)?;
        chain = Chain::from_the_middle((last_line + 1).saturating_sub(left));
        reader.seek(SeekFrom::Start(start + text.len() as u64))?;
        lines = BufReader::new(reader.take(safe.bytes - start - text.len() as u64));
    }
    while read_line(&mut lines, &mut text).map_err(|error| unreadable(chain.line, &error))? {
        chain.follow(&text)?;
    }
    match chain.head {
        Some(head) if head.seq == safe.seq && head.hash == safe.hash => Ok(()),
        _ => Err(Broken { line: chain.line.saturating_sub(1), why: Why::Foreign }.into()),
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

/// Whether what was found is the beginning of what was expected, as a crash leaves it: short, or
/// filled up with zeros.
fn is_torn(expected: &[u8], found: &[u8]) -> bool {
    let zeros = found.iter().rev().take_while(|byte| **byte == 0).count();
    expected.starts_with(&found[..found.len() - zeros])
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

/// Sets a broken log aside under a name of its own, with the lines that only the store has beside
/// it. Gives that name.
pub(crate) fn set_aside(
    path: &Path,
    waiting: impl Iterator<Item = Result<Vec<u8>, Fault>>,
) -> Result<String, Fault> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = (1..=MAX_BROKEN_LOGS)
        .map(|number| format!("audit-broken-{number}"))
        .find(|name| !aside(folder, name).exists() && !tail(folder, name).exists())
        .ok_or_else(|| Fault::Io("there are too many broken logs".to_owned()))?;
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
    Ok(format!("{name}.jsonl"))
}

fn aside(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.jsonl"))
}

fn tail(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-tail.jsonl"))
}

#[cfg(test)]
impl AuditFile {
    /// Any file, from its beginning.
    pub(crate) fn on(file: File) -> Self {
        AuditFile { file, end: 0, is_torn: false }
    }
}
