//! Braille: what is wrong with BRLTTY or its display, and notes for the reader.

use std::io;

use crate::device::DeviceAddress;

pub(crate) const NO_ANSWER: &str =
    "BRLTTY does not answer. Braille is tried again from time to time.";
pub(crate) const CONNECTION_ENDED: &str =
    "BRLTTY has ended the connection. Braille is tried again from time to time.";
pub(crate) const UNEXPECTED_ANSWER: &str =
    "BRLTTY sent an answer that was not asked for. Braille is tried again.";
pub(crate) const DAMAGED_ANSWER: &str =
    "What answers for braille is not BRLTTY, or its answer is damaged.";
pub(crate) const REFUSED: &str = "BRLTTY refused a request. Braille is tried again.";
pub(crate) const NOT_LET_IN: &str = "\
    BRLTTY does not let us in. Its key file must be readable for you: usually /etc/brlapi.key, \
    readable for the group brlapi.";
pub(crate) const NOT_IN_THIS_TERMINAL: &str = "BRLTTY does not give the display for this terminal.";
pub(crate) const NO_DISPLAY: &str =
    "BRLTTY has no braille display. Connect one; it is used as soon as it is there.";
pub(crate) const DISPLAY_IS_GONE: &str =
    "The braille display is gone. It is used again when it is back.";

pub(crate) fn unknown_version(version: u32) -> String {
    format!("BRLTTY speaks version {version} of BrlAPI, which is not known here.")
}

pub(crate) fn wrong_address(value: &str) -> String {
    format!(
        "The variable BRLAPI_HOST is {value}. It must be a colon and a number, or a host, a colon and a number."
    )
}

pub(crate) fn nothing_answers(address: &DeviceAddress, error: &io::Error) -> String {
    format!(
        "There is no braille: nothing answers at {address}: {error}. Braille needs BRLTTY; to install it on \
         Debian: apt-get install brltty"
    )
}

pub(crate) fn shown_uncontracted(table: &str, why: &str) -> String {
    format!(
        "Braille is shown uncontracted: the table {table} does not work: {why}. Contracted braille needs liblouis; \
         to install it on Debian: apt-get install liblouis-bin"
    )
}

/// Why a braille table does not work; each is part of a sentence.
pub(crate) const NOT_A_TABLE: &str = "its name is not the name of a table";
pub(crate) const NO_BRAILLE: &str = "the program gave no braille";
pub(crate) const NO_PIPES: &str = "the system gave no pipes";

/// The beginning of words that are too long to show, and how many more characters there are.
pub(crate) fn more_characters(shown: &str, count: usize) -> String {
    format!("{shown} ... {count} more characters")
}
