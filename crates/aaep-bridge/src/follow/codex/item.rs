//! The items of a turn of Codex: commands, changes of files and tools, as calls of the Agent Client Protocol.

use serde_json::{Value, json};

use crate::dialect::text_of;
use crate::event::shortened_to;

/// What an item is.
#[derive(Debug, PartialEq)]
pub(super) enum CodexItem {
    /// Words of the person.
    Prompt(Value),
    /// A message to the person.
    Message,
    /// A tool. The call has no status yet.
    Tool(Value),
    /// Something to tell as it is.
    Told(String),
    /// Nothing that anybody has to hear.
    Quiet,
    /// Something that is not known.
    Unknown,
}

/// Reads an item.
pub(super) fn read(item: &Value) -> CodexItem {
    match text_of(item, "type") {
        "userMessage" => CodexItem::Prompt(prompt(&item["content"])),
        "agentMessage" | "plan" => CodexItem::Message,
        // What is written to a command that runs already has a message of its own.
        "commandExecution" if item["source"] == "unifiedExecInteraction" => CodexItem::Quiet,
        "commandExecution" => CodexItem::Tool(command(item)),
        "fileChange" => CodexItem::Tool(file_change(item)),
        "mcpToolCall" => CodexItem::Tool(mcp_call(item)),
        "dynamicToolCall" => CodexItem::Tool(json!({ "name": item["tool"], "kind": "other",
            "rawInput": item["arguments"] })),
        "webSearch" => CodexItem::Tool(json!({ "name": "web_search", "kind": "think",
            "rawInput": { "query": item["query"] } })),
        "imageView" => CodexItem::Tool(json!({ "name": "view_image", "kind": "read",
            "rawInput": { "path": item["path"] } })),
        "subAgentActivity" => {
            let what = match text_of(item, "kind") {
                "started" => "begins",
                "completed" => "is done",
                "interrupted" => "was stopped",
                _ => return CodexItem::Quiet,
            };
            let name = shortened_to(text_of(item, "agentPath"), 80);
            CodexItem::Told(format!("A helper {what}: {name}."))
        }
        "reasoning"
        | "hookPrompt"
        | "contextCompaction"
        | "sleep"
        | "enteredReviewMode"
        | "exitedReviewMode"
        | "collabAgentToolCall"
        | "functionCallOutput"
        | "imageGeneration" => CodexItem::Quiet,
        _ => CodexItem::Unknown,
    }
}

/// The status of an item that ended.
pub(super) fn end_status(item: &Value) -> &'static str {
    match text_of(item, "status") {
        "failed" => "failed",
        "declined" => "declined",
        _ if item["success"] == false => "failed",
        _ => "completed",
    }
}

/// Words of the person, as blocks.
fn prompt(content: &Value) -> Value {
    let parts = content.as_array().into_iter().flatten();
    let blocks = parts.filter_map(|part| match text_of(part, "type") {
        "text" => Some(json!({ "type": "text", "text": part["text"] })),
        "image" | "localImage" => Some(json!({ "type": "image" })),
        _ => None,
    });
    blocks.collect()
}

fn command(item: &Value) -> Value {
    json!({
        "name": "exec_command",
        "kind": "execute",
        "rawInput": command_input(item),
        "rawOutput": { "exit_code": item["exitCode"], "output": item["aggregatedOutput"] },
    })
}

/// A command and its folder.
pub(super) fn command_input(from: &Value) -> Value {
    json!({ "command": without_shell(text_of(from, "command")), "cwd": from["cwd"] })
}

/// The command that is given to a shell, if it stands there as it is. Otherwise all of it.
fn without_shell(command: &str) -> &str {
    let inner = || {
        let (shell, rest) = command.split_once(' ')?;
        let name = shell.rsplit('/').next()?;
        let rest = rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c "))?;
        let inner = rest.strip_prefix('\'')?.strip_suffix('\'')?;
        let is_plain = matches!(name, "bash" | "sh" | "zsh") && !inner.contains('\'');
        is_plain.then_some(inner)
    };
    inner().unwrap_or(command)
}

fn file_change(item: &Value) -> Value {
    let changes = item["changes"].as_array().map_or(&[][..], Vec::as_slice);
    let content: Vec<Value> = changes.iter().map(diff).collect();
    let moved = changes.iter().filter_map(|it| it["kind"]["move_path"].as_str());
    let locations: Vec<Value> = moved.map(|path| json!({ "path": path })).collect();
    json!({
        "name": "apply_patch", "kind": "edit", "content": content, "locations": locations,
        "rawInput": { "changes": item["changes"] },
    })
}

/// A changed file: the lines that are removed and those that are added.
fn diff(change: &Value) -> Value {
    let text = text_of(change, "diff");
    let (old, new) = match text_of(&change["kind"], "type") {
        "add" => (Value::Null, text.into()),
        "delete" => (text.into(), Value::Null),
        _ => {
            let is_heading = |it: &&str| it.starts_with("+++ ") || it.starts_with("--- ");
            let lines = || text.lines().filter(|it| !is_heading(it));
            let with = |sign: char| {
                let found = lines().filter_map(|it| it.strip_prefix(sign));
                found.flat_map(|it| [it, "\n"]).collect::<String>()
            };
            (with('-').into(), with('+').into())
        }
    };
    json!({ "type": "diff", "path": change["path"], "oldText": old, "newText": new })
}

fn mcp_call(item: &Value) -> Value {
    let name = format!("mcp__{}__{}", text_of(item, "server"), text_of(item, "tool"));
    let parts = item["result"]["content"].as_array().into_iter().flatten();
    let said = parts.filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n");
    let error = item["error"]["message"].as_str().unwrap_or_default();
    json!({
        "name": name, "kind": "other", "rawInput": item["arguments"],
        "rawOutput": { "error": error, "output": said },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_without_its_shell_only_if_it_stands_there_as_it_is() {
        for (command, inner) in
            [("/bin/bash -lc 'rm -rf build && ls'", "rm -rf build && ls"), ("zsh -c 'ls'", "ls")]
        {
            assert_eq!(without_shell(command), inner);
        }
        for whole in [
            "/bin/bash -lc 'echo '\"'\"'x'",
            "/bin/bash -lc 'a' 'b'",
            "/bin/bash -lc \"rm -rf build\"",
            "python3 -c 'x'",
            "bash -xc 'x'",
            "ls",
            "",
        ] {
            assert_eq!(without_shell(whole), whole);
        }
    }

    #[test]
    fn a_heading_of_a_patch_is_not_a_changed_line() {
        let change = json!({ "path": "/p/a", "kind": { "type": "update" },
            "diff": "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" });
        let diff = diff(&change);
        assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("two\n"), &json!("2\n")));
    }
}
