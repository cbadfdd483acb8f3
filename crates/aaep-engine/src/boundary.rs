//! Where streamed text is cut for a subscriber (§4.3.3, §5.3.1.6): words, sentences, paragraphs.
//!
//! A [`Cutter`] takes the text of one output as the model delivers it and gives it back in pieces
//! that end at a boundary the subscriber asked for. It reads one character at a time and cannot see
//! ahead, so which pieces come out is a function of the whole text, the boundaries and the language
//! alone; only with `none` do they follow the chunks. Put together, the pieces are the text.
//!
//! Memory is bounded: a cutter holds less than [`MAX_PIECE_CHARS`] characters and a small margin,
//! whatever arrives. Work is linear: no character is looked at more than a fixed number of times.
//!
//! It never changes, trims or repeats a character, never cuts inside a grapheme cluster (except with
//! `none`, which passes the agent's chunks as they came), and knows nothing of time: how long a piece
//! may wait is for others to say.

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

use held::{Held, Position};
use line::{Lines, Turn};
use sentence::Sentences;
use word::Words;
pub use word::count_words;

/// The most characters of a piece. Half of what a chunk may hold (§4.3.3), so that whoever wraps a
/// piece has room left.
pub const MAX_PIECE_CHARS: usize = 8_000;

/// A piece cut because of its size is at least this long, so that cutting makes progress.
const MIN_FORCED_CHARS: usize = MAX_PIECE_CHARS / 2;

/// The kinds of boundaries, finest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    None,
    Word,
    Sentence,
    Paragraph,
    Completion,
}

impl Level {
    const ALL: [Level; 5] =
        [Level::None, Level::Word, Level::Sentence, Level::Paragraph, Level::Completion];

    fn of(boundary: &CoalesceBoundary) -> Option<Self> {
        match boundary {
            CoalesceBoundary::None => Some(Level::None),
            CoalesceBoundary::Word => Some(Level::Word),
            CoalesceBoundary::Sentence => Some(Level::Sentence),
            CoalesceBoundary::Paragraph => Some(Level::Paragraph),
            CoalesceBoundary::Completion => Some(Level::Completion),
            CoalesceBoundary::Other(_) => None,
        }
    }

    fn boundary(self) -> CoalesceBoundary {
        match self {
            Level::None => CoalesceBoundary::None,
            Level::Word => CoalesceBoundary::Word,
            Level::Sentence => CoalesceBoundary::Sentence,
            Level::Paragraph => CoalesceBoundary::Paragraph,
            Level::Completion => CoalesceBoundary::Completion,
        }
    }
}

/// At which boundaries text is cut: never empty, and the finest one rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Boundaries(u8);

impl Boundaries {
    /// What holds where the subscriber said nothing: sentence and completion (§5.3.1.6).
    pub const DEFAULT: Boundaries =
        Boundaries(1 << Level::Sentence as u8 | 1 << Level::Completion as u8);

    /// The set of the boundaries in the list. Unknown ones are left out; if nothing is left, it is
    /// the default set.
    pub fn from_list(list: &[CoalesceBoundary]) -> Self {
        let known = list.iter().filter_map(Level::of);
        match known.fold(0, |bits, level| bits | 1 << level as u8) {
            0 => Boundaries::DEFAULT,
            bits => Boundaries(bits),
        }
    }

    /// Whether the boundary is in the set; an unknown one never is.
    pub fn contains(self, boundary: &CoalesceBoundary) -> bool {
        Level::of(boundary).is_some_and(|level| self.has(level))
    }

    /// The finest boundary of the set, at which text is cut.
    pub fn finest(self) -> CoalesceBoundary {
        self.finest_level().boundary()
    }

    fn has(self, level: Level) -> bool {
        self.0 & 1 << level as u8 != 0
    }

    fn finest_level(self) -> Level {
        Level::ALL.into_iter().find(|level| self.has(*level)).unwrap_or(Level::Completion)
    }

    /// What the last piece of an output reports: the strongest boundary asked for.
    pub fn at_completion(self) -> CoalesceBoundary {
        self.reported(Level::Completion).boundary()
    }

