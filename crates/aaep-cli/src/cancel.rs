//! `aaep cancel`: asks an agent to stop.

use std::process::ExitCode;

use clap::Args;

use crate::console::CommandFailure;
use crate::hubs::HubFlags;
use crate::instruct::{self, WantedInstruction};

const EXIT_CODES: &str = "\
For example: aaep cancel photos
The agent is asked to stop, and tells you when it has stopped. None of its open questions is accepted by this.
Exit codes:
  0  the agent was asked to stop
  1  no agent was asked, and you hear why
  2  it could not be done: wrong usage, or no hub";

/// Which agent.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CancelOptions {
    /// The agent, as aaep attention names it.
    agent: String,
    /// Which session, if the agent works in several.
    #[arg(long, value_name = "SESSION", conflicts_with = "all")]
    session: Option<String>,
    /// Every session in which the agent works.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    hub: HubFlags,
}

/// Asks the agent and reports the result.
pub(crate) fn run(arguments: &CancelOptions) -> Result<ExitCode, CommandFailure> {
    let CancelOptions { agent, session, all, hub } = arguments;
    instruct::run(hub, agent, &WantedInstruction::Cancel { session: session.as_deref(), all: *all })
}
