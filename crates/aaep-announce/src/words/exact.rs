//! The exact text of an ask: nothing is omitted, shortened or changed, and every character can be perceived.
//!
//! [`exact`] is for devices that show text. It returns one line of visible characters. Line breaks, blanks other than
//! one space between words, and invisible characters are replaced by their names, as in `[line break]`, `[2 spaces]`
//! or `[right-to-left override]`. `spoken` turns such a line into words for speech. Markdown, paths, links and code
//! are never interpreted here.

use super::plain::is_plain;
use crate::english::marks::{self, BLANKS, HIDDEN, LINE_BREAK};

/// The whole text on one line of visible characters. A single space between words stays; every other blank is named.
pub fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            let (run, after) = rest.split_at(rest.len() - rest.trim_start().len());
            blanks(&mut out, run, after.is_empty());
            rest = after;
        } else {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            if is_shown(before, c, rest.chars().next()) {
                out.push(c);
            } else {
                out.extend(["[", &name(c), "]"]);
            }
        }
        before = c;
    }
    out
}

/// Whether this text in brackets is the name of something invisible.
pub(super) fn is_name(inner: &str) -> bool {
    let is_code = |it: &str| {
        it.strip_prefix("U+").is_some_and(|it| {
            (4..=6).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_hexdigit())
        })
    };
    let is_count = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let is_counted = |name: &str| {
        let several = inner.split_once(' ').filter(|(count, _)| is_count(count));
        several.is_some_and(|(_, it)| it == marks::plural(name))
    };
    let is_known = |names: &[(char, &str)]| names.iter().any(|(_, it)| *it == inner);
    inner == LINE_BREAK
        || is_known(HIDDEN)
        || is_known(BLANKS)
        || is_code(inner)
        || BLANKS.iter().any(|(_, it)| is_counted(it))
}

/// Writes a run of blanks: one space between words unchanged, everything else by name.
fn blanks(out: &mut String, run: &str, is_last: bool) {
    if run == " " && !out.is_empty() && !is_last {
        return out.push(' ');
    }
    for name in blank_names(run) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(["[", &name, "]"]);
    }
    if !is_last {
        out.push(' ');
    }
}

/// The names of blanks. Equal ones are counted, except line breaks and blanks without a name.
fn blank_names(run: &str) -> Vec<String> {
    let run: Vec<char> = run.replace("\r\n", "\n").chars().collect();
    let known = |c: char| BLANKS.iter().find(|(it, _)| *it == c).map(|(_, name)| *name);
    let is_same = |one: &char, next: &char| one == next && known(*one).is_some();
    let name_of = |same: &[char]| match (same, same.first().and_then(|it| known(*it))) {
        (['\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}', ..], _) => {
            LINE_BREAK.to_owned()
        }
        ([_], Some(name)) => name.to_owned(),
        (several, Some(name)) => format!("{} {}", several.len(), marks::plural(name)),
        (several, None) => several.first().map(|it| name(*it)).unwrap_or_default(),
    };
    run.chunk_by(is_same).map(name_of).collect()
}

/// Whether a character is written unchanged. Joiners and variation selectors are, where scripts and emoji need them.
fn is_shown(before: char, c: char, after: Option<char>) -> bool {
    let is_letter = |it: char| !it.is_ascii() && !it.is_whitespace() && is_plain(it);
    match c {
        '\u{200c}' | '\u{200d}' => {
            let joins = |it: char| is_letter(it) || is_selector(it);
            joins(before) && after.is_some_and(is_letter)
        }
        '\u{fe0e}' | '\u{fe0f}' => !before.is_whitespace() && !is_selector(before),
        _ => is_plain(c) && !('\u{fe00}'..='\u{fe0f}').contains(&c),
    }
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

fn name(c: char) -> String {
    let known = HIDDEN.iter().find(|(it, _)| *it == c);
    known.map_or_else(|| format!("U+{:04X}", u32::from(c)), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_paths_and_numbers_stay_as_they_are() {
        for text in [
            "Pay 900 euros to DE89370400440532013000.",
            "~~Do not~~ delete all",
            "Edit __init__.py",
            "rm -rf ./* && echo `id` > /dev/null # **now**",
            "می\u{200c}خواهم ❤\u{fe0f} 👩\u{200d}💻",
        ] {
            assert_eq!(exact(text), text);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_named() {
        assert_eq!(
            exact("  a\r\n\n\tb  c\n"),
            "[2 spaces] a [line break] [line break] [tab] b [2 spaces] c [line break]"
        );
        assert_eq!(exact("\u{1b}[2Jno\u{202e}sey"), "[escape][2Jno[right-to-left override]sey");
        assert_eq!(exact("pay\u{200d}pal x\u{fe01}"), "pay[zero width joiner]pal x[U+FE01]");
        assert_eq!(exact("a\u{e0041}\u{1}"), "a[U+E0041][U+0001]");
    }

    #[test]
    fn blanks_that_differ_are_told_differently() {
        for (text, told) in [
            ("a b", "a b"),
            ("a  b", "a [2 spaces] b"),
            (" a", "[space] a"),
            ("a ", "a [space]"),
            ("a\tb", "a [tab] b"),
            ("a\u{a0}b", "a [no-break space] b"),
            ("a\u{3000}\u{3000}b", "a [2 ideographic spaces] b"),
            ("a \n    b", "a [space] [line break] [4 spaces] b"),
            ("a\u{1680}\u{1680}b", "a [U+1680] [U+1680] b"),
            ("   ", "[3 spaces]"),
            ("", ""),
        ] {
            assert_eq!(exact(text), told);
            assert_eq!(exact(told), told, "once more changes nothing");
        }
    }

    #[test]
    fn only_what_exact_writes_is_a_name() {
        for name in ["line break", "tab", "2 spaces", "12 no-break spaces", "escape", "U+00AD"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "s", "2", "spaces", "two spaces", "2 space", "-2 spaces", "2 line breaks"]
        {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn whatever_comes_in_the_line_is_visible() {
        for c in '\0'..=char::MAX {
            let line = exact(&format!("a{c}b"));
            assert!(!line.contains(char::is_control) && line.starts_with('a'), "{line:?}");
            assert!(c.is_whitespace() || line.len() > 2, "{:x}", u32::from(c));
        }
    }
}
