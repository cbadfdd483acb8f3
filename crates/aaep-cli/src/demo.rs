//! `aaep demo`: a hub, two scripted agents, and `aaep listen` itself, all in this terminal.
//!
//! Everything is in a temporary folder that is gone when it ends. Photos and tests are made up: nothing else on
//! this computer is read or deleted. `show` is the stage, `story` what happens on it; with --serve, `agent` plays
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

use crate::console::{Failure, reason};
use crate::keyboard::give_terminal_back;
use crate::stop::Stopped;
use agent::Agent;

const EXIT_CODES: &str = "\
Exit codes:
  0  the demonstration went to its end
  2  it could not be done";

/// What a program that Control-C ended exits with.
const STOPPED: i32 = 130;

/// How the demonstration goes.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// The address to listen on. By default a free port of this machine.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Answer by itself, without waiting for anyone. Where nobody can type, it answers no.
    #[arg(long, value_enum)]
    answer: Option<Answering>,
    /// Write lines alone, even if a voice is there.
    #[arg(long)]
    no_speech: bool,
    /// Run only the hub with the scripted agent, until it is stopped, for programs elsewhere.
    #[arg(long, conflicts_with = "answer")]
    serve: bool,
    #[command(flatten)]
    serving: serving::Flags,
}

/// How questions are answered when nobody is at the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answering {
    /// Yes to everything.
    Accept,
    /// No to everything that needs consent.
    Reject,
    /// Nobody is there who could answer.
    None,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(format!("the system gives no threads: {error}"), "Try again.")
        })?;
    let folder = temporary_folder()?;
    let daemon = start(&runtime, arguments, folder.path())?;
    let origin = daemon.origins().first().cloned().unwrap_or_default();
    let result = if arguments.serve {
        start_agent(&runtime, &daemon)
            .and_then(|()| serve(&runtime, &daemon, &origin, &arguments.serving))
    } else {
        let stage = show::Stage {
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
        Failure::new(what, "Delete it yourself; its name begins with aaep-demo-.")
    })?;
    result.map(|()| ExitCode::SUCCESS)
}

/// A folder that only we can read.
fn temporary_folder() -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix("aaep-demo-").tempdir().map_err(|error| {
        let what = format!("there is no temporary folder to be had: {}", reason(&error));
        Failure::new(what, "Make room in the folder for temporary files, or set TMPDIR.")
    })
}

/// Control-C ends the demonstration at once, as closing its terminal does, and nothing is left behind either.
fn clean_up_when_stopped(runtime: &Runtime, folder: PathBuf) -> Result<(), Failure> {
    let stopped = watch(runtime)?;
    runtime.spawn(async move {
        stopped.wait().await;
        // If it cannot be deleted, there is nobody left who would hear of it.
        let _ = std::fs::remove_dir_all(&folder);
        give_terminal_back();
        std::process::exit(STOPPED);
    });
    Ok(())
}

/// A hub with its store in the folder, that knows no tokens.
fn start(runtime: &Runtime, arguments: &Arguments, folder: &Path) -> Result<Daemon, Failure> {
    let mut options = DaemonOptions::new(folder.join("tokens.toml"));
    options.store = Some(folder.join("store"));
    options.bind = vec![arguments.bind];
    // It is there to be tried out: with curl, the public tools, anything.
    arguments.serving.apply(&mut options);
    let started = runtime.block_on(Daemon::start(options));
    started.map_err(|error| Failure::of_sentences(&error.to_string(), "Say another --bind."))
}

/// The agent that takes prompts from elsewhere.
fn start_agent(runtime: &Runtime, daemon: &Daemon) -> Result<(), Failure> {
    let agent = Agent::new(daemon.hub().clone(), true);
    runtime
        .block_on(agent.announce())
        .map_err(|error| Failure::of_sentences(&error.to_string(), "Try again."))?;
    runtime.spawn(agent.serve());
    Ok(())
}

/// The agent alone, for subscribers elsewhere.
fn serve(
    runtime: &Runtime,
    daemon: &Daemon,
    origin: &str,
    flags: &serving::Flags,
) -> Result<(), Failure> {
    let stopped = watch(runtime)?;
    flags.introduce(origin)?;
    runtime.spawn(serving::Flags::ask_again(daemon.hub().clone(), flags.pause()));
    runtime.block_on(async {
        tokio::select! {
            () = stopped.wait() => Ok(()),
            why = daemon.died() => Err(Failure::of_sentences(&why, "Start it again.")),
        }
    })
}

/// Watches for Control-C and the like.
fn watch(runtime: &Runtime) -> Result<Stopped, Failure> {
    let _inside = runtime.enter();
    Stopped::new().and_then(Stopped::or_hung_up).map_err(|error| {
        Failure::new(format!("cannot watch for Control-C: {}", reason(&error)), "Try again.")
    })
}
