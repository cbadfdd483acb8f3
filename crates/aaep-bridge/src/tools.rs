//! The tools of agents: what each does, and in which words. Each agent has a table of its own.

mod patch;
mod result;

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::Value;

use crate::dialect::ToolUse;
use crate::event::{count, shortened_to};
use crate::risk::AgentAction;
use crate::tool_words::{action_sentence, tool_name_in_words, within};

/// One tool of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolRow {
    name: &'static str,
    kind: ToolEffect,
    /// The argument that says what is acted on. Others are never taken for it.
    field: &'static str,
}

/// One row of a table of tools.
pub(crate) const fn row(name: &'static str, kind: ToolEffect, field: &'static str) -> ToolRow {
    ToolRow { name, kind, field }
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// It runs a shell command.
    Shell,
    /// It runs a list of shell commands.
    ShellList,
    /// It runs a shell command, or applies the patch that stands in it.
    ShellOrPatch,
    /// It applies a patch.
    Patch,
    /// It reads a file.
    Read,
    /// It lists or searches a folder, by default the one where the agent is.
    Search,
    /// It creates or changes a file.
    Write,
    /// It fetches an address.
    Fetch,
    /// It searches the web.
    WebSearch,
    /// It updates the agent's list of tasks.
    Tasks,
    /// It starts a helper.
    Helper,
    /// It thinks or plans, and touches nothing.
    Quiet,
    /// It puts a question to the person.
    Question,
}

/// A tool that the agent wants to use, with its arguments.
pub(crate) struct ToolRequest {
    /// The name, in the form of the specification.
    pub(crate) name: ToolName,
    kind: Option<ToolEffect>,
    pub(crate) input: Value,
    pub(crate) actions: Vec<AgentAction>,
    /// What is searched for, or the helper that is started.
    subject: String,
    /// The digest of name and arguments. Empty if they have none.
    pub(crate) digest: String,
}

/// How much of a replaced text is said in a question. Longer ones are told by their lines.
const MAX_TOLD_EDIT_CHARS: usize = 400;

/// The most actions of one tool. More than that are not known one by one.
const MAX_ACTIONS: usize = 32;

/// Arguments under which an agent can name a folder. If it is there and not where we expect it, it is not known.
const FOLDER_FIELDS: [&str; 4] = ["path", "paths", "dir_path", "directory"];

impl ToolRequest {
    pub(crate) fn new(tools: &[ToolRow], tool: &ToolUse) -> Self {
        let name = ToolName::parse(&tool.name).or_else(|_| {
            let valid = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
            let name: String = tool.name.chars().take(200).map(valid).collect();
            ToolName::parse(&format!("_{name}"))
        });
        let name = name.unwrap_or_else(|_| ToolName::parse("tool").expect("a valid name"));
        let digest = action_digest(&name, &tool.input).map(|it| it.as_str().to_owned());
        let row = tools.iter().find(|it| it.name == tool.name);
        let actions = row.and_then(|row| actions_of(*row, &tool.input));
        let subject = row.map_or("", |row| match row.kind {
            ToolEffect::Search => tool.input["pattern"].as_str().unwrap_or_default(),
            _ => tool.input[row.field].as_str().unwrap_or_default(),
        });
        ToolRequest {
            actions: actions.unwrap_or_else(|| vec![AgentAction::Unknown]),
            kind: row.map(|it| it.kind),
            subject: subject.to_owned(),
            digest: digest.unwrap_or_default(),
            name,
            input: tool.input.clone(),
        }
    }

    pub(crate) fn is_question(&self) -> bool {
        self.kind == Some(ToolEffect::Question)
    }

    /// What it does, while it runs.
    pub(crate) fn sentence(&self, project: &str) -> String {
        let subject = shortened_to(&self.subject, 160);
        match self.kind {
            Some(ToolEffect::Helper) if !subject.is_empty() => {
                format!("Starts a helper: {}.", shortened_to(&subject, 80))
            }
            Some(ToolEffect::Search) if !subject.is_empty() => format!("Searches for {subject}."),
            Some(ToolEffect::WebSearch) => format!("Searches the web for {subject}."),
            Some(ToolEffect::Tasks) => "Updates its list of tasks.".to_owned(),
            _ => {
                const MAX_SENTENCES: usize = 4;
                let tool = self.name.as_str();
                let said = self.actions.iter().take(MAX_SENTENCES);
                let mut words: Vec<String> =
                    said.map(|it| action_sentence(it, tool, project)).collect();
                let more = self.actions.len().saturating_sub(MAX_SENTENCES);
                if more > 0 {
                    words.push(format!("And {} more.", count(more as u64, "action")));
                }
                words.join(" ")
            }
        }
    }

