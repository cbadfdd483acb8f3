//! The agent of a session, and the tags that decide which subscribers may hear it, as they are stored with the
//! session.

use aaep_engine::AgentTags;
use serde_json::{Value, json};

use super::owner::EngineOwner;
use crate::access::{Principal, tags_before_owners};
use crate::bounds::MAX_TERMS_BYTES;
use crate::store::StoredSession;

/// The agent of a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SessionAgent {
    pub(super) agent_id: String,
    pub(super) tags: AgentTags,
}

impl SessionAgent {
    /// The agent with this name, for which the principal speaks.
    pub(super) fn new(principal: &Principal, agent_id: &str) -> Self {
        SessionAgent { agent_id: agent_id.to_owned(), tags: principal.agent_tags(agent_id) }
    }

    /// The stored form; `None` if it would be too long.
    pub(super) fn to_json(&self) -> Option<Vec<u8>> {
        let tags: Vec<&str> = self.tags.iter().collect();
        let json = json!({ "agent_id": self.agent_id, "tags": tags }).to_string().into_bytes();
        Some(json).filter(|json| json.len() <= MAX_TERMS_BYTES)
    }

    /// Reads the agent of a stored session. In a store from before agents had owners, the agent belongs to the
    /// principal that published. If it cannot be read, only subscribers that hear everything hear the session.
    pub(super) fn of(
        session: &StoredSession,
        name_before: Option<&str>,
        principal_id: Option<&str>,
    ) -> Self {
        if session.about.is_empty() {
            let agent_id = name_before.unwrap_or_default().to_owned();
            let tags = tags_before_owners(&agent_id, principal_id.unwrap_or_default());
            return SessionAgent { agent_id, tags };
        }
        let read = || {
            let about: Value = serde_json::from_slice(&session.about).ok()?;
            let tags = about.get("tags")?.as_array()?.iter();
            let tags = tags.map(|tag| tag.as_str().map(str::to_owned));
            let tags = AgentTags::new(tags.collect::<Option<Vec<_>>>()?);
            let agent_id = about.get("agent_id")?.as_str()?.to_owned();
            Some(SessionAgent { agent_id, tags })
        };
        let unknown = SessionAgent { agent_id: String::new(), tags: AgentTags::default() };
        read().unwrap_or(unknown)
    }
}

impl EngineOwner {
    /// The agent of a stored session.
    pub(super) fn agent_of(&self, session: &StoredSession) -> SessionAgent {
        let name = self.former_agents.get(&session.agent).map(String::as_str);
        SessionAgent::of(session, name, self.principals.name(session.principal))
    }
}
