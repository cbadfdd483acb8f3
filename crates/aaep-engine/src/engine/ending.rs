//! Sessions that the hub ends, because the agent went silent or because somebody ended them by
//! hand.
//!
//! Everyone hears it as the end of the session. Its open asks are withdrawn, and nothing is ever
//! accepted.

use std::sync::Arc;

use aaep::event::lifecycle::{ErrorCategory, SessionErrored};
use aaep::{Event, Object, SessionId, Urgency};

use super::{Engine, EngineSession};
use crate::clock::{Now, SECOND_US};
use crate::io::{Author, Output, SessionEnd};

impl SessionEnd {
    fn words(self) -> String {
        match self {
            SessionEnd::Silent { after_us } => format!(
                "Ended without a word: nothing came from the agent for {}.",
                in_words(after_us / SECOND_US)
            ),
            SessionEnd::ByHand => {
                "Ended by hand: someone who looks after the hub ended it.".to_owned()
            }
        }
    }
}

/// A duration in the largest unit of which it is a whole number.
fn in_words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        it if it >= 3600 && it.is_multiple_of(3600) => (it / 3600, "hour"),
        it if it >= 60 && it.is_multiple_of(60) => (it / 60, "minute"),
        it => (it, "second"),
    };
    if count == 1 { format!("{count} {unit}") } else { format!("{count} {unit}s") }
}

/// How long after a restart an agent has to publish before its session can be called silent. The time before
/// the restart is only as reliable as the machine's clock.
const TIME_TO_RETURN_US: u64 = 600 * SECOND_US;

impl Engine {
    /// The running sessions without an open ask whose agents have been silent for this long. Time before the
    /// engine started counts, too.
    pub fn silent_sessions(&self, now: Now, for_us: u64) -> Vec<SessionId> {
        let is_silent = |session: &EngineSession| {
            let since_us = now.monotonic_us.saturating_sub(session.heard_us);
            since_us.saturating_add(session.silent_before_us) >= for_us
                && since_us >= for_us.min(TIME_TO_RETURN_US)
        };
        let silent = self.sessions.iter().filter(|(key, session)| {
            !session.order.is_ended() && is_silent(session) && !self.asks.has_any_in(*key)
        });
        silent.map(|(_, session)| session.id.clone()).collect()
    }

    /// Ends a running session.
    pub(super) fn end_session(
        &mut self,
        now: Now,
        session_id: &SessionId,
        why: SessionEnd,
        out: &mut Vec<Output>,
    ) {
        let Some(key) = self.sessions.key_of(session_id) else { return };
        let Some(session) = self.sessions.get(key) else { return };
        let Some(like) = session.last_envelope().cloned() else { return };
        let mut envelope = self.own_envelope(now, key, &like);
        envelope.urgency = Some(Urgency::Critical);
        let payload = SessionErrored {
            error_category: ErrorCategory::Unknown,
            summary_normal: why.words(),
            summary_terse: None,
            summary_detailed: None,
            error_code: None,
            error_uri: None,
            recoverable: None,
            remediation_hint: None,
            other: Object::new(),
        };
        let event = Event::new(envelope, payload);
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Ok(admitted) = session.order.admit(&event) else { return };
        self.withdraw_all(now, key, None, out);
        self.close_left_open(now, key, &like, &admitted.left_open, out);
        self.append(now, key, Arc::new(event), Author::Hub, out);
    }
}
