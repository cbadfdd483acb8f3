//! `aaep agents doctor`: what is well with the agents that are here, and what to do about the rest.

use aaep_bridge::{AskPolicy, BridgedAgent};

use super::bridging;
use crate::console::count;

pub(crate) const HUB: &str = "The hub";
pub(crate) const SAYS_NO_VERSION: &str = "unknown";
pub(crate) const NOTHING_HERE: &str =
    "No agent that is known here was found. If you have one, start it once, and try again.";
pub(crate) const HUB_IS_THERE: &str = "It runs, and hooks reach it.";
pub(crate) const NO_HUB: &str = "It cannot be reached. You hear nothing, and tools that you would be asked about do not \
     run. To start it: aaep serve";
pub(crate) const LISTENERS_UNKNOWN: &str =
    "It does not say whether somebody listens. To listen: aaep listen";
pub(crate) const NOBODY_LISTENS: &str =
    "Nobody listens, so nobody can be asked. To listen: aaep listen";

pub(crate) fn listeners(number: u64) -> String {
    if number == 1 {
        "Somebody listens.".to_owned()
    } else {
        format!("It has {}.", count(number, "listener"))
    }
}

/// One finding. `text` is one or several sentences.
pub(crate) fn line(name: &str, text: &str, is_wrong: bool) -> String {
    if is_wrong { format!("{name}: problem. {text}") } else { format!("{name}: {text}") }
}

pub(crate) fn summary(wrong: u64) -> String {
    match wrong {
        0 => "No problem was found.".to_owned(),
        _ => format!("{} found.", count(wrong, "problem")),
    }
}

pub(crate) fn version_unknown(agent: BridgedAgent) -> String {
    let (program, _) = agent.program();
    format!(
        "It was used here, but the command {program} was not found, so its version is not known."
    )
}

pub(crate) fn version_is_recorded(version: &str) -> String {
    format!("Version {version}, which is known here.")
}

pub(crate) fn version_differs(version: &str, recorded: &str) -> String {
    format!("Version {version}. What is known here was learned from version {recorded}.")
}

pub(crate) fn not_set_up(agent: BridgedAgent) -> String {
    format!("It is not set up. To hear it: aaep agents add {}", agent.id())
}

pub(crate) fn runs_another(agent: BridgedAgent) -> String {
    format!(
        "Its hooks run another program than this one, or some are missing. To set it up again: aaep agents add {}",
        agent.id()
    )
}

pub(crate) fn hooks_are_ours(agent: BridgedAgent, policy: AskPolicy) -> String {
    format!("Its hooks are as they were written. {}", bridging::asks(agent, policy))
}

pub(crate) fn hooks_were_changed(agent: BridgedAgent) -> String {
    format!(
        "Its hooks were changed by hand: another time limit, or another end when they fail. To write them again: \
         aaep agents add {}",
        agent.id()
    )
}

pub(crate) fn asks_later(hours: u8) -> String {
    let hours = count(u64::from(hours), "hour");
    format!("With claude -p, you can answer for {hours} after it ended at a question.")
}

/// What happens to a tool that the person would be asked about, if the hook fails.
pub(crate) fn fails_closed(agent: BridgedAgent) -> &'static str {
    match agent {
        BridgedAgent::ClaudeCode => {
            "If its hook fails, is missing or takes too long, the tool does not run."
        }
        BridgedAgent::GeminiCli | BridgedAgent::Codex | BridgedAgent::CopilotCli => {
            "If its hook fails or is missing, the tool does not run. If the hook is stopped by force or hangs, it runs."
        }
        BridgedAgent::QwenCode | BridgedAgent::KimiCode => {
            "If its hook fails or this program is missing, the tool does not run. If the hook hangs, it runs."
        }
        BridgedAgent::Cline => {
            "If this program is missing, the tool does not run. If its hook is deleted, it runs."
        }
    }
}

pub(crate) fn approver_unknown(agent: BridgedAgent) -> String {
    format!("Its settings do not say here who approves. Look at it in {}.", agent.name())
}

pub(crate) fn model_approves(agent: BridgedAgent, policy: AskPolicy) -> String {
    let name = agent.name();
    format!(
        "In a terminal, a model of {name} approves in your place{} {}",
        besides(agent, policy),
        switch(agent)
    )
}

pub(crate) fn nobody_approves(agent: BridgedAgent, policy: AskPolicy) -> String {
    let name = agent.name();
    format!("{name} itself asks nobody{} {}", besides(agent, policy), switch(agent))
}

/// What the policy does about it. The end of a sentence.
fn besides(agent: BridgedAgent, policy: AskPolicy) -> String {
    match policy {
        AskPolicy::Tell => format!(
            ", and you are not asked here either. To be asked here: aaep agents add {}.",
            agent.id()
        ),
        AskPolicy::AskWhenRisky => ", but you are asked here before what is risky.".to_owned(),
        AskPolicy::AskBeforeChanges => ", but you are asked here before every change.".to_owned(),
    }
}

/// How to let the agent itself ask.
fn switch(agent: BridgedAgent) -> &'static str {
    match agent {
        BridgedAgent::ClaudeCode => {
            "To let it ask by itself too, start it with --permission-mode default, or set defaultMode under \
             permissions in its settings to \"default\"."
        }
        BridgedAgent::QwenCode => {
            "To let it ask by itself too, start it with --approval-mode default, or set approvalMode under tools in its \
             settings to \"default\"."
        }
        BridgedAgent::GeminiCli => {
            "To let it ask by itself too, set defaultApprovalMode under general in its settings to \"default\"."
        }
        BridgedAgent::Codex => {
            "To let it ask by itself too, set approval_policy in its config.toml to \"on-request\"."
        }
        BridgedAgent::CopilotCli | BridgedAgent::KimiCode | BridgedAgent::Cline => "",
    }
}
