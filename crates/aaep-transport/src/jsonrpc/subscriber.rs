//! The subscriber's end: how a subscriber's messages are said to a producer, and what the producer means.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::line::{call, error, result};
use super::{
    CLOSE, ERROR, ERROR_TYPE, EVENT, Id, Line, MAX_WAITING_REQUESTS, METHOD_NOT_FOUND, PING,
    RENEGOTIATE, REPLY, RpcError, SEND, SUBSCRIBE, type_of,
};
use crate::link::LinkEnd;
use crate::wire::CLOSED;

/// How many lines that mean nothing a producer may send before it is given up. A few are borne with: a
/// program easily prints something to the wrong place.
const MAX_WRONG_LINES: u32 = 64;

/// What a line of a producer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A message for the subscriber.
    Message(String),
    /// A line for the producer.
    Say(String),
    /// Nothing.
    Nothing,
    /// Nothing that can be understood. It is passed over; this is what is wrong, fit for a terminal.
    Wrong(String),
    /// The conversation is over.
    End(LinkEnd),
}

/// The subscriber's end of one conversation.
#[derive(Debug, Default)]
pub struct SubscriberEnd {
    last_id: u64,
    /// The requests that wait for their answers, and by which method.
    waiting: BTreeMap<Id, (u64, &'static str)>,
    wrong_lines: u32,
}

impl SubscriberEnd {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        SubscriberEnd::default()
    }

    /// A message of the subscriber, as a line.
    pub fn say(&mut self, message: &str) -> String {
        let kind = type_of(message).unwrap_or_default();
        let (method, is_request) = match &*kind {
            "subscription.request" => (SUBSCRIBE, true),
            "subscription.renegotiate" => (RENEGOTIATE, true),
            "subscription.close" => (CLOSE, false),
            "confirmation.reply" | "clarification.reply" => (REPLY, false),
            kind if kind.starts_with("agentvoice:ask.") => (REPLY, false),
            _ => (SEND, true),
        };
        let id = is_request.then(|| self.ask(method));
        call(id.as_ref(), method, message)
    }

    fn ask(&mut self, method: &'static str) -> Id {
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            // Whoever does not answer so many does not answer the first of them.
            let oldest = self.waiting.iter().min_by_key(|(_, (order, _))| *order);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.waiting.remove(&oldest);
            }
        }
        self.last_id += 1;
        let id = Id::number(self.last_id);
        self.waiting.insert(id.clone(), (self.last_id, method));
        id
    }

    /// Takes a line of the producer.
    pub fn hear(&mut self, line: &str) -> Heard {
        match Line::read(line) {
            Ok(Line::Call { id, method, params }) => self.called(id, &method, params),
            Ok(Line::Result { id, result }) => match self.waiting.remove(&id) {
                Some(_) if type_of(&result).is_some() => Heard::Message(result),
                // Nothing more is said than that it was taken.
                Some((_, SEND)) => Heard::Nothing,
                Some((_, method)) => {
                    self.wrong(format!("The answer to {method} is no message of AAEP."))
                }
                None => self.wrong("A result came for which nothing was asked.".to_owned()),
            },
            Ok(Line::Error { id, error }) => match self.waiting.remove(&id) {
                Some((_, method)) => refused(method, error),
                None if id == Id::null() => Heard::Message(complaint(&error)),
                None => self.wrong("An error came for which nothing was asked.".to_owned()),
            },
            Err(wrong) => self.wrong(wrong.error.message),
        }
    }

    fn called(&mut self, id: Option<Id>, method: &str, params: Option<String>) -> Heard {
        let kind = params.as_deref().and_then(type_of).map(std::borrow::Cow::into_owned);
        match (method, id, params, kind) {
            (PING, Some(id), ..) => Heard::Say(result(&id, "{}")),
            (CLOSE, _, Some(params), Some(kind)) if kind == "subscription.close" => {
                Heard::Message(params)
            }
            (CLOSE, _, params, _) => Heard::End(closed(params.as_deref())),
            (EVENT | ERROR, None, Some(params), Some(_)) => Heard::Message(params),
            (EVENT, ..) => self
                .wrong("aaep.event must be a notification whose params are the event.".to_owned()),
            (_, Some(id), ..) => {
                let why = format!("There is no method {} here.", aaep::printable(method));
                let not_found = RpcError { code: METHOD_NOT_FOUND, message: why, data: None };
                Heard::Say(error(&id, &not_found))
            }
            // A ping that wants no answer, or one that is not known: there can be new ones.
            (_, None, ..) => Heard::Nothing,
        }
    }

    fn wrong(&mut self, what: String) -> Heard {
        self.wrong_lines += 1;
        if self.wrong_lines < MAX_WRONG_LINES {
            return Heard::Wrong(what);
        }
        Heard::End(LinkEnd::Violation(format!("Too many lines could not be understood. {what}")))
    }
}

/// What a refused request means: for a subscription the end, and for everything else a complaint.
fn refused(method: &str, error: RpcError) -> Heard {
    if let Some(data) = &error.data {
        let kind = type_of(data).map(std::borrow::Cow::into_owned);
        let is_message = kind.is_some_and(|kind| {
            kind == "subscription.rejected" || (kind == ERROR_TYPE && method != SUBSCRIBE)
        });
        if is_message {
            return Heard::Message(data.clone());
        }
    }
    if method == SUBSCRIBE {
        return Heard::End(LinkEnd::Refused { reason: error.message });
    }
    Heard::Message(complaint(&error))
}

/// An error of JSON-RPC as the message that says what could not be taken.
fn complaint(error: &RpcError) -> String {
    let name = match error.code {
        METHOD_NOT_FOUND => "not_for_here",
        _ => "refused",
    };
    json!({ "type": ERROR_TYPE, "error": name, "code": error.code, "message": error.message })
        .to_string()
}

/// How a conversation was ended, as far as it was said.
fn closed(params: Option<&str>) -> LinkEnd {
    let params: Value = params.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_ours = params.get("type").and_then(Value::as_str) == Some(CLOSED);
    let code = params.get("code").filter(|_| is_ours).and_then(Value::as_u64);
    LinkEnd::Closed {
        code: code.and_then(|code| u16::try_from(code).ok()),
        reason: text("reason").or_else(|| text("reason_message")).unwrap_or_default(),
    }
}
