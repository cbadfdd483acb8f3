//! The kit for programs without an async runtime.
//!
//! A [`Subscriber`] runs a small runtime in a thread of its own. Asks are the same [`Ask`]s as elsewhere:
//! [`wait`] waits for their futures, from any thread.
//!
//! ```no_run
//! use aaep_subscriber::blocking::{connect, wait};
//! use aaep_subscriber::{News, Wishes};
//!
//! let subscriber = connect("http://127.0.0.1:7117", Wishes::new("my-reader"))?;
//! for news in subscriber {
//!     match news {
//!         News::Event(event) => println!("{}", aaep::printable(&event.words())),
//!         News::Ask(ask) => wait(ask.reject())?,
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Ask`]: crate::Ask

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use aaep::Capabilities;
use tokio::runtime::{Builder, Runtime};

use crate::error::{ConnectError, SayError};
use crate::news::News;
use crate::subscriber::Voice;
use crate::wishes::Wishes;

/// How long closing may take when a subscriber is dropped.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A subscription that survives broken connections. Dropping it closes the subscription.
#[derive(Debug)]
pub struct Subscriber {
    inner: crate::Subscriber,
    /// `None` only while the subscriber is being dropped.
    runtime: Option<Runtime>,
}

/// Nothing new arrived in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NothingNew;

/// Subscribes to the producer at an address, as [`connect`](crate::connect) does.
///
/// # Panics
/// When called within an async runtime; use [`connect`](crate::connect) there.
pub fn connect(url: &str, wishes: Wishes) -> Result<Subscriber, ConnectError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("aaep-subscriber")
        .enable_all()
        .build()
        .map_err(|error| {
            ConnectError::NoLine(format!("The system does not start threads: {error}."))
        })?;
    match runtime.block_on(crate::connect(url, wishes)) {
        Ok(inner) => Ok(Subscriber { inner, runtime: Some(runtime) }),
        Err(error) => {
            // A name lookup that never ends must not block the program.
            runtime.shutdown_background();
            Err(error)
        }
    }
}

impl Subscriber {
    /// Waits for news, at most for this time.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<News>, NothingNew> {
        match &self.runtime {
            Some(runtime) => {
                let inner = &mut self.inner;
                let next = async { tokio::time::timeout(time, inner.next()).await };
                runtime.block_on(next).map_err(|_| NothingNew)
            }
            None => Ok(None),
        }
    }

    /// Another handle for sending, for example from another thread; use [`wait`] on its futures.
    pub fn voice(&self) -> Voice {
        self.inner.voice()
    }

    /// Requests other terms, as [`renegotiate`](crate::Subscriber::renegotiate) does.
    pub fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        wait(self.inner.renegotiate(capabilities))
    }

    /// Closes the subscription, with a reason for people if there is one.
    pub fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        wait(self.inner.close(reason))
    }
}

impl Iterator for Subscriber {
    type Item = News;

    /// Waits for news. Returns `None` after [`News::Ended`].
    fn next(&mut self) -> Option<News> {
        wait(self.inner.next())
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        {
            // If the subscription was closed before, this returns an error at once. A stuck wire is not waited
            // for.
            let _within = runtime.enter();
            let _ = wait(tokio::time::timeout(LAST_WORDS, self.inner.close(None)));
        }
        runtime.shutdown_background();
    }
}

/// Waits for a future of this crate, such as [`Ask::accept`](crate::Ask::accept).
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes the waiting thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
