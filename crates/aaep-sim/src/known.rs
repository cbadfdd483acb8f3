//! What the worlds let pass: where the rulings allow it, and where the engine is known to fail.
//!
//! What is known to fail is to be mended; then its line in [`KNOWN`] and its use below go away, and
//! the check holds again.

use std::sync::atomic::{AtomicBool, Ordering};

use aaep::Event;
use aaep_engine::{Input, MAX_UNITS};

use crate::check::pace::{is_notice, is_sum_up};
use crate::truth::Subscription;

/// The faults: what is wrong, and a seed that shows it with `--strict`.
pub const KNOWN: &[(&str, u64)] = &[
    (
        "Who resumes on a new subscription may hear some things twice or miss some: with a rate or a \
         pace, only the earlier subscription knows what it had.",
        16,
    ),
    ("A question may be given up although someone who resumed could answer it.", 1595),
    ("A valid reply may not count after a renegotiation, which is the safe side.", 547),
    ("Some renegotiations in the middle of an output repeat or lose some of its text.", 155),
    (
        "Who falls behind further than the log reaches while no session runs is not told so: there is \
         no session whose summary could say it.",
        143,
    ),
];

static STRICT: AtomicBool = AtomicBool::new(false);

/// Lets no known fault pass from now on, to see which are mended.
pub fn be_strict() {
    STRICT.store(true, Ordering::Relaxed);
}

fn is_lenient() -> bool {
    !STRICT.load(Ordering::Relaxed)
}

/// How a question was settled goes past the rate (ruling 18).
pub fn is_let_pass_by_rate(event: &Event) -> bool {
    is_notice(event)
}

/// What sums up a session goes to everyone who comes late (ruling 19).
pub fn is_let_pass_by_filter(event: &Event) -> bool {
    is_sum_up(event)
}

/// An agent's own events may be older than what the hub told before them: its clock may jump, and
/// what it says travels.
pub fn may_go_back(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}

/// Whether what happened may spoil the stream of a listener.
pub fn spoils(input: &Input) -> bool {
    is_lenient()
        && match input {
            Input::Renegotiate { .. } => true,
            Input::Subscribe { resume_from, .. } => resume_from.is_some(),
            _ => false,
        }
}

/// Whether so much was said that a listener with a rate or a pace may fall behind the log.
pub fn falls_behind(words: u64, subscription: &Subscription) -> bool {
    let is_limited = subscription.terms.rate.is_some() || subscription.terms.pace.is_some();
    is_lenient() && is_limited && words - subscription.since_words > MAX_UNITS as u64 / 2
}

/// Whether a reply that looks valid may be refused, which is the safe side.
pub fn may_refuse_valid() -> bool {
    is_lenient()
}
