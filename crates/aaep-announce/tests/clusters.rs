//! Letters and their marks stay together, in speech, braille and lines (§11.3.3).

use aaep_announce::device::braille;
use aaep_announce::device::lines::{LineOptions, Lines};
use aaep_announce::words::{Style, exact, split, words};
use aaep_announce::{Choice, Order, Utterance, UtteranceKind, Weight};

/// Yoruba with marks of its own, Devanagari, and an emoji of several.
const MARKED: &str = "o\u{323}\u{301}je\u{323}\u{300} \u{915}\u{94d}\u{937}\u{93f} \u{e9}";

fn utterance(text: &str) -> Utterance {
    Utterance {
        id: 1,
        kind: UtteranceKind::Question,
        weight: Weight::Critical,
        words: text.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: vec![Choice { words: "No".to_owned(), is_consent: false }],
        number: None,
        is_continued: false,
    }
}

fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c) || ('\u{93a}'..='\u{94d}').contains(&c)
}

#[test]
fn combining_characters_are_kept_as_they_are() {
    assert_eq!(words(MARKED, Style::PLAIN), MARKED);
    assert_eq!(exact(MARKED), MARKED);
}

#[test]
fn speech_gets_letters_with_all_their_marks() {
    let long = MARKED.replace(' ', "").repeat(40);
    for most in 4..64 {
        let parts = split(&long, most);
        // Only a letter that is longer than all the room is ever cut.
        let least = if most < 12 { 12 } else { most };
        let parts = if least == most { parts } else { split(&long, least) };
        assert_eq!(parts.concat(), long);
        for part in parts {
            assert!(!part.starts_with(is_mark), "{most}: {part:?}");
        }
    }
}

#[test]
fn braille_gets_letters_with_all_their_marks() {
    let long = MARKED.replace(' ', "").repeat(10);
    for cells in 8..40 {
        for window in braille::question_windows(&utterance(&long), cells) {
            let text =
                window.split_once(' ').map_or(window.as_str(), |(_, text)| text.trim_start());
            assert!(
                !window.starts_with(is_mark) && !text.starts_with(is_mark),
                "{cells}: {window:?}"
            );
        }
    }
}

#[test]
fn lines_have_marks_where_they_belong() {
    let mut written = Vec::new();
    let mut lines = Lines::new(&mut written, LineOptions::default());
    lines.carry_out(&Order::Say(utterance(MARKED)), |_| {});
    assert!(String::from_utf8(written).expect("UTF-8").contains(MARKED));
}
