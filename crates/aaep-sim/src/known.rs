//! Exceptions that the invariants make because the rulings allow them.

use aaep::Event;

use crate::check::pace::is_summary;

/// A summary of a session goes to every subscriber that joins late, whatever its filter (ruling 19).
pub fn passes_every_filter(event: &Event) -> bool {
    is_summary(event)
}

/// An agent's own event may carry an earlier time than the event that the hub sent before it: the
/// agent's clock may jump, and its messages take time to travel.
pub fn may_carry_earlier_time(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}
