//! The files that remember something for the person.

pub(crate) const LOOK_AT_RIGHTS: &str = "Look at the rights of its folder.";

/// Why a file is not used; each is used within a sentence.
pub(crate) const SOMEBODY_ELSE: &str = "somebody else could have written it";
pub(crate) const BROKEN: &str = "it is broken";

/// A file was renamed. `next` is a sentence.
pub(crate) fn set_aside(file: &str, why: &str, now_named: &str, next: &str) -> String {
    format!("{file} is not used, because {why}. It is now {now_named}. {next}")
}
