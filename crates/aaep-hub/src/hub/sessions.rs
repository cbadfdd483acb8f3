//! What is stored of sessions, for people who look back, and its deletion.

use std::collections::HashMap;

use aaep::{ReplyToken, SessionId};
use aaep_engine::{AgentTags, Input, SessionEnd};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::keeper::{Deletion, Effect};
use super::owner::Owner;
use super::session_agent::SessionAgent;
use super::settlement::{Answered, Settlement};
use super::{Hub, HubError};
use crate::access::Principal;
use crate::store::{
    CommitError, DeleteError, Deleted, EndedSession, MAX_PAGE_ROWS, ReadError, SessionCursor,
    Store, StoredEvent, StoredSession,
};

/// How many stored sessions are looked at for one page: those that may not be heard are passed over. The
/// next page goes on from there.
const MAX_LOOKED_AT: usize = 4096;

/// A page of the sessions that a principal may hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions. A page may have few or none, and still not be the last one.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page begins; none after the last one.
    pub next: Option<SessionCursor>,
}

/// A session that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its id.
    pub session_id: SessionId,
    /// The agent whose it is.
    pub agent_id: String,
    /// When it began, in microseconds since 1970 began.
    pub began_unix_us: i64,
    /// When its last event came.
    pub last_unix_us: i64,
    /// When it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_unix_us: Option<i64>,
    /// How many events it has.
    pub events: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// An answer that a question was given, as someone is told who looks back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GivenAnswer {
    /// Whether it was given by the one who looks back.
    pub(crate) by_you: bool,
    /// Whether a rule gave it, and not a person.
    pub(crate) automatic: bool,
    /// What was answered to a clarification; only for who answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<Value>,
}

impl Hub {
    /// The sessions that a principal may hear, running ones first, then the newest: a page of them, from
    /// the beginning or after the page before.
    pub async fn sessions(
        &self,
        principal: &Principal,
        after: Option<SessionCursor>,
        limit: usize,
    ) -> Result<SessionPage, HubError> {
        let limit = limit.clamp(1, MAX_PAGE_ROWS);
        let mut page = SessionPage { sessions: Vec::new(), next: after };
        for _ in 0..MAX_LOOKED_AT / MAX_PAGE_ROWS {
            let (reader, place) = (self.reader().clone(), page.next);
            let stored = blocking(move || reader.sessions_after(place, MAX_PAGE_ROWS)).await?;
            let is_end = stored.len() < MAX_PAGE_ROWS;
            let who = principal.clone();
            let looked_at = self.look(move |owner| owner.heard(&who, stored)).await?;
            for (place, info) in looked_at {
                if page.sessions.len() == limit {
                    return Ok(page);
                }
                page.next = Some(place);
                page.sessions.extend(info);
            }
            if is_end {
                page.next = None;
                break;
            }
        }
        Ok(page)
    }

    /// Events of a session that a principal may hear, from an order on. None if there is no such session.
    pub async fn session_events(
        &self,
        principal: &Principal,
        session_id: &SessionId,
        from_order: u64,
        limit: usize,
    ) -> Result<Option<Vec<StoredEvent>>, HubError> {
        if !self.may_hear_session(principal, session_id).await? {
            return Ok(None);
        }
        let (reader, id) = (self.reader().clone(), session_id.clone());
        let limit = limit.clamp(1, MAX_PAGE_ROWS);
        blocking(move || reader.events(&id, from_order, limit)).await.map(Some)
    }

    /// The answers that these questions were given, for someone who may hear their session. A question that
    /// nobody answered has none, and so has one of which it is not stored any more.
    pub(crate) async fn given_answers(
        &self,
        principal: &Principal,
        reply_tokens: Vec<ReplyToken>,
    ) -> Result<HashMap<ReplyToken, GivenAnswer>, HubError> {
        if reply_tokens.is_empty() {
            return Ok(HashMap::new());
        }
        let who = principal.clone();
        let you = self.look(move |owner| owner.numbers_of(&who)).await?;
        let reader = self.reader().clone();
        blocking(move || {
            let mut found = HashMap::new();
            for reply_token in reply_tokens {
                let stored = reader.settled(&reply_token)?.and_then(|it| it.resolution);
                let Some(stored) = stored else { continue };
                let Some(answered) = Answered::from_stored(&stored) else { continue };
                let by_you = you.contains(&answered.principal);
                let settlement = Settlement::from_stored(&reply_token, &stored);
                let response = settlement.and_then(|(_, it)| it.response).filter(|_| by_you);
                let automatic = answered.is_automatic;
                found.insert(reply_token, GivenAnswer { by_you, automatic, response });
            }
            Ok(found)
        })
        .await
    }

