//! Speech: what is wrong with the speech server, and which settings and languages it does not have.

use std::io;

use crate::device::DeviceAddress;

pub(crate) const NO_ANSWER: &str =
    "The speech server does not answer. Speech is tried again from time to time.";
pub(crate) const CONNECTION_ENDED: &str =
    "The speech server has ended the connection. Speech is tried again from time to time.";
pub(crate) const UNEXPECTED_ANSWER: &str =
    "The speech server sent an answer that was not asked for. Speech is tried again.";
pub(crate) const DAMAGED_ANSWER: &str =
    "What answers for speech is not a speech server, or its answer is damaged.";
pub(crate) const ENDLESS_VOICES: &str = "The speech server lists voices without end.";
pub(crate) const DOES_NOT_NUMBER: &str =
    "The speech server does not number what it is given to speak.";
pub(crate) const NOT_TO_THEIR_END: &str = "\
    The speech server takes words but does not speak them to their end. Check its sound \
    output.";
pub(crate) const UNKNOWN_PLACE: &str = "\
    It is not known where the speech server is. Set SPEECHD_ADDRESS, for example to \
    unix_socket:/run/user/1000/speech-dispatcher/speechd.sock";

pub(crate) fn wrong_address(value: &str) -> String {
    format!(
        "The variable SPEECHD_ADDRESS is {value}. It must be unix_socket, a colon and a path, or inet_socket, \
         a colon, a host, a colon and a port."
    )
}

pub(crate) fn nothing_answers(address: &DeviceAddress, error: &io::Error) -> String {
    format!(
        "There is no speech: nothing answers at {address}: {error}. To start the speech server: \
         speech-dispatcher --spawn"
    )
}

pub(crate) fn started_without_answer(address: &DeviceAddress, error: &io::Error) -> String {
    format!(
        "There is no speech: the speech server was started, but does not answer at {address}: {error}."
    )
}

pub(crate) fn cannot_be_started(program: &str, error: &io::Error) -> String {
    format!(
        "There is no speech: the speech server cannot be started with {program}: {error}. To install it on Debian: \
         apt-get install speech-dispatcher"
    )
}

pub(crate) fn no_voice_called(voice: &str) -> String {
    format!(
        "The speech server has no voice called {voice}. The usual voice is used. To see the voices: \
         spd-say --list-synthesis-voices"
    )
}

pub(crate) fn no_voice_for(language: &str) -> String {
    format!(
        "There is no voice for the language {language}. It is read by the usual voice, and may be hard to \
         understand. To hear it well, install a voice for {language} in the speech server."
    )
}

pub(crate) fn unknown_module(module: &str) -> String {
    format!("The speech server does not know the module {module}.")
}

pub(crate) fn voice_refused(voice: &str) -> String {
    format!("The speech server refuses the voice {voice}.")
}

pub(crate) fn setting_refused(name: &str, value: i8) -> String {
    format!("The speech server refuses the setting {name} {value}.")
}
