//! Agents that ask before they do what cannot be undone, wait for the answer over every kill, and try
//! what is not allowed as well.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::board::Board;
use crate::http::{Answer, Client, Cut};
use crate::ledger::{Ledger, Place, Settled};
use crate::random::Random;
use crate::subscribers::{Answering, opposite, reply};
use crate::work::{self, Plan};

/// How many questions a session has.
const ASKS_OF_A_SESSION: u64 = 4;

/// One agent.
pub(crate) struct Asker {
    pub(crate) board: Arc<Board>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) name: String,
    pub(crate) random: Random,
    /// By whom questions are answered on a stream.
    pub(crate) answering: Arc<Answering>,
}

/// All is over, or something was wrong that has been written down.
struct End;

impl Asker {
    pub(crate) fn run(mut self) {
        let mut client = Client::new(&self.board);
        let mut number = 0;
        while !self.board.is_winding_down() {
            if self.session(&mut client, number).is_err() {
                return;
            }
            number += 1;
        }
    }

    fn session(&mut self, client: &mut Client, number: u64) -> Result<(), End> {
        let session = format!("sess_{}s{number}", self.name);
        let name = self.name.clone();
        let id = |what: &str| format!("evt_{name}s{number}{what}");
        let started = work::session(&self.name, &session, &id("started"), "started");
        self.publish_taken(client, &started)?;
        for ask in 0..ASKS_OF_A_SESSION {
            let token = format!("rpl_{}s{number}a{ask}x{}", self.name, self.random.below(1 << 32));
            self.ask(client, &session, &token, &id(&format!("a{ask}")))?;
        }
        let completed = work::session(&self.name, &session, &id("completed"), "completed");
        self.publish_taken(client, &completed)
    }

    /// Asks, waits, does it if it may, and tries what it may not.
    fn ask(
        &mut self,
        client: &mut Client,
        session: &str,
        token: &str,
        event_id: &str,
    ) -> Result<(), End> {
        let settled = self.wait_for(client, session, token, event_id)?;
        let is_accepted = settled.outcome == "accept";
        let call = |number: u64| format!("call_{}n{number}", event_id.trim_start_matches("evt_"));
        let id = |what: &str| format!("{event_id}{what}");
        let deed = work::deed(&self.name, session, &id("deed"), &call(0));
        if is_accepted {
            self.publish_taken(client, &deed)?;
            let done = work::done(&self.name, session, &id("done"), &call(0));
            self.publish_taken(client, &done)?;
            let second = work::deed(&self.name, session, &id("second"), &call(1));
            self.publish_refused(client, &second, "a deed for which the yes was used up")?;
        } else {
            self.publish_refused(client, &deed, "a deed that nobody allowed")?;
        }
        let again = work::question(&self.name, session, &id("again"), token);
        self.publish_refused(client, &again, "a question with a used token")?;
        let other = opposite(&settled.outcome);
        let late = reply(&self.answering.subscription_id(), token, other);
        let answer = self.until_answered(|| client.post("/aaep/v1/replies", &late))?;
        self.expect(answer.status == 400, || {
            format!("a late reply was answered with {}: {}", answer.status, answer.text)
        })?;
        self.ledger.entries().refused += 1;
        Ok(())
    }

    /// Asks until the question is acknowledged and then until it is settled.
    fn wait_for(
        &mut self,
        client: &mut Client,
        session: &str,
        token: &str,
        event_id: &str,
    ) -> Result<Settled, End> {
        let question = work::question(&self.name, session, event_id, token);
        let mut is_acknowledged = false;
        while !self.board.is_over() {
            let wait = self.random.below(2);
            let answered = if is_acknowledged && self.random.below(2) == 0 {
                client.get(&format!("/aaep/v1/asks/{token}?wait_seconds={wait}"))
            } else {
                client.post(&format!("/aaep/v1/asks?wait_seconds={wait}"), &question)
            };
            let Ok(answer) = answered else { continue };
            if answer.is_busy() {
                continue;
            }
            let body = answer.json();
            self.expect(matches!(answer.status, 200 | 202), || {
                format!("a question was answered with {}: {}", answer.status, answer.text)
            })?;
            self.expect(body["event_id"] == event_id && body["reply_token"] == token, || {
                format!("the question {token} was answered for another: {body}")
            })?;
            if !is_acknowledged {
                is_acknowledged = true;
                self.ledger.acknowledged(Place::new(session, event_id), false);
            }
            if let Some(settled) = note(&self.ledger, &self.board, token, &body) {
                return Ok(settled);
            }
            if Plan::of(token) == Plan::Withdrawn {
                self.withdraw(client, token);
            }
        }
        Err(End)
    }

