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

pub(crate) const NOTHING_TOLD: &str = "nothing would be told: every device that tells words is off";
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

/// A file or a folder that cannot be used. `to_do` is a verb, such as read.
pub(crate) fn cannot_use(to_do: &str, file: &str, why: &str) -> String {
    format!("cannot {to_do} {file}: {why}")
}

pub(crate) const MAKE_FOLDER: &str = "make the folder";
pub(crate) const CHECK_NAME: &str = "Check the name, or pass - to read standard input.";

/// A folder where a file was meant.
pub(crate) fn is_a_folder(name: &str) -> (String, &'static str) {
    (format!("{name} is a folder"), "Name the file in it that you mean.")
}

pub(crate) fn output_failed(why: &str) -> (String, &'static str) {
    (format!("cannot write the report: {why}"), "Send the output somewhere with room.")
}

/// `option` is the flag that says where to go instead.
pub(crate) fn no_home_folder(option: &str) -> (&'static str, String) {
    ("there is no home folder here", format!("Say where with {option}."))
}

pub(crate) fn no_control_c(why: &str) -> String {
    format!("cannot watch for Control-C: {why}")
}

pub(crate) fn no_random_numbers(error: &impl Display) -> (String, &'static str) {
    (format!("this machine has no random numbers: {error}"), "Check that /dev/urandom exists.")
}

/// What a hub at this address did not do, and what to do about it.
pub(crate) fn no_hub_at(origin: &str, error: &impl Display) -> (String, &'static str) {
    (
        format!("no hub answers at {origin}: {error}"),
        "Start one with: aaep serve. Or say where it is with --hub or AAEP_HUB.",
    )
}

pub(crate) fn another_machine(origin: &str, error: &impl Display) -> (String, &'static str) {
    (format!("{origin} is another machine and {error}"), "Use an https address.")
}

pub(crate) fn not_safe(origin: &str, error: &impl Display) -> (String, &'static str) {
    (format!("cannot speak safely with {origin}: {error}"), "Check the certificate of the hub.")
}

pub(crate) fn gave_no_answer(origin: &str, error: &impl Display) -> (String, &'static str) {
    (
        format!("the hub at {origin} gave no answer: {error}"),
        "Check that a hub is there, and look at its log.",
    )
}

pub(crate) fn answered_with_status(origin: &str, status: u16) -> (String, &'static str) {
    (
        format!("{origin} answered with the status {status}"),
        "Check that a hub is there, with --hub or AAEP_HUB.",
    )
}

pub(crate) fn not_a_hubs_answer(origin: &str) -> (String, &'static str) {
    (
        format!("{origin} gave an answer that no hub gives"),
        "Check that a hub of the same version is there.",
    )
}

pub(crate) const REFUSED_WITHOUT_REASON: &str =
    "The hub refused it and did not say why. Look at its log.";
pub(crate) const LOOK_AT_HUB_LOG: &str = "Look at the log of the hub.";
