//! Our hooks in the agent's own settings: adds them and takes them away again, and leaves everything else as it is.

mod command;
mod json;
#[cfg(test)]
mod tests;
mod toml;

use std::fmt;

use serde_json::Value;

use crate::agent::BridgedAgent;
use crate::dialect::{HookPoint, HookRole};
use crate::policy::AskPolicy;

pub use command::shell_word;

/// How an agent keeps its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsForm {
    /// JSON with groups of hooks for each event, as Claude Code has it.
    JsonGroups,
    /// JSON with a list of hooks for each event.
    JsonList,
    /// A TOML file with a list of hooks.
    Toml,
    /// A program for each event, in a folder.
    Programs,
}

/// What is particular about the settings of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingsTraits {
    pub(crate) form: SettingsForm,
    /// What a second is in its time-outs.
    pub(crate) ticks_per_second: u64,
    /// Whether it reads comments.
    pub(crate) takes_comments: bool,
    /// Whether a hook can say itself that its failure keeps a tool from running. Otherwise its command does.
    pub(crate) has_on_failure: bool,
    /// Whether its payloads do not name the event, so that the command does.
    pub(crate) names_event: bool,
    /// The variable that says where its settings are, its folder in the home folder, and its file.
    pub(crate) place: (&'static str, &'static str, &'static str),
}

/// Why settings were left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsFault {
    /// The text is not JSON.
    NotJson,
    /// The text is not TOML.
    NotToml,
    /// The text is not an object.
    NotAnObject,
    /// What stands under `hooks` does not have the form that we know.
    StrangeHooks,
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettingsFault::NotJson => "it is not valid JSON",
            SettingsFault::NotToml => "it is not valid TOML",
            SettingsFault::NotAnObject => "it is not a JSON object",
            SettingsFault::StrangeHooks => {
                "what stands under \"hooks\" in it has a form that is not known here"
            }
        })
    }
}

impl std::error::Error for SettingsFault {}

/// How far an agent is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupState {
    /// It has none of our hooks.
    Absent,
    /// It has hooks of ours, but not all of them, or of a program somewhere else.
    Different,
    /// It has all of them, with this policy.
    Complete(AskPolicy),
}

/// Our hooks: which program they run, and when the person wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OurHooks<'h> {
    /// The agent.
    pub agent: BridgedAgent,
    /// The path of this program.
    pub program: &'h str,
    /// When the person wants to be asked.
    pub policy: AskPolicy,
    /// For how many hours a question can be answered after the agent ended at it, if the person wants that.
    pub later_hours: Option<u8>,
}

/// How long the agent waits for a hook that only reports, in seconds.
const REPORT_SECONDS: u64 = 20;
const BRIEF_REPORT_SECONDS: u64 = 3;

/// One hook as it is written.
struct WrittenHook {
    event: &'static str,
    command: String,
    timeout: u64,
    is_gate: bool,
}

