//! Reads what the wires report, before the owner gets it.
//!
//! One thread reads the messages of all peers, in the order of their arrival, so that large or malformed
//! messages never hold up the owner or a wire. When many messages are pending, a connection is paused until its
//! own message is handled, so that the pending messages stay bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use aaep::Object;
use aaep_transport::wire::{ConnectionKey, Flow, Reports, WireReport};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::reading::{SubscriberMessage, read_subscriber};
use crate::redact::Redactor;
use aaep_trust::strict_json::{self, NotStrict};

/// How many messages may be pending before connections are paused.
const MAX_PENDING_MESSAGES: usize = 64;

/// Which wire a report came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireRole {
    Subscribers,
    Agents,
}

/// A report as it came from its wire.
pub(super) struct RoutedReport {
    wire: WireRole,
    report: WireReport,
    /// Whether the connection is paused until this message is handled.
    is_paused: bool,
}

/// A report after its message was read.
pub(super) enum WireInput {
    /// A message from a subscriber.
    Subscriber {
        connection: ConnectionKey,
        text: String,
        reading: Box<SubscriberMessage>,
        is_paused: bool,
    },
    /// A message from an agent: an object, or what is wrong with it.
    Agent { connection: ConnectionKey, message: Result<Object, String>, is_paused: bool },
    /// A change of a connection.
    Report(WireReport),
}

/// Forwards the reports of one wire to the reader thread.
pub(super) struct WireReporter {
    pub(super) wire: WireRole,
    /// The channel itself is not bounded. It holds at most [`MAX_PENDING_MESSAGES`] messages, one more for each
    /// connection, and for each of these the reports that it is full, empty and gone.
    pub(super) reader: Sender<RoutedReport>,
    pub(super) waiting: Arc<AtomicUsize>,
}

impl Reports for WireReporter {
    fn report(&mut self, report: WireReport) -> Flow {
        let is_message = matches!(report, WireReport::Message { .. });
        let is_paused =
            is_message && self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_PENDING_MESSAGES;
        // If the reader is gone, the hub is stopping.
        let _ = self.reader.send(RoutedReport { wire: self.wire, report, is_paused });
        if is_paused { Flow::Pause } else { Flow::Continue }
    }
}

/// Reads reports until both wires are gone.
pub(super) fn read_all(
    told: &Receiver<RoutedReport>,
    owner: &UnboundedSender<WireInput>,
    redactor: &Redactor,
    waiting: &AtomicUsize,
) {
    while let Ok(RoutedReport { wire, report, is_paused }) = told.recv() {
        let heard = match report {
            WireReport::Message { connection, text } => {
                let heard = match wire {
                    WireRole::Subscribers => {
                        let reading = Box::new(read_subscriber(text.as_bytes()));
                        WireInput::Subscriber { connection, text, reading, is_paused }
                    }
                    WireRole::Agents => {
                        let message = object(&text, redactor);
                        WireInput::Agent { connection, message, is_paused }
                    }
                };
                waiting.fetch_sub(1, Ordering::Relaxed);
                heard
            }
            other => WireInput::Report(other),
        };
        if owner.send(heard).is_err() {
            return;
        }
    }
}

/// Reads an agent's message as an object and redacts it, or says what is wrong with it.
pub(super) fn object(text: &str, redactor: &Redactor) -> Result<Object, String> {
    let mut object = match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("This is not a JSON object. Send one event at a time.".to_owned()),
        Err(NotStrict::DuplicateMember) => {
            return Err("A member is in its object twice. Write each member once.".to_owned());
        }
        Err(NotStrict::NotJson) => {
            return Err("This is not valid JSON. Send one event at a time.".to_owned());
        }
    };
    redactor.redact_event(&mut object);
    Ok(object)
}
