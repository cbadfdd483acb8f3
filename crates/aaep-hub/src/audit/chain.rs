//! Verifies the chain of an audit log, line by line and in constant memory.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use aaep::printable;

use crate::audit::file::LOG_BROKEN;
use crate::audit::line::{AuditLine, ChainHead, Hash};

/// An upper limit for the lines that this program writes, including the line feed.
pub const MAX_LINE_BYTES: usize = 32 * 1024;

/// The length of the last member: `,"hash":"`, sixty-four digits, `"}`.
const HASH_MEMBER_BYTES: usize = 9 + 64 + 2;

/// The result for a log whose chain is intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLog {
    /// The number of entries.
    pub entries: u64,
    /// The sequence number of the last entry; zero if there is none.
    pub last_seq: u64,
    /// The hash of the last entry; zeros if there is none.
    pub last_hash: Hash,
    /// What became of the broken log that this one replaced, if it did.
    pub replaced: Option<String>,
}

/// The first line of a log that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The number of the line in the file, counted from one.
    pub line: u64,
    /// What is wrong with it.
    pub why: BrokenReason,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenReason {
    /// The file ends in the middle of the line.
    Torn,
    /// It exceeds [`MAX_LINE_BYTES`].
    TooLong,
    /// It is not an entry.
    NotAnEntry,
    /// Its hash is not the hash of its text: the line was changed.
    Changed,
    /// It does not follow the line before: a line was removed, inserted or moved.
    NotNext,
    /// The log begins in the middle: earlier lines are gone.
    NotTheFirst,
    /// Lines that were safely written are gone.
    Gone,
    /// It is not the line that the store wrote.
    Foreign,
    /// The file could not be read.
    Unreadable(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match &self.why {
            BrokenReason::Torn => write!(f, "The file ends in the middle of line {line}."),
            BrokenReason::TooLong => write!(f, "Line {line} is longer than any entry."),
            BrokenReason::NotAnEntry => write!(f, "Line {line} is not an entry."),
            BrokenReason::Changed => {
                write!(f, "Line {line} was changed: its hash does not match its text.")
            }
            BrokenReason::NotNext => write!(f, "Line {line} does not follow the line before it."),
            BrokenReason::NotTheFirst => write!(f, "Line {line} is not the beginning of a log."),
            BrokenReason::Gone => write!(f, "Line {line}, which was written, is gone."),
            BrokenReason::Foreign => write!(f, "Line {line} is not the one that was written."),
            BrokenReason::Unreadable(why) => {
                write!(f, "Line {line} cannot be read: {}.", printable(why))
            }
        }
    }
}

impl std::error::Error for Broken {}

/// Verifies a whole log. A log that is being written may end in the middle of a line.
pub fn verify(path: &Path) -> Result<VerifiedLog, Broken> {
    let file = File::open(path).map_err(|error| unreadable(1, &error))?;
    let mut chain = ChainCheck::from_the_first();
    let mut lines = BufReader::new(file);
    let mut text = Vec::new();
    let (mut entries, mut replaced) = (0, None);
    while read_line(&mut lines, &mut text).map_err(|error| unreadable(chain.line, &error))? {
        let line = chain.follow(&text)?;
        if entries == 0 && line.kind == LOG_BROKEN {
            replaced = Some(line.outcome);
        }
        entries += 1;
    }
    let head = chain.head.unwrap_or(ChainHead { seq: 0, hash: Hash::ZERO });
    Ok(VerifiedLog { entries, last_seq: head.seq, last_hash: head.hash, replaced })
}

pub(super) fn unreadable(line: u64, error: &io::Error) -> Broken {
    Broken { line, why: BrokenReason::Unreadable(error.to_string()) }
}

/// Reads the next line with its line feed, never more than one byte beyond the limit. Returns false at the
/// end of the file.
pub(super) fn read_line(lines: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    let limit = MAX_LINE_BYTES as u64 + 1;
    Ok(lines.by_ref().take(limit).read_until(b'\n', text)? > 0)
}

/// How far a chain has been verified.
pub(super) struct ChainCheck {
    /// The line before. `None` at the beginning.
    pub(super) head: Option<ChainHead>,
    /// The number of the next line in its file.
    pub(super) line: u64,
    /// Whether the next line must be the beginning of a log.
    must_be_first: bool,
}

impl ChainCheck {
    /// Starts at the beginning of a file.
    pub(super) fn from_the_first() -> Self {
        ChainCheck { head: None, line: 1, must_be_first: true }
    }

    /// Starts in the middle of a file, where the line before was not read.
    pub(super) fn from_the_middle(line: u64) -> Self {
        ChainCheck { head: None, line, must_be_first: false }
    }

    /// Starts after a known entry.
    pub(super) fn after(head: ChainHead, line: u64) -> Self {
        ChainCheck { head: Some(head), line, must_be_first: false }
    }

    /// Verifies the next line, given with its line feed, and moves on to it.
    pub(super) fn follow(&mut self, text: &[u8]) -> Result<AuditLine, Broken> {
        let line = self.check(text).map_err(|why| Broken { line: self.line, why })?;
        self.line += 1;
        self.must_be_first = false;
        Ok(line)
    }

    fn check(&mut self, text: &[u8]) -> Result<AuditLine, BrokenReason> {
        if text.len() > MAX_LINE_BYTES {
            return Err(BrokenReason::TooLong);
        }
        let text = text.strip_suffix(b"\n").ok_or(BrokenReason::Torn)?;
        let line: AuditLine = serde_json::from_slice(text).map_err(|_| BrokenReason::NotAnEntry)?;
        let (before, member) = text
            .len()
            .checked_sub(HASH_MEMBER_BYTES)
            .and_then(|at| text.split_at_checked(at))
            .ok_or(BrokenReason::NotAnEntry)?;
        let hash = Hash::of(&[before, b"}"]);
        if member != format!(",\"hash\":\"{hash}\"}}").as_bytes() {
            return Err(BrokenReason::Changed);
        }
        self.check_place(&line)?;
        self.head = Some(ChainHead { seq: line.seq, hash });
        Ok(line)
    }

    /// Whether the line is the one that comes next.
    fn check_place(&self, line: &AuditLine) -> Result<(), BrokenReason> {
        let (expected, why) = match self.head {
            Some(ChainHead { seq, hash }) => {
                (ChainHead { seq: seq.saturating_add(1), hash }, BrokenReason::NotNext)
            }
            None if self.must_be_first && line.kind != LOG_BROKEN => {
                (ChainHead { seq: 1, hash: Hash::ZERO }, BrokenReason::NotTheFirst)
            }
            None => return Ok(()),
        };
        let is_next = line.seq == expected.seq && line.previous == expected.hash.to_string();
        if is_next { Ok(()) } else { Err(why) }
    }
}
