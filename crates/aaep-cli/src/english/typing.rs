//! What the person can type while listening, and why a typed line answered nothing.

use std::time::Duration;

use aaep_announce::AskNumber;

use super::duration;

/// What can be typed while listening, and what it does.
pub(crate) const TYPED: &[(&str, &str)] = &[
    ("2 yes, 2 no", "answer question 2; aaep answer 2 yes does the same from elsewhere"),
    (
        "2 later, 2 pause",
        "more time for question 2, or let its time stand still; 2 resume lets it go on",
    ),
    ("yes, no", "the same without a number, when only one question waits and you have heard it"),
    ("a, b", "a choice by its letter, where choices are listed; its words do as well"),
    ("2", "hear question 2 again; a digit alone never consents"),
    ("repeat, back", "hear the last thing again, or what came before it"),
    ("more, status", "hear what was skipped, or what every agent is doing"),
    ("left, away", "hear what happened since you left; say that you go away for a while"),
    ("reply, exact", "hear what the agent said last, or hear it exactly, code and all"),
    (
        "slower, faster",
        "another pace of speech and braille; rate 20 sets that of the voice, from -100 to 100",
    ),
    ("stop, skip", "stop speaking, not the agent; or go on with the next thing"),
    ("tell NAME WORDS", "tell an agent something, in its session if it is at work"),
    ("cancel NAME", "tell an agent to stop what it does"),
    ("decisions, everything", "hear only what needs you, or everything again"),
    ("list", "hear which questions wait"),
    ("help, quit", "hear this again, or stop listening"),
];

/// Precedes that list in the help.
pub(crate) const WHILE_IT_RUNS: &str = "While it runs, type:";
/// Precedes the list of what can be typed.
pub(crate) const TYPE_ONE_OF_THESE: &str = "While it runs, type one of these.";

/// A line of that list, to be spoken: words separated by commas, and what they do.
pub(crate) fn can_be_typed(words: &str, what: &str) -> String {
    format!("{}: {what}.", words.replace(", ", " or "))
}

pub(crate) const NOTHING_ANSWERED: &str = "Nothing was answered.";
/// For a person who may have meant an agent.
pub(crate) const STOPPED: &str = "Quiet. The agents go on; to end one, type cancel and its name.";
/// For a line that was begun for another question.
pub(crate) const FOR_ANOTHER: &str = "That was for another question. Nothing was answered.";
pub(crate) const NO_PACE: &str = "Only speech and braille have a pace, and neither is on.";
pub(crate) const NOTHING_WAITS: &str = "Nothing waits for you.";
pub(crate) const BEGUN_TOO_SOON: &str =
    "You began to type before the question was told to its end.";

pub(crate) const AGENT_SPOKE: &str = "The agent has said something else since it asked.";

pub(crate) fn you_typed(words: &str) -> String {
    format!("You typed \"{words}\".")
}

/// For a number alone that could be an answer.
pub(crate) fn to_answer_with(number: AskNumber) -> String {
    format!("To answer it with {number}, type {number} {number}.")
}

/// Precedes a question that is told again.
pub(crate) fn question_again(number: AskNumber) -> String {
    format!("Question {number} again:")
}

pub(crate) fn waits(number: AskNumber, agent: &str, action: &str, left: Duration) -> String {
    let end = if action.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("Question {number}, from {agent}: {action}{end} Time left: {}.", duration(left))
}

pub(crate) fn no_such_question(number: AskNumber) -> String {
    format!("No question with the number {number} waits. {NOTHING_ANSWERED} To hear them: list")
}

/// Why words without a number answered nothing.
pub(crate) fn question_over() -> String {
    format!("That question is over. {NOTHING_ANSWERED}")
}

pub(crate) fn nothing_waits() -> String {
    format!("{NOTHING_WAITS} {NOTHING_ANSWERED} For what can be typed: help")
}

pub(crate) fn several_wait() -> String {
    format!(
        "Several questions wait. {NOTHING_ANSWERED} Say the number of one, then the answer. To hear them: list"
    )
}

/// `doubt` is a sentence.
pub(crate) fn in_doubt(doubt: &str, number: AskNumber) -> String {
    format!("{doubt} {NOTHING_ANSWERED} If you mean it, type {number} first.")
}

pub(crate) fn typed_too_soon(number: AskNumber, after: Duration, takes: Duration) -> String {
    format!(
        "You began to type {} after question {number} came, and it takes at least {}.",
        duration(after),
        duration(takes)
    )
}

pub(crate) fn after_another(number: AskNumber) -> String {
    format!(
        "Another question ended just before, so it is not sure that you mean question {number}."
    )
}

/// What to type when a digit answers nothing.
pub(crate) const TYPE_YES_OR_NO: &str =
    "A digit alone does not answer this question. Type yes or no.";
pub(crate) const TYPE_THE_WORDS: &str = "Type the words of your answer.";

pub(crate) fn choice_has_letter(choice: &str, letter: &str) -> String {
    format!("Choices have letters. For {choice}, type {letter}.")
}

pub(crate) fn choices_have_letters(first: &str, last: &str) -> String {
    format!("Choices have letters, from {first} to {last}.")
}