    /// Whether there is such a session, and the principal may hear it.
    async fn may_hear_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<bool, HubError> {
        let (reader, id) = (self.reader().clone(), session_id.clone());
        let Some(session) = blocking(move || reader.session(&id)).await? else { return Ok(false) };
        let who = principal.clone();
        self.look(move |owner| who.hearing().includes(&owner.agent_of(&session).tags)).await
    }

    /// Deletes a session that is over: its events, what was answered in it, and the words in the audit log,
    /// which says that it was deleted and by whom. Nobody deletes what they may not hear.
    pub async fn delete_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<Result<Deleted, DeleteError>, HubError> {
        if !self.may_hear_session(principal, session_id).await? {
            return Ok(Err(DeleteError::NoSuchSession));
        }
        let (who, id) = (principal.id.clone(), session_id.clone());
        let deleting = self.look(move |owner| owner.delete(who, id)).await?;
        deleting.await.map_err(|_| HubError::Stopped)
    }
}

impl Hub {
    /// Ends a session that runs, by hand: everyone hears so, and its questions are withdrawn. None if there is no
    /// such session that the principal may hear; otherwise whether it was running.
    pub async fn end_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<Option<bool>, HubError> {
        let (reader, id) = (self.reader().clone(), session_id.clone());
        let Some(session) = blocking(move || reader.session(&id)).await? else { return Ok(None) };
        let (who, session_id) = (principal.clone(), session_id.clone());
        if self.shared.status.what_is_wrong().is_some() {
            let ending = self.look(move |owner| {
                let may_hear = who.hearing().includes(&owner.agent_of(&session).tags);
                may_hear.then(|| owner.end_on_full_disk(who.id, session_id))
            });
            let Some(ending) = ending.await? else { return Ok(None) };
            let ended = ending.await.map_err(|_| HubError::Stopped)?;
            let ended = ended.map_err(|error| HubError::NotTaken { why: error.to_string() })?;
            return Ok(match ended {
                EndedSession::NoSuchSession => None,
                EndedSession::AlreadyEnded => Some(false),
                EndedSession::Ended => Some(true),
            });
        }
        self.call(move |owner| {
            let may_hear = who.hearing().includes(&owner.agent_of(&session).tags);
            may_hear.then(|| owner.end_by_hand(session_id))
        })
        .await
    }
}

impl Owner {
    fn end_by_hand(&mut self, session_id: SessionId) -> bool {
        let is_known = self.engine.principal_of(&session_id).is_some();
        if !is_known || self.engine.has_ended(&session_id) {
            return false;
        }
        tracing::info!(session_id = %aaep::printable(session_id.as_str()), "A session is ended by hand.");
        self.handle(Input::EndSession { session_id, why: SessionEnd::ByHand }, None);
        true
    }

    /// Ends the sessions of which nothing was heard for long, if their agent is not there: no socket on which it spoke in
    /// this session, and nobody who waits for instructions under a name that is heard in it. Other agents of the same
    /// principal do not count.
    pub(super) fn end_silent_sessions(&mut self) {
        let after_us = self.guard.limits().silent_session_ms.saturating_mul(1000);
        if after_us == 0 {
            return;
        }
        let now = self.clock.now();
        for session_id in self.engine.silent_sessions(now, after_us) {
            let Some(principal) = self.engine.principal_of(&session_id) else { continue };
            let is_connected = self.connections.values().any(|it| it.is_agent_of(&session_id));
            let now_us = now.monotonic_us;
            let mut speakers = self.engine.speakers(&session_id);
            let is_there = speakers.any(|it| self.posts.is_kept_by(it, principal, now_us));
            drop(speakers);
            if !is_connected && !is_there {
                let why = SessionEnd::Silent { after_us };
                self.handle(Input::EndSession { session_id, why }, None);
            }
        }
    }
}

/// A session that runs, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    /// The id of the principal.
    pub(crate) principal: String,
    /// The name of the agent.
    pub(crate) agent: String,
    pub(crate) session_id: SessionId,
}

