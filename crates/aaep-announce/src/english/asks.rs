//! Questions, the time to answer them, and how they ended.

use std::time::Duration;

use aaep::event::action::RiskLevel;
use aaep::event::human::{Decision, Reversibility};
use aaep::extension::DecidedBy;

use super::duration;
use crate::announcer::{AskNumber, By, Ending};

pub(crate) const YES: &str = "Yes";
pub(crate) const NO: &str = "No";
pub(crate) const YES_OR_NO: &str = "Yes or no?";
pub(crate) const CANNOT_BE_ANSWERED: &str = "It cannot be answered here.";
pub(crate) const CANNOT_BE_UNDONE: &str = "It cannot be undone.";
/// Said when a part of a question is available on request.
pub(crate) const MORE: &str = "There is more about it. To hear that: more.";
pub(crate) const ASSUMES: &str = "Without an answer it assumes:";
pub(crate) const GOES_ON: &str = "Without an answer it goes on as it can.";
pub(crate) const WITH_A_NUMBER: &str = "Answer with a number.";
pub(crate) const IN_OWN_WORDS: &str = "Answer in your own words.";
pub(crate) const TIME_STANDS_STILL: &str = "The time to answer stands still.";
/// Said when an agent grants less time than the person asked for.
pub(crate) const SHORTENED: &str = "That is less than you asked for. The agent allows no more.";
/// Said to a person who pressed a key that does not choose an answer.
pub(crate) const NO_CHOICE: &str =
    "That is not an answer. The answers stand at the end of the question. Nothing was answered.";
/// Said to a person who answered a question before its end.
pub(crate) const TOO_SOON: &str =
    "You have not come to the end of this question. Nothing was answered.";
pub(crate) const DID_NOT_ARRIVE: &str = "Your answer did not arrive.";
pub(crate) const TOO_MANY: &str = "Too many questions are open; one more cannot be told here.";
pub(crate) const IS_OVER: &str = "The question is over.";
/// Precedes the answer to a past question.
pub(crate) const THE_ANSWER_WAS: &str = "The answer was:";

pub(crate) fn risk(risk: Option<&RiskLevel>) -> &'static str {
    match risk {
        Some(RiskLevel::High) => "High risk.",
        Some(RiskLevel::Medium) => "Medium risk.",
        Some(RiskLevel::Low) => "Low risk.",
        Some(RiskLevel::Other(_)) => "The risk is of a kind that is not known here.",
        None => "The risk is not stated.",
    }
}

pub(crate) fn undo(stated: Option<&Reversibility>, irreversible: Option<bool>) -> &'static str {
    match stated {
        Some(Reversibility::ReversibleWithEffort) => "It is hard to undo.",
        Some(Reversibility::Reversible) => "It can be undone.",
        None if irreversible == Some(false) => "It can be undone.",
        None => "Whether it can be undone is not stated.",
        _ => "Whether it can be undone is said in a word that is not known here.",
    }
}

pub(crate) fn tool(name: &str) -> String {
    format!("The tool is {name}.")
}

pub(crate) fn arguments(arguments: &str) -> String {
    format!("Its arguments are {arguments}")
}

pub(crate) fn silence(default: Decision) -> &'static str {
    match default {
        Decision::Accept => "Without an answer it goes ahead.",
        Decision::Reject => "Without an answer it is refused.",
    }
}

pub(crate) fn only_answer(answer: &str) -> String {
    format!("The only answer is {}.", answer.to_lowercase())
}

/// The name of a choice: its letter, if it has one.
pub(crate) fn choice(letter: Option<&str>) -> String {
    letter.map_or_else(|| "Choice".to_owned(), |it| format!("Choice {it}"))
}

/// How to choose.
pub(crate) fn choose(has_letters: bool, takes_words: bool) -> &'static str {
    match (has_letters, takes_words) {
        (true, false) => "Answer with the letter of a choice.",
        (true, true) => "Answer with the letter of a choice, or in your own words.",
        (false, false) => "Answer with the words of a choice.",
        (false, true) => "Answer with the words of a choice, or in your own words.",
    }
}

pub(crate) fn question(number: AskNumber) -> String {
    format!("Question {number}.")
}

/// Precedes news about a question.
pub(crate) fn about(number: AskNumber) -> String {
    format!("Question {number}:")
}

pub(crate) fn only_left(left: Duration) -> String {
    format!("Only {} left to answer.", duration(left))
}

pub(crate) fn you_have(left: Duration) -> String {
    format!("You have {}.", duration(left))
}

pub(crate) fn you_have_to_answer(left: Duration) -> String {
    format!("You have {} to answer.", duration(left))
}

/// The number of waiting questions.
pub(crate) fn wait(count: usize) -> String {
    let count = match count {
        2 => "Two".to_owned(),
        3 => "Three".to_owned(),
        4 => "Four".to_owned(),
        5 => "Five".to_owned(),
        _ => count.to_string(),
    };
    format!("{count} questions wait.")
}

