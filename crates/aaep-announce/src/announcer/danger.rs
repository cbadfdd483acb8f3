//! The order in which several questions are announced.

use aaep::{ActionStakes, Event, Payload};

/// The rank of a question: a larger rank is announced sooner. The risk comes first, then whether the action can be
/// undone. An unknown risk comes before a medium one, because it may be high. A clarification comes last.
pub fn rank(event: &Event) -> Option<ActionStakes> {
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => Some(asked.stakes()),
        _ => None,
    }
}
