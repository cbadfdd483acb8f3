//! Answers: why words are unclear, and the result of an answer or of a request for more time.

use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};

use aaep_announce::AskNumber;

use super::duration;

/// Why words are unclear. They are quoted.
pub(crate) fn not_clear(words: &str, consent: &[&str]) -> String {
    format!(
        "{words} is neither a clear yes nor a clear no. Consent is one of: {}.",
        consent.join(", ")
    )
}

pub(crate) fn choice_or_time(words: &str) -> String {
    format!(
        "{words} is one of the choices, and also a word about time. Say the letter of the choice."
    )
}

pub(crate) fn not_an_answer(words: &str) -> String {
    format!("{words} is not an answer to this question.")
}

pub(crate) fn several_choices(words: &str) -> String {
    format!("{words} could mean more than one choice.")
}

pub(crate) const NOT_A_QUESTION: &str = "This is not a question.";
pub(crate) const HOW_MUCH_TIME: &str =
    "How much more time is not clear. Say for example: later 120, or: later 5 minutes.";

pub(crate) fn no_such_question(number: u16) -> String {
    format!("No question has the number {number}. To hear which there are: aaep attention")
}

pub(crate) fn is_over(number: u16) -> String {
    format!("Question {number} is over.")
}

pub(crate) fn over_unanswered(number: u16) -> String {
    format!("Question {number} is over. This answer does not count.")
}

/// `why` is a sentence.
pub(crate) fn nothing_answered(why: &str) -> String {
    format!("{why} Nothing was answered.")
}

/// The answer could not be sent. `why` is a sentence.
pub(crate) fn nothing_sent(why: &str) -> String {
    format!("Nothing was answered. {why}")
}

pub(crate) fn not_heard_whole(number: u16) -> String {
    format!(
        "Question {number} was not told to you to its end before you answered. Nothing was answered. Hear it first \
         with: aaep attention"
    )
}

pub(crate) const ANOTHER_QUESTION: &str = "Another question is asked now under the same token.";
pub(crate) const OTHER_WORDS: &str = "The question is now put in other words than you were told.";

/// The question is not the one that the person heard. `why` is a sentence.
pub(crate) fn hear_it_first(why: &str) -> String {
    format!("{why} Nothing was answered. Hear it first with: aaep attention")
}

pub(crate) const ALLOWED: &str = "You allowed it.";
pub(crate) const REFUSED: &str = "You refused it.";
pub(crate) const YES: &str = "yes";
pub(crate) const NO: &str = "no";

/// `answer` is a sentence.
pub(crate) fn answered(answer: &str) -> String {
    format!("You answered: {answer}")
}

pub(crate) const NO_LONGER_ASKED: &str = "The agent no longer asks this.";
pub(crate) const TOO_LATE: &str = "The time to answer is over, and the answer did not count.";
pub(crate) const NOT_KNOWN: &str =
    "Your answer was sent, but nobody said what came of it. Look with: aaep attention";

/// The hub says that the answer does not count. `why` is a sentence.
pub(crate) fn does_not_count(number: u16, why: &str) -> String {
    format!(
        "Your answer does not count. {why} To hear whether question {number} still waits: aaep attention"
    )
}

/// The answer was sent, and then the line broke or the hub reported an error.
pub(crate) fn may_not_count(number: AskNumber) -> String {
    format!(
        "It is not known whether your answer to question {number} counts. To find out: aaep attention"
    )
}

/// The same for an answer that a rule gave. `action` is a sentence.
pub(crate) fn rule_not_known(action: &str) -> String {
    format!(
        "It is not known whether the answer of your rule counts: {action} To find out: aaep attention"
    )
}

/// `action` and `why` are sentences.
pub(crate) fn rule_does_not_count(action: &str, why: &str) -> String {
    format!("The answer of your rule does not count: {action} {why}")
}

pub(crate) const HOW_IT_ENDED_IS_NOT_KNOWN: &str = "How it ended is not known here.";
pub(crate) const OVER: &str = "The question is over.";

/// How a question ended without this answer.
pub(crate) fn ended_without_it(outcome: &AskOutcome, decided_by: &DecidedBy) -> String {
    let what = match outcome {
        AskOutcome::Accept => "It was allowed",
        AskOutcome::Reject => "It was refused",
        AskOutcome::Answered => "It was answered",
        AskOutcome::Unanswered => "It was not answered",
        AskOutcome::Withdrawn => return NO_LONGER_ASKED.to_owned(),
        AskOutcome::Other(_) => return HOW_IT_ENDED_IS_NOT_KNOWN.to_owned(),
    };
    match decided_by {
        DecidedBy::Reply => format!("{what} before."),
        DecidedBy::Timeout => format!("{what}, because the time to answer was over."),
        DecidedBy::NoListener => format!("{what}, because nobody was there to answer."),
        DecidedBy::Withdrawn | DecidedBy::Other(_) => format!("{what}."),
    }
}

/// How long a question stays open now.
pub(crate) fn waits(left: Duration, is_paused: bool) -> String {
    let left = duration(left);
    if is_paused {
        format!("The time stands still, for {left} at most. The question waits.")
    } else {
        format!("The question waits for {left}.")
    }
}

pub(crate) fn time_not_changed(left: Duration) -> String {
    format!(
        "The agent does not change the time of this question now. It waits for {}.",
        duration(left)
    )
}

pub(crate) const TIME_NOT_KNOWN: &str =
    "Nobody said whether there is more time. Look with: aaep attention";
