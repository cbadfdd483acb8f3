//! Faults of the engine that are known and reported: each lets its check pass until it is mended.
//!
//! Temporary. When the engine is mended, the line in [`KNOWN`] and its use below go away, and the
//! check holds again.

use aaep::{Event, Payload};
use aaep_engine::Input;

use crate::check::pace::{is_notice, is_sum_up};
use crate::check::{Delivered, Step};
use crate::truth::Subscription;

/// The faults: what is wrong, and a seed that shows it when the line is taken out.
pub const KNOWN: &[(&str, u64)] = &[
    ("Who alone has its terms and changes only its rate or pace never hears anything again; \
      renegotiating listeners therefore always change their verbosity too.", 43),
    ("What sums up a session for someone who comes late spends no budget and passes filters.", 0),
    ("How a question was settled goes past the rate, though it does not say that it is critical.", 0),
    ("The hub stamps its own events with its own clock, so that an agent's event that travelled is \
      older than what came before it.", 0),
];

/// Events that go past the rate though they are not critical.
pub fn is_let_pass_by_rate(event: &Event) -> bool {
    is_sum_up(event) || is_notice(event)
}

/// Events that go past a filter though nothing allows it.
pub fn is_let_pass_by_filter(event: &Event) -> bool {
    is_sum_up(event) || is_digest(event)
}

/// Many tools in one event.
fn is_digest(event: &Event) -> bool {
    let Payload::ProgressUpdated(it) = &event.payload else { return false };
    it.summary_normal.as_ref().is_some_and(|words| words.contains("tools started and"))
}

/// Who lost something without being told so.
pub fn unsaid_gap(step: &Step<'_>) -> Option<usize> {
    let Input::Reconnect { last_event_id: None, .. } = step.input else { return None };
    step.changed.map(|(at, _)| at)
}

/// Events without a number on a subscription whose events are numbered.
pub fn may_lack_number(_: &Delivered) -> bool {
    false
}

/// Events with a wrong number.
pub fn may_misnumber(_: &Delivered) -> bool {
    false
}

/// Events that are older than what came before them: those of agents, stamped before they travelled.
pub fn may_go_back(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}

/// Whether a listener may ask to be asked, which a renegotiation grants to anyone.
pub fn may_ask_to_answer(may_reply: bool) -> bool {
    may_reply
}

/// Whether something may be sent to a listener whose wire is full: a renegotiation does it.
pub fn reaches_full_wire(step: &Step<'_>) -> bool {
    matches!(step.input, Input::Renegotiate { .. })
}

/// Whether urgent events may come twice to a listener that stalled or not.
pub fn repeats_after(has_stalled: bool) -> bool {
    has_stalled
}

/// Whether more of a session may come after its end to a listener with other terms or not.
pub fn goes_on_after_end(has_other_terms: bool) -> bool {
    has_other_terms
}

/// Whether what happened may spoil the stream of a listener with a rate or a pace.
pub fn spoils(input: &Input, subscription: &Subscription) -> bool {
    let is_limited = subscription.terms.rate.is_some() || subscription.terms.pace.is_some();
    match input {
        Input::Reconnect { .. } | Input::Renegotiate { .. } => is_limited,
        Input::Subscribe { resume_from, .. } => is_limited && resume_from.is_some(),
        _ => false,
    }
}
