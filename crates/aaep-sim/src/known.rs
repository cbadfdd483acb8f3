//! Faults of the engine that are known and reported: each lets its check pass until it is mended.
//!
//! Temporary. When the engine is mended, the line in [`KNOWN`] and its use below go away, and the
//! check holds again.

use std::sync::atomic::{AtomicBool, Ordering};

use aaep::Event;
use aaep_engine::{Input, MAX_UNITS};

use crate::check::Step;
use crate::check::pace::{is_notice, is_sum_up};
use crate::truth::Subscription;

/// The faults: what is wrong, and a seed that shows it with `--strict`.
/// What concerns the rate, the sum-up and the clock stays let pass there too.
pub const KNOWN: &[(&str, u64)] = &[
    ("What sums up a session for someone who comes late spends no budget and passes filters.", 7),
    ("How a question was settled passes the rate, though it does not say that it is critical.", 3),
    (
        "When the clock jumps back, or a timer of the hub fires while an agent's event travels, \
         that event is older than what came before it.",
        0,
    ),
    ("When a wire is free again, or a listener is back, critical events come a second time.", 309),
    ("After a renegotiation, events of a session come after its critical end.", 9),
    ("After a renegotiation or a return, critical events never arrive.", 50),
    ("A renegotiation in the middle of an output repeats or loses text.", 16),
    ("Who comes back or resumes loses the start of a session, or a whole output.", 13),
    ("Who is more than the log behind loses the rest without being told.", 34),
    ("Who had a full wire and then loses its connection gets text again.", 76),
    ("Who resumes on a new subscription is not counted as asked: its reply does not count.", 1595),
    ("Who comes back without having received anything loses what was sent, and is not told.", 0),
];

static STRICT: AtomicBool = AtomicBool::new(false);

/// Lets no known fault pass from now on, to see which are mended.
pub fn be_strict() {
    STRICT.store(true, Ordering::Relaxed);
}

fn is_lenient() -> bool {
    !STRICT.load(Ordering::Relaxed)
}

/// Events that go past the rate though they are not critical.
pub fn is_let_pass_by_rate(event: &Event) -> bool {
    is_sum_up(event) || is_notice(event)
}

/// Events that go past a filter though nothing allows it.
pub fn is_let_pass_by_filter(event: &Event) -> bool {
    is_sum_up(event)
}

/// Who lost something without being told so.
pub fn unsaid_gap(step: &Step<'_>) -> Option<usize> {
    let Input::Reconnect { last_event_id: None, .. } = step.input else { return None };
    if !is_lenient() {
        return None;
    }
    step.changed.map(|(at, _)| at)
}

/// Events that are older than what came before them: those of agents, stamped before they travelled.
pub fn may_go_back(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}

/// Whether urgent events may come twice to a listener that stalled or was away, or not.
pub fn repeats_after(has_stalled: bool) -> bool {
    is_lenient() && has_stalled
}

/// Whether more of a session may come after its end to a listener with other terms or not.
pub fn goes_on_after_end(has_other_terms: bool) -> bool {
    is_lenient() && has_other_terms
}

/// Whether so much was said that a listener with a rate or a pace may silently lose something.
pub fn falls_behind(words: u64, subscription: &Subscription) -> bool {
    is_lenient()
        && is_limited(subscription)
        && words - subscription.since_words > MAX_UNITS as u64 / 2
}

fn is_limited(subscription: &Subscription) -> bool {
    subscription.terms.rate.is_some() || subscription.terms.pace.is_some()
}

/// Whether what happened may spoil the stream of a listener.
pub fn spoils(input: &Input, subscription: &Subscription) -> bool {
    let is_limited = is_limited(subscription);
    is_lenient()
        && match input {
            Input::Renegotiate { .. } => true,
            Input::Reconnect { .. } => is_limited || subscription.has_stalled,
            Input::Subscribe { resume_from, .. } => resume_from.is_some() && is_limited,
            _ => false,
        }
}

/// Whether a reply that looks valid may be refused, which is the safe side.
pub fn may_refuse_valid() -> bool {
    is_lenient()
}

/// Whether a question may be given up though this listener could answer: it resumed.
pub fn may_give_up(subscription: &Subscription) -> bool {
    is_lenient() && subscription.resumes.is_some()
}
