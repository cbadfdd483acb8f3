//! One tool call of an agent: what is known of it, what it does, and in which words.
//!
//! Agents tell a call in pieces, so that the last one of each field counts. Its title is the model's own words, so
//! nothing follows from a title, except that it can make an action riskier.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::{Map, Value, json};

use super::diff::AcpFileDiff;
use crate::event::shortened_to;
use crate::risk::{ActionPlace, AgentAction, RiskGrade, RiskTable, RiskVerdict};
use crate::tool_words::{action_sentence, quoted_words, tool_name_in_words, within};

/// The longest field of the arguments that is kept, and the longest arguments.
const MAX_FIELD_BYTES: usize = 64 * 1024;
const MAX_INPUT_BYTES: usize = 96 * 1024;
/// The most words of the agent about a call that are kept.
const MAX_SAID_CHARS: usize = 2000;
const MAX_PATHS: usize = 32;

/// What editing tools call their commands.
const EDITING_WORDS: [&str; 8] =
    ["create", "edit", "insert", "replace", "str_replace", "undo_edit", "view", "write"];

/// Who decided about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CallDecision {
    /// Nobody was asked, or nobody has answered.
    #[default]
    Open,
    /// It was allowed.
    Allowed,
    /// It was denied.
    Denied,
}

/// A tool call.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct AcpToolCall {
    /// The id of the agent.
    pub(super) id: String,
    /// Its id in our events.
    pub(super) own_id: String,
    /// The name of the tool, as the agent's program gives it.
    tool: Option<String>,
    kind: String,
    title: String,
    input: Value,
    /// Whether some of the arguments were too long to be kept.
    is_cut: bool,
    paths: Vec<String>,
    diffs: Vec<AcpFileDiff>,
    /// What the agent says about it.
    said: String,
    /// The tool under which it was told to run.
    pub(super) told_as: Option<String>,
    /// Whether the agent asks for permission. What needs permission does something.
    pub(super) is_asked: bool,
    /// Whether it was told that it is about to happen.
    pub(super) is_announced: bool,
    pub(super) decision: CallDecision,
    /// What was allowed.
    pub(super) allowed: Option<Vec<AgentAction>>,
    pub(super) has_ended: bool,
    /// Whether it was told to be over although the agent did not say so.
    pub(super) is_told_over: bool,
}

impl AcpToolCall {
    pub(super) fn new(id: &str, own_id: String) -> Self {
        AcpToolCall { id: id.to_owned(), own_id, ..AcpToolCall::default() }
    }

    /// Takes over what an update says.
    pub(super) fn merge(&mut self, update: &Value) {
        let text = |field: &str| update[field].as_str().filter(|it| !it.is_empty());
        if let Some(tool) = text("name").or_else(|| tool_in_meta(&update["_meta"], 0)) {
            self.tool = Some(shortened_to(tool, 200));
        }
        if let Some(kind) = text("kind") {
            self.kind = shortened_to(kind, 40);
        }
        if let Some(title) = text("title") {
            self.title = shortened_to(title, MAX_SAID_CHARS);
        }
        if let Some(input) = update.get("rawInput").filter(|it| !it.is_null()) {
            (self.input, self.is_cut) = bounded(input);
        }
        if let Some(locations) = update["locations"].as_array().filter(|it| !it.is_empty()) {
            let paths = locations.iter().filter_map(|it| it["path"].as_str());
            self.is_cut |= locations.len() > MAX_PATHS;
            self.paths = paths.take(MAX_PATHS).map(|it| it.chars().take(4096).collect()).collect();
        }
        if let Some(content) = update.get("content").filter(|it| it.is_array()) {
            match AcpFileDiff::list(content) {
                Some(diffs) if !diffs.is_empty() => self.diffs = diffs,
                Some(_) => {}
                None => self.is_cut = true,
            }
            let said = text_of(content);
            if !said.is_empty() {
                self.said = shortened_to(&said, MAX_SAID_CHARS);
            }
        }
    }

