//! `aaep follow`: hears and answers agents through a server of their own, while the person uses them in a terminal as
//! always.
//!
//! The translation is in `aaep_bridge`; this connects, passes messages, and tries again while the agent is away. An
//! agent is answered only what a person or their rule answered.

#[cfg(unix)]
mod codex;
mod opencode;
mod run;
mod sessions;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use aaep_bridge::AskPolicy;
use aaep_bridge::follow::FollowedAgent;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::agent::fresh_id;
use crate::console::{self, CommandFailure};
use crate::english::following;
use crate::hook::{parse_policy, risk_table};
use crate::hubs::HubFlags;
use crate::order::example;
use crate::proxied::child::watch_signals;
use crate::proxied::{hub, queue};
use run::{FollowRun, FollowSetup};
pub(crate) use sessions::is_followed;

const EXIT_CODES: &str = "\
It runs until you stop it with Control C, and waits for agents that are not there yet.
Exit codes:
  0  it was stopped
  2  it could not be done: wrong usage, or the agent is followed already";

/// The port on which OpenCode serves unless it is told another.
const OPENCODE_PORT: u16 = 4096;

/// Which agents.
#[derive(Debug, Args)]
#[command(after_help = example("aaep follow", EXIT_CODES))]
pub(crate) struct FollowOptions {
    /// The agents: codex, opencode. Both if you name none.
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agents: Vec<FollowedAgent>,
    /// Where to ask you: tell (only in the agent's own window; here you hear that it asks), risky or changes (here and in
    /// its window, whatever the agent asks).
    #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
    policy: AskPolicy,
    /// The port of OpenCode, as you start it: opencode --port 4096. You can give several.
    #[arg(long, value_name = "PORT", default_values_t = [OPENCODE_PORT])]
    port: Vec<u16>,
    #[command(flatten)]
    hub: HubFlags,
}

fn agent_parser() -> impl TypedValueParser<Value = FollowedAgent> {
    PossibleValuesParser::new(FollowedAgent::ALL.map(FollowedAgent::id))
        .try_map(|name| FollowedAgent::parse(&name).ok_or(following::NOT_AN_AGENT))
}

/// Follows the agents until the person stops it.
pub(crate) fn run(options: &FollowOptions) -> Result<ExitCode, CommandFailure> {
    let client = options.hub.agent_client()?;
    let table = Arc::new(risk_table()?);
    let signals = watch_signals()?;
    let is_wanted =
        |agent: FollowedAgent| options.agents.is_empty() || options.agents.contains(&agent);
    let mut runs = Vec::new();
    let make = |agent: FollowedAgent, name: &str| {
        let id: String = fresh_id("")?.chars().take(8).collect();
        let setup = FollowSetup { table: Arc::clone(&table), policy: options.policy };
        FollowRun::new(agent, name, &id, setup).map(Arc::new)
    };
    #[cfg(not(unix))]
    if options.agents.contains(&FollowedAgent::Codex) {
        return Err(following::CODEX_NOT_HERE.into());
    }
    #[cfg(unix)]
    if is_wanted(FollowedAgent::Codex) {
        let codex = make(FollowedAgent::Codex, FollowedAgent::Codex.id())?;
        let (followed, place) = (Arc::clone(&codex), codex::socket_path()?);
        thread::spawn(move || codex::follow(&followed, &place));
        runs.push(codex);
    }
    if is_wanted(FollowedAgent::OpenCode) {
        for port in &options.port {
            let name = format!("{}-{port}", FollowedAgent::OpenCode.id());
            let opencode = make(FollowedAgent::OpenCode, &name)?;
            let (followed, port) = (Arc::clone(&opencode), *port);
            thread::spawn(move || opencode::follow(&followed, port));
            runs.push(opencode);
        }
    }
    let told: Vec<_> = runs
        .iter()
        .map(|it| hub::start(Arc::clone(it) as Arc<dyn hub::HubSide>, client.clone()))
        .collect();
    let _ = signals.recv();
    for (run, told) in runs.iter().zip(told) {
        run.lost(following::STOPPED);
        run.close();
        if told.recv_timeout(queue::CLOSE_TIMEOUT).is_err() {
            console::say(following::HUB_TOO_SLOW);
        }
    }
    Ok(ExitCode::SUCCESS)
}
