//! What stands before the person: an editor, or a chat of our own.

use std::io::{self, BufRead, Stdout};

use aaep_bridge::acp::AcpPlan;

use crate::proxied::lines::SharedOutput;
use crate::proxied::note::ProxyNote;

/// Takes what an agent writes, and what the person should see besides.
pub(crate) trait AcpFront: Send + Sync {
    /// Takes a line. Returns false if nobody reads it.
    fn pass(&self, line: &[u8]) -> bool;

    /// Takes the beginning of a line and the rest of it as it comes. Returns false if nobody reads it.
    fn pass_long(&self, beginning: &[u8], input: &mut dyn BufRead) -> bool;

    /// Sees what happens, in order. Must not wait.
    fn show(&self, plan: &AcpPlan);

    /// Takes a note.
    fn note(&self, note: &ProxyNote);

    /// Waits until more lines can be taken.
    fn wait_for_room(&self);
}

/// An editor on standard output. What the person should know besides is on standard error.
pub(super) struct EditorFront(SharedOutput<Stdout>);

impl Default for EditorFront {
    fn default() -> Self {
        EditorFront(SharedOutput::new(io::stdout()))
    }
}

impl AcpFront for EditorFront {
    fn pass(&self, line: &[u8]) -> bool {
        self.0.write(line)
    }

    fn pass_long(&self, beginning: &[u8], input: &mut dyn BufRead) -> bool {
        self.0.write_long(beginning, input)
    }

    fn show(&self, _plan: &AcpPlan) {}

    fn note(&self, note: &ProxyNote) {
        note.say();
    }

    // An editor that does not read keeps its agent waiting by itself.
    fn wait_for_room(&self) {}
}
