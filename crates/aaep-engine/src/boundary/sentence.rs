//! Finds where sentences end: UAX 29 (SB6 to SB11), read one character at a time, with the customs
//! of the language on top.
//!
//! It deviates from Unicode because a subscriber hears each cut as an end: abbreviations keep their
//! sentence together; a full stop, `!` or `?` with a letter right after it is part of an address, a
//! name or code; markup and references such as `[1]` right after the end belong to it; a quotation
//! that continues in lower case is not an end. In Thai and Lao a space ends a long phrase.
//!
//! It never waits for more than [`LOOK_AHEAD_CHARS`] characters and white space.

use aaep::LanguageTag;

use super::abbreviation::{LanguageCustoms, StopVerdict};
use super::class::{self, AfterTerminator, TerminatorKind};
use super::held::{HeldText, TextPosition};

/// How many characters may pass before it is decided what a terminator meant. After that, what is
/// known so far decides.
const LOOK_AHEAD_CHARS: usize = 32;

/// In Thai and Lao, a space after this many characters counts as the end of a sentence.
const PHRASE_CHARS: usize = 80;

/// Tracks whether the current sentence has ended.
#[derive(Debug)]
pub(super) struct SentenceTracker {
    customs: LanguageCustoms,
    open: Option<OpenTerminator>,
    /// How many characters came before the current sentence.
    begin_chars: usize,
}

impl SentenceTracker {
    /// A tracker for a language. Without one, the customs of English apply.
    pub(super) fn new(language: Option<&LanguageTag>) -> Self {
        SentenceTracker { customs: LanguageCustoms::of(language), open: None, begin_chars: 0 }
    }

    /// Whether it is still undecided if a sentence ended.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The position of the terminator that is undecided. Everything before it is decided.
    pub(super) fn open_at(&self) -> Option<TextPosition> {
        self.open.as_ref().map(|open| open.at)
    }

    /// Drops the open terminator because a stronger boundary decided.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// Notes that a sentence begins at this position.
    pub(super) fn begin(&mut self, position: TextPosition) {
        self.begin_chars = position.chars;
    }

    /// Reads a character and returns where a sentence ended, once that is certain.
    pub(super) fn step(
        &mut self,
        c: char,
        at: TextPosition,
        text: &HeldText,
        line: TextPosition,
    ) -> Option<TextPosition> {
        let ended = self.open.is_none() && self.ends_phrase(c, at, text);
        let outcome = match &mut self.open {
            Some(open) => open.step(c, at, text, &self.customs),
            None if ended => SentenceDecision::Ends(at),
            None => SentenceDecision::GoesOn,
        };
        if outcome == SentenceDecision::Wait {
            return None;
        }
        let terminator = self.customs.terminator(c);
        self.open = terminator.map(|kind| OpenTerminator::new(c, kind, at, line));
        outcome.end()
    }

    /// Ends the text, which decides the open terminator.
    pub(super) fn finish(&mut self, text: &HeldText) -> Option<TextPosition> {
        self.begin_chars = 0;
        let open = self.open.take()?;
        open.give_up(text, &self.customs).end()
    }

    /// Whether a long Thai or Lao phrase ended just before this character.
    fn ends_phrase(&self, c: char, at: TextPosition, text: &HeldText) -> bool {
        class::is_thai_or_lao(c) && at.chars >= self.begin_chars + PHRASE_CHARS && {
            let before = text.before(at);
            let phrase = before.trim_end_matches(' ');
            phrase.len() < before.len() && phrase.ends_with(class::is_thai_or_lao)
        }
    }
}

/// What a character reveals about an open terminator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SentenceDecision {
    Wait,
    GoesOn,
    Ends(TextPosition),
}

impl SentenceDecision {
    fn end(self) -> Option<TextPosition> {
        match self {
            SentenceDecision::Ends(position) => Some(position),
            SentenceDecision::Wait | SentenceDecision::GoesOn => None,
        }
    }
}

