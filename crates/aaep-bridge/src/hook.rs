//! One call of an agent's hook: from what the agent says to events, questions and answers.
//!
//! Each hook is a process of its own that reads one JSON object. A turn, from the person's prompt to its end, is one
//! session. What the agents call these things is in `dialects/`.

mod later;
pub(crate) mod permission;
mod questions;
mod turn;

use serde_json::Value;

use crate::agent::BridgedAgent;
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, GateAsker, GateDecision, HookAnswer, HookRole, ToolUse,
};
use crate::event::AgentVoice;
use crate::gate::HookPlan;
use crate::memory::AgentMemory;
use crate::policy::AskPolicy;
use crate::risk::{ActionPlace, RiskTable, RiskVerdict};
use crate::tool_words::project_name;
use crate::tools::ToolRequest;

/// The longest input of a hook that is read.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// What one hook was given.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    agent: BridgedAgent,
    message: AgentMessage,
}

/// What the person chose, and where the agent works.
#[derive(Debug, Clone, Copy)]
pub struct HookSetup<'s> {
    /// How risky actions are.
    pub table: &'s RiskTable,
    /// When the person wants to be asked.
    pub policy: AskPolicy,
    /// The folder of the project, if the agent says which. Otherwise it is the folder in which the agent is.
    pub project: Option<&'s str>,
    /// The time.
    pub now_ms: i64,
    /// The name of this machine, if the hub has agents of other machines too. Two agents cannot have one name.
    pub machine: Option<&'s str>,
    /// Whether the agent has a window of its own in which it can ask the person.
    pub has_window: bool,
    /// For how many hours a question can be answered after an agent without a window ended at it, if the person
    /// wants that.
    pub later_hours: Option<u8>,
}

impl HookCall {
    /// Reads the input of a hook of an agent. `event` names it where the agent does not. `None` if it is not one.
    pub fn read(agent: BridgedAgent, event: &str, text: &[u8]) -> Option<Self> {
        let payload: Value = serde_json::from_slice(text).ok()?;
        let message = agent.dialect().read(event, &payload);
        let is_hook = !message.event.is_empty() && !message.session.is_empty();
        is_hook.then_some(HookCall { agent, message })
    }

    /// The session of the agent, with its name: two agents can have sessions of the same id.
    pub fn session(&self) -> String {
        match self.agent {
            BridgedAgent::ClaudeCode => self.message.session.clone(),
            agent => format!("{}:{}", agent.id(), self.message.session),
        }
    }

    /// The session, by the agent's own id.
    pub fn own_session(&self) -> &str {
        &self.message.session
    }

    /// Whether the agent was closed, so that nothing of the session has to be remembered.
    pub fn is_closing(&self) -> bool {
        self.message.step == AgentStep::Closed
    }

    /// Whether the agent runs the tool unless this hook says otherwise.
    pub fn is_gate(&self) -> bool {
        let points = self.agent.dialect().hooks();
        let is_known_gate =
            points.iter().any(|it| it.event == self.message.event && it.role == HookRole::Gate);
        is_known_gate || matches!(self.message.step, AgentStep::BeforeTool(_))
    }

    /// What to answer if nothing else can be said: a tool that a person might have to be asked about does not run.
    pub fn refusal(&self, why: &str) -> Option<HookAnswer> {
        self.is_gate().then(|| self.agent.dialect().answer(&GateDecision::RefuseTool(why)))
    }

    /// What to do for this call.
    pub fn handle(&self, memory: &mut AgentMemory, setup: &HookSetup<'_>) -> HookPlan {
        let dialect = self.agent.dialect();
        let handler = HookHandler { call: self, dialect, memory, setup, plan: HookPlan::default() };
        handler.handle()
    }
}

/// One call at work.
struct HookHandler<'h> {
    call: &'h HookCall,
    dialect: &'static dyn AgentDialect,
    memory: &'h mut AgentMemory,
    setup: &'h HookSetup<'h>,
    plan: HookPlan,
}

