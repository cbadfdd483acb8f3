//! `aaep sessions`: lists, shows, ends and deletes the sessions of a hub.
//!
//! It shows what is stored and does not judge it. Deleting needs a second confirmation.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use aaep::{SessionId, printable};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::archive::{ArchiveFlags, ArchivedEvent, ArchivedSession, SessionArchive};
use crate::console::{CommandFailure, ascii_json, ascii_json_line};
use crate::english::{AGENT_WITHOUT_NAME, archiving};
use crate::keys::{moment, tell};
use crate::order::example;

const EXIT_CODES: &str = "\
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, no such session, no hub, or a store that cannot be used";

/// The fields of an event that contain words for people, in the order in which they are told.
const TOLD: [&str; 7] =
    ["summary_normal", "action", "consequence", "question", "reason", "error_message", "chunk"];

/// What to do with sessions.
#[derive(Debug, Args)]
#[command(after_help = example("aaep sessions list", EXIT_CODES))]
pub(crate) struct SessionsOptions {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the sessions: those that run, then those that ended, newest first.
    #[command(after_help = example("aaep sessions list", EXIT_CODES))]
    List {
        /// Print a JSON array, for programs.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: ArchiveFlags,
    },
    /// Show a session and its events.
    #[command(after_help = example("aaep sessions show SESSION_ID", EXIT_CODES))]
    Show {
        /// The session, as `aaep sessions list` names it.
        session_id: SessionId,
        /// Print each event whole, as a line of JSON, for programs.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: ArchiveFlags,
    },
    /// End a session whose agent is gone or does not end it.
    ///
    /// Everybody who listens hears that the session was ended by hand. Its open questions are withdrawn, and nothing is
    /// accepted.
    #[command(after_help = example("aaep sessions end SESSION_ID", EXIT_CODES))]
    End {
        /// The session, as `aaep sessions list` names it.
        session_id: SessionId,
        #[command(flatten)]
        place: ArchiveFlags,
    },
    /// Delete a session that has ended: its events, what was answered, and the words in the audit log.
    ///
    /// The audit log still says that something was asked and answered, and that its words were deleted.
    #[command(after_help = example("aaep sessions delete SESSION_ID --yes", EXIT_CODES))]
    Delete {
        /// The session, as `aaep sessions list` names it.
        session_id: SessionId,
        /// Confirm the deletion. It cannot be undone.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        place: ArchiveFlags,
    },
}

