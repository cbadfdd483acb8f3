//! `aaep report`: reports how recorded sessions would have been to listen to, as text, as JSON, and as a page.
//!
//! Nothing is played and nothing waits: the announcer is rehearsed against a voice of a given pace, and the result is
//! always the same.

mod recording;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep_announce::{Listening, ListeningReport, PACES, Profile, Rehearsal, page, rehearse};
use clap::Args;
use serde_json::{Value, json};

use crate::console::{self, CommandFailure, ascii_json_line, name_of};
use crate::english::reporting;
use crate::keys::tell;
use recording::RecordedSessions;

const EXIT_CODES: &str = "\
For example: aaep report session.jsonl --html session.html
A recording is what aaep capture writes, with one event on each line. To include the questions, record with --questions.
Exit codes:
  0  the sessions can be listened to
  1  they cannot: an announcement was repeated or not finished, a question was missed, or a line could not be read
  2  it could not be done: wrong usage, an unreadable file, or not a single event";

/// Which recordings, for whom, and how to tell.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReportOptions {
    /// The recordings; - is standard input.
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// How much is told: screen-reader, braille, captions, low-cognitive-load, quiet or debug.
    #[arg(long, value_name = "NAME", default_value = "screen-reader", value_parser = profile)]
    profile: Profile,
    /// How fast the person listens. By default as fast as the profile says.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(*PACES.start()..=*PACES.end()))]
    words_per_minute: Option<u64>,
    /// Print one JSON object for each recording, for programs.
    #[arg(long)]
    json: bool,
    /// Write a page with a timeline and everything that would be said to this file, replacing its contents.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn profile(name: &str) -> Result<Profile, String> {
    let names = Profile::ALL.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
    Profile::named(name).ok_or_else(|| reporting::no_such_profile(&names))
}

/// A recording with its rehearsal and report.
struct RehearsedRecording {
    recording: RecordedSessions,
    notes: Vec<String>,
    rehearsal: Rehearsal,
    report: ListeningReport,
}

/// Reports on all recordings.
pub(crate) fn run(arguments: &ReportOptions) -> Result<ExitCode, CommandFailure> {
    if let Some(path) = &arguments.html {
        refuse_to_overwrite(path, &arguments.captures)?;
    }
    let (mut failures, mut heard) = (0, Vec::new());
    for path in &arguments.captures {
        match RecordedSessions::read(path) {
            Ok(recording) => {
                let it = hear(recording, arguments);
                tell_of(&it, arguments, heard.is_empty())?;
                heard.push(it);
            }
            Err(failure) => {
                console::complain(&failure);
                failures += 1;
            }
        }
    }
    if let Some(path) = arguments.html.as_ref().filter(|_| !heard.is_empty()) {
        write_page(path, &heard, arguments)?;
    }
    let is_good = |it: &RehearsedRecording| it.report.is_good() && it.recording.broken_count == 0;
    Ok(match failures {
        0 if heard.iter().all(is_good) => ExitCode::SUCCESS,
        0 => ExitCode::from(1),
        _ => ExitCode::from(console::COULD_NOT),
    })
}

fn hear(recording: RecordedSessions, arguments: &ReportOptions) -> RehearsedRecording {
    let mut preferences = arguments.profile.preferences();
    if let Some(pace) = arguments.words_per_minute {
        preferences.words_per_minute = pace;
    }
    let pace = preferences.pace();
    let rehearsal = rehearse(&recording.events, &preferences, pace);
    let report = ListeningReport::of_rehearsal(&recording.events, &rehearsal, pace);
    RehearsedRecording { notes: recording.notes(), recording, rehearsal, report }
}

fn tell_of(
    heard: &RehearsedRecording,
    arguments: &ReportOptions,
    is_first: bool,
) -> Result<(), CommandFailure> {
    let (recording, report) = (&heard.recording, &heard.report);
    let profile = arguments.profile.name();
    if arguments.json {
        return tell(&ascii_json_line(&object(heard, profile)));
    }
    let before = if is_first { "" } else { "\n" };
    tell(&format!("{before}{}", reporting::heading(&recording.name, profile)))?;
    tell(&report.to_string())?;
    heard.notes.iter().try_for_each(|note| tell(note))
}

fn object(heard: &RehearsedRecording, profile: &str) -> Value {
    let recording = &heard.recording;
    let broken = recording.broken.iter().map(|it| json!({ "line": it.line, "problem": it.why }));
    let mut object = json!({
        "capture": recording.name,
        "profile": profile,
        "is_good": heard.report.is_good(),
        "broken_lines": broken.collect::<Vec<_>>(),
        "broken_lines_count": recording.broken_count,
        "events_dated_back": recording.dated_back,
    });
    let figures = serde_json::to_value(&heard.report).unwrap_or_default();
    if let (Some(object), Value::Object(figures)) = (object.as_object_mut(), figures) {
        object.extend(figures);
    }
    object
}

/// Refuses to write the page over a recording that it is about.
fn refuse_to_overwrite(path: &Path, captures: &[PathBuf]) -> Result<(), CommandFailure> {
    let Ok(page) = fs::canonicalize(path) else { return Ok(()) };
    let is_same = |it: &PathBuf| fs::canonicalize(it).is_ok_and(|it| it == page);
    if captures.iter().any(is_same) {
        return Err(reporting::is_a_recording(&name_of(path)).into());
    }
    Ok(())
}

/// Writes the page completely or not at all.
fn write_page(
    path: &Path,
    heard: &[RehearsedRecording],
    arguments: &ReportOptions,
) -> Result<(), CommandFailure> {
    let listenings: Vec<Listening<'_>> = heard
        .iter()
        .map(|it| Listening {
            name: &it.recording.name,
            profile: arguments.profile.name(),
            events: &it.recording.events,
            rehearsal: &it.rehearsal,
            report: &it.report,
            notes: &it.notes,
        })
        .collect();
    let failed = |error: &std::io::Error| {
        CommandFailure::of_file("write", path, error, reporting::PAGE_NEEDS_A_PLACE)
    };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut file = file.map_err(|error| failed(&error))?;
    file.write_all(page(&listenings).as_bytes()).map_err(|error| failed(&error))?;
    readable(&file).map_err(|error| failed(&error))?;
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// Others may read the page, but a temporary file is private.
#[cfg(unix)]
fn readable(file: &tempfile::NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &tempfile::NamedTempFile) -> std::io::Result<()> {
    Ok(())
}
