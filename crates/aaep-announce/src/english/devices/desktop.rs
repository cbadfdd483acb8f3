//! The desktop: the buttons of a question, and why the screen reader gets nothing.

/// A button besides the answers.
pub(crate) const MORE_TIME: &str = "More time";

const TURN_ON: &str =
    "Turn on your screen reader; it is used as soon as it is there. To start Orca: orca";

pub(crate) const NO_ANNOUNCEMENTS: &str = "\
    A screen reader is turned on, but it does not take announcements. Orca 48 takes them; Orca \
    43 of Debian 12 does not. Use plain lines, or speech.";
pub(crate) const TURNED_OFF: &str = "The screen reader was turned off.";
pub(crate) const NOT_TAKEN_IN: &str = "The accessibility bus does not accept this program.";
pub(crate) const BUS_HAS_ENDED: &str =
    "The accessibility bus has ended. To announce on the desktop again, start listening again.";

pub(crate) fn nothing_turned_on() -> String {
    format!("No screen reader is turned on here. {TURN_ON}")
}

pub(crate) fn nobody_listens() -> String {
    format!("No screen reader listens for announcements. {TURN_ON}")
}

/// What went wrong; the system gives the reason.
pub(crate) fn no_answer(reason: &str) -> String {
    format!("The accessibility bus does not answer: {reason}")
}

pub(crate) fn not_let_in(reason: &str) -> String {
    format!("The accessibility bus does not let us in: {reason}")
}

pub(crate) fn no_bus(reason: &str) -> String {
    format!(
        "There is no accessibility bus on this desktop. To install it on Debian: apt-get install at-spi2-core. \
         The reason given: {reason}"
    )
}

pub(crate) fn no_session(reason: &str) -> String {
    format!(
        "There is no desktop session here, so there is no screen reader to tell anything. Run it in a terminal \
         of the desktop. The reason given: {reason}"
    )
}
