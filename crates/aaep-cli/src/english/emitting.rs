//! `aaep emit`: what is read and refused, and what people hear of a session that holds one message.

use std::fmt::Display;

/// What the person typed; each is used within a sentence.
pub(crate) const THE_SUMMARY: &str = "the summary";
pub(crate) const THE_TEXT: &str = "the text";
pub(crate) const THE_TOOL: &str = "the tool";
pub(crate) const THE_NEW_STATE: &str = "the new state";

pub(crate) const FILE_OR_SHORT_FORM: (&str, &str) = (
    "a file and a short form do not go together",
    "Name a file, or use a short form such as: aaep emit say 'Done.'",
);

pub(crate) const NO_SESSION: (&str, &str) = (
    "this needs a session",
    "Say which with --session or AAEP_SESSION. Begin one with: aaep emit start",
);

pub(crate) const NO_EVENT: (&str, &str) = ("the input contains no event", "Check the file.");

pub(crate) fn no_input(error: &impl Display) -> (String, &'static str) {
    (format!("standard input cannot be read: {error}"), "Check what writes into it.")
}

pub(crate) const READING_EVENTS: &str =
    "Reading events from standard input, one on each line; end with Control-D.";
pub(crate) const READING_WORDS: &str = "Saying what you type; end with Control-D.";

pub(crate) fn has_words(agent: &str) -> String {
    format!("{agent} has something to say.")
}

pub(crate) const END_OF_WORDS: &str = "That is all.";

/// Why a message is not an event; each follows a colon.
pub(crate) const NO_TYPE: &str = "it has no type";

pub(crate) fn not_a_type(name: &str) -> String {
    format!("{name} is not a type of event")
}

/// `why` is a sentence.
pub(crate) fn refused(line: Option<u64>, why: &str) -> String {
    match line {
        Some(line) => format!("Refused at line {line}: {why}"),
        None => format!("Refused: {why}"),
    }
}

pub(crate) fn not_an_event(why: &impl Display) -> String {
    format!("This is not an event: {why}.")
}
