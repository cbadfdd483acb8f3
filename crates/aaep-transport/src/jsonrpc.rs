//! JSON-RPC 2.0 with one message on each line, as processes speak it on standard input and output (B.6).
//!
//! This file reads and writes envelopes; [`ProducerEnd`] and [`SubscriberEnd`] turn them into AAEP messages and
//! back, one for each end of the wire. What an envelope carries is handed on as it is: JSON is never looked
//! into further than its `type`. Nothing here reads or writes a stream.

mod line;
mod producer;
mod subscriber;
#[cfg(test)]
mod tests;

pub use line::{Id, Line, MAX_ID_BYTES, NotALine, RpcError};
pub use producer::{ProducerEnd, Wish};
pub use subscriber::{Heard, SubscriberEnd};

use std::borrow::Cow;

use serde::Deserialize;

use crate::wire::MAX_MESSAGE_BYTES;

/// The longest line that is read: a message of the usual bound, and its envelope.
pub const MAX_LINE_BYTES: u32 = MAX_MESSAGE_BYTES + 4096;

/// How many requests may wait for their answers.
pub const MAX_WAITING_REQUESTS: usize = 64;

/// An event, to the subscriber.
pub const EVENT: &str = "aaep.event";
/// The request for a subscription, to the producer.
pub const SUBSCRIBE: &str = "aaep.subscribe";
/// The request for other terms, to the producer.
pub const RENEGOTIATE: &str = "aaep.renegotiate";
/// What a subscriber says about a question, to the producer.
pub const REPLY: &str = "aaep.reply";
/// The end of a subscription, either way.
pub const CLOSE: &str = "aaep.close";
/// A sign of life is asked for, either way.
pub const PING: &str = "aaep.ping";
/// Everything else that our extension lets a subscriber say, to the producer.
pub const SEND: &str = "agentvoice.send";
/// Something that came without an id could not be taken, to the subscriber.
pub const ERROR: &str = "agentvoice.error";

/// The line is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The line is JSON and no message of JSON-RPC that can be taken.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method here.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method takes other parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// It could not be done now.
pub const INTERNAL_ERROR: i64 = -32603;
/// The producer does not take what was said; `data` is its `agentvoice:error`.
pub const REFUSED: i64 = -32000;

/// The type of the message that says what could not be taken.
const ERROR_TYPE: &str = "agentvoice:error";

/// The `type` of an AAEP message, if it is an object that has one.
fn type_of(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    // Serde would take an array for an object with its members in order.
    if !json.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str::<Typed<'_>>(json).ok().map(|typed| typed.kind)
}
