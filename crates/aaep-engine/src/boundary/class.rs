//! Classifies characters as far as cutting needs it.
//!
//! The Unicode data comes from `icu_segmenter`. Terminators are in a table because every character
//! is tested for being one; a test checks the table against the data. Everything else is asked of
//! the segmenters where it matters, on a few characters at a time. Nothing here depends on the
//! language.

use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{
    GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed, SentenceSegmenter,
    SentenceSegmenterBorrowed, WordSegmenter,
};

const CLUSTERS: GraphemeClusterSegmenterBorrowed<'static> = GraphemeClusterSegmenter::new();

/// The rules of UAX 29, independent of language.
fn sentences() -> SentenceSegmenterBorrowed<'static> {
    SentenceSegmenter::new(SentenceBreakInvariantOptions::default())
}

/// What a character does after the end of a sentence (UAX 29, `SB8a` to `SB11`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterTerminator {
    /// It belongs to the sentence that ended: a closing quote, a space, a combining mark.
    Trails,
    /// It shows that the sentence goes on: a comma, a dash.
    Continues,
    /// It may begin the next sentence.
    Starts,
}

/// How a terminator ends a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TerminatorKind {
    /// A full stop, which may also be part of a number, a name or an abbreviation.
    Stop,
    /// Any other terminator, such as a question mark. Those of scripts without spaces need no space
    /// after them.
    Full,
}

/// Whether an ASCII byte inside a line can neither end nor begin anything.
pub(super) fn is_plain(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'.' | b'!' | b'?' | b';' | b'\n' | b'\r')
}

/// Whether and how the character ends sentences.
pub(super) fn terminator(c: char) -> Option<TerminatorKind> {
    match c {
        '.' | '…' | '\u{2024}' | '\u{FE52}' | '\u{FF0E}' => Some(TerminatorKind::Stop),
        '!' | '?' => Some(TerminatorKind::Full),
        '\0'..='\u{588}' => None,
        _ => {
            let above = TERMINATORS.partition_point(|(_, last)| *last < c);
            TERMINATORS.get(above).filter(|(first, _)| *first <= c).map(|_| TerminatorKind::Full)
        }
    }
}

/// Whether a terminator ends a sentence only before white space, because otherwise it is part of an
/// address, a file name or code.
pub(super) fn needs_space(terminator: char) -> bool {
    terminator.is_ascii()
        || matches!(
            terminator,
            '…' | '\u{2024}' | '\u{FE52}' | '\u{FF0E}' | '\u{203C}'..='\u{2049}'
        )
}

/// What a character means right after a terminator, or after the white space that follows one.
pub(super) fn after_terminator(c: char, is_spaced: bool) -> AfterTerminator {
    match c {
        '"' | '\'' | '(' | ')' | '[' | ']' | '{' | '}' if !is_spaced => {
            return AfterTerminator::Trails;
        }
        ',' | '-' | ':' => return AfterTerminator::Continues,
        '\u{21}'..='\u{7E}' if c != ';' => return AfterTerminator::Starts,
        _ => {}
    }
    let before = if is_spaced { "A! " } else { "A!" };
    let text = format!("{before}{c}A");
    count_work(text.len());
    let boundary = sentences().segment_str(&text).find(|boundary| *boundary > 0);
    match boundary {
        Some(boundary) if boundary == text.len() => AfterTerminator::Continues,
        Some(boundary) if boundary == before.len() => AfterTerminator::Starts,
        _ => AfterTerminator::Trails,
    }
}

/// Whether the character extends a grapheme cluster, even after white space.
pub(super) fn extends(c: char) -> bool {
    if c < '\u{300}' {
        return false;
    }
    let text = String::from_iter([' ', c]);
    clusters(&text).nth(1) != Some(1)
}

/// The boundaries of the grapheme clusters of the text.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = usize> {
    count_work(text.len());
    CLUSTERS.segment_str(text)
}

/// The boundaries of the words of the text, found by dictionary where there are no spaces.
pub(super) fn words(text: &str) -> impl Iterator<Item = usize> {
    count_work(text.len());
    WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()).segment_str(text)
}

/// Whether the character is worth a piece of its own.
pub(super) fn is_wordy(c: char) -> bool {
    !c.is_whitespace() && !c.is_ascii_punctuation()
}

