//! `aaep agents`: sets up agents that people already use, so that they are heard and ask here.
//!
//! Only the agent's own settings are changed, and only the part that is ours. What cannot be understood is left alone
//! and named.

mod doctor;
mod program_folder;
mod settings_file;
mod setup;

use std::process::ExitCode;

use aaep_bridge::settings::SetupState;
use aaep_bridge::{AskPolicy, BridgedAgent};
use clap::{Args, Subcommand};

use crate::console::{CommandFailure, name_of};
use crate::english::bridging;
use crate::hook::{agent_parser, parse_policy};
use crate::hubs::HubFlags;
use crate::keys::tell;
use crate::order::example;
use setup::{AgentSetup, OurChoice};

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
        #[arg(value_parser = agent_parser())]
        agent: BridgedAgent,
        /// When to ask you: tell (never, only say what the agent does), risky (before risky tools), changes (before every
        /// tool that changes something).
        #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
        policy: AskPolicy,
        /// For claude -p: let it end at a question that you do not answer within a minute. You can answer for this many
        /// hours, and then let it go on with claude -p --resume.
        #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u8).range(1..=24))]
        answer_later: Option<u8>,
        /// Only print the new settings of the agent, and change nothing.
        #[arg(long)]
        print: bool,
    },
    /// Check what hinders each agent that is here from being heard, and from asking you.
    #[command(after_help = example("aaep agents doctor", doctor::EXIT_CODES))]
    Doctor,
    /// Undo the setup of an agent.
    #[command(after_help = example("aaep agents remove claude-code", EXIT_CODES))]
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
        Some(AgentsCommand::Add { agent, policy, answer_later, print }) => {
            if answer_later.is_some() && !agent.can_ask_later() {
                return Err(bridging::cannot_ask_later(*agent).into());
            }
            add(*agent, OurChoice { policy: *policy, later_hours: *answer_later }, *print)
        }
        Some(AgentsCommand::Doctor) => doctor::run(&options.hub),
        Some(AgentsCommand::Remove { agent, print }) => remove(*agent, *print),
    }
}

fn list(hub: &HubFlags) -> Result<ExitCode, CommandFailure> {
    let mut missing = Vec::new();
    let mut is_any_set_up = false;
    for agent in BridgedAgent::ALL.iter().copied() {
        let setup = AgentSetup::of(agent)?;
        // Settings that cannot be read are told, and the other agents are listed all the same.
        let state = setup.state();
        is_any_set_up |= matches!(state, Ok(SetupState::Complete(_) | SetupState::Different));
        let line = match state {
            Err(failure) => bridging::not_readable(agent, &failure),
            Ok(SetupState::Complete(policy)) => bridging::is_set_up(agent, policy),
            Ok(SetupState::Different) => bridging::runs_another(agent),
            Ok(SetupState::Absent) if setup.is_found() => bridging::is_not_set_up(agent),
            Ok(SetupState::Absent) => {
                missing.push(agent.name());
                continue;
            }
        };
        tell(&line)?;
    }
    if !missing.is_empty() {
        tell(&bridging::not_found(&missing))?;
    }
    if is_any_set_up && !is_hub_there(hub) {
        tell(bridging::NO_HUB)?;
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

fn add(agent: BridgedAgent, choice: OurChoice, is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let setup = AgentSetup::of(agent)?;
    if is_trial {
        tell(setup.added(choice)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = setup.add(choice)?;
    tell(&bridging::set_up_in(agent, &name_of(setup.place()), choice.policy))?;
    if let Some(hours) = choice.later_hours {
        tell(&bridging::asks_later(agent, hours))?;
    }
    if let Some(backup) = backup {
        tell(&bridging::earlier_settings_kept(&name_of(&backup)))?;
    }
    tell(&bridging::now_start(agent))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(agent: BridgedAgent, is_trial: bool) -> Result<ExitCode, CommandFailure> {
    let setup = AgentSetup::of(agent)?;
    if is_trial {
        tell(setup.removed()?.trim_end())?;
    } else if setup.remove()? {
        tell(&bridging::removed(agent))?;
    } else {
        tell(&bridging::nothing_changed(agent))?;
    }
    Ok(ExitCode::SUCCESS)
}
