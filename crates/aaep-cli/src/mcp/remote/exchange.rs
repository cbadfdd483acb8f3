//! One request to the server and everything that it answers, as lines.

use std::time::Duration;

use aaep_bridge::mcp::McpSide;
use aaep_http::{AnswerBody, CallAnswer, CallError, HttpCall};
use aaep_transport::sse::Parser;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::RemoteSpeaker;

/// The longest message of a server.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// How long to wait before a broken stream is taken up again, if the server does not say, and at most.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// How often taking up a stream may fail without anything new.
const MAX_TRIES: u32 = 5;

const SESSION: &str = "mcp-session-id";

/// How far a stream got.
#[derive(Debug, Default)]
struct StreamPlace {
    last_event_id: String,
    retry: Option<Duration>,
    /// Whether the answer came.
    is_answered: bool,
    /// Whether anything came.
    has_news: bool,
}

/// How a stream ended that was taken up.
enum StreamEnd {
    /// The server has no such stream.
    Refused,
    /// It was closed, or the server is in trouble.
    Closed,
    /// It broke.
    Broken(CallError),
}

impl RemoteSpeaker {
    /// Sends a request and passes on what the server answers. A request always gets an answer.
    pub(super) async fn exchange(&self, call: &HttpCall, id: &Value, is_stateless: bool) {
        let answer = match self.caller.call(None, call).await {
            Ok(answer) => answer,
            Err(error) => return self.fail(id, &format!("The server gave no answer: {error}.")),
        };
        let status = answer.response.status();
        if let Some(session) = answer.response.headers().get(SESSION)
            && let Ok(session) = session.to_str()
        {
            self.heads().set_session(Some(session));
        }
        if !status.is_success() {
            return self.fail_with(answer, id).await;
        }
        if !is_stream(&answer) {
            if !has_type(&answer, b"application/json") && status != StatusCode::ACCEPTED {
                return self.fail(id, "The server gave an answer that is not JSON.");
            }
            match answer.body().whole(MAX_MESSAGE_BYTES).await {
                Ok(body) if body.trim_ascii().is_empty() => {
                    self.fail(id, "The server gave an empty answer.");
                }
                Ok(body) => drop(self.pass(&body)),
                Err(error) => self.fail(id, &format!("The answer of the server is cut: {error}.")),
            }
            return;
        }
        let mut place = StreamPlace::default();
        let mut why = self.read_stream(answer.body(), Some(id), &mut place).await;
        let mut tries = 0;
        while !place.is_answered && !is_stateless && !place.last_event_id.is_empty() {
            tries = if place.has_news { 0 } else { tries + 1 };
            if tries > MAX_TRIES {
                break;
            }
            sleep(place.retry.unwrap_or(RETRY)).await;
            why = match self.take_up(Some(id), &mut place).await {
                StreamEnd::Refused => break,
                StreamEnd::Closed => None,
                StreamEnd::Broken(error) => Some(error),
            };
        }
        if !place.is_answered {
            let why = why.map_or_else(|| "it ended".to_owned(), |it| it.to_string());
            self.fail(id, &format!("The stream of the server broke before its answer: {why}."));
        }
    }

    /// Listens to what the server says by itself, as long as it lets us.
    pub(super) async fn listen(&self) {
        let mut place = StreamPlace::default();
        let mut tries = 0;
        while tries <= MAX_TRIES {
            if matches!(self.take_up(None, &mut place).await, StreamEnd::Refused) {
                return;
            }
            tries = if place.has_news { 0 } else { tries + 1 };
            sleep(place.retry.unwrap_or(RETRY)).await;
        }
    }

    /// Opens a stream where the last one broke.
    async fn take_up(&self, id: Option<&Value>, place: &mut StreamPlace) -> StreamEnd {
        place.has_news = false;
        let mut call = self.call(Method::GET, &Value::Null, Bytes::new());
        if let Ok(last) = HeaderValue::try_from(place.last_event_id.as_str())
            && !last.is_empty()
        {
            call.headers.insert(HeaderName::from_static("last-event-id"), last);
        }
        match self.caller.call(None, &call).await {
            Ok(answer) if answer.response.status().is_success() && is_stream(&answer) => {
                let broken = self.read_stream(answer.body(), id, place).await;
                broken.map_or(StreamEnd::Closed, StreamEnd::Broken)
            }
            Ok(answer) if answer.response.status().is_server_error() => StreamEnd::Closed,
            Ok(_) => StreamEnd::Refused,
            Err(error) => StreamEnd::Broken(error),
        }
    }

    /// Passes on the messages of a stream until it ends, or until the answer to `id` came.
    async fn read_stream(
        &self,
        mut body: AnswerBody,
        id: Option<&Value>,
        place: &mut StreamPlace,
    ) -> Option<CallError> {
        let mut parser = Parser::default();
        while let Some(bytes) = body.next().await {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => return Some(error),
            };
            let Ok(events) = parser.push(&bytes, MAX_MESSAGE_BYTES) else {
                return Some(CallError::TooLarge);
            };
            for event in events {
                place.has_news = true;
                if event.data.trim().is_empty() {
                    continue;
                }
                let message = self.pass(event.data.as_bytes());
                let is_answer =
                    |it: &Value| it.get("method").is_none() && id.is_some_and(|id| it["id"] == *id);
                place.is_answered |= match message.as_array() {
                    Some(batch) => batch.iter().any(is_answer),
                    None => is_answer(&message),
                };
            }
            if place.is_answered {
                return None;
            }
            // An event without data has an id too.
            if !parser.last_event_id().is_empty() && parser.last_event_id() != place.last_event_id {
                place.has_news = true;
                parser.last_event_id().clone_into(&mut place.last_event_id);
            }
            let retry = parser.retry_ms().map(Duration::from_millis);
            place.retry = retry.map(|it| it.min(LONGEST_RETRY)).or(place.retry);
        }
        None
    }

    /// Passes on a message of the server as one line.
    fn pass(&self, message: &[u8]) -> Value {
        // Between the parts of JSON, a line break means as little as a space.
        let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
        let mut line: Vec<u8> = message.trim_ascii().iter().map(space).collect();
        line.push(b'\n');
        let read: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
        self.heads().hear_server(&read);
        self.proxy.pass(McpSide::Server, &line);
        read
    }

    /// The server refuses a request. What it says goes on if it is an answer.
    async fn fail_with(&self, answer: CallAnswer, id: &Value) {
        let status = answer.response.status().as_u16();
        let body = answer.body().whole(MAX_MESSAGE_BYTES).await.unwrap_or_default();
        let mut said: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if said["error"].is_object() {
            if said["id"].is_null() {
                said["id"] = id.clone();
            }
            self.pass(said.to_string().as_bytes());
            return;
        }
        let next = match status {
            401 | 403 => " It wants to know who asks: give a token with --token-from.",
            404 => " Nothing is at this address, or the session has ended.",
            _ => "",
        };
        self.fail(id, &format!("The server answered with the HTTP status {status}.{next}"));
    }

    fn fail(&self, id: &Value, why: &str) {
        const SERVER_ERROR: i64 = -32_000;
        let error = json!({ "jsonrpc": "2.0", "id": id,
            "error": { "code": SERVER_ERROR, "message": why } });
        self.pass(error.to_string().as_bytes());
    }
}

fn is_stream(answer: &CallAnswer) -> bool {
    has_type(answer, b"text/event-stream")
}

fn has_type(answer: &CallAnswer, wanted: &[u8]) -> bool {
    let kind = answer.response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|it| it.to_ascii_lowercase().starts_with(wanted))
}
