//! A recording: its events with their times, and the lines that could not be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use aaep::{Event, Message, Mode, Severity, Violation};

use crate::console::{CommandFailure, name_of};
use crate::english::{failures, reporting};
use crate::split::{FoundPiece, MessageSplitter};

/// The largest recording, in bytes: all of it is kept in memory while it is rehearsed.
const MAX_RECORDING: u64 = 128 * 1024 * 1024;

/// How many unreadable lines are listed; the others are only counted.
const MAX_BROKEN: usize = 20;

/// One or several recorded sessions.
pub(super) struct RecordedSessions {
    /// Its name, safe to print on a terminal.
    pub(super) name: String,
    /// The events in the order of the lines, timed from the first one. Time never goes back.
    pub(super) events: Vec<(Duration, Event)>,
    /// The first lines that could not be read.
    pub(super) broken: Vec<BrokenLine>,
    /// How many lines could not be read.
    pub(super) broken_count: u64,
    /// How many events have an earlier timestamp than the one before them.
    pub(super) dated_back: u64,
    /// The timestamps of the first event and of the latest so far, in microseconds since 1970.
    span: Option<(i64, i64)>,
}

/// A line that could not be read.
pub(super) struct BrokenLine {
    pub(super) line: u64,
    pub(super) why: String,
}

impl RecordedSessions {
    /// Reads a recording from a file or from standard input.
    pub(super) fn read(path: &Path) -> Result<Self, CommandFailure> {
        let failed =
            |error: &io::Error| CommandFailure::of_file("read", path, error, failures::CHECK_NAME);
        let (name, input): (String, Box<dyn Read>) = if path.as_os_str() == "-" {
            (reporting::STANDARD_INPUT.to_owned(), Box::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(|error| failed(&error))?;
            if file.metadata().map_err(|error| failed(&error))?.is_dir() {
                return Err(failures::is_a_folder(&name_of(path)).into());
            }
            (file_name(path), Box::new(file))
        };
        let mut recording = RecordedSessions {
            name,
            events: Vec::new(),
            broken: Vec::new(),
            broken_count: 0,
            dated_back: 0,
            span: None,
        };
        let mut splitter = MessageSplitter::new(input.take(MAX_RECORDING + 1));
        while let Some(batch) = splitter.next().map_err(|error| failed(&error))? {
            if batch.read > MAX_RECORDING {
                let mebibytes = MAX_RECORDING / 1024 / 1024;
                return Err(reporting::too_large(&recording.name, mebibytes).into());
            }
            batch.pieces().for_each(|(line, found)| recording.take(line, &found));
        }
        recording.require_events()
    }

    fn take(&mut self, line: u64, found: &FoundPiece<'_>) {
        let bytes = match found {
            FoundPiece::Message(bytes) => bytes,
            FoundPiece::Fault(why) => return self.add_broken(line, (*why).to_owned()),
        };
        let reading = aaep::read(bytes, Mode::Tolerant);
        match reading.message {
            Some(Message::Event(event)) => self.event(*event),
            // Some recordings contain handshakes, which are not told.
            Some(_) => {}
            None => {
                let is_error = |it: &&Violation| it.severity == Severity::Error;
                let why = reading.violations.iter().find(is_error).map(ToString::to_string);
                self.add_broken(line, why.unwrap_or_else(|| reporting::NOT_A_MESSAGE.to_owned()));
            }
        }
    }

    fn event(&mut self, event: Event) {
        let at = event.envelope.timestamp.unix_us();
        let (first, latest) = self.span.unwrap_or((at, at));
        self.dated_back += u64::from(at < latest);
        let latest = latest.max(at);
        self.span = Some((first, latest));
        let since = u64::try_from(latest.saturating_sub(first)).unwrap_or_default();
        self.events.push((Duration::from_micros(since), event));
    }

    fn add_broken(&mut self, line: u64, why: String) {
        self.broken_count += 1;
        if self.broken.len() < MAX_BROKEN {
            self.broken.push(BrokenLine { line, why });
        }
    }

    /// Fails if there are no events.
    fn require_events(self) -> Result<Self, CommandFailure> {
        if !self.events.is_empty() {
            return Ok(self);
        }
        let broken = self.broken.first().map(|it| (it.line, it.why.as_str()));
        Err(reporting::holds_no_event(&self.name, broken).into())
    }

    /// Notes about the recording itself, as sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let line = |it: &BrokenLine| reporting::not_read(it.line, &it.why);
        let mut notes: Vec<String> = self.broken.iter().map(line).collect();
        let more = self.broken_count - self.broken.len() as u64;
        if more > 0 {
            notes.push(reporting::more_not_read(more));
        }
        if self.dated_back > 0 {
            notes.push(reporting::dated_back(self.dated_back));
        }
        notes
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| name_of(path), |it| name_of(Path::new(it)))
}
