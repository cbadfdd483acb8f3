//! Taking a socket away from hyper, for connections that live long.
//!
//! hyper reads requests and answers them, with keep-alive, time limits and size limits. A handler that answers
//! with a stream of events asks its [`Thief`] for a body that never produces data. hyper writes the head of the
//! response, and once that has left its buffers the connection is taken apart: the socket goes to the task that
//! awaits [`Stolen`], nothing of hyper stays, and nothing is closed. A WebSocket uses hyper's own upgrade, see
//! [`upgraded`].
//!
//! Requests that a client pipelined behind the one that is answered with a stream are never answered.

mod serve;
mod source;

pub use serve::{
    MAX_HEADER_BYTES, MAX_HEADERS, ServeEnd, ServeError, ServeLimits, serve_connection,
    serve_connection_until,
};
pub use source::{Source, UpgradeError, upgraded};

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Version;
use hyper::body::{Body, Frame};
use tokio::sync::oneshot;

use crate::wire::Socket;

/// Given to every request in its extensions: it can take the connection away.
#[derive(Debug, Clone)]
pub struct Thief {
    theft: Arc<TheftState>,
    framing: Framing,
}

/// How to write the body that hyper has announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// In chunks (HTTP/1.1).
    Chunked,
    /// Unframed, up to the end of the connection (HTTP/1.0).
    Plain,
}

/// A socket that was taken away, with its response head written and its body still to be written.
#[derive(Debug)]
pub struct Loot {
    /// The socket, in non-blocking mode.
    pub socket: Socket,
    /// The bytes that hyper had read past the request.
    pub read_ahead: Vec<u8>,
    /// How to write the body.
    pub framing: Framing,
}

/// Waits for the socket.
#[derive(Debug)]
pub struct Stolen(oneshot::Receiver<Loot>);

/// The connection ended, or the response was not sent, before the socket could be taken. Nobody needs to be told;
/// a subscriber reconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NothingStolen;

/// A body that never produces data and never ends. It must be the body of the response unchanged.
#[derive(Debug)]
pub struct PendingBody(Arc<TheftState>);

/// How far the theft has progressed.
#[derive(Debug, Default)]
struct TheftState {
    stage: AtomicU8,
    waiting: Mutex<Option<SocketWaiter>>,
}

/// The task that waits for the socket, and how to write the body.
type SocketWaiter = (oneshot::Sender<Loot>, Framing);

/// No task wants the socket.
const IDLE: u8 = 0;
/// hyper has put the head of the response into its buffer, because it asks for the body.
const HEAD_WRITTEN: u8 = 1;
/// hyper has emptied its buffer and flushed the socket.
const FLUSHED: u8 = 2;

impl Thief {
    fn new(theft: Arc<TheftState>, version: Version) -> Self {
        let framing = if version == Version::HTTP_10 { Framing::Plain } else { Framing::Chunked };
        Self { theft, framing }
    }

    /// How to write the body.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Plans to take the connection away with the response to this request. The response must have the returned
    /// body, its status must allow a body, and the request must not be HEAD.
    pub fn steal(&self) -> (PendingBody, Stolen) {
        let (sender, receiver) = oneshot::channel();
        *self.theft.lock() = Some((sender, self.framing));
        (PendingBody(Arc::clone(&self.theft)), Stolen(receiver))
    }
}

impl TheftState {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SocketWaiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, stage: u8) -> bool {
        self.stage.load(Ordering::Acquire) == stage
    }

    fn reach(&self, from: u8, to: u8) {
        // If the stage is not `from`, this step is not due.
        let _ = self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Body for PendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // hyper asks for the body only after it has written the head into its buffer.
        self.0.reach(IDLE, HEAD_WRITTEN);
        Poll::Pending
    }
}

impl Drop for PendingBody {
    fn drop(&mut self) {
        // The response was dropped or had no body after all. The waiting task is told; after a successful theft
        // no task is waiting any more.
        drop(self.0.lock().take());
    }
}

impl Future for Stolen {
    type Output = Result<Loot, NothingStolen>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|_| NothingStolen)
    }
}

impl fmt::Display for NothingStolen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "The connection ended before the stream began. The subscriber can connect again.",
        )
    }
}

impl std::error::Error for NothingStolen {}
