//! A block of code in words: which language, how many lines, and the lines themselves if they are wanted.

use super::inline::cut;
use super::own::{last_said, own};

/// How much of a block is read out, in bytes.
const MAX_READ: usize = 8192;
/// The longest line that is looked at, in bytes.
const MAX_LINE: usize = 1024;

/// A block that is being read.
#[derive(Debug, Clone)]
pub(super) struct Code {
    mark: char,
    length: usize,
    language: Option<String>,
    lines: usize,
    /// The lines that are read out: all of them, or the first.
    read: String,
    reads_all: bool,
    /// Whether each line begins with the mark of a quotation.
    is_quoted: bool,
    is_cut: bool,
}

impl Code {
    pub(super) fn new((mark, length, info): (char, usize, &str), reads_all: bool) -> Self {
        let language = language(info);
        let (read, is_quoted, is_cut) = (String::new(), false, false);
        Code { mark, length, language, lines: 0, read, reads_all, is_quoted, is_cut }
    }

    /// The same within a quotation.
    pub(super) fn quoted(self, is_quoted: bool) -> Self {
        Code { is_quoted, ..self }
    }

    /// Takes a line; whether it is the end of the block.
    pub(super) fn ends_with(&mut self, line: &str) -> bool {
        let fence = super::line::fence(line);
        if fence.is_some_and(|(mark, length, info)| {
            mark == self.mark && length >= self.length && info.is_empty()
        }) {
            return true;
        }
        self.lines += 1;
        let line = line.trim();
        let line = line.strip_prefix('>').filter(|_| self.is_quoted).unwrap_or(line).trim_start();
        let text = cut(line, MAX_LINE);
        if text.is_empty() || !(self.reads_all || self.lines == 1) {
            return false;
        }
        self.is_cut |= text.len() < line.len();
        if self.read.len() + text.len() > MAX_READ {
            self.is_cut = true;
        } else {
            if !self.read.is_empty() {
                self.read.push_str(if self.read.ends_with(';') { " " } else { "; " });
            }
            self.read.push_str(text);
        }
        false
    }

    /// The block in words. A single line is read, as it is mostly a command.
    pub(super) fn said(&self) -> String {
        let what = match &self.language {
            Some(language) => format!("{language} code"),
            None => "code".to_owned(),
        };
        let what = match self.lines {
            0 => format!("{what}, empty"),
            1 if self.read.is_empty() => format!("{what}, 1 empty line"),
            1 => what,
            lines => format!("{what}, {lines} lines"),
        };
        let mut said = own(&what);
        let is_read = !self.read.is_empty() && (self.reads_all || self.lines == 1);
        if is_read {
            said.extend([": ", &self.read]);
        }
        // A full stop after a mark would be taken for a part of the code.
        let ends = |c: char| c.is_alphanumeric() || matches!(c, ')' | ']' | '}' | ';' | '"' | '\'');
        if last_said(&said).is_some_and(ends) {
            said.push('.');
        } else {
            said.extend([" ", &*own("End of code.")]);
        }
        if is_read && self.is_cut {
            said.extend([" ", &*own("Not all of it is read.")]);
        }
        said
    }
}

/// Whether a block holds a diff.
pub(super) fn is_diff(info: &str) -> bool {
    let name = info.split_whitespace().next().unwrap_or_default();
    name.eq_ignore_ascii_case("diff") || name.eq_ignore_ascii_case("patch")
}

/// The name of a language as people say it.
fn language(info: &str) -> Option<String> {
    let name = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
    let name = name.trim_matches(['{', '}', '.']).to_ascii_lowercase();
    let known = match name.as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "output" | "none" => return None,
        "rs" | "rust" => "Rust",
        "py" | "python" | "python3" => "Python",
        "js" | "javascript" | "jsx" | "mjs" => "JavaScript",
        "ts" | "typescript" | "tsx" => "TypeScript",
        "sh" | "bash" | "zsh" | "shell" | "console" | "terminal" | "shell-session" => "shell",
        "ps1" | "powershell" => "PowerShell",
        "c" => "C",
        "cpp" | "c++" | "cc" => "C plus plus",
        "cs" | "csharp" | "c#" => "C sharp",
        "fs" | "fsharp" | "f#" => "F sharp",
        "go" | "golang" => "Go",
        "java" => "Java",
        "kt" | "kotlin" => "Kotlin",
        "swift" => "Swift",
        "rb" | "ruby" => "Ruby",
        "php" => "PHP",
        "sql" => "SQL",
        "json" | "jsonc" | "json5" => "JSON",
        "yaml" | "yml" => "YAML",
        "toml" => "TOML",
        "xml" => "XML",
        "html" => "HTML",
        "css" | "scss" => "CSS",
        "md" | "markdown" => "Markdown",
        "dockerfile" | "docker" => "Docker",
        "diff" | "patch" => "diff",
        other => {
            let is_name = other.len() <= 20 && other.chars().all(char::is_alphanumeric);
            return is_name.then(|| other.to_owned());
        }
    };
    Some(known.to_owned())
}
