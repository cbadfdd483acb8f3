//! Subscribers on streams and on a WebSocket, who come back after every cut; some of them answer questions.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::board::Board;
use crate::http::{Client, Cut, Socket, Stream};
use crate::ledger::{Ledger, Place, Text, Wants};
use crate::random::Random;
use crate::work::Plan;

/// The longest time that a person thinks.
const THINKING_MS: u64 = 60;

/// Which subscriber answers, on a stream.
#[derive(Debug, Default)]
pub(crate) struct Answering(Mutex<String>);

impl Answering {
    pub(crate) fn subscription_id(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, subscription_id: &str) {
        subscription_id.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// One subscriber.
pub(crate) struct Subscriber {
    pub(crate) board: Arc<Board>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) name: String,
    pub(crate) wants: Wants,
    /// Whether it answers what the plan of a question leaves to it.
    pub(crate) answering: Option<Arc<Answering>>,
    pub(crate) random: Random,
}

/// A wish to hear this, and to be able to answer.
fn request(wants: Wants, resume: Option<(&str, &str)>) -> Value {
    let mut request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": {
            "supports_confirmation_reply": true,
            "supported_extensions": [aaep::extension::CONTEXT],
        },
    });
    if wants == Wants::Everything {
        request["capabilities"]["coalesce_boundaries"] = json!(["none"]);
        request["capabilities"]["event_filters"] = json!({ "include": ["*"] });
    }
    if let Some((subscription_id, last_event_id)) = resume {
        let resume = json!({ "subscription_id": subscription_id, "last_event_id": last_event_id });
        request["extensions"] = json!({ "agentvoice": { "resume": resume } });
    }
    request
}

pub(crate) fn reply(subscription_id: &str, token: &str, decision: &str) -> Value {
    let now = jiff::Timestamp::now();
    json!({
        "type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription_id, "timestamp": format!("{now:.3}"),
    })
}

pub(crate) fn opposite(decision: &str) -> &'static str {
    if decision == "accept" { "reject" } else { "accept" }
}

impl Subscriber {
    /// Listens to a stream. Says when its subscription stands.
    pub(crate) fn stream(self, ready: &Sender<()>) {
        let mut client = Client::new(&self.board);
        let request = request(self.wants, None);
        let Ok(answer) = client.post("/aaep/v1/subscriptions", &request) else { return };
        assert_eq!(answer.status, 201, "{}", answer.text);
        let subscription = answer.json()["subscription_id"].as_str().expect("an id").to_owned();
        let asked = self.answering.as_ref().map(|answering| {
            answering.set(&subscription);
            self.start_to_answer(&subscription)
        });
        ready.send(()).expect("someone waits");
        let mut last = None;
        while !self.board.is_over() {
            let ended = self.hear_stream(&subscription, &mut last, asked.as_ref());
            if matches!(ended, Ok(())) {
                return;
            }
        }
    }

    fn hear_stream(
        &self,
        subscription: &str,
        last: &mut Option<String>,
        asked: Option<&Sender<String>>,
    ) -> Result<(), Cut> {
        let mut stream = match Stream::open(&self.board, subscription, last.as_deref())? {
            Ok(stream) => stream,
            Err(503) => return Err(Cut),
            Err(status) => {
                self.ledger.fault(format!("{} came back and got status {status}", self.name));
                return Ok(());
            }
        };
        self.ledger.connected(&self.name, self.wants, stream.life);
        loop {
            let (id, event) = stream.next()?;
            if is_goodbye(&event) {
                continue;
            }
            self.note(&event);
            if event["event_id"] != id.as_str() {
                self.ledger.fault(format!("{} got {event} under the id {id}", self.name));
            }
            *last = Some(id);
            let token = question(&event).filter(|it| matches!(Plan::of(it), Plan::ByStream(_)));
            if let (Some(token), Some(asked)) = (token, asked) {
                asked.send(token.to_owned()).expect("someone answers");
            }
        }
    }

    /// Writes down what came. That something is missing may be told only where nobody could know better.
    fn note(&self, event: &Value) {
        let word = |name: &str| event[name].as_str().unwrap_or_default();
        let gap = &event["extensions"]["agentvoice"]["gap"];
        if !gap.is_null() {
            self.ledger.gap(&self.name);
            if self.wants == Wants::Everything {
                self.ledger.fault(format!("{} was told of a gap: {gap}", self.name));
            }
        }
        let begin = event["position"].as_u64();
        let text = begin.zip(event["chunk"].as_str()).map(|(begin, chunk)| Text {
            session_id: word("session_id").to_owned(),
            begin,
            end: begin + chunk.chars().count() as u64,
            is_complete: event["complete"] == true,
        });
        self.ledger.heard(&self.name, Place::new(word("session_id"), word("event_id")), text);
    }