    /// Forgets what is long, when nothing more will be told of it.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        (self.input, self.diffs, self.paths) = (Value::Null, Vec::new(), Vec::new());
        self.said = String::new();
    }

    /// The name of the tool, in the form of the specification.
    pub(super) fn tool_name(&self) -> ToolName {
        let named = self.tool.as_deref().or(Some(self.kind.as_str()).filter(|it| !it.is_empty()));
        let named = named.unwrap_or("tool");
        let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
        let parsed = ToolName::parse(named).or_else(|_| {
            ToolName::parse(&format!("_{}", named.chars().take(200).map(plain).collect::<String>()))
        });
        parsed.unwrap_or_else(|_| ToolName::parse("tool").expect("a valid name"))
    }

    fn field(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.input[*name].as_str()).filter(|it| !it.is_empty())
    }

    fn command(&self) -> Option<String> {
        const SHELL: [&str; 3] = ["command", "cmd", "script"];
        if let Some(words) = SHELL.iter().find_map(|name| self.input[*name].as_array()) {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            return words.map(|it| quoted_words(&it));
        }
        self.field(&SHELL).map(str::to_owned)
    }

    /// Every path that the call names.
    fn all_paths(&self) -> Vec<&str> {
        const NAMES: [&str; 7] =
            ["file_path", "filePath", "filepath", "path", "absolute_path", "notebook_path", "file"];
        let diffs = self.diffs.iter().map(|it| it.path.as_str());
        let located = self.paths.iter().map(String::as_str);
        let mut all: Vec<&str> = Vec::new();
        for path in diffs.chain(self.field(&NAMES)).chain(located) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all
    }

    /// What it does, as far as its arguments say. What is not known is unknown, never nothing.
    pub(super) fn actions(&self) -> Vec<AgentAction> {
        let paths = self.all_paths();
        let each = |make: fn(String) -> AgentAction| {
            paths.iter().map(|it| make((*it).to_owned())).collect::<Vec<_>>()
        };
        let change_of = |path: &str| {
            let is_deleted = self.diffs.iter().any(|it| it.path == path && it.is_deleted);
            let path = path.to_owned();
            if is_deleted { AgentAction::DeletePath(path) } else { AgentAction::WritePath(path) }
        };
        let changed = || self.diffs.iter().map(|it| change_of(&it.path)).collect::<Vec<_>>();
        let mut actions = match (self.kind.as_str(), self.command()) {
            ("edit", command) if !paths.is_empty() => {
                // Some editing tools call what they do their command.
                let command = command.filter(|it| !EDITING_WORDS.contains(&it.as_str()));
                let shell = command.map(AgentAction::Shell).into_iter();
                shell.chain(paths.iter().map(|it| change_of(it))).collect()
            }
            (_, Some(command)) => [vec![AgentAction::Shell(command)], changed()].concat(),
            ("delete", None) => each(AgentAction::DeletePath),
            ("read" | "search", None) if self.diffs.is_empty() => {
                let named = each(AgentAction::ReadPath);
                if named.is_empty() && self.kind == "search" {
                    vec![AgentAction::ReadPath(".".to_owned())]
                } else {
                    named
                }
            }
            ("fetch", None) => self
                .field(&["url"])
                .map(|it| AgentAction::Fetch(it.to_owned()))
                .into_iter()
                .collect(),
            ("think", None) if !self.is_asked => vec![AgentAction::Nothing],
            _ => changed(),
        };
        if actions.is_empty() || (self.is_cut && self.kind != "edit") {
            actions.push(AgentAction::Unknown);
        }
        actions
    }

    /// Whether all that it does is known.
    pub(super) fn is_known(&self) -> bool {
        !self.actions().contains(&AgentAction::Unknown)
    }

    /// How risky it is: as risky as the worst of what it does, and of what the agent calls it.
    pub(super) fn judge(&self, table: &RiskTable, project: &str) -> RiskVerdict {
        let folder = self.field(&["cwd", "workdir", "directory"]).unwrap_or(project);
        let place = ActionPlace::new(folder, project);
        let mut verdict = self
            .actions()
            .iter()
            .map(|it| table.judge(std::slice::from_ref(it), &place))
            .reduce(RiskVerdict::worse)
            .unwrap_or_else(|| table.judge(&[AgentAction::Unknown], &place));
        if !self.is_known() && self.kind != "think" && !self.title.is_empty() {
            let as_called = table.judge_shell(&self.title, &place);
            if as_called.grade == RiskGrade::Dangerous {
                verdict = verdict.worse(as_called);
            }
        }
        verdict
    }

    /// What it does, as a sentence.
    pub(super) fn sentence(&self, project: &str) -> String {
        const MAX_TOLD: usize = 3;
        let actions = self.actions();
        let told = actions.iter().take(MAX_TOLD).map(|action| match action {
            AgentAction::Nothing if self.kind == "think" => "Thinks or plans.".to_owned(),
            AgentAction::Unknown if self.tool.is_none() => format!("{}.", self.unnamed().1),
            _ => action_sentence(action, self.tool_name().as_str(), project),
        });
        let mut words = told.collect::<Vec<_>>().join(" ");
        if actions.len() > MAX_TOLD {
            words.push_str(" And more.");
        }
        let is_vague = matches!(actions[..], [AgentAction::Nothing | AgentAction::Unknown]);
        if is_vague && !self.title.is_empty() {
            words = format!("{words} It calls this: “{}”.", shortened_to(&self.title, 160));
        }
        words
    }

    /// What the person is asked, whole: nothing that would be done is left out. `None` if it is too long.
    pub(super) fn question(&self, project: &str) -> Option<String> {
        if self.is_cut && !self.is_known() {
            return None;
        }
        let told = self.actions().into_iter().map(|action| match action {
            AgentAction::Shell(command) => match self.field(&["cwd", "workdir", "directory"]) {
                Some(folder) if folder != project => {
                    format!("Run the command, in the folder {folder}: {command}")
                }
                _ => format!("Run the command: {command}"),
            },
            AgentAction::ReadPath(path) => format!("Read {}.", within(&path, project)),
            AgentAction::DeletePath(path) => format!("Delete {}.", within(&path, project)),
            AgentAction::Fetch(address) => format!("Read {address}."),
            AgentAction::WritePath(path) => self.question_of_change(&path, project),
            AgentAction::Nothing | AgentAction::Unknown => self.question_of_unknown(),
        });
        Some(told.collect::<Vec<_>>().join(" "))
    }

    fn question_of_change(&self, path: &str, project: &str) -> String {
        match self.diffs.iter().find(|it| it.path == path) {
            Some(diff) => diff.question(project),
            None if self.is_cut || !self.input.is_object() => {
                format!("Change {}. It does not say how.", within(path, project))
            }
            None => format!("Change {}: {}", within(path, project), self.input),
        }
    }

    /// What a call does of which only the kind is known: as an order, and as a statement.
    fn unnamed(&self) -> (&'static str, &'static str) {
        match self.kind.as_str() {
            "execute" => ("Run something", "Runs something"),
            "edit" | "move" => ("Change something", "Changes something"),
            "delete" => ("Delete something", "Deletes something"),
            "read" | "search" | "fetch" => ("Read something", "Reads something"),
            _ => ("Do something", "Does something"),
        }
    }

    fn question_of_unknown(&self) -> String {
        let tool = tool_name_in_words(self.tool_name().as_str());
        let has_input = self.input.as_object().is_some_and(|it| !it.is_empty());
        if has_input {
            return format!("Use {tool} with {}", self.input);
        }
        let mut words = match self.tool {
            Some(_) => format!("Use {tool}. It does not say exactly for what."),
            None => format!("{}. It does not say exactly what.", self.unnamed().0),
        };
        for said in [&self.title, &self.said] {
            if !said.is_empty() {
                words = format!("{words} It says: “{said}”.");
            }
        }
        words
    }

    /// The digest of what the person is told, with everything that it stands for. Empty if there is none.
    pub(super) fn digest(&self) -> String {
        let diffs = self.diffs.iter().map(|it| json!({ "path": it.path, "digest": it.digest }));
        let shown = json!({ "kind": self.kind, "input": self.input, "paths": self.paths,
            "diffs": diffs.collect::<Vec<_>>(), "title": self.title, "said": self.said });
        let digest = action_digest(&self.tool_name(), &shown);
        digest.map(|it| it.as_str().to_owned()).unwrap_or_default()
    }

    /// What came of it, in words, and the files that it changed.
    pub(super) fn result(&self, update: &Value, project: &str) -> (String, Vec<String>) {
        if !self.diffs.is_empty() {
            let words =
                self.diffs.iter().map(|it| it.result(project)).collect::<Vec<_>>().join(" ");
            let changed = self.diffs.iter().map(|it| within(&it.path, project).to_owned());
            return (words, changed.collect());
        }
        let actions = self.actions();
        let changed = actions.iter().filter_map(|action| match action {
            AgentAction::WritePath(path) => Some(within(path, project).to_owned()),
            _ => None,
        });
        let changed: Vec<String> = changed.collect();
        let words = match exit_code(update) {
            Some(code) if code != 0 => format!("It ended with exit code {code}."),
            _ if matches!(actions[..], [AgentAction::Shell(_), ..]) => {
                match output_of(update).lines().map(str::trim).rfind(|it| !it.is_empty()) {
                    Some(last) => format!("Done. Its last line: {}", shortened_to(last, 160)),
                    None => "Done.".to_owned(),
                }
            }
            _ => "Done.".to_owned(),
        };
        (words, changed)
    }
}

