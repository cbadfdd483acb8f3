//! Finds out which characters of a text are visible, and makes untrusted text fit for terminals and
//! logs.
//!
//! It never repairs a message: it only decides whether anything is visible, and how to show text
//! that should not be shown unchanged.

use std::borrow::Cow;

use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Whether anything in a text can be seen or heard: a letter, a number, punctuation or a symbol.
///
/// White space and characters that are drawn as nothing do not count, even where a font draws them
/// as a blank. Nor do marks, which need a letter to stand on, and what has no meaning in Unicode:
/// unassigned and private characters.
pub(crate) fn has_something_visible(text: &str) -> bool {
    let is_drawn = GeneralCategoryGroup::Letter
        .union(GeneralCategoryGroup::Number)
        .union(GeneralCategoryGroup::Punctuation)
        .union(GeneralCategoryGroup::Symbol);
    let category_of = CodePointMapData::<GeneralCategory>::new();
    text.chars().any(|c| {
        is_drawn.contains(category_of.get(c)) && !is_default_ignorable(c) && !BLANKS.contains(&c)
    })
}

/// Symbols that are blank by their definition: a braille cell without dots, a note without a head,
/// and the place of an object that a text does not have.
const BLANKS: [char; 3] = ['\u{2800}', '\u{1d159}', '\u{fffc}'];

/// Whether a character has the Unicode property `Default_Ignorable_Code_Point`, so it is drawn as
/// nothing.
fn is_default_ignorable(c: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Whether an ignorable character is one that words and emoji need: a joiner, or a variation
/// selector for the character before it.
fn is_joiner(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{200c}' | '\u{200d}'
        | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character is visible by itself, or a space.
fn is_plain(c: char) -> bool {
    !(c.is_control()
        || is_default_ignorable(c)
        || matches!(c,
            '\u{2028}'..='\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
            | '\u{e0000}'..='\u{10ffff}'))
}

/// How many joiners in a row may follow a character: a variation selector of an emoji, and the
/// joiner to the next one.
const JOINERS_IN_A_ROW: usize = 2;

/// An untrusted string with everything escaped that is not clearly visible: control characters,
/// line breaks, direction marks, invisible and private characters. Joiners stay where they have
/// something to join.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    // How many joiners may follow the last character.
    let mut may_join = 0;
    for c in text.chars() {
        if is_plain(c) {
            may_join = if c.is_whitespace() { 0 } else { JOINERS_IN_A_ROW };
            out.push(c);
        } else if is_joiner(c) && may_join > 0 && before != Some(c) {
            may_join -= 1;
            out.push(c);
        } else {
            may_join = 0;
            out.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_as_nothing_is_nothing() {
        for c in "\u{200c}\u{200d}\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{17b4}\u{17b5}\u{180e}\u{2800}".chars() {
            let alone = format!(" {c}{c}\n");
            assert!(!has_something_visible(&alone), "{alone:?}");
            assert!(has_something_visible(&format!("{c}a")));
        }
        assert!(!has_something_visible(" \t\u{a0}\u{2003}"));
        assert!(has_something_visible("."));
    }

    #[test]
    fn marks_and_characters_without_meaning_are_nothing_by_themselves() {
        for c in "\u{fdd0}\u{13440}\u{1d159}\u{fffc}\u{300}\u{20e3}\u{903}\u{378}\u{e000}\u{10ffff}"
            .chars()
        {
            assert!(!has_something_visible(&format!(" {c}{c}\n")), "{c:?}");
            assert!(has_something_visible(&format!("a{c}")));
        }
        for text in ["e\u{301}", "\u{928}\u{947}", "1", "€", "世", "👩", "𓀀", "⠁"] {
            assert!(has_something_visible(text), "{text}");
        }
    }

    #[test]
    fn nothing_that_moves_a_cursor_survives() {
        let hostile = "a\u{1b}[2J\r\n\u{202e}b\u{0007}";
        assert_eq!(printable(hostile), "a\\u{1b}[2J\\u{d}\\u{a}\\u{202e}b\\u{7}");
        assert_eq!(printable("Ẹ ku àárọ̀, 世界"), "Ẹ ku àárọ̀, 世界");
    }

    #[test]
    fn joiners_stay_inside_words_and_emoji() {
        for text in [
            "می\u{200c}خواهم",
            "ක්\u{200d}ෂ",
            "👩\u{200d}💻",
            "❤\u{fe0f}\u{200d}🔥",
            "☺\u{fe0e} 1\u{fe0f}\u{20e3}",
            "ᠮᠣᠩᠭᠣᠯ\u{180b}",
            "ന്\u{200d}",
        ] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn what_joins_nothing_is_shown() {
        for (text, shown) in [
            ("\u{200d}", "\\u{200d}"),
            ("a \u{200c}b", "a \\u{200c}b"),
            ("a\u{200d}\u{200d}\u{200d}b", "a\u{200d}\\u{200d}\\u{200d}b"),
            ("\u{3164}", "\\u{3164}"),
            ("photos\u{3164}", "photos\\u{3164}"),
            ("a\u{115f}\u{1160}\u{ffa0}\u{17b4}", "a\\u{115f}\\u{1160}\\u{ffa0}\\u{17b4}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
