//! A block of code in words: its language, the number of its lines, and the lines themselves if they are wanted.

use super::inline::cut;
use super::own::{last_said, own};
use crate::english::text;

/// How much of a block is read out, in bytes.
const MAX_READ: usize = 8192;
/// The longest line that is examined, in bytes.
const MAX_LINE: usize = 1024;

/// A block that is being read.
#[derive(Debug, Clone)]
pub(super) struct CodeBlock {
    mark: char,
    length: usize,
    language: Option<String>,
    lines: usize,
    /// The lines to read out: all of them, or the first.
    read: String,
    reads_all: bool,
    /// Whether each line begins with the mark of a block quote (`>`).
    is_quoted: bool,
    is_cut: bool,
}

impl CodeBlock {
    pub(super) fn new((mark, length, info): (char, usize, &str), reads_all: bool) -> Self {
        let language = language(info);
        let (read, is_quoted, is_cut) = (String::new(), false, false);
        CodeBlock { mark, length, language, lines: 0, read, reads_all, is_quoted, is_cut }
    }

    /// The same block within a quotation.
    pub(super) fn quoted(self, is_quoted: bool) -> Self {
        CodeBlock { is_quoted, ..self }
    }

    /// Takes a line. Returns whether it ends the block.
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

    /// The block in words. A single line is read out, because it is usually a command.
    pub(super) fn said(&self) -> String {
        let mut said = own(&text::code(self.language.as_deref(), self.lines, self.read.is_empty()));
        let is_read = !self.read.is_empty() && (self.reads_all || self.lines == 1);
        if is_read {
            said.extend([": ", &self.read]);
        }
        // After a mark, a full stop would be mistaken for a part of the code.
        let ends = |c: char| c.is_alphanumeric() || matches!(c, ')' | ']' | '}' | ';' | '"' | '\'');
        if last_said(&said).is_some_and(ends) {
            said.push('.');
        } else {
            said.extend([" ", &*own(text::END_OF_CODE)]);
        }
        if is_read && self.is_cut {
            said.extend([" ", &*own(text::NOT_ALL_READ)]);
        }
        said
    }
}

/// Whether a block says that it is a diff.
pub(super) fn is_diff(info: &str) -> bool {
    let name = info.split_whitespace().next().unwrap_or_default();
    name.eq_ignore_ascii_case("diff") || name.eq_ignore_ascii_case("patch")
}

/// The spoken name of a language.
fn language(info: &str) -> Option<String> {
    let name = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
    let name = name.trim_matches(['{', '}', '.']).to_ascii_lowercase();
    if matches!(&*name, "" | "text" | "txt" | "plain" | "plaintext" | "output" | "none") {
        return None;
    }
    if let Some(known) = text::programming_language(&name) {
        return Some(known.to_owned());
    }
    let is_name = name.len() <= 20 && name.chars().all(char::is_alphanumeric);
    is_name.then_some(name)
}
