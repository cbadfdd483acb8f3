//! The counts of all threads, and the faults that they found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most faults that are kept as sentences.
const MAX_WORDS: usize = 20;

#[derive(Default)]
pub(super) struct SoakTotals {
    /// Events that agents published.
    pub(super) published: AtomicU64,
    /// Sessions that agents began.
    pub(super) sessions: AtomicU64,
    /// Asks whose outcome matched their answer.
    pub(super) asks: AtomicU64,
    /// Events that subscribers received.
    pub(super) deliveries: AtomicU64,
    /// Subscribers that have been connected at least once.
    pub(super) have_come: AtomicU64,
    /// Subscribers that are connected.
    pub(super) here: AtomicU64,
    /// How often a subscriber came back and resumed.
    pub(super) returns: AtomicU64,
    /// How often a new subscriber joined.
    pub(super) arrivals: AtomicU64,
    /// How often a subscriber left without closing its subscription.
    pub(super) vanished: AtomicU64,
    /// How often the hub closed the connection of a subscriber.
    pub(super) let_go: AtomicU64,
    /// How often a subscriber was told of a gap.
    pub(super) gaps: AtomicU64,
    faults: AtomicU64,
    words: Mutex<FaultWords>,
}

#[derive(Default)]
struct FaultWords {
    all: Vec<String>,
    /// How many of them were already reported.
    told: usize,
}

impl SoakTotals {
    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn fault(&self, what: String) {
        SoakTotals::add(&self.faults);
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.all.len() < MAX_WORDS {
            words.all.push(what);
        }
    }

    pub(super) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// The first faults, as sentences.
    pub(super) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// The faults that were not reported yet.
    pub(super) fn new_words(&self) -> Vec<String> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, all) = (words.told, words.all.len());
        words.told = all;
        words.all.get(told..).unwrap_or_default().to_vec()
    }
}
