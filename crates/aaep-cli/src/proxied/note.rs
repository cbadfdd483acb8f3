//! What the person should know of the connection between the two programs and to the hub.

use crate::console::{self, count};

/// Something about the connection that the person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProxyNote {
    /// The hub has answered for the first time.
    HubIsThere,
    /// The hub does not answer, or refuses the agent. With what to say where only this is told.
    HubIsAway(String),
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

impl ProxyNote {
    /// Says it on standard error, if it is worth a line.
    pub(crate) fn say(&self) {
        let line = match self {
            ProxyNote::HubIsThere => return,
            ProxyNote::HubIsAway(words) | ProxyNote::Notice(words) => {
                aaep::printable(words).into_owned()
            }
            ProxyNote::HubIsBack => "The AAEP hub answers again.".to_owned(),
            ProxyNote::NotTold(number) => {
                format!("The hub was not told {}.", count(*number, "event"))
            }
            ProxyNote::LastNotTold(number) => {
                format!("The hub was not told the last {}.", count(*number, "event"))
            }
            ProxyNote::TooLong => {
                "A message is too long to be told. It is passed on as it is.".to_owned()
            }
        };
        console::say(&line);
    }
}
