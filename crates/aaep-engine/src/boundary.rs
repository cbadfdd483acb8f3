//! Cuts streamed text for a subscriber at words, sentences or paragraphs (§4.3.3, §5.3.1.6).
//!
//! A [`Cutter`] takes the text of one output as the model delivers it and returns pieces that end
//! at a boundary the subscriber asked for. It reads one character at a time and cannot look ahead,
//! so the pieces depend only on the whole text, the boundaries and the language. Only with `none`
//! do they follow the chunks. Put together, the pieces are the text.
//!
//! Memory is bounded: a cutter holds fewer than [`MAX_PIECE_CHARS`] characters and a small margin,
//! whatever arrives. Work is linear: no character is examined more than a fixed number of times.
//!
//! A cutter never changes, trims or repeats a character, and never cuts inside a grapheme cluster
//! (except with `none`, which passes on the agent's chunks unchanged). It knows nothing about time:
//! how long a piece may wait is decided elsewhere.

mod abbreviation;
mod class;
mod held;
mod line;
mod sentence;
#[cfg(test)]
mod tests;
mod word;

use aaep::LanguageTag;
use aaep::event::action::CoalesceBoundary;

use held::{HeldText, TextPosition};
use line::{LineTracker, LineTurn};
use sentence::SentenceTracker;
use word::WordTracker;
pub use word::count_words;

/// The most characters in a piece. This is half of what a chunk may hold (§4.3.3), which leaves
/// room for text that is wrapped around a piece.
pub const MAX_PIECE_CHARS: usize = 8_000;

/// A piece cut because of its size is at least this long, so that cutting makes progress.
const MIN_FORCED_CHARS: usize = MAX_PIECE_CHARS / 2;

/// The kinds of boundaries, finest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum BoundaryLevel {
    None,
    Word,
    Sentence,
    Paragraph,
    Completion,
}

impl BoundaryLevel {
    const ALL: [BoundaryLevel; 5] = [
        BoundaryLevel::None,
        BoundaryLevel::Word,
        BoundaryLevel::Sentence,
        BoundaryLevel::Paragraph,
        BoundaryLevel::Completion,
    ];

    fn of(boundary: &CoalesceBoundary) -> Option<Self> {
        match boundary {
            CoalesceBoundary::None => Some(BoundaryLevel::None),
            CoalesceBoundary::Word => Some(BoundaryLevel::Word),
            CoalesceBoundary::Sentence => Some(BoundaryLevel::Sentence),
            CoalesceBoundary::Paragraph => Some(BoundaryLevel::Paragraph),
            CoalesceBoundary::Completion => Some(BoundaryLevel::Completion),
            CoalesceBoundary::Other(_) => None,
        }
    }

    fn boundary(self) -> CoalesceBoundary {
        match self {
            BoundaryLevel::None => CoalesceBoundary::None,
            BoundaryLevel::Word => CoalesceBoundary::Word,
            BoundaryLevel::Sentence => CoalesceBoundary::Sentence,
            BoundaryLevel::Paragraph => CoalesceBoundary::Paragraph,
            BoundaryLevel::Completion => CoalesceBoundary::Completion,
        }
    }
}

/// The set of boundaries at which text is cut. It is never empty, and the finest one decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Boundaries(u8);

impl Boundaries {
    /// The boundaries of a subscriber that stated none: sentence and completion (§5.3.1.6).
    pub const DEFAULT: Boundaries =
        Boundaries(1 << BoundaryLevel::Sentence as u8 | 1 << BoundaryLevel::Completion as u8);

    /// The set of the boundaries in the list. Unknown ones are ignored; if none remains, the
    /// default set applies.
    pub fn from_list(list: &[CoalesceBoundary]) -> Self {
        let known = list.iter().filter_map(BoundaryLevel::of);
        match known.fold(0, |bits, level| bits | 1 << level as u8) {
            0 => Boundaries::DEFAULT,
            bits => Boundaries(bits),
        }
    }

    /// Whether the boundary is in the set; an unknown one never is.
    pub fn contains(self, boundary: &CoalesceBoundary) -> bool {
        BoundaryLevel::of(boundary).is_some_and(|level| self.has(level))
    }

    /// The finest boundary of the set, at which text is cut.
    pub fn finest(self) -> CoalesceBoundary {
        self.finest_level().boundary()
    }

    fn has(self, level: BoundaryLevel) -> bool {
        self.0 & 1 << level as u8 != 0
    }

    fn finest_level(self) -> BoundaryLevel {
        BoundaryLevel::ALL
            .into_iter()
            .find(|level| self.has(*level))
            .unwrap_or(BoundaryLevel::Completion)
    }

    /// The boundary that the last piece of an output reports: the strongest one asked for.
    pub fn at_completion(self) -> CoalesceBoundary {
        self.reported(BoundaryLevel::Completion).boundary()
    }

