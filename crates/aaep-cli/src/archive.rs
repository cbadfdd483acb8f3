//! The archive of past sessions: a running hub, or a store that no hub uses.
//!
//! A running hub is asked first; its folder is opened only if no hub answers. Both give the same rows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep::{SessionId, printable};
use aaep_hub::access::Principal;
use aaep_hub::store::{
    DeleteError, EndedSession, MAX_PAGE_ROWS, OpenError, ReadError, Reader, SessionCursor, Store,
};
use clap::Args;
use serde_json::Value;

use crate::agent;
use crate::console::{self, CommandFailure, name_of};
use crate::english::archiving;
use crate::http::{HubAnswer, HubClient, HubRequest, NoAnswer};
use crate::hubs::HubFlags;
use crate::keys::now_unix_ms;

/// How long the hub may take to answer with a page.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where to look.
#[derive(Debug, Args)]
pub(crate) struct ArchiveFlags {
    /// Read this folder instead of asking the hub. No hub may use it at the same time.
    #[arg(long = "store", value_name = "DIR", env = "AAEP_STORE")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    hub: HubFlags,
}

/// The sessions that can be looked at.
pub(crate) enum SessionArchive {
    /// The sessions of a running hub.
    Hub(HubClient),
    /// The sessions in a folder.
    Folder { folder: PathBuf, store: Box<Store>, agents: Vec<(u64, String)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchivedSession {
    pub(crate) id: String,
    pub(crate) agent: Option<String>,
    pub(crate) first_unix_us: i64,
    pub(crate) last_unix_us: i64,
    pub(crate) ended_unix_us: Option<i64>,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArchivedEvent {
    pub(crate) order: u64,
    pub(crate) unix_us: i64,
    pub(crate) by_hub: bool,
    /// The event; `None` if the stored text is not valid JSON.
    pub(crate) json: Option<Value>,
    /// Who answered, for an event that tells how an ask was settled. Only a hub knows this.
    pub(crate) answer: Option<ArchivedAnswer>,
}

/// Who answered a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArchivedAnswer {
    pub(crate) by_you: bool,
    pub(crate) is_automatic: bool,
    /// The answer, if you gave it.
    pub(crate) response: Option<Value>,
}

/// Where a hub's stored data can be read.
pub(crate) enum ArchiveSource {
    /// A running hub.
    Hub(HubClient),
    /// A folder that no hub uses.
    Store(Box<Store>),
}

impl ArchiveFlags {
    /// The running hub, or else the store. If a hub uses the given folder, that hub is asked instead.
    pub(crate) fn source(&self) -> Result<ArchiveSource, CommandFailure> {
        let opened = |folder: &Path| crate::store::open(folder);
        let to_source = |(store, _): (Store, _)| ArchiveSource::Store(Box::new(store));
        let client = self.hub.person_client()?;
        if let Some(folder) = &self.folder {
            return match opened(folder)? {
                Err(OpenError::InUse { .. }) => {
                    let origin = client.origin();
                    let hub = printable(&origin);
                    console::say(&archiving::hub_is_asked(&name_of(folder), &hub));
                    Ok(ArchiveSource::Hub(client))
                }
                opened => opened.map(to_source).map_err(|error| crate::store::failure(&error)),
            };
        }
        let request = HubRequest { method: "GET", path: "/healthz", body: None, timeout: TIMEOUT };
        match client.send(&request) {
            Err(error @ NoAnswer::NotReached(_)) => {
                let folder = crate::folders::state_folder()?;
                if !Store::is_in(&folder) {
                    return Err(agent::not_answered(&client, &error));
                }
                let opened = opened(&folder)?;
                opened.map(to_source).map_err(|error| crate::store::failure(&error))
            }
            _ => Ok(ArchiveSource::Hub(client)),
        }
    }

    /// Opens the running hub, or else the folder.
    pub(crate) fn open(&self) -> Result<SessionArchive, CommandFailure> {
        if let Some(folder) = &self.folder {
            return SessionArchive::in_folder(folder.clone());
        }
        let client = self.hub.person_client()?;
        let archive = SessionArchive::Hub(client.clone());
        match archive.page("/aaep/v1/sessions?limit=1") {
            Ok(answer) if answer.is_success() => Ok(archive),
            Ok(answer) => Err(agent::refused(&client, &answer)),
            Err(NoAnswer::NotReached(error)) => {
                let folder = crate::folders::state_folder()?;
                if Store::is_in(&folder) {
                    return SessionArchive::in_folder(folder);
                }
                Err(agent::not_answered(&client, &NoAnswer::NotReached(error)))
            }
            Err(error) => Err(agent::not_answered(&client, &error)),
        }
    }
}

impl SessionArchive {
    fn in_folder(folder: PathBuf) -> Result<Self, CommandFailure> {
        let opened = crate::store::open(&folder)?;
        let (store, recovered) = opened.map_err(|error| crate::store::failure(&error))?;
        Ok(SessionArchive::Folder { folder, store: Box::new(store), agents: recovered.agents })
    }

    /// The archive's name with its preposition, such as `at http://127.0.0.1:7117`.
    pub(crate) fn name(&self) -> String {
        match self {
            SessionArchive::Hub(client) => archiving::at_hub(&printable(&client.origin())),
            SessionArchive::Folder { folder, .. } => archiving::in_folder(&name_of(folder)),
        }
    }

    /// Visits all sessions: running ones first, then ended ones, newest first.
    pub(crate) fn each_session(
        &self,
        mut tell: impl FnMut(&ArchivedSession) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let mut after = None;
        loop {
            let (page, next) = self.sessions(after.as_deref())?;
            page.iter().try_for_each(&mut tell)?;
            // Stop at a page whose cursor does not advance.
            if next.is_none() || next == after {
                return Ok(());
            }
            after = next;
        }
    }

    pub(crate) fn session(&self, id: &SessionId) -> Result<ArchivedSession, CommandFailure> {
        let mut found = None;
        self.each_session(|session| {
            if session.id == id.as_str() {
                found = Some(session.clone());
            }
            Ok(())
        })?;
        found.ok_or_else(|| no_such_session(id))
    }

    /// A page of sessions after a cursor, and the cursor of the next page.
    fn sessions(
        &self,
        after: Option<&str>,
    ) -> Result<(Vec<ArchivedSession>, Option<String>), CommandFailure> {
        match self {
            SessionArchive::Folder { store, agents, .. } => {
                let place = after.and_then(|it| it.parse().ok());
                let page = store.reader().sessions_after(place, MAX_PAGE_ROWS).map_err(unread)?;
                let next = page.last().map(|row| SessionCursor::after(row).to_string());
                let name = |key: u64| agents.iter().find(|it| it.0 == key).map(|it| it.1.clone());
                let rows = page.into_iter().map(|row| ArchivedSession {
                    id: row.session_id.to_string(),
                    agent: agent_in(&row.about).or_else(|| name(row.agent)),
                    first_unix_us: row.first_unix_us,
                    last_unix_us: row.last_unix_us,
                    ended_unix_us: row.ended_unix_us,
                    events: row.events,
                    bytes: row.bytes,
                });
                Ok((rows.collect(), next))
            }
            SessionArchive::Hub(client) => {
                let place = after.map(|it| format!("&after={it}")).unwrap_or_default();
                let path = format!("/aaep/v1/sessions?limit={MAX_PAGE_ROWS}{place}");
                let body = body_of(client, self.page(&path))?;
                sessions_of(&body).ok_or_else(|| agent::strange(client))
            }
        }
    }

    /// A page of the events of a session, from this order on.
    pub(crate) fn events(
        &self,
        id: &SessionId,
        from_order: u64,
    ) -> Result<Vec<ArchivedEvent>, CommandFailure> {
        match self {
            SessionArchive::Folder { store, .. } => stored_events(&store.reader(), id, from_order),
            SessionArchive::Hub(client) => {
                let rows = self.event_rows(client, id, from_order)?;
                rows.iter()
                    .map(event_of)
                    .collect::<Option<_>>()
                    .ok_or_else(|| agent::strange(client))
            }
        }
    }

    /// Deletes a session that has ended.
    pub(crate) fn delete(&mut self, id: &SessionId) -> Result<(), CommandFailure> {
        match self {
            SessionArchive::Folder { store, .. } => {
                let who = Principal::person().id;
                let now_unix_us = now_unix_ms().saturating_mul(1000);
                let deleted = store.delete_session(id, Some(&who), now_unix_us);
                deleted.map(|_| ()).map_err(|error| match error {
                    DeleteError::NoSuchSession => no_such_session(id),
                    other => failure(&other),
                })
            }
            SessionArchive::Hub(client) => {
                let path = format!("/aaep/v1/sessions/{id}");
                let request =
                    HubRequest { method: "DELETE", path: &path, body: None, timeout: TIMEOUT };
                let answer = client.send(&request);
                let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
                if answer.is_success() { Ok(()) } else { Err(agent::refused(client, &answer)) }
            }
        }
    }

    /// Ends a running session.
    pub(crate) fn end(&mut self, id: &SessionId) -> Result<(), CommandFailure> {
        let client = match self {
            SessionArchive::Hub(client) => client,
            SessionArchive::Folder { store, .. } => {
                let who = Principal::person().id;
                let now_unix_us = now_unix_ms().saturating_mul(1000);
                let ended = store.end_session(id, Some(&who), now_unix_us);
                return match ended {
                    Ok(EndedSession::Ended) => Ok(()),
                    Ok(EndedSession::NoSuchSession) => Err(no_such_session(id)),
                    Ok(EndedSession::AlreadyEnded) => Err(archiving::HAS_ENDED.into()),
                    Err(error) => Err(failure(&error)),
                };
            }
        };
        let path = format!("/aaep/v1/sessions/{id}/end");
        let request = HubRequest { method: "POST", path: &path, body: None, timeout: TIMEOUT };
        let answer = client.send(&request);
        let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
        if answer.is_success() { Ok(()) } else { Err(agent::refused(client, &answer)) }
    }

    fn page(&self, path: &str) -> Result<HubAnswer, NoAnswer> {
        let SessionArchive::Hub(client) = self else {
            return Err(NoAnswer::NotHttp(archiving::NOT_A_HUB));
        };
        client.send(&HubRequest { method: "GET", path, body: None, timeout: TIMEOUT })
    }

    /// A page of events. If a page exceeds the size limit, asks again for fewer events.
    fn event_rows(
        &self,
        client: &HubClient,
        id: &SessionId,
        from_order: u64,
    ) -> Result<Vec<Value>, CommandFailure> {
        let mut limit = MAX_PAGE_ROWS;
        loop {
            let path =
                format!("/aaep/v1/sessions/{id}/events?from_order={from_order}&limit={limit}");
            match self.page(&path) {
                Err(NoAnswer::NotHttp(_)) if limit > 1 => limit = (limit / 8).max(1),
                answer => return rows_of(client, answer, "events"),
            }
        }
    }
}

/// The agent's name in the data stored about a session.
fn agent_in(about: &[u8]) -> Option<String> {
    let about: Value = serde_json::from_slice(about).ok()?;
    about.get("agent_id")?.as_str().map(str::to_owned)
}

fn rows_of(
    client: &HubClient,
    answer: Result<HubAnswer, NoAnswer>,
    name: &str,
) -> Result<Vec<Value>, CommandFailure> {
    let body = body_of(client, answer)?;
    let rows = body.get(name).and_then(|it| it.as_array().cloned());
    rows.ok_or_else(|| agent::strange(client))
}

fn body_of(
    client: &HubClient,
    answer: Result<HubAnswer, NoAnswer>,
) -> Result<Value, CommandFailure> {
    let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
    if !answer.is_success() {
        return Err(agent::refused(client, &answer));
    }
    answer.json().ok_or_else(|| agent::strange(client))
}

/// The sessions of a page, and the cursor of the next page.
fn sessions_of(body: &Value) -> Option<(Vec<ArchivedSession>, Option<String>)> {
    let rows = body.get("sessions")?.as_array()?;
    let sessions = rows.iter().map(session_of).collect::<Option<_>>()?;
    let next = match body.get("next") {
        Some(next) => {
            let next = next.as_str()?;
            // It becomes part of a URL without escaping.
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            Some(next.to_owned()).filter(|it| it.bytes().all(is_plain))
        }
        None => None,
    };
    Some((sessions, next))
}

fn stored_events(
    reader: &Reader,
    id: &SessionId,
    from_order: u64,
) -> Result<Vec<ArchivedEvent>, CommandFailure> {
    let page = reader.events(id, from_order, MAX_PAGE_ROWS).map_err(unread)?;
    let rows = page.into_iter().map(|row| ArchivedEvent {
        order: row.order,
        unix_us: row.unix_us,
        by_hub: row.by_hub,
        json: serde_json::from_slice(&row.json).ok(),
        answer: None,
    });
    Ok(rows.collect())
}

fn session_of(row: &Value) -> Option<ArchivedSession> {
    Some(ArchivedSession {
        id: row.get("session_id")?.as_str()?.to_owned(),
        agent: row.get("agent_id")?.as_str().map(str::to_owned),
        first_unix_us: row.get("began_unix_us")?.as_i64()?,
        last_unix_us: row.get("last_unix_us")?.as_i64()?,
        ended_unix_us: row.get("ended_unix_us").and_then(Value::as_i64),
        events: row.get("events")?.as_u64()?,
        bytes: row.get("bytes")?.as_u64()?,
    })
}

fn event_of(row: &Value) -> Option<ArchivedEvent> {
    Some(ArchivedEvent {
        order: row.get("order")?.as_u64()?,
        unix_us: row.get("taken_in_unix_us")?.as_i64()?,
        by_hub: row.get("by_hub")?.as_bool()?,
        json: row.get("event").filter(|event| !event.is_null()).cloned(),
        answer: row.get("answer").and_then(answer_of),
    })
}

fn answer_of(answer: &Value) -> Option<ArchivedAnswer> {
    Some(ArchivedAnswer {
        by_you: answer.get("by_you")?.as_bool()?,
        is_automatic: answer.get("automatic")?.as_bool()?,
        response: answer.get("response").cloned(),
    })
}

fn no_such_session(id: &SessionId) -> CommandFailure {
    archiving::no_such_session(id).into()
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unread(error: ReadError) -> CommandFailure {
    failure(&error)
}

/// Turns an error of the store into a failure. Its message usually contains the next step.
fn failure(error: &impl ToString) -> CommandFailure {
    CommandFailure::of_sentences(&error.to_string(), archiving::MORE_HELP)
}
