//! Language tags (BCP 47, §11.1.2) as a type that holds only well-formed ones.
//!
//! The irregular grandfathered tags of RFC 5646, such as `i-klingon`, are refused: all are
//! deprecated, and no voice or braille table uses them.

use crate::form::{WrongForm, string_field};

/// A well-formed language tag, kept as it was written.
#[derive(Debug, Clone)]
pub struct LanguageTag(oxilangtag::LanguageTag<Box<str>>);

impl LanguageTag {
    /// Parses the tag; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let wrong = WrongForm { name: "LanguageTag", expected: "a language tag such as en-US" };
        match oxilangtag::LanguageTag::parse(Box::<str>::from(text)) {
            Ok(tag) if !is_irregular(text) => Ok(LanguageTag(tag)),
            _ => Err(wrong),
        }
    }

    /// The tag as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The language without script and region, such as `zh` in `zh-Hant-TW`.
    pub fn primary(&self) -> &str {
        self.0.primary_language()
    }

    /// The script, if the tag names one.
    pub fn script(&self) -> Option<&str> {
        self.0.script()
    }

    /// The region, if the tag names one.
    pub fn region(&self) -> Option<&str> {
        self.0.region()
    }
}

/// Tags are equal regardless of case (RFC 5646 §2.1.1).
impl PartialEq for LanguageTag {
    fn eq(&self, other: &Self) -> bool {
        self.as_str().eq_ignore_ascii_case(other.as_str())
    }
}

impl Eq for LanguageTag {}

impl std::hash::Hash for LanguageTag {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for byte in self.as_str().bytes() {
            state.write_u8(byte.to_ascii_lowercase());
        }
    }
}

/// Whether this is a grandfathered tag that does not follow the grammar of RFC 5646.
fn is_irregular(text: &str) -> bool {
    let is = |irregular: &&str| text.eq_ignore_ascii_case(irregular);
    text.starts_with(['i', 'I']) && text.as_bytes().get(1) == Some(&b'-')
        || ["en-GB-oed", "sgn-BE-FR", "sgn-BE-NL", "sgn-CH-DE"].iter().any(is)
}

/// The grammar of RFC 5646 as a pattern with `$dash` between the subtags. It does not exclude
/// repeated variants and singletons.
macro_rules! grammar {
    ($dash:literal) => {
        concat!(
            "(?:(?:[A-Za-z]{2,3}(?:",
            $dash,
            "[A-Za-z]{3}){0,3}|[A-Za-z]{4,8})",
            "(?:",
            $dash,
            "[A-Za-z]{4})?(?:",
            $dash,
            "(?:[A-Za-z]{2}|[0-9]{3}))?",
            "(?:",
            $dash,
            "(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*",
            "(?:",
            $dash,
            "[0-9A-WY-Za-wy-z](?:",
            $dash,
            "[A-Za-z0-9]{2,8})+)*",
            "(?:",
            $dash,
            "[xX](?:",
            $dash,
            "[A-Za-z0-9]{1,8})+)?",
            "|[xX](?:",
            $dash,
            "[A-Za-z0-9]{1,8})+)$",
        )
    };
}

/// The pattern of a whole string that is a tag.
const PATTERN: &str = concat!("^", grammar!("-"));

/// The pattern of a tag at the end of a field's name, where `_` may replace `-` (§11.5.1).
pub(crate) const SUFFIX_PATTERN: &str = grammar!("[-_]");

string_field!(LanguageTag, "a language tag such as en-US", { "pattern": PATTERN });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_chapter_11_are_read() {
        for tag in
            ["en", "en-US", "es-419", "yo-NG", "zh-Hans", "zh-Hant-TW", "x-private", "de-1996"]
        {
            assert_eq!(LanguageTag::parse(tag).expect(tag).as_str(), tag);
        }
        let tag = LanguageTag::parse("zh-Hant-TW").expect("tag");
        assert_eq!((tag.primary(), tag.script(), tag.region()), ("zh", Some("Hant"), Some("TW")));
    }

    #[test]
    fn what_is_not_a_tag_is_refused() {
        for wrong in
            ["", "e", "en_US", "english language", "en-", "-en", "i-klingon", "en-GB-oed", "123"]
        {
            assert!(LanguageTag::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn case_does_not_matter_but_is_kept() {
        let (a, b) =
            (LanguageTag::parse("en-us").expect("tag"), LanguageTag::parse("EN-US").expect("tag"));
        assert_eq!(a, b);
        assert_eq!(a.to_string(), "en-us");
    }
}
