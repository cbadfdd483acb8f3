//! Systems without AT-SPI. There `AccessKit` needs a window with the keyboard focus, which this program does not
//! have.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use super::{NAME, Settings};
use crate::device::{Device, Reporter, TimedReport};
use crate::english::devices::DESKTOP_ONLY_ON_LINUX;
use crate::utterance::{DeviceReport, Order};

/// Starts a device that reports that it does not work.
pub(super) fn start(_: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let reporter = Reporter::new(NAME, reports);
    thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        let mut goes_on = reporter.report(DeviceReport::Trouble(DESKTOP_ONLY_ON_LINUX.to_owned()));
        for order in orders {
            if let (true, Order::Say(utterance)) = (goes_on, order) {
                goes_on = reporter.report(DeviceReport::Cut(utterance.id));
            }
        }
    })?;
    Ok(device)
}
