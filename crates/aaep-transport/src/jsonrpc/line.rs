//! One line: a call or an answer, read within limits and written as JSON-RPC 2.0 prescribes.

use std::borrow::Cow;
use std::fmt;

use aaep::printable;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::json;
use serde_json::value::RawValue;

use super::{INVALID_REQUEST, PARSE_ERROR};

/// The longest accepted id, as it is written.
pub const MAX_ID_BYTES: usize = 256;

/// The longest method name and the longest error text that are kept.
const MAX_WORDS_BYTES: usize = 4096;

/// The id of a request: a string, a number or null, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RpcId(Box<str>);

impl RpcId {
    /// The id in an answer to a request whose id could not be read.
    pub fn null() -> Self {
        RpcId("null".into())
    }

    /// A number that we chose.
    pub fn number(number: u64) -> Self {
        RpcId(number.to_string().into())
    }

    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    fn read(json: &RawValue) -> Option<Self> {
        let text = json.get();
        let is_of_a_kind = text == "null"
            || text.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'));
        (is_of_a_kind && text.len() <= MAX_ID_BYTES).then(|| RpcId(text.into()))
    }
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcLine {
    /// A request, or a notification if it has no id.
    Call {
        /// The id; `None` for a notification, which gets no answer.
        id: Option<RpcId>,
        /// The method. It is foreign text.
        method: String,
        /// The parameters, as JSON.
        params: Option<String>,
    },
    /// The answer to a request that was accepted.
    Result {
        /// The id of the request.
        id: RpcId,
        /// The answer, as JSON.
        result: String,
    },
    /// The answer to a request that was not accepted.
    Error {
        /// The id of the request.
        id: RpcId,
        /// The reason.
        error: RpcError,
    },
}

/// Why a request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code of the error.
    pub code: i64,
    /// The error for people. It is foreign text if it came from a peer.
    pub message: String,
    /// Details, as JSON.
    pub data: Option<String>,
}

/// A line that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotALine {
    /// Its id, or null.
    pub id: RpcId,
    /// What is wrong with it.
    pub error: RpcError,
}

#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    // Null is a valid id and result, so it must not be read as absent.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<ErrorObject<'a>>,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    code: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl RpcLine {
    /// Reads a line.
    pub fn read(line: &str) -> Result<Self, NotALine> {
        match line.trim_start().chars().next() {
            Some('{') => {}
            Some('[') => {
                let why = "Batches are not taken, because what is said here is taken in its order. \
                           Send each message on a line of its own.";
                return Err(NotALine::new(RpcId::null(), INVALID_REQUEST, why.to_owned()));
            }
            _ => return Err(NotALine::not_json()),
        }
        let envelope: RpcEnvelope<'_> = serde_json::from_str(line).map_err(|error| {
            if error.classify() == Category::Data {
                let why =
                    format!("This is not a JSON-RPC 2.0 message: {}.", cut(&error.to_string()));
                NotALine::new(RpcId::null(), INVALID_REQUEST, why)
            } else {
                NotALine::not_json()
            }
        })?;
        envelope.read()
    }
}

impl RpcEnvelope<'_> {
    fn read(self) -> Result<RpcLine, NotALine> {
        let known = self.id.map(RpcId::read);
        let id = known.clone().flatten().unwrap_or_else(RpcId::null);
        let wrong = |why: &str| NotALine::new(id.clone(), INVALID_REQUEST, why.to_owned());
        if self.jsonrpc.as_deref() != Some("2.0") {
            return Err(wrong("The member jsonrpc must be \"2.0\". Add it."));
        }
        if known == Some(None) {
            return Err(wrong("The id must be a short string, a number or null. Change it."));
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                if method.len() > MAX_WORDS_BYTES {
                    return Err(wrong("The name of the method is too long. Check it."));
                }
                let params = self.params.map(|params| params.get().to_owned());
                Ok(RpcLine::Call { id: known.flatten(), method: method.into_owned(), params })
            }
            (None, Some(result), None) if known.is_some() => {
                Ok(RpcLine::Result { id, result: result.get().to_owned() })
            }
            (None, None, Some(error)) if known.is_some() => {
                let data = error.data.map(|data| data.get().to_owned());
                let message = cut(&error.message);
                Ok(RpcLine::Error { id, error: RpcError { code: error.code, message, data } })
            }
            _ => Err(wrong(
                "A message has a method, or an id with a result or an error. Send one of them.",
            )),
        }
    }
}

/// The beginning of a foreign text, made safe for a terminal.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_WORDS_BYTES.min(text.len()));
    printable(text.get(..end).unwrap_or_default()).into_owned()
}

impl NotALine {
    fn new(id: RpcId, code: i64, message: String) -> Self {
        NotALine { id, error: RpcError { code, message, data: None } }
    }

    fn not_json() -> Self {
        let why = "This line is not valid JSON. Send one JSON object on each line, and anything for people \
                   to standard error.";
        NotALine::new(RpcId::null(), PARSE_ERROR, why.to_owned())
    }
}

impl fmt::Display for NotALine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for NotALine {}

/// Writes a call; `params` is JSON.
pub(super) fn call(id: Option<&RpcId>, method: &str, params: &str) -> String {
    let id = id.map(|id| format!("\"id\":{},", id.as_json())).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":{},\"params\":{params}}}", json!(method))
}

/// Writes the answer to a request that was accepted; `result` is JSON.
pub(super) fn result(id: &RpcId, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", id.as_json())
}

/// Writes the answer to a request that was not accepted; its data is JSON.
pub(super) fn error(id: &RpcId, error: &RpcError) -> String {
    let (code, message) = (error.code, json!(error.message));
    let data = error.data.as_ref().map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    let id = id.as_json();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}"
    )
}
