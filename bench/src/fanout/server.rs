//! Something that tells its subscribers events.

use super::wire::{Address, Kind};
use crate::process::Usage;

pub(super) trait Server {
    fn kind(&self) -> Kind;

    /// Where subscribers come in.
    fn address(&self) -> Address;

    /// All subscribers are there.
    fn complete(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// A round begins.
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Tells everyone so many events, and comes back when it has them in hand.
    fn tell(&mut self, events: usize) -> Result<(), String>;

    /// Tells everyone something critical, where the server knows what that is.
    fn tell_critical(&mut self) -> Result<(), String> {
        Err("this server knows nothing critical".to_owned())
    }

    fn usage(&self) -> Result<Usage, String>;

    /// Ends in order.
    fn stop(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}