    /// Someone who thinks for a while and then answers, each question until the answer has arrived.
    fn start_to_answer(&self, subscription: &str) -> Sender<String> {
        let (sender, questions) = mpsc::channel();
        let person = Person {
            board: Arc::clone(&self.board),
            ledger: Arc::clone(&self.ledger),
            subscription: subscription.to_owned(),
            random: self.random.clone(),
        };
        thread::spawn(move || person.answer(&questions));
        sender
    }

    /// Listens on a WebSocket. Says when its subscription stands.
    pub(crate) fn socket(self, ready: &Sender<()>) {
        let mut known = Known { ready: Some(ready.clone()), ..Known::default() };
        while !self.board.is_over() {
            if self.hear_socket(&mut known).is_ok() {
                return;
            }
        }
    }

    fn hear_socket(&self, known: &mut Known) -> Result<(), Cut> {
        let mut socket = Socket::open(&self.board, "/aaep/v1/ws", "aaep.v1")?;
        let before = known.subscription.as_deref().zip(known.last.as_deref());
        socket.send(&request(self.wants, before))?;
        let accepted = socket.next()?;
        let Some(subscription) = accepted["subscription_id"].as_str() else {
            self.ledger.fault(format!("{} was not let in: {accepted}", self.name));
            return Ok(());
        };
        known.subscription = Some(subscription.to_owned());
        self.ledger.connected(&self.name, self.wants, socket.life);
        if let Some(ready) = known.ready.take() {
            ready.send(()).expect("someone waits");
        }
        // What was answered on another connection may not have arrived.
        for token in &known.open {
            self.answer_on(&mut socket, subscription, token)?;
        }
        loop {
            let message = socket.next()?;
            if is_goodbye(&message) {
                continue;
            }
            if message["type"] == "agentvoice:error" {
                // The answer had arrived on the connection before, or came too late.
                let is_known = message["error"] == "invalid_token";
                if !is_known {
                    self.ledger.fault(format!("{} was told {message}", self.name));
                }
                continue;
            }
            self.note(&message);
            known.last = message["event_id"].as_str().map(str::to_owned);
            let resolution = &message["extensions"]["agentvoice"]["resolution"];
            if let Some(token) = resolution["reply_token"].as_str() {
                known.open.remove(token);
                known.settled.insert(token.to_owned());
            }
            let token = question(&message).filter(|it| matches!(Plan::of(it), Plan::BySocket(_)));
            if let Some(token) =
                token.filter(|it| self.answering.is_some() && !known.settled.contains(*it))
            {
                known.open.insert(token.to_owned());
                self.answer_on(&mut socket, subscription, token)?;
            }
        }
    }

    fn answer_on(&self, socket: &mut Socket, subscription: &str, token: &str) -> Result<(), Cut> {
        let Some(decision) = Plan::of(token).decision() else { return Ok(()) };
        self.ledger.ask(token, |ask| ask.say(decision));
        socket.send(&reply(subscription, token, decision))
    }
}

/// Whether a hub that stops in order says so. The subscription goes on after it.
fn is_goodbye(message: &Value) -> bool {
    message["type"] == "subscription.close" && message["reason_code"] == "producer_shutdown"
}

/// What a subscriber on a WebSocket keeps from one connection to the next.
#[derive(Default)]
struct Known {
    ready: Option<Sender<()>>,
    subscription: Option<String>,
    last: Option<String>,
    /// The questions that it has answered and of which it has not heard how they were settled.
    open: BTreeSet<String>,
    settled: BTreeSet<String>,
}

/// The token of an event that is a question.
fn question(event: &Value) -> Option<&str> {
    let is_question = event["type"] == "aaep:agent.awaiting.confirmation";
    event["reply_token"].as_str().filter(|_| is_question)
}

/// Someone who answers by POST.
struct Person {
    board: Arc<Board>,
    ledger: Arc<Ledger>,
    subscription: String,
    random: Random,
}

impl Person {
    fn answer(mut self, questions: &Receiver<String>) {
        let mut client = Client::new(&self.board);
        let mut answered = BTreeSet::new();
        while let Ok(token) = questions.recv() {
            if answered.insert(token.clone()) {
                thread::sleep(Duration::from_millis(self.random.below(THINKING_MS)));
                self.answer_one(&mut client, &token);
            }
        }
    }

    fn answer_one(&self, client: &mut Client, token: &str) {
        let Some(decision) = Plan::of(token).decision() else { return };
        self.ledger.ask(token, |ask| ask.say(decision));
        let reply = reply(&self.subscription, token, decision);
        let mut is_first = true;
        while !self.board.is_over() {
            let Ok(answer) = client.post("/aaep/v1/replies", &reply) else {
                is_first = false;
                continue;
            };
            match answer.status {
                204 => self.ledger.ask(token, |ask| ask.count(decision)),
                503 => continue,
                // It had arrived, and that answer was cut off.
                400 if !is_first => {}
                status => self.ledger.fault(format!(
                    "the first reply to {token} was answered with {status}: {}",
                    answer.text
                )),
            }
            return;
        }
    }
}
