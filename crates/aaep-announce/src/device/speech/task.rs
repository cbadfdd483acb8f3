//! The tasks for a speech server, and its pending requests.

use std::collections::VecDeque;

use super::Settings;
use super::codec;
use super::saying::SpeechPriority;
use super::voices::ServerVoices;
use crate::device::plain::quoted;
use crate::english::devices;
use crate::utterance::{Pace, UtteranceId};

/// Something to request from the server.
#[derive(Debug)]
pub(super) enum SpeechTask {
    /// A setting, and the message for the person if the server refuses it.
    Set(String, Option<String>),
    AskLanguage,
    AskVoices,
    /// The greeting is over: the server works.
    Greeted,
    Say(UtteranceId),
    Cancel,
    Pace(Pace),
}

/// A request that the server has not answered yet.
#[derive(Debug)]
pub(super) enum SpeechRequest {
    Setting(Option<String>),
    Language,
    Voices(ServerVoices),
    ForLanguage(String),
    ForPriority(SpeechPriority),
    /// Whether it accepts words.
    ToSpeak(UtteranceId),
    /// The message number of the accepted words.
    Words(UtteranceId),
    Cancel,
    /// The current rate.
    Rate,
}

/// The tasks at the beginning of a connection. Voices are requested only once.
pub(super) fn greeting(settings: &Settings, knows_voices: bool) -> VecDeque<SpeechTask> {
    let user: String = settings.user.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let user = if user.is_empty() { "someone" } else { &user };
    let mut tasks = VecDeque::from([
        SpeechTask::Set(format!("SET SELF CLIENT_NAME {user}:aaep:main"), None),
        SpeechTask::Set("SET SELF NOTIFICATION ALL ON".to_owned(), None),
    ]);
    if let Some(module) = settings.module.as_deref().and_then(codec::name) {
        let otherwise = devices::speech::unknown_module(&quoted(module));
        tasks.push_back(SpeechTask::Set(
            format!("SET SELF OUTPUT_MODULE {module}"),
            Some(otherwise),
        ));
    }
    for (what, value) in
        [("RATE", settings.rate), ("PITCH", settings.pitch), ("VOLUME", settings.volume)]
    {
        tasks.extend(value.map(|value| set(what, value)));
    }
    tasks.push_back(SpeechTask::AskLanguage);
    if !knows_voices {
        tasks.push_back(SpeechTask::AskVoices);
    }
    if let Some(voice) = settings.voice.as_deref().and_then(codec::name) {
        let otherwise = devices::speech::voice_refused(&quoted(voice));
        tasks.push_back(SpeechTask::Set(
            format!("SET SELF SYNTHESIS_VOICE {voice}"),
            Some(otherwise),
        ));
    }
    tasks.push_back(SpeechTask::Greeted);
    tasks
}

pub(super) fn set(what: &str, value: i8) -> SpeechTask {
    let (value, name) = (value.clamp(-100, 100), what.to_ascii_lowercase());
    let otherwise = devices::speech::setting_refused(&name, value);
    SpeechTask::Set(format!("SET SELF {what} {value}"), Some(otherwise))
}
