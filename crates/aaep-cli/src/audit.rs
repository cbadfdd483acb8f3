//! `aaep audit`: shows, verifies and exports the log of what was asked and answered (§10.2.2).
//!
//! Never repairs a changed log. Escapes untrusted text.

mod pages;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep::{SessionId, printable};
use aaep_hub::audit::{self, AuditLine, Broken, BrokenReason, Details, ExportError, Hash, Shown};
use aaep_hub::store::OpenError;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::archive::{ArchiveFlags, ArchiveSource};
use crate::console::{CommandFailure, ascii_json, name_of, number};
use crate::keys::tell;
use crate::order::example;
use crate::store::{self, StoreFolderFlag};

const EXIT_CODES: &str = "\
Exit codes:
  0  it is done; for verify: the log is as it was written
  1  for verify: the log cannot be trusted
  2  it could not be done: wrong usage, or a store or file that cannot be used";

/// What to do with the audit log.
#[derive(Debug, Args)]
#[command(after_help = example("aaep audit show --last 10", EXIT_CODES))]
pub(crate) struct AuditOptions {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Show the entries, oldest first, with the words that are still stored.
    ///
    /// It asks the hub, which needs the scope admin. If no hub runs, it reads the folder.
    #[command(after_help = example("aaep audit show --last 10", EXIT_CODES))]
    Show {
        /// Show only the entries of this session.
        #[arg(long = "session", value_name = "SESSION")]
        session_id: Option<SessionId>,
        /// Show only this many of the newest entries.
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        last: Option<u32>,
        #[command(flatten)]
        place: ArchiveFlags,
    },
    /// Check that nobody changed the log after it was written.
    #[command(after_help = example("aaep audit verify --store ~/aaep-backup", EXIT_CODES))]
    Verify {
        /// The folder of the store. The log is also compared with the store.
        #[arg(
            long = "store",
            value_name = "DIR",
            env = "AAEP_STORE",
            required_unless_present = "file"
        )]
        folder: Option<PathBuf>,
        /// Check only this file, such as a copy of audit.jsonl, without a store.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print one JSON object, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Write every entry as a line of JSON, with the words that are still stored.
    #[command(after_help = example("aaep audit export --store ~/aaep-backup --output audit.jsonl", EXIT_CODES))]
    Export {
        /// Write to this new file instead of standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        place: StoreFolderFlag,
    },
}

