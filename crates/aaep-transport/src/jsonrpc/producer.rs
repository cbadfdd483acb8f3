//! The producer's end: what a subscriber wants, and how a producer's messages are said to it.
//!
//! What is about the subscription is said on the connection of the subscriber, where each such message has one
//! answer, in order; or its end. Everything else is told the producer by itself, which answers at once. So
//! every answer has the id of its own request, and no answer is taken for that of another one.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::line::{call, error, result};
use super::{
    CLOSE, ERROR, ERROR_TYPE, EVENT, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, Line,
    MAX_WAITING_REQUESTS, METHOD_NOT_FOUND, PARSE_ERROR, PING, REFUSED, RENEGOTIATE, REPLY,
    RpcError, SEND, SUBSCRIBE, type_of,
};
use crate::framed::Violation;
use crate::wire::CLOSED;

/// The code of a connection that broke off without a word (RFC 6455 §7.1.5).
const CUT_CODE: u16 = 1006;

/// What is to be done about a line of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// A message about the subscription, to be said on the subscriber's connection. Its answer is the next one
    /// there.
    Subscription(String),
    /// Another message for the producer. What comes of it goes to [`ProducerEnd::answer`].
    Tell {
        /// The id to answer, if an answer is wanted.
        id: Option<Id>,
        /// The message.
        message: String,
    },
    /// A line for the subscriber.
    Say(String),
    /// Nothing.
    Nothing,
}

/// The producer's end of one conversation.
#[derive(Debug, Default)]
pub struct ProducerEnd {
    /// What was said on the connection and is not answered yet, the oldest first.
    waiting: VecDeque<Waiting>,
}

/// Something that waits for its answer on the connection.
#[derive(Debug)]
enum Waiting {
    /// A request for terms.
    Terms(Id),
    /// The wish to end, which has an id if an answer is wanted.
    Close(Option<Id>),
}

