//! Turns events into words, and words into speech, braille, lines, sounds, and announcements for the desktop's screen
//! reader (feature `desktop`).
//!
//! Deciding is pure: everything outside `device` takes the time as an argument and has no side effects. Each device
//! is thin, optional, and runs on its own thread, so that a device that hangs delays nothing else. A device gets one
//! [`Utterance`] at a time and reports how it went ([`Report`]). Everything that waits stays with the [`Announcer`],
//! which can still merge, drop or reorder it.

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
