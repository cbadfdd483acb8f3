//! The ids that a session has used, within a fixed bound.
//!
//! Ids must differ from all earlier ones (§4.3.1, §4.5.4), so none may be forgotten while the
//! session lives. Only the first half of each SHA-256 is kept. Nobody can find two ids that share
//! it, and a sender that could would only have its own event refused.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// The most ids of one kind that are remembered.
pub(super) const MAX_SEEN: usize = 32_768;

/// About how much memory one id takes in the tree, half-empty nodes included.
const BYTES_EACH: usize = 40;

/// The ids that were used, as digests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UsedIds(BTreeSet<[u8; 16]>);

impl UsedIds {
    pub(super) fn contains(&self, id: &str) -> bool {
        !self.0.is_empty() && self.0.contains(&fingerprint(id))
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MAX_SEEN
    }

    /// Remembers an id. Without room it does nothing; where that matters, the caller checks
    /// `is_full` first.
    pub(super) fn insert(&mut self, id: &str) {
        if !self.is_full() {
            self.0.insert(fingerprint(id));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len() * BYTES_EACH
    }
}

fn fingerprint(id: &str) -> [u8; 16] {
    let digest = Sha256::digest(id.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}
