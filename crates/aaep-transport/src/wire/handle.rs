//! Starting a loop and telling it things.
//!
//! Its queue is bounded by [`super::MAX_BATCHES`]. Who sends into a full one waits: that is the hub's own
//! delivery thread, and waiting is how it learns that it is faster than the kernel.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};

use super::event_loop::{EventLoop, WAKE};
use super::{Command, ConnectionKey, MAX_BATCHES, Reports, WireSettings};

/// How many bits of a key count connections; those above are the number of the loop.
const COUNTER_BITS: u32 = 48;

/// A running loop.
#[derive(Debug)]
pub struct Wire {
    handle: WireHandle,
    thread: JoinHandle<()>,
}

/// How a loop is told things. Clones tell the same loop; when the last one is gone, the loop stops.
#[derive(Debug, Clone)]
pub struct WireHandle {
    /// Dropped before the alarm, which then makes the loop see that nobody is left.
    commands: SyncSender<Vec<Command>>,
    alarm: Alarm,
    /// The loop has been woken and has not yet looked.
    is_woken: Arc<AtomicBool>,
    next_key: Arc<AtomicU64>,
}

/// Wakes the loop, also when it is dropped.
#[derive(Debug, Clone)]
struct Alarm(Arc<Waker>);

impl Drop for Alarm {
    fn drop(&mut self) {
        // There is nothing to do about a failure.
        let _ = self.0.wake();
    }
}

/// The loop has stopped and takes no commands. Start another one.
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
        // The loop keeps the waker too: dropped with the last handle, it would take its last call along.
        let kept = Arc::clone(&waker);
        let thread =
            thread::Builder::new().name(format!("aaep-wire-{number}")).spawn(move || {
                event_loop.run();
                drop(kept);
            })?;
        let next_key = Arc::new(AtomicU64::new(u64::from(number) << COUNTER_BITS));
        Ok(Self {
            handle: WireHandle { commands, alarm: Alarm(waker), is_woken, next_key },
            thread,
        })
    }

    /// How to tell it things.
    pub fn handle(&self) -> &WireHandle {
        &self.handle
    }

    /// Waits until the loop has ended after [`Command::Stop`] or when no other handle is left. Says
    /// whether it ended as it should.
    pub fn join(self) -> bool {
        let Self { handle, thread } = self;
        drop(handle);
        thread.join().is_ok()
    }
}

impl WireHandle {
    /// A key that no other connection of any loop has had.
    pub fn new_key(&self) -> ConnectionKey {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    /// Which loop a key belongs to.
    pub fn loop_number(key: ConnectionKey) -> u16 {
        let [high, low, ..] = key.to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// Tells the loop several things at once. What they bring for one connection goes out in one write.
    ///
    /// Waits while [`MAX_BATCHES`] batches are waiting already, so it must not be called from
    /// [`Reports::report`].
    pub fn send(&self, commands: Vec<Command>) -> Result<(), WireStopped> {
        self.commands.send(commands).map_err(|_| WireStopped)?;
        if !self.is_woken.swap(true, Ordering::SeqCst) {
            self.alarm.0.wake().map_err(|_| WireStopped)?;
        }
        Ok(())
    }
}
