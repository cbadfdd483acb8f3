//! `aaep validate`: reports precisely what is wrong with messages, where, and how to fix it.
//!
//! One thread cuts the input into messages, others check them, and the main thread reports in the order of the input.
//! All queues are bounded, so a file of any size takes the same memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aaep::{Code, CoreType, Message, Mode, Payload, Reading, Severity, Violation};
use aaep_engine::FILLED_FIELDS;
use aaep_engine::order::StreamOrder;
use serde_json::json;

use crate::console::{self, CommandFailure, count, name_of, number};
use crate::problem::MessageProblem;
use crate::progress::CommandProgress;
use crate::split::{FoundPiece, MessageBatch, MessageSplitter};

const EXIT_CODES: &str = "\
For example: aaep validate session.jsonl
The input can be one JSON document, an array, or JSON lines such as a recording. It is found out which.
Exit codes:
  0  every message is valid
  1  at least one message is not valid
  2  it could not be done: wrong usage, an unreadable file, or not a single message";

/// What to check and how to tell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct ValidateOptions {
    /// The files to check. Without one, or with -, standard input is checked.
    files: Vec<PathBuf>,
    /// Read as a subscriber does: accept what a newer or less careful producer adds.
    #[arg(long)]
    tolerant: bool,
    /// Check the order of sessions from the first event, even if no session starts in the input.
    #[arg(long, conflicts_with = "no_order")]
    order: bool,
    /// Check each message by itself, and not the order of sessions.
    #[arg(long)]
    no_order: bool,
    /// How to report the findings.
    #[arg(long, value_enum, default_value_t = ValidateFormat::Text)]
    format: ValidateFormat,
    /// List every note, not only how many there are of each kind.
    #[arg(long)]
    notes: bool,
    /// Print nothing; only the exit code tells the result.
    #[arg(long, short, conflicts_with = "notes")]
    quiet: bool,
}

/// How to tell what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ValidateFormat {
    /// A line for each problem, for people.
    Text,
    /// A JSON object for each problem and one at the end, for programs.
    Json,
}

/// From where on the order of sessions is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderFrom {
    /// The first event that starts a session: an input without one is not a whole session.
    FirstStart,
    /// The first event of any type.
    FirstEvent,
    Never,
}

/// How messages are judged.
#[derive(Debug, Clone, Copy)]
struct ValidateRules {
    mode: Mode,
    order_from: OrderFrom,
}

impl ValidateRules {
    fn of(arguments: &ValidateOptions) -> Self {
        ValidateRules {
            mode: if arguments.tolerant { Mode::Tolerant } else { Mode::Strict },
            order_from: match (arguments.order, arguments.no_order) {
                (true, _) => OrderFrom::FirstEvent,
                (false, true) => OrderFrom::Never,
                (false, false) => OrderFrom::FirstStart,
            },
        }
    }
}

/// Checks all files and reports.
pub(crate) fn run(arguments: &ValidateOptions) -> Result<ExitCode, CommandFailure> {
    let rules = ValidateRules::of(arguments);
    let output = BufWriter::with_capacity(64 * 1024, io::stdout());
    let mut report = ValidateReport::new(output, arguments);
    let standard_input = [PathBuf::from("-")];
    let files = if arguments.files.is_empty() { &standard_input[..] } else { &arguments.files };
    let mut failures = 0;
    for path in files {
        match check_file(path, rules, &mut report) {
            Ok(()) => {}
            Err(ValidateStop::Input(failure)) => {
                report.flush().map_err(|error| CommandFailure::of_output(&error))?;
                console::complain(&failure);
                failures += 1;
            }
            Err(ValidateStop::Output(error)) => return Err(CommandFailure::of_output(&error)),
        }
    }
    report.finish().map_err(|error| CommandFailure::of_output(&error))?;
    Ok(match (failures, report.tally.invalid) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        _ => ExitCode::from(console::COULD_NOT),
    })
}

/// Why checking a file stopped.
enum ValidateStop {
    Input(CommandFailure),
    Output(io::Error),
}

