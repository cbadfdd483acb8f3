//! Server-sent events with POST for the way back (B.1). The type of a message alone decides where it is sent. The
//! producer's responses become messages, so that a subscriber sees no difference to other wires.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_http::{AnswerBody, CallConnection, HttpAddress, HttpCall};
use bytes::Bytes;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::caller::{self, LinkCaller};
use super::dial::{DialError, DialOptions};
use super::{Bearer, Link, LinkEnd, LinkInlet, link};
use crate::sse::Parser;

/// The prefix of the addresses of B.1.1, unless the target has its own.
const PREFIX: &str = "/aaep/v1";

/// By how much a line of the stream may exceed its message.
const MAX_LINE_BYTES_BESIDE: usize = 1024;

/// The code of B.2.6 for a rejected subscription.
const REJECTED: u16 = 4001;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(super) async fn dial(address: &HttpAddress, options: &DialOptions) -> Result<Link, DialError> {
    let wire = SseWire {
        caller: LinkCaller::new(address, options)?,
        prefix: prefix(address.path()).to_owned(),
        max_message_bytes: options.max_message_bytes as usize,
        silence_timeout: options.silence_timeout,
        has_handshake: !options.without_handshake,
        messages: address.path().strip_suffix("/events").map(|path| format!("{path}/messages")),
        is_posting: AtomicBool::new(false),
        has_posted: Notify::new(),
    };
    let resume = options.resume.as_ref();
    let last_event_id = resume.and_then(|it| it.last_event_id.as_deref());
    let subscription_id = resume.and_then(|it| it.subscription_id.as_deref());
    let start = if options.without_handshake {
        LinkStart::Stream(wire.open(address.path_and_query(), last_event_id).await?)
    } else if let Some(subscription_id) = subscription_id {
        LinkStart::Stream(wire.open(&wire.events(subscription_id), last_event_id).await?)
    } else {
        // Connects now, so that the caller learns at once if nobody answers.
        LinkStart::Connection(wire.caller.connect().await?)
    };
    let (link, bearer) = link();
    tokio::spawn(wire.run(start, bearer));
    Ok(link)
}

/// What is open when the link begins.
enum LinkStart {
    Connection(CallConnection),
    Stream(EventStream),
}

struct SseWire {
    caller: LinkCaller,
    prefix: String,
    max_message_bytes: usize,
    silence_timeout: Duration,
    has_handshake: bool,
    /// Where a producer without a handshake accepts answers, if its stream has the usual name.
    messages: Option<String>,
    /// Whether a message was sent whose response has not arrived.
    is_posting: AtomicBool,
    has_posted: Notify,
}

/// An open stream of events.
struct EventStream {
    content: AnswerBody,
    parser: Parser,
}

impl SseWire {
    async fn run(self, start: LinkStart, mut bearer: Bearer) {
        let (connected, stream) = match start {
            LinkStart::Connection(connected) => (Some(connected), None),
            LinkStart::Stream(stream) => (None, Some(stream)),
        };
        let inlet = bearer.inlet();
        let (open, opened) = mpsc::channel(1);
        // Sending and receiving run at the same time: neither waits for the other.
        let end = {
            let mut speaking = pin!(self.speak(&mut bearer, &inlet, connected, open));
            tokio::select! {
                end = &mut speaking => end,
                end = self.hear(&inlet, stream, opened) => Some(self.hear_out(speaking, end).await),
            }
        };
        drop(self);
        if let Some(end) = end {
            bearer.end(end).await;
        }
    }

    /// Handles the end of the stream. If a message is being sent, perhaps it caused the end: then its response is
    /// awaited first, because it says more than the end of the stream.
    async fn hear_out(
        &self,
        speaking: Pin<&mut impl Future<Output = Option<LinkEnd>>>,
        end: LinkEnd,
    ) -> LinkEnd {
        if !self.is_posting.load(Ordering::Relaxed) {
            return end;
        }
        tokio::select! {
            said = speaking => said.unwrap_or(end),
            () = self.has_posted.notified() => end,
        }
    }

