//! Kimi Code. Facts were recorded from version 2.1.0.
//!
//! Its hooks for permissions only report, but they also report how the person answered. A hook may take ten minutes at
//! most.

use serde_json::Value;

use super::claude_shape::{self, gate, reports};
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, AskTimes, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, ToolEnding, ToolUse, text_of,
};
use crate::settings::{SettingsForm, SettingsTraits};
use crate::tools::ToolEffect::{
    Fetch, Helper, Question, Quiet, Read, Search, Shell, Tasks, WebSearch, Write,
};
use crate::tools::{ToolRow, row};

/// Kimi Code.
pub(crate) struct KimiCode;

const HOOKS: &[HookPoint] = &[
    reports("UserPromptSubmit"),
    gate("PreToolUse"),
    reports("PermissionRequest"),
    reports("PermissionResult"),
    reports("PostToolUse"),
    reports("PostToolUseFailure"),
    reports("SubagentStart"),
    reports("SubagentStop"),
    reports("Stop"),
    reports("StopFailure"),
    reports("SessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row("Bash", Shell, "command"),
    row("Read", Read, "path"),
    row("Glob", Search, "path"),
    row("Grep", Search, "path"),
    row("Write", Write, "path"),
    row("Edit", Write, "path"),
    row("FetchURL", Fetch, "url"),
    row("WebSearch", WebSearch, "query"),
    row("TodoList", Tasks, ""),
    row("Think", Quiet, ""),
    row("Agent", Helper, "subagent_type"),
    row("AskUserQuestion", Question, ""),
];

impl AgentDialect for KimiCode {
    fn id(&self) -> &'static str {
        "kimi-code"
    }

    fn name(&self) -> &'static str {
        "Kimi Code"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let step = match text_of(payload, "hook_event_name") {
            "UserPromptSubmit" => AgentStep::Prompt(prompt(&payload["prompt"])),
            "PreToolUse" => AgentStep::BeforeTool(tool(payload)),
            "PermissionRequest" => AgentStep::AsksInWindow(tool(payload)),
            "PermissionResult" => AgentStep::WindowAnswered {
                tool: tool(payload),
                is_yes: text_of(payload, "decision").starts_with("approve"),
            },
            "PostToolUse" => AgentStep::ToolEnded(tool(payload), ending(payload)),
            "PostToolUseFailure" => AgentStep::ToolEnded(
                tool(payload),
                ToolEnding {
                    failure: Some(claude_shape::reason(payload)),
                    // It reports a tool that was kept from running in the same way.
                    may_not_have_run: true,
                    ..ending(payload)
                },
            ),
            "SubagentStart" => AgentStep::HelperBegan(text_of(payload, "agent_name").to_owned()),
            "SubagentStop" => AgentStep::HelperEnded(text_of(payload, "agent_name").to_owned()),
            _ => claude_shape::step(payload),
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
            reports_dialogs: true,
        }
    }

    fn times(&self) -> AskTimes {
        AskTimes { first_seconds: 450, longest_seconds: 450, hook_seconds: 600 }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            form: SettingsForm::Toml,
            place: ("KIMI_CODE_HOME", ".kimi-code", "config.toml"),
            ..claude_shape::SETTINGS
        }
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        match decision {
            GateDecision::RefuseTool(why) => HookAnswer::refused(why),
            _ => HookAnswer::default(),
        }
    }
}

fn tool(payload: &Value) -> ToolUse {
    let mut tool = claude_shape::tool(payload);
    text_of(payload, "tool_call_id").clone_into(&mut tool.id);
    claude_shape::forget_description(&mut tool);
    tool
}

fn ending(payload: &Value) -> ToolEnding {
    let output = payload["tool_output"].as_str().or(payload["tool_response"].as_str());
    ToolEnding { printed: output.map(str::to_owned), ..ToolEnding::default() }
}

/// The person's words: text, or parts of which some are text.
fn prompt(prompt: &Value) -> String {
    let parts = prompt.as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|it| it["text"].as_str()).collect();
    prompt.as_str().map_or_else(|| texts.join(" "), str::to_owned)
}
