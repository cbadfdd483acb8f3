//! A listener on plain lines: it subscribes, tells what it hears line by line, and lets the person
//! answer. It never answers for the person unless it was told to on the command line.
//!
//! Nothing is drawn twice. A prompt stands at the beginning of a line without an end, so that a screen
//! reader reads it when it comes. What was typed before a question came does not answer it.

mod keyboard;
mod reply;

use std::io::Write as _;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use aaep_transport::sse::Parser;
use serde_json::{Value, json};

use super::agent::AGENT_ID;
use super::{Answering, words};
use crate::agent::{not_answered, refused, strange};
use crate::console::Failure;
use crate::http::{Client, NoAnswer, Pieces, Request};
use crate::keyboard::TypedLine;
use crate::keys::tell;
use keyboard::Keyboard;
use reply::{Open, Understood};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the stream may stay open: for longer than anyone follows a demonstration.
const STREAM_TIMEOUT: Duration = Duration::from_hours(24);

/// The longest event that is taken from the stream.
const MAX_EVENT_BYTES: usize = 256 * 1024;

/// What the listener hears, from the hub or from the person.
pub(super) enum Heard {
    Event(Value),
    Typed(TypedLine),
    /// Nobody types any more.
    KeyboardGone,
    StreamEnded(Option<NoAnswer>),
}

/// Follows one session from its prompt to its end.
pub(super) fn listen(client: &Client, answering: Option<Answering>) -> Result<(), Failure> {
    let subscription_id = subscribe(client, answering != Some(Answering::None))?;
    let path = format!("/aaep/v1/events?subscription_id={subscription_id}");
    let request = Request { method: "GET", path: &path, body: None, timeout: STREAM_TIMEOUT };
    let stream = client.stream(&request).map_err(|error| not_answered(client, &error))?;
    if stream.status() != 200 {
        return Err(strange(client));
    }
    let (sender, heard) = mpsc::channel();
    let keyboard = if answering.is_none() { Some(Keyboard::new(sender.clone())) } else { None };
    thread::spawn(move || hear(stream, &sender));
    let session_id = prompt(client, &subscription_id)?;
    let mut listener = Listener {
        client,
        subscription_id,
        session_id,
        answering,
        keyboard,
        open: None,
        asked: None,
    };
    for heard in heard {
        if listener.take(heard)? {
            return Ok(());
        }
    }
    Err(strange(client))
}

fn subscribe(client: &Client, can_reply: bool) -> Result<String, Failure> {
    let request = json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "aaep-demo",
        "subscriber_name": "aaep demo",
        "capabilities": {
            "languages": ["en"],
            "coalesce_boundaries": ["sentence", "completion"],
            "supports_confirmation_reply": can_reply,
            "supports_clarification_reply": can_reply,
            "supported_conformance_levels": if can_reply { json!([1, 2, 3]) } else { json!([1]) },
            "supported_extensions": [aaep::extension::CONTEXT],
        },
    });
    let answer = post(client, "/aaep/v1/subscriptions", &request)?;
    let id =
        answer["subscription_id"].as_str().filter(|it| aaep::SubscriptionId::parse(it).is_ok());
    id.map(str::to_owned).ok_or_else(|| strange(client))
}

fn prompt(client: &Client, subscription_id: &str) -> Result<String, Failure> {
    let text = "Find old photos that I could delete.";
    tell(&format!("You ask {AGENT_ID}: {text}"))?;
    let message = json!({
        "type": "agentvoice:agent.prompt",
        "subscription_id": subscription_id,
        "agent_id": AGENT_ID,
        "text": text,
    });
    let answer = post(client, "/aaep/v1/replies", &message)?;
    answer["session_id"].as_str().map(str::to_owned).ok_or_else(|| strange(client))
}

fn post(client: &Client, path: &str, message: &Value) -> Result<Value, Failure> {
    let body = message.to_string();
    let body = Some(("application/json", body.as_bytes()));
    let request = Request { method: "POST", path, body, timeout: TIMEOUT };
    let answer = client.send(&request).map_err(|error| not_answered(client, &error))?;
    if !answer.is_success() {
        return Err(refused(client, &answer));
    }
    Ok(answer.json().unwrap_or_default())
}

