//! From events to words, and from words to devices.

#![doc = include_str!("../README.md")]

mod announcer;
mod choices;
pub mod device;
mod english;
mod profile;
mod rehearsal;
mod report;
mod transcript;
mod utterance;
pub mod words;

pub use announcer::{
    Announcer, AnnouncerInput, AnnouncerOutcome, Answer, AnsweredBy, AskEnding, AskNumber, Asked,
    Decided, HubNumber, KnownAgent, ListeningRequest, MAX_CRITICAL, MAX_QUESTIONS, MAX_SESSIONS,
    MAX_TEXT, MAX_TEXTS, MAX_UTTERANCE, MAX_WAITING, agent_name, rank, time_after_presentation,
    told_name,
};
pub use choices::choice_letters;
pub use profile::{Length, PACES, Preferences, Profile, Replies};
pub use rehearsal::{Rehearsal, RehearsedAsk, RehearsedUtterance, rehearse};
pub use report::{Listening, ListeningReport, page};
pub use transcript::{Answered, Transcript};
pub use utterance::{
    Choice, DeviceReport, Earcon, Order, Pace, Utterance, UtteranceId, UtteranceKind, Weight,
};
pub use words::WordsPart;
