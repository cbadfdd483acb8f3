//! A block of code in words: which language, how many lines, and the lines themselves if they are wanted.

use super::inline::cut;

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
    /// The lines, where they are read out.
    read: Option<String>,
    is_cut: bool,
}

impl Code {
    pub(super) fn new((mark, length, info): (char, usize, &str), is_read: bool) -> Self {
        let language = language(info);
        let read = is_read.then(String::new);
        Code { mark, length, language, lines: 0, read, is_cut: false }
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
        let text = cut(line.trim(), MAX_LINE);
        if let Some(read) = &mut self.read
            && !text.is_empty()
        {
            if read.len() + text.len() > MAX_READ || text.len() < line.trim().len() {
                self.is_cut = true;
            } else {
                if !read.is_empty() {
                    read.push_str(if read.ends_with(';') { " " } else { "; " });
                }
                read.push_str(text);
            }
        }
        false
    }

    /// The block in words.
    pub(super) fn said(&self) -> String {
        let what = match &self.language {
            Some(language) => format!("{language} code"),
            None => "code".to_owned(),
        };
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let mut said = format!("{what}, {} {lines}", self.lines);
        match &self.read {
            Some(read) if !read.is_empty() => said.extend([": ", read, "."]),
            _ => said.push('.'),
        }
        if self.is_cut {
            said.push_str(" Not all of it is read.");
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
