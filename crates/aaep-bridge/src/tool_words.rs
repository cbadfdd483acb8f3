//! What a tool does, in words for people. The words follow from the arguments and the results, never from what the
//! model says of them.

use serde_json::Value;

use crate::event::{count, shortened_to};
use crate::risk::AgentAction;

/// How much of a command, a pattern or a path is said while it runs. A question says all of it.
const MAX_SAID_CHARS: usize = 160;

/// The path as seen from the project.
pub(crate) fn within<'p>(path: &'p str, project: &str) -> &'p str {
    let inside = path.strip_prefix(project.trim_end_matches('/'));
    inside.and_then(|it| it.strip_prefix('/')).filter(|it| !it.is_empty()).unwrap_or(path)
}

/// The last two folders of a path, as people name a project.
pub(crate) fn project_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let from = parts.len().saturating_sub(2);
    shortened_to(&parts[from..].join("/"), 120)
}

/// A command as one line.
pub(crate) fn command_in_short(command: &str) -> String {
    let mut lines = command.lines().map(str::trim).filter(|it| !it.is_empty());
    let first = shortened_to(lines.next().unwrap_or("nothing"), MAX_SAID_CHARS);
    match lines.count() {
        0 => first,
        more => format!("{first} (and {} more)", count(more as u64, "line")),
    }
}

/// What the agent does with the action, as a sentence.
pub(crate) fn action_sentence(action: &AgentAction, tool: &str, project: &str) -> String {
    let path = |path: &str| shortened_to(within(path, project), MAX_SAID_CHARS);
    match action {
        AgentAction::Shell(command) => format!("Runs: {}", command_in_short(command)),
        AgentAction::ReadPath(it) => format!("Reads {}.", path(it)),
        AgentAction::WritePath(it) => format!("Changes {}.", path(it)),
        AgentAction::DeletePath(it) => format!("Deletes {}.", path(it)),
        AgentAction::Fetch(it) => format!("Reads {}.", shortened_to(it, MAX_SAID_CHARS)),
        AgentAction::Nothing | AgentAction::Unknown => {
            format!("Uses {}.", tool_name_in_words(tool))
        }
    }
}

/// A command that is given as words, as a shell would read it.
pub(crate) fn quoted_words(words: &[&str]) -> String {
    let quoted = words.iter().map(|it| format!("'{}'", it.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// The name of a tool in words: the tools of MCP servers are named by both.
pub(crate) fn tool_name_in_words(tool: &str) -> String {
    let tool = shortened_to(tool, MAX_SAID_CHARS);
    match tool.strip_prefix("mcp__").and_then(|it| it.split_once("__")) {
        Some((server, name)) => format!("{name} of {server}"),
        None => tool,
    }
}

/// What a patch changes: added and removed lines.
pub(crate) fn patch_counts(hunks: &Value) -> (u64, u64) {
    let lines = hunks.as_array().into_iter().flatten();
    let lines = lines.flat_map(|hunk| hunk["lines"].as_array().into_iter().flatten());
    lines.filter_map(Value::as_str).fold((0, 0), |(added, removed), line| {
        match line.as_bytes().first() {
            Some(b'+') => (added + 1, removed),
            Some(b'-') => (added, removed + 1),
            _ => (added, removed),
        }
    })
}

/// "3 lines added, 1 line removed".
pub(crate) fn patch_words((added, removed): (u64, u64)) -> String {
    match (added, removed) {
        (0, 0) => "no lines changed".to_owned(),
        (added, 0) => format!("{} added", count(added, "line")),
        (0, removed) => format!("{} removed", count(removed, "line")),
        (added, removed) => {
            format!("{} added, {} removed", count(added, "line"), count(removed, "line"))
        }
    }
}

/// How long something took: "40 seconds", "3 minutes".
pub(crate) fn duration_words(milliseconds: i64) -> String {
    let seconds = u64::try_from(milliseconds / 1000).unwrap_or(0);
    match seconds {
        0 => "less than a second".to_owned(),
        1..=119 => count(seconds, "second"),
        120..=7199 => count(seconds / 60, "minute"),
        _ => count(seconds / 3600, "hour"),
    }
}
