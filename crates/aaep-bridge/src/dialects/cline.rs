//! Cline. Facts were recorded from version 3.0.65.
//!
//! Its hooks are programs in a folder. Only `{"cancel":true}` keeps a tool from running; exit codes do not. How long it
//! waits for a hook is not known for certain, so the person has one minute.

use serde_json::{Value, json};

use super::claude_shape::{self, gate, reports};
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, AskTimes, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, ToolEnding, ToolUse, text_of,
};
use crate::settings::{SettingsForm, SettingsTraits};
use crate::tools::ToolEffect::{Search, ShellList, Write};
use crate::tools::{ToolRow, row};

/// Cline.
pub(crate) struct Cline;

const HOOKS: &[HookPoint] =
    &[reports("TaskStart"), gate("PreToolUse"), reports("PostToolUse"), reports("TaskComplete")];

const TOOLS: &[ToolRow] = &[
    row("run_commands", ShellList, "commands"),
    row("search_codebase", Search, "path"),
    row("editor", Write, "path"),
];

impl AgentDialect for Cline {
    fn id(&self) -> &'static str {
        "cline"
    }

    fn name(&self) -> &'static str {
        "Cline"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, _event: &str, payload: &Value) -> AgentMessage {
        let is_helper = payload["parent_agent_id"].is_string();
        let step = match text_of(payload, "hookName") {
            "agent_start" if is_helper => AgentStep::HelperBegan(String::new()),
            "agent_start" => AgentStep::Prompt(String::new()),
            "tool_call" => AgentStep::BeforeTool(tool(&payload["tool_call"])),
            "tool_result" => after(payload),
            "agent_end" if is_helper => AgentStep::HelperEnded(String::new()),
            "agent_end" => AgentStep::Ended {
                text: text_of(&payload["turn"], "outputText").to_owned(),
                running: 0,
            },
            _ => AgentStep::Unknown,
        };
        let roots = payload["workspaceInfo"]["rootPath"].as_str();
        AgentMessage {
            event: text_of(payload, "hookName").to_owned(),
            session: text_of(payload, "taskId").to_owned(),
            turn: String::new(),
            folder: roots.or(payload["workspaceRoots"][0].as_str()).unwrap_or_default().to_owned(),
            step,
        }
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

    fn times(&self) -> AskTimes {
        AskTimes { first_seconds: 60, longest_seconds: 60, hook_seconds: 100 }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            form: SettingsForm::Programs,
            place: ("", ".cline", "hooks"),
            ..claude_shape::SETTINGS
        }
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        match decision {
            GateDecision::RefuseTool(why) => {
                HookAnswer::printed(json!({ "cancel": true, "errorMessage": why }))
            }
            _ => HookAnswer::default(),
        }
    }
}

fn tool(call: &Value) -> ToolUse {
    ToolUse {
        id: text_of(call, "id").to_owned(),
        name: text_of(call, "name").to_owned(),
        input: call["input"].clone(),
    }
}

fn after(payload: &Value) -> AgentStep {
    let result = &payload["tool_result"];
    let outputs = || result["output"].as_array().into_iter().flatten();
    let printed: Vec<&str> = outputs().filter_map(|it| it["result"].as_str()).collect();
    let printed = printed.join("\n");
    let has_failed = outputs().any(|it| it["success"].as_bool() == Some(false))
        || payload["postToolUse"]["success"].as_bool() == Some(false);
    let error = outputs().find_map(|it| it["error"].as_str()).unwrap_or(&printed);
    let ending = ToolEnding {
        failure: has_failed.then(|| error.to_owned()),
        printed: Some(printed.clone()),
        duration_ms: result["durationMs"].as_u64(),
        ..ToolEnding::default()
    };
    AgentStep::ToolEnded(tool(result), ending)
}
