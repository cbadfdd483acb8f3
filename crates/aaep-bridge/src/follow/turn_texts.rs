//! Texts that arrive in pieces and once more as a whole at their end: each character is told once.

use std::collections::BTreeMap;

/// The most texts of a turn that are remembered.
const MAX_TEXTS: usize = 512;

/// The texts of a turn.
#[derive(Debug, Default)]
pub(super) struct TurnTexts(BTreeMap<String, TextState>);

/// How far a text was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextState {
    /// This many bytes.
    Told(usize),
    /// It began before we heard of it, so it is told when it is whole.
    WaitsForEnd,
    /// All of it.
    Ended,
}

impl TurnTexts {
    /// A text begins.
    pub(super) fn begin(&mut self, id: &str) {
        if self.0.len() < MAX_TEXTS {
            self.0.entry(id.to_owned()).or_insert(TextState::Told(0));
        }
    }

    /// A piece of a text arrives. Returns what to tell now.
    pub(super) fn piece<'t>(&mut self, id: &str, text: &'t str) -> &'t str {
        match self.0.get_mut(id) {
            Some(TextState::Told(told)) => {
                *told += text.len();
                text
            }
            Some(_) => "",
            None => {
                if self.0.len() < MAX_TEXTS {
                    self.0.insert(id.to_owned(), TextState::WaitsForEnd);
                }
                ""
            }
        }
    }

    /// The text is whole. Returns what was not told yet.
    pub(super) fn end<'t>(&mut self, id: &str, whole: &'t str) -> &'t str {
        let is_known = self.0.contains_key(id);
        if !is_known && self.0.len() >= MAX_TEXTS {
            // Whether it was told before is not known, and words that are repeated are better than words that are lost.
            return whole;
        }
        match self.0.insert(id.to_owned(), TextState::Ended) {
            Some(TextState::Told(told)) => whole.get(told..).unwrap_or_default(),
            Some(TextState::Ended) => "",
            Some(TextState::WaitsForEnd) | None => whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_told_once() {
        let mut texts = TurnTexts::default();
        texts.begin("a");
        assert_eq!(texts.piece("a", "Grün"), "Grün");
        assert_eq!(texts.end("a", "Grüne Wiese"), "e Wiese");
        assert_eq!((texts.end("a", "Grüne Wiese"), texts.piece("a", "late")), ("", ""));
        assert_eq!(texts.piece("b", "the middle"), "", "its beginning is not known");
        assert_eq!(texts.end("b", "From the middle"), "From the middle");
        assert_eq!(texts.end("c", "At once"), "At once");
        texts.begin("d");
        texts.piece("d", "éé");
        assert_eq!(texts.end("d", "x"), "", "another text than was told");
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut texts = TurnTexts::default();
        for number in 0..2000 {
            texts.begin(&number.to_string());
            texts.piece(&format!("p{number}"), "x");
        }
        assert!(texts.0.len() <= MAX_TEXTS);
        assert_eq!(texts.end("new", "words"), "words");
    }
}