impl Hub {
    /// The sessions that run, of the principals that are meant.
    pub(crate) async fn running(
        &self,
        is_meant: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<Running>, HubError> {
        self.look(move |owner| {
            let running = owner.engine.running_sessions();
            let running = running.filter_map(|(session_id, principal)| {
                let principal = owner.principals.name(principal)?.to_owned();
                let agent = owner.engine.speakers(session_id).next()?.to_owned();
                is_meant(&principal).then(|| Running {
                    principal,
                    agent,
                    session_id: session_id.clone(),
                })
            });
            running.collect()
        })
        .await
    }
}

impl Owner {
    /// Stored sessions with their places; without what a principal may not hear.
    fn heard(
        &self,
        principal: &Principal,
        stored: Vec<StoredSession>,
    ) -> Vec<(SessionCursor, Option<SessionInfo>)> {
        let hearing = principal.hearing();
        let looked_at = stored.into_iter().map(|session| {
            let place = SessionCursor::after(&session);
            let (info, tags) = self.info(session);
            (place, Some(info).filter(|_| hearing.includes(&tags)))
        });
        looked_at.collect()
    }

    /// A stored session as people see it, and what decides who may.
    fn info(&self, session: StoredSession) -> (SessionInfo, AgentTags) {
        let SessionAgent { agent_id, tags } = self.agent_of(&session);
        let info = SessionInfo {
            agent_id,
            session_id: session.session_id,
            began_unix_us: session.first_unix_us,
            last_unix_us: session.last_unix_us,
            ended_unix_us: session.ended_unix_us,
            events: session.events,
            bytes: session.bytes,
        };
        (info, tags)
    }

    /// The engine lets go of it first, so that nobody can hear it again; the store says what came of it.
    fn delete(
        &mut self,
        who: String,
        session_id: SessionId,
    ) -> oneshot::Receiver<Result<Deleted, DeleteError>> {
        let (sender, receiver) = oneshot::channel();
        let is_known = self.engine.principal_of(&session_id).is_some();
        if is_known && !self.engine.has_ended(&session_id) {
            let _ = sender.send(Err(DeleteError::StillRunning));
            return receiver;
        }
        self.handle(Input::DeleteSession { session_id: session_id.clone() }, None);
        let now_unix_us = self.clock.now().unix_us;
        let id = session_id.clone();
        let delete = move |store: &mut Store| {
            let deleted = store.delete_session(&session_id, Some(&who), now_unix_us);
            let gone = deleted.is_ok().then_some(session_id);
            // Whoever asked and no longer waits does not need to know.
            let _ = sender.send(deleted);
            gone
        };
        if self.status.what_is_wrong().is_none() {
            self.batch.effects.push(Effect::Store(Box::new(move |store| drop(delete(store)))));
        } else {
            self.do_past_all(id, Box::new(delete));
        }
        receiver
    }

    /// Ends a session on a disk that is full: in the store, which has a little room for that; what people hear of it
    /// waits for more.
    fn end_on_full_disk(
        &mut self,
        who: String,
        session_id: SessionId,
    ) -> oneshot::Receiver<Result<EndedSession, CommitError>> {
        let (sender, receiver) = oneshot::channel();
        self.end_by_hand(session_id.clone());
        let now_unix_us = self.clock.now().unix_us;
        let id = session_id.clone();
        let end = move |store: &mut Store| {
            // Whoever asked and no longer waits does not need to know.
            let _ = sender.send(store.end_session(&session_id, Some(&who), now_unix_us));
            None
        };
        self.do_past_all(id, Box::new(end));
        receiver
    }

    /// Does something with the store, past all that waits for room. If too many wait for that, whoever asked is told
    /// that it was not done.
    fn do_past_all(&mut self, session_id: SessionId, work: Deletion) {
        if self.delete.try_send(work).is_ok() {
            // The keeper sees it with the next batch at the latest, also if there is room again by now.
            self.batch.effects.push(Effect::Deleted(session_id));
        }
    }
}

/// Reads from the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, HubError> {
    let read = tokio::task::spawn_blocking(read).await.map_err(|_| HubError::Stopped)?;
    read.map_err(|error| HubError::NotStored { why: Some(error.to_string()) })
}
