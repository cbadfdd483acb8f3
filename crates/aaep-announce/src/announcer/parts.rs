//! Splits long words into parts of about one sentence, so that news never waits longer than one sentence.

use crate::words::{is_own_mark, split};

/// Sentences shorter than this, in bytes, are joined with the next one. If parts are short, a quarter of their length
/// applies instead.
const SHORT: usize = 60;

/// Splits words into parts of about one sentence, none longer than `most` bytes.
pub(super) fn sentence_parts(words: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = words.trim();
    let short = SHORT.min(most / 4);
    while let Some(end) = part_end(rest, short) {
        let (part, more) = rest.split_at(end);
        parts.extend(split(part, most));
        rest = more.trim_start();
    }
    parts.extend(split(rest, most));
    parts
}

/// Where the first part ends, if another part follows.
fn part_end(words: &str, short: usize) -> Option<usize> {
    let mut is_after_stop = false;
    for (at, c) in words.char_indices() {
        match c {
            '.' | '!' | '?' | '…' | '؟' | '۔' | '।' => is_after_stop = true,
            '。' | '！' | '？' if at >= short => return Some(at + c.len_utf8()),
            c if is_own_mark(c) => {}
            ')' | ']' | '"' | '\'' | '”' | '’' | '»' => {}
            c if c.is_whitespace() => {
                if is_after_stop && at >= short {
                    return Some(at);
                }
                is_after_stop = false;
            }
            _ => is_after_stop = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_about_a_sentence_and_nothing_is_lost() {
        let long = "This sentence is long enough to be said alone, as most of them are.";
        let text = format!("{long} Short. {long} One. Two.");
        let parts = sentence_parts(&text, 300);
        assert_eq!(parts, [long.to_owned(), format!("Short. {long}"), "One. Two.".to_owned()]);
        assert_eq!(sentence_parts("One. Two.", 300), ["One. Two."]);
        assert_eq!(sentence_parts(" ", 300), Vec::<&str>::new());
        let endless = "word ".repeat(200);
        let parts = sentence_parts(&endless, 300);
        assert!(parts.iter().all(|it| it.len() <= 300));
        assert_eq!(parts.join(" "), endless.trim());
    }

    #[test]
    fn scripts_without_spaces_are_cut_at_their_own_marks() {
        let text = "これはとても長い文章で、ひとつの文として読まれるはずです。次の文です。";
        assert_eq!(sentence_parts(text, 300).len(), 2);
    }
}
