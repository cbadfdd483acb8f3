//! The sessions in memory, and the indexes by which the engine finds them.
//!
//! All indexes change together, here and nowhere else. Nothing here decides anything about a session.

use std::collections::{BTreeMap, HashMap};

use aaep::{EventId, SessionId};

use super::EngineSession;
use crate::keys::SessionKey;

/// The sessions in memory, oldest first.
#[derive(Debug)]
pub(crate) struct SessionTable {
    sessions: BTreeMap<SessionKey, EngineSession>,
    next: SessionKey,
    by_id: HashMap<SessionId, SessionKey>,
    /// The events in the histories, to recognize repeated ones.
    by_event: HashMap<EventId, SessionKey>,
}

impl SessionTable {
    pub(super) fn new() -> Self {
        SessionTable {
            sessions: BTreeMap::new(),
            next: SessionKey::FIRST,
            by_id: HashMap::new(),
            by_event: HashMap::new(),
        }
    }

    pub(crate) fn get(&self, key: SessionKey) -> Option<&EngineSession> {
        self.sessions.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: SessionKey) -> Option<&mut EngineSession> {
        self.sessions.get_mut(&key)
    }

    pub(super) fn key_of(&self, id: &SessionId) -> Option<SessionKey> {
        self.by_id.get(id).copied()
    }

    /// The session whose history has this event.
    pub(super) fn with_event(&self, id: &EventId) -> Option<SessionKey> {
        self.by_event.get(id).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionKey, &EngineSession)> {
        self.sessions.iter().map(|(key, session)| (*key, session))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &EngineSession> {
        self.sessions.values()
    }

    /// Adds a session with an id of its own.
    pub(super) fn insert(&mut self, session: EngineSession) -> SessionKey {
        let key = self.next;
        self.next = key.next();
        self.by_id.insert(session.id.clone(), key);
        self.sessions.insert(key, session);
        key
    }

    /// Removes a session and the events of its history from all indexes.
    pub(super) fn remove(&mut self, key: SessionKey) -> Option<EngineSession> {
        let session = self.sessions.remove(&key)?;
        self.by_id.remove(&session.id);
        for entry in &session.history {
            self.by_event.remove(&entry.event.envelope.event_id);
        }
        Some(session)
    }

    /// Notes that an event is in the history of a session now.
    pub(super) fn note_event(&mut self, id: &EventId, key: SessionKey) {
        self.by_event.insert(id.clone(), key);
    }

    /// Notes that an event has left the history of its session.
    pub(super) fn forget_event(&mut self, id: &EventId) {
        self.by_event.remove(id);
    }
}