    /// Sends the subscriber's messages, one after the other. Returns `None` if the subscriber is gone.
    async fn speak(
        &self,
        bearer: &mut Bearer,
        inlet: &LinkInlet,
        mut connected: Option<CallConnection>,
        open: mpsc::Sender<String>,
    ) -> Option<LinkEnd> {
        while let Some(message) = bearer.outgoing().await {
            self.is_posting.store(true, Ordering::Relaxed);
            let heard = match self.say(message, connected.take()).await {
                Ok(heard) => heard,
                // It is not known whether the message arrived, so it is never sent again.
                Err(error) => return Some(error.into()),
            };
            if let Some(message) = heard.message
                && !inlet.incoming(message).await
            {
                continue;
            }
            if let Some(path) = heard.stream {
                // The receiver of this channel lives as long as this task.
                let _ = open.send(path).await;
            }
            if heard.end.is_some() {
                return heard.end;
            }
            self.is_posting.store(false, Ordering::Relaxed);
            self.has_posted.notify_waiters();
        }
        None
    }

    async fn say(
        &self,
        message: String,
        on: Option<CallConnection>,
    ) -> Result<PostAnswer, DialError> {
        let parsed: Option<Value> = serde_json::from_str(&message).ok();
        let Some(kind) = parsed.as_ref().and_then(|it| it.get("type")?.as_str()) else {
            return Ok(PostAnswer::error("not_valid", "The message has no type. It was not sent."));
        };
        let reply_token = reply_token(kind, parsed.as_ref());
        if !self.has_handshake {
            let answer = self.say_without_handshake(kind, &message).await?;
            return Ok(answer.about_reply(reply_token));
        }
        let is_request = kind == "subscription.request";
        let path =
            format!("{}/{}", self.prefix, if is_request { "subscriptions" } else { "replies" });
        let answer = self.caller.call(on, &post(path, message)).await?;
        let status = answer.response.status();
        if is_request && [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status) {
            return Ok(PostAnswer::error(NO_HANDSHAKE, "The producer knows no handshake."));
        }
        let location = answer.response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let place = location.and_then(|location| self.caller.address().pointed_to(location));
        let body = self.caller.read(answer, self.max_message_bytes).await?;
        let mut heard = PostAnswer::read(status, body);
        if let Some(id) = heard.subscription_id.take().filter(|_| is_request) {
            // Another host would get our token, so only a location on this host is accepted (B.1.2).
            let path = place.map(|place| place.path_and_query().to_owned());
            heard.stream = Some(path.unwrap_or_else(|| self.events(&id)));
        }
        Ok(heard.about_reply(reply_token))
    }

    /// Sends a message to a producer without a handshake (ruling 27): answers go to the address next to its
    /// stream, and no other message can be sent.
    async fn say_without_handshake(
        &self,
        kind: &str,
        message: &str,
    ) -> Result<PostAnswer, DialError> {
        // Such a producer is left without a message.
        if kind == "subscription.close" {
            return Ok(PostAnswer::default());
        }
        let is_answer = ["confirmation.reply", "clarification.reply"].contains(&kind);
        let Some(path) = self.messages.clone().filter(|_| is_answer) else {
            let why = "This producer has no address to which this could be said.";
            return Ok(PostAnswer::error("no_way_back", why));
        };
        let answer = self.caller.call(None, &post(path, message.to_owned())).await?;
        let status = answer.response.status();
        // The response has a form of its own. It is read to its end, within a limit, and ignored.
        self.caller.read(answer, self.max_message_bytes).await?;
        if status.is_success() {
            return Ok(PostAnswer::default());
        }
        let why = format!("The producer did not take the answer: status {}.", status.as_u16());
        // A producer that failed may have used the answer before.
        let code = if status.is_client_error() { "not_taken" } else { "status" };
        Ok(PostAnswer::error(code, &why))
    }

    /// Passes on what arrives on the stream, once there is one.
    async fn hear(
        &self,
        inlet: &LinkInlet,
        mut stream: Option<EventStream>,
        mut opened: mpsc::Receiver<String>,
    ) -> LinkEnd {
        loop {
            let path = tokio::select! {
                end = self.listen(inlet, stream.as_mut()) => return end,
                path = opened.recv() => path,
            };
            let Some(path) = path else { return pending().await };
            match self.open(&path, None).await {
                Ok(opened) => stream = Some(opened),
                Err(error) => return error.into(),
            }
        }
    }

