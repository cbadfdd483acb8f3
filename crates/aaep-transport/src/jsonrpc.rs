//! JSON-RPC 2.0 with one message per line, as processes speak it on standard input and output (B.6).
//!
//! This module reads and writes envelopes; [`ProducerEnd`] and [`SubscriberEnd`] convert them to AAEP messages
//! and back, one for each end of the wire. The content of an envelope is passed on unchanged: only its `type` is
//! read. Nothing here reads or writes a stream.

mod line;
mod producer;
mod subscriber;
#[cfg(test)]
mod tests;

pub use line::{MAX_ID_BYTES, NotALine, RpcError, RpcId, RpcLine};
pub use producer::{ProducerEnd, SubscriberLine};
pub use subscriber::{ProducerLine, SubscriberEnd};

use std::borrow::Cow;

use serde::Deserialize;

use crate::wire::MAX_MESSAGE_BYTES;

/// The longest line that is read: the largest usual message, and its envelope.
pub const MAX_LINE_BYTES: u32 = MAX_MESSAGE_BYTES + 4096;

/// How many requests may wait for their answers.
pub const MAX_WAITING_REQUESTS: usize = 64;

/// Carries an event, to the subscriber.
pub const EVENT: &str = "aaep.event";
/// Requests a subscription, from the producer.
pub const SUBSCRIBE: &str = "aaep.subscribe";
/// Requests other terms, from the producer.
pub const RENEGOTIATE: &str = "aaep.renegotiate";
/// Carries a reply to an ask, to the producer.
pub const REPLY: &str = "aaep.reply";
/// Ends a subscription, in either direction.
pub const CLOSE: &str = "aaep.close";
/// Requests a sign of life, in either direction.
pub const PING: &str = "aaep.ping";
/// Carries every other message of our extension, to the producer.
pub const SEND: &str = "agentvoice.send";
/// Reports that a message without an id was not accepted, to the subscriber.
pub const ERROR: &str = "agentvoice.error";

/// The line is not valid JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The line is JSON, but not a JSON-RPC message that can be accepted.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method takes other parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// It could not be done now.
pub const INTERNAL_ERROR: i64 = -32603;
/// The producer did not accept the message; `data` is its `agentvoice:error`.
pub const REFUSED: i64 = -32000;

/// The type of the message that reports an error.
const ERROR_TYPE: &str = "agentvoice:error";

/// The `type` of an AAEP message, if it is an object that has one.
fn type_of(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct TypeField<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    // Serde would accept an array as an object with its members in order.
    if !json.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str::<TypeField<'_>>(json).ok().map(|typed| typed.kind)
}
