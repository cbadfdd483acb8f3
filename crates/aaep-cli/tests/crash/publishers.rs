//! Agents that publish: one event at a time, lines, with idempotency keys, and on a WebSocket. Whatever
//! was not acknowledged is sent again, and only then they go on.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::board::Board;
use crate::http::{Answer, Client, Cut, Socket};
use crate::ledger::{Ledger, Place};
use crate::work::Work;

/// How many events an agent sends on its WebSocket before it waits for an answer.
const WINDOW: usize = 16;

/// How many lines go together.
const LINES: usize = 8;

/// One agent.
pub(crate) struct Publisher {
    pub(crate) board: Arc<Board>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) name: String,
    /// Whether it sends idempotency keys, and lets the hub give events their ids.
    pub(crate) has_keys: bool,
}

impl Publisher {
    /// Publishes one event at a time.
    pub(crate) fn singles(self) {
        let mut client = Client::new(&self.board);
        let mut work = Work::new(&self.name, !self.has_keys);
        let mut number = 0;
        while !(self.board.is_winding_down() && work.is_between_sessions()) {
            let event = work.next();
            number += 1;
            let Some(answer) = self.send(&mut client, number, &event.to_string(), JSON) else {
                return;
            };
            if !self.take(&event, &answer.json()) {
                return;
            }
        }
    }

    /// Publishes several at once.
    pub(crate) fn lines(self) {
        let mut client = Client::new(&self.board);
        let mut work = Work::new(&self.name, !self.has_keys);
        let mut number = 0;
        while !(self.board.is_winding_down() && work.is_between_sessions()) {
            let mut events = Vec::new();
            let mut body = String::new();
            while events.is_empty() || (events.len() < LINES && !work.is_between_sessions()) {
                let event = work.next();
                writeln!(body, "{event}").expect("a text takes text");
                events.push(event);
            }
            number += 1;
            let Some(answer) = self.send(&mut client, number, &body, LINES_TYPE) else { return };
            let answers: Vec<Value> = answer
                .text
                .lines()
                .map(|line| serde_json::from_str(line).expect("lines of JSON"))
                .collect();
            if answers.len() != events.len() {
                self.ledger.fault(format!("{} was answered: {}", self.name, answer.text));
                return;
            }
            for (event, answer) in events.iter().zip(&answers) {
                if !self.take(event, answer) {
                    return;
                }
            }
        }
    }

    /// Repeats a request until there is an answer. Returns `None` for an error, and when the test ends.
    fn send(&self, client: &mut Client, number: u64, body: &str, kind: &str) -> Option<Answer> {
        let mut headers = format!("content-type: {kind}\r\n");
        if self.has_keys {
            let name = &self.name;
            write!(headers, "idempotency-key: {name}-{number}\r\n").expect("a text takes text");
        }
        while !self.board.is_over() {
            match client.request("POST", "/aaep/v1/publish", &headers, body) {
                Ok(answer) if answer.status == 200 => return Some(answer),
                Ok(answer) if answer.is_busy() => {}
                Ok(answer) => {
                    self.ledger.fault(format!(
                        "{} was refused with {}: {} for {body}",
                        self.name, answer.status, answer.text
                    ));
                    return None;
                }
                Err(Cut) => {}
            }
        }
        None
    }

    /// Notes an acknowledgement. Returns whether it is for this event.
    fn take(&self, event: &Value, answer: &Value) -> bool {
        let (session, id) = (answer["session_id"].as_str(), answer["event_id"].as_str());
        let (Some(session), Some(id)) = (session, id) else {
            self.ledger.fault(format!("{} was answered {answer} for {event}", self.name));
            return false;
        };
        let is_same = event["session_id"] == session
            && event.get("event_id").is_none_or(|wanted| wanted == id);
        if !is_same {
            self.ledger.fault(format!("{} was answered {answer} for {event}", self.name));
        }
        self.ledger.acknowledged(Place::new(session, id), answer["repeated"] == true);
        is_same
    }

    /// Publishes on a WebSocket, without waiting for each answer.
    pub(crate) fn socket(self) {
        let mut work = Work::new(&self.name, true);
        let mut waiting: VecDeque<Value> = VecDeque::new();
        while !self.board.is_over() {
            if self.on_one_socket(&mut work, &mut waiting).is_ok() {
                return;
            }
        }
    }

    fn on_one_socket(&self, work: &mut Work, waiting: &mut VecDeque<Value>) -> Result<(), Cut> {
        let mut socket = Socket::open(&self.board, "/aaep/v1/agent", "aaep.agent.v1")?;
        for event in &*waiting {
            socket.send(event)?;
        }
        loop {
            let is_done = || self.board.is_winding_down() && work.is_between_sessions();
            if waiting.is_empty() && is_done() {
                return Ok(());
            }
            while waiting.len() < WINDOW
                && !(self.board.is_winding_down() && work.is_between_sessions())
            {
                let event = work.next();
                waiting.push_back(event.clone());
                socket.send(&event)?;
            }
            let answer = socket.next()?;
            let Some(event) = waiting.pop_front() else { return Ok(()) };
            if answer["type"] != "agentvoice:published" || !self.take(&event, &answer) {
                self.ledger.fault(format!("{} was told {answer} for {event}", self.name));
                return Ok(());
            }
        }
    }
}

const JSON: &str = "application/json";
const LINES_TYPE: &str = "application/x-ndjson";
