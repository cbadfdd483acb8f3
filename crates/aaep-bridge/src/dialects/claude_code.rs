//! Claude Code. Facts about the order of its hooks and their fields were recorded from version 2.1.325.
//!
//! Deliberately absent: anything that answers a dialog by position, and anything that allows a tool for longer than
//! this once.

use serde_json::Value;

use super::claude_shape::{self, asks, gate, reports};
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, text_of,
};
use crate::settings::SettingsTraits;
use crate::tools::ToolEffect::{
    Fetch, Helper, Question, Quiet, Read, Search, Shell, Tasks, WebSearch, Write,
};
use crate::tools::{ToolRow, row};

/// Claude Code.
pub(crate) struct ClaudeCode;

/// The beginning of a prompt that the agent's program writes itself when a helper in the background is done.
const HELPER_IS_DONE: &str = "<task-notification>";

const HOOKS: &[HookPoint] = &[
    reports("UserPromptSubmit"),
    gate("PreToolUse"),
    asks("PermissionRequest"),
    reports("PostToolUse"),
    reports("PostToolUseFailure"),
    reports("PostToolBatch"),
    reports("MessageDisplay"),
    reports("Notification"),
    reports("SubagentStart"),
    reports("SubagentStop"),
    reports("Stop"),
    reports("StopFailure"),
    reports("SessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row("Bash", Shell, "command"),
    row("Read", Read, "file_path"),
    row("NotebookRead", Read, "notebook_path"),
    row("Glob", Search, "path"),
    row("Grep", Search, "path"),
    row("LS", Search, "path"),
    row("Write", Write, "file_path"),
    row("Edit", Write, "file_path"),
    row("MultiEdit", Write, "file_path"),
    row("NotebookEdit", Write, "notebook_path"),
    row("WebFetch", Fetch, "url"),
    row("WebSearch", WebSearch, "query"),
    row("TodoWrite", Tasks, ""),
    row("TaskCreate", Tasks, ""),
    row("TaskUpdate", Tasks, ""),
    row("TaskList", Quiet, ""),
    row("TaskGet", Quiet, ""),
    row("Agent", Helper, "subagent_type"),
    row("Task", Helper, "subagent_type"),
    row("BashOutput", Quiet, ""),
    row("KillShell", Quiet, ""),
    row("EnterPlanMode", Quiet, ""),
    row("ExitPlanMode", Quiet, ""),
    row("ToolSearch", Quiet, ""),
    row("AskUserQuestion", Question, ""),
];

impl AgentDialect for ClaudeCode {
    fn id(&self) -> &'static str {
        "claude-code"
    }

    fn name(&self) -> &'static str {
        "Claude Code"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let step = match text_of(payload, "hook_event_name") {
            "UserPromptSubmit" if text_of(payload, "prompt").trim().starts_with(HELPER_IS_DONE) => {
                AgentStep::HelperCameBack
            }
            "MessageDisplay" => AgentStep::Text {
                message: text_of(payload, "message_id").to_owned(),
                index: payload["index"].as_u64().unwrap_or(0),
                text: text_of(payload, "delta").to_owned(),
                is_last: payload["final"].as_bool() == Some(true),
            },
            "Notification" => match text_of(payload, "notification_type") {
                "permission_prompt" | "agent_needs_input" | "elicitation_dialog" => {
                    AgentStep::Waits(text_of(payload, "message").to_owned())
                }
                _ => AgentStep::Nothing,
            },
            _ => claude_shape::step(payload),
        };
        claude_shape::message(payload, "prompt_id", step)
    }

    fn tools(&self) -> &'static [ToolRow] {
        TOOLS
    }

    fn gate(&self) -> GateStyle {
        GateStyle {
            asker: GateAsker::Agent,
            stages: AskStages::One,
            may_still_refuse: false,
            silence_is_no: false,
            reports_dialogs: true,
        }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            has_on_failure: true,
            takes_comments: false,
            place: ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            ..claude_shape::SETTINGS
        }
    }

    fn project_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_PROJECT_DIR")
    }

    fn without_window(&self) -> Option<(&'static str, &'static str)> {
        // With -p, the answer "ask" is a no, and no further hook runs (2.1.328).
        Some(("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"))
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        match decision {
            // Only after the person accepted exactly this. Without a word, -p refuses it.
            GateDecision::PassTool => claude_shape::before_tool("allow", "The person said yes."),
            _ => claude_shape::answer(decision),
        }
    }
}
