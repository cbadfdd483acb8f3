//! One line: a call or an answer. Read within bounds, written as JSON-RPC 2.0 has it.

use std::borrow::Cow;
use std::fmt;

use aaep::printable;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::json;
use serde_json::value::RawValue;

use super::{INVALID_REQUEST, PARSE_ERROR};

/// The longest id that is taken, as it is written.
pub const MAX_ID_BYTES: usize = 256;

/// The longest name of a method, and the longest words of an error, that are kept.
const MAX_WORDS_BYTES: usize = 4096;

/// The id of a request: a string, a number or null, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// The id of an answer to what has none that could be read.
    pub fn null() -> Self {
        Id("null".into())
    }

    /// A number that we chose.
    pub fn number(number: u64) -> Self {
        Id(number.to_string().into())
    }

    /// As JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    fn read(json: &RawValue) -> Option<Self> {
        let text = json.get();
        let is_of_a_kind = text == "null"
            || text.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'));
        (is_of_a_kind && text.len() <= MAX_ID_BYTES).then(|| Id(text.into()))
    }
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A request, or without an id a notification.
    Call {
        /// The id; none for a notification, which gets no answer.
        id: Option<Id>,
        /// What is wanted. It is foreign text.
        method: String,
        /// With what, as JSON.
        params: Option<String>,
    },
    /// The answer to a request that was taken.
    Result {
        /// The id of the request.
        id: Id,
        /// The answer, as JSON.
        result: String,
    },
    /// The answer to one that was not.
    Error {
        /// The id of the request.
        id: Id,
        /// Why not.
        error: RpcError,
    },
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code of the kind of error.
    pub code: i64,
    /// The same for people. It is foreign text where a peer said it.
    pub message: String,
    /// More, as JSON.
    pub data: Option<String>,
}

/// A line that says nothing that can be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotALine {
    /// Its id, or null.
    pub id: Id,
    /// What is wrong with it.
    pub error: RpcError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    // Null is an id and a result, so it must not be taken for nothing.
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

impl Line {
    /// Reads a line.
    pub fn read(line: &str) -> Result<Self, NotALine> {
        match line.trim_start().chars().next() {
            Some('{') => {}
            Some('[') => {
                let why = "Batches are not taken, because what is said here is taken in its order. \
                           Send each message on a line of its own.";
                return Err(NotALine::new(Id::null(), INVALID_REQUEST, why.to_owned()));
            }
            _ => return Err(NotALine::not_json()),
        }
        let envelope: Envelope<'_> = serde_json::from_str(line).map_err(|error| {
            if error.classify() == Category::Data {
                let why =
                    format!("This is no message of JSON-RPC 2.0: {}.", cut(&error.to_string()));
                NotALine::new(Id::null(), INVALID_REQUEST, why)
            } else {
                NotALine::not_json()
            }
        })?;
        envelope.read()
    }
}

impl Envelope<'_> {
    fn read(self) -> Result<Line, NotALine> {
        let known = self.id.map(Id::read);
        let id = known.clone().flatten().unwrap_or_else(Id::null);
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
                Ok(Line::Call { id: known.flatten(), method: method.into_owned(), params })
            }
            (None, Some(result), None) if known.is_some() => {
                Ok(Line::Result { id, result: result.get().to_owned() })
            }
            (None, None, Some(error)) if known.is_some() => {
                let data = error.data.map(|data| data.get().to_owned());
                let message = cut(&error.message);
                Ok(Line::Error { id, error: RpcError { code: error.code, message, data } })
            }
            _ => Err(wrong(
                "A message has a method, or an id with a result or an error. Send one of them.",
            )),
        }
    }
}

/// The beginning of foreign words, fit for a terminal.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_WORDS_BYTES.min(text.len()));
    printable(text.get(..end).unwrap_or_default()).into_owned()
}

impl NotALine {
    fn new(id: Id, code: i64, message: String) -> Self {
        NotALine { id, error: RpcError { code, message, data: None } }
    }

    fn not_json() -> Self {
        let why = "This line is no JSON. Send one JSON object on each line, and anything for people \
                   to standard error.";
        NotALine::new(Id::null(), PARSE_ERROR, why.to_owned())
    }
}

impl fmt::Display for NotALine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for NotALine {}

/// A call whose parameters are JSON.
pub(super) fn call(id: Option<&Id>, method: &str, params: &str) -> String {
    let id = id.map(|id| format!("\"id\":{},", id.as_json())).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":{},\"params\":{params}}}", json!(method))
}

/// The answer to a request that was taken; the result is JSON.
pub(super) fn result(id: &Id, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", id.as_json())
}

/// The answer to a request that was not taken; the data is JSON.
pub(super) fn error(id: &Id, error: &RpcError) -> String {
    let (code, message) = (error.code, json!(error.message));
    let data = error.data.as_ref().map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    let id = id.as_json();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}"
    )
}
