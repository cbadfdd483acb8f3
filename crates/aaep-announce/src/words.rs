//! Text in words for ears and fingers: no marks, no codes.
//!
//! Headings and items become sentences, code "Rust code, 12 lines", tables and diffs words. Cleaning never changes
//! what a text means: it removes marks from a closed list, and no number, no negation and nothing that tells two
//! things apart. Marks that mean something, such as struck text or a cross, become words. Everything is bounded,
//! takes time in proportion to the text, and says so where it counts or cuts instead of reading.

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
pub use stream::{End, MAX_SAID, Stream};

/// How text becomes words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Style {
    /// Whether emoji are kept, for the voice to name.
    pub keeps_emoji: bool,
    /// Whether code is read out, and not only counted.
    pub reads_code: bool,
    /// Whether everything is kept that could matter to a decision: marks that may be part of a command, code read
    /// out, tables and diffs whole.
    pub is_exact: bool,
    /// Whether long numbers are grouped with commas, as in English.
    pub groups_digits: bool,
}

impl Style {
    /// As most people want to hear it.
    pub const PLAIN: Style =
        Style { keeps_emoji: false, reads_code: false, is_exact: false, groups_digits: true };

    /// The same with everything kept that could matter to a decision.
    pub fn exactly(self) -> Self {
        Style { is_exact: true, reads_code: true, ..self }
    }

    /// The same for text in this language.
    pub fn in_language(self, language: Option<&LanguageTag>) -> Self {
        let is_english = language.is_none_or(|it| it.primary().eq_ignore_ascii_case("en"));
        Style { groups_digits: is_english, ..self }
    }
}

/// A whole text in words, on one line.
pub fn words(text: &str, style: Style) -> String {
    Stream::new(style).push(text, End::Completion)
}

/// The same with our own words marked.
pub(crate) fn words_marked(text: &str, style: Style) -> String {
    Stream::new(style).push_marked(text, End::Completion)
}
