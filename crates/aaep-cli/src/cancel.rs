//! `aaep cancel`: asks an agent to stop what it does.

use std::process::ExitCode;

use clap::Args;

use crate::console::Failure;
use crate::hubs::HubFlags;
use crate::instruct::{self, Wanted};

const EXIT_CODES: &str = "\
The agent is asked to stop, if it accepts that, and says itself when it has. Its open questions get no consent by it.
Exit codes:
  0  the agent was asked to stop
  1  nobody was asked, and it is said why
  2  it could not be done: wrong usage, or no hub";

/// Which agent.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// The agent, as aaep attention names it.
    agent: String,
    /// Which session, if the agent works in several.
    #[arg(long, value_name = "SESSION", conflicts_with = "all")]
    session: Option<String>,
    /// All sessions in which the agent works.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    hub: HubFlags,
}

/// Asks it, and says what came of it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { agent, session, all, hub } = arguments;
    instruct::run(hub, agent, &Wanted::Cancel { session: session.as_deref(), all: *all })
}
