//! Agents that are reached through a server of their own: what it says, as events, questions and answers.
//!
//! Facts about the messages were recorded from Codex 0.166.0 and `OpenCode` 1.18.33. Each agent is one file that reads
//! its messages as those of the Agent Client Protocol, so that everything after that is told and asked in one way
//! ([`crate::acp`]). The agent's own window is the editor: both are asked, and the first answer counts.
//!
//! Deliberately absent: an answer to anything but a permission request, and an answer that is for more than one time.

mod codex;
mod opencode;
mod opencode_tool;
mod turn_texts;

use serde_json::Value;

use crate::acp::{AcpBridge, AcpPlan, AcpSetup, AcpSide};
use crate::gate::AskAnswer;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber};
use codex::CodexDaemon;
use opencode::OpenCodeServer;

/// An agent with a server of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FollowedAgent {
    /// Codex in a terminal, through its daemon.
    Codex,
    /// `OpenCode`, through its server.
    OpenCode,
}

impl FollowedAgent {
    /// All of them, in the order in which people see them.
    pub const ALL: [FollowedAgent; 2] = [FollowedAgent::Codex, FollowedAgent::OpenCode];

    /// The name that people type, and by which the hub knows the agent.
    pub fn id(self) -> &'static str {
        match self {
            FollowedAgent::Codex => "codex",
            FollowedAgent::OpenCode => "opencode",
        }
    }

    /// The name that people hear.
    pub fn name(self) -> &'static str {
        match self {
            FollowedAgent::Codex => "Codex",
            FollowedAgent::OpenCode => "OpenCode",
        }
    }

    /// The agent with this id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.id() == id)
    }

    fn dialect(self) -> Box<dyn ServerDialect> {
        match self {
            FollowedAgent::Codex => Box::new(CodexDaemon::default()),
            FollowedAgent::OpenCode => Box::new(OpenCodeServer::default()),
        }
    }
}

/// Something for the agent's server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    /// A message on the connection.
    Message(Value),
    /// A request of its own.
    Post {
        /// The path.
        path: String,
        /// The body.
        body: Value,
    },
}

/// What a message, an answer or the end of a connection leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FollowPlan {
    /// What is for the hub, in order.
    pub steps: Vec<FollowStep>,
    /// What is for the agent's server, in order.
    pub to_agent: Vec<ServerMessage>,
}

/// Something for the hub.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowStep {
    /// A question can no longer be answered here.
    Withdraw(ProxyAskNumber),
    /// An event to publish.
    Tell(Value),
    /// A question to put.
    Ask(ProxyAsk),
}

/// What the words of an agent's server mean.
pub(crate) enum ServerMove {
    /// A message of the Agent Client Protocol.
    Hear(AcpSide, Value),
    /// A session works in this folder.
    Folder { session: String, folder: String },
    /// A request was answered in the agent's own window, and how is not known yet.
    Closed(Value),
    /// Something to tell.
    Tell { session: String, words: String },
    /// Something that is not known.
    Unknown { session: String },
    /// Something for the server.
    Send(ServerMessage),
}

