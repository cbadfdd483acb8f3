//! The devices. Each one is thin, runs on its own thread, and can fail without affecting the others.

pub mod braille;
mod client;
#[cfg(feature = "desktop")]
pub mod desktop;
pub mod lines;
mod plain;
mod socket;
pub mod sounds;
pub mod speech;

pub use socket::DeviceAddress;

use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::time::Instant;

use crate::utterance::{DeviceReport, Order};

/// The most orders that may wait for a device. A device gets one utterance at a time, so more orders mean that it
/// hangs.
pub const MAX_WAITING_ORDERS: usize = 64;

/// A report, with its device and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedReport {
    /// The name of the device: `lines`, `speech`, `braille`, `sounds`, `desktop`.
    pub device: &'static str,
    /// The report.
    pub report: DeviceReport,
    /// When it happened.
    pub at: Instant,
}

/// Sends the reports of a device. Never blocks.
#[derive(Debug, Clone)]
pub struct Reporter {
    device: &'static str,
    to: Sender<TimedReport>,
}

/// The handle of a device. The device ends when the handle is dropped.
#[derive(Debug)]
pub struct Device {
    name: &'static str,
    orders: SyncSender<Order>,
}

/// The device does not take orders: it hangs, or it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresponsive;

/// The device is no longer used: its reports are not received or its orders have ended. Its thread ends.
struct DeviceAbandoned;

impl Device {
    /// Creates the handle of a device with this name, and the receiver of its orders.
    pub fn new(name: &'static str) -> (Self, Receiver<Order>) {
        let (orders, receiver) = mpsc::sync_channel(MAX_WAITING_ORDERS);
        (Device { name, orders }, receiver)
    }

    /// The name of the device.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Gives it an order. Never blocks.
    pub fn tell(&self, order: Order) -> Result<(), Unresponsive> {
        match self.orders.try_send(order) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Unresponsive),
        }
    }
}

impl Reporter {
    /// Creates a reporter for the device with this name.
    pub fn new(device: &'static str, to: Sender<TimedReport>) -> Self {
        Reporter { device, to }
    }

    /// Sends a report. Returns whether it is still received.
    pub fn report(&self, report: DeviceReport) -> bool {
        let at = Instant::now();
        self.to.send(TimedReport { device: self.device, report, at }).is_ok()
    }
}
