//! Words in parts, each in one language: our own in ours, an agent's in the agent's, another script in its own.

use aaep::LanguageTag;

use super::own::{own_language, pieces};
use super::script::in_languages;

/// A part of an utterance, in one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordsPart {
    /// The words.
    pub words: String,
    /// Their language, if known.
    pub language: Option<LanguageTag>,
}

/// Splits marked words into parts. Words that are not ours are in this language, unless their script says otherwise.
pub(crate) fn parts(marked: &str, language: Option<&LanguageTag>) -> Vec<WordsPart> {
    let mut parts: Vec<WordsPart> = Vec::new();
    for (is_own, piece) in pieces(marked) {
        let tagged =
            if is_own { vec![(piece, own_language())] } else { in_languages(piece, language) };
        for (words, language) in tagged {
            add(&mut parts, words, language);
        }
    }
    for part in &mut parts {
        part.words = part.words.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    parts
}

/// Adds words. Marks without a word belong to the part before them.
fn add(parts: &mut Vec<WordsPart>, words: &str, language: Option<LanguageTag>) {
    let is_mark = !words.contains(char::is_alphanumeric);
    match parts.last_mut() {
        Some(last) if is_mark || last.language == language => last.words.push_str(words),
        // Marks before the first word belong to it.
        Some(last) if !last.words.contains(char::is_alphanumeric) => {
            last.words.push_str(words);
            last.language = language;
        }
        _ => parts.push(WordsPart { words: words.to_owned(), language }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::own::own;
    use super::*;

    fn tag(text: &str) -> Option<LanguageTag> {
        LanguageTag::parse(text).ok()
    }

    #[test]
    fn our_words_are_ours_and_the_others_are_the_agents() {
        let marked = format!("{} Alles gelöscht. {}", own("Weaver:"), own("It cannot be undone."));
        let parts = parts(&marked, tag("de").as_ref());
        let said: Vec<(&str, Option<LanguageTag>)> =
            parts.iter().map(|it| (it.words.as_str(), it.language.clone())).collect();
        assert_eq!(
            said,
            [
                ("Weaver:", tag("en")),
                ("Alles gelöscht.", tag("de")),
                ("It cannot be undone.", tag("en"))
            ]
        );
    }

    #[test]
    fn marks_alone_are_not_a_part() {
        let marked = format!("( {} ): Ja.", own("cross mark"));
        let parts = parts(&marked, tag("de").as_ref());
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert_eq!(parts[0].words, "( cross mark");
    }
}
