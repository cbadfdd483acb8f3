//! `aaep sessions`: lists, shows and deletes what a hub has stored of sessions.
//!
//! It tells what is stored and judges nothing of it. Deleting is said twice or not done.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use aaep::{SessionId, printable};
use aaep_hub::access::Principal;
use aaep_hub::store::{DeleteError, MAX_PAGE_ROWS, ReadError, Reader, StoredEvent, StoredSession};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::console::{Failure, ascii_json, ascii_json_line, count, name_of};
use crate::keys::{moment, now_unix_ms, tell};
use crate::store::Place;

const EXIT_CODES: &str = "\
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, no such session, or a store that cannot be used";

/// The fields of an event that say something to people, in the order in which they are told.
const TOLD: [&str; 7] =
    ["summary_normal", "action", "consequence", "question", "reason", "error_message", "chunk"];

/// What to do with sessions.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the sessions: those that run, then those that ended, the newest first.
    #[command(after_help = EXIT_CODES)]
    List {
        /// Print a JSON array, for machines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show a session and its events.
    #[command(after_help = EXIT_CODES)]
    Show {
        /// The session, as `aaep sessions list` names it.
        session_id: SessionId,
        /// Print each event as a line of JSON with all that it has, for machines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Delete a session that has ended: its events, what was answered, and the words in the audit log.
    ///
    /// The audit log goes on saying that something was asked and answered, and says that it was
    /// deleted.
    #[command(after_help = EXIT_CODES)]
    Delete {
        /// The session, as `aaep sessions list` names it.
        session_id: SessionId,
        /// Really delete it. It cannot be undone.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        place: Place,
    },
}

/// Does it and says so.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::List { json, place } => list(place, *json)?,
        Command::Show { session_id, json, place } => show(place, session_id, *json)?,
        Command::Delete { session_id, yes, place } => delete(place, session_id, *yes)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(place: &Place, as_json: bool) -> Result<(), Failure> {
    let (store, recovered) = place.open()?;
    let reader = store.reader();
    let agents = recovered.agents;
    if as_json {
        let mut all = Vec::new();
        each_session(&reader, |session| {
            all.push(object(session, &agents));
            Ok(())
        })?;
        return tell(&ascii_json(&Value::Array(all)));
    }
    let mut sessions = 0;
    each_session(&reader, |_| {
        sessions += 1;
        Ok(())
    })?;
    let folder = name_of(place.folder());
    if sessions == 0 {
        return tell(&format!("There is no session in {folder}."));
    }
    tell(&format!("{} in {folder}.", count(sessions, "session")))?;
    each_session(&reader, |session| tell(&sentence(session, &agents)))
}

fn show(place: &Place, session_id: &SessionId, as_json: bool) -> Result<(), Failure> {
    let (store, recovered) = place.open()?;
    let reader = store.reader();
    let session = find(&reader, session_id)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let failed = |error: io::Error| Failure::of_output(&error);
    if !as_json {
        writeln!(out, "{}", sentence(&session, &recovered.agents)).map_err(failed)?;
    }
    let mut from_order = 0;
    loop {
        let events = reader.events(session_id, from_order, MAX_PAGE_ROWS).map_err(unread)?;
        let Some(last) = events.last() else { break };
        from_order = last.order.saturating_add(1);
        for event in &events {
            let line = if as_json { event_object(event) } else { event_sentence(event) };
            writeln!(out, "{line}").map_err(failed)?;
        }
    }
    out.flush().map_err(failed)
}

fn delete(place: &Place, session_id: &SessionId, is_sure: bool) -> Result<(), Failure> {
    let (mut store, _) = place.open()?;
    let session = find(&store.reader(), session_id)?;
    let events = count(session.events, "event");
    if !is_sure {
        return Err(Failure::new(
            format!(
                "deleting session {session_id} with {events} cannot be undone, so nothing was deleted yet"
            ),
            "To delete it, say the same with: --yes",
        ));
    }
    let who = Principal::local().name;
    let now_unix_us = now_unix_ms().saturating_mul(1000);
    store
        .delete_session(session_id, Some(&who), now_unix_us)
        .map_err(|error| undeleted(session_id, &error))?;
    tell(&format!(
        "Session {session_id} is deleted: {events}, what was answered in it, and its words in the audit \
         log. The log says so. Traces may stay on the disk until the room is used again."
    ))
}

fn find(reader: &Reader, session_id: &SessionId) -> Result<StoredSession, Failure> {
    let found = reader.session(session_id).map_err(unread)?;
    found.ok_or_else(|| undeleted(session_id, &DeleteError::NoSuchSession))
}

/// Goes through all sessions, a page at a time.
fn each_session(
    reader: &Reader,
    mut tell: impl FnMut(&StoredSession) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut skip = 0;
    loop {
        let page = reader.sessions(skip, MAX_PAGE_ROWS).map_err(unread)?;
        if page.is_empty() {
            return Ok(());
        }
        skip += page.len();
        page.iter().try_for_each(&mut tell)?;
    }
}

fn sentence(session: &StoredSession, agents: &[(u64, String)]) -> String {
    let state = match session.ended_unix_us {
        Some(ended) => format!("ended {}", moment(ended.div_euclid(1000))),
        None => format!("running, last event {}", moment(session.last_unix_us.div_euclid(1000))),
    };
    let agent = agent_of(session, agents).map_or("an agent without a name".into(), printable);
    format!(
        "Session {}, by {agent}: began {}, {state}, {}, {}.",
        session.session_id,
        moment(session.first_unix_us.div_euclid(1000)),
        count(session.events, "event"),
        count(session.bytes, "byte"),
    )
}

fn object(session: &StoredSession, agents: &[(u64, String)]) -> Value {
    json!({
        "session_id": session.session_id.as_str(),
        "agent": agent_of(session, agents),
        "first_event_at": moment(session.first_unix_us.div_euclid(1000)),
        "last_event_at": moment(session.last_unix_us.div_euclid(1000)),
        "ended_at": session.ended_unix_us.map(|ended| moment(ended.div_euclid(1000))),
        "events": session.events,
        "bytes": session.bytes,
    })
}

fn agent_of<'a>(session: &StoredSession, agents: &'a [(u64, String)]) -> Option<&'a str> {
    agents.iter().find(|(key, _)| *key == session.agent).map(|(_, name)| name.as_str())
}

