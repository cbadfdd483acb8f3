//! Counts how much was looked at when subscribers connected and disconnected, for tests that the
//! cost does not grow with what others hold.
//!
//! It counts and never decides.

use std::cell::Cell;

use super::Engine;

/// How much was looked at.
#[derive(Debug, Default)]
pub(super) struct WorkCounters {
    asks: Cell<u64>,
    events: Cell<u64>,
}

impl WorkCounters {
    /// Adds open asks that were looked at.
    pub(super) fn count_asks(&self, asks: usize) {
        self.asks.set(self.asks.get().wrapping_add(asks as u64));
    }

    /// Adds events of histories that were gathered to be shaped.
    pub(super) fn count_events(&self, events: usize) {
        self.events.set(self.events.get().wrapping_add(events as u64));
    }
}

impl Engine {
    /// How many open asks and how many events of histories were looked at so far because a subscriber
    /// connected or disconnected.
    pub fn looked_at(&self) -> (u64, u64) {
        (self.work.asks.get(), self.work.events.get())
    }
}
