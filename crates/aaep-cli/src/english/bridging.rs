//! `aaep agents`: which agents are set up, what was changed in their settings, and what was left alone.

use std::fmt::Display;

use aaep_bridge::{AskPolicy, BridgedAgent};

pub(crate) fn no_home(agent: BridgedAgent) -> (String, &'static str) {
    let name = agent.name();
    (
        format!("there is no home folder, so the settings of {name} cannot be found"),
        "Set the variable HOME.",
    )
}

/// When an agent that is set up asks. A sentence.
pub(crate) fn asks(agent: BridgedAgent, policy: AskPolicy) -> String {
    match policy {
        AskPolicy::Tell => {
            let name = agent.name();
            format!("It says what it does, and asks only where {name} itself asks.")
        }
        AskPolicy::AskWhenRisky => "It asks you before everything risky.".to_owned(),
        AskPolicy::AskBeforeChanges => {
            "It asks you before everything that changes something.".to_owned()
        }
    }
}

/// The limits of an agent itself, in one or two sentences, or nothing.
pub(crate) fn limits(agent: BridgedAgent) -> &'static str {
    match agent {
        BridgedAgent::ClaudeCode => "",
        BridgedAgent::Codex => {
            "Codex runs hooks only after you trusted them: when it says that hooks need review, trust them there. \
             To be asked here and in its own window, run: aaep follow codex"
        }
        BridgedAgent::GeminiCli => {
            "A yes here does not replace its own dialog: Gemini CLI can ask again in its window."
        }
        BridgedAgent::QwenCode => "If its hooks are switched off in its settings, nobody asks you.",
        BridgedAgent::CopilotCli => {
            "While it asks you here, it does not show its own dialog. No answer is a no."
        }
        BridgedAgent::KimiCode => {
            "You have seven and a half minutes to answer. A yes here does not replace its own dialog."
        }
        BridgedAgent::Cline => {
            "You have one minute to answer. If this program is deleted, tools run without asking you."
        }
    }
}

pub(crate) fn is_set_up(agent: BridgedAgent, policy: AskPolicy) -> String {
    let line = format!("{} is set up. {} {}", agent.name(), asks(agent, policy), limits(agent));
    line.trim_end().to_owned()
}

pub(crate) fn is_not_set_up(agent: BridgedAgent) -> String {
    let (name, id) = (agent.name(), agent.id());
    format!("{name} is here and not set up. To hear it: aaep agents add {id}")
}

pub(crate) fn runs_another(agent: BridgedAgent) -> String {
    let (name, id) = (agent.name(), agent.id());
    format!(
        "{name} runs another program than this one, or some of its hooks are missing. \
         To set it up again: aaep agents add {id}"
    )
}

/// The settings of an agent cannot be read. `why` is a sentence.
pub(crate) fn not_readable(agent: BridgedAgent, why: &impl Display) -> String {
    format!("{}: {why}", agent.name())
}

pub(crate) fn not_found(names: &[&str]) -> String {
    format!("Not found here: {}.", names.join(", "))
}

pub(crate) const NO_HUB: &str = "The hub is not running, so you do not hear these agents, and they cannot do what they must ask you about. \
     To start the hub: aaep serve";

pub(crate) fn path_unknown(error: &impl Display) -> (String, &'static str) {
    (format!("cannot find out where this program is: {error}"), "Start it by its whole path.")
}

pub(crate) const PATH_NOT_TEXT: (&str, &str) =
    ("the path of this program is not text", "Move the program to a folder whose name is text.");

pub(crate) fn not_on_windows(agent: BridgedAgent) -> (String, &'static str) {
    (
        format!("{} cannot be set up on Windows yet", agent.name()),
        "Use it in a Linux environment, such as WSL.",
    )
}

/// Why settings were not touched; `why` is used within a sentence.
pub(crate) fn left_alone(file: &str, why: &impl Display) -> String {
    format!("{file} was left as it is, because {why}")
}

pub(crate) const IS_NOT_A_FILE: &str = "it is a link or not a file";
pub(crate) const IS_READ_ONLY: &str = "it may not be written";
pub(crate) const IS_TOO_LARGE: &str = "it is too large";

pub(crate) fn change_by_hand(agent: BridgedAgent) -> String {
    format!("Change it by hand; aaep agents add {} --print shows how.", agent.id())
}

/// `program` is this program as one word for a shell.
pub(crate) fn correct_or_let_run(agent: BridgedAgent, program: &str) -> String {
    let (name, id) = (agent.name(), agent.id());
    format!("Correct it, or let each hook of {name} run: {program} hook {id}")
}

/// A program of somebody else stands where ours would.
pub(crate) fn is_taken(agent: BridgedAgent, file: &str) -> (String, String) {
    let id = agent.id();
    (
        format!("{file} is there already and was left as it is"),
        format!("Let it run what aaep agents add {id} --print shows, or move it away."),
    )
}

pub(crate) fn changed_meanwhile(file: &str) -> (String, &'static str) {
    (format!("{file} was changed by another program just now"), "Try again.")
}

pub(crate) const LOOK_AT_RIGHTS: &str = "Look at the rights of the file and its folder.";

pub(crate) fn set_up_in(agent: BridgedAgent, file: &str, policy: AskPolicy) -> String {
    let name = agent.name();
    let line = format!("{name} is set up in {file}. {} {}", asks(agent, policy), limits(agent));
    line.trim_end().to_owned()
}

pub(crate) fn cannot_ask_later(agent: BridgedAgent) -> (String, &'static str) {
    (
        format!("{} cannot end at a question and go on later", agent.name()),
        "Leave out --answer-later. It is for Claude Code.",
    )
}

/// That claude -p does not wait.
pub(crate) fn asks_later(agent: BridgedAgent, hours: u8) -> String {
    let hours = crate::console::count(u64::from(hours), "hour");
    format!(
        "Started with -p, {} ends at a question that you do not answer within a minute. You can answer for {hours}, \
         and then let it go on with: claude -p --resume, and the id that you heard.",
        agent.name()
    )
}

pub(crate) fn earlier_settings_kept(file: &str) -> String {
    format!("The earlier settings are kept in {file}.")
}

pub(crate) fn now_start(agent: BridgedAgent) -> String {
    format!(
        "Now start the hub, if it does not run: aaep serve. Listen in another terminal: aaep listen. Then start {}.",
        agent.name()
    )
}

pub(crate) fn would_be_deleted(folder: &str) -> String {
    format!("Our programs in {folder} would be deleted.")
}

pub(crate) fn nothing_changed(agent: BridgedAgent) -> String {
    format!("{} is not set up. Nothing was changed.", agent.name())
}

pub(crate) fn removed(agent: BridgedAgent) -> String {
    format!("{} is no longer set up. The rest of its settings is as it was.", agent.name())
}