impl OurHooks<'_> {
    /// The settings with our hooks. Hooks that we added before are replaced.
    ///
    /// # Errors
    ///
    /// If the text is not what the agent's settings look like. Nothing should be changed then.
    pub fn added_to(&self, text: &str) -> Result<String, SettingsFault> {
        match self.agent.dialect().settings().form {
            SettingsForm::JsonGroups | SettingsForm::JsonList => json::with_hooks(self, text),
            SettingsForm::Toml => toml::with_hooks(self, text),
            SettingsForm::Programs => Ok(text.to_owned()),
        }
    }

    /// The programs of an agent that keeps its hooks as programs: their names and what is in them.
    pub fn programs(&self) -> Vec<(&'static str, String)> {
        let traits = self.agent.dialect().settings();
        let points = self.agent.dialect().hooks().iter();
        match traits.form {
            SettingsForm::Programs => {
                points.map(|it| (it.event, command::program_text(self, *it))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn written(&self) -> Vec<WrittenHook> {
        let dialect = self.agent.dialect();
        let ticks = dialect.settings().ticks_per_second;
        let seconds = |point: &HookPoint| match point.role {
            HookRole::Asks | HookRole::Gate => dialect.times().hook_seconds,
            HookRole::Reports => REPORT_SECONDS,
            HookRole::ReportsBriefly => BRIEF_REPORT_SECONDS,
        };
        let hook = |point: &HookPoint| WrittenHook {
            event: point.event,
            command: command::of_hook(self, *point),
            timeout: seconds(point) * ticks,
            is_gate: point.role == HookRole::Gate,
        };
        dialect.hooks().iter().map(hook).collect()
    }
}

/// The settings without our hooks.
///
/// # Errors
///
/// As for [`OurHooks::added_to`].
pub fn without_hooks(agent: BridgedAgent, text: &str) -> Result<String, SettingsFault> {
    match agent.dialect().settings().form {
        SettingsForm::JsonGroups | SettingsForm::JsonList => json::without_hooks(agent, text),
        SettingsForm::Toml => toml::without_hooks(agent, text),
        SettingsForm::Programs => Ok(text.to_owned()),
    }
}

/// Our hooks in these settings: the event and the command of each.
fn commands(agent: BridgedAgent, text: &str) -> Vec<(String, String)> {
    let mut found = match agent.dialect().settings().form {
        SettingsForm::JsonGroups | SettingsForm::JsonList => json::commands(agent, text),
        SettingsForm::Toml => toml::commands(text),
        SettingsForm::Programs => Vec::new(),
    };
    found.retain(|(_, command)| is_ours(agent, command));
    found
}

/// How far the settings have our hooks, which run this program.
pub fn setup_state(agent: BridgedAgent, text: &str, program: &str) -> SetupState {
    let ours = commands(agent, text);
    if ours.is_empty() {
        return SetupState::Absent;
    }
    let policies = AskPolicy::NAMES.iter().map(|(_, policy)| *policy);
    let later_hours = ours.iter().find_map(|(_, command)| command::later_hours_of(command));
    let complete = policies.into_iter().find(|policy| {
        let wanted = OurHooks { agent, program, policy: *policy, later_hours }.written();
        let is_there =
            |hook: &WrittenHook| ours.iter().any(|it| it.0 == hook.event && it.1 == hook.command);
        wanted.iter().all(is_there) && wanted.len() == ours.len()
    });
    complete.map_or(SetupState::Different, SetupState::Complete)
}

/// Whether our hooks in these settings are to the letter as we write them, with their time limits and what happens
/// when they fail.
pub fn are_untouched(agent: BridgedAgent, text: &str, program: &str) -> bool {
    let SetupState::Complete(policy) = setup_state(agent, text, program) else { return false };
    let later_hours = later_hours(agent, text);
    let written = OurHooks { agent, program, policy, later_hours }.added_to(text);
    written.is_ok_and(|it| have_the_same_hooks(agent, &it, text))
}

/// For how many hours our hooks in these settings keep a question, if they do.
pub fn later_hours(agent: BridgedAgent, text: &str) -> Option<u8> {
    commands(agent, text).iter().find_map(|(_, command)| command::later_hours_of(command))
}

/// Whether two texts of settings have the same hooks, in any order.
fn have_the_same_hooks(agent: BridgedAgent, one: &str, other: &str) -> bool {
    let hooks = |text: &str| -> Option<Vec<String>> {
        let settings: Value = match agent.dialect().settings().form {
            SettingsForm::Toml => serde_json::to_value(text.parse::<::toml::Table>().ok()?).ok()?,
            _ => json::value(text)?,
        };
        let named = |name: &str, it: &Value| format!("{name} {it}");
        let mut all: Vec<String> = match settings.get("hooks")? {
            Value::Array(hooks) => hooks.iter().map(|it| named("", it)).collect(),
            Value::Object(events) => events
                .iter()
                .flat_map(|(event, hooks)| {
                    hooks.as_array().into_iter().flatten().map(move |it| named(event, it))
                })
                .collect(),
            _ => return None,
        };
        all.sort();
        Some(all)
    };
    hooks(one).is_some_and(|it| Some(it) == hooks(other))
}

/// Whether two texts of settings mean the same.
pub fn mean_the_same(agent: BridgedAgent, one: &str, other: &str) -> bool {
    match agent.dialect().settings().form {
        SettingsForm::Toml => toml::mean_the_same(one, other),
        _ => json::mean_the_same(one, other),
    }
}

/// Whether the settings say nothing.
pub fn are_empty(agent: BridgedAgent, text: &str) -> bool {
    text.trim().is_empty() || mean_the_same(agent, text, "{}")
}

/// Whether a command is one of ours for this agent, whichever program it runs.
pub fn is_ours(agent: BridgedAgent, command: &str) -> bool {
    command.contains(&format!(" hook {} ", agent.id()))
}