/// An agent's own words.
pub(crate) trait ServerDialect: std::fmt::Debug + Send {
    /// A connection begins.
    fn connected(&mut self) -> Vec<ServerMove>;
    /// The connection is gone.
    fn lost(&mut self);
    /// Reads a message.
    fn read(&mut self, message: &Value) -> Vec<ServerMove>;
    /// A little time has passed.
    fn tick(&mut self) -> Vec<ServerMove> {
        Vec::new()
    }
    /// Writes a message for the agent in its own words.
    fn write(&mut self, message: &Value) -> Option<ServerMessage>;
    /// The sessions that are told here, by the agent's own ids.
    fn sessions(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One agent that is followed.
#[derive(Debug)]
pub struct FollowBridge {
    acp: AcpBridge,
    dialect: Box<dyn ServerDialect>,
}

impl FollowBridge {
    /// A bridge for an agent. `run` tells this run from others in which the agent goes on with the same session.
    pub fn new(agent: FollowedAgent, run: &str) -> Self {
        let acp = AcpBridge::new(agent.name(), true, run).in_own_window();
        FollowBridge { acp, dialect: agent.dialect() }
    }

    /// The name under which the hub knows the agent.
    pub fn agent_id(&self) -> &str {
        self.acp.agent_id()
    }

    /// Whether this session of the hub is one of ours that has not ended.
    pub fn is_working_in(&self, session: &str) -> bool {
        self.acp.is_working_in(session)
    }

    /// The sessions that are told here, by the agent's own ids.
    pub fn sessions(&self) -> Vec<String> {
        self.dialect.sessions()
    }

    /// A connection to the server begins.
    pub fn connected(&mut self, setup: &AcpSetup<'_>) -> FollowPlan {
        let moves = self.dialect.connected();
        self.follow(moves, setup)
    }

    /// Hears a message of the server.
    pub fn hear(&mut self, message: &Value, setup: &AcpSetup<'_>) -> FollowPlan {
        let moves = self.dialect.read(message);
        self.follow(moves, setup)
    }

    /// A little time has passed: what could not be done before is tried again.
    pub fn tick(&mut self, setup: &AcpSetup<'_>) -> FollowPlan {
        let moves = self.dialect.tick();
        self.follow(moves, setup)
    }

    /// The connection is gone. Every turn that is going on ends with these words, and its questions are closed.
    pub fn lost(&mut self, words: &str) -> FollowPlan {
        self.dialect.lost();
        let mut plan = FollowPlan::default();
        plan.take(self.acp.end(words));
        plan
    }

    /// The person answered here, or nobody did. Only the first answer counts.
    pub fn answer(&mut self, number: ProxyAskNumber, answer: &AskAnswer) -> FollowPlan {
        let answered = self.acp.answer(number, answer);
        self.written(answered)
    }

    /// The person asks the agent to stop. Nothing that it asks is allowed by this.
    pub fn cancel(&mut self, hub_session: &str) -> FollowPlan {
        let cancelled = self.acp.cancel(hub_session);
        self.written(cancelled)
    }

    fn written(&mut self, mut acp: AcpPlan) -> FollowPlan {
        let to_agent = std::mem::take(&mut acp.to_agent);
        let mut plan = FollowPlan::default();
        plan.take(acp);
        plan.to_agent.extend(to_agent.iter().filter_map(|it| self.dialect.write(it)));
        plan
    }

    fn follow(&mut self, moves: Vec<ServerMove>, setup: &AcpSetup<'_>) -> FollowPlan {
        let mut plan = FollowPlan::default();
        for step in moves {
            let mut acp = AcpPlan::default();
            match step {
                ServerMove::Hear(from, message) => acp = self.acp.hear(from, &message, setup),
                ServerMove::Folder { session, folder } => self.acp.note_folder(&session, &folder),
                ServerMove::Closed(id) => self.acp.close_ask(&id, &mut acp),
                ServerMove::Tell { session, words } => self.acp.tell(&session, &words, &mut acp),
                ServerMove::Unknown { session } => self.acp.note_unknown(&session),
                ServerMove::Send(message) => plan.to_agent.push(message),
            }
            let to_agent = std::mem::take(&mut acp.to_agent);
            plan.take(acp);
            plan.to_agent.extend(to_agent.iter().filter_map(|it| self.dialect.write(it)));
        }
        plan
    }
}

impl FollowPlan {
    fn take(&mut self, acp: AcpPlan) {
        self.steps.extend(acp.withdrawn.into_iter().map(FollowStep::Withdraw));
        self.steps.extend(acp.events.into_iter().map(FollowStep::Tell));
        self.steps.extend(acp.ask.map(FollowStep::Ask));
    }
}

/// The options of a request: once or not. What an agent offers beyond that is chosen in its own window.
pub(crate) fn once_or_not(
    yes: (&str, &str),
    no: (&str, &str),
    more: Option<(&str, &str)>,
) -> Value {
    let option = |(id, name): (&str, &str), kind: &str| serde_json::json!({ "optionId": id, "name": name, "kind": kind });
    let more = more.map(|it| option(it, "allow_always"));
    [option(yes, "allow_once"), option(no, "reject_once")].into_iter().chain(more).collect()
}

/// A request for permission, as the Agent Client Protocol has it. Without options it is answered in the agent's own
/// window alone.
pub(crate) fn permission(id: &str, session: &str, call: &Value, options: &Value) -> ServerMove {
    let message = serde_json::json!({ "id": id, "method": "session/request_permission",
        "params": { "sessionId": session, "toolCall": call, "options": options } });
    ServerMove::Hear(AcpSide::Agent, message)
}

/// A question that only the agent's own window can put.
pub(crate) fn question(id: &str, session: &str, words: &str) -> ServerMove {
    let message = serde_json::json!({ "id": id, "method": "elicitation/create",
        "params": { "sessionId": session, "message": words } });
    ServerMove::Hear(AcpSide::Agent, message)
}

/// What was answered in the agent's own window.
pub(crate) fn answered(id: &str, option: Option<&str>) -> ServerMove {
    let outcome = match option {
        Some(option) => serde_json::json!({ "outcome": "selected", "optionId": option }),
        None => serde_json::json!({ "outcome": "cancelled" }),
    };
    let message = serde_json::json!({ "id": id, "result": { "outcome": outcome } });
    ServerMove::Hear(AcpSide::Editor, message)
}

/// A prompt of the person.
pub(crate) fn prompt(id: &str, session: &str, blocks: &Value) -> ServerMove {
    let message = serde_json::json!({ "id": id, "method": "session/prompt",
        "params": { "sessionId": session, "prompt": blocks } });
    ServerMove::Hear(AcpSide::Editor, message)
}

/// The end of a turn: a reason to stop, or an error.
pub(crate) fn prompt_ended(id: &str, end: &Result<&str, String>) -> ServerMove {
    let message = match end {
        Ok(reason) => serde_json::json!({ "id": id, "result": { "stopReason": reason } }),
        Err(error) => serde_json::json!({ "id": id, "error": { "message": error } }),
    };
    ServerMove::Hear(AcpSide::Agent, message)
}

/// Something that the agent tells of its work. `update` has no session yet.
pub(crate) fn update(session: &str, update: impl Into<Value>) -> ServerMove {
    let message = serde_json::json!({ "method": "session/update",
        "params": { "sessionId": session, "update": update.into() } });
    ServerMove::Hear(AcpSide::Agent, message)
}

/// A piece of a text of the agent.
pub(crate) fn said(session: &str, message: &str, text: &str) -> ServerMove {
    update(
        session,
        serde_json::json!({ "sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": { "type": "text", "text": text } }),
    )
}
