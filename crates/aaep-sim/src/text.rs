//! The texts that agents write, with the position of every boundary. The positions are known
//! because the text is composed here of words, sentences and paragraphs, not found by reading it.

use std::collections::BTreeSet;

use aaep::event::action::CoalesceBoundary;

use crate::rng::SeededRng;

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

/// Words with a full stop that does not end a sentence.
const ABBREVIATIONS: &[&str] = &["Dr. Ada", "Mr. Bell", "e.g. tea", "v1.2 of it"];

/// The text of a whole output, and where it may be cut.
#[derive(Debug, Clone, Default)]
pub struct WrittenText {
    /// The characters.
    pub chars: Vec<char>,
    words: BTreeSet<usize>,
    sentences: BTreeSet<usize>,
    paragraphs: BTreeSet<usize>,
}

impl WrittenText {
    /// Composes a text with this many sentences.
    pub fn write(rng: &mut SeededRng, sentences: usize) -> Self {
        let mut text = WrittenText::default();
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

    /// The number of characters.
    pub fn len(&self) -> usize {
        self.chars.len()
    }

    /// Whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    /// Whether a subscriber that asked for this boundary may receive a piece that ends at this position.
    pub fn ends_at(&self, place: usize, boundary: &CoalesceBoundary) -> bool {
        match boundary {
            CoalesceBoundary::Word => self.words.contains(&place),
            CoalesceBoundary::Sentence => self.sentences.contains(&place),
            CoalesceBoundary::Paragraph => self.paragraphs.contains(&place),
            _ => false,
        }
    }

    /// The text as it is sent if the agent writes it in pieces that end at these positions: each
    /// piece is put into Normalization Form C by itself (ruling 34), and all boundaries move with
    /// it.
    pub fn as_sent(&self, ends: &[usize]) -> Self {
        let mut sent = WrittenText::default();
        // The position in the sent text of each position of this text.
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
        WrittenText {
            words: moved(&self.words),
            sentences: moved(&self.sentences),
            paragraphs: moved(&self.paragraphs),
            ..sent
        }
    }

    fn sentence(&mut self, rng: &mut SeededRng) {
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
        // End with a word of plain letters, so that the full stop after it ends a sentence.
        self.push(" ");
        self.words.insert(self.chars.len());
        self.push("indeed");
        self.push(if rng.chance(80) { "." } else { "?" });
    }

    fn push(&mut self, part: &str) {
        self.chars.extend(part.chars());
    }
}

/// A letter and its mark as one character, for the combinations that occur in `WORDS`.
fn composed(letter: char, mark: char) -> Option<char> {
    match (letter, mark) {
        ('e', '\u{301}') => Some('\u{e9}'),
        ('i', '\u{308}') => Some('\u{ef}'),
        _ => None,
    }
}
