//! `aaep acp`: stands between an editor and an agent that speak the Agent Client Protocol, so that the agent is heard
//! and answered here as well.
//!
//! The translation is in `aaep_bridge`; this passes lines on, speaks with the hub, and ends as the agent ends.
//! Standard output carries nothing but the protocol. Neither side ever waits for the hub.

pub(crate) mod front;
pub(crate) mod proxy;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, mpsc};
use std::thread;

use aaep_bridge::AskPolicy;
use aaep_bridge::acp::{AcpBridge, AcpSide};
use clap::Args;

use crate::agent::fresh_id;
use crate::console::{self, CommandFailure};
use crate::hook::{machine_name, parse_policy, risk_table};
use crate::hubs::HubFlags;
use crate::proxied::{child, hub, queue};
use front::EditorFront;
use proxy::{AcpProxy, ProxySetup};

const EXIT_CODES: &str = "\
For example, in the settings of your editor, instead of gemini --acp: aaep acp -- gemini --acp
Exit codes:
  0  the agent ended without an error; its other exit codes are passed on as they are
  2  the agent could not be started, or wrong usage";

/// Which agent.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AcpOptions {
    /// Where to ask you: tell (only in the editor; here you hear that it asks), risky or changes (here and in the editor,
    /// whatever the agent asks).
    #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
    policy: AskPolicy,
    /// The name of the agent, as people hear it. By default the one that it gives itself.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    hub: HubFlags,
    /// The agent and its arguments, as your editor would start it.
    #[arg(required = true, last = true, value_name = "AGENT")]
    command: Vec<OsString>,
}

/// Runs the agent, and ends as it ends.
pub(crate) fn run(options: &AcpOptions) -> Result<ExitCode, CommandFailure> {
    let client = options.hub.agent_client()?;
    let table = risk_table()?;
    let run: String = fresh_id("")?.chars().take(8).collect();
    let signals = child::watch_signals()?;
    let (program, arguments) = options.command.split_first().ok_or_else(|| {
        CommandFailure::new(
            "no agent is named",
            "Name it after two dashes: aaep acp -- gemini --acp",
        )
    })?;
    let stem = stem(program);
    let given = options.agent.as_deref().filter(|it| !it.trim().is_empty());
    let machine = machine_name(&options.hub);
    let bridge = AcpBridge::new(given.unwrap_or(&stem), given.is_some(), &run).on_machine(machine);
    let mut agent = child::start("agent", Command::new(program).args(arguments))?;
    let (Some(to_agent), Some(from_agent)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(CommandFailure::new("the agent has no input and output", "Start it again."));
    };
    let setup = ProxySetup { table, policy: options.policy };
    let proxy = Arc::new(AcpProxy::new(bridge, setup, to_agent, Box::new(EditorFront::default())));
    let told = hub::start(Arc::clone(&proxy) as Arc<dyn hub::HubSide>, client);
    let editor = Arc::clone(&proxy);
    thread::spawn(move || {
        editor.pump(AcpSide::Editor, std::io::stdin().lock());
        editor.close_agent();
    });
    let (last_line, drained) = mpsc::channel();
    let reading = Arc::clone(&proxy);
    thread::spawn(move || {
        reading.pump(AcpSide::Agent, from_agent);
        // Without an editor that reads, the agent is not asked anything any more.
        reading.close_agent();
        let _ = last_line.send(());
    });
    let status = child::wait(&mut agent, || proxy.close_agent(), &signals);
    proxy.lines.drain(&drained);
    proxy.end(&child::end_words("agent", status));
    proxy.queue.close();
    if told.recv_timeout(queue::CLOSE_TIMEOUT).is_err() {
        console::say("The hub did not take in time what was left to tell.");
    }
    Ok(child::exit_code(status))
}

/// A name for an agent that has not said its own: that of its program.
pub(crate) fn stem(program: &OsStr) -> String {
    Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned()
}
