//! What a line begins: a heading, an item, a quotation, or just text.

use super::symbol::begins_with_a_mark;
use crate::english::text::{DONE, TO_DO};

/// What a line of text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of a paragraph.
    Text,
    /// A heading.
    Heading,
    /// An item of a list, with its number or its box where it has one.
    Item(Option<String>),
    /// A quotation.
    Quote,
}

impl Kind {
    /// Whether the end of the line is the end of a sentence.
    pub(super) fn ends_with_its_line(&self) -> bool {
        matches!(self, Kind::Heading | Kind::Item(_))
    }
}

/// A fence of code: its character, its length and what stands behind it.
pub(super) fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start_matches(['>', ' ']);
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let info = line.get(length..)?.trim();
    // Backticks behind backticks are code within a line.
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length, info))
}

/// Whether a line only draws a line, or underlines the one before.
pub(super) fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next() else { return false };
    matches!(first, '-' | '*' | '_' | '=')
        && marks.clone().count() >= 1
        && marks.all(|c| c == first)
}

/// The name and the address of a line that says where a reference leads.
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

/// What a whole line is, and its text.
pub(super) fn kind(line: &str) -> (Kind, &str) {
    let line = line.trim();
    if line.starts_with('>') {
        let (inner, text) = unquoted(line.trim_start_matches(['>', ' ']));
        return (if inner == Kind::Text { Kind::Quote } else { inner }, text);
    }
    unquoted(line)
}

fn unquoted(line: &str) -> (Kind, &str) {
    let marks = line.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&marks)
        && let Some(text) = line.get(marks..).filter(|it| it.starts_with(' '))
    {
        let text = text.trim();
        // Marks that close a heading stand apart from it, unlike those of "C#".
        let bare = text.trim_end_matches('#');
        let is_closed = bare.is_empty() || bare.ends_with(' ');
        return (Kind::Heading, if is_closed { bare.trim_end() } else { text });
    }
    if let Some(text) = bulleted(line) {
        let (mark, text) = boxed(text);
        return (Kind::Item(mark.map(str::to_owned)), text);
    }
    if begins_with_a_mark(line) {
        return (Kind::Item(None), line);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=4).contains(&digits)
        && let Some(text) = line.get(digits..)
        && let Some(text) = text.strip_prefix(". ").or_else(|| text.strip_prefix(") "))
    {
        return (Kind::Item(line.get(..digits).map(str::to_owned)), text.trim_start());
    }
    (Kind::Text, line)
}

fn bulleted(line: &str) -> Option<&str> {
    ["- ", "* ", "+ ", "• ", "‣ ", "◦ "]
        .iter()
        .find_map(|it| line.strip_prefix(it))
        .map(str::trim_start)
}

/// The box of a task, and its text.
fn boxed(text: &str) -> (Option<&'static str>, &str) {
    for (mark, said) in [("[ ] ", TO_DO), ("[x] ", DONE), ("[X] ", DONE)] {
        if let Some(text) = text.strip_prefix(mark) {
            return (Some(said), text);
        }
    }
    (None, text)
}

/// Whether the beginning of a line is enough to know what the line is.
pub(super) fn is_decided(beginning: &str) -> bool {
    let line = beginning.trim_start();
    let rest = line.trim_start_matches(['>', ' ']);
    let Some(first) = rest.chars().next() else { return false };
    // A table is known by the line after its heading.
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
