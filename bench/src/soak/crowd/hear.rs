//! What comes for a subscriber, and what it says to that.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::Crowd;
use crate::soak::hearing::Event;
use crate::soak::jobs::Job;
use crate::soak::plan::decision;
use crate::soak::subscriber::{Kind, PEOPLE, Presence};
use crate::soak::totals::Totals;
use crate::timing;
use crate::wire::{Frame, Wire};

impl Crowd {
    /// Reads whatever there is for a subscriber.
    pub(super) fn read(&mut self, at: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let still_there = loop {
            let subscriber = &mut self.subscribers[at];
            let Presence::Here(line) = &mut subscriber.presence else { break true };
            match line.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => subscriber.read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.buffer = buffer;
        let is_open = self.hear(at);
        let is_here = matches!(self.subscribers[at].presence, Presence::Here(_));
        if is_here && !(still_there && is_open) {
            Totals::add(&self.totals.let_go);
            self.leave(at, Duration::from_millis(500));
        }
    }

    /// Takes what came whole; whether the hub keeps the connection.
    fn hear(&mut self, at: usize) -> bool {
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
                Frame::Message(json) => is_open = self.hear_message(at, json),
                Frame::Lines(lines) => {
                    let lines = lines.split(|byte| *byte == b'\n');
                    for json in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                        is_open &= self.hear_message(at, json);
                    }
                }
                Frame::Ping(content) => self.send(at, &Wire::pong(content)),
                Frame::End => is_open = false,
                Frame::Other => {}
            }
            rest = &rest[used..];
        }
        self.subscribers[at].read = rest.to_vec();
        is_open
    }

    /// Takes a message; whether the hub keeps the connection.
    fn hear_message(&mut self, at: usize, json: &[u8]) -> bool {
        let event: Event<'_> = match serde_json::from_slice(json) {
            Ok(event) => event,
            Err(error) => {
                self.totals
                    .fault(format!("subscriber {at} got something that is no event: {error}"));
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
        Totals::add(&self.totals.deliveries);
        let subscriber = &mut self.subscribers[at];
        let gaps = subscriber.hearing.gaps;
        for fault in subscriber.hearing.take(&event) {
            self.totals.fault(format!("subscriber {at}, {:?}: {fault}", subscriber.kind));
        }
        if subscriber.hearing.gaps > gaps {
            Totals::add(&self.totals.gaps);
            // Of whatever runs now, it hears the rest.
            subscriber.hearing.joins_before(self.next_session.load(Ordering::Relaxed));
        }
        if let Some(id) = &event.id {
            subscriber.last_event_id.clear();
            subscriber.last_event_id.push_str(id);
        }
        if let (Kind::Person, Some((number, index))) = (subscriber.kind, event.question()) {
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
            Wire::Stream => self.do_soon(Job::Say { message, line: None }),
            wire => self.send(at, &wire.message(&message)),
        }
    }

    fn send(&mut self, at: usize, bytes: &[u8]) {
        let Presence::Here(line) = &mut self.subscribers[at].presence else { return };
        if let Err(error) = line.send(bytes) {
            // Whoever is let go hears so next.
            let is_gone =
                matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
            if !is_gone {
                self.totals.fault(format!("subscriber {at} could not speak: {error}"));
            }
        }
    }
}
