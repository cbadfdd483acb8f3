//! The text of an ask, whole: nothing is left out, shortened or changed, and every character can be perceived.
//!
//! [`exact`] is for devices that show text. It is one line of visible characters; line breaks and characters that
//! cannot be seen stand there by name, as in `[line break]` or `[right-to-left override]`. `spoken` turns such a line
//! into words for the ear. Markdown, paths, links and code are never interpreted here.

use super::plain::is_plain;

/// Characters that cannot be seen, and their names.
pub(super) const HIDDEN: &[(char, &str)] = &[
    ('\0', "null"),
    ('\u{7}', "bell"),
    ('\u{8}', "backspace"),
    ('\u{1b}', "escape"),
    ('\u{7f}', "delete"),
    ('\u{ad}', "soft hyphen"),
    ('\u{61c}', "Arabic letter mark"),
    ('\u{200b}', "zero width space"),
    ('\u{200c}', "zero width non-joiner"),
    ('\u{200d}', "zero width joiner"),
    ('\u{200e}', "left-to-right mark"),
    ('\u{200f}', "right-to-left mark"),
    ('\u{202a}', "left-to-right embedding"),
    ('\u{202b}', "right-to-left embedding"),
    ('\u{202c}', "pop directional formatting"),
    ('\u{202d}', "left-to-right override"),
    ('\u{202e}', "right-to-left override"),
    ('\u{2060}', "word joiner"),
    ('\u{2066}', "left-to-right isolate"),
    ('\u{2067}', "right-to-left isolate"),
    ('\u{2068}', "first strong isolate"),
    ('\u{2069}', "pop directional isolate"),
    ('\u{feff}', "byte order mark"),
];

/// What stands where a line ends.
pub(super) const LINE_BREAK: &str = "line break";

/// The whole text on one line of visible characters. Runs of blanks become one blank, and that is all that is lost.
pub fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.trim().chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                blank(&mut out);
                out.extend(["[", LINE_BREAK, "] "]);
            }
            _ if c.is_whitespace() => blank(&mut out),
            _ if is_shown(before, c, rest.peek().copied()) => out.push(c),
            _ => out.extend(["[", &name(c), "]"]),
        }
        before = c;
    }
    out
}

fn blank(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Whether a character can stand for itself. Joiners and variation selectors do where scripts and emoji need them.
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
        assert_eq!(exact("  a\r\n\n\tb  c\n"), "a [line break] [line break] b c");
        assert_eq!(exact("\u{1b}[2Jno\u{202e}sey"), "[escape][2Jno[right-to-left override]sey");
        assert_eq!(exact("pay\u{200d}pal x\u{fe01}"), "pay[zero width joiner]pal x[U+FE01]");
        assert_eq!(exact("a\u{e0041}\u{1}"), "a[U+E0041][U+0001]");
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
