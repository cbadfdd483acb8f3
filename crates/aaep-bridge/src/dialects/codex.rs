//! Codex. Facts were recorded from version 0.166.0.
//!
//! It takes no notice of a hook that wants its own dialog, so we ask before the tool. While a hook for its own dialog
//! runs, it shows no dialog. Rules of its own can refuse what was accepted, and it does not report that. Its results are
//! only text, with no exit code.

use serde_json::Value;

use super::claude_shape::{self, asks, gate, reports, reports_briefly};
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, text_of,
};
use crate::settings::SettingsTraits;
use crate::tools::ToolEffect::{Patch, ShellOrPatch, Tasks};
use crate::tools::{ToolRow, row};

/// Codex.
pub(crate) struct Codex;

const HOOKS: &[HookPoint] = &[
    reports("UserPromptSubmit"),
    gate("PreToolUse"),
    asks("PermissionRequest"),
    reports("PostToolUse"),
    reports("SubagentStart"),
    reports("SubagentStop"),
    reports("Stop"),
    reports_briefly("Interrupt"),
    reports_briefly("SessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row("Bash", ShellOrPatch, "command"),
    row("apply_patch", Patch, "command"),
    row("update_plan", Tasks, ""),
];

impl AgentDialect for Codex {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn name(&self) -> &'static str {
        "Codex"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let mut step = claude_shape::step(payload);
        match &mut step {
            // What the model says of its command is in one hook, and not in the other.
            AgentStep::BeforeTool(tool) | AgentStep::AsksPermission { tool, .. } => {
                claude_shape::forget_description(tool);
            }
            AgentStep::ToolEnded(tool, ending) => {
                claude_shape::forget_description(tool);
                ending.is_outcome_unknown = true;
            }
            AgentStep::Unknown if text_of(payload, "hook_event_name") == "Interrupt" => {
                step = AgentStep::Stopped;
            }
            _ => {}
        }
        claude_shape::message(payload, "turn_id", step)
    }

    fn tools(&self) -> &'static [ToolRow] {
        TOOLS
    }

    fn gate(&self) -> GateStyle {
        GateStyle {
            asker: GateAsker::Bridge,
            stages: AskStages::GateFirst,
            may_still_refuse: true,
            silence_is_no: true,
            reports_dialogs: true,
        }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            takes_comments: false,
            place: ("CODEX_HOME", ".codex", "hooks.json"),
            ..claude_shape::SETTINGS
        }
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        claude_shape::answer(decision)
    }
}
