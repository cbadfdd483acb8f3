//! The condition of the hub, for requests from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::metrics::Metrics;

/// The condition of the hub. All threads share it, and reading it never blocks for long.
#[derive(Debug, Default)]
pub(super) struct HubStatus {
    pub(super) metrics: Metrics,
    trouble: Mutex<Option<String>>,
    /// What was found wrong at the start, and what was done about it.
    notes: Mutex<Vec<String>>,
    is_dead: AtomicBool,
    is_stopping: AtomicBool,
}

impl HubStatus {
    /// Notes that nothing can be stored for now or, if `for_good`, for the rest of this run.
    pub(super) fn note_failure(&self, why: &str, for_good: bool) {
        *self.trouble() = Some(why.to_owned());
        if for_good {
            self.is_dead.store(true, Ordering::SeqCst);
        }
    }

    /// Notes something that was found wrong at the start and was set aside or repaired.
    pub(super) fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// What was found wrong at the start.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that everything is stored.
    pub(super) fn clear_failure(&self) {
        let mut trouble = self.trouble();
        if trouble.is_some() {
            *trouble = None;
        }
    }

    /// What is wrong, if anything is.
    pub(super) fn what_is_wrong(&self) -> Option<String> {
        self.trouble().clone()
    }

    /// Whether the hub has to be restarted.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
