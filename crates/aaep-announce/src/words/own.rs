//! Distinguishes our own words in a text from those of an agent.
//!
//! Our words are English and are said by our own voice, whatever language the agent uses. They are between two marks
//! until the text is split into parts for a device. The marks are private-use characters. Cleaning removes these from
//! all agent text, so nobody else can set them.

use aaep::LanguageTag;

use crate::english;

/// Where our own words begin and end.
const BEGIN: char = '\u{e000}';
const END: char = '\u{e001}';

/// Marks words as our own.
pub(crate) fn own(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("{BEGIN}{words}{END}") }
}

/// The language of our own words.
pub(crate) fn own_language() -> Option<LanguageTag> {
    LanguageTag::parse(english::LANGUAGE).ok()
}

pub(crate) fn is_own_mark(c: char) -> bool {
    matches!(c, BEGIN | END)
}

/// The last character that is said.
pub(crate) fn last_said(text: &str) -> Option<char> {
    text.chars().rev().find(|c| !is_own_mark(*c))
}

/// The words without marks, with single blanks.
pub(crate) fn without_own_marks(marked: &str) -> String {
    let mut out = String::with_capacity(marked.len());
    for c in marked.chars().filter(|c| !is_own_mark(*c)) {
        if c != ' ' || !(out.is_empty() || out.ends_with(' ')) {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The pieces of a text, and whether each is our own.
pub(super) fn pieces(marked: &str) -> Vec<(bool, &str)> {
    let mut pieces = Vec::new();
    let mut is_own = false;
    let mut rest = marked;
    while let Some(at) = rest.find([BEGIN, END]) {
        let (piece, more) = rest.split_at(at);
        pieces.push((is_own, piece));
        is_own = more.starts_with(BEGIN);
        rest = more.get(BEGIN.len_utf8()..).unwrap_or_default();
    }
    pieces.push((is_own, rest));
    pieces.retain(|(_, piece)| !piece.is_empty());
    pieces
}

/// The parts of a marked text. Our own words stay marked even if they were split.
pub(crate) fn keep_own_marks(parts: Vec<&str>) -> Vec<String> {
    let mut is_own = false;
    let parts = parts.into_iter().map(|part| {
        let begin = if is_own { String::from(BEGIN) } else { String::new() };
        let last = part.rfind([BEGIN, END]).and_then(|at| part.get(at..));
        is_own = last.map_or(is_own, |it| it.starts_with(BEGIN));
        let end = if is_own { String::from(END) } else { String::new() };
        format!("{begin}{part}{end}")
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::super::sentence::split;
    use super::*;

    #[test]
    fn marks_tell_whose_words_they_are_and_leave_no_trace() {
        let marked = format!("{} Alles gut {} fertig", own("Finished."), own("check mark"));
        assert_eq!(without_own_marks(&marked), "Finished. Alles gut check mark fertig");
        assert_eq!(
            pieces(&marked),
            [(true, "Finished."), (false, " Alles gut "), (true, "check mark"), (false, " fertig")]
        );
    }

    #[test]
    fn what_is_ours_stays_ours_where_it_is_cut() {
        let marked = format!("{} Ende.", own("One sentence. Another sentence."));
        let parts = keep_own_marks(split(&marked, 24));
        assert_eq!(
            parts.iter().map(|it| without_own_marks(it)).collect::<Vec<_>>(),
            ["One sentence.", "Another sentence.", "Ende."]
        );
        assert!(pieces(&parts[0])[0].0 && pieces(&parts[1])[0].0 && !pieces(&parts[2])[0].0);
    }
}