impl ProducerEnd {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        ProducerEnd::default()
    }

    /// Takes a line of the subscriber.
    pub fn hear(&mut self, line: &str) -> Wish {
        match Line::read(line) {
            Ok(Line::Call { id, method, params }) => self.take(id, &method, params),
            // Nothing is ever asked of a subscriber here, so nothing waits for an answer.
            Ok(Line::Result { .. } | Line::Error { .. }) => Wish::Nothing,
            Err(wrong) => Wish::Say(error(&wrong.id, &wrong.error)),
        }
    }

    fn take(&mut self, id: Option<Id>, method: &str, params: Option<String>) -> Wish {
        if method == PING {
            return id.map_or(Wish::Nothing, |id| Wish::Say(result(&id, "{}")));
        }
        let is_right: fn(&str) -> bool = match method {
            SUBSCRIBE => |kind| kind == "subscription.request",
            RENEGOTIATE => |kind| kind == "subscription.renegotiate",
            REPLY => |kind| {
                matches!(kind, "confirmation.reply" | "clarification.reply")
                    || kind.starts_with("agentvoice:ask.")
            },
            CLOSE => |kind| kind == "subscription.close",
            SEND => |kind| kind.starts_with("agentvoice:"),
            _ => {
                let method = aaep::printable(method).into_owned();
                let why = format!("There is no method {method} here.");
                return refuse(id.as_ref(), METHOD_NOT_FOUND, &why);
            }
        };
        let params = params.filter(|params| type_of(params).is_some_and(|kind| is_right(&kind)));
        let Some(message) = params else {
            let why = format!(
                "The params of {method} must be the AAEP message that belongs to it, with its type."
            );
            return refuse(id.as_ref(), INVALID_PARAMS, &why);
        };
        let waiting = match (method, id) {
            (SUBSCRIBE | RENEGOTIATE, Some(id)) => Waiting::Terms(id),
            (SUBSCRIBE | RENEGOTIATE, None) => {
                let why = format!(
                    "{method} needs an id, because its answer says what was granted. Add one."
                );
                return refuse(None, INVALID_REQUEST, &why);
            }
            (CLOSE, id) => Waiting::Close(id),
            (_, id) => return Wish::Tell { id, message },
        };
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            let why = "Too many requests wait for their answers. Wait for one, then try again.";
            let (Waiting::Terms(id) | Waiting::Close(Some(id))) = waiting else {
                return refuse(None, INTERNAL_ERROR, why);
            };
            return refuse(Some(&id), INTERNAL_ERROR, why);
        }
        self.waiting.push_back(waiting);
        Wish::Subscription(message)
    }

    /// A line that was too long or no text.
    pub fn unread(&self, violation: Violation) -> String {
        let code = match violation {
            Violation::TooBig => INVALID_REQUEST,
            Violation::InvalidText => PARSE_ERROR,
        };
        error(&Id::null(), &rpc_error(code, &violation.to_string()))
    }

    /// A message of the producer on the subscriber's connection, as a line, and whether it is the last one
    /// there.
    pub fn say(&mut self, message: &str) -> (String, bool) {
        let kind = type_of(message).unwrap_or_default();
        let is_answer = matches!(&*kind, "subscription.accepted" | "subscription.rejected");
        if (is_answer || kind == ERROR_TYPE)
            && let Some(Waiting::Terms(id) | Waiting::Close(Some(id))) = self.waiting.pop_front()
        {
            return (answer_to(&id, message), false);
        }
        let method = match &*kind {
            "subscription.close" | CLOSED => CLOSE,
            ERROR_TYPE => ERROR,
            _ => EVENT,
        };
        (call(None, method, message), kind == CLOSED)
    }

    /// What came of a message that was told the producer, as a line: for a request its answer; without an id
    /// only what is wrong, because nobody may believe that a reply counts that does not.
    pub fn answer(&self, id: Option<&Id>, answer: &str) -> Option<String> {
        match id {
            Some(id) => Some(answer_to(id, answer)),
            None if type_of(answer).is_some_and(|kind| kind == ERROR_TYPE) => {
                Some(call(None, ERROR, answer))
            }
            None => None,
        }
    }

    /// The subscriber's connection broke off, as it does for whoever reads far too slowly. It is told so, with
    /// the code that a WebSocket has for it.
    pub fn cut(&mut self) -> Vec<String> {
        let reason =
            "The connection broke off, perhaps because too little was read. Subscribe again.";
        let closed = json!({ "type": CLOSED, "code": CUT_CODE, "reason": reason });
        let mut lines = self.gone();
        lines.push(call(None, CLOSE, &closed.to_string()));
        lines
    }

    /// The subscriber's connection is gone: who wished for that has it, and nothing else that was asked for on it
    /// is answered any more.
    pub fn gone(&mut self) -> Vec<String> {
        let why = "The connection ended before there was an answer. Ask again with aaep.subscribe.";
        let lines = self.waiting.drain(..).filter_map(|waiting| match waiting {
            Waiting::Terms(id) => Some(error(&id, &rpc_error(INTERNAL_ERROR, why))),
            Waiting::Close(id) => id.map(|id| result(&id, "{}")),
        });
        lines.collect()
    }
}

/// The answer to a request: a result, or if it was refused an error with all that was said.
fn answer_to(id: &Id, answer: &str) -> String {
    if type_of(answer).is_none_or(|kind| kind != ERROR_TYPE) {
        return result(id, answer);
    }
    let body: Value = serde_json::from_str(answer).unwrap_or_default();
    let message = body.get("message").and_then(Value::as_str).unwrap_or("It was refused.");
    let refused =
        RpcError { code: REFUSED, message: message.to_owned(), data: Some(answer.to_owned()) };
    error(id, &refused)
}

/// Says what is wrong: as the answer to a request, or by itself.
fn refuse(id: Option<&Id>, code: i64, why: &str) -> Wish {
    if let Some(id) = id {
        return Wish::Say(error(id, &rpc_error(code, why)));
    }
    let body = json!({ "type": ERROR_TYPE, "error": "wrong_request", "message": why });
    Wish::Say(call(None, ERROR, &body.to_string()))
}

fn rpc_error(code: i64, message: &str) -> RpcError {
    RpcError { code, message: message.to_owned(), data: None }
}