/// Whether the character is white space between words, and not the kind that keeps words together.
pub(super) fn is_breaking_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{A0}' | '\u{2007}' | '\u{202F}')
}

/// Whether the character is an invisible formatting character, except the zero width space.
pub(super) fn is_format(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{200C}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// Whether the character is an opening bracket or quote.
pub(super) fn is_opening(c: char) -> bool {
    matches!(
        c,
        '(' | '['
            | '{'
            | '"'
            | '\''
            | '“'
            | '‘'
            | '«'
            | '「'
            | '『'
            | '（'
            | '【'
            | '《'
            | '〈'
            | '〔'
            | '［'
            | '｛'
            | '¿'
            | '¡'
    )
}

/// Whether the character belongs to a script that writes words without spaces.
pub(super) fn is_unspaced(c: char) -> bool {
    is_ideographic(c) || is_southeast_asian(c)
}

/// Whether the character is Chinese or belongs to a Japanese syllabary.
pub(super) fn is_ideographic(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{309F}' | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}'
        | '\u{20000}'..='\u{3FFFD}')
}

/// Whether the character is Thai or Lao. These scripts have no sentence marks; a space separates
/// phrases.
pub(super) fn is_thai_or_lao(c: char) -> bool {
    matches!(c, '\u{E01}'..='\u{EFF}')
}

/// Whether the character is Thai, Lao, Burmese, Khmer or of a related script, sentence marks
/// excluded.
fn is_southeast_asian(c: char) -> bool {
    is_thai_or_lao(c)
        || matches!(c,
            '\u{1000}'..='\u{1049}' | '\u{104C}'..='\u{109F}' | '\u{1780}'..='\u{17D3}'
            | '\u{17D7}' | '\u{17DC}'..='\u{17FF}' | '\u{1950}'..='\u{19DF}'
            | '\u{1A20}'..='\u{1AA7}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AADF}')
}

/// The characters beyond U+0588 that end sentences, except full stops.
#[rustfmt::skip]
const TERMINATORS: &[(char, char)] = &[
    ('\u{589}', '\u{589}'), ('\u{61D}', '\u{61F}'), ('\u{6D4}', '\u{6D4}'),
    ('\u{700}', '\u{702}'), ('\u{7F9}', '\u{7F9}'), ('\u{837}', '\u{837}'),
    ('\u{839}', '\u{839}'), ('\u{83D}', '\u{83E}'), ('\u{964}', '\u{965}'),
    ('\u{104A}', '\u{104B}'), ('\u{1362}', '\u{1362}'), ('\u{1367}', '\u{1368}'),
    ('\u{166E}', '\u{166E}'), ('\u{1735}', '\u{1736}'), ('\u{17D4}', '\u{17D5}'),
    ('\u{1803}', '\u{1803}'), ('\u{1809}', '\u{1809}'), ('\u{1944}', '\u{1945}'),
    ('\u{1AA8}', '\u{1AAB}'), ('\u{1B4E}', '\u{1B4F}'), ('\u{1B5A}', '\u{1B5B}'),
    ('\u{1B5E}', '\u{1B5F}'), ('\u{1B7D}', '\u{1B7F}'), ('\u{1C3B}', '\u{1C3C}'),
    ('\u{1C7E}', '\u{1C7F}'), ('\u{203C}', '\u{203D}'), ('\u{2047}', '\u{2049}'),
    ('\u{2CF9}', '\u{2CFB}'), ('\u{2E2E}', '\u{2E2E}'), ('\u{2E3C}', '\u{2E3C}'),
    ('\u{2E53}', '\u{2E54}'), ('\u{3002}', '\u{3002}'), ('\u{A4FF}', '\u{A4FF}'),
    ('\u{A60E}', '\u{A60F}'), ('\u{A6F3}', '\u{A6F3}'), ('\u{A6F7}', '\u{A6F7}'),
    ('\u{A876}', '\u{A877}'), ('\u{A8CE}', '\u{A8CF}'), ('\u{A92F}', '\u{A92F}'),
    ('\u{A9C8}', '\u{A9C9}'), ('\u{AA5D}', '\u{AA5F}'), ('\u{AAF0}', '\u{AAF1}'),
    ('\u{ABEB}', '\u{ABEB}'), ('\u{FE12}', '\u{FE12}'), ('\u{FE15}', '\u{FE16}'),
    ('\u{FE56}', '\u{FE57}'), ('\u{FF01}', '\u{FF01}'), ('\u{FF1F}', '\u{FF1F}'),
    ('\u{FF61}', '\u{FF61}'), ('\u{10A56}', '\u{10A57}'), ('\u{10F55}', '\u{10F59}'),
    ('\u{10F86}', '\u{10F89}'), ('\u{11047}', '\u{11048}'), ('\u{110BE}', '\u{110C1}'),
    ('\u{11141}', '\u{11143}'), ('\u{111C5}', '\u{111C6}'), ('\u{111CD}', '\u{111CD}'),
    ('\u{111DE}', '\u{111DF}'), ('\u{11238}', '\u{11239}'), ('\u{1123B}', '\u{1123C}'),
    ('\u{112A9}', '\u{112A9}'), ('\u{113D4}', '\u{113D5}'), ('\u{1144B}', '\u{1144C}'),
    ('\u{115C2}', '\u{115C3}'), ('\u{115C9}', '\u{115D7}'), ('\u{11641}', '\u{11642}'),
    ('\u{1173C}', '\u{1173E}'), ('\u{11944}', '\u{11944}'), ('\u{11946}', '\u{11946}'),
    ('\u{11A42}', '\u{11A43}'), ('\u{11A9B}', '\u{11A9C}'), ('\u{11C41}', '\u{11C42}'),
    ('\u{11EF7}', '\u{11EF8}'), ('\u{11F43}', '\u{11F44}'), ('\u{16A6E}', '\u{16A6F}'),
    ('\u{16AF5}', '\u{16AF5}'), ('\u{16B37}', '\u{16B38}'), ('\u{16B44}', '\u{16B44}'),
    ('\u{16D6E}', '\u{16D6F}'), ('\u{16E98}', '\u{16E98}'), ('\u{1BC9F}', '\u{1BC9F}'),
    ('\u{1DA88}', '\u{1DA88}'),
];

