//! Instructions to agents while listening: whether they arrived, and which agent is meant.

pub(crate) const TOO_LONG: &str = "That is too long to be told at once. Nothing was told.";
pub(crate) const TOO_MUCH: &str = "Too much is on its way to agents. Try again in a moment.";
pub(crate) const NO_LINE: &str = "There is no line to the agent at the moment. It was not told.";

pub(crate) fn tell_what(agent: &str) -> String {
    format!("Tell {agent} what? Type tell, its name, and your words.")
}

pub(crate) fn nothing_to_cancel(agent: &str) -> String {
    format!("{agent} is not at work. There is nothing to cancel.")
}

/// Words followed the name, so the person may not have meant to cancel.
pub(crate) fn not_cancelled(agent: &str) -> String {
    format!("Nothing was cancelled. To cancel it, type only: cancel {agent}")
}

pub(crate) fn told_to_begin(agent: &str) -> String {
    format!("{agent} was told to begin that.")
}

pub(crate) fn told(agent: &str) -> String {
    format!("{agent} was told.")
}

pub(crate) fn told_to_stop(agent: &str) -> String {
    format!("{agent} was told to stop.")
}

pub(crate) fn not_taken(agent: &str) -> String {
    format!("{agent} was not told. It does not take that, or you may not tell it.")
}

/// `reason` is a sentence.
pub(crate) fn not_told(agent: &str, reason: &str) -> String {
    format!("{agent} was not told. {reason}")
}

/// Why it is unclear which agent is meant.
pub(crate) const SEVERAL_CALLED_SO: &str = "Several agents have that name.";
pub(crate) const NONE_CALLED_SO: &str = "No agent has that name.";

/// `verb` is what the person has to type.
pub(crate) fn name_an_agent(verb: &str) -> String {
    format!("Type {verb} and the name of an agent.")
}

/// Adds the agents that could be meant.
pub(crate) fn nobody_told(why: &str, names: &[&str]) -> String {
    let names = names.join(", ");
    let names = if names.is_empty() {
        "No agent is at work.".to_owned()
    } else {
        format!("There are: {names}.")
    };
    format!("{why} {names} Nobody was told anything.")
}
