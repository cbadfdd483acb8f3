//! `aaep demo`: a hub, two scripted agents, and `aaep listen` itself, all in this terminal.
//!
//! Everything is in a temporary folder that is deleted at the end. Photos and tests are made up: nothing else on this
//! computer is read or deleted. `show` is the stage and `story` is what happens on it; with --serve, `agent` plays
//! `scenes` for subscribers elsewhere.

mod agent;
mod photos;
mod scenes;
mod script;
mod serving;
mod show;
mod story;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep_hub::server::{Daemon, DaemonOptions};
use clap::{Args, ValueEnum};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::console::{CommandFailure, reason};
use crate::english::failures;
use crate::keyboard::give_terminal_back;
use crate::stop::StopSignals;
use agent::DemoAgent;

const EXIT_CODES: &str = "\
For example, without a voice: aaep demo --no-speech
Exit codes:
  0  the demonstration ran to its end
  2  it could not run";

/// The exit code of a program that Control-C ended.
const STOPPED: i32 = 130;

/// How often it is tried to delete the folder.
const MAX_DELETIONS: u8 = 20;

/// How the demonstration goes.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DemoOptions {
    /// The address of the hub. By default a free port on this machine.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Answer automatically, without waiting for you. Without a keyboard, the answer is no.
    #[arg(long, value_enum)]
    answer: Option<AnswerMode>,
    /// Write lines only, even if a voice is available.
    #[arg(long)]
    no_speech: bool,
    /// Run only the hub and the scripted agent, for other programs that listen, until you stop it.
    #[arg(long, conflicts_with = "answer")]
    serve: bool,
    #[command(flatten)]
    serving: serving::ServingFlags,
}

/// How questions are answered when nobody is at the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerMode {
    /// Yes to everything.
    Accept,
    /// No to everything that needs consent.
    Reject,
    /// No answer, as if nobody were there.
    None,
}

pub(crate) fn run(arguments: &DemoOptions) -> Result<ExitCode, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let folder = temporary_folder()?;
    let daemon = start(&runtime, arguments, folder.path())?;
    let origin = daemon.origins().first().cloned().unwrap_or_default();
    let result = if arguments.serve {
        start_agent(&runtime, &daemon)
            .and_then(|()| serve(&runtime, &daemon, &origin, &arguments.serving))
    } else {
        let stage = show::DemoStage {
            hub: daemon.hub().clone(),
            origin,
            folder: folder.path().to_owned(),
            answering: arguments.answer,
            may_speak: !arguments.no_speech,
        };
        clean_up_when_stopped(&runtime, folder.path().to_owned())
            .and_then(|()| runtime.block_on(show::run(stage)))
    };
    runtime.block_on(daemon.stop());
    runtime.shutdown_background();
    folder.close().map_err(|error| {
        let what = format!("the temporary folder could not be deleted: {}", reason(&error));
        CommandFailure::new(what, "Delete it yourself; its name begins with aaep-demo-.")
    })?;
    result.map(|()| ExitCode::SUCCESS)
}

/// Creates a folder that only this user can read.
fn temporary_folder() -> Result<TempDir, CommandFailure> {
    tempfile::Builder::new().prefix("aaep-demo-").tempdir().map_err(|error| {
        let what = format!("no temporary folder can be made: {}", reason(&error));
        CommandFailure::new(what, "Make room in the folder for temporary files, or set TMPDIR.")
    })
}

/// Control-C ends the demonstration at once, as closing its terminal does, and leaves nothing behind.
fn clean_up_when_stopped(runtime: &Runtime, folder: PathBuf) -> Result<(), CommandFailure> {
    let stopped = watch(runtime)?;
    runtime.spawn(async move {
        stopped.wait().await;
        // The hub still writes, and a file that it makes meanwhile keeps the folder. If it cannot be deleted, there is
        // nobody left to tell.
        for _ in 0..MAX_DELETIONS {
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                break;
            }
        }
        give_terminal_back();
        std::process::exit(STOPPED);
    });
    Ok(())
}

/// Starts a hub with its store in the folder and without tokens.
fn start(
    runtime: &Runtime,
    arguments: &DemoOptions,
    folder: &Path,
) -> Result<Daemon, CommandFailure> {
    let mut options = DaemonOptions::new(folder.join("tokens.toml"));
    options.store = Some(folder.join("store"));
    options.bind = vec![arguments.bind];
    // People are meant to try it out, with curl or the public tools.
    arguments.serving.apply(&mut options);
    let started = runtime.block_on(Daemon::start(options));
    started.map_err(|error| CommandFailure::of_sentences(&error.to_string(), "Say another --bind."))
}

/// Starts the agent that takes prompts from other programs.
fn start_agent(runtime: &Runtime, daemon: &Daemon) -> Result<(), CommandFailure> {
    let agent = DemoAgent::new(daemon.hub().clone(), true);
    runtime
        .block_on(agent.announce())
        .map_err(|error| CommandFailure::of_sentences(&error.to_string(), "Try again."))?;
    runtime.spawn(agent.serve());
    Ok(())
}

/// Runs only the agent, for subscribers elsewhere.
fn serve(
    runtime: &Runtime,
    daemon: &Daemon,
    origin: &str,
    flags: &serving::ServingFlags,
) -> Result<(), CommandFailure> {
    let stopped = watch(runtime)?;
    flags.introduce(origin)?;
    runtime.spawn(serving::ServingFlags::ask_again(daemon.hub().clone(), flags.pause()));
    runtime.block_on(async {
        tokio::select! {
            () = stopped.wait() => Ok(()),
            why = daemon.died() => Err(CommandFailure::of_sentences(&why, "Start it again.")),
        }
    })
}

/// Watches for Control-C and other signals to stop.
fn watch(runtime: &Runtime) -> Result<StopSignals, CommandFailure> {
    let _inside = runtime.enter();
    StopSignals::new()
        .and_then(StopSignals::or_hung_up)
        .map_err(|error| CommandFailure::new(failures::no_control_c(&reason(&error)), "Try again."))
}
