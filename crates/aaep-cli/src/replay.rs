//! `aaep replay`: what agents did, to be heard again: since the person left, the last thing, a reply, decisions.
//!
//! It comes from the history of the hub, as far as the person may hear it, in the words of live listening. Nothing in
//! it can be answered. `history` reads, `play` tells, `place` knows where the person left off.

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

use crate::console::{Failure, count};
use crate::hubs::HubFlags;
use crate::settings::{self, Flags, Settings};
use forms::Replay;
use history::From;
use play::Told;

const WORDS: &str = "\
What can be said:
  aaep replay                      what happened since you left: since aaep listen last told you something
  aaep replay last                 the last thing that was told
  aaep replay reply                what an agent said last, whole; with --exact, exactly
  aaep replay decisions            only what was asked, and how it was decided
  aaep replay session SESSION      a session; with --turns its turns, with --turn 2 the second of them
  aaep replay list                 the sessions, the newest first
SESSION is a number of the list, an id, or the name of an agent, whose newest session it is. It can follow last, reply
and decisions too. A turn is what an agent did up to something that it said whole.
Exit codes:
  0  it is told
  2  it could not be done: no hub, no such session, or nobody knows when you left";

/// How many things are told to someone who listens.
const MAX_RECALLED: usize = 100;

/// What to hear again.
#[derive(Debug, Args)]
#[command(after_help = WORDS)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct Arguments {
    /// What to hear again.
    #[arg(value_enum, default_value = "left", hide_default_value = true)]
    what: What,
    /// Which session: a number of `aaep replay list`, an id, or the name of an agent.
    session: Option<String>,
    /// Only one turn of the session.
    #[arg(long, value_name = "NUMBER")]
    turn: Option<u32>,
    /// List the turns of the session.
    #[arg(long, conflicts_with = "turn")]
    turns: bool,
    /// Since when: 10m, 2h, 1d, 14:05, or a whole timestamp.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// The reply exactly as it came, code and all.
    #[arg(long)]
    exact: bool,
    /// Write one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
    /// Speak, through speech-dispatcher.
    #[arg(long)]
    speech: bool,
    /// Show it on a braille display, through BRLTTY.
    #[arg(long)]
    braille: bool,
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
enum What {
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

/// Tells it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    check(arguments)?;
    let settings = wanted(arguments)?;
    // Of several hubs, the first is meant where none is said.
    let hubs = arguments.hub.hubs(&settings.listen)?;
    let hub = hubs.first().ok_or_else(|| Failure::new("no hub is set", "Name one with --hub."))?;
    let replay = Replay::open(&hub.address, hub.token.as_deref(), &settings)?;
    let since = match &arguments.since {
        Some(text) => Some(replay.moment_of(text)?),
        None => None,
    };
    let from = since.map_or(From::Beginning, From::Time);
    let session = arguments.session.as_deref();
    let all = match arguments.what {
        What::Left => replay.left(since)?,
        What::Last => replay.last(session)?,
        What::Reply if arguments.exact && !settings.speech.on && !settings.braille.on => {
            replay.exactly(session, arguments.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        What::Reply => replay.reply(session, arguments.exact)?,
        What::Decisions => replay.decisions(session, &from)?,
        What::Session if arguments.turns => replay.turns(session.unwrap_or_default())?,
        What::Session => replay.session(session.unwrap_or_default(), &from, arguments.turn)?,
        What::List => replay.list()?,
    };
    if arguments.json {
        play::write_json(all)?;
    } else {
        play::play(&settings, all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the words go together.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { what, session, turn, turns, since, exact, .. } = arguments;
    let wrong = match what {
        What::Session if session.is_none() => Some("it is not said which session"),
        What::Left | What::List if session.is_some() => Some("no session goes with that word"),
        _ if *what != What::Session && (turn.is_some() || *turns) => {
            Some("--turn and --turns go with session")
        }
        _ if *exact && *what != What::Reply => Some("--exact goes with reply"),
        What::Last | What::Reply | What::List if since.is_some() => {
            Some("--since does not go with that word")
        }
        _ => None,
    };
    wrong.map_or(Ok(()), |wrong| {
        Err(Failure::new(wrong, "To hear what can be said: aaep replay --help"))
    })
}

/// The settings of the person, with what was said on the command line.
fn wanted(arguments: &Arguments) -> Result<Settings, Failure> {
    let flags =
        Flags { hub: arguments.hub.said(), profile: arguments.profile.clone(), ..Flags::default() };
    let mut settings = settings::load(&flags)?.settings;
    settings.speech.on |= arguments.speech;
    settings.braille.on |= arguments.braille;
    settings.lines.on &= !arguments.no_lines;
    // What is over needs nobody.
    (settings.sounds.on, settings.lines.bell) = (false, false);
    settings.lines.notifications = settings::Notifications::None;
    let says_nothing = !(settings.lines.on || settings.speech.on || settings.braille.on);
    if says_nothing && !arguments.json {
        let what = "nothing would be told: lines, speech and braille are all off";
        return Err(Failure::new(what, "Turn one of them on, for example with --speech."));
    }
    Ok(settings)
}

/// What happened at a hub since the person left, as lines that say of themselves whose words they are.
pub(crate) fn since_left(
    address: &str,
    token: Option<&str>,
    settings: &Settings,
) -> Result<Vec<String>, Failure> {
    let mut all = Replay::open(address, token, settings)?.left(None)?;
    let beyond = all.len().saturating_sub(MAX_RECALLED);
    if beyond > 0 {
        let words =
            format!("{} left out here. To hear it all: aaep replay", count(beyond as u64, "thing"));
        all.splice(1..=beyond, [Told::about(&words)]);
    }
    Ok(all.iter().map(Told::line).collect())
}
