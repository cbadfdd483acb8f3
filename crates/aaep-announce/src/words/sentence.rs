//! Where sentences end, and the properties that all announced words must have.

use super::inline::cut;
use super::own::{is_own_mark, last_said};
use super::plain::is_plain;

/// Ends the last sentence of the text, so that the next words begin another one.
pub(super) fn end_sentence(text: &mut String) {
    let last = last_said(text.trim_end());
    if last.is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']' | '"' | '\'' | '”' | '%'))
    {
        text.truncate(text.trim_end().len());
        text.push_str(". ");
    }
}

/// Where the last complete sentence of the text ends, including the spaces after it.
pub(super) fn last_sentence_end(text: &str) -> usize {
    let mut end = 0;
    let mut after_stop = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if after_stop {
                end = at + c.len_utf8();
                after_stop = false;
            }
        } else if matches!(c, '.' | '!' | '?' | '…' | '؟' | '۔' | '।') {
            after_stop = true;
        } else if matches!(c, '。' | '！' | '？') {
            end = at + c.len_utf8();
            after_stop = false;
        } else if !is_own_mark(c)
            && !matches!(c, ')' | ']' | '"' | '\'' | '”' | '’' | '»' | '*' | '_' | '`')
        {
            after_stop = false;
        }
    }
    end
}

/// Ensures the properties of announced words, whatever the input: one line, plain characters, single spaces, no
/// fence.
pub(crate) fn guarded(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    let mut ticks = 0;
    for c in words.chars() {
        ticks = if c == '`' { ticks + 1 } else { 0 };
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else if is_own_mark(c) || is_plain(c) && ticks < 3 {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Splits words into parts of at most this many bytes: between sentences if possible, else between words, else
/// anywhere.
pub fn split(words: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = words.trim();
    while rest.len() > most {
        let head = cut(rest, most.max(4));
        let end = match last_sentence_end(head) {
            0 => head.rfind(' ').map_or(head.len(), |at| at + 1),
            end => end,
        };
        let (part, more) = rest.split_at(end);
        parts.push(part.trim());
        rest = more.trim_start();
    }
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_sentences_then_words_then_anywhere() {
        assert_eq!(split("One. Two. Three.", 10), ["One. Two.", "Three."]);
        assert_eq!(split("one two three", 8), ["one two", "three"]);
        assert_eq!(split("äöüäöü", 4), ["äö", "üä", "öü"]);
        assert_eq!(split("  ", 4), Vec::<&str>::new());
        assert_eq!(split("short", 100), ["short"]);
    }
}
