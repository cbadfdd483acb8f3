//! Shows the audit log: every line, joined with the words that the store has for it.
//!
//! Holds one line at a time, and returns foreign text only as data or as ASCII JSON.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom, Write};

use crate::audit::chain::{Broken, BrokenReason, ChainCheck, read_line, unreadable};
use crate::audit::line::{AuditLine, details_hash, member};
use crate::store::{ReadError, Reader};

/// The number of lines that are read from the store at once.
const PAGE_LINES: usize = 4096;

/// The words that belong to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Details {
    /// The entry never had any.
    None,
    /// The words.
    Words(String),
    /// The words were deleted, with their session or because of their age.
    Deleted,
    /// The words do not match the hash in the line.
    Changed,
}

/// An entry with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The line of the log.
    pub line: AuditLine,
    /// The words that belong to it.
    pub details: Details,
}

/// Why an entry could not be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportError {
    /// The chain is broken. The entries after that are not shown.
    Broken(Broken),
    /// The store could not be read.
    Read(ReadError),
    /// Writing failed: the kind of error, and its description.
    Write(io::ErrorKind, String),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Broken(broken) => write!(
                f,
                "The audit log cannot be trusted. {broken} Keep a copy and find out who changed it."
            ),
            ExportError::Read(error) => error.fmt(f),
            ExportError::Write(_, why) => write!(
                f,
                "The audit log could not be written out: {}. Check where it goes, then try again.",
                aaep::printable(why)
            ),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<ReadError> for ExportError {
    fn from(error: ReadError) -> Self {
        ExportError::Read(error)
    }
}

/// All entries, oldest first, verified on the way. Ends at the first that cannot be trusted.
pub fn show(reader: &Reader) -> Show {
    show_after(reader, 0)
}

/// The entries after this number. They are verified on the way, and so is that the first of them follows
/// that number. Earlier entries are not read.
pub fn show_after(reader: &Reader, after_seq: u64) -> Show {
    Show {
        reader: reader.clone(),
        source: EntrySource::Unopened,
        after_seq,
        next_seq: 1,
        waiting: VecDeque::new(),
        is_second_look: false,
    }
}

/// Iterates over the entries of a log.
#[derive(Debug)]
pub struct Show {
    reader: Reader,
    source: EntrySource,
    /// Entries up to this one are skipped.
    after_seq: u64,
    /// The lowest number that the next entry may have.
    next_seq: u64,
    waiting: VecDeque<(u64, Vec<u8>)>,
    is_second_look: bool,
}

enum EntrySource {
    Unopened,
    File(BufReader<File>, ChainCheck),
    /// The lines that only the store has.
    Store(ChainCheck),
    Ended,
}

impl fmt::Debug for EntrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EntrySource::Unopened => "Unopened",
            EntrySource::File(..) => "File",
            EntrySource::Store(_) => "Store",
            EntrySource::Ended => "Ended",
        })
    }
}

impl Iterator for Show {
    type Item = Result<Shown, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = loop {
            let next = self.next_line().transpose()?;
            match &next {
                Ok(line) if line.seq <= self.after_seq => {
                    self.next_seq = line.seq.saturating_add(1);
                }
                _ => break next,
            }
        };
        let shown = next.and_then(|line| {
            self.next_seq = line.seq.saturating_add(1);
            let details = details_of(&self.reader, &line)?;
            Ok(Shown { line, details })
        });
        if shown.is_err() {
            self.source = EntrySource::Ended;
        }
        Some(shown)
    }
}

impl Show {
    fn next_line(&mut self) -> Result<Option<AuditLine>, ExportError> {
        loop {
            match &mut self.source {
                EntrySource::Unopened => self.open()?,
                EntrySource::File(lines, chain) => {
                    let mut text = Vec::new();
                    let is_line = read_line(lines, &mut text)
                        .map_err(|error| ExportError::Broken(unreadable(chain.line, &error)))?;
                    if is_line && text.ends_with(b"\n") {
                        return chain.follow(&text).map(Some).map_err(ExportError::Broken);
                    }
                    self.end_of_file(text.len())?;
                }
                EntrySource::Store(chain) => {
                    if self.waiting.is_empty() {
                        self.waiting = self.reader.waiting_lines(self.next_seq, PAGE_LINES)?.into();
                    }
                    let Some((_, text)) = self.waiting.pop_front() else {
                        self.source = EntrySource::Ended;
                        return Ok(None);
                    };
                    return chain.follow(&text).map(Some).map_err(ExportError::Broken);
                }
                EntrySource::Ended => return Ok(None),
            }
        }
    }

