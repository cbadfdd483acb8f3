//! What came of a tool, from what the agent's program gives back, never from what the model says.

use super::ToolRequest;
use crate::dialect::ToolEnding;
use crate::event::{count, shortened_to};
use crate::risk::AgentAction;
use crate::tool_words::{patch_counts, patch_words, tool_name_in_words, within};

impl ToolRequest {
    /// What came of it, and which files it changed.
    pub(crate) fn result(&self, ending: &ToolEnding, project: &str) -> (String, Vec<String>) {
        let mut changed = Vec::new();
        let details = &ending.details;
        let words = match self.actions.as_slice() {
            [AgentAction::WritePath(path)] => {
                let path = within(path, project);
                changed.push(path.to_owned());
                match (details["type"].as_str(), details.get("structuredPatch")) {
                    (Some("create"), _) => format!("{path} was created."),
                    (_, Some(hunks)) => format!("{path}: {}.", patch_words(patch_counts(hunks))),
                    _ => format!("{path} was changed."),
                }
            }
            [AgentAction::ReadPath(path)] => {
                let path = within(path, project);
                match details["file"]["numLines"].as_u64() {
                    Some(lines) => format!("{path}: {}.", count(lines, "line")),
                    None => format!("{path} was read."),
                }
            }
            [AgentAction::Shell(_), ..] => shell_result(ending, project, &mut changed),
            actions => {
                let files = actions.iter().filter_map(|action| match action {
                    AgentAction::WritePath(it) | AgentAction::DeletePath(it) => Some(it),
                    _ => None,
                });
                changed.extend(files.map(|it| within(it, project).to_owned()));
                let name = tool_name_in_words(self.name.as_str());
                if details["isAsync"].as_bool() == Some(true) {
                    format!("{name} goes on in the background.")
                } else {
                    format!("{name} is done.")
                }
            }
        };
        (words, changed)
    }
}

/// What a command left behind: the files that it changed, and the last line that it printed.
fn shell_result(ending: &ToolEnding, project: &str, changed: &mut Vec<String>) -> String {
    let details = &ending.details;
    let files = details["bashEditDiff"]["files"].as_array().into_iter().flatten();
    let mut words: Vec<String> = Vec::new();
    for file in files.take(16) {
        let path = within(file["filePath"].as_str().unwrap_or_default(), project).to_owned();
        let is = |field: &str| file[field].as_bool() == Some(true);
        words.push(if is("created") {
            format!("created {path}")
        } else if is("deleted") {
            format!("deleted {path}")
        } else {
            format!("changed {path}, {}", patch_words(patch_counts(&file["hunks"])))
        });
        changed.push(path);
    }
    if details["interrupted"].as_bool() == Some(true) {
        words.push("it was interrupted".to_owned());
    }
    if words.is_empty() {
        let done = if ending.is_outcome_unknown { "Ended" } else { "Done" };
        let printed = ending.printed.as_deref().unwrap_or_default();
        let last = printed.lines().map(str::trim).rfind(|it| !it.is_empty());
        return match last {
            Some(last) => format!("{done}. Its last line: {}", shortened_to(last, 160)),
            None => format!("{done}. It printed nothing."),
        };
    }
    format!("Done: {}.", words.join("; "))
}
