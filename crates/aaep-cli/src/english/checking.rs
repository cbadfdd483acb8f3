//! `aaep doctor`: what works, and what to do about the rest.

use std::fmt::Display;

/// The sentence that each device tells.
pub(crate) const TEST_SENTENCE: &str = "This is a test of aaep.";

pub(crate) const SETTINGS_WORK: &str = "They can be used.";
pub(crate) const READING_LINES: &str = "You are reading one.";
pub(crate) const TWO_TONES: &str = "You heard two tones, if it is loud enough.";

pub(crate) fn can_listen(address: &str) -> String {
    format!("You can listen at {address}.")
}

pub(crate) fn heard() -> String {
    format!("You heard: {TEST_SENTENCE}")
}

pub(crate) fn on_display() -> String {
    format!("On the display: {TEST_SENTENCE}")
}

pub(crate) fn screen_reader_was_told() -> String {
    format!("The screen reader was told: {TEST_SENTENCE}")
}

/// Why a check failed.
pub(crate) fn broke_off(error: &impl Display) -> String {
    format!("The check broke off: {error}.")
}

pub(crate) fn no_threads(error: &impl Display) -> String {
    format!("The system does not start threads: {error}. Try again later.")
}

pub(crate) const DEVICE_SILENT: &str =
    "The device took the sentence and did not tell it. Try again later.";

/// The result of one check. `name` can be a plural; `says` is a sentence.
pub(crate) fn finding(name: &str, is_wanted: bool, works: bool, says: &str) -> String {
    let is_plural = name.ends_with('s');
    let works = match (works, is_plural) {
        (true, true) => "work",
        (true, false) => "works",
        (false, true) => "do not work",
        (false, false) => "does not work",
    };
    let are = if is_plural { "are" } else { "is" };
    let off = if is_wanted { String::new() } else { format!(", and {are} not turned on") };
    format!("{name}: {works}{off}. {says}")
}

/// All results together, by the names of what is wanted and does not work.
pub(crate) fn summary(missing: &[&str]) -> String {
    match missing {
        [] => "All that you want works.".to_owned(),
        [name] => format!("Something that you want does not work: {name}."),
        [names @ .., last] => {
            format!("Some of what you want does not work: {} and {last}.", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_well_aloud() {
        for (name, is_wanted, works, said) in [
            ("speech", true, true, "speech: works. Heard."),
            ("sounds", true, false, "sounds: do not work. Heard."),
            ("braille", false, false, "braille: does not work, and is not turned on. Heard."),
            ("sounds", false, true, "sounds: work, and are not turned on. Heard."),
        ] {
            assert_eq!(finding(name, is_wanted, works, "Heard."), said);
        }
    }
}