    async fn listen(&self, inlet: &LinkInlet, stream: Option<&mut EventStream>) -> LinkEnd {
        let Some(stream) = stream else { return pending().await };
        loop {
            let bytes =
                match timeout(self.silence_timeout, self.caller.next(&mut stream.content)).await {
                    Ok(Some(Ok(bytes))) => bytes,
                    Ok(Some(Err(error))) => return error.into(),
                    Ok(None) => return LinkEnd::closed(None, String::new()),
                    Err(_) => return LinkEnd::Cut(super::SILENCE.to_owned()),
                };
            let limit_bytes = self.max_message_bytes.saturating_add(MAX_LINE_BYTES_BESIDE);
            let events = match stream.parser.push(&bytes, limit_bytes) {
                Ok(events) => events,
                Err(error) => return LinkEnd::Violation(error.to_string()),
            };
            for event in events {
                if !inlet.incoming(event.data).await {
                    // The subscriber's last message may still be on its way.
                    return pending().await;
                }
            }
        }
    }

    async fn open(
        &self,
        path: &str,
        last_event_id: Option<&str>,
    ) -> Result<EventStream, DialError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, EVENT_STREAM);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let last_event_id = last_event_id.and_then(|id| HeaderValue::from_str(id).ok());
        headers.extend(last_event_id.map(|id| (LAST_EVENT_ID, id)));
        let call =
            HttpCall { method: Method::GET, path: path.to_owned(), headers, body: Bytes::new() };
        let answer = self.caller.call(None, &call).await?;
        match answer.response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE if self.has_handshake => {
                return Err(DialError::NoSuchSubscription);
            }
            _ => return Err(self.caller.refusal(answer).await),
        }
        let kind = answer.response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("text/event-stream") {
            let what = "It answers, but with no stream of events.";
            return Err(DialError::Violation(what.to_owned()));
        }
        Ok(EventStream { content: answer.body(), parser: Parser::default() })
    }

    /// The path of the stream of a subscription.
    fn events(&self, subscription_id: &str) -> String {
        let id = encode(subscription_id);
        format!("{}/events?subscription_id={id}", self.prefix)
    }
}

const LAST_EVENT_ID: hyper::header::HeaderName =
    hyper::header::HeaderName::from_static("last-event-id");

/// The error code on a link whose producer has no handshake.
pub const NO_HANDSHAKE: &str = "no_handshake";

/// The request that sends a message.
fn post(path: String, body: String) -> HttpCall {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    HttpCall { method: Method::POST, path, headers, body: body.into() }
}

/// The meaning of the response to a message.
#[derive(Debug, Default, PartialEq, Eq)]
struct PostAnswer {
    /// The message for the subscriber.
    message: Option<String>,
    /// The subscription that was granted.
    subscription_id: Option<String>,
    /// The path of its stream.
    stream: Option<String>,
    /// Why the link has ended.
    end: Option<LinkEnd>,
}

impl PostAnswer {
    fn error(code: &str, message: &str) -> Self {
        let body = json!({ "type": ERROR, "error": code, "message": message });
        PostAnswer { message: Some(body.to_string()), ..PostAnswer::default() }
    }

    /// Names the reply that an error is about, so that the subscriber knows which answer does not count.
    fn about_reply(mut self, reply_token: Option<&str>) -> Self {
        let (Some(token), Some(message)) = (reply_token, &self.message) else { return self };
        if let Ok(Value::Object(mut object)) = serde_json::from_str(message)
            && object.get("type").is_some_and(|it| it == ERROR)
        {
            object.insert("reply_token".to_owned(), token.into());
            self.message = Some(Value::Object(object).to_string());
        }
        self
    }