    /// What the person is asked, whole: nothing that would be done is left out.
    pub(crate) fn question(&self, project: &str) -> String {
        match self.actions.as_slice() {
            [action] => self.one_question(action, project),
            actions => {
                let parts = actions.iter().map(|it| self.one_question(it, project));
                let numbered = parts.enumerate().map(|(at, it)| format!("{}. {it}", at + 1));
                let all: Vec<String> = numbered.collect();
                format!("Do {} things. {}", actions.len(), all.join(" "))
            }
        }
    }

    fn one_question(&self, action: &AgentAction, project: &str) -> String {
        match action {
            AgentAction::Shell(command) => format!("Run the command: {command}"),
            AgentAction::ReadPath(path) => format!("Read {}.", within(path, project)),
            AgentAction::DeletePath(path) => format!("Delete {}.", within(path, project)),
            AgentAction::Fetch(address) => format!("Read {address}."),
            AgentAction::WritePath(path) => self.write_question(path, project),
            AgentAction::Nothing | AgentAction::Unknown => {
                format!("Use {} with {}", tool_name_in_words(self.name.as_str()), self.input)
            }
        }
    }

    fn write_question(&self, path: &str, project: &str) -> String {
        let field = |name: &str| self.input[name].as_str();
        let lines = |text: &str| count(text.lines().count() as u64, "line");
        let counts = patch::counts_of(&self.patch_text(), path);
        let path = within(path, project);
        if let Some(words) = counts {
            return format!("Change {path}: {words}.");
        }
        let content = field("content").or(field("file_text"));
        let old = field("old_string").or(field("old_str"));
        let new = field("new_string").or(field("new_str"));
        match (old, new, content) {
            (Some(old), Some(new), _)
                if old.chars().count() + new.chars().count() <= MAX_TOLD_EDIT_CHARS =>
            {
                format!("Change {path}: replace “{old}” by “{new}”.")
            }
            (Some(old), Some(new), _) => {
                format!("Change {path}: replace {} by {}.", lines(old), lines(new))
            }
            (_, _, Some(content)) => format!("Write {path}, {}.", lines(content)),
            _ => format!("Change {path}: {}", self.input),
        }
    }

    /// The patch that the tool applies, if it does.
    fn patch_text(&self) -> String {
        match self.kind {
            Some(ToolEffect::Patch) => self.subject.clone(),
            Some(ToolEffect::ShellOrPatch) => {
                patch::in_command(&self.subject).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        }
    }
}

/// What the tool does with its arguments. `None` if that is not known.
fn actions_of(row: ToolRow, input: &Value) -> Option<Vec<AgentAction>> {
    let text = || input[row.field].as_str().map(str::to_owned);
    let one = |action: AgentAction| Some(vec![action]);
    match row.kind {
        ToolEffect::Shell => one(AgentAction::Shell(text()?)),
        ToolEffect::ShellList => {
            let commands = input[row.field].as_array().filter(|it| it.len() <= MAX_ACTIONS)?;
            let commands: Option<Vec<AgentAction>> = commands
                .iter()
                .map(|it| it.as_str().map(|it| AgentAction::Shell(it.to_owned())))
                .collect();
            commands.filter(|it| !it.is_empty())
        }
        ToolEffect::ShellOrPatch => {
            let command = text()?;
            match patch::in_command(&command).and_then(patch::actions) {
                Some(actions) => Some(actions),
                None => one(AgentAction::Shell(command)),
            }
        }
        ToolEffect::Patch => patch::actions(&text()?),
        ToolEffect::Read => one(AgentAction::ReadPath(text()?)),
        ToolEffect::Search => {
            let is_elsewhere = FOLDER_FIELDS.iter().any(|it| !input[*it].is_null());
            match text() {
                Some(path) => one(AgentAction::ReadPath(path)),
                None if is_elsewhere => None,
                None => one(AgentAction::ReadPath(".".to_owned())),
            }
        }
        ToolEffect::Write => one(AgentAction::WritePath(text()?)),
        ToolEffect::Fetch => one(AgentAction::Fetch(text()?)),
        ToolEffect::WebSearch
        | ToolEffect::Tasks
        | ToolEffect::Helper
        | ToolEffect::Quiet
        | ToolEffect::Question => one(AgentAction::Nothing),
    }
}
