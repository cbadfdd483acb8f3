//! Starts a loop and sends commands to it.
//!
//! The queue is bounded by [`super::MAX_BATCHES`]. A sender waits when it is full: that is the hub's own delivery
//! thread, which is slowed down in this way when it is faster than the kernel.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};

use super::event_loop::{EventLoop, WAKE};
use super::{Command, ConnectionKey, MAX_BATCHES, Reports, WireSettings};

/// How many bits of a key count connections; the bits above are the number of the loop.
const COUNTER_BITS: u32 = 48;

/// A running loop.
#[derive(Debug)]
pub struct Wire {
    handle: WireHandle,
    thread: JoinHandle<()>,
}

/// Sends commands to a loop. All clones refer to the same loop; when the last one is dropped, the loop stops.
#[derive(Debug, Clone)]
pub struct WireHandle {
    /// Dropped before the waker, which then makes the loop notice that no handle is left.
    commands: SyncSender<Vec<Command>>,
    waker_guard: WakeOnDrop,
    /// Whether the loop has been woken and has not looked yet.
    is_woken: Arc<AtomicBool>,
    next_key: Arc<AtomicU64>,
}

/// Wakes the loop, also when it is dropped.
#[derive(Debug, Clone)]
struct WakeOnDrop(Arc<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        // Nothing can be done about a failure.
        let _ = self.0.wake();
    }
}

/// The loop has stopped and accepts no commands. Start another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireStopped;

impl fmt::Display for WireStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The wire has stopped and takes no more commands. Start another one.")
    }
}

impl std::error::Error for WireStopped {}

impl Wire {
    /// Starts a loop on a thread of its own.
    pub fn start(settings: WireSettings, reports: impl Reports) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let (commands, received) = mpsc::sync_channel(MAX_BATCHES);
        let is_woken = Arc::new(AtomicBool::new(false));
        let number = settings.number;
        let event_loop =
            EventLoop::new(poll, received, Arc::clone(&is_woken), settings, Box::new(reports));
        // The loop keeps the waker too: if the waker were dropped with the last handle, its last wake-up would be
        // lost.
        let kept = Arc::clone(&waker);
        let thread =
            thread::Builder::new().name(format!("aaep-wire-{number}")).spawn(move || {
                event_loop.run();
                drop(kept);
            })?;
        let next_key = Arc::new(AtomicU64::new(u64::from(number) << COUNTER_BITS));
        Ok(Self {
            handle: WireHandle { commands, waker_guard: WakeOnDrop(waker), is_woken, next_key },
            thread,
        })
    }

    /// The handle that sends commands to the loop.
    pub fn handle(&self) -> &WireHandle {
        &self.handle
    }

    /// Waits until the loop has ended after [`Command::Stop`] or because no other handle is left. Returns whether
    /// it ended without a panic.
    pub fn join(self) -> bool {
        let Self { handle, thread } = self;
        drop(handle);
        thread.join().is_ok()
    }
}

impl WireHandle {
    /// A key that no other connection of any loop has had.
    pub fn new_key(&self) -> ConnectionKey {
        ConnectionKey(self.next_key.fetch_add(1, Ordering::Relaxed))
    }

    /// The number of the loop that a key belongs to.
    pub fn loop_number(key: ConnectionKey) -> u16 {
        let [high, low, ..] = key.0.to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// Sends several commands at once. Their results for one connection are sent in one write.
    ///
    /// Waits while [`MAX_BATCHES`] batches are queued, so it must not be called from [`Reports::report`].
    pub fn send(&self, commands: Vec<Command>) -> Result<(), WireStopped> {
        self.commands.send(commands).map_err(|_| WireStopped)?;
        if !self.is_woken.swap(true, Ordering::SeqCst) {
            self.waker_guard.0.wake().map_err(|_| WireStopped)?;
        }
        Ok(())
    }
}
