//! What the worlds let pass because the rulings allow it.

use aaep::Event;

use crate::check::pace::is_sum_up;

/// What sums up a session goes to everyone who comes late (ruling 19).
pub fn is_let_pass_by_filter(event: &Event) -> bool {
    is_sum_up(event)
}

/// An agent's own events may be older than what the hub told before them: its clock may jump, and
/// what it says travels.
pub fn may_go_back(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}
