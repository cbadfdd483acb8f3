//! One HTTP/2 connection to a producer, for gRPC calls.
//!
//! There is no pool and no hidden reconnection: a caller must notice that its connection broke, because it
//! resumes from its last event.

use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tower_service::Service;

use super::{CALL_WINDOW_BYTES, CONNECTION_WINDOW_BYTES, MAX_SEND_BUFFER_BYTES};

/// The longest response head.
const MAX_HEAD_BYTES: u32 = 64 << 10;

/// The name of the protocol in TLS.
pub const ALPN: &[u8] = b"h2";

/// An open connection.
#[derive(Debug, Clone)]
pub struct Channel(SendRequest<Body>);

impl Channel {
    /// Speaks HTTP/2 on a stream of bytes. A peer that gives no sign of life for `silence` counts as gone. Must
    /// be called within a tokio runtime, in which the connection then lives until its last call has ended.
    pub async fn open(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        silence: Duration,
    ) -> Result<Self, hyper::Error> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(silence / 3)
            .keep_alive_timeout(silence * 2 / 3)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(CALL_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
            .max_header_list_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(async move {
            // The calls report how the connection ended.
            let _ = connection.await;
        });
        Ok(Self(sender))
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<Response<Incoming>, hyper::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