pub(crate) fn run(arguments: &AuditOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        AuditCommand::Show { session_id, last, place } => show(place, session_id.as_ref(), *last)?,
        AuditCommand::Verify { folder, file, json } => {
            let checked = match (file, folder) {
                (Some(file), _) => check_file(file)?,
                (None, Some(folder)) => check_store(folder)?,
                (None, None) => {
                    return Err(CommandFailure::new(
                        "there is nothing to verify",
                        "Say --store DIR.",
                    ));
                }
            };
            return answer(&checked, *json);
        }
        AuditCommand::Export { output, place } => export(place, output.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(
    place: &ArchiveFlags,
    session_id: Option<&SessionId>,
    last: Option<u32>,
) -> Result<(), CommandFailure> {
    let entries: Box<dyn Iterator<Item = Result<Shown, CommandFailure>>> = match place.source()? {
        ArchiveSource::Hub(client) => Box::new(pages::entries(client)),
        ArchiveSource::Store(store) => {
            let shown = audit::show(&store.reader());
            // The store must stay open while its entries are read.
            Box::new(shown.map(move |it| {
                let _open = &store;
                it.map_err(|error| failure(&error))
            }))
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let failed = |error: io::Error| CommandFailure::of_output(&error);
    let wanted = |line: &AuditLine| {
        session_id.is_none_or(|wanted| line.session_id.as_deref() == Some(wanted.as_str()))
    };
    let max = last.map(|last| last as usize);
    let mut kept = VecDeque::new();
    let mut shown_any = false;
    let mut result = Ok(());
    for shown in entries {
        let shown = match shown {
            Ok(shown) => shown,
            Err(failure) => {
                result = Err(failure);
                break;
            }
        };
        if !wanted(&shown.line) {
            continue;
        }
        shown_any = true;
        let Some(max) = max else {
            writeln!(out, "{}", sentence(&shown)).map_err(failed)?;
            continue;
        };
        if kept.len() == max {
            kept.pop_front();
        }
        kept.push_back(sentence(&shown));
    }
    for line in kept {
        writeln!(out, "{line}").map_err(failed)?;
    }
    if !shown_any && result.is_ok() {
        let whose = session_id.map_or_else(String::new, |it| format!(" of session {it}"));
        writeln!(out, "The audit log has no entries{whose}.").map_err(failed)?;
    }
    // Print the trustworthy entries first.
    out.flush().map_err(failed)?;
    result
}

/// An entry as a sentence for people.
fn sentence(shown: &Shown) -> String {
    let Shown { line, details } = shown;
    let mut text = format!(
        "Entry {}, {}: {}",
        line.seq,
        printable(&line.time),
        printable(&line.kind).replace('_', " ")
    );
    let short = |hash: &str| hash.chars().take(8).collect::<String>();
    let parts = [
        ("by", line.who.clone()),
        ("session", line.session_id.clone()),
        ("question", line.reply_token_sha256.as_deref().map(short)),
    ];
    for (word, part) in parts {
        if let Some(part) = part {
            text.extend([", ", word, " ", &*printable(&part)]);
        }
    }
    text.extend([". Outcome: ", printable(&line.outcome).trim_end_matches('.'), "."]);
    match details {
        Details::None => {}
        Details::Words(words) => text.extend([" Words: ", &*printable(words)]),
        Details::Deleted => text.push_str(" The words were deleted."),
        Details::Changed => {
            text.push_str(" The words in the store are not those that were logged.");
        }
    }
    text
}

/// The result of a check.
struct AuditCheck {
    entries: u64,
    last_hash: String,
    is_with_store: bool,
    /// The first problem, if there is one: its line or entry, and a sentence.
    wrong: Option<(u64, String)>,
    /// What became of the broken log that this one replaced, if it did.
    replaced: Option<String>,
}

fn check_file(path: &Path) -> Result<AuditCheck, CommandFailure> {
    let (entries, last_hash, wrong, replaced) = match audit::verify(path) {
        Ok(verified) => (verified.entries, verified.last_hash, None, verified.replaced),
        Err(broken) => {
            // For a missing file, verification fails at the first line.
            if let Err(error) = File::open(path) {
                return Err(CommandFailure::of_file(
                    "read",
                    path,
                    &error,
                    "Check its name and rights.",
                ));
            }
            let (line, mut text) = wrong(&broken)?;
            if broken.why == BrokenReason::Torn {
                text.push_str(" If a hub is writing to it now, try again in a moment.");
            }
            (broken.line.saturating_sub(1), Hash::ZERO, Some((line, text)), None)
        }
    };
    let last_hash = last_hash.to_string();
    Ok(AuditCheck { entries, last_hash, is_with_store: false, wrong, replaced })
}

fn check_store(folder: &Path) -> Result<AuditCheck, CommandFailure> {
    let mut checked = AuditCheck {
        entries: 0,
        last_hash: Hash::ZERO.to_string(),
        is_with_store: true,
        wrong: None,
        replaced: None,
    };
    let store = match store::open(folder)? {
        Ok((store, _)) => store,
        Err(OpenError::AuditBroken { broken, .. }) => {
            checked.wrong = Some(wrong(&broken)?);
            return Ok(checked);
        }
        Err(error @ OpenError::InUse { .. }) => {
            return Err(CommandFailure::new(
                store::failure(&error).what(),
                "Stop that hub, or check the file of the log alone with --file.",
            ));
        }
        Err(error) => return Err(store::failure(&error)),
    };
    let mut last_seq = 0;
    for shown in audit::show(&store.reader()) {
        let shown = match shown {
            Ok(shown) => shown,
            Err(ExportError::Broken(broken)) => {
                checked.wrong = Some(wrong(&broken)?);
                return Ok(checked);
            }
            Err(error) => return Err(failure(&error)),
        };
        let seq = shown.line.seq;
        if shown.details == Details::Changed && checked.wrong.is_none() {
            let why = format!("The words of entry {seq} are not those that were logged.");
            checked.wrong = Some((seq, why));
        }
        if checked.entries == 0 && shown.line.kind == audit::LOG_BROKEN {
            checked.replaced = Some(shown.line.outcome);
        }
        checked.entries += 1;
        checked.last_hash = shown.line.hash;
        last_seq = seq;
    }
    let end = store.audit();
    if (last_seq, &checked.last_hash) != (end.last_seq, &end.last_hash.to_string()) {
        let broken = Broken { line: checked.entries + 1, why: BrokenReason::Gone };
        checked.wrong = Some(wrong(&broken)?);
    }
    // The hub has set it aside by itself, so this is the place where someone notices.
    if let Some(replaced) = checked.replaced.as_ref().filter(|_| has_broken_log(folder)) {
        let next = "Once you know why, move the kept file to another folder.";
        checked.wrong.get_or_insert((1, format!("{} {next}", printable(replaced))));
    }
    Ok(checked)
}

/// Whether a broken log lies in this folder.
fn has_broken_log(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.file_name()).any(|it| it.to_string_lossy().starts_with("audit-broken-"))
}

/// Where and how a log is broken; fails if the log could not be read at all.
fn wrong(broken: &Broken) -> Result<(u64, String), CommandFailure> {
    if let BrokenReason::Unreadable(_) = broken.why {
        let text = broken.to_string();
        return Err(CommandFailure::of_sentences(
            &text,
            "Check the disk and the rights of the file.",
        ));
    }
    Ok((broken.line, broken.to_string()))
}

fn answer(checked: &AuditCheck, as_json: bool) -> Result<ExitCode, CommandFailure> {
    let AuditCheck { entries, last_hash, is_with_store, wrong, replaced } = checked;
    if as_json {
        tell(&ascii_json(&json!({
            "valid": wrong.is_none(),
            "entries": entries,
            "last_hash": wrong.is_none().then_some(last_hash),
            "compared_with_store": is_with_store,
            "line": wrong.as_ref().map(|(line, _)| line),
            "message": wrong.as_ref().map(|(_, text)| text),
        })))?;
    } else if let Some((_, text)) = wrong {
        tell(&format!(
            "The audit log cannot be trusted. {text} Keep a copy and find out who changed it."
        ))?;
    } else {
        tell(&format!("The audit log holds: {}, nothing changed.", entries_of(*entries)))?;
        if *entries > 0 {
            tell(&format!("The hash of the last is {last_hash}"))?;
        }
        if let Some(replaced) = replaced {
            tell(&printable(replaced))?;
        }
        if !is_with_store {
            tell("Only the store can tell whether entries are missing at the end: use --store.")?;
        }
    }
    Ok(if wrong.is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn export(place: &StoreFolderFlag, output: Option<&Path>) -> Result<(), CommandFailure> {
    let (store, _) = place.open()?;
    let Some(path) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        audit::export(&store.reader(), &mut out).map_err(|error| failure(&error))?;
        return Ok(());
    };
    let file = create(path)?;
    let mut out = BufWriter::new(file);
    let written = audit::export(&store.reader(), &mut out).map_err(|error| failure(&error));
    let written = written.and_then(|entries| {
        let synced = out.get_ref().sync_all();
        synced.map(|()| entries).map_err(|error| not_written(path, &error))
    });
    match written {
        Ok(entries) => tell(&format!(
            "Wrote {} to {}. It has the words of people, so keep it where only you can read it.",
            entries_of(entries),
            name_of(path)
        )),
        Err(failure) => {
            // A partial export could be mistaken for a complete one.
            let _ = fs::remove_file(path);
            Err(failure)
        }
    }
}

/// Creates a file that only its owner can read.
fn create(path: &Path) -> Result<File, CommandFailure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::of_file("write", path, error, "Choose another name with --output.")
}

fn failure(error: &ExportError) -> CommandFailure {
    let failure = CommandFailure::of_sentences(&error.to_string(), "More: aaep audit --help");
    match error {
        ExportError::Write(kind, _) => failure.of_writing(*kind),
        ExportError::Broken(_) | ExportError::Read(_) => failure,
    }
}

/// "1 entry", "2 entries".
fn entries_of(entries: u64) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{} entries", number(entries)) }
}
