//! How much was looked at when subscribers came and went, for tests that no cost grows with what others hold.
//!
//! It counts and never decides.

use std::cell::Cell;

use super::Engine;

/// What was looked at.
#[derive(Debug, Default)]
pub(super) struct Work {
    asks: Cell<u64>,
    events: Cell<u64>,
}

impl Work {
    /// This many open asks were looked at.
    pub(super) fn count_asks(&self, asks: usize) {
        self.asks.set(self.asks.get().wrapping_add(asks as u64));
    }

    /// This many events of histories were gathered to be shaped.
    pub(super) fn count_events(&self, events: usize) {
        self.events.set(self.events.get().wrapping_add(events as u64));
    }
}

impl Engine {
    /// How many open asks, and how many events of histories, were looked at so far because a subscriber came or
    /// went.
    pub fn looked_at(&self) -> (u64, u64) {
        (self.work.asks.get(), self.work.events.get())
    }
}