    /// What a piece reports that ends at a boundary this strong: the strongest one asked for.
    fn reported(self, reached: Level) -> Level {
        let asked = |level: &Level| *level <= reached && self.has(*level);
        Level::ALL.into_iter().rev().find(asked).unwrap_or(reached)
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
    /// The strongest boundary asked for at which it ends. A piece that was cut because of its size
    /// names the boundary found there, which may be finer than any that was asked for.
    pub boundary: CoalesceBoundary,
    /// How many characters (code points) it has, for `position` (§4.3.3).
    pub chars: usize,
}

/// A place where the text can be cut.
#[derive(Clone, Copy, Debug)]
struct Mark {
    position: Position,
    level: Level,
}

/// The text of one output that has not been cut yet.
///
/// Of an output that is not empty, the last piece always comes from [`Cutter::finish`]; with `none`, nothing waits and
/// nothing is left to finish.
#[derive(Debug)]
pub struct Cutter {
    boundaries: Boundaries,
    /// The level at which text is cut.
    finest: Level,
    text: Held,
    lines: Lines,
    sentences: Sentences,
    words: Words,
    /// Places to cut at, in order, that wait until it is known whether a sentence ends there. As
    /// short as what [`Sentences`] looks ahead.
    marks: Vec<Mark>,
    /// The last places coarser cuts could be made at if the text grows too long.
    last_sentence: Option<Position>,
    last_paragraph: Option<Position>,
    /// Up to here the held text has no words, so that nobody looks there twice.
    wordless_up_to: Position,
}

impl Cutter {
    /// A cutter for one output in one language; without a language English customs hold.
    pub fn new(boundaries: Boundaries, language: Option<&LanguageTag>) -> Self {
        Cutter {
            boundaries,
            finest: boundaries.finest_level(),
            text: Held::default(),
            lines: Lines::default(),
            sentences: Sentences::new(language),
            words: Words::default(),
            marks: Vec::new(),
            last_sentence: None,
            last_paragraph: None,
            wordless_up_to: Position::default(),
        }
    }