/// A terminator for which it is not decided yet whether it ends the sentence.
#[derive(Debug)]
struct OpenTerminator {
    terminator: char,
    kind: TerminatorKind,
    at: TextPosition,
    /// Where the line of the terminator begins.
    line: TextPosition,
    /// Whether a quote or a bracket was closed after the terminator.
    is_closed: bool,
    waited_chars: usize,
    stage: TerminatorStage,
}

/// How far the text has come since the terminator.
#[derive(Clone, Copy, Debug)]
enum TerminatorStage {
    /// At closing characters right after the terminator.
    Closing,
    /// In a reference in square brackets right after the terminator.
    Reference,
    /// In the white space after the terminator.
    Spaced,
    /// After a character that is not a letter. The cut would be where that character began.
    Looking { cut: TextPosition, first: char },
    /// In the word after the cut, which shows whether a sentence begins.
    Word { cut: TextPosition, begin: TextPosition },
}

impl OpenTerminator {
    fn new(terminator: char, kind: TerminatorKind, at: TextPosition, line: TextPosition) -> Self {
        let stage = TerminatorStage::Closing;
        OpenTerminator { terminator, kind, at, line, is_closed: false, waited_chars: 0, stage }
    }

    fn step(
        &mut self,
        c: char,
        at: TextPosition,
        text: &HeldText,
        customs: &LanguageCustoms,
    ) -> SentenceDecision {
        if !matches!(self.stage, TerminatorStage::Spaced) {
            self.waited_chars += 1;
            if self.waited_chars > LOOK_AHEAD_CHARS {
                return self.give_up(text, customs);
            }
        }
        match self.stage {
            TerminatorStage::Reference => {
                if c == ']' {
                    self.stage = TerminatorStage::Closing;
                }
                SentenceDecision::Wait
            }
            TerminatorStage::Closing | TerminatorStage::Spaced => {
                if let Some(kind) = customs.terminator(c) {
                    let is_closed = self.is_closed;
                    *self =
                        OpenTerminator { is_closed, ..OpenTerminator::new(c, kind, at, self.line) };
                    SentenceDecision::Wait
                } else if c.is_whitespace() {
                    self.stage = TerminatorStage::Spaced;
                    SentenceDecision::Wait
                } else if matches!(self.stage, TerminatorStage::Spaced) {
                    self.spaced(c, at, text, customs)
                } else {
                    self.closing(c, at, text, customs)
                }
            }
            TerminatorStage::Looking { cut, first } => {
                if customs.terminator(c).is_some() {
                    self.give_up(text, customs)
                } else if c.is_alphabetic() {
                    self.letter(c, at, cut, first, text, customs)
                } else {
                    SentenceDecision::Wait
                }
            }
            TerminatorStage::Word { cut, begin } => {
                if c.is_alphabetic() || class::extends(c) {
                    return SentenceDecision::Wait;
                }
                let word = text.slice(begin, at);
                let is_initial = c == '.' && word.chars().nth(1).is_none();
                let begins = !is_initial && customs.begins_sentence(word);
                if begins { SentenceDecision::Ends(cut) } else { SentenceDecision::GoesOn }
            }
        }
    }

    /// Handles a character right after the terminator and its closing characters.
    fn closing(
        &mut self,
        c: char,
        at: TextPosition,
        text: &HeldText,
        customs: &LanguageCustoms,
    ) -> SentenceDecision {
        if c == '[' {
            self.stage = TerminatorStage::Reference;
            return SentenceDecision::Wait;
        }
        match class::after_terminator(c, false) {
            AfterTerminator::Continues => SentenceDecision::GoesOn,
            // Unicode does not distinguish opening from closing characters; without spaces it
            // matters.
            AfterTerminator::Trails if self.is_end_before(c) => SentenceDecision::Ends(at),
            AfterTerminator::Trails => {
                self.is_closed |= !class::extends(c);
                SentenceDecision::Wait
            }
            AfterTerminator::Starts if matches!(c, '*' | '_' | '~' | '`') => SentenceDecision::Wait,
            AfterTerminator::Starts if !class::needs_space(self.terminator) => {
                SentenceDecision::Ends(at)
            }
            AfterTerminator::Starts if class::is_unspaced(c) => {
                self.letter(c, at, at, c, text, customs)
            }
            AfterTerminator::Starts if c.is_ascii() || c.is_alphabetic() => {
                SentenceDecision::GoesOn
            }
            // Digits continue a number, but raised digits are a reference.
            AfterTerminator::Starts if c.is_numeric() && !is_raised(c) => SentenceDecision::GoesOn,
            // An emoji right after the end belongs to the sentence.
            AfterTerminator::Starts => SentenceDecision::Wait,
        }
    }

