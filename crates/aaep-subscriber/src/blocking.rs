//! The kit for programs without an async runtime.
//!
//! A [`Subscriber`] has a small runtime of its own, in a thread of its own. Questions are the same [`Ask`]s as
//! elsewhere: [`wait`] waits for what they give, from any thread.
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

/// How long saying goodbye may take when a subscriber is dropped.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A subscription that stays. Dropping it says goodbye to the producer.
#[derive(Debug)]
pub struct Subscriber {
    inner: crate::Subscriber,
    /// There until the subscriber is dropped.
    runtime: Option<Runtime>,
}

/// Nothing new came in time.
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
        .map_err(|error| ConnectError::NoLine(format!("The system gives no thread: {error}.")))?;
    match runtime.block_on(crate::connect(url, wishes)) {
        Ok(inner) => Ok(Subscriber { inner, runtime: Some(runtime) }),
        Err(error) => {
            // A lookup of names that never ends must not hold the program back.
            runtime.shutdown_background();
            Err(error)
        }
    }
}

impl Subscriber {
    /// Waits for what is new, at most so long.
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

    /// Another hand to say something with, such as from another thread; [`wait`] waits for it.
    pub fn voice(&self) -> Voice {
        self.inner.voice()
    }

    /// Asks for other terms, as [`renegotiate`](crate::Subscriber::renegotiate) does.
    pub fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        wait(self.inner.renegotiate(capabilities))
    }

    /// Says goodbye, with a reason for people if there is one.
    pub fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        wait(self.inner.close(reason))
    }
}

impl Iterator for Subscriber {
    type Item = News;

    /// Waits for what is new; nothing after [`News::Ended`].
    fn next(&mut self) -> Option<News> {
        wait(self.inner.next())
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        {
            // Whoever closed before is told that it is over, and a wire that is stuck is not waited for.
            let _within = runtime.enter();
            let _ = wait(tokio::time::timeout(LAST_WORDS, self.inner.close(None)));
        }
        runtime.shutdown_background();
    }
}

/// Waits for what a future of this crate gives, such as [`Ask::accept`](crate::Ask::accept).
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
