//! Splits long words into parts of about one sentence, so that news never waits longer than one sentence.

use crate::words::{is_own_mark, split};

/// Sentences shorter than this, in bytes, are joined with the next one. If parts are short, a quarter of their length
/// applies instead.
const SHORT: usize = 60;

/// Splits words into parts of about one sentence, none longer than `most` bytes.
pub(crate) fn sentence_parts(words: &str, most: usize) -> Vec<&str> {
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

/// Splits exact words into parts of about one sentence. Nothing is lost but the one blank between two parts, so a part
/// never ends where there are several. A sentence longer than `most` bytes is split between words.
pub(super) fn exact_parts(words: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (words, 0);
    while let Some(end) = rest.get(from..).and_then(|it| part_end(it, SHORT)) {
        from += end;
        let (part, more) = rest.split_at(from);
        let next = more.strip_prefix(' ').unwrap_or(more);
        if next.starts_with(char::is_whitespace) || next.is_empty() {
            from += more.len() - more.trim_start().len();
        } else {
            parts.extend(between_words(part, most));
            (rest, from) = (next, 0);
        }
    }
    // Too short for a pause before it.
    if let Some(last) = parts.pop_if(|it| rest.len() < SHORT / 2 && it.len() + rest.len() < most) {
        rest = words.get(words.len() - rest.len() - 1 - last.len()..).unwrap_or(rest);
    }
    parts.extend(between_words(rest, most));
    parts
}

/// Splits at single blanks into parts that are no longer than `most` bytes, if there are such blanks.
fn between_words(mut words: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    while words.len() > most {
        let is_single = |at: &usize| {
            let (before, after) = (words.get(..*at), words.get(at + 1..));
            // The names of hidden characters stand in brackets, and some have several words.
            let is_named = |it: &str| it.rfind('[') > it.rfind(']');
            before.is_some_and(|it| !it.ends_with(char::is_whitespace) && !is_named(it))
                && after.is_some_and(|it| !it.starts_with(char::is_whitespace) && !it.is_empty())
        };
        let blanks = || words.match_indices(' ').map(|(at, _)| at).filter(is_single);
        let end = blanks().take_while(|at| *at <= most).last().or_else(|| blanks().next());
        let Some(end) = end else { break };
        parts.push(words.get(..end).unwrap_or_default());
        words = words.get(end + 1..).unwrap_or_default();
    }
    parts.push(words);
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
    fn exact_words_are_split_only_where_one_blank_is_lost() {
        let long = "Delete the folder with everything that was ever written into it.";
        let text = format!("{long} It is gone.  And two blanks.\t{long} {long}");
        let parts = exact_parts(&text, 300);
        assert_eq!(parts.join(" "), text);
        assert_eq!(parts.len(), 3, "{parts:?}");
        assert_eq!(exact_parts("a  b c", 2), ["a  b", "c"]);
        assert_eq!(exact_parts("rm  -rf", 2), ["rm  -rf"]);
        assert_eq!(exact_parts("a [line break] b", 2), ["a", "[line break]", "b"]);
        assert_eq!(exact_parts("", 2), [""]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_at_their_own_marks() {
        let text = "これはとても長い文章で、ひとつの文として読まれるはずです。次の文です。";
        assert_eq!(sentence_parts(text, 300).len(), 2);
    }
}