    fn read(status: StatusCode, body: String) -> Self {
        let said: Value = serde_json::from_str(&body).unwrap_or_default();
        let kind = said.get("type").and_then(Value::as_str);
        let mut heard = PostAnswer {
            end: caller::refused(status, &said).map(LinkEnd::from),
            ..PostAnswer::default()
        };
        match kind {
            Some("subscription.accepted") if status.is_success() => {
                heard.subscription_id = text(&said, "subscription_id");
            }
            Some("subscription.rejected") if heard.end.is_none() => {
                let reason = caller::reason(&said).unwrap_or_default();
                heard.end = Some(LinkEnd::closed(Some(REJECTED), reason));
            }
            _ => {}
        }
        let kind_of_ours = match (kind, status.is_success()) {
            (Some(_), _) => None,
            (None, true) => Some(INSTRUCTED),
            (None, false) => Some(ERROR),
        };
        heard.message = match (kind_of_ours, said) {
            (None, _) => Some(body),
            (Some(kind), Value::Object(mut object)) => {
                object.insert("type".to_owned(), kind.into());
                Some(Value::Object(object).to_string())
            }
            // Success, and nothing to report.
            (Some(INSTRUCTED), _) => None,
            (Some(_), _) => {
                let message = format!("The producer answered with status {}.", status.as_u16());
                PostAnswer::error("status", &message).message
            }
        };
        heard
    }
}

/// The types of answers that are not messages of the specification, as on a WebSocket.
const ERROR: &str = "agentvoice:error";
const INSTRUCTED: &str = "agentvoice:instructed";

/// The token of a message, if it is a reply to an ask.
fn reply_token<'a>(kind: &str, message: Option<&'a Value>) -> Option<&'a str> {
    let is_reply = ["confirmation.reply", "clarification.reply"].contains(&kind);
    message?.get("reply_token")?.as_str().filter(|_| is_reply)
}

fn text(said: &Value, name: &str) -> Option<String> {
    said.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The path before `/events`, `/replies` and `/subscriptions`.
fn prefix(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/events").unwrap_or(path);
    if path.is_empty() { PREFIX } else { path }
}

/// Percent-encodes a text for a query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.extend(
                [byte >> 4, byte & 15]
                    .map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])),
            );
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> PostAnswer {
        PostAnswer::read(StatusCode::from_u16(status).expect("a status"), body.to_owned())
    }

    #[test]
    fn messages_of_the_producer_are_handed_on_as_they_are() {
        let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_1"}"#;
        let heard = read(201, accepted);
        assert_eq!(heard.message.as_deref(), Some(accepted));
        assert_eq!(heard.subscription_id.as_deref(), Some("sub_1"));
        assert_eq!(heard.end, None);
        assert_eq!(read(204, ""), PostAnswer::default());
    }

    #[test]
    fn a_rejected_message_and_a_refused_subscriber_end_the_link() {
        let rejected = r#"{"type":"subscription.rejected","reason_message":"No."}"#;
        for (status, end) in [
            (409, LinkEnd::Closed { code: Some(4001), reason: "No.".to_owned() }),
            (401, LinkEnd::Refused { reason: "No.".to_owned() }),
            (403, LinkEnd::Refused { reason: "No.".to_owned() }),
        ] {
            let heard = read(status, rejected);
            assert_eq!(heard.message.as_deref(), Some(rejected));
            assert_eq!(heard.end, Some(end));
        }
    }

    #[test]
    fn an_acceptance_with_the_status_of_a_failure_opens_nothing() {
        let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_1"}"#;
        assert_eq!(read(500, accepted).subscription_id, None);
    }

    #[test]
    fn other_answers_have_the_form_that_a_websocket_has() {
        let message = |status, body| {
            let message = read(status, body).message.expect("a message");
            serde_json::from_str::<Value>(&message).expect("JSON")
        };
        let error = message(400, r#"{"error":"invalid_token","message":"It does not count."}"#);
        assert_eq!((&error["type"], &error["error"]), (&ERROR.into(), &"invalid_token".into()));
        assert_eq!(message(202, r#"{"session_id":"sess_1"}"#)["type"], INSTRUCTED);
        for body in ["<html>", "[]", "{\"type\":7", ""] {
            assert_eq!(message(502, body)["type"], ERROR, "{body}");
        }
        assert_eq!(message(502, r#"{"type":7}"#)["type"], ERROR);
    }

    #[test]
    fn the_addresses_are_found_from_what_people_write() {
        for path in ["/", "", "/aaep/v1", "/aaep/v1/", "/aaep/v1/events"] {
            assert_eq!(prefix(path), "/aaep/v1", "{path}");
        }
        assert_eq!(prefix("/a/b/events/"), "/a/b");
        assert_eq!(encode("sub_a/b&c=é"), "sub_a%2Fb%26c%3D%C3%A9");
    }
}
