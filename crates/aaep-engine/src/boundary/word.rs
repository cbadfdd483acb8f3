//! Finds where words end: at white space, and by dictionary in scripts that write no spaces between
//! words.
//!
//! A run of such a script is segmented when it ends or reaches [`RUN_CHARS`] characters, so the
//! words depend only on the text. Punctuation stays with the word before it, an opening bracket
//! with the word after it, and lines of code are not split. No-break spaces never end a word.

use aaep::LanguageTag;

use super::class;
use super::held::{HeldText, TextPosition};

/// A run without spaces is segmented when it has this many characters.
const RUN_CHARS: usize = 64;

/// How many of these are kept back where possible, because the next characters may change the last
/// word.
const RUN_KEPT_CHARS: usize = 16;

/// How far back the dictionary looks for a word boundary in text that is too long.
const FORCED_WINDOW_CHARS: usize = 256;

/// Tracks where in its words the text is.
#[derive(Debug, Default)]
pub(super) struct WordTracker {
    previous: Option<char>,
    /// Where the current run without spaces begins.
    run: Option<TextPosition>,
}

impl WordTracker {
    /// Reads a character, and marks the positions that are now certain to be between words.
    pub(super) fn step(
        &mut self,
        c: char,
        at: TextPosition,
        is_code: bool,
        text: &HeldText,
        mark: &mut impl FnMut(TextPosition),
    ) {
        if is_code {
            *self = WordTracker::default();
            return;
        }
        let is_spaced = self.previous.is_some_and(class::is_breaking_space);
        if is_spaced && (class::is_format(c) || class::extends(c)) {
            return; // The character belongs to the white space (UAX 29, WB4).
        }
        let previous = self.previous.replace(c);
        if let Some(start) = self.run {
            self.continue_run(c, start, at, text, mark);
        } else if let Some(previous) = previous {
            let is_start = if is_spaced {
                !class::is_breaking_space(c) && !hugs_left(c)
            } else {
                class::is_unspaced(c) && !class::is_opening(previous) && !previous.is_numeric()
            };
            if is_start && !text.is_inside_cluster(at) {
                mark(at);
            }
        }
        if self.run.is_none() && class::is_unspaced(c) {
            self.run = Some(at);
        }
    }

    /// Ends the text and marks the words of the last run.
    pub(super) fn finish(&mut self, text: &HeldText, mark: &mut impl FnMut(TextPosition)) {
        if let Some(start) = self.run.take() {
            let end = text.end();
            boundaries(text, start, end).for_each(mark);
        }
    }

    /// Forgets the part of the run before a cut that was made because of size.
    pub(super) fn forget(&mut self, position: TextPosition) {
        self.run = self.run.map(|start| start.max(position));
    }

    /// Reads a character after a run, which may continue the run.
    fn continue_run(
        &mut self,
        c: char,
        start: TextPosition,
        at: TextPosition,
        text: &HeldText,
        mark: &mut impl FnMut(TextPosition),
    ) {
        if !class::is_unspaced(c) && !class::extends(c) {
            self.run = None;
            boundaries(text, start, at).for_each(&mut *mark);
            let is_start = c.is_alphanumeric() || class::is_opening(c) && !c.is_ascii();
            if is_start && !text.is_inside_cluster(at) {
                mark(at);
            }
        } else if at.chars - start.chars >= RUN_CHARS && !class::extends(c) {
            let sure = at.chars - RUN_KEPT_CHARS;
            let mut last = None;
            for position in boundaries(text, start, at) {
                if position.chars > sure && last.is_some() {
                    break;
                }
                mark(position);
                last = Some(position);
            }
            if last.is_none() && !text.is_inside_cluster(at) {
                mark(at);
            }
            self.run = Some(last.unwrap_or(at));
        }
    }
}

/// The positions between the words of a run, except those inside a grapheme cluster.
fn boundaries(
    text: &HeldText,
    start: TextPosition,
    end: TextPosition,
) -> impl Iterator<Item = TextPosition> {
    let run = text.slice(start, end);
    let inner = class::words(run).filter(|boundary| (1..run.len()).contains(boundary));
    let places = inner.scan(start, move |last, boundary| {
        let word = &run[last.byte - start.byte..boundary];
        *last =
            TextPosition { byte: start.byte + boundary, chars: last.chars + word.chars().count() };
        Some(*last)
    });
    places.filter(|place| !text.is_inside_cluster(*place))
}

/// The last position between words in text that is too long, not before `earliest_chars`.
pub(super) fn last_boundary(text: &HeldText, earliest_chars: usize) -> Option<TextPosition> {
    let held = text.slice(text.start(), text.end());
    let mut position = text.end();
    let mut next = None;
    for c in held.chars().rev() {
        let is_start = next.is_some_and(|next| !class::is_breaking_space(next) && !hugs_left(next));
        if position.chars < earliest_chars {
            break;
        }
        if is_start && class::is_breaking_space(c) && !text.is_inside_cluster(position) {
            return Some(position);
        }
        position.byte -= c.len_utf8();
        position.chars -= 1;
        next = Some(c);
    }
    let (byte, _) = held.char_indices().rev().nth(FORCED_WINDOW_CHARS - 1)?;
    let window = TextPosition {
        byte: text.start().byte + byte,
        chars: text.end().chars - FORCED_WINDOW_CHARS,
    };
    boundaries(text, window, text.end()).last()
}

/// Whether the mark stays with the word before it even after a space, as in French.
fn hugs_left(c: char) -> bool {
    matches!(c, '!' | '?' | ':' | ';' | '»')
}

/// Estimates how many words it takes to say the text, for pacing (§5.3.1.11).
///
/// Where there are spaces, they are counted. Elsewhere the usual length of a word is used: two
/// characters in Japanese, one and a half in Chinese, four in Thai and related scripts.
pub fn count_words(text: &str, language: Option<&LanguageTag>) -> usize {
    let is_chinese = language.is_some_and(|tag| {
        ["zh", "yue", "cmn"].iter().any(|chinese| tag.primary().eq_ignore_ascii_case(chinese))
    });
    let (mut words, mut ideographs, mut letters) = (0_usize, 0_usize, 0_usize);
    let mut is_inside = false;
    for c in text.chars() {
        if class::is_unspaced(c) {
            is_inside = false;
            if class::is_ideographic(c) {
                ideographs += 1;
            } else {
                letters += 1;
            }
        } else if c.is_whitespace() {
            is_inside = false;
        } else if !is_inside && class::is_wordy(c) && !is_mark(c) {
            is_inside = true;
            words += 1;
        }
    }
    let ideographic =
        if is_chinese { (ideographs * 2).div_ceil(3) } else { ideographs.div_ceil(2) };
    words + ideographic + letters.div_ceil(4)
}

/// Whether the character is punctuation beyond ASCII, which is not a word by itself.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{A1}'..='\u{BF}' | '\u{300}'..='\u{36F}' | '\u{2000}'..='\u{206F}')
        || matches!(c, '\u{3000}'..='\u{303F}' | '\u{FE00}'..='\u{FE6F}' | '\u{FF01}'..='\u{FF0F}')
        || matches!(c, '\u{FF1A}'..='\u{FF20}' | '\u{60C}' | '\u{61B}' | '\u{61F}')
        || class::terminator(c).is_some()
}