    /// Whether the character opens the next sentence. Straight quotes leave that undecided.
    fn is_end_before(&self, c: char) -> bool {
        let opens = class::is_opening(c) && !matches!(c, '"' | '\'');
        opens && !class::needs_space(self.terminator)
    }

    /// Handles a character after the white space that follows the terminator.
    fn spaced(
        &mut self,
        c: char,
        at: TextPosition,
        text: &HeldText,
        customs: &LanguageCustoms,
    ) -> SentenceDecision {
        if c == '»' && customs.has_spaced_quotes() {
            self.is_closed = true;
            self.stage = TerminatorStage::Closing;
            return SentenceDecision::Wait;
        }
        match class::after_terminator(c, true) {
            AfterTerminator::Continues => SentenceDecision::GoesOn,
            AfterTerminator::Trails => SentenceDecision::Wait,
            AfterTerminator::Starts if c.is_alphabetic() || self.kind == TerminatorKind::Full => {
                self.letter(c, at, at, c, text, customs)
            }
            AfterTerminator::Starts => {
                self.stage = TerminatorStage::Looking { cut: at, first: c };
                SentenceDecision::Wait
            }
        }
    }

    /// Handles the first letter after the cut. The text after the cut may begin with another
    /// character.
    fn letter(
        &mut self,
        c: char,
        at: TextPosition,
        cut: TextPosition,
        first: char,
        text: &HeldText,
        customs: &LanguageCustoms,
    ) -> SentenceDecision {
        if self.kind == TerminatorKind::Full {
            let is_quotation = self.is_closed && c.is_lowercase();
            return if is_quotation {
                SentenceDecision::GoesOn
            } else {
                SentenceDecision::Ends(cut)
            };
        }
        if c.is_lowercase() {
            return SentenceDecision::GoesOn;
        }
        match self.verdict(first, text, customs) {
            StopVerdict::Ends => SentenceDecision::Ends(cut),
            StopVerdict::Depends if class::is_unspaced(c) => SentenceDecision::Ends(cut),
            StopVerdict::Depends if customs.knows_beginnings() => {
                self.stage = TerminatorStage::Word { cut, begin: at };
                SentenceDecision::Wait
            }
            StopVerdict::Depends | StopVerdict::GoesOn => SentenceDecision::GoesOn,
        }
    }

    /// Decides without further text.
    fn give_up(&self, text: &HeldText, customs: &LanguageCustoms) -> SentenceDecision {
        match self.stage {
            TerminatorStage::Looking { cut, first } => match self.verdict(first, text, customs) {
                StopVerdict::Ends => SentenceDecision::Ends(cut),
                StopVerdict::GoesOn | StopVerdict::Depends => SentenceDecision::GoesOn,
            },
            TerminatorStage::Word { cut, begin } => {
                let begins = customs.begins_sentence(text.slice(begin, text.end()));
                if begins { SentenceDecision::Ends(cut) } else { SentenceDecision::GoesOn }
            }
            TerminatorStage::Closing | TerminatorStage::Reference | TerminatorStage::Spaced => {
                SentenceDecision::GoesOn
            }
        }
    }

    /// Judges the word before a full stop.
    fn verdict(&self, first: char, text: &HeldText, customs: &LanguageCustoms) -> StopVerdict {
        if self.terminator != '.' {
            return StopVerdict::Ends;
        }
        let before = text.before(self.at);
        let in_line = self.at.byte - self.line.byte;
        let is_whole = in_line <= before.len();
        let line = if is_whole { &before[before.len() - in_line..] } else { before };
        customs.verdict(line, is_whole, first)
    }
}

/// Whether the character is a superscript digit.
fn is_raised(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹')
}
