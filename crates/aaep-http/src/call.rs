//! One request and its answer on a connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};

use crate::caller::ByteStream;
use crate::error::CallError;

/// The largest head of an answer, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone)]
pub struct HttpCall {
    /// The method.
    pub method: Method,
    /// Includes the query.
    pub path: String,
    /// The headers besides those that every request has.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
}

/// A connection on which nothing was requested yet.
#[derive(Debug)]
pub struct CallConnection {
    sender: http1::SendRequest<WholeBody>,
    carrier: ConnectionTask,
}

/// An answer whose body may still be arriving.
#[derive(Debug)]
pub struct CallAnswer {
    /// The head, and the body that hyper reads.
    pub response: Response<Incoming>,
    carrier: ConnectionTask,
}

/// The body of an answer, as it arrives.
#[derive(Debug)]
pub struct AnswerBody {
    body: Incoming,
    announced_bytes: Option<u64>,
    _carrier: ConnectionTask,
}

/// The task that moves the bytes of a connection. It is stopped when its owner is dropped.
#[derive(Debug)]
pub struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body that is there as a whole.
#[derive(Debug)]
pub(crate) struct WholeBody(Bytes);

impl WholeBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        WholeBody(bytes)
    }
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

impl CallConnection {
    /// A connection over a stream of bytes. Must be called within a tokio runtime, which then moves the bytes.
    pub async fn over(stream: impl ByteStream + 'static) -> Result<Self, CallError> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake::<_, WholeBody>(TokioIo::new(stream))
            .await?;
        let carrier = tokio::spawn(async move {
            // The reader of the answer learns how the connection ended.
            let _ = connection.with_upgrades().await;
        });
        Ok(CallConnection { sender, carrier: ConnectionTask(carrier) })
    }

    /// Sends the request and waits for the head of its answer.
    pub(crate) async fn send(
        mut self,
        request: Request<WholeBody>,
        patience: Duration,
    ) -> Result<CallAnswer, CallError> {
        let answer = timeout(patience, self.sender.send_request(request)).await;
        let response = answer.map_err(|_| CallError::TooSlowToAnswer)??;
        if response.status().as_u16() >= 600 {
            return Err(CallError::Strange("what answers there does not speak HTTP"));
        }
        let mut encodings = response.headers().get_all(TRANSFER_ENCODING).iter();
        if !encodings.all(|it| it.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return Err(CallError::Strange("the answer is packed in an unknown way"));
        }
        Ok(CallAnswer { response, carrier: self.carrier })
    }
}

impl CallAnswer {
    /// The response, and the task that moves its bytes, which must live as long as they are needed.
    pub fn into_parts(self) -> (Response<Incoming>, ConnectionTask) {
        (self.response, self.carrier)
    }

    /// The body, to be read.
    pub fn body(self) -> AnswerBody {
        let length = self.response.headers().get(CONTENT_LENGTH);
        let announced_bytes = length.and_then(|it| it.to_str().ok()?.parse().ok());
        let body = self.response.into_body();
        AnswerBody { body, announced_bytes, _carrier: self.carrier }
    }
}

impl AnswerBody {
    /// The next bytes; `None` at the end. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(bytes)) => return Some(Ok(bytes)),
                // Trailers carry nothing that we need.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// The whole body, if it is not too long.
    pub async fn whole(mut self, max_bytes: usize) -> Result<Vec<u8>, CallError> {
        if self.announced_bytes.is_some_and(|announced| announced > max_bytes as u64) {
            return Err(CallError::TooLarge);
        }
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            if all.len() + bytes.len() > max_bytes {
                return Err(CallError::TooLarge);
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
