//! Serving one connection with hyper until it ends or is stolen.
//!
//! Bounds on the head of a request are set here. Bounds on bodies are for the service, which knows what it
//! expects.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::source::{Source, Watched};
use super::{FLUSHED, Loot, Plot, Thief};

/// The longest head of a request.
pub const MAX_HEADER_BYTES: usize = 32 << 10;

/// The most fields in the head of a request.
pub const MAX_HEADERS: usize = 64;

/// How long a client may take for the head of a request, and how long it may stay silent between two.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How serving a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client or the service ended it, or it was upgraded.
    Done,
    /// The socket was taken away and lives on.
    Stolen,
}

/// Serving a connection failed. The connection is closed; the client can make another one.
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

/// Serves HTTP/1 on a connection until it ends or until a handler has stolen it with the [`Thief`] that it
/// finds in the extensions of its request.
pub async fn serve_connection<I, S, B>(source: I, service: S) -> Result<End, ServeError>
where
    I: Source,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let plot = Arc::new(Plot::default());
    let with_thief = service_fn(|mut request: Request<Incoming>| {
        let thief = Thief::new(Arc::clone(&plot), request.version());
        request.extensions_mut().insert(thief);
        service.call(request)
    });
    let io = TokioIo::new(Watched { source, plot: Arc::clone(&plot) });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES);
    let mut connection = builder.serve_connection(io, with_thief).with_upgrades();
    let ended = poll_fn(|context| match Pin::new(&mut connection).poll(context) {
        Poll::Pending if plot.is(FLUSHED) => Poll::Ready(None),
        other => other.map(Some),
    })
    .await;
    if let Some(done) = ended {
        return done.map(|()| End::Done).map_err(ServeError::Http);
    }
    // Before the connection is taken apart, because that drops the body, which sends waiting people home.
    let waiting = plot.lock().take();
    let Some(((sender, framing), parts)) = waiting.zip(connection.into_parts()) else {
        // Nobody waits any more: the socket closes here.
        return Ok(End::Done);
    };
    let socket = parts.io.into_inner().source.into_socket().map_err(ServeError::Socket)?;
    let loot = Loot { socket, read_ahead: parts.read_buf.to_vec(), framing };
    // Whoever no longer waits loses the socket, which then closes.
    Ok(sender.send(loot).map_or(End::Done, |()| End::Stolen))
}