/// An event as a person hears it.
fn event_sentence(event: &StoredEvent) -> String {
    let at = moment(event.unix_us.div_euclid(1000));
    let by_hub = if event.by_hub { ", by the hub" } else { "" };
    let urgent = if event.is_urgent { ", urgent" } else { "" };
    let Ok(value) = serde_json::from_slice::<Value>(&event.json) else {
        return format!("{at}{by_hub}{urgent}: an event that is not JSON.");
    };
    let kind = value["type"].as_str().unwrap_or("an event without a type");
    let kind = kind.strip_prefix("aaep:agent.").unwrap_or(kind).replace('.', " ");
    format!("{at}, {}{by_hub}{urgent}: {}", printable(&kind), told(&value))
}

/// What an event says to people.
fn told(event: &Value) -> String {
    let text = |field: &str| event[field].as_str();
    let mut told: Vec<_> = TOLD.iter().filter_map(|field| text(field)).map(printable).collect();
    let states = format!(
        "from {} to {}.",
        printable(text("from_state").unwrap_or("an unknown state")),
        printable(text("to_state").unwrap_or("an unknown state"))
    );
    if text("to_state").is_some() {
        told.insert(0, states.into());
    }
    if told.is_empty() { "no words; see --json.".to_owned() } else { sentences(&told) }
}

/// Texts one after the other, with a full stop where a text ends without one and another follows.
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

fn event_object(event: &StoredEvent) -> String {
    ascii_json_line(&json!({
        "order": event.order,
        "taken_in_at": moment(event.unix_us.div_euclid(1000)),
        "by_hub": event.by_hub,
        "is_urgent": event.is_urgent,
        "event": serde_json::from_slice::<Value>(&event.json).unwrap_or(Value::Null),
    }))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unread(error: ReadError) -> Failure {
    Failure::of_sentences(&error.to_string(), "More: aaep sessions --help")
}

fn undeleted(session_id: &SessionId, error: &DeleteError) -> Failure {
    match error {
        DeleteError::NoSuchSession => Failure::new(
            format!("there is no session {session_id} in this store"),
            "See the ids with: aaep sessions list",
        ),
        other => Failure::of_sentences(&other.to_string(), "More: aaep sessions --help"),
    }
}
