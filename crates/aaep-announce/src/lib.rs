//! What the person hears: from events to words, and from words to speech, braille, lines, sounds, and the screen
//! reader of the desktop (feature `desktop`).
//!
//! Deciding is pure: everything outside `device` takes time as an argument and touches nothing. Each device is
//! thin, optional, and on a thread of its own, so that one that hangs delays nothing else. A device is given one
//! [`Utterance`] at a time and says how it went ([`Report`]); what waits meanwhile stays where it is decided, so
//! that it can still be merged, dropped or overtaken.

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
    Announcer, Answer, AskNumber, Asked, By, Decided, Ending, HubNumber, Input, KnownAgent,
    MAX_CRITICAL, MAX_QUESTIONS, MAX_SESSIONS, MAX_TEXT, MAX_TEXTS, MAX_UTTERANCE, MAX_WAITING,
    Outcome, Wish, agent_name, rank, time_after_presentation, told_name,
};
pub use choices::choice_letters;
pub use profile::{Length, PACES, Preferences, Profile, Replies};
pub use rehearsal::{Rehearsal, RehearsedAsk, Said, rehearse};
pub use report::{Listening, ListeningReport, page};
pub use transcript::{Answered, Transcript};
pub use utterance::{Choice, Earcon, Kind, Order, Pace, Report, Utterance, UtteranceId, Weight};
pub use words::WordsPart;
