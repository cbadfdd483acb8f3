//! Turns text into words for speech and braille, without markup and codes.
//!
//! Headings and list items become sentences, code becomes "Rust code, 12 lines", and tables and diffs become words.
//! Cleaning never changes the meaning of a text: it removes marks from a closed list, and never a number, a negation
//! or anything that distinguishes two things. Marks with a meaning, such as struck-out text or a cross, become words.
//! Everything is bounded and takes time in proportion to the text. If something is counted or cut instead of read,
//! the words say so.

mod cluster;
mod code;
mod diff;
mod emphasis;
mod exact;
mod inline;
mod line;
mod math;
mod own;
mod part;
mod plain;
mod script;
mod sentence;
mod shorten;
mod spoken;
mod stream;
mod symbol;
mod table;
mod tag;

use aaep::LanguageTag;

pub(crate) use cluster::is_joined;
pub use exact::exact;
pub(crate) use inline::cut;
pub(crate) use own::{
    is_own_mark, keep_own_marks, last_said, own, own_language, without_own_marks,
};
pub use part::WordsPart;
pub(crate) use part::parts;
pub(crate) use plain::one_line;
pub(crate) use sentence::guarded;
pub use sentence::split;
pub(crate) use shorten::grouped;
pub use spoken::spoken;
pub(crate) use spoken::spoken_marked;
pub use stream::{MAX_SAID, PieceEnd, Stream};

/// The style in which text becomes words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Style {
    /// Whether emoji are kept, so that the voice names them.
    pub keeps_emoji: bool,
    /// Whether code is read out instead of only counted.
    pub reads_code: bool,
    /// Whether everything is kept that could matter to a decision: marks that may be part of a command, all code, and
    /// whole tables and diffs.
    pub is_exact: bool,
    /// Whether long numbers are grouped with commas, as in English.
    pub groups_digits: bool,
}

impl Style {
    /// The default style.
    pub const PLAIN: Style =
        Style { keeps_emoji: false, reads_code: false, is_exact: false, groups_digits: true };

    /// The same style, but keeping everything that could matter to a decision.
    pub fn exactly(self) -> Self {
        Style { is_exact: true, reads_code: true, ..self }
    }

    /// The same style for text in this language.
    pub fn in_language(self, language: Option<&LanguageTag>) -> Self {
        let is_english = language.is_none_or(|it| it.primary().eq_ignore_ascii_case("en"));
        Style { groups_digits: is_english, ..self }
    }
}

/// Turns a whole text into words on one line.
pub fn words(text: &str, style: Style) -> String {
    Stream::new(style).push(text, PieceEnd::Completion)
}

/// The same with our own words marked.
pub(crate) fn words_marked(text: &str, style: Style) -> String {
    Stream::new(style).push_marked(text, PieceEnd::Completion)
}
