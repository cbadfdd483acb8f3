//! `aaep report`: recordings and what could not be read in them.

use std::fmt::Display;

use crate::console::count;

pub(crate) const STANDARD_INPUT: &str = "standard input";

pub(crate) fn no_such_profile(names: &str) -> String {
    format!("there is no such profile; there are: {names}")
}

/// The heading of a report.
pub(crate) fn heading(recording: &str, profile: &str) -> String {
    format!("{recording}, profile {profile}")
}

pub(crate) fn is_a_recording(path: &str) -> (String, &'static str) {
    (
        format!("{path} is one of the recordings, and the page would replace it"),
        "Give --html another name.",
    )
}

pub(crate) const PAGE_NEEDS_A_PLACE: &str = "Give --html a file that you can write to.";

pub(crate) fn too_large(name: &str, mebibytes: u64) -> (String, &'static str) {
    (
        format!("{name} has more than {mebibytes} MiB"),
        "Cut it between two lines, and report on the parts.",
    )
}

pub(crate) const NOT_A_MESSAGE: &str = "It is not a message.";

/// `broken` is the first line that could not be read, and why.
pub(crate) fn holds_no_event(name: &str, broken: Option<(u64, &str)>) -> (String, &'static str) {
    let what = match broken {
        Some((line, why)) => {
            format!("{name} holds no event; line {line}: {}", why.strip_suffix('.').unwrap_or(why))
        }
        None => format!("{name} holds no event"),
    };
    (what, "Record one with: aaep capture --questions --output FILE")
}

/// `why` is a sentence.
pub(crate) fn not_read(line: u64, why: &impl Display) -> String {
    format!("Line {line} could not be read: {why}")
}

pub(crate) fn more_not_read(lines: u64) -> String {
    format!("And {} more could not be read.", count(lines, "line"))
}

pub(crate) fn dated_back(events: u64) -> String {
    format!(
        "Dated before the event before them: {}. They count as coming at the same moment.",
        count(events, "event")
    )
}
