//! `aaep serve`: runs a hub until it is stopped.
//!
//! Standard output says where it listens and how to try it; standard error has the log. With `--stdio`, standard
//! output belongs to the program that listens there, and everything for people goes to standard error.

mod sockets;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use aaep_hub::access::{INSECURE_FLAG, is_loopback};
use aaep_hub::hub::StartError;
use aaep_hub::relay::ChildTable;
use aaep_hub::server::{Daemon, DaemonError, DaemonOptions, HubConfig};
use aaep_hub::stdio::{self, StdioEnd};
use clap::Args;
use tokio::task::JoinHandle;

use crate::console::{COULD_NOT, CommandFailure, complain, say};
use crate::english::failures;
use crate::keys::{own_folder, tell};
use crate::log::{LogFlags, start_log};
use crate::stop::StopSignals;
use crate::tokens::configuration_folder;

const EXIT_CODES: &str = "\
For example, on another port: aaep serve --bind 127.0.0.1:7200
For the configuration file, see docs/serve.md.
Exit codes:
  0  it ran until it was stopped
  2  it could not start, or could not go on";

/// How long the parent program has to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How to run the hub.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ServeOptions {
    /// The address to listen on. By default 127.0.0.1:7117. Port 0 means any free port. Can be given several times.
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<SocketAddr>,
    /// The path of the local socket, or the word none. By default aaep/aaep-hub.sock in your runtime folder
    /// (`XDG_RUNTIME_DIR`).
    #[arg(long, value_name = "PATH", env = "AAEP_SOCKET")]
    socket: Option<PathBuf>,
    /// The folder in which the hub keeps everything. By default a folder of your own.
    #[arg(long, value_name = "DIR", env = "AAEP_STORE")]
    store: Option<PathBuf>,
    /// The configuration file. By default hub.toml in your configuration folder, if there is one.
    #[arg(long, value_name = "FILE", env = "AAEP_CONFIG")]
    config: Option<PathBuf>,
    /// The file of the tokens. By default tokens.toml in your configuration folder.
    #[arg(long, value_name = "FILE", env = "AAEP_TOKENS")]
    tokens: Option<PathBuf>,
    /// The folder of the keys that sign the manifest. By default a folder of your own.
    #[arg(long, value_name = "DIR", env = "AAEP_KEYS")]
    keys: Option<PathBuf>,
    /// Let other machines connect without encryption. Everybody in their network can then read what agents say.
    #[arg(long)]
    insecure_allow_plain_http: bool,
    /// Let every program on this machine answer and administer without your permission, to try things out or for tests.
    /// An agent could then answer itself.
    #[arg(long)]
    trust_local_programs: bool,
    /// Refuse subscribers that ask for none of the languages spoken here. Without this, they get the first of these
    /// languages.
    #[arg(long)]
    require_language: bool,
    /// Has no effect any more: a hub always sets a broken audit log aside, and begins a new one that says so.
    #[arg(long = "begin-new-audit-log", hide = true)]
    _begin_new_audit_log: bool,
    /// Speak JSON-RPC with the program that started the hub, on standard input and output. The hub stops when standard
    /// input ends. Agents connect as usual.
    #[arg(long)]
    stdio: bool,
    /// Run an agent that speaks JSON-RPC on its standard input and output, for everybody to hear. Its program and
    /// arguments follow at the end, after --. The configuration file can name several.
    #[arg(long, requires = "command")]
    child: bool,
    /// The program for --child, and its arguments.
    #[arg(last = true, value_name = "COMMAND", requires = "child")]
    command: Vec<String>,
    #[command(flatten)]
    log: LogFlags,
}

/// Runs the hub until it is stopped.
pub(crate) fn run(arguments: &ServeOptions) -> Result<ExitCode, CommandFailure> {
    let options = options(arguments)?;
    start_log(&arguments.log);
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let served = runtime.block_on(serve(options, arguments.socket.as_deref(), arguments.stdio));
    // A thread may still be reading standard input, where nothing more may ever arrive.
    runtime.shutdown_background();
    served
}

