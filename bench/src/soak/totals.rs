//! What all threads count, and what they found wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many faults are kept in words.
const MAX_WORDS: usize = 20;

#[derive(Default)]
pub(super) struct Totals {
    /// Events that agents published.
    pub(super) published: AtomicU64,
    /// Sessions that agents began.
    pub(super) sessions: AtomicU64,
    /// Questions that were settled as they were answered.
    pub(super) asks: AtomicU64,
    /// Events that subscribers got.
    pub(super) deliveries: AtomicU64,
    /// Subscribers that have been connected at least once.
    pub(super) have_come: AtomicU64,
    /// Subscribers that are connected.
    pub(super) here: AtomicU64,
    /// How often a subscriber came back and went on.
    pub(super) returns: AtomicU64,
    /// How often somebody new came.
    pub(super) arrivals: AtomicU64,
    /// How often one of them left without closing its subscription.
    pub(super) vanished: AtomicU64,
    /// How often the hub ended the connection of a subscriber.
    pub(super) let_go: AtomicU64,
    /// How often a subscriber was told that something is missing.
    pub(super) gaps: AtomicU64,
    faults: AtomicU64,
    words: Mutex<Words>,
}

#[derive(Default)]
struct Words {
    all: Vec<String>,
    /// How many of them were told.
    told: usize,
}

impl Totals {
    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn fault(&self, what: String) {
        Totals::add(&self.faults);
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.all.len() < MAX_WORDS {
            words.all.push(what);
        }
    }

    pub(super) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// The first of them, in sentences.
    pub(super) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Those that were not told yet.
    pub(super) fn new_words(&self) -> Vec<String> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, all) = (words.told, words.all.len());
        words.told = all;
        words.all.get(told..).unwrap_or_default().to_vec()
    }
}
