//! How the hub is, for whoever asks from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::metrics::Metrics;

/// How the hub is. Shared by its threads; nobody waits for it.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) metrics: Metrics,
    trouble: Mutex<Option<String>>,
    /// What was found wrong at the start, and what was done about it.
    notes: Mutex<Vec<String>>,
    is_dead: AtomicBool,
    is_stopping: AtomicBool,
}

impl Status {
    /// Nothing can be stored for now, or never again in this run.
    pub(super) fn fail(&self, why: &str, for_good: bool) {
        *self.trouble() = Some(why.to_owned());
        if for_good {
            self.is_dead.store(true, Ordering::SeqCst);
        }
    }

    /// Something was found wrong at the start and set aside or repaired.
    pub(super) fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// What was found wrong at the start.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything is stored.
    pub(super) fn works(&self) {
        let mut trouble = self.trouble();
        if trouble.is_some() {
            *trouble = None;
        }
    }

    /// What is wrong, if anything is.
    pub(super) fn what_is_wrong(&self) -> Option<String> {
        self.trouble().clone()
    }

    /// Whether the hub has to be started anew.
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
