//! The events that were already heard (§3.2.3, §9.5.2): a resumed stream may repeat some.
//!
//! A repeated id alone does not make a repeated event. If session, type or reply token differ, the
//! producer used an id twice, and the event must not be lost because of that (§5.6.2).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use aaep::{Event, EventId};
use sha2::{Digest, Sha256};

use crate::ask::question;

/// How many events are remembered. If a stream repeats more than that, some are heard twice.
pub const MAX_EVENT_IDS: usize = 16_384;

/// The events that were heard last.
#[derive(Debug, Default)]
pub(super) struct SeenEvents {
    /// A short hash of each event.
    known: BTreeMap<Arc<EventId>, [u8; 8]>,
    oldest: VecDeque<Arc<EventId>>,
}

/// What the id of an event reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSighting {
    First,
    Repeated,
    /// Another event had the same id.
    Reused,
}

impl SeenEvents {
    /// Looks up an event and remembers it.
    pub(super) fn look(&mut self, event: &Event) -> EventSighting {
        let mark = mark(event);
        if let Some(known) = self.known.get_mut(&event.envelope.event_id) {
            let sight =
                if *known == mark { EventSighting::Repeated } else { EventSighting::Reused };
            *known = mark;
            return sight;
        }
        let id = Arc::new(event.envelope.event_id.clone());
        self.known.insert(Arc::clone(&id), mark);
        self.oldest.push_back(id);
        if self.oldest.len() > MAX_EVENT_IDS
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.known.remove(&oldest);
        }
        EventSighting::First
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len().max(self.oldest.len())
    }
}

/// A hash of what stays the same when an event is sent again, even with other words.
fn mark(event: &Event) -> [u8; 8] {
    let mut hash = Sha256::new();
    hash.update(event.envelope.session_id.as_str());
    hash.update([0]);
    hash.update(event.event_type().as_str());
    hash.update([0]);
    if let Some((token, _)) = question(&event.payload) {
        hash.update(token.as_str());
    }
    let mut mark = [0; 8];
    mark.copy_from_slice(&hash.finalize()[..8]);
    mark
}
