//! Where sentences end: UAX 29 (SB6 to SB11), read one character at a time, and customs on top.
//!
//! Beyond Unicode, because a subscriber hears each cut as an end: abbreviations keep their sentence
//! together; a full stop, `!` or `?` with a letter right after it is part of an address, a name or
//! code; markup and references such as `[1]` right after the end belong to it; a quotation that
//! goes on in lower case is not an end. In Thai and Lao a space ends a long phrase.
//!
//! It never waits longer than [`LOOK_AHEAD_CHARS`] characters and white space.

use aaep::LanguageTag;

use super::abbreviation::{Customs, Verdict};
use super::class::{self, After, Terminator};
use super::held::{Held, Position};

/// How many characters can decide what a terminator meant; without an answer the sentence ended.
const LOOK_AHEAD_CHARS: usize = 32;

/// In Thai and Lao, a space after this many characters counts as the end of a sentence.
const PHRASE_CHARS: usize = 80;

/// What is known about the end of the sentence.
#[derive(Debug)]
pub(super) struct Sentences {
    customs: Customs,
    open: Option<Open>,
    /// How many characters came before the current sentence.
    begin_chars: usize,
}

impl Sentences {
    /// Sentences in a language, or as in English.
    pub(super) fn new(language: Option<&LanguageTag>) -> Self {
        Sentences { customs: Customs::of(language), open: None, begin_chars: 0 }
    }

    /// Whether it waits to know if a sentence ended.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Where the terminator is that may have ended one; nothing before it is open.
    pub(super) fn open_at(&self) -> Option<Position> {
        self.open.as_ref().map(|open| open.at)
    }

    /// Something stronger decided.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// A sentence begins there.
    pub(super) fn begin(&mut self, position: Position) {
        self.begin_chars = position.chars;
    }

    /// Reads a character, and says where a sentence ended, once it is certain.
    pub(super) fn step(
        &mut self,
        c: char,
        at: Position,
        text: &Held,
        line: Position,
    ) -> Option<Position> {
        let ended = self.open.is_none() && self.ends_phrase(c, at, text);
        let outcome = match &mut self.open {
            Some(open) => open.step(c, at, text, &self.customs),
            None if ended => Outcome::Ends(at),
            None => Outcome::GoesOn,
        };
        if outcome == Outcome::Wait {
            return None;
        }
        let terminator = self.customs.terminator(c);
        self.open = terminator.map(|kind| Open::new(c, kind, at, line));
        outcome.end()
    }

    /// The text ends here: what it means for the terminator that was open.
    pub(super) fn finish(&mut self, text: &Held) -> Option<Position> {
        self.begin_chars = 0;
        let open = self.open.take()?;
        open.give_up(text, &self.customs).end()
    }

    /// Whether a long Thai or Lao phrase ended before this character.
    fn ends_phrase(&self, c: char, at: Position, text: &Held) -> bool {
        class::is_thai_or_lao(c) && at.chars >= self.begin_chars + PHRASE_CHARS && {
            let before = text.before(at);
            let phrase = before.trim_end_matches(' ');
            phrase.len() < before.len() && phrase.ends_with(class::is_thai_or_lao)
        }
    }
}

/// What a character tells about an open terminator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Wait,
    GoesOn,
    Ends(Position),
}

impl Outcome {
    fn end(self) -> Option<Position> {
        match self {
            Outcome::Ends(position) => Some(position),
            Outcome::Wait | Outcome::GoesOn => None,
        }
    }
}

/// A terminator of which it is not known yet whether it ends the sentence.
#[derive(Debug)]
struct Open {
    terminator: char,
    kind: Terminator,
    at: Position,
    /// Where its line begins.
    line: Position,
    /// Whether a quote or a bracket closed after it.
    is_closed: bool,
    waited_chars: usize,
    stage: Stage,
}

/// How far the text has come after the terminator.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// At what closes right after it.
    Closing,
    /// In a reference in square brackets right after it.
    Reference,
    /// In the white space.
    Spaced,
    /// After something that is no letter, and which began where the cut would be.
    Looking { cut: Position, first: char },
    /// In the word after the cut, which tells whether a sentence begins.
    Word { cut: Position, begin: Position },
}

impl Open {
    fn new(terminator: char, kind: Terminator, at: Position, line: Position) -> Self {
        let stage = Stage::Closing;
        Open { terminator, kind, at, line, is_closed: false, waited_chars: 0, stage }
    }

