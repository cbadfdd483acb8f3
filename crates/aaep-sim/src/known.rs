//! Faults of the engine that are known and reported: each lets its check pass until it is mended.
//!
//! Temporary. When the engine is mended, the line in [`KNOWN`] and its use below go away, and the
//! check holds again.

use std::sync::atomic::{AtomicBool, Ordering};

use aaep::{Event, Payload};
use aaep_engine::{Input, MAX_UNITS};

use crate::check::asks::token_in;
use crate::check::pace::{is_notice, is_sum_up};
use crate::check::{Delivered, Step};
use crate::truth::{Subscription, Terms};

/// The faults: what is wrong, and a seed that shows it when the line is taken out.
pub const KNOWN: &[(&str, u64)] = &[
    (
        "Who alone has its terms and changes only its rate or pace never hears anything again; \
         renegotiating listeners here always change their verbosity too.",
        43,
    ),
    ("What sums up a session for someone who comes late spends no budget and passes filters.", 0),
    ("How a question was settled passes the rate, though it does not say that it is critical.", 8),
    ("A digest of tools is progress, and goes to who wants tools but no progress.", 0),
    (
        "The hub stamps its own events with its own clock, so that an agent's event that travelled \
         is older than what came before it.",
        0,
    ),
    ("A renegotiation lets someone be asked who may not answer.", 17),
    ("A renegotiation sends events to a listener whose wire is full.", 76),
    ("When a wire is free again, or a listener is back, critical events come a second time.", 118),
    ("After a renegotiation, events of a session come after its critical end.", 37),
    ("Who has a rate or a pace loses the critical events of its absence when it is back.", 7),
    ("Who resumes on a new subscription after a critical event loses what that overtook.", 24),
    ("A renegotiation in the middle of an output repeats or loses text.", 280),
    ("Who is more than the log behind loses the rest without being told.", 268),
    ("What is made for one listener has no number where all events are numbered.", 35),
    ("Pieces of one chunk have the same number, and a chunk that is held leaves a gap.", 67),
    ("Events are numbered where a pace holds, merges and overtakes them.", 35),
    ("What was merged for a wire that was full has no number where all events are numbered.", 112),
    ("Who had a full wire and then loses its connection gets text again.", 429),
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
    is_sum_up(event) || (is_lenient() && is_digest(event))
}

/// Many tools in one event.
fn is_digest(event: &Event) -> bool {
    let Payload::ProgressUpdated(it) = &event.payload else { return false };
    it.summary_normal.as_ref().is_some_and(|words| words.contains("tools started and"))
}

/// Who lost something without being told so.
pub fn unsaid_gap(step: &Step<'_>) -> Option<usize> {
    let Input::Reconnect { last_event_id: None, .. } = step.input else { return None };
    if !is_lenient() {
        return None;
    }
    step.changed.map(|(at, _)| at)
}

/// Events without a number on a subscription whose events are numbered: made for one listener, or
/// merged for one whose wire was full.
pub fn may_lack_number(sent: &Delivered, subscription: &Subscription) -> bool {
    let is_personal = is_sum_up(&sent.event) || token_in(&sent.event.payload).is_some();
    is_lenient() && (is_personal || subscription.has_stalled)
}

/// Whether there may be numbers where events are held: a pace is not taken into account.
pub fn may_number(terms: &Terms) -> bool {
    is_lenient() && terms.pace.is_some()
}

/// Whether numbers may be wrong in a session with text or without.
pub fn may_misnumber(has_text: bool) -> bool {
    is_lenient() && has_text
}

/// Events that are older than what came before them: those of agents, stamped before they travelled.
pub fn may_go_back(event: &Event) -> bool {
    event.envelope.producer.agent_id.starts_with("agent-")
}

/// Whether renegotiating listeners always change what shapes their events, too.
pub fn avoids_same_audience() -> bool {
    is_lenient()
}

/// Whether a listener may ask to be asked, which a renegotiation grants to anyone.
pub fn may_ask_to_answer(may_reply: bool) -> bool {
    may_reply || !is_lenient()
}

/// Whether something may be sent to a listener whose wire is full: a renegotiation does it.
pub fn reaches_full_wire(step: &Step<'_>) -> bool {
    is_lenient() && matches!(step.input, Input::Renegotiate { .. })
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