    /// Continues with the lines that only the store has, beginning with the incomplete last one, which is
    /// being written. Lines that moved from the store to the file in the meantime are read there.
    fn end_of_file(&mut self, incomplete_bytes: usize) -> Result<(), ExportError> {
        self.waiting = self.reader.waiting_lines(self.next_seq, PAGE_LINES)?.into();
        let EntrySource::File(lines, chain) =
            std::mem::replace(&mut self.source, EntrySource::Ended)
        else {
            return Ok(());
        };
        let is_gap = self.waiting.front().is_some_and(|(seq, _)| *seq != self.next_seq);
        if !is_gap || self.is_second_look {
            self.source = EntrySource::Store(chain);
            return Ok(());
        }
        self.is_second_look = true;
        let mut lines = lines;
        let back = i64::try_from(incomplete_bytes).unwrap_or(i64::MAX);
        lines
            .seek_relative(-back)
            .map_err(|error| ExportError::Broken(unreadable(chain.line, &error)))?;
        self.source = EntrySource::File(lines, chain);
        Ok(())
    }

    fn open(&mut self) -> Result<(), ExportError> {
        self.source = match self.reader.audit_path() {
            // A store in memory has dropped its oldest lines, so the chain may begin anywhere.
            None => EntrySource::Store(ChainCheck::from_the_middle(1)),
            Some(path) => match File::open(path) {
                Ok(file) => {
                    let unread = |error: io::Error| ExportError::Broken(unreadable(1, &error));
                    let mut file = BufReader::new(file);
                    let place = place_of(&mut file, self.after_seq).map_err(unread)?;
                    file.seek(SeekFrom::Start(place)).map_err(unread)?;
                    let is_first = place == 0;
                    let chain = if is_first {
                        ChainCheck::from_the_first()
                    } else {
                        ChainCheck::from_the_middle(1)
                    };
                    EntrySource::File(file, chain)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(ExportError::Broken(Broken { line: 1, why: BrokenReason::Gone }));
                }
                Err(error) => return Err(ExportError::Broken(unreadable(1, &error))),
            },
        };
        Ok(())
    }
}

/// How close to an entry the search must come.
const NEAR_BYTES: u64 = 64 * 1024;

/// Finds the start of a line at or shortly before this entry, using that line numbers only grow. Returns the
/// beginning of the file if they cannot be read; reading from there then finds the error.
fn place_of(file: &mut BufReader<File>, seq: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, file.get_ref().metadata()?.len());
    if seq == 0 {
        return Ok(0);
    }
    let mut text = Vec::new();
    while high.saturating_sub(low) > NEAR_BYTES {
        let middle = low + (high - low) / 2;
        file.seek(SeekFrom::Start(middle))?;
        // The rest of a line, and then a whole one.
        read_line(file, &mut text)?;
        let start = middle + text.len() as u64;
        read_line(file, &mut text)?;
        let Some(found) = seq_of(&text) else { return Ok(0) };
        if found <= seq { low = start } else { high = middle }
    }
    Ok(low)
}

/// The number at the beginning of a line.
fn seq_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"seq\":")?;
    let digits = rest.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn details_of(reader: &Reader, line: &AuditLine) -> Result<Details, ExportError> {
    let Some(hash) = &line.details_hash else { return Ok(Details::None) };
    let Some((salt, words)) = reader.salted_words(line.seq)? else { return Ok(Details::Deleted) };
    if details_hash(&salt, &words).to_string() == *hash {
        Ok(Details::Words(words))
    } else {
        Ok(Details::Changed)
    }
}

/// Writes every entry as a line of JSON in ASCII, with `details` and their state. Returns the number of
/// entries.
pub fn export(reader: &Reader, to: &mut impl Write) -> Result<u64, ExportError> {
    let mut entries = 0;
    for shown in show(reader) {
        let Shown { line, details } = shown?;
        let mut text = format!("{{\"seq\":{}", line.seq);
        member(&mut text, "time", Some(&line.time));
        member(&mut text, "kind", Some(&line.kind));
        member(&mut text, "session_id", line.session_id.as_deref());
        member(&mut text, "reply_token_sha256", line.reply_token_sha256.as_deref());
        member(&mut text, "who", line.who.as_deref());
        member(&mut text, "outcome", Some(&line.outcome));
        let (words, state) = match &details {
            Details::None => (None, "none"),
            Details::Words(words) => (Some(words.as_str()), "present"),
            Details::Deleted => (None, "deleted"),
            Details::Changed => (None, "changed"),
        };
        member(&mut text, "details", words);
        member(&mut text, "details_state", Some(state));
        member(&mut text, "hash", Some(&line.hash));
        text.push_str("}\n");
        let written = to.write_all(text.as_bytes());
        written.map_err(|error| ExportError::Write(error.kind(), error.to_string()))?;
        entries += 1;
    }
    to.flush().map_err(|error| ExportError::Write(error.kind(), error.to_string()))?;
    Ok(entries)
}
