//! `aaep ask`: why a question cannot be asked, what is waited for, and how it ended.

use std::fmt::Display;

use crate::console::count;

/// What the person typed; each is used within a sentence.
pub(crate) const THE_QUESTION: &str = "the question";

pub(crate) const FIX_AND_ASK_AGAIN: &str = "Fix it and ask again.";
pub(crate) const ASK_AGAIN: &str = "Ask again.";

pub(crate) const IRREVERSIBLE_DEFAULT: (&str, &str) = (
    "--default accept cannot be used with --irreversible: silence never lets it happen",
    "Leave out --default, or say --risk low and --reversible if that is true.",
);

pub(crate) fn no_such_default(default: &impl Display) -> (String, &'static str) {
    (
        format!("--default {default} cannot be used: silence can only mean reject or accept here"),
        "Say --default reject or --default accept.",
    )
}

pub(crate) fn default_is_not_a_choice(
    default: &impl Display,
    choices: &impl Display,
) -> (String, String) {
    (
        format!("--default {default} is not one of the choices"),
        format!("Say one of these with --default: {choices}."),
    )
}

pub(crate) const WORDS_ARE_NOT_CONSENT: (&str, &str) = (
    "an answer in words is not consent to an action",
    "Leave out --risk, --irreversible, --reversible and --consequence, or ask for consent alone.",
);

/// The consequence of an action when the asker names none.
pub(crate) const CANNOT_BE_UNDONE: &str = "It cannot be undone.";
pub(crate) const ONLY_IF_ACCEPTED: &str = "It is done only if you accept.";

/// What people hear of the session of one question.
pub(crate) fn has_question(agent: &str) -> String {
    format!("{agent} has a question.")
}

pub(crate) const NOBODY_LEARNED: &str =
    "The asker did not learn how the question ended. It counts as no.";
pub(crate) const QUESTION_WITHDRAWN: &str = "The question was withdrawn.";

/// `question` is a sentence.
pub(crate) fn waiting(question: &impl Display, seconds: u64) -> String {
    let time = count(seconds, "second");
    format!(
        "Asking: {question} Waiting up to {time} for an answer; Control-C withdraws the question."
    )
}

pub(crate) const HUB_LOST: &str = "The hub does not answer now. Still trying.";
pub(crate) const HUB_FOUND: &str = "The hub answers again. The question is still open.";

pub(crate) const HUB_SAYS_NOTHING: (&str, &str) = (
    "the hub has not said in time how the question ended",
    "Take it as a no, and look at the log of the hub.",
);

pub(crate) const WITHDRAWN: &str = "The question is withdrawn. That is not consent.";
pub(crate) const NOT_WITHDRAWN: &str =
    "The question could not be withdrawn, but its answer counts for nothing here.";

/// How a question ended.
pub(crate) const ACCEPTED: &str = "Accepted.";
pub(crate) const NOT_ACCEPTED: &str = "Not accepted.";
pub(crate) const ANSWERED: &str = "Answered.";
pub(crate) const NO_ANSWER: &str = "There is no answer.";
pub(crate) const OUTCOME_UNKNOWN: &str = "The outcome is unknown. That is not consent.";
pub(crate) const ACCEPTED_BY_NOBODY: &str = "Not accepted. Neither a person nor a rule of theirs accepted it. \
     Silence can accept only an action of low risk that can be undone: one with --risk low and --reversible.";

/// Why the default applies; each follows how the question ended.
pub(crate) const NOT_IN_TIME: &str = "Nobody answered in time, so the default applies.";
pub(crate) const NOBODY_LISTENED: &str =
    "Nobody was there who could answer, so the default applies.";
