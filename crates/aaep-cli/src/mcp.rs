//! `aaep mcp`: stands between a client and a server of the Model Context Protocol, so that its tools are heard, and
//! allowed or not, here.
//!
//! The translation is in `aaep_bridge`; this passes lines on, speaks with the hub, and ends as the server ends.
//! Standard output carries nothing but the protocol.

mod name;
mod proxy;
mod remote;

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use aaep_bridge::AskPolicy;
use aaep_bridge::mcp::McpBridge;
use clap::Args;

use crate::agent::fresh_id;
use crate::console::{self, CommandFailure};
use crate::hook::{parse_policy, risk_table};
use crate::hubs::HubFlags;
use crate::proxied::hub::{self, HubSide};
use crate::proxied::{child, queue};
use proxy::{McpProxy, ServerInput};
use remote::RemoteServer;

const EXIT_CODES: &str = "\
For example, in the settings of a program, instead of uvx mcp-server-git: aaep mcp -- uvx mcp-server-git
Exit codes:
  0  the server ended without an error; its other exit codes are passed on as they are
  2  the server could not be started, or wrong usage";

/// How long requests to a server over HTTP may still take when the client has ended.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Which server.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct McpOptions {
    /// When to ask you before a tool runs: tell (never; you only hear it), risky, or changes (before everything that
    /// changes something).
    #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
    policy: AskPolicy,
    /// The name of the server, as people hear it and as it stands in your risk table. By default it follows from the
    /// command or the address.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The address of a server over HTTP, instead of a command.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "command")]
    url: Option<String>,
    /// The environment variable with the token for a server over HTTP.
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    token_from: Option<String>,
    #[command(flatten)]
    hub: HubFlags,
    /// The server and its arguments, as your program would start it.
    #[arg(required_unless_present = "url", last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

/// Runs the server, and ends as it ends.
pub(crate) fn run(options: &McpOptions) -> Result<ExitCode, CommandFailure> {
    let client = options.hub.agent_client()?;
    let table = risk_table()?;
    let run: String = fresh_id("")?.chars().take(8).collect();
    let signals = child::watch_signals()?;
    let given = options.name.as_deref().filter(|it| !it.trim().is_empty());
    let prepare = |found: String| {
        let bridge = McpBridge::new(given.unwrap_or(&found), &run);
        McpProxy::new(bridge, table.clone(), options.policy)
    };
    if let Some(url) = &options.url {
        let server = RemoteServer::new(url, options.token_from.as_deref())?;
        let proxy = Arc::new(prepare(server.host()));
        let told = hub::start(Arc::clone(&proxy) as Arc<dyn HubSide>, client);
        let sending = remote::start(server, &proxy)?;
        proxy.set_server(ServerInput::remote(sending.sender));
        let reading = Arc::clone(&proxy);
        thread::spawn(move || reading.pump_client(std::io::stdin().lock()));
        wait_remote(&proxy, &sending.ended, &signals);
        finish(&proxy, "The connection ended in the middle of its work.", &told);
        return Ok(ExitCode::SUCCESS);
    }
    let (program, arguments) = options.command.split_first().ok_or_else(|| {
        CommandFailure::new(
            "no server is named",
            "Name it after two dashes: aaep mcp -- uvx mcp-server-git",
        )
    })?;
    let proxy = Arc::new(prepare(name::of_command(&options.command)));
    let mut server = child::start("server", Command::new(program).args(arguments))?;
    let (Some(to_server), Some(from_server)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(CommandFailure::new("the server has no input and output", "Start it again."));
    };
    proxy.set_server(ServerInput::child(to_server));
    let told = hub::start(Arc::clone(&proxy) as Arc<dyn HubSide>, client);
    let reading = Arc::clone(&proxy);
    thread::spawn(move || reading.pump_client(std::io::stdin().lock()));
    let (last_line, drained) = mpsc::channel();
    let reading = Arc::clone(&proxy);
    thread::spawn(move || {
        reading.pump_server(from_server);
        // Without a client that reads, the server is not asked anything any more.
        reading.close_server();
        let _ = last_line.send(());
    });
    let status = child::wait(&mut server, || proxy.close_server(), &signals);
    proxy.lines.drain(&drained);
    finish(&proxy, &child::end_words("server", status), &told);
    Ok(child::exit_code(status))
}

/// Waits until the client has ended and its last requests were answered, or this program is asked to stop.
fn wait_remote(proxy: &McpProxy, ended: &mpsc::Receiver<()>, stopped: &mpsc::Receiver<()>) {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut left: Option<Duration> = None;
    loop {
        match ended.recv_timeout(PAUSE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stopped.try_recv().is_ok() {
            proxy.close_server();
        }
        if proxy.is_closed() {
            let rest = left.unwrap_or(END_TIMEOUT + END_TIMEOUT).saturating_sub(PAUSE);
            if rest.is_zero() {
                return;
            }
            left = Some(rest);
        }
    }
}

fn finish(proxy: &McpProxy, words: &str, told: &mpsc::Receiver<()>) {
    proxy.end(words);
    proxy.queue().close();
    if told.recv_timeout(queue::CLOSE_TIMEOUT).is_err() {
        console::say("The hub did not take in time what was left to tell.");
    }
}
