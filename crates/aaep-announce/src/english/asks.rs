//! Questions, the time to answer them, and how they ended.

use std::time::Duration;

use aaep::StatedUndo;
use aaep::event::action::RiskLevel;
use aaep::event::human::{AwaitingConfirmation, Decision};
use aaep::extension::DecidedBy;

use super::duration;
use crate::announcer::{AnsweredBy, AskEnding, AskNumber};

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
pub(crate) const WAITS_FOR_YOU: &str = "It waits until you answer.";
pub(crate) const TIME_STANDS_STILL: &str = "The time to answer stands still.";
/// Said when an agent grants less time than the person asked for.
pub(crate) const SHORTENED: &str = "That is less than you asked for. The agent allows no more.";
/// Said to a person who pressed a key that does not choose an answer.
pub(crate) const NO_CHOICE: &str =
    "That is not an answer. The answers stand at the end of the question. Nothing was answered.";
/// Said to a person who answered a question before its end.
pub(crate) const TOO_SOON: &str =
    "You have not come to the end of this question. Nothing was answered.";
pub(crate) const DOES_NOT_COUNT: &str = "Your answer does not count.";
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

pub(crate) fn undo(asked: &AwaitingConfirmation) -> &'static str {
    match asked.stakes().undo {
        StatedUndo::Impossible => CANNOT_BE_UNDONE,
        StatedUndo::WithEffort => "It is hard to undo.",
        StatedUndo::Possible => "It can be undone.",
        StatedUndo::Unknown if asked.reversibility.is_none() => {
            "Whether it can be undone is not stated."
        }
        StatedUndo::Unknown => "Whether it can be undone is said in a word that is not known here.",
    }
}

pub(crate) fn tool(name: &str) -> String {
    format!("The tool is {name}.")
}

pub(crate) fn arguments(arguments: &str) -> String {
    format!("Its arguments are {arguments}")
}

pub(crate) fn silence(default: Decision, is_asked_elsewhere: bool) -> &'static str {
    match default {
        Decision::Accept => "Without an answer it goes ahead.",
        Decision::Reject if is_asked_elsewhere => {
            "Without an answer here, nothing is decided: it asks in its own window too."
        }
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

/// Precedes the rest of a question after something else was said.
pub(crate) fn goes_on(who: &str, number: Option<AskNumber>) -> String {
    match number {
        Some(number) => format!("{who} goes on with question {number}:"),
        None => format!("{who} goes on:"),
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
pub(crate) fn ended(ending: AskEnding) -> &'static str {
    match ending {
        AskEnding::Accepted(AnsweredBy::You | AnsweredBy::Someone) => "Accepted.",
        AskEnding::Accepted(AnsweredBy::Elsewhere) => "Accepted elsewhere.",
        AskEnding::Accepted(AnsweredBy::Rule) => "Accepted by a rule.",
        AskEnding::Accepted(AnsweredBy::Timeout) => "Nobody answered in time, so it goes ahead.",
        AskEnding::Accepted(AnsweredBy::Nobody) => "Nobody was there to answer, so it goes ahead.",
        AskEnding::Rejected(AnsweredBy::You | AnsweredBy::Someone) => "Refused.",
        AskEnding::Rejected(AnsweredBy::Elsewhere) => "Refused elsewhere.",
        AskEnding::Rejected(AnsweredBy::Rule) => "Refused by a rule.",
        AskEnding::Rejected(AnsweredBy::Timeout) => "Nobody answered in time, so it was refused.",
        AskEnding::Rejected(AnsweredBy::Nobody) => "Nobody was there to answer, so it was refused.",
        AskEnding::Answered(AnsweredBy::You | AnsweredBy::Someone) => "Answered.",
        AskEnding::Answered(AnsweredBy::Elsewhere) => "Answered elsewhere.",
        AskEnding::Answered(AnsweredBy::Rule) => "Answered by a rule.",
        AskEnding::Answered(AnsweredBy::Timeout) => {
            "Nobody answered in time, so it goes on with what it assumed."
        }
        AskEnding::Answered(AnsweredBy::Nobody) => {
            "Nobody was there to answer, so it goes on with what it assumed."
        }
        AskEnding::Unanswered => "Nobody answered, and it goes on without.",
        AskEnding::Withdrawn => "It is no longer asked.",
        AskEnding::Unknown => "It is not known what became of the question.",
    }
}

/// How a past question ended, with who or what decided it.
pub(crate) fn ended_before(ending: AskEnding) -> &'static str {
    match ending {
        AskEnding::Accepted(AnsweredBy::You) => "You accepted it.",
        AskEnding::Accepted(AnsweredBy::Elsewhere) => "Someone else accepted it.",
        AskEnding::Accepted(AnsweredBy::Rule) => "A rule accepted it, not a person.",
        AskEnding::Accepted(AnsweredBy::Someone) => "It was accepted.",
        AskEnding::Accepted(AnsweredBy::Timeout) => "Nobody answered in time, so it went ahead.",
        AskEnding::Accepted(AnsweredBy::Nobody) => "Nobody was there to answer, so it went ahead.",
        AskEnding::Rejected(AnsweredBy::You) => "You refused it.",
        AskEnding::Rejected(AnsweredBy::Elsewhere) => "Someone else refused it.",
        AskEnding::Rejected(AnsweredBy::Rule) => "A rule refused it, not a person.",
        AskEnding::Rejected(AnsweredBy::Someone) => "It was refused.",
        AskEnding::Rejected(AnsweredBy::Timeout) => "Nobody answered in time, so it was refused.",
        AskEnding::Rejected(AnsweredBy::Nobody) => "Nobody was there to answer, so it was refused.",
        AskEnding::Answered(AnsweredBy::You) => "You answered it.",
        AskEnding::Answered(AnsweredBy::Elsewhere) => "Someone else answered it.",
        AskEnding::Answered(AnsweredBy::Rule) => "A rule answered it, not a person.",
        AskEnding::Answered(AnsweredBy::Someone) => "It was answered.",
        AskEnding::Answered(AnsweredBy::Timeout) => {
            "Nobody answered in time, so it went on with what it assumed."
        }
        AskEnding::Answered(AnsweredBy::Nobody) => {
            "Nobody was there to answer, so it went on with what it assumed."
        }
        AskEnding::Unanswered => "Nobody answered, and it went on without.",
        AskEnding::Withdrawn => "It was taken back.",
        AskEnding::Unknown => "It is not known what became of it.",
    }
}
