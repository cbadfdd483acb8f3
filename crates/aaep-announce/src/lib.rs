//! What the person hears: from events to words, and from words to speech, braille, lines and sounds.
//!
//! Deciding is pure: everything outside `device` takes time as an argument and touches nothing. Each device is
//! thin, optional, and on a thread of its own, so that one that hangs delays nothing else. A device is given one
//! [`Utterance`] at a time and says how it went ([`Report`]); what waits meanwhile stays where it is decided, so
//! that it can still be merged, dropped or overtaken.

pub mod device;
mod utterance;

pub use utterance::{Choice, Earcon, Kind, Order, Report, Utterance, UtteranceId, Weight};