    fn step(&mut self, c: char, at: Position, text: &Held, customs: &Customs) -> Outcome {
        if !matches!(self.stage, Stage::Spaced) {
            self.waited_chars += 1;
            if self.waited_chars > LOOK_AHEAD_CHARS {
                return self.give_up(text, customs);
            }
        }
        match self.stage {
            Stage::Reference => {
                if c == ']' {
                    self.stage = Stage::Closing;
                }
                Outcome::Wait
            }
            Stage::Closing | Stage::Spaced => {
                if let Some(kind) = customs.terminator(c) {
                    let is_closed = self.is_closed;
                    *self = Open { is_closed, ..Open::new(c, kind, at, self.line) };
                    Outcome::Wait
                } else if c.is_whitespace() {
                    self.stage = Stage::Spaced;
                    Outcome::Wait
                } else if matches!(self.stage, Stage::Spaced) {
                    self.spaced(c, at, text, customs)
                } else {
                    self.closing(c, at, text, customs)
                }
            }
            Stage::Looking { cut, first } => {
                if customs.terminator(c).is_some() {
                    self.give_up(text, customs)
                } else if c.is_alphabetic() {
                    self.letter(c, at, cut, first, text, customs)
                } else {
                    Outcome::Wait
                }
            }
            Stage::Word { cut, begin } => {
                if c.is_alphabetic() || class::extends(c) {
                    return Outcome::Wait;
                }
                let word = text.slice(begin, at);
                let is_initial = c == '.' && word.chars().nth(1).is_none();
                let begins = !is_initial && customs.begins_sentence(word);
                if begins { Outcome::Ends(cut) } else { Outcome::GoesOn }
            }
        }
    }

    /// A character right after the terminator and what closes there.
    fn closing(&mut self, c: char, at: Position, text: &Held, customs: &Customs) -> Outcome {
        if c == '[' {
            self.stage = Stage::Reference;
            return Outcome::Wait;
        }
        match class::after_terminator(c, false) {
            After::Continues => Outcome::GoesOn,
            // Unicode does not tell apart what opens and closes; without spaces it matters.
            After::Trails if self.is_end_before(c) => Outcome::Ends(at),
            After::Trails => {
                self.is_closed |= !class::extends(c);
                Outcome::Wait
            }
            After::Starts if matches!(c, '*' | '_' | '~' | '`') => Outcome::Wait,
            After::Starts if !class::needs_space(self.terminator) => Outcome::Ends(at),
            After::Starts if class::is_unspaced(c) => self.letter(c, at, at, c, text, customs),
            After::Starts if c.is_ascii() || c.is_alphabetic() => Outcome::GoesOn,
            // Digits go on with a number, but raised ones are a reference.
            After::Starts if c.is_numeric() && !is_raised(c) => Outcome::GoesOn,
            // An emoji right after the end belongs to it.
            After::Starts => Outcome::Wait,
        }
    }

    /// Whether the character opens what follows; straight quotes do not tell.
    fn is_end_before(&self, c: char) -> bool {
        let opens = class::is_opening(c) && !matches!(c, '"' | '\'');
        opens && !class::needs_space(self.terminator)
    }

    /// A character after the white space that follows the terminator.
    fn spaced(&mut self, c: char, at: Position, text: &Held, customs: &Customs) -> Outcome {
        if c == '»' && customs.has_spaced_quotes() {
            self.is_closed = true;
            self.stage = Stage::Closing;
            return Outcome::Wait;
        }
        match class::after_terminator(c, true) {
            After::Continues => Outcome::GoesOn,
            After::Trails => Outcome::Wait,
            After::Starts if c.is_alphabetic() || self.kind == Terminator::Full => {
                self.letter(c, at, at, c, text, customs)
            }
            After::Starts => {
                self.stage = Stage::Looking { cut: at, first: c };
                Outcome::Wait
            }
        }
    }

    /// The first letter after the cut, which began with another character maybe.
    fn letter(
        &mut self,
        c: char,
        at: Position,
        cut: Position,
        first: char,
        text: &Held,
        customs: &Customs,
    ) -> Outcome {
        if self.kind == Terminator::Full {
            let is_quotation = self.is_closed && c.is_lowercase();
            return if is_quotation { Outcome::GoesOn } else { Outcome::Ends(cut) };
        }
        if c.is_lowercase() {
            return Outcome::GoesOn;
        }
        match self.verdict(first, text, customs) {
            Verdict::Ends => Outcome::Ends(cut),
            Verdict::Depends if class::is_unspaced(c) => Outcome::Ends(cut),
            Verdict::Depends if customs.knows_beginnings() => {
                self.stage = Stage::Word { cut, begin: at };
                Outcome::Wait
            }
            Verdict::Depends | Verdict::GoesOn => Outcome::GoesOn,
        }
    }

    /// Nothing that follows decides.
    fn give_up(&self, text: &Held, customs: &Customs) -> Outcome {
        match self.stage {
            Stage::Looking { cut, first } => match self.verdict(first, text, customs) {
                Verdict::Ends => Outcome::Ends(cut),
                Verdict::GoesOn | Verdict::Depends => Outcome::GoesOn,
            },
            Stage::Word { cut, begin } => {
                let begins = customs.begins_sentence(text.slice(begin, text.end()));
                if begins { Outcome::Ends(cut) } else { Outcome::GoesOn }
            }
            Stage::Closing | Stage::Reference | Stage::Spaced => Outcome::GoesOn,
        }
    }

    /// What the word before a full stop says.
    fn verdict(&self, first: char, text: &Held, customs: &Customs) -> Verdict {
        if self.terminator != '.' {
            return Verdict::Ends;
        }
        let before = text.before(self.at);
        let in_line = self.at.byte - self.line.byte;
        let is_whole = in_line <= before.len();
        let line = if is_whole { &before[before.len() - in_line..] } else { before };
        customs.verdict(line, is_whole, first)
    }
}

/// Digits set above the line.
fn is_raised(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹')
}
