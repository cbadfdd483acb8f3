//! Our own sentences, in English: everything that is told about agents, questions and listening stands here and nowhere else,
//! so that other languages can stand beside it. What an agent says is never here.
//!
//! `asks` is about questions and their time, `events` about what agents do, `listening` about listening itself. How text
//! becomes words (`words`) and what is wrong with a device (`device`) have words of their own there.

pub(crate) mod asks;
pub(crate) mod events;
pub(crate) mod listening;

use std::time::Duration;

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
