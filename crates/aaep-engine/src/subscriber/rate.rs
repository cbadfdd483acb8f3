//! Whether a producer is faster than it promised (§5.3.1.1, §5.6.2, §10 T4, ruling 6).
//!
//! Counts the non-critical events of the last second on our own clock. It never accuses too early:
//! at most a second is counted, sometimes a slot less. The network may bunch what was sent evenly,
//! so that one report is a hint and a row of them a fact.

use crate::clock::SECOND_US;

/// The second is cut into this many slots.
const SLOTS: usize = 64;
const SLOT_US: u64 = SECOND_US / SLOTS as u64;

/// What came in the last second.
#[derive(Debug)]
pub(super) struct Rate {
    slots: [u32; SLOTS],
    /// The number of the newest slot.
    newest: u64,
    /// When it was last said that it is too much.
    told_us: Option<u64>,
}

impl Rate {
    pub(super) fn new() -> Self {
        Rate { slots: [0; SLOTS], newest: 0, told_us: None }
    }

    /// Counts one event. How many there were in the last second, if that is more than `max` and was
    /// not said within the last second.
    pub(super) fn count(&mut self, now_us: u64, max: Option<u64>) -> Option<u64> {
        self.move_to(now_us / SLOT_US);
        let slot = &mut self.slots[index(self.newest)];
        *slot = slot.saturating_add(1);
        let heard: u64 = self.slots.iter().copied().map(u64::from).sum();
        let is_told = self.told_us.is_some_and(|told| now_us < told.saturating_add(SECOND_US));
        if is_told || max.is_none_or(|max| heard <= max) {
            return None;
        }
        self.told_us = Some(now_us);
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
