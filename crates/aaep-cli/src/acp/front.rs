//! What stands before the person: an editor, or a chat of our own.

use std::io::{self, BufRead, Stdout};

use aaep_bridge::acp::AcpPlan;

use super::lines::SharedOutput;
use crate::console::{self, count};

/// Something about the connection that the person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrontNote {
    /// The hub has answered for the first time.
    HubIsThere,
    /// The hub does not answer, or refuses the agent.
    HubIsAway,
    /// The hub answers again.
    HubIsBack,
    /// The hub was not told this many events, because too many waited.
    NotTold(u64),
    /// The hub was not told the last events, because the agent has ended.
    LastNotTold(u64),
    /// A message of the agent is too long to be understood.
    TooLong,
    /// Anything else, in words. Foreign text may be in it.
    Notice(String),
}

/// Takes what an agent writes, and what the person should see besides.
pub(crate) trait AcpFront: Send + Sync {
    /// Takes a line. Returns false if nobody reads it.
    fn pass(&self, line: &[u8]) -> bool;

    /// Takes the beginning of a line and the rest of it as it comes. Returns false if nobody reads it.
    fn pass_long(&self, beginning: &[u8], input: &mut dyn BufRead) -> bool;

    /// Sees what happens, in order. Must not wait.
    fn show(&self, plan: &AcpPlan);

    /// Takes a note.
    fn note(&self, note: &FrontNote);

    /// Waits until more lines can be taken.
    fn wait_for_room(&self);
}

/// An editor on standard output. What it should know besides is on standard error.
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

    fn note(&self, note: &FrontNote) {
        let events = |number| count(number, "event");
        let words = match note {
            FrontNote::HubIsThere => return,
            FrontNote::HubIsAway => {
                "The AAEP hub does not answer or refuses this agent, which is not heard there now. Its questions in \
                 the editor still work. To start a hub: aaep serve"
                    .to_owned()
            }
            FrontNote::HubIsBack => "The AAEP hub answers again.".to_owned(),
            FrontNote::NotTold(number) => format!("The hub was not told {}.", events(*number)),
            FrontNote::LastNotTold(number) => {
                format!("The hub was not told the last {}.", events(*number))
            }
            FrontNote::TooLong => {
                "A message is too long to be told. It is passed on as it is.".to_owned()
            }
            FrontNote::Notice(words) => aaep::printable(words).into_owned(),
        };
        console::say(&words);
    }

    // An editor that does not read keeps its agent waiting by itself.
    fn wait_for_room(&self) {}
}