fn check_file(
    path: &Path,
    rules: ValidateRules,
    report: &mut ValidateReport<impl Write>,
) -> Result<(), ValidateStop> {
    let next = "Check the name, or pass - to read standard input.";
    let unreadable =
        |error: &io::Error| ValidateStop::Input(CommandFailure::of_file("read", path, error, next));
    let before = report.tally.checked;
    if path.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            console::say("Reading from standard input; end with Control-D.");
        }
        "standard input".clone_into(&mut report.file);
        check_stream(io::stdin(), None, rules, report, &unreadable)?;
    } else {
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let metadata = file.metadata().map_err(|error| unreadable(&error))?;
        if metadata.is_dir() {
            let what = format!("{} is a folder", name_of(path));
            return Err(ValidateStop::Input(CommandFailure::new(
                what,
                "Name the files in it that you mean.",
            )));
        }
        report.file = name_of(path);
        check_stream(file, Some(metadata.len()), rules, report, &unreadable)?;
    }
    if report.tally.checked == before {
        let what = format!("{} holds no message", report.file);
        let next = "Check that it is the file you mean.";
        return Err(ValidateStop::Input(CommandFailure::new(what, next)));
    }
    Ok(())
}

struct CheckedMessage {
    line: u64,
    /// The message if it is valid, for judging the order of its session.
    message: Option<Message>,
    problems: Vec<MessageProblem>,
    event_id: Option<String>,
}

/// A checked batch and its position in the input.
struct CheckedBatch {
    index: u64,
    read: u64,
    checked: Vec<CheckedMessage>,
}

/// How many batches may be queued on either side of the checking threads.
const WAITING: usize = 2;

fn check_stream(
    source: impl Read + Send,
    size: Option<u64>,
    rules: ValidateRules,
    report: &mut ValidateReport<impl Write>,
    unreadable: &dyn Fn(&io::Error) -> ValidateStop,
) -> Result<(), ValidateStop> {
    let (give, take) = sync_channel::<(u64, MessageBatch)>(WAITING);
    let (done, results) = sync_channel::<CheckedBatch>(WAITING);
    let take = Arc::new(Mutex::new(take));
    let workers = thread::available_parallelism().map_or(2, usize::from).clamp(1, 8);
    thread::scope(|scope| {
        let cutter = scope.spawn(move || cut(source, &give));
        for _ in 0..workers {
            let (take, done) = (Arc::clone(&take), done.clone());
            scope.spawn(move || check_batches(&take, &done, rules.mode));
        }
        drop(done);
        let reported = report_in_order(&results, size, rules, report).map_err(ValidateStop::Output);
        // If the report failed, nothing takes results any more: drop the channels so that the other threads end.
        drop(results);
        drop(take);
        let cut = cutter.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")));
        reported?;
        cut.map_err(|error| unreadable(&error))
    })
}

fn cut(source: impl Read, give: &SyncSender<(u64, MessageBatch)>) -> io::Result<()> {
    let mut splitter = MessageSplitter::new(source);
    let mut index = 0;
    while let Some(batch) = splitter.next()? {
        if give.send((index, batch)).is_err() {
            break;
        }
        index += 1;
    }
    Ok(())
}

fn check_batches(
    take: &Mutex<Receiver<(u64, MessageBatch)>>,
    done: &SyncSender<CheckedBatch>,
    mode: Mode,
) {
    loop {
        let next = match take.lock() {
            Ok(take) => take.recv(),
            Err(_) => return,
        };
        let Ok((index, batch)) = next else { return };
        let checked = batch.pieces().map(|(line, found)| check_piece(line, &found, mode)).collect();
        if done.send(CheckedBatch { index, read: batch.read, checked }).is_err() {
            return;
        }
    }
}

fn check_piece(line: u64, found: &FoundPiece<'_>, mode: Mode) -> CheckedMessage {
    match found {
        FoundPiece::Message(bytes) => {
            let reading = aaep::read(bytes, mode);
            let filled = filled_in(bytes, &reading);
            let problems = reading.violations.into_iter().map(MessageProblem::of_message);
            CheckedMessage {
                line,
                message: reading.message,
                problems: problems.chain(filled).collect(),
                event_id: reading.event_id,
            }
        }
        FoundPiece::Fault(fault) => {
            let problems = vec![MessageProblem::between_messages(fault)];
            CheckedMessage { line, message: None, problems, event_id: None }
        }
    }
}

/// The id fields that a hub rewrites if an agent uses ids of its own.
const OWN_IDS: [&str; 5] = ["event_id", "session_id", "output_id", "tool_call_id", "reply_token"];

