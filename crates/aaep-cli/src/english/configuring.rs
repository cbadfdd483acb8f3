//! `aaep config`: settings, where they come from, and the file that holds them.

use std::fmt::Display;

use crate::console::count;

pub(crate) const NOT_SET: &str = "not set";

/// Where a setting comes from; each is used within a sentence.
pub(crate) const BY_DEFAULT: &str = "by default";
pub(crate) const FROM_FILE: &str = "from the file";

pub(crate) fn from_variable(name: &impl Display) -> String {
    format!("from the variable {name}")
}

pub(crate) fn from_flag(name: &impl Display) -> String {
    format!("from the flag {name}")
}

pub(crate) const NO_RULES: &str = "rules: none, so every question is yours.";
pub(crate) const ACCEPTS: &str = "accepts";
pub(crate) const REJECTS: &str = "rejects";
pub(crate) const EVERY_AGENT: &str = "every agent";
pub(crate) const ANYTHING: &str = "anything";

/// A rule: what it does with which questions.
pub(crate) fn rule(name: &impl Display, does: &str, agent: &str, tool: &str) -> String {
    format!("rule {name}: {does} questions of {agent}, about {tool}, from the file.")
}

pub(crate) fn no_file(path: &str) -> String {
    format!(
        "There is no file {path}, so all settings are at their defaults. To begin one: aaep config edit"
    )
}

pub(crate) fn can_be_used(path: &str, rules: u64) -> String {
    format!("{path} can be used. It has {}.", count(rules, "rule"))
}

pub(crate) const NOT_USED: &str =
    "The file is not used until that is fixed. To fix it: aaep config edit";

pub(crate) fn began(path: &str) -> String {
    format!("Began {path}.")
}

pub(crate) fn editor_not_started(editor: &str, why: &str) -> (String, &'static str) {
    (
        format!("the editor {editor} could not be started: {why}"),
        "Say which one with the variable EDITOR.",
    )
}

pub(crate) fn editor_failed(editor: &str) -> (String, &'static str) {
    (
        format!("the editor {editor} ended with an error"),
        "To check what is in the file: aaep config check",
    )
}

pub(crate) fn no_editor(path: &str) -> (&'static str, String) {
    (
        "neither VISUAL nor EDITOR says which editor is yours",
        format!("Set EDITOR, or edit {path} yourself."),
    )
}
