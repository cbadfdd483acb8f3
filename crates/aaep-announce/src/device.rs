//! The devices: each one thin, each on a thread of its own, each able to fail alone.

pub mod braille;
mod client;
#[cfg(feature = "desktop")]
pub mod desktop;
pub mod lines;
mod plain;
mod socket;
pub mod sounds;
pub mod speech;

pub use socket::Address;

use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::time::Instant;

use crate::utterance::{Order, Report};

/// How many orders may wait for a device. It gets one utterance at a time, so more means that it hangs.
pub const MAX_WAITING_ORDERS: usize = 64;

/// A report, and from which device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The name of the device: `lines`, `speech`, `braille`, `sounds`, `desktop`.
    pub device: &'static str,
    /// The report.
    pub report: Report,
    /// When it happened.
    pub at: Instant,
}

/// Where a device reports to. Never waits.
#[derive(Debug, Clone)]
pub struct Reporter {
    device: &'static str,
    to: Sender<Told>,
}

/// The near end of a device. When it is dropped, the device ends.
#[derive(Debug)]
pub struct Device {
    name: &'static str,
    orders: SyncSender<Order>,
}

/// The device takes no orders: it hangs, or it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresponsive;

impl Device {
    /// Both ends of the orders for a device of this name.
    pub fn new(name: &'static str) -> (Self, Receiver<Order>) {
        let (orders, receiver) = mpsc::sync_channel(MAX_WAITING_ORDERS);
        (Device { name, orders }, receiver)
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tells it what to do. Never waits.
    pub fn tell(&self, order: Order) -> Result<(), Unresponsive> {
        match self.orders.try_send(order) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Unresponsive),
        }
    }
}

impl Reporter {
    /// One that reports for the device of this name.
    pub fn new(device: &'static str, to: Sender<Told>) -> Self {
        Reporter { device, to }
    }

    /// Reports. Says whether anyone still wants to know.
    pub fn report(&self, report: Report) -> bool {
        let at = Instant::now();
        self.to.send(Told { device: self.device, report, at }).is_ok()
    }
}
