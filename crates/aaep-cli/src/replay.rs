//! `aaep replay`: tells again what agents did: since the person left, the last thing, a reply, or decisions.
//!
//! It reads the hub's history, as far as the person may hear it, and uses the words of live listening. Nothing in it
//! can be answered. `history` reads, `play` tells, `place` knows where the person left.

mod decisions;
mod forms;
mod history;
pub(crate) mod place;
mod play;
mod reply;
mod since;
mod turns;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::console::CommandFailure;
use crate::english::{failures, replaying};
use crate::hubs::HubFlags;
use crate::listen::device_table::{DeviceFlags, is_any_on};
use crate::settings::{self, SettingsFlags, UserSettings};
use forms::ReplayContext;
use history::HistoryStart;
use play::ReplayedUtterance;

const WORDS: &str = "\
For example:
  aaep replay                      what happened since you left: since aaep listen last told you something
  aaep replay last                 the last thing that was told
  aaep replay reply                what an agent said last, in full; with --exact, with all code and marks
  aaep replay decisions            only what was asked, and how it was decided
  aaep replay session SESSION      a session; with --turns its turns, with --turn 2 the second of them
  aaep replay list                 the sessions, the newest first
SESSION is a number from the list, an id, or the name of an agent, which means its newest session. It can also follow
last, reply and decisions. A turn is everything that an agent did until it finished saying something.
Exit codes:
  0  it was told
  2  it could not be done: no hub, no such session, or it is not known when you left";

/// How many things are told to a person who is listening.
const MAX_RECALLED: usize = 100;

/// What to hear again.
#[derive(Debug, Args)]
// Past events make no sounds.
#[command(after_help = WORDS, mut_arg("sounds", |it| it.hide(true)))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct ReplayOptions {
    /// What to hear again.
    #[arg(value_enum, default_value = "left", hide_default_value = true)]
    what: ReplayForm,
    /// Which session: its number in `aaep replay list`, its id, or the name of its agent.
    session: Option<String>,
    /// Only one turn of the session.
    #[arg(long, value_name = "NUMBER")]
    turn: Option<u32>,
    /// List the turns of the session.
    #[arg(long, conflicts_with = "turn")]
    turns: bool,
    /// From when on: 10m, 2h or 1d ago, a time such as 14:05, or a whole timestamp.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Tell the reply exactly as the agent wrote it, with all code and marks.
    #[arg(long)]
    exact: bool,
    /// Write one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    devices: DeviceFlags,
    /// Write no lines.
    #[arg(long)]
    no_lines: bool,
    #[command(flatten)]
    hub: HubFlags,
    /// How much is told: screen-reader, braille, captions, low-cognitive-load, quiet or debug.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// What can be heard again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplayForm {
    /// What happened since you left.
    Left,
    /// The last thing that was told.
    #[value(alias = "repeat")]
    Last,
    /// What an agent said last.
    Reply,
    /// What was asked, and how it was decided.
    Decisions,
    /// A session.
    Session,
    /// The sessions, the newest first.
    #[value(alias = "sessions")]
    List,
}

pub(crate) fn run(arguments: &ReplayOptions) -> Result<ExitCode, CommandFailure> {
    check(arguments)?;
    let settings = wanted(arguments)?;
    // If none is named, the first of several hubs is used.
    let hubs = arguments.hub.hubs(&settings.listen)?;
    let hub = hubs
        .first()
        .ok_or_else(|| CommandFailure::new(replaying::NO_HUB, replaying::NAME_A_HUB))?;
    let replay = ReplayContext::open(&hub.address, hub.token.as_deref(), &settings)?;
    let since = match &arguments.since {
        Some(text) => Some(replay.moment_of(text)?),
        None => None,
    };
    let from = since.map_or(HistoryStart::Beginning, HistoryStart::Time);
    let session = arguments.session.as_deref();
    let all = match arguments.what {
        ReplayForm::Left => replay.left(since)?,
        ReplayForm::Last => replay.last(session)?,
        ReplayForm::Reply if arguments.exact && !is_any_on(&settings) => {
            replay.exactly(session, arguments.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        ReplayForm::Reply => replay.reply(session, arguments.exact)?,
        ReplayForm::Decisions => replay.decisions(session, &from)?,
        ReplayForm::Session if arguments.turns => replay.turns(session.unwrap_or_default())?,
        ReplayForm::Session => {
            replay.session(session.unwrap_or_default(), &from, arguments.turn)?
        }
        ReplayForm::List => replay.list()?,
    };
    if arguments.json {
        play::write_json(all)?;
    } else {
        play::play(&settings, all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that the options go together.
fn check(arguments: &ReplayOptions) -> Result<(), CommandFailure> {
    let ReplayOptions { what, session, turn, turns, since, exact, .. } = arguments;
    let wrong = match what {
        ReplayForm::Session if session.is_none() => Some(replaying::WHICH_SESSION),
        ReplayForm::Left | ReplayForm::List if session.is_some() => {
            Some(replaying::TAKES_NO_SESSION)
        }
        _ if *what != ReplayForm::Session && (turn.is_some() || *turns) => {
            Some(replaying::TURNS_GO_WITH_SESSION)
        }
        _ if *exact && *what != ReplayForm::Reply => Some(replaying::EXACT_GOES_WITH_REPLY),
        ReplayForm::Last | ReplayForm::Reply | ReplayForm::List if since.is_some() => {
            Some(replaying::TAKES_NO_SINCE)
        }
        _ => None,
    };
    wrong.map_or(Ok(()), |wrong| Err(CommandFailure::new(wrong, replaying::SEE_HELP)))
}

/// The person's settings, with the command line flags applied.
fn wanted(arguments: &ReplayOptions) -> Result<UserSettings, CommandFailure> {
    let flags = SettingsFlags {
        hub: arguments.hub.said(),
        profile: arguments.profile.clone(),
        ..SettingsFlags::default()
    };
    let mut settings = settings::load(&flags)?.settings;
    arguments.devices.apply(&mut settings);
    settings.lines.on &= !arguments.no_lines;
    // Past events do not need attention.
    (settings.sounds.on, settings.lines.bell) = (false, false);
    settings.lines.notifications = settings::NotificationStyle::None;
    if !settings.lines.on && !is_any_on(&settings) && !arguments.json {
        return Err(CommandFailure::new(failures::NOTHING_TOLD, failures::TURN_ONE_ON));
    }
    Ok(settings)
}

/// What happened at a hub since the person left, as lines that name their speakers.
pub(crate) fn since_left(
    address: &str,
    token: Option<&str>,
    settings: &UserSettings,
) -> Result<Vec<String>, CommandFailure> {
    let mut all = ReplayContext::open(address, token, settings)?.left(None)?;
    let beyond = all.len().saturating_sub(MAX_RECALLED);
    if beyond > 0 {
        let words = replaying::left_out_here(beyond as u64);
        all.splice(1..=beyond, [ReplayedUtterance::about(&words)]);
    }
    Ok(all.iter().map(ReplayedUtterance::line).collect())
}
