//! Pending questions: what is asked, its danger, and the possible answers.

use std::time::Duration;

use aaep::event::human::ResponseKind;
use aaep::{ActionStakes, StatedRisk, StatedUndo};

use super::duration;
use crate::console::{self, count};

pub(crate) const NOTHING_WAITS: &str = "Nothing waits for you.";
/// For when some hub could not be queried.
pub(crate) const NOTHING_WAITS_THERE: &str =
    "Nothing waits for you at the hubs that could be asked.";

/// For when no hub could be queried.
pub(crate) const NOT_KNOWN: &str = "So it is not known whether a question waits for you.";

pub(crate) fn waiting(questions: u64) -> String {
    match questions {
        1 => "1 question waits for you.".to_owned(),
        many => format!("{} wait for you, the riskiest first.", count(many, "question")),
    }
}

pub(crate) fn and_more(questions: u64) -> String {
    format!("And {} more.", console::number(questions))
}

/// How to answer one of several questions.
pub(crate) const TO_ANSWER: &str =
    "To answer: aaep answer NUMBER yes, or no. To hear what else can be said: aaep answer NUMBER.";

/// The words before a question: its number, if it has one, and the agent.
pub(crate) fn question(number: u16, agent: &str) -> String {
    format!("Question {number}, from {agent}")
}

pub(crate) fn not_numbered(agent: &str) -> String {
    format!("A question that has no number yet, from {agent}")
}

pub(crate) fn not_answerable(agent: &str) -> String {
    format!("A question that you may hear but not answer, from {agent}")
}

/// The consequence is a sentence.
pub(crate) fn then(consequence: &str) -> String {
    format!("Then: {consequence}")
}

pub(crate) fn tool(tool: &str) -> String {
    format!("Tool: {tool}")
}

pub(crate) fn arguments(arguments: &str) -> String {
    format!("Arguments: {arguments}")
}

/// The danger of an action, as two sentences.
pub(crate) fn danger(stakes: ActionStakes) -> String {
    let risk = match stakes.risk {
        StatedRisk::Low => "Risk: low.",
        StatedRisk::Medium => "Risk: medium.",
        StatedRisk::High => "Risk: high.",
        StatedRisk::Unknown => "Risk: not stated.",
    };
    let undo = match stakes.undo {
        StatedUndo::Possible => "It can be undone.",
        StatedUndo::WithEffort => "It can be undone with some effort.",
        StatedUndo::Unknown => "Whether it can be undone is not stated.",
        StatedUndo::Impossible => "It cannot be undone.",
    };
    format!("{risk} {undo}")
}

/// What happens without an answer; each is used within a sentence.
pub(crate) const AGENT_DOES_IT: &str = "the agent does it";
pub(crate) const NO: &str = "no";
pub(crate) const OWN_WINDOW_DECIDES: &str =
    "nothing is decided here, because the agent asks in its own window too";
pub(crate) const AGENT_GOES_ON: &str = "the agent goes on without one";

pub(crate) fn agent_assumes(answer: &str) -> String {
    format!("the agent assumes {answer}")
}

pub(crate) fn without_answer(default: &str, left: Duration, is_paused: bool) -> String {
    let left = duration(left);
    if is_paused {
        format!("Without an answer: {default}. The time stands still, for {left} at most.")
    } else {
        format!("Without an answer: {default}, in {left}.")
    }
}

/// How to answer a confirmation.
pub(crate) fn say_yes_or_no(number: u16) -> String {
    format!("Say: aaep answer {number} yes, or: aaep answer {number} no.")
}

/// How to answer a clarification of these kinds.
pub(crate) fn say_in_ways(number: u16, kinds: &[ResponseKind]) -> String {
    let ways = kinds.iter().filter_map(|kind| match kind {
        ResponseKind::Freetext => Some("your words"),
        ResponseKind::YesNo => Some("yes or no"),
        ResponseKind::Numeric => Some("a number in digits"),
        ResponseKind::MultipleChoice => Some("the letter of a choice, or its words"),
        ResponseKind::Other(_) => None,
    });
    let ways: Vec<&str> = ways.collect();
    format!("Say: aaep answer {number}, and then {}.", ways.join("; or "))
}

/// Adds how to get more time.
pub(crate) fn or_more_time(answer: &str, number: u16) -> String {
    format!("{answer} For more time: aaep answer {number} later.")
}
