//! `aaep replay`: sessions, times, and what was left out.

use jiff::Zoned;

use crate::console::{count, number};

pub(crate) const NOTHING_YET: &str = "There is nothing to hear here yet.";
pub(crate) const NOTHING_ASKED: &str = "Nothing was asked.";
pub(crate) const STILL_OPEN: &str = "It is still open. To answer it: aaep attention";
pub(crate) const OUTCOME_NOT_KNOWN: &str = "How it ended is not known.";
pub(crate) const REST_TOO_LONG: &str = "The rest is too long to be told.";

/// Why the options do not go together. A failure begins in lower case.
pub(crate) const WHICH_SESSION: &str = "the session is missing";
pub(crate) const TAKES_NO_SESSION: &str = "left and list take no session";
pub(crate) const TURNS_GO_WITH_SESSION: &str = "--turn and --turns go with session";
pub(crate) const EXACT_GOES_WITH_REPLY: &str = "--exact goes with reply";
pub(crate) const TAKES_NO_SINCE: &str = "last, reply and list take no --since";
pub(crate) const SEE_HELP: &str = "For what you can type: aaep replay --help";

pub(crate) const NO_HUB: &str = "no hub is set";
pub(crate) const NAME_A_HUB: &str = "Name one with --hub.";

pub(crate) const NO_DEVICE_TOLD_IT: &str = "no device told it to its end";
pub(crate) const RUN_DOCTOR: &str = "To find out which devices work here: aaep doctor";

pub(crate) const PLACES_FILE: &str = "The file that says where you left off";
pub(crate) const SAY_SINCE_WHEN: &str =
    "To hear what you missed, say since when: aaep replay --since 1h";

/// The failure when it is unknown since when the person was away, and what to do.
pub(crate) fn never_left(is_listening: bool) -> (&'static str, &'static str) {
    let what = if is_listening {
        "you have not left: aaep listen has told you everything since it began"
    } else {
        "it is not known when you left: aaep listen has not told you anything here before"
    };
    (
        what,
        "Say since when, for example: aaep replay --since 1h. Or choose a session from: aaep replay list",
    )
}

pub(crate) fn no_such_session(which: &str) -> (String, &'static str) {
    (
        format!("there is no session {which} that you may hear"),
        "For the sessions that there are: aaep replay list",
    )
}

pub(crate) fn no_such_turn(agent: &str, session_id: &str, turn: u32) -> (String, String) {
    (
        format!("the session of {agent} has no turn {turn}"),
        format!("For the turns that there are: aaep replay session {session_id} --turns"),
    )
}

pub(crate) fn not_a_time(text: &str) -> String {
    format!("{text} is not a time that can be understood")
}

/// How to say a time.
pub(crate) const SAY_A_TIME: &str = "Say it like 10m, 2h, 1d, 14:05 or 2026-11-02T14:05:00Z.";

/// A time that follows a verb: at 14:05, or on 2 November at 14:05.
pub(crate) fn when(at: &Zoned, now: &Zoned) -> String {
    let time = at.strftime("%H:%M");
    if at.date() == now.date() {
        return format!("at {time}");
    }
    let day =
        if at.year() == now.year() { at.strftime("%-d %B") } else { at.strftime("%-d %B %Y") };
    format!("on {day} at {time}")
}

pub(crate) const TIME_NOT_KNOWN: &str = "at a time that is not known";

/// A time before the words that were said then.
pub(crate) fn at_time(when: &str, words: &str) -> String {
    let mut letters = when.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    format!("{}{}, {words}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// From when on it is told; this is used within a sentence.
pub(crate) fn you_left(when: &str) -> String {
    format!("you left {when}")
}

/// A time as it follows "since".
pub(crate) fn the_time(when: &str) -> &str {
    when.split_once(' ').map_or(when, |(_, when)| when)
}

pub(crate) fn since(when: &str, is_empty: bool) -> String {
    if is_empty { format!("Nothing happened since {when}.") } else { format!("Since {when}:") }
}

/// Identifies a session by its agent and its times.
pub(crate) fn session(agent: &str, began: &str, ended: Option<&str>, last_heard: &str) -> String {
    let state = match ended {
        Some(ended) => format!("ended {ended}"),
        None => format!("still going on, last heard {last_heard}"),
    };
    format!("Session of {agent}, began {began}, {state}.")
}

/// A session in the list. `session` and `about` are sentences.
pub(crate) fn listed(number: usize, session: &str, turns: Option<u32>, about: &str) -> String {
    let session = session.trim_end_matches('.');
    let turns = turns.map(|it| format!(", {}", count(u64::from(it), "turn"))).unwrap_or_default();
    format!("{number}: {session}{turns}. {about}").trim_end().to_owned()
}

pub(crate) fn more_sessions(sessions: u64) -> String {
    format!(
        "And {} before. To hear one of those, say the name of its agent, or its id from: aaep sessions list",
        count(sessions, "session")
    )
}

/// The beginning of a summary that is too long.
pub(crate) fn shortened(beginning: &str) -> String {
    format!("{beginning}, and more.")
}

pub(crate) fn turn(turn: u32, when: &str, things: u64, ended: &str) -> String {
    format!("Turn {turn}, {when}, {}. Its end: {ended}", count(things, "thing"))
}

pub(crate) fn questions(number_open: u64) -> String {
    match number_open {
        1 => "1 question waits for you. To hear it: aaep attention".to_owned(),
        many => format!("{} questions wait for you. To hear them: aaep attention", number(many)),
    }
}

pub(crate) fn things_left_out(things: u64) -> String {
    format!("Too much to tell. Left out before this: {}.", count(things, "thing"))
}

pub(crate) fn sessions_left_out(sessions: u64) -> String {
    format!("Too much to tell. Left out: {} before these.", count(sessions, "session"))
}

/// For a person who is listening meanwhile.
pub(crate) fn left_out_here(things: u64) -> String {
    format!("{} left out here. To hear it all: aaep replay", count(things, "thing"))
}
