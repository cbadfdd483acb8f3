//! Hooks in the form that Claude Code has and that other agents took over: the names of events and fields, and the
//! answers.

use serde_json::{Value, json};

use crate::dialect::{
    AgentMessage, AgentStep, GateDecision, HookAnswer, HookPoint, HookRole, ToolEnding, ToolUse,
    text_of,
};
use crate::settings::{SettingsForm, SettingsTraits};

/// Settings in the form of Claude Code.
pub(crate) const SETTINGS: SettingsTraits = SettingsTraits {
    form: SettingsForm::JsonGroups,
    ticks_per_second: 1,
    takes_comments: true,
    has_on_failure: false,
    names_event: false,
    place: ("", "", "settings.json"),
};

/// A hook that decides, one that answers, and one that only reports.
pub(crate) const fn gate(event: &'static str) -> HookPoint {
    HookPoint { event, role: HookRole::Gate }
}

pub(crate) const fn asks(event: &'static str) -> HookPoint {
    HookPoint { event, role: HookRole::Asks }
}

pub(crate) const fn reports(event: &'static str) -> HookPoint {
    HookPoint { event, role: HookRole::Reports }
}

pub(crate) const fn reports_briefly(event: &'static str) -> HookPoint {
    HookPoint { event, role: HookRole::ReportsBriefly }
}

/// The fields that every payload has.
pub(crate) fn message(payload: &Value, turn_field: &str, step: AgentStep) -> AgentMessage {
    AgentMessage {
        event: text_of(payload, "hook_event_name").to_owned(),
        session: text_of(payload, "session_id").to_owned(),
        turn: text_of(payload, turn_field).to_owned(),
        folder: text_of(payload, "cwd").to_owned(),
        step,
    }
}

/// The tool of a payload.
pub(crate) fn tool(payload: &Value) -> ToolUse {
    ToolUse {
        id: text_of(payload, "tool_use_id").to_owned(),
        name: text_of(payload, "tool_name").to_owned(),
        input: payload["tool_input"].clone(),
    }
}

/// Leaves out what the model only says of its command: it is not a fact, and not in every hook.
pub(crate) fn forget_description(tool: &mut ToolUse) {
    if tool.input["command"].is_string()
        && let Some(input) = tool.input.as_object_mut()
    {
        input.remove("description");
    }
}

/// The steps whose events and fields are the same wherever they exist. An agent that differs says so first.
pub(crate) fn step(payload: &Value) -> AgentStep {
    let text = |field: &str| text_of(payload, field).to_owned();
    match text_of(payload, "hook_event_name") {
        "UserPromptSubmit" => AgentStep::Prompt(text("prompt")),
        "PreToolUse" => AgentStep::BeforeTool(tool(payload)),
        "PermissionRequest" => {
            AgentStep::AsksPermission { tool: tool(payload), is_person_certain: false }
        }
        "PermissionDenied" => AgentStep::ToolDenied(tool(payload)),
        "PostToolUse" => AgentStep::ToolEnded(tool(payload), ending(payload)),
        "PostToolUseFailure" => AgentStep::ToolEnded(tool(payload), failure(payload)),
        "PostToolBatch" => AgentStep::BatchEnded(batch(payload)),
        "SubagentStart" => AgentStep::HelperBegan(text("agent_type")),
        "SubagentStop" => AgentStep::HelperEnded(text("agent_type")),
        "Stop" => AgentStep::Ended {
            text: text("last_assistant_message"),
            running: payload["background_tasks"].as_array().map_or(0, Vec::len),
        },
        "StopFailure" => AgentStep::Failed(reason(payload)),
        "SessionEnd" => AgentStep::Closed,
        "SessionStart" => AgentStep::Nothing,
        _ => AgentStep::Unknown,
    }
}

/// How a tool ended that did not fail.
pub(crate) fn ending(payload: &Value) -> ToolEnding {
    let details = payload["tool_response"].clone();
    let printed = details["stdout"].as_str().or(details.as_str()).map(str::to_owned);
    ToolEnding {
        printed,
        details,
        duration_ms: payload["duration_ms"].as_u64(),
        ..ToolEnding::default()
    }
}

/// How a tool ended that failed.
pub(crate) fn failure(payload: &Value) -> ToolEnding {
    ToolEnding { failure: Some(reason(payload)), ..ending(payload) }
}

/// Why something failed, as far as the agent says.
pub(crate) fn reason(payload: &Value) -> String {
    let fields = ["error", "error_message", "message", "reason"].map(|it| text_of(payload, it));
    fields.into_iter().find(|it| !it.is_empty()).unwrap_or_default().to_owned()
}

fn batch(payload: &Value) -> Vec<(ToolUse, String)> {
    let calls = payload["tool_calls"].as_array().into_iter().flatten();
    calls.map(|call| (tool(call), text_of(call, "tool_response").to_owned())).collect()
}

/// The answer of a hook that runs before a tool.
pub(crate) fn before_tool(decision: &str, reason: &str) -> HookAnswer {
    HookAnswer::printed(json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    } }))
}

/// The answer of a hook that runs where the agent asks.
pub(crate) fn permission(decision: &Value) -> HookAnswer {
    HookAnswer::printed(
        json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }),
    )
}

/// The answers, as Claude Code understands them.
pub(crate) fn answer(decision: &GateDecision<'_>) -> HookAnswer {
    match decision {
        GateDecision::PassTool => HookAnswer::default(),
        GateDecision::RefuseTool(why) => before_tool("deny", why),
        GateDecision::AskInWindow(why) => before_tool("ask", why),
        GateDecision::AskLater(why) => before_tool("defer", why),
        GateDecision::Allow => permission(&json!({ "behavior": "allow" })),
        GateDecision::Deny(why) => permission(&json!({ "behavior": "deny", "message": why })),
        GateDecision::Answers(input) => {
            permission(&json!({ "behavior": "allow", "updatedInput": input }))
        }
    }
}
