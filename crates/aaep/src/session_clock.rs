//! Whether the timestamps of each session go forward (§3.2.5, ruling 24).

use std::collections::{HashMap, VecDeque};

use crate::event::Event;
use crate::form::SessionId;
use crate::violation::{Code, Violation};

/// Remembers the last timestamp of each session of a stream, within a fixed bound: past
/// [`SessionClock::MAX_SESSIONS`] open sessions, the one that began first is forgotten.
#[derive(Debug, Default)]
pub struct SessionClock {
    last_us: HashMap<SessionId, i64>,
    oldest: VecDeque<SessionId>,
}

impl SessionClock {
    /// The most sessions that are remembered at a time.
    pub const MAX_SESSIONS: usize = 32_768;

    /// Takes the next event of the stream; says so if it is older than the one before it in its
    /// session.
    pub fn observe(&mut self, event: &Event) -> Option<Violation> {
        let session = &event.envelope.session_id;
        let now_us = event.envelope.timestamp.unix_us();
        let violation = match self.last_us.get_mut(session) {
            Some(last_us) if now_us < *last_us => Some(Violation::at(
                Code::TimeWentBack,
                "/timestamp".to_owned(),
                format!("The event is {} µs older than the one before it.", *last_us - now_us),
            )),
            Some(last_us) => {
                *last_us = now_us;
                None
            }
            None => {
                self.remember(session.clone(), now_us);
                None
            }
        };
        if event.event_type().core().is_some_and(crate::CoreType::is_terminal) {
            self.last_us.remove(session);
        }
        violation
    }

    fn remember(&mut self, session: SessionId, now_us: i64) {
        // Ended sessions leave their name in the queue; it is dropped here, never beyond the bound.
        while self.oldest.len() >= Self::MAX_SESSIONS {
            if let Some(forgotten) = self.oldest.pop_front() {
                self.last_us.remove(&forgotten);
            }
        }
        self.oldest.push_back(session.clone());
        self.last_us.insert(session, now_us);
    }
}
