//! The subscriber's end: writes a subscriber's messages as lines, and interprets a producer's lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::line::{call, error, result};
use super::{
    CLOSE, ERROR, ERROR_TYPE, EVENT, MAX_WAITING_REQUESTS, METHOD_NOT_FOUND, PING, RENEGOTIATE,
    REPLY, RpcError, RpcId, RpcLine, SEND, SUBSCRIBE, type_of,
};
use crate::link::LinkEnd;
use crate::wire::CLOSED;

/// How many meaningless lines a producer may send before the link ends. A few are tolerated: a program easily
/// prints something to the wrong place.
const MAX_WRONG_LINES: u32 = 64;

/// The meaning of a line of a producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProducerLine {
    /// A message for the subscriber.
    Message(String),
    /// A line to send to the producer.
    Say(String),
    /// Nothing.
    Nothing,
    /// The line cannot be understood and is skipped. The text says why, and is safe for a terminal.
    Wrong(String),
    /// The conversation has ended.
    End(LinkEnd),
}

/// The subscriber's end of one conversation.
#[derive(Debug, Default)]
pub struct SubscriberEnd {
    last_id: u64,
    /// The requests that wait for their answers: their order and their method.
    waiting: BTreeMap<RpcId, (u64, &'static str)>,
    wrong_lines: u32,
}

impl SubscriberEnd {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        SubscriberEnd::default()
    }

    /// Writes a message of the subscriber as a line.
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

    fn ask(&mut self, method: &'static str) -> RpcId {
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            // A producer that leaves this many requests open will not answer the oldest one either.
            let oldest = self.waiting.iter().min_by_key(|(_, (order, _))| *order);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.waiting.remove(&oldest);
            }
        }
        self.last_id += 1;
        let id = RpcId::number(self.last_id);
        self.waiting.insert(id.clone(), (self.last_id, method));
        id
    }

    /// Interprets a line of the producer.
    pub fn hear(&mut self, line: &str) -> ProducerLine {
        match RpcLine::read(line) {
            Ok(RpcLine::Call { id, method, params }) => self.called(id, &method, params),
            Ok(RpcLine::Result { id, result }) => match self.waiting.remove(&id) {
                Some(_) if type_of(&result).is_some() => ProducerLine::Message(result),
                // The answer says only that the message was accepted.
                Some((_, SEND)) => ProducerLine::Nothing,
                Some((_, method)) => {
                    self.wrong(format!("The answer to {method} is not an AAEP message."))
                }
                None => self.wrong("A result came for which nothing was asked.".to_owned()),
            },
            Ok(RpcLine::Error { id, error }) => match self.waiting.remove(&id) {
                Some((_, method)) => refused(method, error),
                None if id == RpcId::null() => ProducerLine::Message(complaint(&error)),
                None => self.wrong("An error came for which nothing was asked.".to_owned()),
            },
            Err(wrong) => self.wrong(wrong.error.message),
        }
    }

    fn called(&mut self, id: Option<RpcId>, method: &str, params: Option<String>) -> ProducerLine {
        let kind = params.as_deref().and_then(type_of).map(std::borrow::Cow::into_owned);
        match (method, id, params, kind) {
            (PING, Some(id), ..) => ProducerLine::Say(result(&id, "{}")),
            (CLOSE, _, Some(params), Some(kind)) if kind == "subscription.close" => {
                ProducerLine::Message(params)
            }
            (CLOSE, _, params, _) => ProducerLine::End(closed(params.as_deref())),
            (EVENT | ERROR, None, Some(params), Some(_)) => ProducerLine::Message(params),
            (EVENT, ..) => self
                .wrong("aaep.event must be a notification whose params are the event.".to_owned()),
            (_, Some(id), ..) => {
                let why = format!("There is no method {} here.", aaep::printable(method));
                let not_found = RpcError { code: METHOD_NOT_FOUND, message: why, data: None };
                ProducerLine::Say(error(&id, &not_found))
            }
            // A ping that wants no answer, or an unknown method: later versions may add methods.
            (_, None, ..) => ProducerLine::Nothing,
        }
    }

    fn wrong(&mut self, what: String) -> ProducerLine {
        self.wrong_lines += 1;
        if self.wrong_lines < MAX_WRONG_LINES {
            return ProducerLine::Wrong(what);
        }
        ProducerLine::End(LinkEnd::Violation(format!(
            "Too many lines could not be understood. {what}"
        )))
    }
}

/// The meaning of a refused request: for a subscription the end, otherwise an error message.
fn refused(method: &str, error: RpcError) -> ProducerLine {
    if let Some(data) = &error.data {
        let kind = type_of(data).map(std::borrow::Cow::into_owned);
        let is_message = kind.is_some_and(|kind| {
            kind == "subscription.rejected" || (kind == ERROR_TYPE && method != SUBSCRIBE)
        });
        if is_message {
            return ProducerLine::Message(data.clone());
        }
    }
    if method == SUBSCRIBE {
        return ProducerLine::End(LinkEnd::Refused { reason: error.message });
    }
    ProducerLine::Message(complaint(&error))
}

/// Converts a JSON-RPC error to the message that reports it.
fn complaint(error: &RpcError) -> String {
    let name = match error.code {
        METHOD_NOT_FOUND => "not_for_here",
        _ => "refused",
    };
    json!({ "type": ERROR_TYPE, "error": name, "code": error.code, "message": error.message })
        .to_string()
}

/// How a conversation was ended, as far as the producer says.
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
