//! Reads a request body of the right type, within limits of size and time.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use hyper::body::{Body as _, Incoming};

use super::answer::{HttpResponse, JSON, JSON_LINES, refusal};

/// The initial capacity of the buffer.
const FIRST_BYTES: usize = 4096;

/// The media type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    /// One JSON value on each line.
    Lines,
}

/// The media type that the request declares. JSON lines are accepted only if `may_have_lines`.
pub(crate) fn kind(
    headers: &HeaderMap,
    may_have_lines: bool,
) -> Result<BodyKind, Box<HttpResponse>> {
    let text = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let name = text.split(';').next().unwrap_or_default().trim();
    if name.eq_ignore_ascii_case(JSON) {
        Ok(BodyKind::Json)
    } else if may_have_lines && name.eq_ignore_ascii_case(JSON_LINES) {
        Ok(BodyKind::Lines)
    } else {
        let also =
            if may_have_lines { ", or application/x-ndjson for one event a line" } else { "" };
        Err(Box::new(refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            &format!(
                "The body is not said to be JSON. Send it with the header Content-Type: application/json{also}."
            ),
        )))
    }
}

/// Reads the whole body, if it is small enough and arrives in time.
pub(crate) async fn read(
    request: Request<Incoming>,
    max_bytes: usize,
    time: Duration,
) -> Result<Vec<u8>, Box<HttpResponse>> {
    let mut body = request.into_body();
    let stated = body.size_hint().lower();
    if stated > max_bytes as u64 {
        return Err(too_large(max_bytes));
    }
    let room = usize::try_from(stated).unwrap_or(FIRST_BYTES).min(FIRST_BYTES);
    let mut bytes = Vec::with_capacity(room);
    let reading = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| cut_off())?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > max_bytes - bytes.len() {
                return Err(too_large(max_bytes));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    match tokio::time::timeout(time, reading).await {
        Ok(read) => read.map(|()| bytes),
        Err(_) => Err(Box::new(refusal(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "The body took too long to come. Send it again, without waiting in between.",
        ))),
    }
}

fn too_large(max_bytes: usize) -> Box<HttpResponse> {
    let message = format!(
        "The body is larger than {max_bytes} bytes. Send less at once, or ask the person who runs \
         this hub to raise body_bytes."
    );
    Box::new(refusal(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message))
}

fn cut_off() -> Box<HttpResponse> {
    Box::new(refusal(
        StatusCode::BAD_REQUEST,
        "cut_off",
        "The body ended before its time. Send the request again.",
    ))
}
