//! Stored sessions: listing, reading, ending and deleting them.

use std::collections::HashMap;
use std::sync::mpsc::TrySendError;

use aaep::reply::Response;
use aaep::{ReplyToken, SessionId};
use aaep_engine::{AgentTags, EngineInput, SessionEnd};
use serde::Serialize;
use tokio::sync::oneshot;

use super::keeper::{DeferredEffect, DeletionWork};
use super::owner::EngineOwner;
use super::session_agent::SessionAgent;
use super::settlement::{Settlement, stored_answerer};
use super::{Hub, HubError};
use crate::access::Principal;
use crate::store::{
    CommitError, DeleteError, Deleted, EndedSession, MAX_PAGE_ROWS, ReadError, SessionCursor,
    Store, StoredEvent, StoredSession,
};

/// How many stored sessions are examined for one page, because those that the principal may not hear are
/// skipped. The next page continues from there.
const MAX_LOOKED_AT: usize = 4096;

/// A page of the sessions that a principal may hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions. A page may have few or none and still not be the last one.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<SessionCursor>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its id.
    pub session_id: SessionId,
    /// The agent that it belongs to.
    pub agent_id: String,
    /// When it began, in microseconds since 1970.
    pub began_unix_us: i64,
    /// When its last event came.
    pub last_unix_us: i64,
    /// When it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_unix_us: Option<i64>,
    /// How many events it has.
    pub events: u64,
    /// How many bytes the events have.
    pub bytes: u64,
}

/// The answer to an ask, as shown in the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GivenAnswer {
    /// Whether the requester gave the answer.
    pub(crate) by_you: bool,
    /// Whether a rule gave the answer instead of a person.
    pub(crate) automatic: bool,
    /// The response to a clarification; only for the person who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<Response>,
}

impl Hub {
    /// Lists the sessions that a principal may hear, running ones first, then the newest: one page, from the
    /// beginning or after the previous page.
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
            let looked_at = self.look_up(move |owner| owner.visible_sessions(&who, stored)).await?;
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

    /// Returns events of a session that the principal may hear, starting at an order. `None` if there is no
    /// such session.
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

