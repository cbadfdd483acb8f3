//! What waits for the hub. It has bounds, and putting something into it never waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_bridge::{ProxyAsk, ProxyAskNumber};
use serde_json::Value;

use crate::agent::fresh_id;
use crate::ask::BridgeAsk;

/// The most events that wait, and the most bytes of them.
const MAX_EVENTS: usize = 4096;
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// As many again may wait of what must not be missing: beginnings, ends, questions, and what is critical.
const MAX_NEEDED_EVENTS: usize = 2 * MAX_EVENTS;
const MAX_NEEDED_BYTES: usize = 2 * MAX_BYTES;

/// The most events of one request.
const MAX_BATCH: usize = 64;

/// How long the hub may take for what is left when the agent has ended.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// Something for the hub.
#[derive(Debug)]
pub(crate) enum HubItem {
    /// Events to publish.
    Events(Vec<Value>),
    /// A question to put.
    Ask(ProxyAskNumber, Box<BridgeAsk>),
    /// A question to take back.
    Withdraw(ProxyAskNumber),
}

/// What waits for the hub, in order.
#[derive(Debug, Default)]
pub(crate) struct HubQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<HubItem>,
    bytes: usize,
    /// How many events were left out since this was told last.
    dropped: u64,
    is_closed: bool,
    /// The question that is being put, and whether it was taken back meanwhile.
    putting: Option<(ProxyAskNumber, bool)>,
}

impl HubQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event with an id of its own, so that it can be sent again.
    pub(crate) fn tell(&self, mut event: Value) {
        if let Ok(id) = fresh_id("evt_") {
            event["event_id"] = id.into();
        }
        self.push_event(event);
    }

    /// Adds a question. Returns false if it cannot be put.
    pub(crate) fn ask(&self, ask: ProxyAsk) -> bool {
        let prepared = BridgeAsk::new(ask.event, ask.is_confirmation);
        prepared.is_ok_and(|it| self.push_ask(ask.number, it))
    }

    /// Adds an event, unless too many wait.
    fn push_event(&self, event: Value) {
        let is_needed = event["urgency"] == "critical"
            || event["type"].as_str().is_some_and(|it| it.starts_with("aaep:agent.session."));
        let bytes = event.to_string().len();
        let mut state = self.state();
        if !state.has_room(bytes, is_needed) {
            state.dropped += 1;
            return;
        }
        state.bytes += bytes;
        state.items.push_back(HubItem::Events(vec![event]));
        self.changed.notify_all();
    }

    /// Adds a question. Returns false if too much waits.
    fn push_ask(&self, number: ProxyAskNumber, ask: BridgeAsk) -> bool {
        let mut state = self.state();
        let has_room = state.has_room(0, true);
        if has_room {
            state.items.push_back(HubItem::Ask(number, Box::new(ask)));
            self.changed.notify_all();
        }
        has_room
    }

    /// Takes a question back. One that was not put yet is not put at all.
    pub(crate) fn withdraw(&self, number: ProxyAskNumber) {
        let mut state = self.state();
        if let Some((putting, is_withdrawn)) = &mut state.putting {
            *is_withdrawn |= *putting == number;
        }
        let is_it = |item: &HubItem| matches!(item, HubItem::Ask(it, _) if *it == number);
        match state.items.iter().position(is_it) {
            Some(at) => drop(state.items.remove(at)),
            None => state.items.push_back(HubItem::Withdraw(number)),
        }
        self.changed.notify_all();
    }

    /// Takes out the questions that were not put yet.
    pub(crate) fn take_asks(&self) -> Vec<ProxyAskNumber> {
        let mut asks = Vec::new();
        self.state().items.retain(|item| {
            let HubItem::Ask(number, _) = item else { return true };
            asks.push(*number);
            false
        });
        asks
    }

    /// The next thing for the hub. Waits for it; `None` when there will be nothing more.
    pub(crate) fn next(&self) -> Option<HubItem> {
        let mut state = self.state();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some(state.taken(item));
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the question that is being put was taken back.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.state().putting.is_some_and(|(_, is_withdrawn)| is_withdrawn)
    }

    /// How many events were left out since this was asked last.
    pub(crate) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.state().dropped)
    }

    /// Nothing more will be added.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Pauses after a failure. Returns false if the queue was closed, so that another try is pointless.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let state = self.state();
        let is_open = |state: &mut QueueState| !state.is_closed;
        let waited = self.changed.wait_timeout_while(state, pause, is_open);
        waited.is_ok_and(|(state, _)| !state.is_closed)
    }

    /// How many events are left that nobody will be told.
    pub(crate) fn left(&self) -> usize {
        self.state().items.iter().filter(|it| matches!(it, HubItem::Events(_))).count()
    }
}

impl QueueState {
    fn has_room(&self, bytes: usize, is_needed: bool) -> bool {
        let (most, most_bytes) =
            if is_needed { (MAX_NEEDED_EVENTS, MAX_NEEDED_BYTES) } else { (MAX_EVENTS, MAX_BYTES) };
        self.items.len() < most && self.bytes + bytes <= most_bytes
    }

    /// Adds the events that directly follow.
    fn taken(&mut self, item: HubItem) -> HubItem {
        self.putting = match &item {
            HubItem::Ask(number, _) => Some((*number, false)),
            _ => None,
        };
        let HubItem::Events(mut events) = item else { return item };
        while events.len() < MAX_BATCH {
            match self.items.pop_front() {
                Some(HubItem::Events(more)) => events.extend(more),
                Some(other) => {
                    self.items.push_front(other);
                    break;
                }
                None => break,
            }
        }
        let bytes: usize = events.iter().map(|it| it.to_string().len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        HubItem::Events(events)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_what_is_needed_still_fits() {
        let queue = HubQueue::default();
        for _ in 0..MAX_EVENTS + 3 {
            queue.push_event(json!({ "type": "aaep:agent.output.streaming" }));
        }
        queue.push_event(json!({ "type": "aaep:agent.session.completed" }));
        assert_eq!(queue.take_dropped(), 3);
        queue.close();
        let mut all = Vec::new();
        while let Some(HubItem::Events(events)) = queue.next() {
            assert!(events.len() <= MAX_BATCH);
            all.extend(events);
        }
        assert_eq!(all.len(), MAX_EVENTS + 1);
        assert_eq!(all.last().expect("one")["type"], "aaep:agent.session.completed");
        assert_eq!(queue.state().bytes, 0);
    }

    #[test]
    fn large_events_are_bounded_by_their_bytes() {
        let queue = HubQueue::default();
        for _ in 0..20 {
            queue.push_event(json!({ "chunk": "x".repeat(1024 * 1024) }));
        }
        assert!(queue.take_dropped() >= 4);
    }
}