/// A note about what a hub would fill in, for an event that is not valid as it is.
fn filled_in(bytes: &[u8], reading: &Reading) -> Option<MessageProblem> {
    if reading.message.is_some() {
        return None;
    }
    let object: aaep::Object = serde_json::from_slice(bytes).ok()?;
    CoreType::known(object.get("type")?.as_str()?)?;
    let is_error = |it: &&Violation| it.severity == Severity::Error;
    let mut fields = Vec::new();
    let mut is_all = true;
    for violation in reading.violations.iter().filter(is_error) {
        let name = violation.pointer.strip_prefix('/').unwrap_or_default();
        let of = |list: &[&'static str]| list.iter().copied().find(|it| *it == name);
        let field = match violation.code {
            Code::MissingField => of(&FILLED_FIELDS),
            Code::WrongFormat => of(&OWN_IDS),
            _ => None,
        };
        is_all &= field.is_some();
        fields.extend(field);
    }
    (!fields.is_empty()).then(|| MessageProblem::hub_fills_in(&fields, is_all))
}

/// Reports batches in the order of the input, whatever order they arrive in.
fn report_in_order(
    results: &Receiver<CheckedBatch>,
    size: Option<u64>,
    rules: ValidateRules,
    report: &mut ValidateReport<impl Write>,
) -> io::Result<()> {
    let mut progress = CommandProgress::new(size);
    let mut order = OrderCheck::new(rules);
    let mut early = BTreeMap::new();
    let (mut next, mut read) = (0, 0);
    loop {
        match results.recv_timeout(Duration::from_millis(100)) {
            Ok(batch) => {
                early.insert(batch.index, batch);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        while let Some(batch) = early.remove(&next) {
            for mut checked in batch.checked {
                let is_valid = order.check(&mut checked);
                if report.has_lines_for(&checked) {
                    progress.clear();
                }
                report.add(&checked, is_valid)?;
            }
            read = batch.read;
            next += 1;
        }
        progress.tick(read, report.tally.checked);
    }
    progress.clear();
    match order.first_unjudged() {
        Some(line) => report.note(line, MessageProblem::order_not_judged()),
        None => Ok(()),
    }
}

/// Judges the order of one input.
struct OrderCheck {
    rules: ValidateRules,
    is_judging: bool,
    /// The line of the first event that was not judged.
    first_passed_over: Option<u64>,
    stream: StreamOrder,
}

impl OrderCheck {
    fn new(rules: ValidateRules) -> Self {
        OrderCheck {
            rules,
            is_judging: rules.order_from == OrderFrom::FirstEvent,
            first_passed_over: None,
            stream: StreamOrder::new(),
        }
    }

    /// Adds the order violations of a message; returns whether the message is valid overall.
    fn check(&mut self, checked: &mut CheckedMessage) -> bool {
        let Some(message) = checked.message.take() else { return false };
        if self.rules.order_from == OrderFrom::Never {
            return true;
        }
        if let Message::Event(event) = &message {
            self.is_judging |= matches!(event.payload, Payload::SessionStarted(_));
            if !self.is_judging {
                self.first_passed_over.get_or_insert(checked.line);
                self.stream.pass_over(event);
                return true;
            }
        }
        let broken = self.stream.observe(&message);
        if let (Message::Event(event), false) = (&message, broken.is_empty()) {
            checked.event_id = Some(event.envelope.event_id.to_string());
        }
        let mode = self.rules.mode;
        checked.problems.extend(broken.iter().map(|it| MessageProblem::of_order(it, mode)));
        broken.is_empty() || mode == Mode::Tolerant
    }

    /// The line of the first event, if the input has events but none that starts a session.
    fn first_unjudged(&self) -> Option<u64> {
        if self.is_judging { None } else { self.first_passed_over }
    }
}

#[derive(Debug, Default)]
struct ValidateTally {
    checked: u64,
    invalid: u64,
    errors: u64,
    /// The notes by kind: how many, and where the first one was.
    notes: BTreeMap<&'static str, (u64, String, MessageProblem)>,
}

/// Writes the findings.
struct ValidateReport<W> {
    output: W,
    format: ValidateFormat,
    list_notes: bool,
    quiet: bool,
    file: String,
    tally: ValidateTally,
}

impl<W: Write> ValidateReport<W> {
    fn new(output: W, arguments: &ValidateOptions) -> Self {
        ValidateReport {
            output,
            format: arguments.format,
            list_notes: arguments.notes,
            quiet: arguments.quiet,
            file: String::new(),
            tally: ValidateTally::default(),
        }
    }

    fn has_lines_for(&self, checked: &CheckedMessage) -> bool {
        checked.problems.iter().any(|problem| self.lists(problem))
    }

    fn lists(&self, problem: &MessageProblem) -> bool {
        !self.quiet && (problem.severity == Severity::Error || self.list_notes)
    }

    fn add(&mut self, checked: &CheckedMessage, is_valid: bool) -> io::Result<()> {
        self.tally.checked += 1;
        self.tally.invalid += u64::from(!is_valid);
        self.add_problems(checked)
    }

    /// Adds a note about the input as a whole.
    fn note(&mut self, line: u64, note: MessageProblem) -> io::Result<()> {
        let problems = vec![note];
        self.add_problems(&CheckedMessage { line, message: None, problems, event_id: None })
    }

    fn add_problems(&mut self, checked: &CheckedMessage) -> io::Result<()> {
        for problem in &checked.problems {
            match problem.severity {
                Severity::Error => self.tally.errors += 1,
                Severity::Note => {
                    let first = || (0, format!("{}:{}", self.file, checked.line), problem.clone());
                    self.tally.notes.entry(problem.code).or_insert_with(first).0 += 1;
                }
            }
            if self.lists(problem) {
                match self.format {
                    ValidateFormat::Text => self.write_line(checked, problem)?,
                    ValidateFormat::Json => self.write_json(checked, problem)?,
                }
            }
        }
        Ok(())
    }

    fn write_line(&mut self, checked: &CheckedMessage, problem: &MessageProblem) -> io::Result<()> {
        let event = match &checked.event_id {
            Some(id) => format!("{}: ", shorten(id)),
            None => String::new(),
        };
        let severity = problem.severity.name();
        writeln!(self.output, "{}:{}: {severity}: {event}{problem}", self.file, checked.line)
    }

    fn write_json(&mut self, checked: &CheckedMessage, problem: &MessageProblem) -> io::Result<()> {
        let line = json!({
            "file": self.file,
            "line": checked.line,
            "event_id": checked.event_id,
            "severity": problem.severity.name(),
            "code": problem.code,
            "pointer": problem.pointer,
            "section": problem.section,
            "problem": problem.what,
            "advice": problem.advice,
        });
        writeln!(self.output, "{line}")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Writes the last lines: notes by kind, then the totals.
    fn finish(&mut self) -> io::Result<()> {
        if !self.quiet && self.tally.checked > 0 {
            match self.format {
                ValidateFormat::Text => self.write_summary()?,
                ValidateFormat::Json => self.write_json_summary()?,
            }
        }
        self.flush()
    }

    fn write_summary(&mut self) -> io::Result<()> {
        let tally = &self.tally;
        for (times, first, problem) in tally.notes.values().filter(|_| !self.list_notes) {
            let times = count(*times, "time");
            writeln!(self.output, "note, {times}, first at {first}: {problem}")?;
        }
        let checked = count(tally.checked, "message");
        match (tally.invalid, tally.checked) {
            (0, 1) => writeln!(self.output, "1 message checked. It is valid."),
            (0, _) => writeln!(self.output, "{checked} checked. All are valid."),
            (invalid, all) => writeln!(
                self.output,
                "{checked} checked. {} valid, {} not valid, {} in all.",
                number(all - invalid),
                number(invalid),
                count(tally.errors, "error")
            ),
        }
    }

    fn write_json_summary(&mut self) -> io::Result<()> {
        let notes: BTreeMap<_, _> =
            self.tally.notes.iter().map(|(name, (times, ..))| (*name, *times)).collect();
        let summary = json!({
            "summary": {
                "checked": self.tally.checked,
                "valid": self.tally.checked - self.tally.invalid,
                "invalid": self.tally.invalid,
                "errors": self.tally.errors,
                "notes": notes,
            },
        });
        writeln!(self.output, "{summary}")
    }
}

/// An untrusted id, safe to print on a terminal and no longer than a valid one.
fn shorten(id: &str) -> String {
    let cut: String = id.chars().take(68).collect();
    aaep::printable(&cut).into_owned()
}
