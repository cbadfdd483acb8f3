//! Judges the text of a shell command: parses it, and judges every command, redirection and variable in it, however
//! deeply it is nested.
//!
//! The order in which the commands run does not matter, because the worst of them counts.

use tree_sitter::{Node, Parser, Tree};

use super::command::judge_command;
use super::path::{self, ActionPlace};
use super::table::RiskTable;
use super::word::{CommandWord, children, read_word};
use super::{RiskFinding, RiskGrade};

/// The longest text that is parsed.
const MAX_SHELL_BYTES: usize = 64 * 1024;

/// How deeply a command may carry a command as text, such as `sh -c "sh -c …"`.
const MAX_NESTING: usize = 8;

/// The most findings that are kept. The text that makes more of them is not understood.
const MAX_FINDINGS: usize = 4096;

/// Programs that run a shell script.
pub(super) const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash"];

/// What is found while a text is judged.
pub(super) struct ShellJudge<'t> {
    pub(super) table: &'t RiskTable,
    pub(super) place: ActionPlace,
    findings: Vec<RiskFinding>,
    nesting: usize,
}

/// Everything that the command does.
pub(super) fn findings(table: &RiskTable, place: &ActionPlace, text: &str) -> Vec<RiskFinding> {
    let mut judge = ShellJudge { table, place: place.clone(), findings: Vec::new(), nesting: 0 };
    judge.judge_text(text);
    judge.findings
}

impl ShellJudge<'_> {
    pub(super) fn find(&mut self, grade: RiskGrade, why: &str) {
        self.add(RiskFinding::new(grade, why));
    }

    pub(super) fn add(&mut self, finding: RiskFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else if let Some(last) = self.findings.last_mut() {
            *last = not_understood();
        }
    }

    /// Judges a text that a shell runs.
    pub(super) fn judge_text(&mut self, text: &str) {
        if text.len() > MAX_SHELL_BYTES || self.nesting >= MAX_NESTING {
            self.add(not_understood());
            return;
        }
        let Some(tree) = parse(text) else {
            self.add(not_understood());
            return;
        };
        if has_hidden_characters(text) {
            self.find(RiskGrade::Dangerous, "has characters that cannot be seen");
        }
        self.nesting += 1;
        self.judge_nodes(&tree, text);
        self.nesting -= 1;
    }

    /// Judges each node. The walk keeps no stack, so that no nesting can exhaust it.
    fn judge_nodes(&mut self, tree: &Tree, text: &str) {
        let mut cursor = tree.walk();
        loop {
            self.judge_node(cursor.node(), text);
            if cursor.goto_first_child() || cursor.goto_next_sibling() {
                continue;
            }
            loop {
                if !cursor.goto_parent() {
                    return;
                }
                if cursor.goto_next_sibling() {
                    break;
                }
            }
        }
    }

    fn judge_node(&mut self, node: Node<'_>, text: &str) {
        if node.is_error() || node.is_missing() {
            self.add(not_understood());
            return;
        }
        match node.kind() {
            "command" => {
                let words = command_words(node, text);
                judge_command(self, &words, &input_of(node, text));
            }
            "file_redirect" => self.judge_redirect(node, text),
            "variable_assignment" => self.judge_assignment(node, text),
            "raw_string" | "ansi_c_string" if is_evaluated(node) && hides_command(node, text) => {
                self.find(RiskGrade::Dangerous, "hides a command in a text");
            }
            "declaration_command" => {
                // `declare -n` and the like make one variable stand for another.
                let has_option = children(node).any(|it| {
                    it.kind() == "word"
                        && slice(it, text).contains('n')
                        && slice(it, text).starts_with('-')
                });
                if has_option {
                    self.find(RiskGrade::Risky, "makes one variable stand for another");
                }
            }
            _ => {}
        }
    }

    fn judge_redirect(&mut self, node: Node<'_>, text: &str) {
        let mut operator = "";
        for child in children(node) {
            if !child.is_named() {
                operator = child.kind();
            } else if child.kind() != "file_descriptor" {
                self.judge_redirect_target(operator, &read_word(child, text));
            }
        }
    }

    fn judge_redirect_target(&mut self, operator: &str, target: &CommandWord) {
        let is_descriptor = operator.ends_with('&')
            && target
                .literal()
                .is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit() || it == b'-'));
        if is_descriptor {
            return;
        }
        if !operator.contains('>') {
            if path::is_secret(self.table, &target.text) {
                self.find(RiskGrade::Risky, "reads what looks like a secret");
            }
            return;
        }
        if !target.literal().is_some_and(|it| path::is_device(self.table, it)) {
            self.judge_written(target, RiskFinding::new(RiskGrade::Ordinary, "writes a file"));
        }
    }

    /// Judges a path that is written.
    pub(super) fn judge_written(&mut self, path: &CommandWord, action: RiskFinding) {
        let Some(path) = path.literal() else {
            let grade = action.grade.max(RiskGrade::Risky);
            self.add(action);
            self.find(grade, "acts on files that are only known when it runs");
            return;
        };
        for finding in self.place.write(self.table, path, action) {
            self.add(finding);
        }
    }

    fn judge_assignment(&mut self, node: Node<'_>, text: &str) {
        let Some(name) = node.child_by_field_name("name") else {
            self.add(not_understood());
            return;
        };
        self.judge_variable(slice(name, text));
    }

    /// Judges that a variable gets a value.
    pub(super) fn judge_variable(&mut self, name: &str) {
        let is_risky = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        };
        if self.table.risky_variables.iter().any(is_risky) {
            self.find(RiskGrade::Risky, "changes which programs run or what they do");
        }
    }
}

