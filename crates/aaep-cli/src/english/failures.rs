//! What could not be done while listening, looking and answering, and what to do next.
//!
//! A failure begins in lower case, because it stands after the name of the program.

use std::fmt::Display;

pub(crate) const TRY_LATER: &str = "Try again later.";

pub(crate) fn no_threads(error: &impl Display) -> String {
    format!("the system does not start threads: {error}")
}

pub(crate) fn no_signals(error: &impl Display) -> String {
    format!("the system does not report signals: {error}")
}

pub(crate) const NOTHING_TOLD: &str =
    "nothing would be told: lines, speech, braille and desktop are all off";
pub(crate) const TURN_ONE_ON: &str = "Turn one of them on, for example with --speech.";

pub(crate) const HUB_DOES_NOT_ANSWER: &str = "the hub does not answer";
pub(crate) const NO_HUB_ANSWERS: &str = "no hub answers";
pub(crate) const HUB_IS_GONE: &str = "the hub is gone";
pub(crate) const SEE_WHETHER_IT_RUNS: &str = "See whether it runs.";
pub(crate) const START_A_HUB: &str = "See whether the hub runs. To start one: aaep serve";
pub(crate) const LISTEN_LATER: &str = "Listen again later.";

/// `why` is a sentence.
pub(crate) fn or_own_hub(why: &impl Display) -> String {
    format!("{why} To start a hub of your own: aaep serve")
}

pub(crate) const SET_SPEECH: &str = "Set address in the table speech with: aaep config edit";
pub(crate) const SET_BRAILLE: &str = "Set address in the table braille with: aaep config edit";
#[cfg(not(feature = "desktop"))]
pub(crate) const BUILT_WITHOUT_DESKTOP: &str =
    "this aaep was built without the screen reader of the desktop";
#[cfg(not(feature = "desktop"))]
pub(crate) const BUILD_WITH_DESKTOP: &str =
    "Build it with: cargo build --release --features desktop";

pub(crate) const CHILD_AGENT: &str =
    "the agent of this question is a child of the program where you heard it";
pub(crate) const ANSWER_THERE: &str = "Answer it there.";
pub(crate) const NO_HUB_FOR_ANSWER: &str =
    "nothing was answered: the hub of this question does not answer";
pub(crate) const QUESTION_DID_NOT_COME: &str =
    "nothing was answered: the hub did not send the question in time";
pub(crate) const SEE_HUB_AND_ATTENTION: &str = "See whether the hub runs, and run aaep attention.";
pub(crate) const MAY_NOT_ANSWER: &str = "you may hear this question but not answer it";
pub(crate) const USE_REPLY_TOKEN: &str = "Use a token with the scope reply.";
pub(crate) const RUN_ATTENTION: &str = "Run: aaep attention";

pub(crate) const NUMBERS_FILE: &str = "The file of your question numbers";
pub(crate) const NUMBERS_BEGIN_AGAIN: &str =
    "Numbers begin again: run aaep attention before you answer.";
