//! The HTTP responses of the hub: JSON, nothing, or a stream.
//!
//! Every refusal has the same form: a code for machines and sentences for people, the last of which says
//! what to do next. Text from a request is repeated only if it is escaped.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use aaep::Violation;
use aaep_transport::steal::PendingBody;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::door::RequestInProgress;
use crate::access::{AccessError, LimitError};
use crate::hub::violations_to_json;

/// An HTTP response of the hub.
pub(crate) type HttpResponse = Response<ResponseBody>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_LINES: &str = "application/x-ndjson";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// The whole body, or `None` once it was sent.
    Whole(Option<Bytes>),
    /// A stream that a wire continues.
    Stream(PendingBody),
    /// A body sent in pieces, whose total size is known.
    Pieces {
        pieces: mpsc::Receiver<Bytes>,
        /// The bytes that remain. If they do not arrive, the connection is cut.
        left: u64,
    },
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            ResponseBody::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            ResponseBody::Stream(body) => Pin::new(body).poll_frame(context),
            ResponseBody::Pieces { pieces, left } => {
                let piece = std::task::ready!(pieces.poll_recv(context));
                *left = left.saturating_sub(piece.as_ref().map_or(0, |it| it.len() as u64));
                Poll::Ready(piece.map(|it| Ok(Frame::data(it))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ResponseBody::Stream(_) => SizeHint::default(),
            ResponseBody::Pieces { left, .. } => SizeHint::with_exact(*left),
        }
    }
}

/// A response body on its way. Until it is fully sent, its connection counts as busy.
#[derive(Debug)]
pub(crate) struct SendingBody {
    content: ResponseBody,
    _in_progress: RequestInProgress,
}

impl SendingBody {
    pub(crate) fn new(content: ResponseBody, in_progress: RequestInProgress) -> Self {
        SendingBody { content, _in_progress: in_progress }
    }
}

impl Body for SendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.content).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// A response with a body of this media type.
pub(crate) fn whole(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let mut answer = Response::new(ResponseBody::Whole(Some(body.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A response in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    // Serialization cannot fail: all keys are strings.
    whole(status, JSON, serde_json::to_vec(value).unwrap_or_default())
}

/// A response without a body, for success.
pub(crate) fn done() -> HttpResponse {
    let mut answer = Response::new(ResponseBody::Whole(None));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// A refusal: a code, and a message that says what to do.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> HttpResponse {
    json(status, &json!({ "error": code, "message": message }))
}

/// Refuses a message that is not valid, with all its violations.
pub(crate) fn not_valid(status: StatusCode, violations: &[Violation]) -> HttpResponse {
    json(status, &violations_object(violations))
}

/// The body of that refusal.
pub(crate) fn violations_object(violations: &[Violation]) -> Value {
    json!({
        "error": "not_valid",
        "message": "The message is not valid. Fix what `violations` lists, and send it again.",
        "violations": violations_to_json(violations),
    })
}

/// The code of an access error. All wrong credentials have the same code.
pub(crate) fn access_code(error: &AccessError) -> &'static str {
    match error {
        AccessError::ScopeMissing(_) => "scope_missing",
        AccessError::Tokens(_) => "tokens_unavailable",
        AccessError::CredentialsRequired | AccessError::Forwarded => "credentials_required",
        AccessError::TooManyFailures { .. } => "too_many_failures",
        _ => "credentials_refused",
    }
}

/// Refuses a request for lack of access.
pub(crate) fn no_access(error: &AccessError) -> HttpResponse {
    let code = access_code(error);
    let mut answer = refusal(status(error.status()), code, &error.public_message());
    challenge(&mut answer, error);
    match error {
        // An attacker who guesses has to connect again.
        AccessError::TooManyFailures { retry_after_seconds } => {
            with_header(retry_after(answer, *retry_after_seconds), CONNECTION, "close")
        }
        _ => answer,
    }
}

/// Adds the header that says how to authenticate, if the response needs one.
pub(crate) fn challenge(answer: &mut HttpResponse, error: &AccessError) {
    if let Some(challenge) = error.challenge() {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
}

/// Refuses a request because a limit was reached.
pub(crate) fn limited(error: LimitError) -> HttpResponse {
    let code = match error {
        LimitError::Connections
        | LimitError::ConnectionsOfPrincipal
        | LimitError::ConnectionsOfProgram => "too_many_connections",
        LimitError::RequestsOfPrincipal => "too_many_requests",
        LimitError::Subscriptions | LimitError::SubscriptionsOfPrincipal => {
            "too_many_subscriptions"
        }
        LimitError::PublishRate { .. } => "too_fast",
        LimitError::TooManyAtOnce => "too_many_at_once",
        LimitError::Principals => "too_many_principals",
    };
    let answer = refusal(status(error.status()), code, &error.to_string());
    retry_after(answer, error.retry_after_seconds())
}

/// Adds the time after which to try again.
pub(crate) fn retry_after(answer: HttpResponse, seconds: u64) -> HttpResponse {
    with_header(answer, RETRY_AFTER, &seconds.to_string())
}

/// There is nothing at this address.
pub(crate) fn not_found() -> HttpResponse {
    refusal(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is nothing at this address. The file docs/openapi.yaml lists what there is.",
    )
}

/// The address exists, but not with this method.
pub(crate) fn not_allowed(methods: &str) -> HttpResponse {
    let message = format!("This address takes other methods. Use one of: {methods}.");
    let answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message);
    with_header(answer, ALLOW, methods)
}

/// Adds a header. A value that is not valid in a header is left out.
pub(crate) fn with_header(mut answer: HttpResponse, name: HeaderName, value: &str) -> HttpResponse {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// The status with this number, which comes from our own code.
pub(crate) fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answer: HttpResponse) -> Value {
        match answer.into_body() {
            ResponseBody::Whole(Some(bytes)) => serde_json::from_slice(&bytes).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refusal_has_a_code_and_a_next_step() {
        let answer = no_access(&AccessError::UnknownToken);
        assert_eq!(answer.status(), 401);
        assert!(answer.headers().contains_key(WWW_AUTHENTICATE));
        let body = body(answer);
        assert_eq!(body["error"], "credentials_refused");
        assert!(body["message"].as_str().expect("words").contains("Ask the person"));
    }

    #[test]
    fn too_fast_says_when_to_come_back() {
        let answer = limited(LimitError::PublishRate { retry_after_ms: 1500 });
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()[RETRY_AFTER], "2");
    }

    #[test]
    fn notes_are_not_violations() {
        let text = br#"{"type":"subscription.request","aaep_version":"1.0.0",
            "subscriber_id":"r","capabilities":{"supported_conformance_levels":[2],
            "max_events_per_second":0}}"#;
        let violations = aaep::validate(text, aaep::Mode::Strict);
        assert!(violations.len() > 1, "a note is among them: {violations:?}");
        let body = body(not_valid(StatusCode::BAD_REQUEST, &violations));
        assert_eq!(body["violations"].as_array().expect("a list").len(), 1);
        assert_eq!(body["violations"][0]["pointer"], "/capabilities/max_events_per_second");
    }
}
