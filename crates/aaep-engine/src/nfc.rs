//! Text in Normalization Form C, as the specification requires it to be sent (§11.3.2, ruling 34).

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// The most characters of a chunk, and the most bytes of a chunk that grew when it was normalized:
/// the limits of the protocol, less room for the other fields of a message.
const MAX_CHUNK_CHARACTERS: usize = 16_384;
const MAX_CHUNK_BYTES: usize = 48 * 1024;

const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// Whether a text is in Normalization Form C.
pub fn is_normal_text(text: &str) -> bool {
    text.is_ascii() || NFC.is_normalized(text)
}

/// The text in Normalization Form C.
pub(crate) fn normal(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { NFC.normalize(text) }
}

/// A chunk of an output in Normalization Form C. It is normalized alone: the chunk before it was
/// sent, and the next one is not known. A few texts grow; one that would become too long stays
/// unchanged.
pub(crate) fn chunk(text: &str) -> Cow<'_, str> {
    let normal = normal(text);
    let has_grown = normal.len() > text.len();
    let is_too_long =
        normal.len() > MAX_CHUNK_BYTES || normal.chars().count() > MAX_CHUNK_CHARACTERS;
    if has_grown && is_too_long { Cow::Borrowed(text) } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_composed_and_what_is_composed_stays() {
        assert_eq!(normal("e\u{301}"), "\u{e9}");
        assert_eq!(normal("a\u{323}\u{302}"), "\u{1ead}");
        assert_eq!(normal("\u{212a}elvin"), "Kelvin");
        assert!(is_normal_text("\u{e9}") && is_normal_text("plain") && !is_normal_text("e\u{301}"));
        assert!(matches!(normal("Mo \u{144} \u{1e63}\u{ed}r\u{f2}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_chunk_that_would_become_too_long_stays_as_it_is() {
        let short = "\u{958}".repeat(10);
        assert_eq!(chunk(&short).chars().count(), 20);
        let long = "\u{958}".repeat(16_384);
        assert_eq!(chunk(&long), long);
        let marks = "e\u{301}".repeat(8192);
        assert_eq!(chunk(&marks).chars().count(), 8192);
    }
}