/// One of the waiting questions: its agent, if known, and the action.
pub(crate) fn one_of_them(number: AskNumber, who: &str, action: &str) -> String {
    let who = if who.is_empty() { String::new() } else { format!(", {who}") };
    format!("Question {number}{who}: {action}")
}

pub(crate) fn and_more(count: usize) -> String {
    format!("And {count} more.")
}

/// The beginning of a long action.
pub(crate) fn beginning(head: &str) -> String {
    format!("{head}, and more.")
}

pub(crate) fn asks(who: &str, number: Option<AskNumber>) -> String {
    match number {
        Some(number) => format!("{who} asks, question {number}:"),
        None => format!("{who} asks:"),
    }
}

pub(crate) fn asked(who: &str) -> String {
    format!("{who} asked:")
}

pub(crate) fn says_before_it_asks(who: &str, has_more: bool) -> String {
    if has_more {
        format!("{who} says before it asks, for the rest: more:")
    } else {
        format!("{who} says before it asks:")
    }
}

pub(crate) fn waits_for_answer(number: AskNumber) -> String {
    format!("It waits for your answer to question {number}.")
}

/// How a question was settled that could not be answered here.
pub(crate) fn settled_elsewhere(by: &DecidedBy) -> &'static str {
    match by {
        DecidedBy::Timeout => "Nobody answered in time.",
        DecidedBy::NoListener => "Nobody was there to answer.",
        DecidedBy::Withdrawn => "It is no longer asked.",
        DecidedBy::Reply | DecidedBy::Other(_) => "It was answered.",
    }
}

/// How a question ended.
pub(crate) fn ended(ending: Ending) -> &'static str {
    match ending {
        Ending::Accepted(By::You | By::Someone) => "Accepted.",
        Ending::Accepted(By::Elsewhere) => "Accepted elsewhere.",
        Ending::Accepted(By::Rule) => "Accepted by a rule.",
        Ending::Accepted(By::Timeout) => "Nobody answered in time, so it goes ahead.",
        Ending::Accepted(By::Nobody) => "Nobody was there to answer, so it goes ahead.",
        Ending::Rejected(By::You | By::Someone) => "Refused.",
        Ending::Rejected(By::Elsewhere) => "Refused elsewhere.",
        Ending::Rejected(By::Rule) => "Refused by a rule.",
        Ending::Rejected(By::Timeout) => "Nobody answered in time, so it was refused.",
        Ending::Rejected(By::Nobody) => "Nobody was there to answer, so it was refused.",
        Ending::Answered(By::You | By::Someone) => "Answered.",
        Ending::Answered(By::Elsewhere) => "Answered elsewhere.",
        Ending::Answered(By::Rule) => "Answered by a rule.",
        Ending::Answered(By::Timeout) => {
            "Nobody answered in time, so it goes on with what it assumed."
        }
        Ending::Answered(By::Nobody) => {
            "Nobody was there to answer, so it goes on with what it assumed."
        }
        Ending::Unanswered => "Nobody answered, and it goes on without.",
        Ending::Withdrawn => "It is no longer asked.",
        Ending::Unknown => "It is not known what became of the question.",
    }
}

/// How a past question ended, with who or what decided it.
pub(crate) fn ended_before(ending: Ending) -> &'static str {
    match ending {
        Ending::Accepted(By::You) => "You accepted it.",
        Ending::Accepted(By::Elsewhere) => "Someone else accepted it.",
        Ending::Accepted(By::Rule) => "A rule accepted it, not a person.",
        Ending::Accepted(By::Someone) => "It was accepted.",
        Ending::Accepted(By::Timeout) => "Nobody answered in time, so it went ahead.",
        Ending::Accepted(By::Nobody) => "Nobody was there to answer, so it went ahead.",
        Ending::Rejected(By::You) => "You refused it.",
        Ending::Rejected(By::Elsewhere) => "Someone else refused it.",
        Ending::Rejected(By::Rule) => "A rule refused it, not a person.",
        Ending::Rejected(By::Someone) => "It was refused.",
        Ending::Rejected(By::Timeout) => "Nobody answered in time, so it was refused.",
        Ending::Rejected(By::Nobody) => "Nobody was there to answer, so it was refused.",
        Ending::Answered(By::You) => "You answered it.",
        Ending::Answered(By::Elsewhere) => "Someone else answered it.",
        Ending::Answered(By::Rule) => "A rule answered it, not a person.",
        Ending::Answered(By::Someone) => "It was answered.",
        Ending::Answered(By::Timeout) => {
            "Nobody answered in time, so it went on with what it assumed."
        }
        Ending::Answered(By::Nobody) => {
            "Nobody was there to answer, so it went on with what it assumed."
        }
        Ending::Unanswered => "Nobody answered, and it went on without.",
        Ending::Withdrawn => "It was taken back.",
        Ending::Unknown => "It is not known what became of it.",
    }
}
