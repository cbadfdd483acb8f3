//! The tools of `OpenCode`, as calls of the Agent Client Protocol.

use serde_json::{Value, json};

use crate::dialect::text_of;

/// A tool that is used. The call has no status yet.
pub(super) fn call(part: &Value) -> Value {
    let (tool, state) = (text_of(part, "tool"), &part["state"]);
    let input = &state["input"];
    let mut call = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": part["callID"],
        "name": tool,
        "kind": kind(tool),
        "rawInput": input,
    });
    if let (Some(old), Some(new)) = (input["oldString"].as_str(), input["newString"].as_str()) {
        call["content"] = json!([{ "type": "diff", "path": input["filePath"], "oldText": old,
            "newText": new }]);
    }
    if state["status"] == "completed" {
        call["rawOutput"] = json!({ "output": state["output"],
            "metadata": { "exit": state["metadata"]["exit"] } });
    } else if state["status"] == "error" {
        call["rawOutput"] = json!({ "error": state["error"] });
    }
    call
}

/// What a tool does, as far as its name says. One that is not known is of no kind.
pub(super) fn kind(tool: &str) -> &'static str {
    match tool {
        "bash" => "execute",
        "read" => "read",
        "glob" | "grep" | "list" => "search",
        "edit" | "write" | "multiedit" => "edit",
        "webfetch" => "fetch",
        "task" | "todoread" | "todowrite" | "websearch" | "codesearch" => "think",
        _ => "other",
    }
}

/// How far a tool is. `None` if there is nothing to tell yet.
pub(super) fn status(state: &Value) -> Option<&'static str> {
    match text_of(state, "status") {
        // It says that it runs before it asks; once it really runs, it has something to say of it.
        "running" if state["metadata"].is_object() => Some("in_progress"),
        "running" => Some("pending"),
        "completed" if state["metadata"]["exit"].as_i64().is_some_and(|it| it != 0) => {
            Some("failed")
        }
        "completed" => Some("completed"),
        "error" => Some("failed"),
        _ => None,
    }
}

/// What a request for permission is about, if that is more than the tool itself.
pub(super) fn scope(request: &Value, tool: Option<&str>) -> Option<String> {
    let asked = text_of(request, "permission");
    let is_its_own = tool.is_some_and(|tool| match tool {
        "write" | "multiedit" | "patch" | "apply_patch" => asked == "edit" || asked == tool,
        _ => asked == tool,
    });
    if is_its_own {
        return None;
    }
    let patterns = request["patterns"].as_array().into_iter().flatten();
    let patterns: Vec<&str> = patterns.filter_map(Value::as_str).collect();
    Some(format!("{asked} for {}", patterns.join(", ")))
}
