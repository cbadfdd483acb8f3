//! One tool call: what it does as far as its name and its arguments say, how risky it is, and in which words.
//!
//! What a server says about its tools is not to be trusted: it can make a tool riskier and never milder. Titles and
//! descriptions of tools are never told.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::{Map, Value};

use crate::event::{count, shortened_to};
use crate::risk::{ActionPlace, AgentAction, RiskGrade, RiskTable, RiskVerdict};

/// The longest question, in characters. A longer one cannot be put whole, so it is not put.
const MAX_QUESTION_CHARS: usize = 15_000;
/// How much of one argument is told while a tool runs, and of how many. A question says all.
const MAX_TOLD_CHARS: usize = 80;
const MAX_TOLD_ARGUMENTS: usize = 4;

/// Arguments that hold a shell command, and those that hold a path.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "shell_command"];
const PATHS: [&str; 12] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "uri",
    "source",
    "destination",
    "repo_path",
    "directory",
    "folder",
];
const PATH_LISTS: [&str; 2] = ["paths", "files"];

/// What a server has said of a tool that makes it riskier. What was said once stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a statement of its own")]
pub(super) struct ToolHints {
    destroys: bool,
    changes: bool,
    repeats: bool,
    reaches_out: bool,
}

impl ToolHints {
    /// Adds what the annotations of a tool say.
    pub(super) fn add(&mut self, annotations: &Value) {
        let says = |field: &str, value: bool| annotations[field].as_bool() == Some(value);
        self.destroys |= says("destructiveHint", true);
        self.changes |= says("readOnlyHint", false);
        self.repeats |= says("idempotentHint", false);
        self.reaches_out |= says("openWorldHint", true);
    }

    fn raise(self, verdict: RiskVerdict) -> RiskVerdict {
        let hints = [
            (self.destroys, RiskGrade::Dangerous, "can destroy something, as its server says"),
            (self.reaches_out, RiskGrade::Ordinary, "reaches other systems, as its server says"),
            (self.changes, RiskGrade::Ordinary, "changes something, as its server says"),
            (
                self.repeats,
                RiskGrade::Ordinary,
                "does more when it is repeated, as its server says",
            ),
        ];
        let given = hints.into_iter().filter(|(is_given, ..)| *is_given);
        given.fold(verdict, |verdict, (_, grade, why)| {
            // A milder hint says nothing new about what is known to be riskier.
            if grade >= verdict.grade {
                verdict.worse(RiskVerdict::because(grade, why))
            } else {
                verdict
            }
        })
    }
}

/// A tool call as the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct McpToolCall {
    server: String,
    tool: String,
    arguments: Value,
}

impl McpToolCall {
    pub(super) fn new(server: &str, params: &Value) -> Self {
        McpToolCall {
            server: server.to_owned(),
            tool: params["name"].as_str().unwrap_or_default().to_owned(),
            arguments: params["arguments"].clone(),
        }
    }

    pub(super) fn tool(&self) -> &str {
        &self.tool
    }

    /// The name of the tool in events, which names the server as well.
    pub(super) fn tool_name(&self) -> ToolName {
        let plain = |it: char| {
            if it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-') { it } else { '_' }
        };
        let part = |text: &str| text.chars().take(120).map(plain).collect::<String>();
        let name = format!("mcp__{}__{}", part(&self.server), part(&self.tool));
        ToolName::parse(&name).unwrap_or_else(|_| ToolName::parse("tool").expect("a valid name"))
    }

    /// The digest of the whole call. Empty if there is none, because it is nested too deeply.
    pub(super) fn digest(&self) -> String {
        let shown = serde_json::json!({ "server": self.server, "tool": self.tool,
            "arguments": self.arguments });
        let digest = action_digest(&self.tool_name(), &shown);
        digest.map(|it| it.as_str().to_owned()).unwrap_or_default()
    }

    /// How risky it is: what the table says of the tool, and worse if its arguments or its server say so.
    pub(super) fn judge(&self, table: &RiskTable, hints: ToolHints) -> RiskVerdict {
        let place = ActionPlace::new("", "");
        let row = table.judge_tool(&self.server, &self.tool);
        let has_row = row.is_some();
        let known = row.unwrap_or_else(|| table.judge(&[AgentAction::Unknown], &place));
        let fields = self.arguments.as_object();
        let field = |name: &str| fields.and_then(|it| it.get(name));
        let paths = PATHS.iter().filter_map(|it| field(it)?.as_str());
        let lists = PATH_LISTS.iter().filter_map(|it| field(it)?.as_array()).flatten();
        let paths: Vec<AgentAction> = paths
            .chain(lists.filter_map(Value::as_str))
            .map(|it| AgentAction::ReadPath(it.strip_prefix("file://").unwrap_or(it).to_owned()))
            .collect();
        let mut verdict = known;
        let named = table.judge(&paths, &place);
        if named.grade > RiskGrade::Reads {
            verdict = verdict.worse(named);
        }
        for command in COMMANDS.iter().filter_map(|it| command_in(field(it)?)) {
            let judged = table.judge_shell(&command, &place);
            // A row of the person is about all that the tool runs, except for what is dangerous.
            if judged.grade == RiskGrade::Dangerous
                || (!has_row && judged.grade == RiskGrade::Risky)
            {
                verdict = verdict.worse(judged);
            }
        }
        hints.raise(verdict)
    }

    /// What it does, as a sentence.
    pub(super) fn sentence(&self) -> String {
        let tool = shortened_to(&self.tool, MAX_TOLD_CHARS);
        let Some(fields) = self.arguments.as_object().filter(|it| !it.is_empty()) else {
            return format!("Uses {tool}.");
        };
        let told = fields.iter().take(MAX_TOLD_ARGUMENTS).map(|(name, value)| {
            format!("{} {}", shortened_to(name, MAX_TOLD_CHARS), in_short(value))
        });
        let mut words = told.collect::<Vec<_>>().join(", ");
        let more = fields.len().saturating_sub(MAX_TOLD_ARGUMENTS);
        if more > 0 {
            words = format!("{words}, and {}", count(more as u64, "more argument"));
        }
        format!("Uses {tool}: {words}.")
    }

    /// What the person is asked, whole: nothing of the call is left out. `None` if it is too long.
    pub(super) fn question(&self) -> Option<String> {
        let tool = &self.tool;
        let words = match self.arguments.as_object() {
            None if self.arguments.is_null() => format!("Use {tool} of {}.", self.server),
            None => format!("Use {tool} of {} with {}", self.server, self.arguments),
            Some(fields) if fields.is_empty() => format!("Use {tool} of {}.", self.server),
            Some(fields) => format!("Use {tool} of {} with {}.", self.server, whole(fields)),
        };
        (words.chars().count() <= MAX_QUESTION_CHARS).then_some(words)
    }
}

fn command_in(value: &Value) -> Option<String> {
    if let Some(words) = value.as_array() {
        let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
        return words.map(|it| crate::tool_words::quoted_words(&it));
    }
    value.as_str().map(str::to_owned)
}

fn in_short(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let lines = text.lines().count();
            if lines > 1 {
                count(lines as u64, "line")
            } else {
                format!("“{}”", shortened_to(text, MAX_TOLD_CHARS))
            }
        }
        Value::Array(items) => count(items.len() as u64, "item"),
        Value::Object(fields) => count(fields.len() as u64, "field"),
        other => other.to_string(),
    }
}

fn whole(fields: &Map<String, Value>) -> String {
    let told = fields.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name} “{text}”"),
        other => format!("{name} {other}"),
    });
    told.collect::<Vec<_>>().join(", ")
}
