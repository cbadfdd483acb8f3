//! The tools of Claude Code: what each does, and in which words.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::Value;

use crate::event::count;
use crate::risk::AgentAction;
use crate::tool_words::{action_sentence, patch_counts, patch_words, tool_name_in_words, within};

/// A tool that the agent wants to use, with its arguments.
pub(super) struct ToolRequest {
    /// The name, in the form of the specification.
    pub(super) name: ToolName,
    pub(super) input: Value,
    pub(super) action: AgentAction,
    /// The digest of name and arguments. Empty if they have none.
    pub(super) digest: String,
}

/// The tool with which the agent puts questions to the person.
pub(super) const QUESTION_TOOL: &str = "AskUserQuestion";

/// How much of a replaced text is said in a question. Longer ones are told by their lines.
const MAX_TOLD_EDIT_CHARS: usize = 400;

impl ToolRequest {
    pub(super) fn new(name: &str, input: &Value) -> Self {
        let name = ToolName::parse(name).or_else(|_| {
            let valid = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
            ToolName::parse(&format!("_{}", name.chars().take(200).map(valid).collect::<String>()))
        });
        let name = name.unwrap_or_else(|_| ToolName::parse("tool").expect("a valid name"));
        let digest = action_digest(&name, input).map(|it| it.as_str().to_owned());
        ToolRequest {
            action: action_of(name.as_str(), input),
            digest: digest.unwrap_or_default(),
            name,
            input: input.clone(),
        }
    }

    pub(super) fn is_question(&self) -> bool {
        self.name.as_str() == QUESTION_TOOL
    }

    /// What it does, while it runs.
    pub(super) fn sentence(&self, project: &str) -> String {
        let field = |name: &str| self.input[name].as_str().unwrap_or_default();
        match self.name.as_str() {
            "Agent" | "Task" if !field("subagent_type").is_empty() => {
                format!(
                    "Starts a helper: {}.",
                    crate::event::shortened_to(field("subagent_type"), 80)
                )
            }
            "Glob" | "Grep" => {
                format!("Searches for {}.", crate::event::shortened_to(field("pattern"), 160))
            }
            "WebSearch" => {
                format!("Searches the web for {}.", crate::event::shortened_to(field("query"), 160))
            }
            "TodoWrite" | "TaskCreate" | "TaskUpdate" => "Updates its list of tasks.".to_owned(),
            tool => action_sentence(&self.action, tool, project),
        }
    }

    /// What the person is asked, whole: nothing that would be done is left out.
    pub(super) fn question(&self, project: &str) -> String {
        let field = |name: &str| self.input[name].as_str();
        match &self.action {
            AgentAction::Shell(command) => format!("Run the command: {command}"),
            AgentAction::ReadPath(path) => format!("Read {}.", within(path, project)),
            AgentAction::DeletePath(path) => format!("Delete {}.", within(path, project)),
            AgentAction::Fetch(address) => format!("Read {address}."),
            AgentAction::WritePath(path) => {
                let path = within(path, project);
                match (field("old_string"), field("new_string"), field("content")) {
                    (Some(old), Some(new), _)
                        if old.chars().count() + new.chars().count() <= MAX_TOLD_EDIT_CHARS =>
                    {
                        format!("Change {path}: replace “{old}” by “{new}”.")
                    }
                    (Some(old), Some(new), _) => format!(
                        "Change {path}: replace {} by {}.",
                        count(old.lines().count() as u64, "line"),
                        count(new.lines().count() as u64, "line")
                    ),
                    (_, _, Some(content)) => {
                        format!("Write {path}, {}.", count(content.lines().count() as u64, "line"))
                    }
                    _ => format!("Change {path}: {}", self.input),
                }
            }
            AgentAction::Nothing | AgentAction::Unknown => {
                format!("Use {} with {}", tool_name_in_words(self.name.as_str()), self.input)
            }
        }
    }

    /// What came of it, from the result that the agent's program gives.
    pub(super) fn result(&self, response: &Value, project: &str) -> (String, Vec<String>) {
        let mut changed = Vec::new();
        let words = match &self.action {
            AgentAction::WritePath(path) => {
                changed.push(within(path, project).to_owned());
                let counts = patch_counts(&response["structuredPatch"]);
                match response["type"].as_str() {
                    Some("create") => format!("{} was created.", within(path, project)),
                    _ => format!("{}: {}.", within(path, project), patch_words(counts)),
                }
            }
            AgentAction::Shell(_) => shell_result(response, project, &mut changed),
            AgentAction::ReadPath(path) => match response["file"]["numLines"].as_u64() {
                Some(lines) => format!("{}: {}.", within(path, project), count(lines, "line")),
                None => format!("{} was read.", within(path, project)),
            },
            _ => format!("{} is done.", tool_name_in_words(self.name.as_str())),
        };
        (words, changed)
    }
}

/// What a command left behind: the files that it changed, and the last line that it printed.
fn shell_result(response: &Value, project: &str, changed: &mut Vec<String>) -> String {
    let files = response["bashEditDiff"]["files"].as_array().into_iter().flatten();
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
    if response["interrupted"].as_bool() == Some(true) {
        words.push("it was interrupted".to_owned());
    }
    if words.is_empty() {
        let printed = response["stdout"].as_str().unwrap_or_default();
        let last = printed.lines().map(str::trim).rfind(|it| !it.is_empty());
        return match last {
            Some(last) => format!("Done. Its last line: {}", crate::event::shortened_to(last, 160)),
            None => "Done. It printed nothing.".to_owned(),
        };
    }
    format!("Done: {}.", words.join("; "))
}

/// What the tool does with its arguments.
fn action_of(name: &str, input: &Value) -> AgentAction {
    let text = |field: &str| input[field].as_str().map(str::to_owned);
    let action = match name {
        "Bash" => text("command").map(AgentAction::Shell),
        "Read" | "NotebookRead" => {
            text("file_path").or(text("notebook_path")).map(AgentAction::ReadPath)
        }
        "Glob" | "Grep" | "LS" => {
            Some(AgentAction::ReadPath(text("path").unwrap_or_else(|| ".".to_owned())))
        }
        "Write" | "Edit" | "MultiEdit" => text("file_path").map(AgentAction::WritePath),
        "NotebookEdit" => text("notebook_path").map(AgentAction::WritePath),
        "WebFetch" => text("url").map(AgentAction::Fetch),
        "WebSearch" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet"
        | "Agent" | "Task" | "BashOutput" | "KillShell" | "EnterPlanMode" | "ExitPlanMode"
        | "ToolSearch" | QUESTION_TOOL => Some(AgentAction::Nothing),
        _ => None,
    };
    action.unwrap_or(AgentAction::Unknown)
}
