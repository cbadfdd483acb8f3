//! Hubs, devices and rules while listening.

use aaep_announce::AskNumber;

pub(crate) const LISTENING: &str = "Listening.";
pub(crate) const HUB_IS_THERE: &str = "The hub is there now.";
pub(crate) const NOT_ANSWERED_YET: &str = "The hub has not answered yet.";

/// What the person has to know about a producer that only publishes at `/events` and takes answers at `/messages`.
pub(crate) const WITHOUT_HANDSHAKE: &str = "\
    This agent is heard and answered without a hub. What it did before, who else listens to it, \
    and what came of an answer is known only as far as it says so. The time of its questions \
    cannot be changed.";

pub(crate) const REMEMBERED: &str =
    "Remembered. When you are back, type left to hear what happened.";
pub(crate) const NOT_REMEMBERED: &str = "Where you left cannot be remembered here.";

/// A device stopped taking orders, or works again. The name of the device precedes it.
pub(crate) const TAKES_NO_WORDS: &str = "It does not take any more words.";
pub(crate) const WORKS_AGAIN: &str = "It works again.";

/// A sentence about a device, for the other devices to tell.
pub(crate) fn about_device(device: &str, what: &str) -> String {
    format!("About {device}: {what}")
}

/// `why` is the reason, without its full stop.
pub(crate) fn not_reached(why: &str) -> String {
    format!("{why}. It is tried again.")
}

/// Why a subscription ended, as a sentence.
pub(crate) fn over_and_tried_again(why: &str) -> String {
    format!("{why} It is tried again.")
}

pub(crate) fn time_not_changed(number: AskNumber) -> String {
    format!("The agent does not change the time of question {number} now.")
}

/// Why the time of a question could not be changed, as a sentence.
pub(crate) fn time_not_sent(number: AskNumber, why: &str) -> String {
    format!("Question {number}: {why}")
}

pub(crate) fn answered_by_rule(rule: &str, is_yes: bool, action: &str) -> String {
    let answer = if is_yes { "yes" } else { "no" };
    format!("Your rule {rule} answered {answer}: {action}")
}