async fn serve(
    options: DaemonOptions,
    socket: Option<&Path>,
    is_stdio: bool,
) -> Result<ExitCode, CommandFailure> {
    // Before anything else runs, so that no signal is missed.
    let stopped = StopSignals::new()
        .map_err(|error| CommandFailure::new(failures::no_signals(&error), failures::TRY_LATER))?;
    let given = sockets::given(&options.config, socket)?;
    let daemon = Daemon::start_with(options, given).await.map_err(|error| failure(&error))?;
    if let Err(failure) = introduce(&daemon, is_stdio) {
        daemon.stop().await;
        return Err(failure);
    }
    tracing::info!("The hub runs.");
    let mut parent = is_stdio.then(|| {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        tokio::spawn(stdio::serve(daemon.hub().clone(), input, output))
    });
    let died = tokio::select! {
        () = stopped.wait() => None,
        why = daemon.died() => Some(why),
        end = ended(&mut parent) => {
            tracing::info!("{end}");
            None
        }
    };
    tracing::info!("The hub stops.");
    if !daemon.stop().await {
        tracing::warn!("Some requests were cut off because they took too long.");
    }
    if let Some(parent) = parent {
        // Let the parent read the last messages, if it does.
        let _ = tokio::time::timeout(LAST_WORDS, parent).await;
    }
    match died {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => {
            complain(&CommandFailure::of_sentences(
                &format!("The hub cannot go on. {why}"),
                "Start it again; what was acknowledged is stored.",
            ));
            Ok(ExitCode::from(COULD_NOT))
        }
    }
}

/// Waits until the parent program stops listening; forever if it never listened.
async fn ended(parent: &mut Option<JoinHandle<StdioEnd>>) -> StdioEnd {
    let Some(listening) = parent else { return std::future::pending().await };
    let end = listening.await.unwrap_or(StdioEnd::Ended);
    *parent = None;
    end
}

/// Prints where the hub listens and how to try it.
fn introduce(daemon: &Daemon, is_stdio: bool) -> Result<(), CommandFailure> {
    let tell = |text: &str| {
        if is_stdio {
            say(text);
            return Ok(());
        }
        tell(text)
    };
    for origin in daemon.origins() {
        tell(&format!("Listening on {origin}"))?;
    }
    for socket in daemon.sockets() {
        tell(&format!("Listening on unix:{}", aaep::printable(&socket.to_string_lossy())))?;
    }
    let is_local = |address: &&SocketAddr| is_loopback(address.ip());
    if let Some(address) = daemon.addresses().iter().find(is_local) {
        tell(&format!("To hear what agents do: aaep listen --hub http://{address}"))?;
    }
    if is_stdio {
        return tell(
            "Speaking JSON-RPC with the program that started this. To stop: close its standard input.",
        );
    }
    tell("To stop: press Control and C.")
}

/// The options from the command line and, for what it leaves open, from the configuration file.
fn options(arguments: &ServeOptions) -> Result<DaemonOptions, CommandFailure> {
    let config = match &arguments.config {
        Some(path) => HubConfig::load(path),
        None => match configuration_folder().map(|folder| folder.join("hub.toml")) {
            Ok(path) if path.exists() => HubConfig::load(&path),
            _ => Ok(HubConfig::default()),
        },
    };
    let mut config = config.map_err(|error| failure(&DaemonError::Config(error)))?;
    config.access.trust_local_programs |= arguments.trust_local_programs;
    config.hub.require_language |= arguments.require_language;
    if arguments.child {
        let command = arguments.command.clone();
        config.child.push(ChildTable { command, agent_id: None, restart: false });
    }
    let chosen = |flag: &Option<PathBuf>, setting: &Option<PathBuf>| {
        flag.clone().or_else(|| setting.clone())
    };
    let store = match chosen(&arguments.store, &config.hub.store) {
        Some(folder) => folder,
        None => state_folder()?,
    };
    let tokens = match chosen(&arguments.tokens, &config.hub.tokens) {
        Some(file) => file,
        None => configuration_folder()?.join("tokens.toml"),
    };
    let keys = match chosen(&arguments.keys, &config.hub.keys) {
        Some(folder) => folder,
        None => own_folder("--keys")?.join("keys"),
    };
    Ok(DaemonOptions {
        config,
        bind: arguments.bind.clone(),
        store: Some(store),
        tokens,
        keys: Some(keys),
        allow_plain_http: arguments.insecure_allow_plain_http,
    })
}

/// This program's folder for state that it keeps between runs.
pub(crate) fn state_folder() -> Result<PathBuf, CommandFailure> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .or_else(|| set("LOCALAPPDATA"))
        .map(|folder| folder.join("aaep"))
        .ok_or_else(|| {
            CommandFailure::new("there is no home folder here", "Say where with --store.")
        })
}

/// Why the hub did not start, with the next step on the command line.
fn failure(error: &DaemonError) -> CommandFailure {
    if let DaemonError::Hub(StartError::Store(error)) = error {
        return crate::store::failure(error);
    }
    let next = format!("More: aaep serve --help. {INSECURE_FLAG} is for networks that you trust.");
    CommandFailure::of_sentences(&error.to_string(), &next)
}