    /// Takes the next chunk, and emits each piece that is now certain to end at a boundary.
    pub fn push(&mut self, chunk: &str, emit: &mut impl FnMut(Piece<'_>)) {
        if self.finest == Level::None {
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

    /// The output is complete, or its session ended: its end decides what was still open, and
    /// everything left is one last piece. The cutter is then ready for another output.
    pub fn finish(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        if self.finest == Level::Word {
            self.words.finish(&self.text, &mut |position| {
                mark(&mut self.marks, position, Level::Word);
            });
        }
        if let Some(position) = self.sentences.finish(&self.text) {
            self.mark(position, Level::Sentence);
        }
        self.flush(emit);
        let end = self.text.end();
        self.cut(end, self.boundaries.reported(Level::Completion), emit);
        self.text = Held::default();
        self.lines = Lines::default();
        self.words = Words::default();
        (self.last_sentence, self.last_paragraph) = (None, None);
        self.wordless_up_to = Position::default();
    }

    /// How many characters wait for their boundary.
    pub fn held_chars(&self) -> usize {
        self.text.chars()
    }

    /// Whether plain characters change nothing but the text.
    fn is_quiet(&self) -> bool {
        self.finest > Level::Word && self.lines.is_inside() && !self.sentences.is_open()
    }

    /// Reads one character.
    fn step(&mut self, c: char, emit: &mut impl FnMut(Piece<'_>)) {
        if self.text.chars() == MAX_PIECE_CHARS {
            self.force(emit);
        }
        let at = self.text.end();
        self.text.push(c);
        let turn = self.lines.step(c, at, self.text.end());
        self.turn(turn, c);
        let is_code = self.lines.is_code();
        if !is_code && let Some(end) = self.sentences.step(c, at, &self.text, self.lines.start()) {
            self.mark(end, Level::Sentence);
        }
        if self.finest == Level::Word {
            let marks = &mut self.marks;
            self.words.step(c, at, is_code, &self.text, &mut |position| {
                mark(marks, position, Level::Word);
            });
        }
        if !self.marks.is_empty() {
            self.flush(emit);
        }
    }

    /// A new line ends a sentence, since list items, headings and lines of code are heard one by
    /// one; but not where prose was merely wrapped, which would put a pause in mid-sentence.
    fn turn(&mut self, turn: Turn, c: char) {
        match turn {
            Turn::Inside => {}
            Turn::Paragraph(position) => {
                self.sentences.forget();
                self.mark(position, Level::Paragraph);
            }
            Turn::Line { position, is_long } => {
                let goes_on = if self.sentences.is_open() {
                    c.is_alphabetic()
                } else {
                    c.is_lowercase() || c.is_alphabetic() && self.text.ends_with_comma(position)
                };
                if !(is_long && goes_on) {
                    self.sentences.forget();
                    self.mark(position, Level::Sentence);
                }
            }
        }
    }

    /// Notes a place to cut, or one to fall back on if the text grows too long.
    fn mark(&mut self, position: Position, level: Level) {
        if position <= self.text.start() || self.text.is_inside_cluster(position) {
            return;
        }
        self.sentences.begin(position);
        if level >= self.finest {
            mark(&mut self.marks, position, level);
        } else if level == Level::Paragraph {
            self.last_paragraph = Some(position);
        } else {
            self.last_sentence = Some(position);
        }
    }

    /// Cuts at every place of which it is known what ends there.
    fn flush(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        let open = self.sentences.open_at();
        let is_known = |mark: &Mark| open.is_none_or(|open| mark.position <= open);
        let known = self.marks.partition_point(is_known);
        let mut marks = std::mem::take(&mut self.marks);
        for Mark { position, level } in marks.drain(..known) {
            if position > self.text.start() && self.says_something(position, level) {
                self.cut(position, self.boundaries.reported(level), emit);
            }
        }
        self.marks = marks;
    }

    /// Whether the held text up to there has something to be heard: a piece of white space, or of
    /// punctuation between words, would be an announcement of nothing.
    fn says_something(&mut self, position: Position, level: Level) -> bool {
        if level > Level::Word {
            return !self.text.slice(self.text.start(), position).trim_start().is_empty();
        }
        let from = self.wordless_up_to.max(self.text.start());
        let found = from < position && self.text.slice(from, position).contains(class::is_wordy);
        if !found {
            self.wordless_up_to = position.max(from);
        }
        found
    }

    /// Emits the held text up to there, if there is any.
    fn cut(&mut self, position: Position, level: Level, emit: &mut impl FnMut(Piece<'_>)) {
        let start = self.text.start();
        if position > start {
            let text = self.text.slice(start, position);
            emit(Piece { text, boundary: level.boundary(), chars: position.chars - start.chars });
            self.text.advance(position);
        }
    }

    /// The held text is as long as a piece can be: cuts it at the best boundary of its second half.
    fn force(&mut self, emit: &mut impl FnMut(Piece<'_>)) {
        self.sentences.forget();
        self.flush(emit);
        if self.text.chars() < MAX_PIECE_CHARS {
            return;
        }
        let earliest = self.text.start().chars + MIN_FORCED_CHARS;
        let far = |position: &Position| position.chars >= earliest;
        let noted =
            [(self.last_paragraph, Level::Paragraph), (self.last_sentence, Level::Sentence)];
        let coarse = noted.into_iter().find_map(|(place, level)| Some((place.filter(far)?, level)));
        let (position, level) = coarse
            .or_else(|| Some((word::last_boundary(&self.text, earliest)?, Level::Word)))
            .or_else(|| Some((self.text.last_cluster().filter(far)?, Level::None)))
            .unwrap_or((self.text.end(), Level::None));
        self.words.forget(position);
        self.cut(position, level, emit);
    }
}

/// Puts the place in order; of two levels at one place the stronger stays.
fn mark(marks: &mut Vec<Mark>, position: Position, level: Level) {
    match marks.binary_search_by_key(&position, |mark| mark.position) {
        Ok(index) => marks[index].level = marks[index].level.max(level),
        Err(index) => marks.insert(index, Mark { position, level }),
    }
}
