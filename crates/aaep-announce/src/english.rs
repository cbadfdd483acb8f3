//! Our own words in English. Everything that our programs say to a person is here and nowhere else, so that it can be
//! translated. An agent's words are never here, nor are the words that we search for in an agent's text.
//!
//! About agents: `asks` has questions and their time, `events` has what agents do, `listening` is about listening
//! itself. About an agent's text: `text` has code, diffs, tables and shortened text, `marks` the names of characters,
//! and `formulas` formulas. `devices` has prompts, buttons and device problems, `report` the listening report.
//! `tests/english.rs` fails if a sentence is anywhere else.
//!
//! A sentence with variable parts is a function, so that each language can choose the order of the parts.

pub(crate) mod asks;
pub(crate) mod devices;
pub(crate) mod events;
pub(crate) mod formulas;
pub(crate) mod listening;
pub(crate) mod marks;
pub(crate) mod report;
pub(crate) mod text;

use std::time::Duration;

use crate::utterance::UtteranceKind;

/// The language tag of these words, for voices and pages.
pub(crate) const LANGUAGE: &str = "en";

/// A duration as a person would say it.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let count = |count: u64, unit: &str| match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    };
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => count(rest, "second"),
        // After two minutes, seconds no longer matter.
        (0, 1) if rest > 0 => format!("1 minute {}", count(rest, "second")),
        (0, _) => count(minutes, "minute"),
        (_, 0) => count(hours, "hour"),
        _ => format!("{} {}", count(hours, "hour"), count(minutes, "minute")),
    }
}

/// The label of a session when another one had the same name before.
pub(crate) fn numbered(name: &str, ordinal: u32) -> String {
    format!("{name} {ordinal}")
}

/// How questions begin on devices that label what they tell.
pub(crate) const OWN_LABELS: [&str; 2] =
    [devices::label(UtteranceKind::Question, true), devices::label(UtteranceKind::Question, false)];

/// Joins the name of an agent and its project.
pub(crate) const IN_PROJECT: &str = " in ";

/// A hub without a name.
pub(crate) const A_HUB: &str = "a hub";
/// All agents, when there is only one hub.
pub(crate) const THE_AGENTS: &str = "the agents";
/// The beginning of a sentence that names a hub, in lower case for comparisons.
pub(crate) const AT_IN_SMALL: &str = "at ";

/// Names the hub of an agent.
pub(crate) fn at(hub: &str, label: &str) -> String {
    if label.is_empty() { format!("At {hub}") } else { format!("At {hub}, {label}") }
}
