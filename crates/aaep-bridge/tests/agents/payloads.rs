//! Payloads in the shapes of each agent, for a turn in which it wants to delete a folder.

use aaep_bridge::BridgedAgent;
use serde_json::{Value, json};

/// A moment of a turn, which each agent reports in its own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnMoment {
    Prompt,
    BeforeTool,
    AsksPermission,
    ToolEnded,
    End,
    Closed,
}

const PROJECT: &str = "/home/ada/work/shop";

/// The name of the event and its payload. `None` if the agent reports no such moment.
pub(crate) fn payload(
    agent: BridgedAgent,
    moment: TurnMoment,
    command: &str,
) -> Option<(&'static str, Value)> {
    match agent {
        BridgedAgent::ClaudeCode | BridgedAgent::Codex | BridgedAgent::QwenCode => {
            Some(claude_shaped(agent, moment, command))
        }
        BridgedAgent::GeminiCli => Some(gemini(moment, command)),
        BridgedAgent::CopilotCli => Some(copilot(moment, command)),
        BridgedAgent::KimiCode => Some(kimi(moment, command)),
        BridgedAgent::Cline => cline(moment, command),
    }
}

fn with(base: &Value, more: &Value) -> Value {
    let mut all = base.clone();
    for (key, value) in more.as_object().expect("fields") {
        all[key] = value.clone();
    }
    all
}

fn claude_shaped(agent: BridgedAgent, moment: TurnMoment, command: &str) -> (&'static str, Value) {
    let is_qwen = agent == BridgedAgent::QwenCode;
    let turn = if agent == BridgedAgent::Codex { "turn_id" } else { "prompt_id" };
    let tool = if is_qwen { "run_shell_command" } else { "Bash" };
    let (event, more) = match moment {
        TurnMoment::Prompt => ("UserPromptSubmit", json!({ "prompt": "Tidy up." })),
        TurnMoment::BeforeTool => (
            "PreToolUse",
            json!({ "tool_name": tool, "tool_input": { "command": command }, "tool_use_id": "t1" }),
        ),
        TurnMoment::AsksPermission => (
            "PermissionRequest",
            json!({ "tool_name": tool,
                "tool_input": { "command": command, "description": "May I list files?" } }),
        ),
        TurnMoment::ToolEnded => {
            let response = if is_qwen {
                json!({ "llmContent": "Output: (empty)\nExit Code: 0", "returnDisplay": "" })
            } else {
                json!("")
            };
            let input = json!({ "command": command });
            (
                "PostToolUse",
                json!({ "tool_name": tool, "tool_input": input, "tool_use_id": "t1", "tool_response": response }),
            )
        }
        TurnMoment::End => ("Stop", json!({ "last_assistant_message": "It is gone." })),
        TurnMoment::Closed => ("SessionEnd", json!({ "reason": "other" })),
    };
    let mut base = json!({ "session_id": "s1", "cwd": PROJECT, "hook_event_name": event,
        "permission_mode": "default" });
    // Not every hook of Qwen Code names the prompt.
    if !(is_qwen && moment == TurnMoment::BeforeTool) && moment != TurnMoment::Closed {
        base[turn] = "p1".into();
    }
    (event, with(&base, &more))
}

fn gemini(moment: TurnMoment, command: &str) -> (&'static str, Value) {
    let tool = json!({ "tool_name": "run_shell_command",
        "tool_input": { "command": command, "description": "Lists files" } });
    let (event, more) = match moment {
        TurnMoment::Prompt => ("BeforeAgent", json!({ "prompt": "Tidy up." })),
        TurnMoment::BeforeTool => ("BeforeTool", tool),
        TurnMoment::AsksPermission => (
            "Notification",
            json!({ "notification_type": "ToolPermission", "message": "Confirm",
                "details": { "type": "exec", "title": "Confirm", "command": command } }),
        ),
        TurnMoment::ToolEnded => (
            "AfterTool",
            with(&tool, &json!({ "tool_response": { "llmContent": "Output: (empty)" } })),
        ),
        TurnMoment::End => ("AfterAgent", json!({ "prompt_response": "It isIt is gone." })),
        TurnMoment::Closed => ("SessionEnd", json!({ "reason": "exit" })),
    };
    let base = json!({ "session_id": "s1", "cwd": PROJECT, "hook_event_name": event });
    (event, with(&base, &more))
}

fn copilot(moment: TurnMoment, command: &str) -> (&'static str, Value) {
    let arguments = json!({ "command": command, "description": "Lists files" });
    let (event, more) = match moment {
        TurnMoment::Prompt => ("userPromptSubmitted", json!({ "prompt": "Tidy up." })),
        TurnMoment::BeforeTool => {
            ("preToolUse", json!({ "toolName": "bash", "toolArgs": arguments }))
        }
        TurnMoment::AsksPermission => (
            "permissionRequest",
            json!({ "toolName": "bash", "toolInput": { "command": command } }),
        ),
        TurnMoment::ToolEnded => (
            "postToolUse",
            json!({ "toolName": "bash", "toolArgs": arguments, "toolResult": { "resultType": "success",
                "textResultForLlm": "\n<shellId: 0 completed with exit code 0>" } }),
        ),
        TurnMoment::End => ("agentStop", json!({ "stopReason": "end_turn" })),
        TurnMoment::Closed => ("sessionEnd", json!({ "reason": "complete" })),
    };
    (event, with(&json!({ "sessionId": "s1", "cwd": PROJECT }), &more))
}

fn kimi(moment: TurnMoment, command: &str) -> (&'static str, Value) {
    let tool = json!({ "tool_name": "Bash", "tool_call_id": "t1",
        "tool_input": { "command": command, "description": "Lists files" } });
    let (event, more) = match moment {
        TurnMoment::Prompt => {
            ("UserPromptSubmit", json!({ "prompt": [{ "type": "text", "text": "Tidy up." }] }))
        }
        TurnMoment::BeforeTool => ("PreToolUse", tool),
        TurnMoment::AsksPermission => ("PermissionRequest", with(&tool, &json!({ "id": "a1" }))),
        TurnMoment::ToolEnded => ("PostToolUse", with(&tool, &json!({ "tool_output": "" }))),
        TurnMoment::End => ("Stop", json!({ "stop_hook_active": false })),
        TurnMoment::Closed => ("SessionEnd", json!({ "reason": "exit" })),
    };
    let base = json!({ "session_id": "s1", "cwd": PROJECT, "hook_event_name": event });
    (event, with(&base, &more))
}

fn cline(moment: TurnMoment, command: &str) -> Option<(&'static str, Value)> {
    let call = json!({ "id": "t1", "name": "run_commands", "input": { "commands": [command] } });
    let (event, name, more) = match moment {
        TurnMoment::Prompt => ("TaskStart", "agent_start", json!({})),
        TurnMoment::BeforeTool => ("PreToolUse", "tool_call", json!({ "tool_call": call })),
        TurnMoment::ToolEnded => {
            let output = json!({ "output": [{ "query": command, "result": "", "success": true }] });
            ("PostToolUse", "tool_result", json!({ "tool_result": with(&call, &output) }))
        }
        TurnMoment::End => {
            ("TaskComplete", "agent_end", json!({ "turn": { "outputText": "It is gone." } }))
        }
        TurnMoment::AsksPermission | TurnMoment::Closed => return None,
    };
    let base = json!({ "taskId": "s1", "workspaceRoots": [PROJECT], "hookName": name,
        "parent_agent_id": null });
    Some((event, with(&base, &more)))
}
