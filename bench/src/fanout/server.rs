//! A server that sends events to its subscribers.

use super::wire::{MeasuredAddress, ServerKind};
use crate::process::ProcessUsage;

pub(super) trait FanoutServer {
    fn kind(&self) -> ServerKind;

    /// The address for subscribers.
    fn address(&self) -> MeasuredAddress;

    /// Called when all subscribers are connected.
    fn complete(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called when a round begins.
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sends this many events to all subscribers. Returns when the server has accepted them.
    fn tell(&mut self, events: usize) -> Result<(), String>;

    /// Sends a critical event to all subscribers, if the server supports that.
    fn tell_critical(&mut self) -> Result<(), String> {
        Err("this server knows nothing critical".to_owned())
    }

    fn usage(&self) -> Result<ProcessUsage, String>;

    /// Stops in an orderly way.
    fn stop(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
