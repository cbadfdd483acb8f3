//! `aaep acp`: stands between an editor and an agent that speak the Agent Client Protocol, so that the agent is heard
//! and answered here as well.
//!
//! The translation is in `aaep_bridge`; this passes lines on, speaks with the hub, and ends as the agent ends.
//! Standard output carries nothing but the protocol. Neither side ever waits for the hub.

mod hub;
mod inbox;
mod lines;
mod proxy;
mod queue;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use aaep_bridge::AskPolicy;
use aaep_bridge::acp::{AcpBridge, AcpSide};
use clap::Args;

use crate::agent::fresh_id;
use crate::console::{self, CommandFailure};
use crate::hook::parse_policy;
use crate::hook::risk_table;
use crate::hubs::HubFlags;
use crate::stop::StopSignals;
use proxy::{AcpProxy, ProxySetup};

const EXIT_CODES: &str = "\
For example, in the settings of your editor, instead of gemini --acp: aaep acp -- gemini --acp
Exit codes:
  0  the agent ended without an error; its other exit codes are passed on as they are
  2  the agent could not be started, or wrong usage";

/// How long an agent has to end by itself when this program is asked to stop.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the last words of an agent may take that has ended, while nothing arrives.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

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
    let signals = watch_signals()?;
    let (program, arguments) = options.command.split_first().ok_or_else(|| {
        CommandFailure::new(
            "no agent is named",
            "Name it after two dashes: aaep acp -- gemini --acp",
        )
    })?;
    let stem = Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned();
    let given = options.agent.as_deref().filter(|it| !it.trim().is_empty());
    let machine = options.hub.has_token().then(crate::hook::machine_name).flatten();
    let bridge = AcpBridge::new(given.unwrap_or(&stem), given.is_some(), &run).on_machine(machine);
    let mut agent = start(program, arguments)?;
    let (Some(to_agent), Some(from_agent)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(CommandFailure::new("the agent has no input and output", "Start it again."));
    };
    let setup = ProxySetup { table, policy: options.policy };
    let proxy = Arc::new(AcpProxy::new(bridge, setup, to_agent));
    let told = hub::start(&proxy, client);
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
    let status = wait(&mut agent, &proxy, &signals);
    drain(&proxy, &drained);
    proxy.end(&end_words(status));
    proxy.queue.close();
    if told.recv_timeout(queue::CLOSE_TIMEOUT).is_err() {
        console::say("The hub did not take in time what was left to tell.");
    }
    Ok(exit_code(status))
}

fn start(program: &OsString, arguments: &[OsString]) -> Result<Child, CommandFailure> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(|error| {
        let name = console::name_of(Path::new(program));
        let what = format!("cannot start the agent {name}: {}", console::reason(&error));
        CommandFailure::new(what, "Check the command after the two dashes.")
    })
}

/// Learns when this program is asked to stop. The agent is then ended in order.
fn watch_signals() -> Result<Receiver<()>, CommandFailure> {
    let failure = |error: std::io::Error| {
        let what = format!("cannot watch for signals: {}", console::reason(&error));
        CommandFailure::new(what, "Start it again.")
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failure)?;
    let signals = {
        let _inside = runtime.enter();
        StopSignals::new().and_then(StopSignals::or_hung_up).map_err(failure)?
    };
    let (stopped, receiver) = mpsc::channel();
    thread::spawn(move || {
        runtime.block_on(signals.wait());
        let _ = stopped.send(());
    });
    Ok(receiver)
}

/// Waits until the agent has ended. `None` if the system does not say how.
fn wait(agent: &mut Child, proxy: &AcpProxy, stopped: &Receiver<()>) -> Option<ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut patience: Option<Duration> = None;
    loop {
        match agent.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => {}
            Err(_) => return None,
        }
        match stopped.recv_timeout(PAUSE) {
            Ok(()) => {
                proxy.close_agent();
                patience = Some(END_TIMEOUT);
            }
            Err(RecvTimeoutError::Disconnected) => thread::sleep(PAUSE),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(left) = &mut patience {
            *left = left.saturating_sub(PAUSE);
            if left.is_zero() {
                let _ = agent.kill();
            }
        }
    }
}

/// Waits until everything that the agent wrote has reached the editor. A program that the agent left behind may keep
/// its output open for ever.
fn drain(proxy: &AcpProxy, drained: &Receiver<()>) {
    let mut passed = proxy.passed();
    while drained.recv_timeout(DRAIN_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        let now = proxy.passed();
        if now == passed && !proxy.is_writing() {
            return;
        }
        passed = now;
    }
}

fn end_words(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) if status.success() => {
            "The agent was closed in the middle of its work.".to_owned()
        }
        Some(status) => match status.code() {
            Some(code) => {
                format!("The agent ended in the middle of its work, with exit code {code}.")
            }
            None => "The agent was stopped in the middle of its work.".to_owned(),
        },
        None => "The agent ended in the middle of its work.".to_owned(),
    }
}

/// The exit code of the agent, as a shell says it.
fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    let Some(status) = status else { return ExitCode::from(console::COULD_NOT) };
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|it| 128 + it)).unwrap_or(1);
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}
