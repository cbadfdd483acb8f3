//! The event that a subscriber was sent last, so that an orderly stop can store where it is.

use aaep::EventId;

/// The event that a subscriber was sent last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LastSent {
    /// It was sent nothing since its subscription began.
    Nothing,
    /// This event.
    Event(EventId),
    /// That is not known.
    Unknown,
}

impl LastSent {
    /// What a subscriber that continues says it received last. It may have received nothing.
    pub(crate) fn received(last: Option<&EventId>) -> Self {
        last.map_or(LastSent::Nothing, |last| LastSent::Event(last.clone()))
    }
}
