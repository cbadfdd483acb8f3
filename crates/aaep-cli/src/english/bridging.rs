//! `aaep agents`: which agents are set up, what was changed in their settings, and what was left alone.

use std::fmt::Display;

pub(crate) const NO_HOME: (&str, &str) = (
    "there is no home folder, so Claude Code's settings cannot be found",
    "Say where they are with CLAUDE_CONFIG_DIR.",
);

/// What Claude Code does about its tools. Each follows that it is set up.
pub(crate) const TELLS: &str = "It says what it does, and asks only where Claude Code itself asks.";
pub(crate) const ASKS_BEFORE_CHANGES: &str =
    "It asks you before everything that changes something.";
pub(crate) const ASKS_BEFORE_RISKS: &str = "It asks you before everything risky.";

/// `policy` is a sentence.
pub(crate) fn is_set_up(policy: &str) -> String {
    format!("Claude Code is set up. {policy}")
}

pub(crate) const IS_NOT_SET_UP: &str =
    "Claude Code is here and not set up. To hear it: aaep agents add claude-code";
pub(crate) const NOT_FOUND: &str = "Claude Code was not found. It keeps its settings in ~/.claude.";

pub(crate) fn runs_another(command: &impl Display) -> String {
    format!(
        "It runs another program than this one: {command}. To set it up again: aaep agents add claude-code"
    )
}

pub(crate) const NO_HUB: &str = "The hub is not running, so you do not hear Claude Code, and it cannot do what it must ask you about. \
     To start the hub: aaep serve";

pub(crate) fn path_unknown(error: &impl Display) -> (String, &'static str) {
    (format!("cannot find out where this program is: {error}"), "Start it by its whole path.")
}

pub(crate) const PATH_NOT_TEXT: (&str, &str) =
    ("the path of this program is not text", "Move the program to a folder whose name is text.");

/// Why settings were not touched; `why` is used within a sentence.
pub(crate) fn left_alone(file: &str, why: &impl Display) -> String {
    format!("{file} was left as it is, because {why}")
}

pub(crate) const IS_NOT_A_FILE: &str = "it is a link or not a file";
pub(crate) const IS_READ_ONLY: &str = "it may not be written";
pub(crate) const IS_TOO_LARGE: &str = "it is too large";

pub(crate) const CHANGE_BY_HAND: &str =
    "Change it by hand; aaep agents add claude-code --print shows how.";
pub(crate) const REMOVE_BY_HAND: &str =
    "Take out the hooks that run aaep hook claude-code by hand.";

pub(crate) fn correct_or_let_run(command: &str) -> String {
    format!("Correct it, or let each hook of Claude Code run: {command}")
}

pub(crate) fn changed_meanwhile(file: &str) -> (String, &'static str) {
    (format!("{file} was changed by another program just now"), "Try again.")
}

pub(crate) const LOOK_AT_RIGHTS: &str = "Look at the rights of the file and its folder.";

/// `policy` is a sentence.
pub(crate) fn set_up_in(file: &str, policy: &str) -> String {
    format!("Claude Code is set up in {file}. {policy}")
}

pub(crate) fn earlier_settings_kept(file: &str) -> String {
    format!("The earlier settings are kept in {file}.")
}

pub(crate) const NOW_START: &str = "Now start the hub, if it does not run: aaep serve. Listen in another terminal: \
     aaep listen. Then start Claude Code.";

pub(crate) const HAS_NO_SETTINGS: &str = "Claude Code is not set up: it has no settings.";
pub(crate) const NOTHING_CHANGED: &str = "Claude Code is not set up. Nothing was changed.";
pub(crate) const REMOVED: &str =
    "Claude Code is no longer set up. The rest of its settings is as it was.";
