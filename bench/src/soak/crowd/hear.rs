//! Reads what arrives at a subscriber, and sends its answers.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::SoakCrowd;
use crate::soak::hearing::CheckedEvent;
use crate::soak::jobs::SoakJob;
use crate::soak::plan::decision;
use crate::soak::subscriber::{PEOPLE, SoakBehavior, SoakPresence};
use crate::soak::totals::SoakTotals;
use crate::timing;
use crate::wire::{SubscriberWire, WireFrame};

impl SoakCrowd {
    /// Reads everything that is available for a subscriber.
    pub(super) fn read(&mut self, at: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let still_there = loop {
            let subscriber = &mut self.subscribers[at];
            let SoakPresence::Here(line) = &mut subscriber.presence else { break true };
            match line.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => subscriber.read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.buffer = buffer;
        let is_open = self.handle_frames(at);
        let is_here = matches!(self.subscribers[at].presence, SoakPresence::Here(_));
        if is_here && !(still_there && is_open) {
            SoakTotals::add(&self.totals.let_go);
            self.leave(at, Duration::from_millis(500));
        }
    }

    /// Handles complete frames. Returns whether the hub keeps the connection.
    fn handle_frames(&mut self, at: usize) -> bool {
        let wire = self.subscribers[at].wire;
        let bytes = std::mem::take(&mut self.subscribers[at].read);
        let mut rest = bytes.as_slice();
        let mut is_open = true;
        while is_open {
            let (frame, used) = match wire.frame(rest) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(why) => {
                    self.totals.fault(format!("subscriber {at}: {why}"));
                    return false;
                }
            };
            match frame {
                WireFrame::Message(json) => is_open = self.handle_message(at, json),
                WireFrame::Lines(lines) => {
                    let lines = lines.split(|byte| *byte == b'\n');
                    for json in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                        is_open &= self.handle_message(at, json);
                    }
                }
                WireFrame::Ping(content) => self.send(at, &SubscriberWire::pong(content)),
                WireFrame::End => is_open = false,
                WireFrame::Other => {}
            }
            rest = &rest[used..];
        }
        self.subscribers[at].read = rest.to_vec();
        is_open
    }

    /// Handles a message. Returns whether the hub keeps the connection.
    fn handle_message(&mut self, at: usize, json: &[u8]) -> bool {
        let event: CheckedEvent<'_> = match serde_json::from_slice(json) {
            Ok(event) => event,
            Err(error) => {
                self.totals
                    .fault(format!("subscriber {at} got something that is not an event: {error}"));
                return true;
            }
        };
        match event.kind.as_ref() {
            "agentvoice:closed" | "subscription.close" => return false,
            kind if !kind.starts_with("aaep:agent.") => {
                let text = aaep::printable(&String::from_utf8_lossy(json)).to_string();
                self.totals.fault(format!("subscriber {at} was told {text}"));
                return true;
            }
            _ => {}
        }
        SoakTotals::add(&self.totals.deliveries);
        let subscriber = &mut self.subscribers[at];
        let gaps = subscriber.hearing.gaps;
        for fault in subscriber.hearing.take(&event) {
            self.totals.fault(format!("subscriber {at}, {:?}: {fault}", subscriber.kind));
        }
        if subscriber.hearing.gaps > gaps {
            SoakTotals::add(&self.totals.gaps);
            // It receives only the rest of the sessions that run now.
            subscriber.hearing.joins_before(self.next_session.load(Ordering::Relaxed));
        }
        if let Some(id) = &event.id {
            subscriber.last_event_id.clear();
            subscriber.last_event_id.push_str(id);
        }
        if let (SoakBehavior::Person, Some((number, index))) = (subscriber.kind, event.ask_index())
        {
            self.answer(at, number, index);
        }
        true
    }

    fn answer(&mut self, at: usize, number: u64, index: usize) {
        let (decision, who) = decision(number, index, PEOPLE);
        if who != at {
            return;
        }
        let message = json!({
            "type": "confirmation.reply", "reply_token": format!("rpl_soak{number}i{index}"),
            "decision": decision, "subscription_id": self.subscribers[at].subscription_id,
            "timestamp": timing::timestamp(),
        });
        match self.subscribers[at].wire {
            SubscriberWire::Stream => self.do_soon(SoakJob::Say { message, line: None }),
            wire => self.send(at, &wire.message(&message)),
        }
    }

    fn send(&mut self, at: usize, bytes: &[u8]) {
        let SoakPresence::Here(line) = &mut self.subscribers[at].presence else { return };
        if let Err(error) = line.send(bytes) {
            // If the hub closed the connection, the next read shows that.
            let is_gone =
                matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
            if !is_gone {
                self.totals.fault(format!("subscriber {at} could not speak: {error}"));
            }
        }
    }
}
