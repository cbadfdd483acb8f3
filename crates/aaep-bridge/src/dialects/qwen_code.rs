//! Qwen Code. Facts were recorded from version 0.24.4.
//!
//! Its hooks have the names of Claude Code, in another order: it asks first, and its hook before the tool comes after
//! the answer. A no in JSON was seen not to keep a tool from running; exit code 2 does.

use serde_json::Value;

use super::claude_shape::{self, asks, gate, reports};
use super::result_text;
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, AskTimes, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, ToolUse, text_of,
};
use crate::settings::SettingsTraits;
use crate::tools::ToolEffect::{
    Fetch, Helper, Question, Quiet, Read, Search, Shell, Tasks, WebSearch, Write,
};
use crate::tools::{ToolRow, row};

/// Qwen Code.
pub(crate) struct QwenCode;

const HOOKS: &[HookPoint] = &[
    reports("UserPromptSubmit"),
    asks("PermissionRequest"),
    gate("PreToolUse"),
    reports("PostToolUse"),
    reports("PostToolUseFailure"),
    reports("PostToolBatch"),
    reports("Notification"),
    reports("SubagentStart"),
    reports("SubagentStop"),
    reports("Stop"),
    reports("StopFailure"),
    reports("SessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row("run_shell_command", Shell, "command"),
    row("read_file", Read, "file_path"),
    row("list_directory", Search, "path"),
    row("glob", Search, "path"),
    row("grep_search", Search, "path"),
    row("write_file", Write, "file_path"),
    row("edit", Write, "file_path"),
    row("web_fetch", Fetch, "url"),
    row("web_search", WebSearch, "query"),
    row("todo_write", Tasks, ""),
    row("task", Helper, "subagent_type"),
    row("agent", Helper, "subagent_type"),
    row("exit_plan_mode", Quiet, ""),
    row("ask_user_question", Question, ""),
];

impl AgentDialect for QwenCode {
    fn id(&self) -> &'static str {
        "qwen-code"
    }

    fn name(&self) -> &'static str {
        "Qwen Code"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let response = &payload["tool_response"];
        let step = match text_of(payload, "hook_event_name") {
            "PreToolUse" => AgentStep::BeforeTool(tool(payload)),
            "PermissionRequest" => AgentStep::AsksPermission {
                tool: tool(payload),
                // In its other modes, a model or a setting can decide.
                is_person_certain: text_of(payload, "permission_mode") == "default",
            },
            "PostToolUse" => {
                AgentStep::ToolEnded(tool(payload), result_text::ending(response, payload))
            }
            "PostToolUseFailure" => {
                AgentStep::ToolEnded(tool(payload), result_text::failure(payload, response))
            }
            "PostToolBatch" => AgentStep::BatchEnded(batch(payload)),
            "Notification" => match text_of(payload, "notification_type") {
                "permission_prompt" => AgentStep::Waits(text_of(payload, "message").to_owned()),
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
            asker: GateAsker::Bridge,
            stages: AskStages::PermissionFirst,
            may_still_refuse: false,
            silence_is_no: false,
            reports_dialogs: true,
        }
    }

    fn times(&self) -> AskTimes {
        // Its time-outs are milliseconds in one version and seconds in another. 1,800,000 is long enough as the one,
        // and not too long for its timers as the other.
        AskTimes { first_seconds: 600, longest_seconds: 1500, hook_seconds: 1800 }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            ticks_per_second: 1000,
            place: ("", ".qwen", "settings.json"),
            ..claude_shape::SETTINGS
        }
    }

    fn project_variable(&self) -> Option<&'static str> {
        Some("QWEN_PROJECT_DIR")
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        match decision {
            GateDecision::RefuseTool(why) | GateDecision::AskLater(why) => HookAnswer::refused(why),
            GateDecision::AskInWindow(_) => HookAnswer::default(),
            decision => claude_shape::answer(decision),
        }
    }
}

fn tool(payload: &Value) -> ToolUse {
    let mut tool = claude_shape::tool(payload);
    if let Some(id) = payload["tool_call_id"].as_str() {
        id.clone_into(&mut tool.id);
    }
    claude_shape::forget_description(&mut tool);
    tool
}

/// The tools of a batch that did not run.
fn batch(payload: &Value) -> Vec<(ToolUse, String)> {
    let calls = payload["tool_calls"].as_array().into_iter().flatten();
    let not_run = calls.filter(|it| text_of(it, "status") != "success");
    not_run.map(|it| (tool(it), text_of(it, "tool_response").to_owned())).collect()
}
