//! Turns a request into a socket that a wire continues: WebSocket upgrades (RFC 6455, B.2.1) and streams of
//! server-sent events.

use aaep_transport::packet::Protocol;
use aaep_transport::steal::{Framing, Loot, Thief};
use aaep_transport::websocket::accept_key;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::answer::{self, EVENT_STREAM, HttpResponse, ResponseBody};

/// Tells proxies such as nginx not to hold events back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The subprotocol that a WebSocket request must or may offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubprotocolRule {
    /// It must offer this one.
    Required(&'static str),
    /// It may offer this one.
    Optional(&'static str),
}

/// Whether the request wants a WebSocket at all.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    has_word(headers, &UPGRADE, "websocket")
}

/// The response that begins a WebSocket, or a refusal.
pub(crate) fn websocket(
    request: &Request<Incoming>,
    subprotocol: SubprotocolRule,
) -> Result<HttpResponse, Box<HttpResponse>> {
    let headers = request.headers();
    if request.method() != Method::GET
        || !is_websocket(headers)
        || !has_word(headers, &CONNECTION, "upgrade")
    {
        return Err(Box::new(no_upgrade(
            "This address is a WebSocket. Connect with a WebSocket client.",
        )));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|it| it != "13") {
        return Err(Box::new(no_upgrade("Only version 13 of WebSocket is spoken here. Use that.")));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |bytes| bytes.len()) != 16 {
        return Err(Box::new(answer::refusal(
            StatusCode::BAD_REQUEST,
            "wrong_key",
            "The header Sec-WebSocket-Key is not one. Connect with a WebSocket client.",
        )));
    }
    let (SubprotocolRule::Required(name) | SubprotocolRule::Optional(name)) = subprotocol;
    let is_offered = offers(headers, name);
    if !is_offered && matches!(subprotocol, SubprotocolRule::Required(_)) {
        let message =
            format!("The subprotocol is missing. Offer {name} in Sec-WebSocket-Protocol.");
        return Err(Box::new(answer::refusal(StatusCode::BAD_REQUEST, "no_subprotocol", &message)));
    }
    let mut response = Response::new(ResponseBody::Whole(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if is_offered {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    }
    Ok(answer::with_header(response, SEC_WEBSOCKET_ACCEPT, &accept_key(key)))
}

/// The head of a stream of server-sent events, with this body. The connection ends with the stream, because
/// the wire that takes it over answers no further requests; the header tells clients that reuse connections.
pub(crate) fn stream(content: ResponseBody) -> HttpResponse {
    let ends_connection = matches!(content, ResponseBody::Stream(_));
    let mut response = Response::new(content);
    let headers = response.headers_mut();
    if ends_connection {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// How events are framed on a connection that was taken over.
pub(crate) fn protocol(loot: &Loot, named: bool) -> Protocol {
    match loot.framing {
        Framing::Chunked => Protocol::SseChunked { named },
        Framing::Plain => Protocol::SsePlain { named },
    }
}

/// The handle that takes over the connection of a request. It is missing only if another server accepted the
/// request.
pub(crate) fn thief(request: &Request<Incoming>) -> Result<&Thief, Box<HttpResponse>> {
    request.extensions().get::<Thief>().ok_or_else(|| {
        Box::new(answer::refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_stream",
            "No stream can be made of this connection. Connect again.",
        ))
    })
}

fn no_upgrade(message: &str) -> HttpResponse {
    let answer = answer::refusal(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message);
    let answer = answer::with_header(answer, UPGRADE, "websocket");
    let answer = answer::with_header(answer, CONNECTION, "Upgrade");
    answer::with_header(answer, SEC_WEBSOCKET_VERSION, "13")
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|it| it.eq_ignore_ascii_case(word))
}

/// Whether the subprotocol is offered. Subprotocols are compared exactly.
fn offers(headers: &HeaderMap, subprotocol: &str) -> bool {
    words(headers, &SEC_WEBSOCKET_PROTOCOL).any(|it| it == subprotocol)
}

fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter().filter_map(|it| it.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}
