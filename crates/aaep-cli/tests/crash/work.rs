//! What agents do: events that are valid and in order, one after the other.

use serde_json::{Value, json};

/// How many steps a session has before it ends.
const STEPS: u64 = 24;

/// What an agent has done so far.
#[derive(Debug)]
pub(crate) struct Work {
    name: String,
    has_ids: bool,
    session: u64,
    step: u64,
    position: usize,
}

impl Work {
    /// The work of the agent with this name, made of letters and digits. Its events have ids of their own,
    /// or the hub gives them theirs.
    pub(crate) fn new(name: &str, has_ids: bool) -> Self {
        Work { name: name.to_owned(), has_ids, session: 0, step: 0, position: 0 }
    }

    /// Whether a session has ended and the next one has not begun.
    pub(crate) fn is_between_sessions(&self) -> bool {
        self.step == 0
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Value {
        let (session, step) = (self.session, self.step);
        let call = format!("call_{}s{session}n{}", self.name, step / 4);
        let mut event = match step {
            0 => json!({ "type": "aaep:agent.session.started", "summary_normal": "It begins." }),
            STEPS => json!({ "type": "aaep:agent.session.completed", "summary_normal": "Done." }),
            _ => match step % 4 {
                1 => json!({
                    "type": "aaep:agent.progress.updated", "progress": { "percent": step },
                    "summary_normal": format!("Step {step} of {STEPS}."),
                    "urgency": if step % 8 == 1 { "critical" } else { "normal" },
                }),
                2 => json!({
                    "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call,
                    "summary_normal": format!("Looking in step {step}."),
                }),
                3 => json!({
                    "type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": call,
                    "status": "success", "summary_normal": format!("Looked in step {step}."),
                }),
                _ => self.text(step),
            },
        };
        event["session_id"] = format!("sess_{}s{session}", self.name).into();
        event["producer"] = json!({ "agent_id": self.name });
        if self.has_ids {
            event["event_id"] = format!("evt_{}s{session}n{step}", self.name).into();
        }
        if step == STEPS {
            *self = Work { session: session + 1, ..Work::new(&self.name, self.has_ids) };
        } else {
            self.step += 1;
        }
        event
    }

    fn text(&mut self, step: u64) -> Value {
        let chunk = format!("Found something in step {step}. ");
        let position = self.position;
        self.position += chunk.len();
        json!({
            "type": "aaep:agent.output.streaming", "chunk": chunk, "position": position,
            "complete": step + 4 >= STEPS,
        })
    }
}

/// How the person deals with a question. The token of the question says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The answer of a subscriber on a stream.
    ByStream(&'static str),
    /// The answer of a subscriber on a WebSocket.
    BySocket(&'static str),
    /// Nobody answers, and its time runs out.
    Ignored,
    /// The agent withdraws it.
    Withdrawn,
}

impl Plan {
    pub(crate) fn of(token: &str) -> Self {
        match token.bytes().map(u32::from).sum::<u32>() % 6 {
            0 => Plan::ByStream("accept"),
            1 => Plan::ByStream("reject"),
            2 => Plan::BySocket("accept"),
            3 => Plan::BySocket("reject"),
            4 => Plan::Ignored,
            _ => Plan::Withdrawn,
        }
    }

    /// The answer, if there is one.
    pub(crate) fn decision(self) -> Option<&'static str> {
        match self {
            Plan::ByStream(decision) | Plan::BySocket(decision) => Some(decision),
            Plan::Ignored | Plan::Withdrawn => None,
        }
    }

    pub(crate) fn timeout_seconds(self) -> u64 {
        if self == Plan::Ignored { 1 } else { 300 }
    }
}

/// A question about something that cannot be undone.
pub(crate) fn question(agent: &str, session_id: &str, event_id: &str, token: &str) -> Value {
    json!({
        "type": "aaep:agent.awaiting.confirmation",
        "event_id": event_id, "session_id": session_id, "producer": { "agent_id": agent },
        "reply_token": token,
        "action": "Delete the database",
        "consequence": "All that is in it is gone.",
        "risk_level": "high",
        "irreversible": true,
        "timeout_seconds": Plan::of(token).timeout_seconds(),
        "default_decision": "reject",
        "summary_normal": "May I delete the database?",
    })
}

/// The tool call, which needs consent.
pub(crate) fn deed(agent: &str, session_id: &str, event_id: &str, call: &str) -> Value {
    json!({
        "type": "aaep:agent.tool.invoked",
        "event_id": event_id, "session_id": session_id, "producer": { "agent_id": agent },
        "tool": "delete_database", "tool_call_id": call, "irreversible": true,
        "risk_level": "high", "summary_normal": "Deleting the database.",
    })
}

/// The end of the tool call.
pub(crate) fn done(agent: &str, session_id: &str, event_id: &str, call: &str) -> Value {
    json!({
        "type": "aaep:agent.tool.completed",
        "event_id": event_id, "session_id": session_id, "producer": { "agent_id": agent },
        "tool": "delete_database", "tool_call_id": call, "status": "success",
    })
}

/// The beginning or the end of a session.
pub(crate) fn session(agent: &str, session_id: &str, event_id: &str, what: &str) -> Value {
    json!({
        "type": format!("aaep:agent.session.{what}"),
        "event_id": event_id, "session_id": session_id, "producer": { "agent_id": agent },
        "summary_normal": "A session.",
    })
}
