//! `aaep agents`: sets up agents that people already use, so that they are heard and ask here.
//!
//! Only the agent's own settings are changed, and only the part that is ours. What cannot be understood is left alone
//! and named.

mod settings_file;

use std::path::PathBuf;
use std::process::ExitCode;

use aaep_bridge::AskPolicy;
use aaep_bridge::claude_code::settings;
use clap::{Args, Subcommand, ValueEnum};

use crate::console::{self, CommandFailure, name_of};
use crate::english::bridging;
use crate::hook::parse_policy;
use crate::hubs::HubFlags;
use crate::keys::tell;
use crate::order::example;
use settings_file::SettingsFile;

const EXIT_CODES: &str = "\
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, or settings of the agent that cannot be read or written";

/// What to do.
#[derive(Debug, Args)]
#[command(after_help = example("aaep agents add claude-code", EXIT_CODES))]
pub(crate) struct AgentsOptions {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    #[command(flatten)]
    hub: HubFlags,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents that can be set up, and which of them are.
    #[command(after_help = example("aaep agents list", EXIT_CODES))]
    List,
    /// Set up an agent: you hear what it does, and it asks you here.
    #[command(after_help = example("aaep agents add claude-code --policy changes", EXIT_CODES))]
    Add {
        /// The agent.
        #[arg(value_enum)]
        agent: BridgedAgent,
        /// When to ask you: tell (never, only say what the agent does), risky (before risky tools), changes (before every
        /// tool that changes something).
        #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
        policy: AskPolicy,
        /// Only print the new settings of the agent, and change nothing.
        #[arg(long)]
        print: bool,
    },
    /// Undo the setup of an agent.
    #[command(after_help = example("aaep agents remove claude-code", EXIT_CODES))]
    Remove {
        /// The agent.
        #[arg(value_enum)]
        agent: BridgedAgent,
        /// Only print the new settings of the agent, and change nothing.
        #[arg(long)]
        print: bool,
    },
}

/// An agent that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BridgedAgent {
    /// Claude Code, by its hooks.
    ClaudeCode,
}

/// Runs the command.
pub(crate) fn run(options: &AgentsOptions) -> Result<ExitCode, CommandFailure> {
    match &options.command {
        None | Some(AgentsCommand::List) => list(&options.hub),
        Some(AgentsCommand::Add { agent: BridgedAgent::ClaudeCode, policy, print }) => {
            add(*policy, *print)
        }
        Some(AgentsCommand::Remove { agent: BridgedAgent::ClaudeCode, print }) => remove(*print),
    }
}

/// The settings of Claude Code.
fn settings_path() -> Result<PathBuf, CommandFailure> {
    let set = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let folder = set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|it| it.join(".claude")));
    let folder = folder.or_else(|| set("USERPROFILE").map(|it| it.join(".claude")));
    Ok(folder.ok_or(bridging::NO_HOME)?.join("settings.json"))
}

fn list(hub: &HubFlags) -> Result<ExitCode, CommandFailure> {
    let path = settings_path()?;
    let command =
        SettingsFile::new(path.clone()).read()?.and_then(|it| settings::installed_command(&it));
    let is_there = path.parent().is_some_and(std::path::Path::is_dir);
    tell(&match (&command, is_there) {
        (Some(command), _) => bridging::is_set_up(policy_sentence(command)),
        (None, true) => bridging::IS_NOT_SET_UP.to_owned(),
        (None, false) => bridging::NOT_FOUND.to_owned(),
    })?;
    if let Some(command) = command.filter(|it| !runs_this_program(it)) {
        tell(&bridging::runs_another(&aaep::printable(&command)))?;
    }
    let is_hub_there = hub.agent_client().is_ok_and(|client| {
        let request = crate::http::HubRequest {
            method: "GET",
            path: "/healthz",
            body: None,
            timeout: std::time::Duration::from_secs(5),
        };
        client.send(&request).is_ok_and(|it| it.is_success())
    });
    if !is_hub_there {
        tell(bridging::NO_HUB)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn policy_sentence(command: &str) -> &'static str {
    match command.rsplit(' ').next() {
        Some("tell") => bridging::TELLS,
        Some("changes") => bridging::ASKS_BEFORE_CHANGES,
        _ => bridging::ASKS_BEFORE_RISKS,
    }
}

/// The command that the hooks run: this program, by its whole path.
fn hook_command(policy: AskPolicy) -> Result<String, CommandFailure> {
    let program = std::env::current_exe()
        .map_err(|error| bridging::path_unknown(&console::reason(&error)))?;
    let program = program.to_str().filter(|it| !it.contains(['\n', '\0']));
    let program = program.ok_or(bridging::PATH_NOT_TEXT)?;
    let name =
        AskPolicy::NAMES.iter().find(|(_, it)| *it == policy).map_or("risky", |(name, _)| name);
    Ok(format!("{} hook claude-code --policy {name}", quoted(program)))
}

/// The path as one word for a shell.
fn quoted(path: &str) -> String {
    let is_plain =
        |it: char| it.is_ascii_alphanumeric() || matches!(it, '/' | '.' | '_' | '-' | '+');
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

fn runs_this_program(command: &str) -> bool {
    hook_command(AskPolicy::default()).is_ok_and(|own| {
        let program = |it: &str| it.rsplit_once(" hook ").map(|(program, _)| program.to_owned());
        program(&own) == program(command)
    })
}

fn add(policy: AskPolicy, is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let command = hook_command(policy)?;
    let file = SettingsFile::new(settings_path()?);
    let before = file.read()?.unwrap_or_default();
    let after = settings::with_hooks(&before, &command).map_err(|fault| {
        let what = bridging::left_alone(&name_of(file.path()), &fault);
        (what, bridging::correct_or_let_run(&command))
    })?;
    if is_trial {
        tell(after.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = file.replace(&before, &after)?;
    tell(&bridging::set_up_in(&name_of(file.path()), policy_sentence(&command)))?;
    if let Some(backup) = backup {
        tell(&bridging::earlier_settings_kept(&name_of(&backup)))?;
    }
    tell(bridging::NOW_START)?;
    Ok(ExitCode::SUCCESS)
}

fn remove(is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let file = SettingsFile::new(settings_path()?);
    let Some(before) = file.read()? else {
        tell(bridging::HAS_NO_SETTINGS)?;
        return Ok(ExitCode::SUCCESS);
    };
    let after = settings::without_hooks(&before).map_err(|fault| {
        (bridging::left_alone(&name_of(file.path()), &fault), bridging::REMOVE_BY_HAND)
    })?;
    if is_trial {
        tell(after.trim_end())?;
    } else if after == before {
        tell(bridging::NOTHING_CHANGED)?;
    } else {
        file.restore(&before, &after)?;
        tell(bridging::REMOVED)?;
    }
    Ok(ExitCode::SUCCESS)
}
