//! `aaep agents`: sets up agents that people already use, so that they are heard and ask here.
//!
//! Only the agent's own settings are changed, and only the part that is ours. What cannot be understood is left alone
//! and named.

mod program_folder;
mod settings_file;
mod setup;

use std::process::ExitCode;

use aaep_bridge::settings::SetupState;
use aaep_bridge::{AskPolicy, BridgedAgent};
use clap::{Args, Subcommand};

use crate::console::{CommandFailure, name_of};
use crate::hook::{agent_parser, parse_policy};
use crate::hubs::HubFlags;
use crate::keys::tell;
use setup::AgentSetup;

const EXIT_CODES: &str = "\
For example: aaep agents add claude-code
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, or settings of the agent that cannot be read or written";

/// What to do.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AgentsOptions {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    #[command(flatten)]
    hub: HubFlags,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents that can be set up, and which of them are.
    #[command(after_help = EXIT_CODES)]
    List,
    /// Set up an agent: you hear what it does, and it asks you here.
    #[command(after_help = EXIT_CODES)]
    Add {
        /// The agent.
        #[arg(value_parser = agent_parser())]
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
    #[command(after_help = EXIT_CODES)]
    Remove {
        /// The agent.
        #[arg(value_parser = agent_parser())]
        agent: BridgedAgent,
        /// Only print the new settings of the agent, and change nothing.
        #[arg(long)]
        print: bool,
    },
}

/// Runs the command.
pub(crate) fn run(options: &AgentsOptions) -> Result<ExitCode, CommandFailure> {
    match &options.command {
        None | Some(AgentsCommand::List) => list(&options.hub),
        Some(AgentsCommand::Add { agent, policy, print }) => add(*agent, *policy, *print),
        Some(AgentsCommand::Remove { agent, print }) => remove(*agent, *print),
    }
}

fn list(hub: &HubFlags) -> Result<ExitCode, CommandFailure> {
    let mut missing = Vec::new();
    for agent in BridgedAgent::ALL.iter().copied() {
        let setup = AgentSetup::of(agent)?;
        let (name, id) = (agent.name(), agent.id());
        // Settings that cannot be read are told, and the other agents are listed all the same.
        let line = match setup.state() {
            Err(failure) => format!("{name}: {failure}"),
            Ok(SetupState::Complete(policy)) => {
                let caveat = caveat(agent);
                format!("{name} is set up. {} {caveat}", policy_sentence(agent, policy))
            }
            Ok(SetupState::Different) => format!(
                "{name} runs another program than this one, or not all of its hooks are there. \
                 To set it up again: aaep agents add {id}"
            ),
            Ok(SetupState::Absent) if setup.is_found() => {
                format!("{name} is here and not set up. To hear it: aaep agents add {id}")
            }
            Ok(SetupState::Absent) => {
                missing.push(name);
                continue;
            }
        };
        tell(line.trim_end())?;
    }
    if !missing.is_empty() {
        tell(&format!("Not found here: {}.", missing.join(", ")))?;
    }
    if !is_hub_there(hub) {
        tell(
            "The hub is not running, so nothing of them is heard, and what is risky is not run. To start it: aaep serve",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_hub_there(hub: &HubFlags) -> bool {
    hub.agent_client().is_ok_and(|client| {
        let request = crate::http::HubRequest {
            method: "GET",
            path: "/healthz",
            body: None,
            timeout: std::time::Duration::from_secs(5),
        };
        client.send(&request).is_ok_and(|it| it.is_success())
    })
}

fn policy_sentence(agent: BridgedAgent, policy: AskPolicy) -> String {
    match policy {
        AskPolicy::Tell => {
            let name = agent.name();
            format!("It says what it does, and asks only where {name} itself asks.")
        }
        AskPolicy::AskWhenRisky => "It asks you before what is risky.".to_owned(),
        AskPolicy::AskBeforeChanges => {
            "It asks you before everything that changes something.".to_owned()
        }
    }
}

/// What to know of the agent's own limits, in one or two sentences.
fn caveat(agent: BridgedAgent) -> &'static str {
    match agent {
        BridgedAgent::ClaudeCode => "",
        BridgedAgent::Codex => {
            "Codex runs hooks only after you trusted them: when it says that hooks need review, trust them there."
        }
        BridgedAgent::GeminiCli => {
            "A yes here does not replace its own dialog: Gemini CLI can ask again in its window."
        }
        BridgedAgent::QwenCode => "If its hooks are switched off in its settings, nobody asks you.",
        BridgedAgent::CopilotCli => {
            "While it asks you here, its own dialog is not shown. No answer is a no."
        }
        BridgedAgent::KimiCode => {
            "You have seven and a half minutes to answer. A yes here does not replace its own dialog."
        }
        BridgedAgent::Cline => {
            "You have one minute to answer. If this program is deleted, tools run without asking you."
        }
    }
}

fn add(agent: BridgedAgent, policy: AskPolicy, is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let setup = AgentSetup::of(agent)?;
    if is_trial {
        tell(setup.added(policy)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = setup.add(policy)?;
    let name = agent.name();
    let line = format!(
        "{name} is set up in {}. {} {}",
        name_of(setup.place()),
        policy_sentence(agent, policy),
        caveat(agent)
    );
    tell(line.trim_end())?;
    if let Some(backup) = backup {
        tell(&format!("Its settings as they were are kept in {}.", name_of(&backup)))?;
    }
    tell(&format!(
        "Now start the hub, if it does not run: aaep serve. Listen in another terminal: aaep listen. Then start {name}."
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(agent: BridgedAgent, is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let setup = AgentSetup::of(agent)?;
    let name = agent.name();
    if is_trial {
        tell(setup.removed()?.trim_end())?;
    } else if setup.remove()? {
        tell(&format!("{name} is no longer set up. The rest of its settings is as it was."))?;
    } else {
        tell(&format!("{name} is not set up. Nothing was changed."))?;
    }
    Ok(ExitCode::SUCCESS)
}
