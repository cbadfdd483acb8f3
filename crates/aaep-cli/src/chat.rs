//! `aaep chat`: a person and an agent that speaks the Agent Client Protocol, in plain lines, without an editor.
//!
//! The agent runs behind the same proxy as with `aaep acp`, so a hub hears it as well, and a listener elsewhere can
//! answer. `front` brings what the agent says to the `room`, which is the loop; `told` turns events into those that
//! an announcer takes; `asks` knows which question is open; `typed` reads lines. What is said, when and how is decided
//! in `aaep-announce`, as in `aaep listen`.

mod agent;
mod asks;
mod commands;
mod form;
mod front;
mod known;
mod news;
mod room;
mod told;
mod typed;

use std::ffi::OsString;
use std::process::ExitCode;

use aaep_bridge::AskPolicy;
use aaep_bridge::acp::AcpOpening;
use clap::Args;

use crate::acp::stem;
use crate::console::CommandFailure;
use crate::english::{chatting, failures};
use crate::hook::parse_policy;
use crate::hubs::HubFlags;
use crate::keyboard::KeyboardInput;
use crate::keys::tell;
use crate::listen::devices;
use crate::listen::reports::DeviceReports;
use crate::order::example;
use crate::settings::{self, LinesSettings, SettingsFlags, UserSettings};
use room::ChatRoom;

const EXIT_CODES: &str = "\
Without an agent, this lists the agents that it knows, and those that it finds here.
While it runs, type what the agent should do, or /help.
Exit codes:
  0  you left; from a pipe: everything was done
  1  from a pipe: the last turn did not come to its end
  2  the agent could not be used, or ended by itself, or wrong usage";

/// Which agent.
#[derive(Debug, Args)]
#[command(after_help = example("aaep chat gemini", EXIT_CODES))]
pub(crate) struct ChatOptions {
    /// The agent, by its name in the list. For another one, name its command after two dashes.
    #[arg(value_name = "AGENT", conflicts_with = "command")]
    agent: Option<String>,
    /// Continue the last session in this folder, if the agent can.
    #[arg(long = "continue", conflicts_with = "session")]
    continues: bool,
    /// Continue the session with this id, if the agent can.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// When to ask you in the hub as well: tell (only here; there you hear that it asks), risky or changes (here and
    /// there, whatever the agent asks).
    #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
    policy: AskPolicy,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    flags: SettingsFlags,
    /// The command of an agent that speaks the Agent Client Protocol, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Lists agents, or chats with one until the person leaves or the agent ends.
pub(crate) fn run(options: &ChatOptions) -> Result<ExitCode, CommandFailure> {
    let (name, command) = match (&options.agent, options.command.split_first()) {
        (None, None) => {
            known::list().iter().try_for_each(|it| tell(it))?;
            return Ok(ExitCode::SUCCESS);
        }
        (Some(name), _) => known::command_of(name)?,
        (None, Some((program, _))) => (stem(program), options.command.clone()),
    };
    let settings = settings::load(&options.hub.added_to(&options.flags))?.settings;
    let opening = match &options.session {
        Some(id) => AcpOpening::Session(id.clone()),
        None if options.continues => AcpOpening::Latest,
        None => AcpOpening::New,
    };
    let folder = std::env::current_dir()
        .ok()
        .and_then(|it| it.into_os_string().into_string().ok())
        .ok_or((chatting::FOLDER_NOT_TEXT, chatting::GO_TO_ANOTHER))?;
    let reports = DeviceReports::start();
    let mut devices = devices::start(&lines_alone(&settings), false, reports.sender())?;
    let channel = devices.channels.pop().ok_or((failures::NOTHING_TOLD, failures::TURN_ONE_ON))?;
    let agent = agent::start(&name, &command, options.policy, &options.hub)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let left = runtime.block_on(async {
        let room = ChatRoom::new(channel, name, (&folder, opening), agent);
        room.run(reports, KeyboardInput::new()).await
    });
    // The thread that reads standard input may still wait for a line.
    runtime.shutdown_background();
    left
}

/// The same settings with nothing but lines: whoever listens with a voice listens to the hub.
fn lines_alone(settings: &UserSettings) -> UserSettings {
    UserSettings {
        listen: settings.listen.clone(),
        lines: LinesSettings { on: true, ..settings.lines.clone() },
        ..UserSettings::default()
    }
}
