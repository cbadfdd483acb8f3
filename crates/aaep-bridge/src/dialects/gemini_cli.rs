//! Gemini CLI. Facts were recorded from version 0.61.0.
//!
//! A yes before a tool does not replace its own dialog. It reports only that this dialog opens, never how it is
//! answered. What it repeats of the model's answer has wrong pieces in it, so it is not told.

use serde_json::{Value, json};

use super::claude_shape::{self, gate, reports};
use super::result_text;
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, ToolUse, text_of,
};
use crate::settings::SettingsTraits;
use crate::tools::ToolEffect::{
    Fetch, Question, Quiet, Read, Search, Shell, Tasks, WebSearch, Write,
};
use crate::tools::{ToolRow, row};

/// Gemini CLI.
pub(crate) struct GeminiCli;

const HOOKS: &[HookPoint] = &[
    reports("BeforeAgent"),
    gate("BeforeTool"),
    reports("AfterTool"),
    reports("AfterAgent"),
    reports("Notification"),
    reports("SessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row("run_shell_command", Shell, "command"),
    row("read_file", Read, "file_path"),
    row("list_directory", Search, "dir_path"),
    row("glob", Search, "dir_path"),
    row("grep_search", Search, "dir_path"),
    row("search_file_content", Search, "dir_path"),
    row("write_file", Write, "file_path"),
    row("replace", Write, "file_path"),
    row("web_fetch", Fetch, "prompt"),
    row("google_web_search", WebSearch, "query"),
    row("write_todos", Tasks, ""),
    row("enter_plan_mode", Quiet, ""),
    row("ask_user", Question, ""),
];

impl AgentDialect for GeminiCli {
    fn id(&self) -> &'static str {
        "gemini-cli"
    }

    fn name(&self) -> &'static str {
        "Gemini CLI"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let step = match text_of(payload, "hook_event_name") {
            "BeforeAgent" => AgentStep::Prompt(text_of(payload, "prompt").to_owned()),
            "BeforeTool" => AgentStep::BeforeTool(tool(payload)),
            "AfterTool" => AgentStep::ToolEnded(
                tool(payload),
                result_text::ending(&payload["tool_response"], payload),
            ),
            "AfterAgent" => AgentStep::Ended { text: String::new(), running: 0 },
            "Notification" => dialog(payload),
            "SessionEnd" => AgentStep::Closed,
            "SessionStart"
            | "PreCompress"
            | "BeforeModel"
            | "AfterModel"
            | "BeforeToolSelection" => AgentStep::Nothing,
            _ => AgentStep::Unknown,
        };
        claude_shape::message(payload, "", step)
    }

    fn tools(&self) -> &'static [ToolRow] {
        TOOLS
    }

    fn gate(&self) -> GateStyle {
        GateStyle {
            asker: GateAsker::Bridge,
            stages: AskStages::One,
            may_still_refuse: true,
            silence_is_no: false,
            reports_dialogs: false,
        }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            ticks_per_second: 1000,
            place: ("", ".gemini", "settings.json"),
            ..claude_shape::SETTINGS
        }
    }

    fn project_variable(&self) -> Option<&'static str> {
        Some("GEMINI_PROJECT_DIR")
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        match decision {
            GateDecision::RefuseTool(why) => {
                HookAnswer::printed(json!({ "decision": "deny", "reason": why }))
            }
            _ => HookAnswer::default(),
        }
    }
}

fn tool(payload: &Value) -> ToolUse {
    let mut tool = claude_shape::tool(payload);
    claude_shape::forget_description(&mut tool);
    tool
}

/// Its own dialog opens.
fn dialog(payload: &Value) -> AgentStep {
    if text_of(payload, "notification_type") != "ToolPermission" {
        return AgentStep::Nothing;
    }
    match payload["details"]["command"].as_str() {
        Some(command) => AgentStep::AsksInWindow(ToolUse {
            id: String::new(),
            name: "run_shell_command".to_owned(),
            input: json!({ "command": command }),
        }),
        None => AgentStep::Waits(text_of(payload, "message").to_owned()),
    }
}