pub(crate) fn run(arguments: &SessionsOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        SessionsCommand::List { json, place } => list(place, *json)?,
        SessionsCommand::Show { session_id, json, place } => show(place, session_id, *json)?,
        SessionsCommand::End { session_id, place } => end(place, session_id)?,
        SessionsCommand::Delete { session_id, yes, place } => delete(place, session_id, *yes)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(place: &ArchiveFlags, as_json: bool) -> Result<(), CommandFailure> {
    let archive = place.open()?;
    if as_json {
        let mut all = Vec::new();
        archive.each_session(|session| {
            all.push(object(session));
            Ok(())
        })?;
        return tell(&ascii_json(&Value::Array(all)));
    }
    let mut sessions = Vec::new();
    archive.each_session(|session| {
        sessions.push(sentence(session));
        Ok(())
    })?;
    let place = archive.name();
    if sessions.is_empty() {
        return tell(&archiving::no_sessions(&place));
    }
    tell(&archiving::sessions(sessions.len() as u64, &place))?;
    sessions.iter().try_for_each(|sentence| tell(sentence))
}

fn show(place: &ArchiveFlags, session_id: &SessionId, as_json: bool) -> Result<(), CommandFailure> {
    let archive = place.open()?;
    let session = archive.session(session_id)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let failed = |error: io::Error| CommandFailure::of_output(&error);
    if !as_json {
        writeln!(out, "{}", sentence(&session)).map_err(failed)?;
    }
    let mut from_order = 0;
    loop {
        let events = archive.events(session_id, from_order)?;
        let Some(last) = events.last() else { break };
        from_order = last.order.saturating_add(1);
        for event in &events {
            let line = if as_json { event_object(event) } else { event_sentence(event) };
            writeln!(out, "{line}").map_err(failed)?;
        }
    }
    out.flush().map_err(failed)
}

fn end(place: &ArchiveFlags, session_id: &SessionId) -> Result<(), CommandFailure> {
    let mut archive = place.open()?;
    archive.end(session_id)?;
    let told = match archive {
        SessionArchive::Hub(_) => archiving::LISTENERS_TOLD,
        SessionArchive::Folder { .. } => archiving::QUESTIONS_WITHDRAWN,
    };
    tell(&archiving::ended_by_hand(session_id, told))
}

fn delete(
    place: &ArchiveFlags,
    session_id: &SessionId,
    is_sure: bool,
) -> Result<(), CommandFailure> {
    let mut archive = place.open()?;
    let session = archive.session(session_id)?;
    if !is_sure {
        return Err(archiving::not_deleted_yet(session_id, session.events).into());
    }
    archive.delete(session_id)?;
    tell(&archiving::deleted(session_id, session.events))
}

fn sentence(session: &ArchivedSession) -> String {
    let state = match session.ended_unix_us {
        Some(ended) => archiving::ended(&moment(ended.div_euclid(1000))),
        None => archiving::running(&moment(session.last_unix_us.div_euclid(1000))),
    };
    let agent = session.agent.as_deref().map_or(AGENT_WITHOUT_NAME.into(), printable);
    let began = moment(session.first_unix_us.div_euclid(1000));
    let id = printable(&session.id);
    archiving::session(&id, &agent, &began, &state, session.events, session.bytes)
}

fn object(session: &ArchivedSession) -> Value {
    json!({
        "session_id": session.id,
        "agent": session.agent,
        "first_event_at": moment(session.first_unix_us.div_euclid(1000)),
        "last_event_at": moment(session.last_unix_us.div_euclid(1000)),
        "ended_at": session.ended_unix_us.map(|ended| moment(ended.div_euclid(1000))),
        "events": session.events,
        "bytes": session.bytes,
    })
}

/// An event as a sentence for people.
fn event_sentence(event: &ArchivedEvent) -> String {
    let at = moment(event.unix_us.div_euclid(1000));
    let is_critical = event.json.as_ref().is_some_and(is_critical);
    let say = |kind: Option<&str>, words: &str| {
        archiving::event(&at, kind, event.by_hub, is_critical, words)
    };
    let Some(value) = &event.json else { return say(None, archiving::EVENT_NOT_JSON) };
    let kind = value["type"].as_str().unwrap_or(archiving::EVENT_WITHOUT_TYPE);
    let kind = kind.strip_prefix("aaep:agent.").unwrap_or(kind).replace('.', " ");
    say(Some(&printable(&kind)), &told(value))
}

/// Whether an event is critical: because of its type, or because its agent says so.
fn is_critical(event: &Value) -> bool {
    let kind = event["type"].as_str().and_then(|it| aaep::EventType::parse(it).ok());
    let by_type = kind.and_then(|it| it.core()).is_some_and(aaep::CoreType::is_critical);
    by_type || event["urgency"] == "critical"
}

/// The words of an event for people.
fn told(event: &Value) -> String {
    let text = |field: &str| event[field].as_str();
    let mut told: Vec<_> = TOLD.iter().filter_map(|field| text(field)).map(printable).collect();
    if let Some(to) = text("to_state") {
        let from = text("from_state").unwrap_or(archiving::UNKNOWN_STATE);
        told.insert(0, archiving::states(&printable(from), &printable(to)).into());
    }
    if told.is_empty() { archiving::NO_WORDS.to_owned() } else { sentences(&told) }
}

/// Joins texts, adding a full stop to a text that ends without one if another follows.
fn sentences(texts: &[Cow<'_, str>]) -> String {
    let mut all = String::new();
    for text in texts {
        if all.ends_with(char::is_alphanumeric) {
            all.push('.');
        }
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(text);
    }
    all
}

fn event_object(event: &ArchivedEvent) -> String {
    ascii_json_line(&json!({
        "order": event.order,
        "taken_in_at": moment(event.unix_us.div_euclid(1000)),
        "by_hub": event.by_hub,
        "event": event.json,
    }))
}