/// Passes on what the stream brings, until it ends.
fn hear(mut stream: Pieces, heard: &Sender<Heard>) {
    let mut parser = Parser::default();
    let ended = loop {
        match stream.next() {
            Ok(Some(bytes)) => {
                let Ok(events) = parser.push(&bytes, MAX_EVENT_BYTES) else { break None };
                for event in events {
                    let Ok(event) = serde_json::from_str(&event.data) else { continue };
                    if heard.send(Heard::Event(event)).is_err() {
                        return;
                    }
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let _ = heard.send(Heard::StreamEnded(ended));
}

struct Listener<'c> {
    client: &'c Client,
    subscription_id: String,
    session_id: String,
    answering: Option<Answering>,
    keyboard: Option<Keyboard>,
    /// The question that waits for the person.
    open: Option<Open>,
    /// When all of it had been written.
    asked: Option<Instant>,
}

impl Listener<'_> {
    /// Takes in what was heard; whether the session has ended.
    fn take(&mut self, heard: Heard) -> Result<bool, Failure> {
        match heard {
            Heard::Event(event) => self.hear(&event),
            Heard::Typed(line) => self.typed(&line).map(|()| false),
            Heard::KeyboardGone => self.keyboard_gone().map(|()| false),
            Heard::StreamEnded(Some(error)) => Err(not_answered(self.client, &error)),
            Heard::StreamEnded(None) => Err(strange(self.client)),
        }
    }

    fn hear(&mut self, event: &Value) -> Result<bool, Failure> {
        let settled = &event["extensions"]["agentvoice"]["resolution"]["reply_token"];
        if self.open.as_ref().is_some_and(|open| settled == open.token.as_str()) {
            self.open = None;
            if self.keyboard.is_some() {
                // The prompt stands on a line of its own that nobody ended.
                tell("")?;
            }
        }
        for line in words::lines(event) {
            tell(&line)?;
        }
        if let Some(open) = Open::of(event) {
            self.asked(open)?;
        }
        let is_end = event["type"].as_str().is_some_and(|it| {
            ["completed", "errored", "cancelled"]
                .iter()
                .any(|end| it == format!("aaep:agent.session.{end}"))
        });
        Ok(is_end && event["session_id"] == self.session_id.as_str())
    }

    fn asked(&mut self, open: Open) -> Result<(), Failure> {
        match self.answering {
            Some(Answering::Accept) => self.reply(&open, &open.yes()),
            Some(Answering::Reject) => self.reply(&open, &open.no()),
            Some(Answering::None) => Ok(()),
            None => {
                self.open = Some(open);
                self.asked = Some(Instant::now());
                self.ask_person()
            }
        }
    }

    fn ask_person(&mut self) -> Result<(), Failure> {
        let (Some(open), Some(keyboard)) = (&self.open, &mut self.keyboard) else { return Ok(()) };
        let mut output = std::io::stdout();
        let written = write!(output, "{}", open.prompt()).and_then(|()| output.flush());
        written.map_err(|error| Failure::of_output(&error))?;
        keyboard.read_a_line();
        Ok(())
    }

    fn typed(&mut self, line: &TypedLine) -> Result<(), Failure> {
        if self.open.is_none() {
            return tell("Nothing is asked now. You will be asked.");
        }
        if self.asked.is_some_and(|asked| line.begun < asked) {
            let typed = aaep::printable(line.text.trim());
            tell(&format!(
                "You typed \"{typed}\". That was for another question. Nothing was answered."
            ))?;
            return self.ask_person();
        }
        let Some(open) = self.open.take() else { return Ok(()) };
        match open.understand(&line.text) {
            Understood::Reply(answer) => self.reply(&open, &answer),
            Understood::NotYet => {
                self.open = Some(open);
                self.ask_person()
            }
        }
    }

    /// Nobody can answer any more: consent is refused, and the rest is stopped.
    fn keyboard_gone(&mut self) -> Result<(), Failure> {
        self.keyboard = None;
        self.answering = Some(Answering::Reject);
        let Some(open) = self.open.take() else { return Ok(()) };
        tell("")?;
        tell("Nobody types any more, so the answer is no.")?;
        self.reply(&open, &open.no())
    }

    fn reply(&self, open: &Open, answer: &Value) -> Result<(), Failure> {
        let reply = open.message(answer, &self.subscription_id);
        let body = reply.to_string();
        let body = Some(("application/json", body.as_bytes()));
        let request = Request { method: "POST", path: "/aaep/v1/replies", body, timeout: TIMEOUT };
        let answer =
            self.client.send(&request).map_err(|error| not_answered(self.client, &error))?;
        if !answer.is_success() {
            tell("That answer came too late or does not count. Listen for how it was settled.")?;
        }
        Ok(())
    }
}
