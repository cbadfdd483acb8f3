//! `aaep tell`: tells an agent what to do, in the person's words.
//!
//! A working agent is steered, if it accepts that; otherwise the words begin something new. They never answer a
//! question: `aaep answer` does.

use std::process::ExitCode;

use clap::Args;

use crate::console::CommandFailure;
use crate::english::instructing;
use crate::hubs::HubFlags;
use crate::instruct::{self, WantedInstruction};

const EXIT_CODES: &str = "\
For example: aaep tell photos look at the year 2019 first
An agent at work goes on as you tell it, if it takes instructions then. Otherwise your words begin something new.
To hear which agents take instructions: aaep tell
An instruction never answers a question. To answer one: aaep answer
Exit codes:
  0  the agent was told
  1  nobody was told, and you hear why
  2  it could not be done: wrong usage, or no hub";

/// Whom to tell what.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct TellOptions {
    /// The agent, as aaep attention names it. Without one, the agents that take instructions are listed.
    agent: Option<String>,
    /// Your instruction.
    #[arg(requires = "agent", trailing_var_arg = true)]
    words: Vec<String>,
    /// Which session, if the agent works in several.
    #[arg(long, value_name = "SESSION", conflicts_with = "new")]
    session: Option<String>,
    /// Begin something new, even if the agent is at work.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    hub: HubFlags,
}

/// Tells the agent and reports the result.
pub(crate) fn run(arguments: &TellOptions) -> Result<ExitCode, CommandFailure> {
    let Some(agent) = &arguments.agent else { return instruct::list(&arguments.hub) };
    let text = arguments.words.join(" ");
    if text.trim().is_empty() {
        return Err(instructing::no_words(agent).into());
    }
    let session = arguments.session.as_deref();
    let wanted = if arguments.new {
        WantedInstruction::Begin { text }
    } else {
        WantedInstruction::Tell { text, session }
    };
    instruct::run(&arguments.hub, agent, &wanted)
}
