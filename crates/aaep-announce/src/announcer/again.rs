//! Recent utterances, for a person who wants to hear one of them again.

use std::collections::VecDeque;

use super::queue::QueuedUtterance;

/// How far back a person can go.
const MAX_SAID_ITEMS: usize = 64;

/// Recent utterances, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct SaidHistory {
    items: VecDeque<QueuedUtterance>,
    /// How many steps the person went back since the last new utterance.
    steps_back: usize,
}

impl SaidHistory {
    /// Adds an utterance, unless it is a repetition.
    pub(super) fn add(&mut self, item: QueuedUtterance) {
        if item.is_again {
            return;
        }
        self.items.push_back(item);
        if self.items.len() > MAX_SAID_ITEMS {
            self.items.pop_front();
        }
    }

    /// A new utterance begins, so the person goes back from here.
    pub(super) fn begin(&mut self, item: &QueuedUtterance) {
        if !item.is_again {
            self.steps_back = 0;
        }
    }

    pub(super) fn last(&self) -> Option<&QueuedUtterance> {
        self.items.back()
    }

    /// The utterance one step further back. `is_new_being_said` says whether the current utterance is not in the
    /// history yet; then the newest entry is the first step back.
    pub(super) fn step_back(&mut self, is_new_being_said: bool) -> Option<&QueuedUtterance> {
        let first = if is_new_being_said { 1 } else { 2 };
        let steps = if self.steps_back == 0 { first } else { self.steps_back + 1 };
        let at = self.items.len().checked_sub(steps)?;
        self.steps_back = steps;
        self.items.get(at)
    }
}