    /// The boundary that a piece reports if it ends at `reached`: the strongest one asked for up to
    /// that level.
    fn reported(self, reached: BoundaryLevel) -> BoundaryLevel {
        let asked = |level: &BoundaryLevel| *level <= reached && self.has(*level);
        BoundaryLevel::ALL.into_iter().rev().find(asked).unwrap_or(reached)
    }
}

impl Default for Boundaries {
    fn default() -> Self {
        Boundaries::DEFAULT
    }
}

/// A piece of the text that ends at a boundary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece<'a> {
    /// The text, with the white space that follows it; never empty.
    pub text: &'a str,
    /// The strongest boundary asked for at which the piece ends. A piece that was cut because of
    /// its size names the boundary found there, which may be finer than any that was asked for.
    pub boundary: CoalesceBoundary,
    /// How many characters (code points) it has, for `position` (§4.3.3).
    pub chars: usize,
}

/// A position at which the text can be cut.
#[derive(Clone, Copy, Debug)]
struct CutMark {
    position: TextPosition,
    level: BoundaryLevel,
}

/// Holds the text of one output that has not been cut yet.
///
/// If the output is not empty, its last piece always comes from [`Cutter::finish`]. With `none`,
/// nothing is held back, so nothing is left to finish.
#[derive(Debug)]
pub struct Cutter {
    boundaries: Boundaries,
    /// The level at which text is cut.
    finest: BoundaryLevel,
    text: HeldText,
    lines: LineTracker,
    sentences: SentenceTracker,
    words: WordTracker,
    /// Positions to cut at, in order, that wait until it is known whether a sentence ends there.
    /// The list is never longer than the look-ahead of [`SentenceTracker`].
    marks: Vec<CutMark>,
    /// The last positions for a coarser cut, used if the text grows too long.
    last_sentence: Option<TextPosition>,
    last_paragraph: Option<TextPosition>,
    /// The held text has no words up to this position, so it is not searched again.
    wordless_up_to: TextPosition,
}

impl Cutter {
    /// A cutter for one output in one language. Without a language, the customs of English apply.
    pub fn new(boundaries: Boundaries, language: Option<&LanguageTag>) -> Self {
        Cutter {
            boundaries,
            finest: boundaries.finest_level(),
            text: HeldText::default(),
            lines: LineTracker::default(),
            sentences: SentenceTracker::new(language),
            words: WordTracker::default(),
            marks: Vec::new(),
            last_sentence: None,
            last_paragraph: None,
            wordless_up_to: TextPosition::default(),
        }
    }

