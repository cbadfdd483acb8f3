//! The texts that agents write, with the places where each boundary is: known because the text is
//! made of words, sentences and paragraphs here, not found by reading it.

use std::collections::BTreeSet;

use aaep::event::action::CoalesceBoundary;

use crate::rng::Rng;

const WORDS: &[&str] = &[
    "the",
    "train",
    "leaves",
    "at",
    "noon",
    "while",
    "seats",
    "stay",
    "free",
    "and",
    "every",
    "ticket",
    "costs",
    "less",
    "on",
    "Sunday",
    "cafe\u{301}",
    "nai\u{308}ve",
    "coach",
    "ramp",
    "we",
    "found",
    "three",
    "letters",
    "from",
    "Leeds",
    "o",
    "quiet",
];

/// Words with a full stop that ends no sentence.
const ABBREVIATIONS: &[&str] = &["Dr. Ada", "Mr. Bell", "e.g. tea", "v1.2 of it"];

/// A whole output, and where it may be cut.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// The characters.
    pub chars: Vec<char>,
    words: BTreeSet<usize>,
    sentences: BTreeSet<usize>,
    paragraphs: BTreeSet<usize>,
}

impl Text {
    /// A text of so many sentences.
    pub fn write(rng: &mut Rng, sentences: usize) -> Self {
        let mut text = Text::default();
        for number in 0..sentences {
            if number > 0 {
                if rng.chance(25) {
                    text.push("\n\n");
                    text.paragraphs.insert(text.chars.len());
                } else {
                    text.push(" ");
                }
                text.sentences.insert(text.chars.len());
                text.words.insert(text.chars.len());
            }
            text.sentence(rng);
        }
        text
    }

    /// How many characters it has.
    pub fn len(&self) -> usize {
        self.chars.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    /// Whether a subscriber who asked for this boundary can get a piece that ends there.
    pub fn ends_at(&self, place: usize, boundary: &CoalesceBoundary) -> bool {
        match boundary {
            CoalesceBoundary::Word => self.words.contains(&place),
            CoalesceBoundary::Sentence => self.sentences.contains(&place),
            CoalesceBoundary::Paragraph => self.paragraphs.contains(&place),
            _ => false,
        }
    }

    /// The same as it is sent when it is written in pieces that end at these places: each piece in Normalization Form C
    /// by itself (ruling 34), and every place where it is then.
    pub fn as_sent(&self, ends: &[usize]) -> Self {
        let mut sent = Text::default();
        // Where each place of the text is in what is sent.
        let mut places = vec![0];
        let mut begin = 0;
        for &end in ends {
            for at in begin..end {
                let composed = (at > begin).then(|| composed(self.chars[at - 1], self.chars[at]));
                match composed.flatten() {
                    Some(composed) => {
                        sent.chars.pop();
                        sent.chars.push(composed);
                    }
                    None => sent.chars.push(self.chars[at]),
                }
                places.push(sent.chars.len());
            }
            begin = end;
        }
        let moved = |set: &BTreeSet<usize>| set.iter().map(|at| places[*at]).collect();
        Text {
            words: moved(&self.words),
            sentences: moved(&self.sentences),
            paragraphs: moved(&self.paragraphs),
            ..sent
        }
    }

    fn sentence(&mut self, rng: &mut Rng) {
        let count = rng.size(2, 9);
        self.push("So");
        for _ in 0..count {
            self.push(" ");
            self.words.insert(self.chars.len());
            if rng.chance(8) {
                let abbreviation = *rng.pick(ABBREVIATIONS);
                for (at, word) in abbreviation.split(' ').enumerate() {
                    if at > 0 {
                        self.push(" ");
                        self.words.insert(self.chars.len());
                    }
                    self.push(word);
                }
            } else {
                let word = *rng.pick(WORDS);
                self.push(word);
            }
        }
        // A word of plain letters, so that the full stop is one.
        self.push(" ");
        self.words.insert(self.chars.len());
        self.push("indeed");
        self.push(if rng.chance(80) { "." } else { "?" });
    }

    fn push(&mut self, part: &str) {
        self.chars.extend(part.chars());
    }
}

/// A letter with its mark as one character, for those that stand in the words.
fn composed(letter: char, mark: char) -> Option<char> {
    match (letter, mark) {
        ('e', '\u{301}') => Some('\u{e9}'),
        ('i', '\u{308}') => Some('\u{ef}'),
        _ => None,
    }
}
