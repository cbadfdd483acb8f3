//! Whether a producer is faster than it promised (§5.3.1.1, §5.6.2, §10 T4, ruling 6).
//!
//! Counts the non-critical events of the last second on our own clock. It never accuses too early:
//! it counts at most one second, sometimes one slot less. The network may bunch events that were
//! sent evenly, so one report is a hint and a series of reports is a fact.

use crate::clock::SECOND_US;

/// One second is divided into this many slots.
const SLOTS: usize = 64;
const SLOT_US: u64 = SECOND_US / SLOTS as u64;

/// The events of the last second.
#[derive(Debug)]
pub(super) struct ObservedRate {
    slots: [u32; SLOTS],
    /// The number of the newest slot.
    newest: u64,
    /// When the rate was last reported as too high.
    reported_us: Option<u64>,
}

impl ObservedRate {
    pub(super) fn new() -> Self {
        ObservedRate { slots: [0; SLOTS], newest: 0, reported_us: None }
    }

    /// Counts one event. Returns how many there were in the last second, if that is more than `max`
    /// and was not reported within the last second.
    pub(super) fn count(&mut self, now_us: u64, max: Option<u64>) -> Option<u64> {
        self.move_to(now_us / SLOT_US);
        let slot = &mut self.slots[index(self.newest)];
        *slot = slot.saturating_add(1);
        let heard: u64 = self.slots.iter().copied().map(u64::from).sum();
        let is_reported =
            self.reported_us.is_some_and(|reported| now_us < reported.saturating_add(SECOND_US));
        if is_reported || max.is_none_or(|max| heard <= max) {
            return None;
        }
        self.reported_us = Some(now_us);
        Some(heard)
    }

    fn move_to(&mut self, slot: u64) {
        if slot.saturating_sub(self.newest) >= SLOTS as u64 {
            self.slots = [0; SLOTS];
            self.newest = slot;
        }
        while self.newest < slot {
            self.newest += 1;
            self.slots[index(self.newest)] = 0;
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of 64 fits anywhere")]
fn index(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}
