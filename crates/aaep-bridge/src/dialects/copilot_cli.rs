//! GitHub Copilot CLI. Facts were recorded from version 1.0.102.
//!
//! Its payloads do not name their event. It reports that it asks for permission even where a flag answers, so we ask
//! before the tool. While a hook for its own dialog runs, it shows no dialog.

use serde_json::{Value, json};

use super::claude_shape::{self, asks, gate, reports};
use crate::dialect::{
    AgentDialect, AgentMessage, AgentStep, AskStages, GateAsker, GateDecision, GateStyle,
    HookAnswer, HookPoint, ToolEnding, ToolUse, text_of,
};
use crate::settings::{SettingsForm, SettingsTraits};
use crate::tools::ToolEffect::{Fetch, Helper, Question, Quiet, Read, Search, Shell, Tasks, Write};
use crate::tools::{ToolRow, row};

/// GitHub Copilot CLI.
pub(crate) struct CopilotCli;

const HOOKS: &[HookPoint] = &[
    reports("userPromptSubmitted"),
    gate("preToolUse"),
    asks("permissionRequest"),
    reports("postToolUse"),
    reports("notification"),
    reports("errorOccurred"),
    reports("agentStop"),
    reports("sessionEnd"),
];

const TOOLS: &[ToolRow] = &[
    row(SHELL, Shell, "command"),
    row("view", Read, "path"),
    row("create", Write, "path"),
    row("edit", Write, "path"),
    row("glob", Search, "path"),
    row("grep", Search, "path"),
    row("web_fetch", Fetch, "url"),
    row("task", Helper, "agent_type"),
    row("update_todo", Tasks, ""),
    row("report_intent", Quiet, ""),
    row("read_bash", Quiet, ""),
    row("ask_user", Question, ""),
];

const SHELL: &str = "bash";

impl AgentDialect for CopilotCli {
    fn id(&self) -> &'static str {
        "copilot-cli"
    }

    fn name(&self) -> &'static str {
        "Copilot CLI"
    }

    fn hooks(&self) -> &'static [HookPoint] {
        HOOKS
    }

    fn read(&self, event: &str, payload: &Value) -> AgentMessage {
        let step = match event {
            "userPromptSubmitted" => AgentStep::Prompt(text_of(payload, "prompt").to_owned()),
            "preToolUse" => AgentStep::BeforeTool(tool(payload, "toolArgs")),
            "permissionRequest" => AgentStep::AsksPermission {
                tool: tool(payload, "toolInput"),
                is_person_certain: false,
            },
            "postToolUse" => after(payload),
            "agentStop" => AgentStep::Ended { text: String::new(), running: 0 },
            "sessionEnd" => AgentStep::Closed,
            "notification" | "Notification" => match text_of(payload, "notification_type") {
                "permission_prompt" => AgentStep::Waits(text_of(payload, "message").to_owned()),
                _ => AgentStep::Nothing,
            },
            "errorOccurred" => {
                let error = text_of(&payload["error"], "message").to_owned();
                match payload["recoverable"].as_bool() {
                    Some(false) => AgentStep::Failed(error),
                    _ => AgentStep::Trouble(error),
                }
            }
            "sessionStart" => AgentStep::Nothing,
            _ => AgentStep::Unknown,
        };
        AgentMessage {
            event: event.to_owned(),
            session: text_of(payload, "sessionId").to_owned(),
            turn: String::new(),
            folder: text_of(payload, "cwd").to_owned(),
            step,
        }
    }

    fn tools(&self) -> &'static [ToolRow] {
        TOOLS
    }

    fn gate(&self) -> GateStyle {
        GateStyle {
            asker: GateAsker::Bridge,
            stages: AskStages::GateFirst,
            may_still_refuse: false,
            silence_is_no: true,
            reports_dialogs: false,
        }
    }

    fn settings(&self) -> SettingsTraits {
        SettingsTraits {
            form: SettingsForm::JsonList,
            names_event: true,
            place: ("COPILOT_HOME", ".copilot", "settings.json"),
            ..claude_shape::SETTINGS
        }
    }

    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer {
        HookAnswer::printed(match decision {
            GateDecision::PassTool => json!({ "permissionDecision": "allow" }),
            GateDecision::RefuseTool(why) | GateDecision::AskLater(why) => {
                json!({ "permissionDecision": "deny", "permissionDecisionReason": why })
            }
            GateDecision::Allow => json!({ "behavior": "allow" }),
            GateDecision::Deny(why) => json!({ "behavior": "deny", "message": why }),
            GateDecision::AskInWindow(_) | GateDecision::Answers(_) => {
                return HookAnswer::default();
            }
        })
    }
}

/// The tool. Of a command, only the command itself is in both of its hooks.
fn tool(payload: &Value, field: &str) -> ToolUse {
    let name = text_of(payload, "toolName").to_owned();
    let input = match &payload[field] {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        input => input.clone(),
    };
    let input = match input["command"].as_str() {
        Some(command) if name == SHELL => json!({ "command": command }),
        _ => input,
    };
    ToolUse { id: String::new(), name, input }
}

fn after(payload: &Value) -> AgentStep {
    let tool = tool(payload, "toolArgs");
    let result = &payload["toolResult"];
    let text = text_of(result, "textResultForLlm");
    let (printed, exit_code) = match text.trim_end().rsplit_once('\n') {
        Some((printed, last)) if last.starts_with("<shellId: ") => (printed, exit_code(last)),
        _ => (text, None),
    };
    let failure = match (text_of(result, "resultType"), exit_code) {
        ("denied" | "rejected", _) => return AgentStep::BatchEnded(vec![(tool, text.to_owned())]),
        ("success", None | Some(0)) => None,
        ("success", Some(code)) => {
            Some(format!("It ended with exit code {code}. {}", printed.trim()))
        }
        _ => Some(printed.trim().to_owned()),
    };
    let printed = Some(printed.to_owned());
    AgentStep::ToolEnded(tool, ToolEnding { printed, failure, ..ToolEnding::default() })
}

/// The exit code in the last line of a result.
fn exit_code(line: &str) -> Option<i64> {
    let (_, code) = line.split_once(" completed with exit code ")?;
    code.strip_suffix('>')?.parse().ok()
}
