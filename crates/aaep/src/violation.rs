//! What can be wrong with a message: one stable code per way, with the § that it breaks and advice.
//!
//! A peer's mistake is data, never a panic. The list of codes is closed. Once published, a code
//! keeps its name and its meaning.

use std::fmt;

use crate::visible::printable;

/// Declares the codes: variant, stable name, section, whether a JSON Schema can express it, advice.
macro_rules! codes {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $name:literal, $section:literal, $advice:literal; )+) => {
        /// The ways in which a message can be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The stable name, for machines and for searching.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),+ }
            }

            /// The section of the specification that is broken, unless the field names a more
            /// specific one.
            pub const fn section(self) -> &'static str {
                match self { $(Code::$variant => $section),+ }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$variant => $advice),+ }
            }

            /// What the code means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

codes! {
    /// The text is larger than the limit.
    TooLarge = "too_large", "3.7", "Send a link to large content, or split it over several events.";
    /// The bytes are not UTF-8.
    NotUtf8 = "not_utf8", "3.8", "Encode the message as UTF-8.";
    /// The text is not JSON.
    NotJson = "not_json", "3.8", "Write plain JSON: no comments, no trailing commas, one value.";
    /// Arrays and objects nest deeper than the limit.
    TooDeep = "too_deep", "3.7", "Flatten the data to at most 8 levels below the message.";
    /// An escape is half of a surrogate pair, so the string is not Unicode.
    LoneSurrogate = "lone_surrogate", "3.8", "Write the character itself in UTF-8, or both halves of the pair.";
    /// An object has the same key twice.
    DuplicateKey = "duplicate_key", "3.8", "Keep one of them: readers disagree about which one counts.";
    /// A whole number lies beyond 2^53, where readers lose digits.
    NumberTooBig = "number_too_big", "3.8", "Write it as a string.";
    /// The message is not a JSON object.
    NotAnObject = "not_an_object", "3.9", "Send one JSON object per message.";
    /// A required field is absent.
    MissingField = "missing_field", "3.2", "Add the field.";
    /// A field holds another kind of JSON value than it should.
    WrongType = "wrong_type", "3.9", "Send that kind of value.";
    /// A string does not have the form that the field demands.
    WrongFormat = "wrong_format", "3.9", "Write it that way.";
    /// A value is not among those that the field knows.
    UnknownValue = "unknown_value", "4", "Use one of the listed values.";
    /// A number is smaller or larger than the field allows.
    OutOfRange = "out_of_range", "4", "Use a number within the bounds.";
    /// A string is shorter than the field allows.
    TooShort = "too_short", "4", "Say something, or leave the field out if it is optional.";
    /// A string is longer than the field allows.
    TooLong = "too_long", "3.7", "Shorten it, split it over several events, or link to it.";
    /// An array or object has fewer members than the field allows.
    TooFewItems = "too_few_items", "4", "Add what is missing, or leave the field out if it is optional.";
    /// An array has more items than the field allows.
    TooManyItems = "too_many_items", "3.7", "Keep to the limit.";
    /// An array has the same item twice.
    DuplicateItem = "duplicate_item", "4", "Name each item once.";
    /// A field is not one that this message has.
    UnknownField = "unknown_field", "3.5", "Put your own data into `extensions`, under a prefix that `@context` declares.";
    /// A field has a name that only the specification may give out.
    ReservedField = "reserved_field", "3.5", "Rename it and put it into `extensions`: names with aaep_ or @ are reserved.";
    /// The type is none that the specification defines, or not the name of a type at all.
    UnknownType = "unknown_type", "3.2.2", "Use a type of chapter 4, or one of an extension that `@context` declares.";
    /// The AAEP core context is absent or not first.
    NoCoreContext = "no_core_context", "3.2.1", "Put https://aaep-protocol.org/context/v1 first in `@context`.";
    /// An extension prefix is used that nothing in the context can stand for.
    UndeclaredPrefix = "undeclared_prefix", "3.4.3", "Add the context URI of that extension to `@context`.";
    /// An extension uses a prefix that is reserved, or not a prefix at all.
    ReservedPrefix = "reserved_prefix", "7.3.2", "Choose another prefix for the extension.";
    /// An event that a person must not miss is not marked critical.
    NotCritical = "not_critical", "5.5.4", "Set `urgency` to \"critical\".";
    /// Silence would let an irreversible action happen.
    UnsafeDefault = "unsafe_default", "6.4.1", "Set `default_decision` to \"reject\", or state truthfully that the risk is low or the action reversible.";
    /// A multiple-choice question offers no choices.
    MissingChoices = "missing_choices", "4.4.2", "Add `choices`, or drop multiple_choice from `accepted_response_kinds`.";
    /// The event claims a version of AAEP that was never published.
    UnpublishedVersion = "unpublished_version", "3.4.4", "Name a published version such as 1.0.0, or leave `aaep_version` out.";
    /// The message has more fields than the limit.
    TooManyFields = "too_many_fields", "3.7", "Keep to 32 fields, the extension prefixes counted.";
    /// An event with words does not say in which language they are.
    LanguageNotDeclared = "language_not_declared", "11.1", "Set `localization_hints.primary_language`, so that a voice and a braille table can be chosen.";
    /// Silence would let a risky action happen that should rather not.
    RiskyDefault = "risky_default", "6.4.1", "Prefer `default_decision`: \"reject\" here.";
    /// A subscriber that claims level 2 cannot reply to a confirmation.
    CannotReply = "cannot_reply", "5.3.1.4", "Set `supports_confirmation_reply` to true, or claim level 1 only.";
    /// More is wrong than is listed.
    More = "more", "3.9", "Correct what is listed and check again.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a violation makes the message invalid in the mode it was read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The message is not valid.
    Error,
    /// The message is valid. This could be better (strict), or was tolerated (tolerant).
    Note,
}

impl Severity {
    /// The name for machines and people.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Note => "note",
        }
    }
}

/// One thing that is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The way in which the message is wrong.
    pub code: Code,
    /// Whether this makes the message invalid.
    pub severity: Severity,
    /// The location as a JSON Pointer (RFC 6901); empty for the message as a whole.
    pub pointer: String,
    /// The section of the specification that is broken.
    pub section: &'static str,
    /// One sentence that says what is wrong. Quotes from the message are escaped and truncated.
    pub problem: String,
}

impl Violation {
    /// One sentence that says what to do about it.
    pub fn advice(&self) -> &'static str {
        self.code.advice()
    }

    /// An error that concerns the text as a whole.
    pub(crate) fn of_text(code: Code, problem: String) -> Self {
        Self::at(code, String::new(), problem)
    }

    /// An error at a location, with the section of its code.
    pub(crate) fn at(code: Code, pointer: String, problem: String) -> Self {
        Violation { code, severity: Severity::Error, pointer, section: code.section(), problem }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", printable(&self.pointer))?;
        }
        write!(f, "{} {} (§{}, {})", self.problem, self.advice(), self.section, self.code)
    }
}

/// How many characters of an untrusted string are quoted in a report.
const QUOTE: usize = 60;

/// An untrusted string in quotation marks, fit for a terminal, a log or a voice: truncated, and
/// without anything that could move a cursor or reorder text.
pub(crate) fn quoted(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTE).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("\"{}\"", printable(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_readable() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.advice().ends_with('.'), "{code}");
            assert!(code.meaning().ends_with('.'), "{code}");
        }
    }

    #[test]
    fn what_is_quoted_is_short_and_printable() {
        assert_eq!(quoted("a\u{1b}b"), "\"a\\u{1b}b\"");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), QUOTE + 3);
    }
}
