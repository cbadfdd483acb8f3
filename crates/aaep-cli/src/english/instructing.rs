//! `aaep tell` and `aaep cancel`: which agents take instructions, and the result of an instruction.

use crate::console::count;

pub(crate) const NO_AGENT: &str = "No agent takes instructions at the moment.";
pub(crate) const NOTHING_SENT: &str = "Nothing was sent.";
pub(crate) const REST_NOT_SENT: &str = "The rest was not sent.";
/// For a hub that refuses without a reason.
pub(crate) const HUB_REFUSED: &str = "The hub refused it.";

/// The failure of `aaep tell` without words, and what to do.
pub(crate) fn no_words(agent: &str) -> (String, String) {
    (
        format!("there are no words to tell {agent}"),
        format!("Type them after the name: aaep tell {agent} WORDS"),
    )
}

pub(crate) fn agents(number: u64) -> String {
    let take = if number == 1 { "takes" } else { "take" };
    format!("{} {take} instructions.", count(number, "agent"))
}

/// What an agent can be told to do; each is used within a sentence.
pub(crate) const TO_BEGIN: &str = "to begin something new";
pub(crate) const TO_CHANGE: &str = "to go on in another way";
pub(crate) const TO_STOP: &str = "to stop";

/// An agent, the id by which it is also called, what it can be told to do, and in how many sessions it works.
pub(crate) fn agent(name: &str, id: Option<&str>, can: &[&str], sessions: usize) -> String {
    let also = id.map(|id| format!(", also called {id}")).unwrap_or_default();
    let can = match can {
        [] => "It takes no instructions.".to_owned(),
        [one] => format!("You can tell it {one}."),
        [several @ .., last] => format!("You can tell it {} or {last}.", several.join(", ")),
    };
    let works = match sessions {
        0 => "It has no session open.".to_owned(),
        1 => "It has a session open.".to_owned(),
        many => format!("It has {many} sessions open."),
    };
    format!("{name}{also}. {can} {works}")
}

/// Why an agent is not told. Each is followed by `NOTHING_SENT`.
pub(crate) fn begins_nothing(agent: &str) -> String {
    format!("{agent} does not take new tasks.")
}

pub(crate) fn not_while_working(agent: &str) -> String {
    format!("{agent} does not take instructions while it works.")
}

pub(crate) fn idle_and_begins_nothing(agent: &str) -> String {
    format!("{agent} has no session open, and does not take new tasks.")
}

pub(crate) fn does_not_stop(agent: &str) -> String {
    format!(
        "{agent} does not stop when it is told to. To end its session without it: aaep sessions end SESSION."
    )
}

pub(crate) fn nothing_to_stop(agent: &str) -> String {
    format!("{agent} has no session open, so there is nothing to stop.")
}

pub(crate) fn not_sent(why: &str) -> String {
    format!("{why} {NOTHING_SENT}")
}

/// Precedes the commands to choose from.
pub(crate) fn several_agents(name: &str) -> String {
    format!("Several agents match {name}. {NOTHING_SENT} Choose one:")
}

pub(crate) fn several_sessions(agent: &str, sessions: usize) -> String {
    format!("{agent} works in {sessions} sessions. {NOTHING_SENT} Choose one:")
}

pub(crate) fn no_such_session(agent: &str, session: &str) -> String {
    format!("{agent} has no session {session}. {NOTHING_SENT} It has these:")
}

pub(crate) fn no_such_agent(name: &str, others: &[String]) -> String {
    if others.is_empty() {
        return not_sent(NO_AGENT);
    }
    let others = others.join(", ");
    format!("No agent called {name} takes instructions. {NOTHING_SENT} These do: {others}.")
}

/// A command that the person can type, and what its session is about.
pub(crate) fn choice(about: Option<&str>, command: &str) -> String {
    match about {
        Some(about) => format!("{}: {command}", about.trim_end_matches(['.', ':'])),
        None => format!("Type: {command}"),
    }
}

pub(crate) fn begun(agent: &str) -> String {
    format!("{agent} was told, and begins something new.")
}

pub(crate) fn told(agent: &str) -> String {
    format!("{agent} was told, in its open session.")
}

pub(crate) fn asked_to_stop(agent: &str, sessions: usize) -> String {
    let sessions = if sessions > 1 { format!(" in {sessions} sessions") } else { String::new() };
    format!("{agent} was asked to stop{sessions}. You hear when it has stopped.")
}
