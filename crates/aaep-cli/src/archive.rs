//! Where the sessions are that commands look back at: at a hub that runs, or in a store that no hub uses.
//!
//! A hub that runs is asked; only if none answers is its folder opened. Both give the same rows.

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
use crate::console::{self, Failure, name_of};
use crate::http::{Answer, Client, NoAnswer, Request};
use crate::hubs::HubFlags;
use crate::keys::now_unix_ms;

/// How long the hub may take for a page.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where to look.
#[derive(Debug, Args)]
pub(crate) struct Whereabouts {
    /// Look into this folder instead of asking the hub. No hub may be using it meanwhile.
    #[arg(long = "store", value_name = "DIR", env = "AAEP_STORE")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    hub: HubFlags,
}

/// The sessions.
pub(crate) enum Archive {
    /// Those of a hub that runs.
    Hub(Client),
    /// Those in a folder.
    Folder { folder: PathBuf, store: Box<Store>, agents: Vec<(u64, String)> },
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) agent: Option<String>,
    pub(crate) first_unix_us: i64,
    pub(crate) last_unix_us: i64,
    pub(crate) ended_unix_us: Option<i64>,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) order: u64,
    pub(crate) unix_us: i64,
    pub(crate) by_hub: bool,
    pub(crate) is_urgent: bool,
    /// The event; none if what is stored is no JSON.
    pub(crate) json: Option<Value>,
    /// Who answered, beside an event that tells how a question was settled. Only a hub tells it.
    pub(crate) answer: Option<GivenAnswer>,
}

/// Who answered a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GivenAnswer {
    pub(crate) by_you: bool,
    pub(crate) is_automatic: bool,
    /// What was answered, if it was you.
    pub(crate) response: Option<Value>,
}

/// Where everything is that a hub has stored.
pub(crate) enum Source {
    /// At a hub that runs.
    Hub(Client),
    /// In a folder that no hub uses.
    Store(Box<Store>),
}

impl Whereabouts {
    /// The hub that runs, or else the store. A folder that a hub uses is that of the hub that is asked.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        let opened = |folder: &Path| crate::store::open(folder);
        let to_source = |(store, _): (Store, _)| Source::Store(Box::new(store));
        let client = self.hub.person_client()?;
        if let Some(folder) = &self.folder {
            return match opened(folder)? {
                Err(OpenError::InUse { .. }) => {
                    let origin = client.origin();
                    console::say(&format!(
                        "A hub uses {}, so the hub at {} is asked.",
                        name_of(folder),
                        printable(&origin)
                    ));
                    Ok(Source::Hub(client))
                }
                opened => opened.map(to_source).map_err(|error| crate::store::failure(&error)),
            };
        }
        let request = Request { method: "GET", path: "/healthz", body: None, timeout: TIMEOUT };
        match client.send(&request) {
            Err(error @ NoAnswer::NotReached(_)) => {
                let folder = crate::serve::state_folder()?;
                if !Store::is_in(&folder) {
                    return Err(agent::not_answered(&client, &error));
                }
                let opened = opened(&folder)?;
                opened.map(to_source).map_err(|error| crate::store::failure(&error))
            }
            _ => Ok(Source::Hub(client)),
        }
    }

    /// Finds the hub, or else the folder.
    pub(crate) fn open(&self) -> Result<Archive, Failure> {
        if let Some(folder) = &self.folder {
            return Archive::in_folder(folder.clone());
        }
        let client = self.hub.person_client()?;
        let archive = Archive::Hub(client.clone());
        match archive.page("/aaep/v1/sessions?limit=1") {
            Ok(answer) if answer.is_success() => Ok(archive),
            Ok(answer) => Err(agent::refused(&client, &answer)),
            Err(NoAnswer::NotReached(error)) => {
                let folder = crate::serve::state_folder()?;
                if Store::is_in(&folder) {
                    return Archive::in_folder(folder);
                }
                Err(agent::not_answered(&client, &NoAnswer::NotReached(error)))
            }
            Err(error) => Err(agent::not_answered(&client, &error)),
        }
    }
}

impl Archive {
    fn in_folder(folder: PathBuf) -> Result<Self, Failure> {
        let opened = crate::store::open(&folder)?;
        let (store, recovered) = opened.map_err(|error| crate::store::failure(&error))?;
        Ok(Archive::Folder { folder, store: Box::new(store), agents: recovered.agents })
    }

