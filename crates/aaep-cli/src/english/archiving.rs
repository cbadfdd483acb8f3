//! `aaep sessions`, and where stored sessions are found.

use std::fmt::Display;

use crate::console::count;

pub(crate) const MORE_HELP: &str = "More: aaep sessions --help";

pub(crate) fn hub_is_asked(folder: &str, hub: &impl Display) -> String {
    format!("A hub uses {folder}, so the hub at {hub} is asked.")
}

/// Where sessions are; each is used within a sentence.
pub(crate) fn at_hub(hub: &impl Display) -> String {
    format!("at {hub}")
}

pub(crate) fn in_folder(folder: &str) -> String {
    format!("in {folder}")
}

pub(crate) const NOT_A_HUB: &str = "this is not a hub";

pub(crate) fn no_such_session(id: &impl Display) -> (String, &'static str) {
    (format!("there is no session {id} here"), "For the ids: aaep sessions list")
}

pub(crate) const HAS_ENDED: (&str, &str) =
    ("the session has ended already", "Nothing was changed.");

/// `place` says where, with its preposition.
pub(crate) fn no_sessions(place: &str) -> String {
    format!("There is no session {place}.")
}

pub(crate) fn sessions(number: u64, place: &str) -> String {
    format!("{} {place}.", count(number, "session"))
}

pub(crate) const LISTENERS_TOLD: &str =
    "Everyone who listens was told, and its open questions were withdrawn.";
pub(crate) const QUESTIONS_WITHDRAWN: &str = "Its open questions were withdrawn.";

/// `told` is a sentence.
pub(crate) fn ended_by_hand(id: &impl Display, told: &str) -> String {
    format!("Session {id} has ended. {told}")
}

pub(crate) fn not_deleted_yet(id: &impl Display, events: u64) -> (String, &'static str) {
    let events = count(events, "event");
    (
        format!("deleting session {id} with {events} cannot be undone, so nothing was deleted yet"),
        "To delete it, say the same with: --yes",
    )
}

pub(crate) fn deleted(id: &impl Display, events: u64) -> String {
    let events = count(events, "event");
    format!(
        "Session {id} is deleted: {events}, what was answered in it, and its words in the audit log. \
         The log says that they were deleted. Traces may stay on the disk until the room is used again."
    )
}

/// The state of a session; each is used within a sentence.
pub(crate) fn ended(at: &str) -> String {
    format!("ended {at}")
}

pub(crate) fn running(last_event_at: &str) -> String {
    format!("running, last event {last_event_at}")
}

pub(crate) fn session(
    id: &impl Display,
    agent: &impl Display,
    began: &str,
    state: &str,
    events: u64,
    bytes: u64,
) -> String {
    let (events, bytes) = (count(events, "event"), count(bytes, "byte"));
    format!("Session {id}, by {agent}: began {began}, {state}, {events}, {bytes}.")
}

pub(crate) const EVENT_WITHOUT_TYPE: &str = "an event without a type";
pub(crate) const EVENT_NOT_JSON: &str = "an event that is not JSON.";
pub(crate) const NO_WORDS: &str = "no words; see --json.";
pub(crate) const UNKNOWN_STATE: &str = "an unknown state";

pub(crate) fn states(from: &impl Display, to: &impl Display) -> String {
    format!("from {from} to {to}.")
}

/// An event with its words. `kind` is left out if the event cannot be read.
pub(crate) fn event(
    at: &str,
    kind: Option<&str>,
    is_by_hub: bool,
    is_critical: bool,
    words: &str,
) -> String {
    let kind = kind.map(|it| format!(", {it}")).unwrap_or_default();
    let by_hub = if is_by_hub { ", by the hub" } else { "" };
    let critical = if is_critical { ", critical" } else { "" };
    format!("{at}{kind}{by_hub}{critical}: {words}")
}
