//! Claude Code: what its hooks are given, as events, questions and answers.
//!
//! Each hook is a process of its own that reads one JSON object. Facts about their order and their fields were
//! recorded from version 2.1.325. A turn, from the person's prompt to its end, is one session.
//!
//! Deliberately absent: anything that answers a dialog by position, and anything that allows a tool for longer than
//! this once.

mod permission;
pub mod settings;
mod tools;
mod turn;

use serde_json::Value;

use crate::event::AgentVoice;
use crate::gate::HookPlan;
use crate::memory::AgentMemory;
use crate::policy::AskPolicy;
use crate::risk::{ActionPlace, RiskTable, RiskVerdict};
use crate::tool_words::project_name;
use tools::ToolRequest;

/// The longest input of a hook that is read.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// The events for which a hook is needed.
pub const HOOK_EVENTS: [&str; 13] = [
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "MessageDisplay",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// What one hook was given.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    payload: Value,
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
}

impl HookCall {
    /// Reads the input of a hook. `None` if it is not one.
    pub fn read(text: &[u8]) -> Option<Self> {
        let payload: Value = serde_json::from_slice(text).ok()?;
        let call = HookCall { payload };
        let is_hook = !call.event().is_empty() && !call.text("session_id").is_empty();
        is_hook.then_some(call)
    }

    /// The name of the event.
    pub fn event(&self) -> &str {
        self.text("hook_event_name")
    }

    /// The session of the agent, which keeps its id over many turns.
    pub fn session(&self) -> &str {
        self.text("session_id")
    }

    fn text(&self, field: &str) -> &str {
        self.payload[field].as_str().unwrap_or_default()
    }

    /// Whether the agent runs the tool unless this hook says otherwise.
    pub fn is_gate(&self) -> bool {
        self.event() == "PreToolUse"
    }

    /// What to answer if nothing else can be said: a tool that a person might have to be asked about does not run.
    pub fn refusal(&self, why: &str) -> Option<Value> {
        self.is_gate().then(|| permission::before_tool("deny", why))
    }

    /// What to do for this call.
    pub fn handle(&self, memory: &mut AgentMemory, setup: &HookSetup<'_>) -> HookPlan {
        HookHandler { call: self, memory, setup, plan: HookPlan::default() }.handle()
    }
}

/// One call at work.
struct HookHandler<'h> {
    call: &'h HookCall,
    memory: &'h mut AgentMemory,
    setup: &'h HookSetup<'h>,
    plan: HookPlan,
}

/// How a session begins whose beginning nobody told us.
const AT_WORK: &str = "Claude Code is at work.";

/// The longest part of an id that is used.
const MAX_ID_CHARS: usize = 100;

impl HookHandler<'_> {
    fn handle(mut self) -> HookPlan {
        if self.call.event() == "SessionStart" {
            return self.plan;
        }
        if self.call.event() == "UserPromptSubmit" {
            self.begin_turn();
            return self.plan;
        }
        if !self.find_turn() {
            return self.plan;
        }
        self.plan.opening = Some(self.voice().started(AT_WORK));
        match self.call.event() {
            "PreToolUse" => self.before_tool(),
            "PermissionRequest" => self.ask_permission(),
            "PostToolUse" | "PostToolUseFailure" => self.after_tool(),
            "PostToolBatch" => self.after_batch(),
            "PermissionDenied" => self.tell_denied(),
            "MessageDisplay" => self.tell_text(),
            "Notification" => self.tell_notification(),
            "SubagentStart" | "SubagentStop" => self.tell_helper(),
            "Stop" => self.end_turn(),
            "StopFailure" => self.fail_turn(),
            "SessionEnd" => self.close(),
            _ => {}
        }
        self.plan
    }

    /// The agent in its current turn, as the hub knows it.
    fn voice(&self) -> AgentVoice {
        let cut = |text: &str| text.chars().take(MAX_ID_CHARS).collect::<String>();
        let turn = self.memory.turn.as_deref().unwrap_or("none");
        AgentVoice {
            agent_id: "claude-code".to_owned(),
            agent_name: "Claude Code".to_owned(),
            project: project_name(self.project()),
            session_id: format!("{}:{}", cut(self.call.session()), cut(turn)),
        }
    }

    /// The folder of the project.
    fn project(&self) -> &str {
        self.setup.project.filter(|it| !it.is_empty()).unwrap_or(self.call.text("cwd"))
    }

    /// The tool call that the payload names, and how risky it is.
    fn tool_request(&self) -> (ToolRequest, RiskVerdict) {
        let request =
            ToolRequest::new(self.call.text("tool_name"), &self.call.payload["tool_input"]);
        let place = ActionPlace::new(self.call.text("cwd"), self.project());
        let verdict = self.setup.table.judge(&request.action, &place);
        (request, verdict)
    }

    fn emit(&mut self, event: Value) {
        self.plan.events.push(event);
    }
}
