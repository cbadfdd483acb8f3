//! Shares: nobody takes more than there is, and nobody takes another's.

use super::{Invariant, Moment};
use crate::truth::Truth;

/// What is held for histories and logs stays within the budget.
pub struct Memory {
    bytes: usize,
}

impl Memory {
    /// With this budget.
    pub fn new(bytes: usize) -> Self {
        Memory { bytes }
    }
}

impl Invariant for Memory {
    fn name(&self) -> &'static str {
        "memory within its budget"
    }

    fn meaning(&self) -> &'static str {
        "The histories of sessions and the logs of audiences never take more bytes than is configured."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        if step.memory_bytes > self.bytes {
            return Err(format!("{} bytes are held, of {}.", step.memory_bytes, self.bytes));
        }
        Ok(())
    }
}
