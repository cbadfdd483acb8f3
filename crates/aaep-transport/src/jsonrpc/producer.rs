//! The producer's end: interprets a subscriber's lines, and writes a producer's messages as lines.
//!
//! Messages about the subscription are sent on the subscriber's connection, where each one gets one answer, in
//! order, or the connection ends. All other messages go directly to the producer, which answers at once. So every
//! answer carries the id of its own request, and no answer is mistaken for another.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::line::{call, error, result};
use super::{
    CLOSE, ERROR, ERROR_TYPE, EVENT, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST,
    MAX_WAITING_REQUESTS, METHOD_NOT_FOUND, PARSE_ERROR, PING, REFUSED, RENEGOTIATE, REPLY,
    RpcError, RpcId, RpcLine, SEND, SUBSCRIBE, type_of,
};
use crate::framed::FrameViolation;
use crate::wire::CLOSED;

/// The code of a connection that broke off without a close (RFC 6455 §7.1.5).
const CUT_CODE: u16 = 1006;

/// What to do about a line of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberLine {
    /// Send this message about the subscription on the subscriber's connection. The next answer there belongs to
    /// it.
    Subscription(String),
    /// Send this message to the producer, and pass the result to [`ProducerEnd::answer`].
    Tell {
        /// The id to answer, if an answer is wanted.
        id: Option<RpcId>,
        /// The message.
        message: String,
    },
    /// Send this line to the subscriber.
    Say(String),
    /// Do nothing.
    Nothing,
}

/// The producer's end of one conversation.
#[derive(Debug, Default)]
pub struct ProducerEnd {
    /// The messages on the connection that are not answered yet, oldest first.
    waiting: VecDeque<PendingRequest>,
}

/// A message that waits for its answer on the connection.
#[derive(Debug)]
enum PendingRequest {
    /// A request for a subscription or other terms.
    Terms(RpcId),
    /// A request to close, with its id if an answer is wanted.
    Close(Option<RpcId>),
}

impl ProducerEnd {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        ProducerEnd::default()
    }

    /// Interprets a line of the subscriber.
    pub fn hear(&mut self, line: &str) -> SubscriberLine {
        match RpcLine::read(line) {
            Ok(RpcLine::Call { id, method, params }) => self.take(id, &method, params),
            // Nothing is ever requested from a subscriber here, so no answer is expected.
            Ok(RpcLine::Result { .. } | RpcLine::Error { .. }) => SubscriberLine::Nothing,
            Err(wrong) => SubscriberLine::Say(error(&wrong.id, &wrong.error)),
        }
    }

    fn take(&mut self, id: Option<RpcId>, method: &str, params: Option<String>) -> SubscriberLine {
        if method == PING {
            return id.map_or(SubscriberLine::Nothing, |id| SubscriberLine::Say(result(&id, "{}")));
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
            (SUBSCRIBE | RENEGOTIATE, Some(id)) => PendingRequest::Terms(id),
            (SUBSCRIBE | RENEGOTIATE, None) => {
                let why = format!(
                    "{method} needs an id, because its answer says what was granted. Add one."
                );
                return refuse(None, INVALID_REQUEST, &why);
            }
            (CLOSE, id) => PendingRequest::Close(id),
            (_, id) => return SubscriberLine::Tell { id, message },
        };
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            let why = "Too many requests wait for their answers. Wait for one, then try again.";
            let (PendingRequest::Terms(id) | PendingRequest::Close(Some(id))) = waiting else {
                return refuse(None, INTERNAL_ERROR, why);
            };
            return refuse(Some(&id), INTERNAL_ERROR, why);
        }
        self.waiting.push_back(waiting);
        SubscriberLine::Subscription(message)
    }

    /// Writes the answer to a line that was too long or not valid text.
    pub fn unread(&self, violation: FrameViolation) -> String {
        let code = match violation {
            FrameViolation::TooBig => INVALID_REQUEST,
            FrameViolation::InvalidText => PARSE_ERROR,
        };
        error(&RpcId::null(), &rpc_error(code, &violation.to_string()))
    }

    /// Writes a message from the subscriber's connection as a line. The flag says whether it is the last one.
    pub fn say(&mut self, message: &str) -> (String, bool) {
        let kind = type_of(message).unwrap_or_default();
        let is_answer = matches!(&*kind, "subscription.accepted" | "subscription.rejected");
        if (is_answer || kind == ERROR_TYPE)
            && let Some(PendingRequest::Terms(id) | PendingRequest::Close(Some(id))) =
                self.waiting.pop_front()
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

    /// Writes the result of a message that went directly to the producer. A request gets its answer. A message
    /// without an id gets only an error, so that nobody believes that a refused reply counts.
    pub fn answer(&self, id: Option<&RpcId>, answer: &str) -> Option<String> {
        match id {
            Some(id) => Some(answer_to(id, answer)),
            None if type_of(answer).is_some_and(|kind| kind == ERROR_TYPE) => {
                Some(call(None, ERROR, answer))
            }
            None => None,
        }
    }

    /// Handles a connection that broke off, for example because the subscriber reads far too slowly. Tells the
    /// subscriber with the code that a WebSocket uses for this.
    pub fn cut(&mut self) -> Vec<String> {
        let reason =
            "The connection broke off, perhaps because too little was read. Subscribe again.";
        let closed = json!({ "type": CLOSED, "code": CUT_CODE, "reason": reason });
        let mut lines = self.gone();
        lines.push(call(None, CLOSE, &closed.to_string()));
        lines
    }

    /// Handles the end of the subscriber's connection: answers a request to close, and fails all other open
    /// requests.
    pub fn gone(&mut self) -> Vec<String> {
        let why = "The connection ended before there was an answer. Ask again with aaep.subscribe.";
        let lines = self.waiting.drain(..).filter_map(|waiting| match waiting {
            PendingRequest::Terms(id) => Some(error(&id, &rpc_error(INTERNAL_ERROR, why))),
            PendingRequest::Close(id) => id.map(|id| result(&id, "{}")),
        });
        lines.collect()
    }
}

/// Writes the answer to a request: a result, or an error with everything that the producer said.
fn answer_to(id: &RpcId, answer: &str) -> String {
    if type_of(answer).is_none_or(|kind| kind != ERROR_TYPE) {
        return result(id, answer);
    }
    let body: Value = serde_json::from_str(answer).unwrap_or_default();
    let message = body.get("message").and_then(Value::as_str).unwrap_or("It was refused.");
    let refused =
        RpcError { code: REFUSED, message: message.to_owned(), data: Some(answer.to_owned()) };
    error(id, &refused)
}

/// Reports an error: as the answer to a request, or by itself.
fn refuse(id: Option<&RpcId>, code: i64, why: &str) -> SubscriberLine {
    if let Some(id) = id {
        return SubscriberLine::Say(error(id, &rpc_error(code, why)));
    }
    let body = json!({ "type": ERROR_TYPE, "error": "wrong_request", "message": why });
    SubscriberLine::Say(call(None, ERROR, &body.to_string()))
}

fn rpc_error(code: i64, message: &str) -> RpcError {
    RpcError { code, message: message.to_owned(), data: None }
}