    /// What it is called, after "in" or "at".
    pub(crate) fn name(&self) -> String {
        match self {
            Archive::Hub(client) => format!("at {}", printable(&client.origin())),
            Archive::Folder { folder, .. } => format!("in {}", name_of(folder)),
        }
    }

    /// Goes through all sessions: those that run, then those that ended, the newest first.
    pub(crate) fn each_session(
        &self,
        mut tell: impl FnMut(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut after = None;
        loop {
            let (page, next) = self.sessions(after.as_deref())?;
            page.iter().try_for_each(&mut tell)?;
            // A page that leads nowhere new is the end.
            if next.is_none() || next == after {
                return Ok(());
            }
            after = next;
        }
    }

    /// One session.
    pub(crate) fn session(&self, id: &SessionId) -> Result<Session, Failure> {
        let mut found = None;
        self.each_session(|session| {
            if session.id == id.as_str() {
                found = Some(session.clone());
            }
            Ok(())
        })?;
        found.ok_or_else(|| no_such_session(id))
    }

    /// A page of sessions after a place, and the place of the next one.
    fn sessions(&self, after: Option<&str>) -> Result<(Vec<Session>, Option<String>), Failure> {
        match self {
            Archive::Folder { store, agents, .. } => {
                let place = after.and_then(|it| it.parse().ok());
                let page = store.reader().sessions_after(place, MAX_PAGE_ROWS).map_err(unread)?;
                let next = page.last().map(|row| SessionCursor::after(row).to_string());
                let name = |key: u64| agents.iter().find(|it| it.0 == key).map(|it| it.1.clone());
                let rows = page.into_iter().map(|row| Session {
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
            Archive::Hub(client) => {
                let place = after.map(|it| format!("&after={it}")).unwrap_or_default();
                let path = format!("/aaep/v1/sessions?limit={MAX_PAGE_ROWS}{place}");
                let body = body_of(client, self.page(&path))?;
                sessions_of(&body).ok_or_else(|| agent::strange(client))
            }
        }
    }

    /// A page of the events of a session, from an order on.
    pub(crate) fn events(&self, id: &SessionId, from_order: u64) -> Result<Vec<Event>, Failure> {
        match self {
            Archive::Folder { store, .. } => stored_events(&store.reader(), id, from_order),
            Archive::Hub(client) => {
                let rows = self.event_rows(client, id, from_order)?;
                rows.iter()
                    .map(event_of)
                    .collect::<Option<_>>()
                    .ok_or_else(|| agent::strange(client))
            }
        }
    }

    /// Deletes a session that is over.
    pub(crate) fn delete(&mut self, id: &SessionId) -> Result<(), Failure> {
        match self {
            Archive::Folder { store, .. } => {
                let who = Principal::person().id;
                let now_unix_us = now_unix_ms().saturating_mul(1000);
                let deleted = store.delete_session(id, Some(&who), now_unix_us);
                deleted.map(|_| ()).map_err(|error| match error {
                    DeleteError::NoSuchSession => no_such_session(id),
                    other => {
                        Failure::of_sentences(&other.to_string(), "More: aaep sessions --help")
                    }
                })
            }
            Archive::Hub(client) => {
                let path = format!("/aaep/v1/sessions/{id}");
                let request =
                    Request { method: "DELETE", path: &path, body: None, timeout: TIMEOUT };
                let answer = client.send(&request);
                let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
                if answer.is_success() { Ok(()) } else { Err(agent::refused(client, &answer)) }
            }
        }
    }

    /// Ends a session that runs.
    pub(crate) fn end(&mut self, id: &SessionId) -> Result<(), Failure> {
        let client = match self {
            Archive::Hub(client) => client,
            Archive::Folder { store, .. } => {
                let who = Principal::person().id;
                let now_unix_us = now_unix_ms().saturating_mul(1000);
                let ended = store.end_session(id, Some(&who), now_unix_us);
                let help = "More: aaep sessions --help";
                return match ended {
                    Ok(EndedSession::Ended) => Ok(()),
                    Ok(EndedSession::NoSuchSession) => Err(no_such_session(id)),
                    Ok(EndedSession::AlreadyEnded) => {
                        let why = "The session has ended already. Nothing was changed.";
                        Err(Failure::of_sentences(why, help))
                    }
                    Err(error) => Err(Failure::of_sentences(&error.to_string(), help)),
                };
            }
        };
        let path = format!("/aaep/v1/sessions/{id}/end");
        let request = Request { method: "POST", path: &path, body: None, timeout: TIMEOUT };
        let answer = client.send(&request);
        let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
        if answer.is_success() { Ok(()) } else { Err(agent::refused(client, &answer)) }
    }

    fn page(&self, path: &str) -> Result<Answer, NoAnswer> {
        let Archive::Hub(client) = self else {
            return Err(NoAnswer::NotHttp("this is no hub"));
        };
        client.send(&Request { method: "GET", path, body: None, timeout: TIMEOUT })
    }

    /// A page of events. If they are so large that a page is more than is taken, fewer of them.
    fn event_rows(
        &self,
        client: &Client,
        id: &SessionId,
        from_order: u64,
    ) -> Result<Vec<Value>, Failure> {
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

/// The name of the agent in what is stored about a session.
fn agent_in(about: &[u8]) -> Option<String> {
    let about: Value = serde_json::from_slice(about).ok()?;
    about.get("agent_id")?.as_str().map(str::to_owned)
}

fn rows_of(
    client: &Client,
    answer: Result<Answer, NoAnswer>,
    name: &str,
) -> Result<Vec<Value>, Failure> {
    let body = body_of(client, answer)?;
    let rows = body.get(name).and_then(|it| it.as_array().cloned());
    rows.ok_or_else(|| agent::strange(client))
}

fn body_of(client: &Client, answer: Result<Answer, NoAnswer>) -> Result<Value, Failure> {
    let answer = answer.map_err(|error| agent::not_answered(client, &error))?;
    if !answer.is_success() {
        return Err(agent::refused(client, &answer));
    }
    answer.json().ok_or_else(|| agent::strange(client))
}

/// The sessions of a page, and the place of the next one.
fn sessions_of(body: &Value) -> Option<(Vec<Session>, Option<String>)> {
    let rows = body.get("sessions")?.as_array()?;
    let sessions = rows.iter().map(session_of).collect::<Option<_>>()?;
    let next = match body.get("next") {
        Some(next) => {
            let next = next.as_str()?;
            // It goes into an address as it is.
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            Some(next.to_owned()).filter(|it| it.bytes().all(is_plain))
        }
        None => None,
    };
    Some((sessions, next))
}

fn stored_events(reader: &Reader, id: &SessionId, from_order: u64) -> Result<Vec<Event>, Failure> {
    let page = reader.events(id, from_order, MAX_PAGE_ROWS).map_err(unread)?;
    let rows = page.into_iter().map(|row| Event {
        order: row.order,
        unix_us: row.unix_us,
        by_hub: row.by_hub,
        is_urgent: row.is_urgent,
        json: serde_json::from_slice(&row.json).ok(),
        answer: None,
    });
    Ok(rows.collect())
}

fn session_of(row: &Value) -> Option<Session> {
    Some(Session {
        id: row.get("session_id")?.as_str()?.to_owned(),
        agent: row.get("agent_id")?.as_str().map(str::to_owned),
        first_unix_us: row.get("began_unix_us")?.as_i64()?,
        last_unix_us: row.get("last_unix_us")?.as_i64()?,
        ended_unix_us: row.get("ended_unix_us").and_then(Value::as_i64),
        events: row.get("events")?.as_u64()?,
        bytes: row.get("bytes")?.as_u64()?,
    })
}

fn event_of(row: &Value) -> Option<Event> {
    Some(Event {
        order: row.get("order")?.as_u64()?,
        unix_us: row.get("taken_in_unix_us")?.as_i64()?,
        by_hub: row.get("by_hub")?.as_bool()?,
        is_urgent: row.get("is_urgent")?.as_bool()?,
        json: row.get("event").filter(|event| !event.is_null()).cloned(),
        answer: row.get("answer").and_then(answer_of),
    })
}

fn answer_of(answer: &Value) -> Option<GivenAnswer> {
    Some(GivenAnswer {
        by_you: answer.get("by_you")?.as_bool()?,
        is_automatic: answer.get("automatic")?.as_bool()?,
        response: answer.get("response").cloned(),
    })
}

fn no_such_session(id: &SessionId) -> Failure {
    Failure::new(format!("there is no session {id} here"), "See the ids with: aaep sessions list")
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unread(error: ReadError) -> Failure {
    Failure::of_sentences(&error.to_string(), "More: aaep sessions --help")
}
