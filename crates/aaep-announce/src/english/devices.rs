//! Devices: labels and prompts of plain lines, and what is wrong with a device and how to fix it.

pub(crate) mod braille;
#[cfg(all(feature = "desktop", target_os = "linux"))]
pub(crate) mod desktop;
pub(crate) mod speech;

use std::io;

use crate::utterance::UtteranceKind;

/// The label at the beginning of a line.
pub(crate) const fn label(kind: UtteranceKind, asks_permission: bool) -> &'static str {
    match kind {
        UtteranceKind::Question if asks_permission => "Permission required",
        UtteranceKind::Question => "Question",
        UtteranceKind::Settled => "settled",
        UtteranceKind::Reply => "agent",
        UtteranceKind::Doing => "doing",
        UtteranceKind::Progress => "progress",
        UtteranceKind::Error => "error",
        UtteranceKind::Done => "done",
        UtteranceKind::Notice => "notice",
    }
}

/// The first line.
pub(crate) const PLAIN_LINES: &str =
    "Plain lines. Each begins with what it is, and nothing is drawn twice.";
/// A notification for a question that does not fit into one.
pub(crate) const QUESTION_IN_TERMINAL: &str = "A question waits for you in the terminal.";

/// The prompt of a question with few answers, which are typed as they are.
pub(crate) fn answer_with(words: &[String]) -> String {
    format!("Answer {}: ", words.join(" or "))
}

/// The prompt of a question with more than two answers, which have letters.
pub(crate) fn answer_from_to(first: &str, last: &str) -> String {
    format!("Answer {first} to {last}: ")
}

/// The prompt of a question whose answers have no letters.
pub(crate) const ANSWER_WITH_ONE: &str = "Answer with one of these: ";

pub(crate) fn lines_cannot_be_written(error: &io::Error) -> String {
    format!("The lines cannot be written: {error}")
}

pub(crate) const NO_PLAYER: &str = "\
    There are no sounds: no player of sound files is installed. To install one on Debian: \
    apt-get install pipewire-bin, or pulseaudio-utils, or alsa-utils";
/// A program with an unknown name.
pub(crate) const THE_PLAYER: &str = "The player";

pub(crate) fn sounds_cannot_be_played(error: &str) -> String {
    format!("Sounds cannot be played: {error}.")
}

pub(crate) fn sound_did_not_play(program: &str) -> String {
    format!(
        "There are no sounds: {program} did not play one. Check the sound output, and the files that \
         the settings name."
    )
}

/// The address of a server on the network.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    format!("{host} port {port}")
}

/// Why a server cannot be reached; part of a sentence.
pub(crate) const HOST_WITHOUT_ADDRESS: &str = "the host has no address";
#[cfg(not(unix))]
pub(crate) const NO_UNIX_SOCKETS: &str = "there are no Unix sockets here";

/// What a server did, and the reason that the system gives.
pub(crate) fn with_reason(what: &str, error: &io::Error) -> String {
    format!("{what} The reason given: {error}.")
}

#[cfg(all(feature = "desktop", not(target_os = "linux")))]
pub(crate) const DESKTOP_ONLY_ON_LINUX: &str = "\
    Announcements to the screen reader work on Linux only so far. Plain lines can be read by \
    any screen reader, in a terminal.";
