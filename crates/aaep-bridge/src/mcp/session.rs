//! The session of one run: it begins with the first thing that is told and ends with the connection.

use serde_json::{Value, json};

use super::McpBridge;
use crate::event::{AgentVoice, count};
use crate::tool_words::duration_words;

/// What is counted while tools are used.
#[derive(Debug, Clone)]
pub(super) struct McpSession {
    pub(super) voice: AgentVoice,
    began_ms: i64,
    calls: u64,
    pub(super) tools: u64,
    pub(super) failed: u64,
    pub(super) not_run: u64,
}

impl McpSession {
    /// The id of a new call.
    pub(super) fn new_call(&mut self) -> String {
        self.calls += 1;
        format!("{}:c{}", self.voice.session_id, self.calls)
    }

    /// The event with which the session ends. `words` say why, if it was in the middle of something.
    pub(super) fn ended(&self, words: Option<&str>, now_ms: i64) -> Value {
        const DAY_MS: i64 = 24 * 3600 * 1000;
        if let Some(words) = words {
            let fields = json!({ "error_category": "unknown", "summary_normal": words });
            return self.voice.event("session.errored", fields);
        }
        let took = now_ms.saturating_sub(self.began_ms).clamp(0, DAY_MS);
        let mut parts = vec![format!("{} used", count(self.tools, "tool"))];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.not_run > 0 {
            parts.push(format!("{} not run", self.not_run));
        }
        let words = format!("Closed after {}: {}.", duration_words(took), parts.join(", "));
        let fields = json!({
            "summary_normal": words, "tool_invocations_count": self.tools, "duration_ms": took,
        });
        self.voice.event("session.completed", fields)
    }
}

impl McpBridge {
    /// The session, which begins now if there is none.
    pub(super) fn session(&mut self, now_ms: i64, events: &mut Vec<Value>) -> &mut McpSession {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.open_session(now_ms, events),
        };
        self.session.insert(session)
    }

    fn open_session(&mut self, now_ms: i64, events: &mut Vec<Value>) -> McpSession {
        self.sessions += 1;
        let voice = AgentVoice {
            agent_id: self.agent_id.clone(),
            agent_name: self.server.clone(),
            project: String::new(),
            session_id: format!("{}:{}:{}", self.agent_id, self.run, self.sessions),
        };
        let words = if self.client.is_empty() {
            format!("The tools of {} are used.", self.server)
        } else {
            format!("{} uses the tools of {}.", self.client, self.server)
        };
        events.push(voice.started(&words));
        McpSession { voice, began_ms: now_ms, calls: 0, tools: 0, failed: 0, not_run: 0 }
    }

    /// The voice of the session, if there is one.
    pub(super) fn voice(&self) -> Option<AgentVoice> {
        self.session.as_ref().map(|it| it.voice.clone())
    }
}