    fn withdraw(&self, client: &mut Client, token: &str) {
        let Ok(answer) = client.delete(&format!("/aaep/v1/asks/{token}")) else { return };
        match answer.status {
            204 => self.ledger.ask(token, |ask| ask.is_withdrawn = true),
            // It was withdrawn before, and that answer was cut off.
            404 | 503 => {}
            status => {
                self.ledger
                    .fault(format!("withdrawing was answered with {status}: {}", answer.text));
            }
        }
    }

    /// Publishes an event that has to be taken.
    fn publish_taken(&self, client: &mut Client, event: &Value) -> Result<(), End> {
        let answer = self.until_answered(|| client.post("/aaep/v1/publish", event))?;
        self.expect(answer.status == 200, || {
            format!("{event} was answered with {}: {}", answer.status, answer.text)
        })?;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let place = Place::new(text("session_id"), text("event_id"));
        self.ledger.acknowledged(place, answer.json()["repeated"] == true);
        Ok(())
    }

    /// Publishes an event that must not be taken.
    fn publish_refused(&self, client: &mut Client, event: &Value, what: &str) -> Result<(), End> {
        let answer = self.until_answered(|| client.post("/aaep/v1/publish", event))?;
        self.expect(answer.status == 409, || {
            format!("{what} was answered with {}: {}, {event}", answer.status, answer.text)
        })?;
        self.ledger.entries().refused += 1;
        Ok(())
    }

    fn until_answered(&self, mut send: impl FnMut() -> Result<Answer, Cut>) -> Result<Answer, End> {
        while !self.board.is_over() {
            if let Ok(answer) = send()
                && !answer.is_busy()
            {
                return Ok(answer);
            }
        }
        Err(End)
    }

    fn expect(&self, is_right: bool, fault: impl FnOnce() -> String) -> Result<(), End> {
        if is_right {
            return Ok(());
        }
        self.ledger.fault(format!("{}: {}", self.name, fault()));
        Err(End)
    }
}

/// Writes down how a question stands; how it was settled, if it was.
pub(crate) fn note(ledger: &Ledger, board: &Board, token: &str, body: &Value) -> Option<Settled> {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if body["status"] == "settled" {
        let settled = Settled { outcome: text("outcome"), decided_by: text("decided_by") };
        ledger.ask(token, |ask| ask.settle(settled.clone()));
        return Some(settled);
    }
    let life = board.address().map_or(0, |(_, life)| life);
    ledger.ask(token, |ask| {
        ask.deadlines.insert(text("deadline"));
        ask.open_in.insert(life);
    });
    None
}

/// Asks once more how every question was settled.
pub(crate) fn ask_all_again(ledger: &Ledger, board: &Arc<Board>) {
    let tokens: Vec<String> = ledger.entries().asked.keys().cloned().collect();
    let mut client = Client::new(board);
    for token in tokens {
        match client.get(&format!("/aaep/v1/asks/{token}?wait_seconds=0")) {
            Ok(answer) => {
                let body = if answer.status == 200 { answer.json() } else { json!(null) };
                if note(ledger, board, &token, &body).is_none() {
                    ledger.fault(format!("{token} has no outcome at the end: {}", answer.text));
                }
            }
            Err(Cut) => ledger.fault(format!("{token} was not answered at the end")),
        }
    }
}
