//! The ids of the newest events of a session that left memory, in a few bytes each.
//!
//! They say whether an event may have been published before, so that the store is asked only then
//! and no event is accepted twice. There are false positives, from equal hashes. An id that is not
//! found did not leave memory recently.

use std::collections::BTreeSet;

use aaep::EventId;

/// How many ids one half holds. When the newer half is full, the older one is forgotten.
const HALF: usize = 8192;

/// Roughly how much memory one id takes in the tree, including half-empty nodes.
const BYTES_EACH: usize = 16;

/// Hashes of ids, in two generations.
#[derive(Debug, Default)]
pub(crate) struct DroppedIds {
    newer: BTreeSet<u64>,
    older: BTreeSet<u64>,
}

impl DroppedIds {
    /// Notes that an event left memory.
    pub(crate) fn add(&mut self, id: &EventId) {
        if self.newer.len() >= HALF {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(hash(id));
    }

    /// Roughly how much memory the hashes take.
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.newer.len() + self.older.len()) * BYTES_EACH
    }

    /// Whether an event with this id may have left memory recently.
    pub(crate) fn may_have(&self, id: &EventId) -> bool {
        let hash = hash(id);
        self.newer.contains(&hash) || self.older.contains(&hash)
    }
}

/// FNV-1a. A producer that makes two ids of its own session collide causes one more lookup in the store, and
/// its second event is refused. Nothing else happens.
fn hash(id: &EventId) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_and_memory_is_bounded() {
        let id = |number: usize| EventId::parse(&format!("evt_{number}")).expect("an id");
        let mut dropped = DroppedIds::default();
        for number in 0..5 * HALF {
            dropped.add(&id(number));
            assert!(dropped.newer.len() + dropped.older.len() <= 2 * HALF);
        }
        assert!((4 * HALF..5 * HALF).all(|number| dropped.may_have(&id(number))));
        assert!(!dropped.may_have(&id(0)) && !dropped.may_have(&id(5 * HALF)));
    }
}