    /// Takes the next chunk, and emits each piece that is now certain to end at a boundary.
    pub fn push(&mut self, chunk: &str, emit: &mut impl FnMut(Piece<'_>)) {
        if self.finest == BoundaryLevel::None {
            // The agent's own chunks, each at once (ruling 31).
            if !chunk.is_empty() {
                let chars = chunk.chars().count();
                emit(Piece { text: chunk, boundary: CoalesceBoundary::None, chars });
            }
            return;
        }
        let mut rest = chunk;
        loop {
            if self.is_quiet() {
                rest = self.text.take_plain(rest, MAX_PIECE_CHARS);
            }
            let Some(c) = rest.chars().next() else { return };
            rest = &rest[c.len_utf8()..];
            self.step(c, emit);
        }
    }

    /// Ends the output because it is complete or its session ended. The end decides everything that
    /// was still open, and all remaining text becomes one last piece. The cutter is then ready for
    /// another output.
    pub fn finish(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        if self.finest == BoundaryLevel::Word {
            self.words.finish(&self.text, &mut |position| {
                mark(&mut self.marks, position, BoundaryLevel::Word);
            });
        }
        if let Some(position) = self.sentences.finish(&self.text) {
            self.mark(position, BoundaryLevel::Sentence);
        }
        self.flush(emit);
        let end = self.text.end();
        self.cut(end, self.boundaries.reported(BoundaryLevel::Completion), emit);
        self.text = HeldText::default();
        self.lines = LineTracker::default();
        self.words = WordTracker::default();
        (self.last_sentence, self.last_paragraph) = (None, None);
        self.wordless_up_to = TextPosition::default();
    }

    /// How many characters are held back.
    pub fn held_chars(&self) -> usize {
        self.text.chars()
    }

    /// Whether plain characters can be taken in bulk because they change nothing but the text.
    fn is_quiet(&self) -> bool {
        self.finest > BoundaryLevel::Word && self.lines.is_inside() && !self.sentences.is_open()
    }

    /// Reads one character.
    fn step(&mut self, c: char, emit: &mut impl FnMut(Piece<'_>)) {
        if self.text.chars() == MAX_PIECE_CHARS {
            self.force_cut(emit);
        }
        let at = self.text.end();
        self.text.push(c);
        let turn = self.lines.step(c, at, self.text.end());
        self.turn(turn, c);
        let is_code = self.lines.is_code();
        if !is_code && let Some(end) = self.sentences.step(c, at, &self.text, self.lines.start()) {
            self.mark(end, BoundaryLevel::Sentence);
        }
        if self.finest == BoundaryLevel::Word {
            let marks = &mut self.marks;
            self.words.step(c, at, is_code, &self.text, &mut |position| {
                mark(marks, position, BoundaryLevel::Word);
            });
        }
        if !self.marks.is_empty() {
            self.flush(emit);
        }
    }

    /// Handles a new line. It ends a sentence, because list items, headings and lines of code are
    /// heard one by one. It does not where prose was merely wrapped, which would put a pause in
    /// mid-sentence.
    fn turn(&mut self, turn: LineTurn, c: char) {
        match turn {
            LineTurn::Inside => {}
            LineTurn::Paragraph(position) => {
                self.sentences.forget();
                self.mark(position, BoundaryLevel::Paragraph);
            }
            LineTurn::Line { position, is_long } => {
                let goes_on = if self.sentences.is_open() {
                    c.is_alphabetic()
                } else {
                    c.is_lowercase() || c.is_alphabetic() && self.text.ends_with_comma(position)
                };
                if !(is_long && goes_on) {
                    self.sentences.forget();
                    self.mark(position, BoundaryLevel::Sentence);
                }
            }
        }
    }

    /// Notes a position to cut at, or one to fall back on if the text grows too long.
    fn mark(&mut self, position: TextPosition, level: BoundaryLevel) {
        if position <= self.text.start() || self.text.is_inside_cluster(position) {
            return;
        }
        self.sentences.begin(position);
        if level >= self.finest {
            mark(&mut self.marks, position, level);
        } else if level == BoundaryLevel::Paragraph {
            self.last_paragraph = Some(position);
        } else {
            self.last_sentence = Some(position);
        }
    }

    /// Cuts at every position for which it is decided what ends there.
    fn flush(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        let open = self.sentences.open_at();
        let is_known = |mark: &CutMark| open.is_none_or(|open| mark.position <= open);
        let known = self.marks.partition_point(is_known);
        let mut marks = std::mem::take(&mut self.marks);
        for CutMark { position, level } in marks.drain(..known) {
            if position > self.text.start() && self.says_something(position, level) {
                self.cut(position, self.boundaries.reported(level), emit);
            }
        }
        self.marks = marks;
    }

    /// Whether the held text up to the position contains something to say. A piece of white space,
    /// or of punctuation between words, would announce nothing.
    fn says_something(&mut self, position: TextPosition, level: BoundaryLevel) -> bool {
        if level > BoundaryLevel::Word {
            return !self.text.slice(self.text.start(), position).trim_start().is_empty();
        }
        let from = self.wordless_up_to.max(self.text.start());
        let found = from < position && self.text.slice(from, position).contains(class::is_wordy);
        if !found {
            self.wordless_up_to = position.max(from);
        }
        found
    }

    /// Emits the held text up to the position, if there is any.
    fn cut(
        &mut self,
        position: TextPosition,
        level: BoundaryLevel,
        emit: &mut impl FnMut(Piece<'_>),
    ) {
        let start = self.text.start();
        if position > start {
            let text = self.text.slice(start, position);
            emit(Piece { text, boundary: level.boundary(), chars: position.chars - start.chars });
            self.text.advance(position);
        }
    }

    /// Cuts text that has reached the size limit at the best boundary in its second half.
    fn force_cut(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        self.sentences.forget();
        self.flush(emit);
        if self.text.chars() < MAX_PIECE_CHARS {
            return;
        }
        let earliest = self.text.start().chars + MIN_FORCED_CHARS;
        let far = |position: &TextPosition| position.chars >= earliest;
        let noted = [
            (self.last_paragraph, BoundaryLevel::Paragraph),
            (self.last_sentence, BoundaryLevel::Sentence),
        ];
        let coarse = noted.into_iter().find_map(|(place, level)| Some((place.filter(far)?, level)));
        let (position, level) = coarse
            .or_else(|| Some((word::last_boundary(&self.text, earliest)?, BoundaryLevel::Word)))
            .or_else(|| Some((self.text.last_cluster().filter(far)?, BoundaryLevel::None)))
            .unwrap_or((self.text.end(), BoundaryLevel::None));
        self.words.forget(position);
        self.cut(position, level, emit);
    }
}

/// Inserts a mark in order. If the position has a mark already, the stronger level stays.
fn mark(marks: &mut Vec<CutMark>, position: TextPosition, level: BoundaryLevel) {
    match marks.binary_search_by_key(&position, |mark| mark.position) {
        Ok(index) => marks[index].level = marks[index].level.max(level),
        Err(index) => marks.insert(index, CutMark { position, level }),
    }
}