/// The longest part of an id that is used.
const MAX_ID_CHARS: usize = 100;

impl HookHandler<'_> {
    fn handle(mut self) -> HookPlan {
        let call = self.call;
        match &call.message.step {
            AgentStep::Nothing => return self.plan,
            AgentStep::Prompt(prompt) => {
                self.begin_turn(prompt);
                return self.plan;
            }
            AgentStep::HelperCameBack => {
                self.continue_turn();
                return self.plan;
            }
            _ => {}
        }
        if !self.find_turn() {
            return self.plan;
        }
        self.plan.opening = Some(self.voice().started(&self.at_work()));
        match &call.message.step {
            AgentStep::BeforeTool(tool) => self.before_tool(tool),
            AgentStep::AsksPermission { tool, is_person_certain } => {
                self.ask_permission(tool, *is_person_certain);
            }
            AgentStep::AsksInWindow(tool) => self.tell_window(tool),
            AgentStep::WindowAnswered { tool, is_yes } => self.tell_window_answer(tool, *is_yes),
            AgentStep::ToolEnded(tool, ending) => self.after_tool(tool, ending),
            AgentStep::BatchEnded(tools) => self.after_batch(tools),
            AgentStep::ToolDenied(tool) => self.tell_denied(tool),
            AgentStep::Text { message, index, text, is_last } => {
                self.tell_text(message, (*index, text, *is_last));
            }
            AgentStep::Waits(words) => self.tell_waits(words),
            AgentStep::HelperBegan(kind) => self.tell_helper("begins", kind),
            AgentStep::HelperEnded(kind) => self.tell_helper("is done", kind),
            AgentStep::Ended { text, running } => self.end_turn(text, *running),
            AgentStep::Trouble(error) => self.tell_trouble(error),
            AgentStep::Failed(reason) => self.fail_turn(reason),
            AgentStep::Stopped => self.abandon("It was stopped."),
            AgentStep::Closed => self.close(),
            AgentStep::Unknown => self.memory.note_unknown(),
            AgentStep::Nothing | AgentStep::Prompt(_) | AgentStep::HelperCameBack => {}
        }
        self.plan
    }

    /// The agent in its current turn, as the hub knows it.
    fn voice(&self) -> AgentVoice {
        let cut = |text: &str| text.chars().take(MAX_ID_CHARS).collect::<String>();
        let turn = self.memory.turn.as_deref().unwrap_or("none");
        AgentVoice {
            agent_id: match self.setup.machine {
                Some(machine) => format!("{}@{}", self.dialect.id(), cut(machine)),
                None => self.dialect.id().to_owned(),
            },
            agent_name: self.dialect.name().to_owned(),
            project: project_name(self.project()),
            session_id: format!("{}:{}", cut(&self.call.session()), cut(turn)),
        }
    }

    /// How a session begins whose beginning nobody told us.
    fn at_work(&self) -> String {
        format!("{} is at work.", self.dialect.name())
    }

    /// The folder of the project.
    fn project(&self) -> &str {
        let named = self.setup.project.filter(|it| !it.is_empty());
        named.or(self.memory.project.as_deref()).unwrap_or(&self.call.message.folder)
    }

    /// Who asks before a tool.
    fn asker(&self) -> GateAsker {
        let can_agent = self.dialect.without_window().is_none() || self.setup.has_window;
        if can_agent { self.dialect.gate().asker } else { GateAsker::Bridge }
    }

    /// What the agent wants to do, and how risky it is.
    fn judge(&self, tool: &ToolUse) -> (ToolRequest, RiskVerdict) {
        let request = ToolRequest::new(self.dialect.tools(), tool);
        let place = ActionPlace::new(&self.call.message.folder, self.project());
        let verdict = self.setup.table.judge(&request.actions, &place);
        (request, verdict)
    }

    fn emit(&mut self, event: Value) {
        self.plan.events.push(event);
    }
}