fn not_understood() -> RiskFinding {
    RiskFinding::new(RiskGrade::Dangerous, "cannot be understood before it runs")
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

/// Whether the text has characters that make it look like another one: control characters and those that change the
/// direction of writing or take no room.
fn has_hidden_characters(text: &str) -> bool {
    text.chars().any(|it| {
        (it.is_control() && !matches!(it, '\n' | '\t'))
            || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    })
}

fn slice<'s>(node: Node<'_>, text: &'s str) -> &'s str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// The name of a command and its arguments.
fn command_words(node: Node<'_>, text: &str) -> Vec<CommandWord> {
    let mut words = Vec::new();
    for child in children(node) {
        let is_word = child.is_named()
            && !matches!(
                child.kind(),
                "variable_assignment"
                    | "file_redirect"
                    | "herestring_redirect"
                    | "heredoc_redirect"
                    | "comment"
            );
        if is_word {
            words.push(read_word(child, text));
        }
    }
    words
}

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandInput {
    /// A text that stands in the command itself.
    Text(String),
    /// Something that is not known before it runs.
    Unknown,
}

/// The standard input of a command, as far as it stands next to it.
fn input_of(node: Node<'_>, text: &str) -> CommandInput {
    let own = children(node);
    let around = node.parent().filter(|it| it.kind() == "redirected_statement");
    let beside = around.into_iter().flat_map(children);
    for redirect in own.chain(beside) {
        match redirect.kind() {
            "heredoc_redirect" => {
                let body = children(redirect).find(|it| it.kind() == "heredoc_body");
                return body.map_or(CommandInput::Unknown, |it| {
                    CommandInput::Text(slice(it, text).to_owned())
                });
            }
            "herestring_redirect" => {
                let word = children(redirect).next_back();
                let word = word.map(|it| read_word(it, text)).filter(|it| it.is_whole);
                return word.map_or(CommandInput::Unknown, |it| CommandInput::Text(it.text));
            }
            _ => {}
        }
    }
    CommandInput::Unknown
}

/// Whether the shell may evaluate a text in quotes here: as the subscript of an array, a command in it would run.
fn is_evaluated(node: Node<'_>) -> bool {
    let mut around = node.parent();
    while let Some(it) = around {
        match it.kind() {
            "concatenation" | "string" => around = it.parent(),
            kind => {
                return matches!(
                    kind,
                    "declaration_command"
                        | "unset_command"
                        | "test_command"
                        | "unary_expression"
                        | "binary_expression"
                );
            }
        }
    }
    false
}

fn hides_command(node: Node<'_>, text: &str) -> bool {
    slice(node, text).contains("$(") || slice(node, text).contains('`')
}
