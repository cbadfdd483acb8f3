//! `aaep follow`: which agents are heard, and why one is not.

use std::fmt::Display;

pub(crate) const NOT_AN_AGENT: &str = "it is not the name of an agent";
pub(crate) const OWN_WINDOW: &str = "its own window";
pub(crate) const STOPPED: &str = "AAEP stopped following it. It goes on in its own window.";
pub(crate) const HUB_TOO_SLOW: &str = "The hub did not take in time what was left to tell.";
pub(crate) const OTHER_USER: &str = "it belongs to another user";
pub(crate) const TOO_MUCH: &str =
    "The agent is not reached, so your answer was not given. Answer in its own window.";

#[cfg(not(unix))]
pub(crate) const CODEX_NOT_HERE: (&str, &str) =
    ("Codex cannot be followed on Windows yet", "Use it in a Linux environment, such as WSL.");

pub(crate) fn is_followed_already(name: &str) -> (String, &'static str) {
    (format!("{name} is followed already"), "Stop the other aaep follow first.")
}

#[cfg(unix)]
pub(crate) fn no_home(name: &str) -> (String, &'static str) {
    (format!("there is no home folder, so {name} cannot be found"), "Set the variable HOME.")
}

pub(crate) fn now_heard(name: &str, place: &str) -> String {
    format!("{name} is heard now, at {place}.")
}

pub(crate) fn waits_for(name: &str, place: &str, why: &impl Display) -> String {
    format!("{name} is not reached at {place}: {why}. It is tried again; you hear when it works.")
}

pub(crate) fn connection_lost(name: &str) -> String {
    format!(
        "The connection to {name} was lost. What it asks can be answered in its own window. It is tried again."
    )
}

pub(crate) fn not_answered(name: &str, why: &impl Display) -> String {
    format!("{name} did not take your answer: {why}. Answer in its own window.")
}

pub(crate) fn answered_with_status(status: u16) -> String {
    format!("it answered with status {status}")
}
