//! What a line begins: a heading, a list item, a quotation, or just text.

use super::symbol::begins_with_a_mark;
use crate::english::text::{DONE, TO_DO};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineKind {
    /// A line of a paragraph.
    Text,
    /// A heading.
    Heading,
    /// A list item, with its number or its check box if it has one.
    Item(Option<String>),
    /// A quotation.
    Quote,
}

impl LineKind {
    /// Whether the end of the line also ends the sentence.
    pub(super) fn ends_with_its_line(&self) -> bool {
        matches!(self, LineKind::Heading | LineKind::Item(_))
    }
}

/// A code fence: its character, its length and the text after it.
pub(super) fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start_matches(['>', ' ']);
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let info = line.get(length..)?.trim();
    // Backticks after backticks are code within a line.
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length, info))
}

/// Whether a line is only a rule, or underlines the line before.
pub(super) fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next() else { return false };
    matches!(first, '-' | '*' | '_' | '=')
        && marks.clone().count() >= 1
        && marks.all(|c| c == first)
}

/// The name and the address of a line that defines a reference.
pub(super) fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, address) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let address = address.trim();
    (!name.is_empty()
        && name.len() < 256
        && !name.starts_with('^')
        && !name.contains([']', '['])
        && super::shorten::host(address).is_some())
    .then_some((name, address))
}

/// The kind of a whole line, and its text.
pub(super) fn kind(line: &str) -> (LineKind, &str) {
    let line = line.trim();
    if line.starts_with('>') {
        let (inner, text) = unquoted(line.trim_start_matches(['>', ' ']));
        return (if inner == LineKind::Text { LineKind::Quote } else { inner }, text);
    }
    unquoted(line)
}

fn unquoted(line: &str) -> (LineKind, &str) {
    let marks = line.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&marks)
        && let Some(text) = line.get(marks..).filter(|it| it.starts_with(' '))
    {
        let text = text.trim();
        // Closing marks are separated from the heading by a blank, unlike those of "C#".
        let bare = text.trim_end_matches('#');
        let is_closed = bare.is_empty() || bare.ends_with(' ');
        return (LineKind::Heading, if is_closed { bare.trim_end() } else { text });
    }
    if let Some(text) = bulleted(line) {
        let (mark, text) = boxed(text);
        return (LineKind::Item(mark.map(str::to_owned)), text);
    }
    if begins_with_a_mark(line) {
        return (LineKind::Item(None), line);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=4).contains(&digits)
        && let Some(text) = line.get(digits..)
        && let Some(text) = text.strip_prefix(". ").or_else(|| text.strip_prefix(") "))
    {
        return (LineKind::Item(line.get(..digits).map(str::to_owned)), text.trim_start());
    }
    (LineKind::Text, line)
}

fn bulleted(line: &str) -> Option<&str> {
    ["- ", "* ", "+ ", "• ", "‣ ", "◦ "]
        .iter()
        .find_map(|it| line.strip_prefix(it))
        .map(str::trim_start)
}

/// The check box of a task, and its text.
fn boxed(text: &str) -> (Option<&'static str>, &str) {
    for (mark, said) in [("[ ] ", TO_DO), ("[x] ", DONE), ("[X] ", DONE)] {
        if let Some(text) = text.strip_prefix(mark) {
            return (Some(said), text);
        }
    }
    (None, text)
}

/// Whether the beginning of a line is enough to know its kind.
pub(super) fn is_decided(beginning: &str) -> bool {
    let line = beginning.trim_start();
    let rest = line.trim_start_matches(['>', ' ']);
    let Some(first) = rest.chars().next() else { return false };
    // Only the line after its heading shows that it is a table.
    if line.contains('|') || line.starts_with("diff --git") || "diff --git ".starts_with(line) {
        return false;
    }
    let second = rest.chars().nth(1);
    match first {
        '`' | '~' => second.is_some_and(|c| c != first),
        '#' => rest.trim_start_matches('#').len() > 1,
        '-' | '+' | '*' | '_' | '=' => {
            rest.chars().any(|c| c != first && c != ' ')
                && !rest.starts_with("---")
                && !rest.starts_with("+++")
        }
        '@' => second.is_some_and(|c| c != '@'),
        '[' => rest
            .find(']')
            .and_then(|at| rest.get(at + 1..))
            .and_then(|it| it.chars().next())
            .is_some_and(|c| c != ':'),
        '0'..='9' => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.chars().count() > 2 || rest.starts_with(|c: char| c != '.' && c != ')')
        }
        _ => true,
    }
}
