//! What there is to do with a speech server, and what it was asked.

use std::collections::VecDeque;

use super::Settings;
use super::codec;
use super::saying::Priority;
use super::voices::Voices;
use crate::device::plain::quoted;
use crate::english::devices;
use crate::utterance::{Pace, UtteranceId};

/// What is still to be asked of the server.
#[derive(Debug)]
pub(super) enum Task {
    /// A setting, and what a person is told if the server refuses it.
    Set(String, Option<String>),
    AskLanguage,
    AskVoices,
    /// The greeting is over: the server works.
    Greeted,
    Say(UtteranceId),
    Cancel,
    Pace(Pace),
}

/// What the server was asked, and has not answered yet.
#[derive(Debug)]
pub(super) enum Asked {
    Setting(Option<String>),
    Language,
    Voices(Voices),
    ForLanguage(String),
    ForPriority(Priority),
    /// Whether it takes words.
    ToSpeak(UtteranceId),
    /// For the number of the words that it took.
    Words(UtteranceId),
    /// To stop.
    Cancel,
    /// How fast it speaks.
    Rate,
}

/// What every connection begins with. Voices are asked for once.
pub(super) fn greeting(settings: &Settings, knows_voices: bool) -> VecDeque<Task> {
    let user: String = settings.user.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let user = if user.is_empty() { "someone" } else { &user };
    let mut tasks = VecDeque::from([
        Task::Set(format!("SET SELF CLIENT_NAME {user}:aaep:main"), None),
        Task::Set("SET SELF NOTIFICATION ALL ON".to_owned(), None),
    ]);
    if let Some(module) = settings.module.as_deref().and_then(codec::name) {
        let otherwise = devices::speech::unknown_module(&quoted(module));
        tasks.push_back(Task::Set(format!("SET SELF OUTPUT_MODULE {module}"), Some(otherwise)));
    }
    for (what, value) in
        [("RATE", settings.rate), ("PITCH", settings.pitch), ("VOLUME", settings.volume)]
    {
        tasks.extend(value.map(|value| set(what, value)));
    }
    tasks.push_back(Task::AskLanguage);
    if !knows_voices {
        tasks.push_back(Task::AskVoices);
    }
    if let Some(voice) = settings.voice.as_deref().and_then(codec::name) {
        let otherwise = devices::speech::voice_refused(&quoted(voice));
        tasks.push_back(Task::Set(format!("SET SELF SYNTHESIS_VOICE {voice}"), Some(otherwise)));
    }
    tasks.push_back(Task::Greeted);
    tasks
}

/// Sets the rate, the pitch or the volume.
pub(super) fn set(what: &str, value: i8) -> Task {
    let (value, name) = (value.clamp(-100, 100), what.to_ascii_lowercase());
    let otherwise = devices::speech::setting_refused(&name, value);
    Task::Set(format!("SET SELF {what} {value}"), Some(otherwise))
}
