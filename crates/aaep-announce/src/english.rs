//! Our own words, in English: everything that our programs say to a person stands here and nowhere else, so that it can
//! be translated. What an agent says is never here, nor are the words that an agent's text is searched for.
//!
//! About agents: `asks` holds questions and their time, `events` what agents do, `listening` listening itself. About an
//! agent's text: `text` holds code, diffs, tables and what is shortened, `marks` the names of characters, `formulas`
//! formulas. `devices` holds prompts, buttons and what is wrong with a device, `report` the listening report.
//! `tests/english.rs` fails when a sentence stands elsewhere.
//!
//! A sentence with parts is a function, so that a language can order the parts as it needs.

pub(crate) mod asks;
pub(crate) mod devices;
pub(crate) mod events;
pub(crate) mod formulas;
pub(crate) mod listening;
pub(crate) mod marks;
pub(crate) mod report;
pub(crate) mod text;

use std::time::Duration;

/// The tag of this language, for voices and pages.
pub(crate) const LANGUAGE: &str = "en";

/// How long something is, as people say it.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let count = |count: u64, unit: &str| match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    };
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => count(rest, "second"),
        // Beyond two minutes nobody counts seconds.
        (0, 1) if rest > 0 => format!("1 minute {}", count(rest, "second")),
        (0, _) => count(minutes, "minute"),
        (_, 0) => count(hours, "hour"),
        _ => format!("{} {}", count(hours, "hour"), count(minutes, "minute")),
    }
}

/// What a session of an agent is called that is the first, second and so on of its name.
pub(crate) fn numbered(name: &str, ordinal: u32) -> String {
    format!("{name} {ordinal}")
}

/// Stands between the name of an agent and where it works.
pub(crate) const IN_PROJECT: &str = " in ";

/// A hub that has no name.
pub(crate) const A_HUB: &str = "a hub";
/// All agents of the only hub.
pub(crate) const THE_AGENTS: &str = "the agents";
/// How a sentence begins that says at which hub something is; in small letters, to compare.
pub(crate) const AT_IN_SMALL: &str = "at ";

/// At which hub an agent is.
pub(crate) fn at(hub: &str, label: &str) -> String {
    if label.is_empty() { format!("At {hub}") } else { format!("At {hub}, {label}") }
}