    /// Returns the answers to these asks, for a principal that may hear their session. Asks that nobody
    /// answered, or whose answer is no longer stored, are missing.
    pub(crate) async fn given_answers(
        &self,
        principal: &Principal,
        reply_tokens: Vec<ReplyToken>,
    ) -> Result<HashMap<ReplyToken, GivenAnswer>, HubError> {
        if reply_tokens.is_empty() {
            return Ok(HashMap::new());
        }
        let who = principal.clone();
        let you = self.look_up(move |owner| owner.numbers_of_person(&who)).await?;
        let reader = self.reader().clone();
        blocking(move || {
            let mut found = HashMap::new();
            for reply_token in reply_tokens {
                let stored = reader.settled(&reply_token)?.and_then(|it| it.resolution);
                let Some(stored) = stored else { continue };
                let Some(answered) = stored_answerer(&stored) else { continue };
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

    /// Whether there is such a session and the principal may hear it.
    async fn may_hear_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<bool, HubError> {
        let (reader, id) = (self.reader().clone(), session_id.clone());
        let Some(session) = blocking(move || reader.session(&id)).await? else { return Ok(false) };
        let who = principal.clone();
        self.look_up(move |owner| who.hearing().includes(&owner.agent_of(&session).tags)).await
    }

    /// Deletes an ended session: its events, its answers, and its words in the audit log, which records the
    /// deletion and the principal behind it. A principal cannot delete a session that it may not hear.
    pub async fn delete_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<Result<Deleted, DeleteError>, HubError> {
        if !self.may_hear_session(principal, session_id).await? {
            return Ok(Err(DeleteError::NoSuchSession));
        }
        let (who, id) = (principal.id.clone(), session_id.clone());
        let deleting = self.look_up(move |owner| owner.delete(who, id)).await??;
        deleting.await.map_err(|_| HubError::Stopped)
    }
}

impl Hub {
    /// Ends a running session by hand: subscribers hear that, and its asks are withdrawn. Returns `None` if
    /// there is no such session that the principal may hear; otherwise whether it was running.
    pub async fn end_session(
        &self,
        principal: &Principal,
        session_id: &SessionId,
    ) -> Result<Option<bool>, HubError> {
        let (reader, id) = (self.reader().clone(), session_id.clone());
        let Some(session) = blocking(move || reader.session(&id)).await? else { return Ok(None) };
        let (who, session_id) = (principal.clone(), session_id.clone());
        if self.shared.status.what_is_wrong().is_some() {
            let ending = self.look_up(move |owner| {
                let may_hear = who.hearing().includes(&owner.agent_of(&session).tags);
                may_hear.then(|| owner.end_on_full_disk(who.id, session_id))
            });
            let Some(ending) = ending.await? else { return Ok(None) };
            let ended = ending?.await.map_err(|_| HubError::Stopped)?;
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

impl EngineOwner {
    fn end_by_hand(&mut self, session_id: SessionId) -> bool {
        let is_known = self.engine.principal_of(&session_id).is_some();
        if !is_known || self.engine.has_ended(&session_id) {
            return false;
        }
        tracing::info!(session_id = %aaep::printable(session_id.as_str()), "A session is ended by hand.");
        self.handle(EngineInput::EndSession { session_id, why: SessionEnd::ByHand }, None);
        true
    }

    /// Ends sessions that have been silent for too long if their agent is absent: it has no socket on which it
    /// published in this session, and no agent polls for instructions under a name that is heard in it. Other
    /// agents of the same principal do not count.
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
            let is_there = speakers.any(|it| self.posts.is_present(it, principal, now_us));
            drop(speakers);
            if !is_connected && !is_there {
                let why = SessionEnd::Silent { after_us };
                self.handle(EngineInput::EndSession { session_id, why }, None);
            }
        }
    }
}

/// A running session, with its principal and agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningSession {
    /// The id of the principal.
    pub(crate) principal: String,
    /// The name of the agent.
    pub(crate) agent: String,
    pub(crate) session_id: SessionId,
}

impl Hub {
    /// The running sessions of all principals for which `is_meant` holds.
    pub(crate) async fn running(
        &self,
        is_meant: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<RunningSession>, HubError> {
        self.look_up(move |owner| {
            let running = owner.engine.running_sessions();
            let running = running.filter_map(|(session_id, principal)| {
                let principal = owner.principals.name(principal)?.to_owned();
                let agent = owner.engine.speakers(session_id).next()?.to_owned();
                is_meant(&principal).then(|| RunningSession {
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

impl EngineOwner {
    /// Stored sessions with their cursors; without details where the principal may not hear the session.
    fn visible_sessions(
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

    /// The public details of a stored session, and the tags that decide which principals may see them.
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

    /// Deletes a session. The engine drops it first, so that nobody can hear it again; the store reports the
    /// result.
    fn delete(
        &mut self,
        who: String,
        session_id: SessionId,
    ) -> Result<oneshot::Receiver<Result<Deleted, DeleteError>>, HubError> {
        let (sender, receiver) = oneshot::channel();
        let is_known = self.engine.principal_of(&session_id).is_some();
        if is_known && !self.engine.has_ended(&session_id) {
            let _ = sender.send(Err(DeleteError::StillRunning));
            return Ok(receiver);
        }
        let now_unix_us = self.clock.now().unix_us;
        let id = session_id.clone();
        let delete = move |store: &mut Store| {
            let deleted = store.delete_session(&session_id, Some(&who), now_unix_us);
            let gone = deleted.is_ok().then_some(session_id);
            // A caller that no longer waits does not need the result.
            let _ = sender.send(deleted);
            gone
        };
        if self.status.what_is_wrong().is_none() {
            self.batch
                .effects
                .push(DeferredEffect::Store(Box::new(move |store| drop(delete(store)))));
        } else {
            self.do_ahead_of_queue(id.clone(), Box::new(delete))?;
        }
        self.handle(EngineInput::DeleteSession { session_id: id }, None);
        Ok(receiver)
    }

    /// Ends a session while the disk is full. The store has a little room reserved for that; the event that
    /// tells subscribers waits for more room.
    fn end_on_full_disk(
        &mut self,
        who: String,
        session_id: SessionId,
    ) -> Result<oneshot::Receiver<Result<EndedSession, CommitError>>, HubError> {
        let (sender, receiver) = oneshot::channel();
        let now_unix_us = self.clock.now().unix_us;
        let id = session_id.clone();
        let end = move |store: &mut Store| {
            // A caller that no longer waits does not need the result.
            let _ = sender.send(store.end_session(&session_id, Some(&who), now_unix_us));
            None
        };
        self.do_ahead_of_queue(id.clone(), Box::new(end))?;
        self.end_by_hand(id);
        Ok(receiver)
    }

    /// Does work on the store ahead of everything that waits for room, unless too much such work is pending.
    fn do_ahead_of_queue(
        &mut self,
        session_id: SessionId,
        work: DeletionWork,
    ) -> Result<(), HubError> {
        match self.delete.try_send(work) {
            Ok(()) => {
                // The keeper sees it with the next batch at the latest, even if there is room again by now.
                self.batch.effects.push(DeferredEffect::Deleted(session_id));
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                let why = "Many sessions wait to be deleted. Try again in a moment.".to_owned();
                Err(HubError::NotTaken { why })
            }
            Err(TrySendError::Disconnected(_)) => Err(HubError::Stopped),
        }
    }
}

/// Reads from the disk on a thread that may block.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, HubError> {
    let read = tokio::task::spawn_blocking(read).await.map_err(|_| HubError::Stopped)?;
    read.map_err(|error| HubError::NotStored { why: Some(error.to_string()) })
}
