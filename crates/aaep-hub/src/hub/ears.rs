//! What the wires report, read before the owner gets it.
//!
//! One thread reads messages of peers, in the order in which they came, so that large or broken ones
//! never keep the owner or a wire from its work. A connection with a message on the way is not read from
//! when many wait, so that what waits is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use aaep::Object;
use aaep_transport::wire::{ConnectionKey, Flow, Report, Reports};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::reading::{SubscriberMessage, read_subscriber};
use crate::redact::Redactor;
use aaep_trust::strict_json::{self, NotStrict};

/// How many messages may wait before connections are not read from until theirs is handled.
const MANY: usize = 64;

/// Which wire it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Subscribers,
    Agents,
}

/// What a wire reported.
pub(super) struct Told {
    wire: Wire,
    report: Report,
    /// Whether the connection waits for this message to be handled.
    is_paused: bool,
}

/// The same, read.
pub(super) enum Heard {
    /// A subscriber said something.
    Subscriber {
        connection: ConnectionKey,
        text: String,
        reading: Box<SubscriberMessage>,
        is_paused: bool,
    },
    /// An agent said something: an object, or what is wrong with it.
    Agent { connection: ConnectionKey, message: Result<Object, String>, is_paused: bool },
    /// Something happened to a connection.
    Report(Report),
}

/// Hears one wire.
pub(super) struct Ears {
    pub(super) wire: Wire,
    /// Not bounded in itself: what waits is at most [`MANY`] messages, one more for each connection, and
    /// for each of these that it got full, empty and gone.
    pub(super) reader: Sender<Told>,
    pub(super) waiting: Arc<AtomicUsize>,
}

impl Reports for Ears {
    fn report(&mut self, report: Report) -> Flow {
        let is_message = matches!(report, Report::Message { .. });
        let is_paused = is_message && self.waiting.fetch_add(1, Ordering::Relaxed) >= MANY;
        // If the reader is gone, the hub is stopping.
        let _ = self.reader.send(Told { wire: self.wire, report, is_paused });
        if is_paused { Flow::Pause } else { Flow::Continue }
    }
}

/// Reads what was reported until nobody reports any more.
pub(super) fn read_all(
    told: &Receiver<Told>,
    owner: &UnboundedSender<Heard>,
    redactor: &Redactor,
    waiting: &AtomicUsize,
) {
    while let Ok(Told { wire, report, is_paused }) = told.recv() {
        let heard = match report {
            Report::Message { connection, text } => {
                let heard = match wire {
                    Wire::Subscribers => {
                        let reading = Box::new(read_subscriber(text.as_bytes()));
                        Heard::Subscriber { connection, text, reading, is_paused }
                    }
                    Wire::Agents => {
                        let message = object(&text, redactor);
                        Heard::Agent { connection, message, is_paused }
                    }
                };
                waiting.fetch_sub(1, Ordering::Relaxed);
                heard
            }
            other => Heard::Report(other),
        };
        if owner.send(heard).is_err() {
            return;
        }
    }
}

/// An agent's message as an object, without secrets, or what is wrong with it.
pub(super) fn object(text: &str, redactor: &Redactor) -> Result<Object, String> {
    let mut object = match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("This is no JSON object. Send one event at a time.".to_owned()),
        Err(NotStrict::DuplicateMember) => {
            return Err("A member stands in its object twice. Say each thing once.".to_owned());
        }
        Err(NotStrict::NotJson) => {
            return Err("This is no JSON. Send one event at a time.".to_owned());
        }
    };
    redactor.redact_event(&mut object);
    Ok(object)
}