/// The name of the tool in the agent's own additions.
fn tool_in_meta(meta: &Value, depth: usize) -> Option<&str> {
    const MAX_DEPTH: usize = 3;
    let meta = meta.as_object()?;
    let named = meta.get("toolName").and_then(Value::as_str).filter(|it| !it.is_empty());
    named.or_else(|| {
        let mut inner = meta.values().filter(|_| depth < MAX_DEPTH);
        inner.find_map(|it| tool_in_meta(it, depth + 1))
    })
}

/// The arguments without what is too long, and whether something was left out.
fn bounded(input: &Value) -> (Value, bool) {
    let Some(fields) = input.as_object() else {
        let is_long = input.to_string().len() > MAX_FIELD_BYTES;
        return if is_long { (Value::Null, true) } else { (input.clone(), false) };
    };
    let mut kept = Map::new();
    let mut left = MAX_INPUT_BYTES;
    let mut is_cut = false;
    for (name, value) in fields {
        let length = name.len() + value.to_string().len();
        if length > MAX_FIELD_BYTES || length > left {
            is_cut = true;
            continue;
        }
        left -= length;
        kept.insert(name.clone(), value.clone());
    }
    (kept.into(), is_cut)
}

/// The words in the content of a call, without the marks of a code block.
fn text_of(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|it| it["content"]["text"].as_str());
    let lines = texts.flat_map(str::lines).filter(|it| !it.starts_with("```"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// What a tool printed, or why it failed.
pub(super) fn output_of(update: &Value) -> String {
    let said = text_of(&update["content"]);
    if !said.is_empty() {
        return said;
    }
    let raw = &update["rawOutput"];
    let fields = ["error", "message", "stderr", "stdout", "output"];
    let found = fields.iter().filter_map(|name| raw[*name].as_str()).find(|it| !it.is_empty());
    found.or(raw.as_str()).unwrap_or_default().trim().to_owned()
}

/// The exit code of a command, where agents say it.
pub(super) fn exit_code(update: &Value) -> Option<i64> {
    let places =
        ["/rawOutput/exit_code", "/rawOutput/metadata/exit", "/_meta/terminal_exit/exit_code"];
    places.iter().find_map(|place| update.pointer(place)?.as_i64())
}
