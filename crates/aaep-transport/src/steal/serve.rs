//! Serves one connection with hyper until it ends or is stolen.
//!
//! Limits on the head of a request are set here. Limits on bodies belong to the service, which knows what it
//! expects.

use std::error::Error;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::source::{Source, WatchedSource};
use super::{FLUSHED, Loot, TheftState, Thief};

/// The longest request head.
pub const MAX_HEADER_BYTES: usize = 32 << 10;

/// The most fields in a request head.
pub const MAX_HEADERS: usize = 64;

/// How long a client may take for a request head, and how long it may be silent between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How serving a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeEnd {
    /// The client or the service ended it, or it was upgraded.
    Done,
    /// The socket was taken away and lives on.
    Stolen,
}

/// Serving a connection failed. The connection is closed; the client can open another one.
#[derive(Debug)]
pub enum ServeError {
    /// The client broke HTTP, was too slow, or went away.
    Http(hyper::Error),
    /// The socket could not be taken out of tokio.
    Socket(std::io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = "The client can connect again.";
        match self {
            Self::Http(error) => write!(f, "Serving a connection failed: {error}. {next}"),
            Self::Socket(error) => write!(f, "Taking over a connection failed: {error}. {next}"),
        }
    }
}

impl Error for ServeError {}

/// Limits on request heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// The longest request head, in bytes.
    pub header_bytes: usize,
    /// How long a client may take for a request head, and how long it may be silent between two requests.
    pub idle: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        ServeLimits { header_bytes: MAX_HEADER_BYTES, idle: HEADER_TIMEOUT }
    }
}

/// Serves HTTP/1 on a connection until it ends or until a handler has stolen it with the [`Thief`] in the
/// extensions of its request.
pub async fn serve_connection<I, S, B>(source: I, service: S) -> Result<ServeEnd, ServeError>
where
    I: Source,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    serve_connection_until(source, service, ServeLimits::default(), pending()).await
}

/// Like [`serve_connection`], with other limits, and until `stop`: then the current request is the last one, and
/// an idle connection ends.
pub async fn serve_connection_until<I, S, B>(
    source: I,
    service: S,
    limits: ServeLimits,
    stop: impl Future<Output = ()>,
) -> Result<ServeEnd, ServeError>
where
    I: Source,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let theft = Arc::new(TheftState::default());
    let with_thief = service_fn(|mut request: Request<Incoming>| {
        let thief = Thief::new(Arc::clone(&theft), request.version());
        request.extensions_mut().insert(thief);
        service.call(request)
    });
    let io = TokioIo::new(WatchedSource { source, theft: Arc::clone(&theft) });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_headers(MAX_HEADERS)
        .max_header_size(limits.header_bytes);
    let mut connection = builder.serve_connection(io, with_thief).with_upgrades();
    let mut stop = pin!(stop);
    let mut is_stopping = false;
    let ended = poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        match Pin::new(&mut connection).poll(context) {
            Poll::Pending if theft.is(FLUSHED) => Poll::Ready(None),
            other => other.map(Some),
        }
    })
    .await;
    if let Some(done) = ended {
        return done.map(|()| ServeEnd::Done).map_err(ServeError::Http);
    }
    // Taken before the connection is taken apart, because that drops the body, which cancels the waiting task.
    let waiting = theft.lock().take();
    let Some(((sender, framing), parts)) = waiting.zip(connection.into_parts()) else {
        // No task waits any more: the socket closes here.
        return Ok(ServeEnd::Done);
    };
    let socket = parts.io.into_inner().source.into_socket().map_err(ServeError::Socket)?;
    let loot = Loot { socket, read_ahead: parts.read_buf.to_vec(), framing };
    // If the task no longer waits, the socket is dropped, which closes it.
    Ok(sender.send(loot).map_or(ServeEnd::Done, |()| ServeEnd::Stolen))
}