#[cfg(test)]
pub(super) use work::{count_work, take_counts};
#[cfg(not(test))]
fn count_work(_bytes: usize) {}

/// Counts how much the segmenters read, for the test that bounds it.
#[cfg(test)]
mod work {
    use std::cell::Cell;

    thread_local!(static WORK: Cell<(usize, usize)> = const { Cell::new((0, 0)) });

    pub(in super::super) fn count_work(bytes: usize) {
        WORK.with(|work| work.set((work.get().0 + 1, work.get().1 + bytes)));
    }

    /// The number of runs and bytes since the last call.
    pub(in super::super) fn take_counts() -> (usize, usize) {
        WORK.with(Cell::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminators_are_those_of_unicode_and_the_ellipsis() {
        for c in '\0'..=char::MAX {
            if c.is_whitespace() {
                continue;
            }
            let text = format!("1{c} A");
            let ends = sentences().segment_str(&text).any(|boundary| boundary + 1 == text.len());
            assert_eq!(terminator(c).is_some(), ends || c == '…', "{c:?}");
        }
    }

    #[test]
    fn what_follows_a_terminator_is_as_unicode_has_it() {
        assert_eq!(after_terminator('」', false), AfterTerminator::Trails);
        assert_eq!(after_terminator('」', true), AfterTerminator::Starts);
        assert_eq!(after_terminator('\u{200F}', true), AfterTerminator::Trails);
        assert_eq!(after_terminator('—', true), AfterTerminator::Continues);
        assert_eq!(after_terminator('é', false), AfterTerminator::Starts);
        for c in '!'..='~' {
            let text = format!("A!{c}A");
            let boundaries: Vec<usize> = sentences().segment_str(&text).skip(1).collect();
            let kind = after_terminator(c, false);
            if terminator(c).is_none() {
                let expected = match boundaries[0] {
                    2 => AfterTerminator::Starts,
                    3 => AfterTerminator::Trails,
                    _ => AfterTerminator::Continues,
                };
                assert_eq!(kind, expected, "{c:?}");
            }
        }
    }
}
