//! The last things that were said, for someone who wants to hear one of them again.

use std::collections::VecDeque;

use super::queue::Item;

/// How far back a person can go.
const MAX_SAID_ITEMS: usize = 64;

/// The last things that were said, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct SaidHistory {
    items: VecDeque<Item>,
    /// How far the person went back since something new was said.
    steps_back: usize,
}

impl SaidHistory {
    /// Something was said. What was said again is known already.
    pub(super) fn add(&mut self, item: Item) {
        if item.is_again {
            return;
        }
        self.items.push_back(item);
        if self.items.len() > MAX_SAID_ITEMS {
            self.items.pop_front();
        }
    }

    /// Something is said that is not said again: the way back begins there.
    pub(super) fn begin(&mut self, item: &Item) {
        if !item.is_again {
            self.steps_back = 0;
        }
    }

    pub(super) fn last(&self) -> Option<&Item> {
        self.items.back()
    }

    /// What was said one step further back. `is_new_being_said` tells whether something is being said that is not in
    /// the history yet: then the newest is one step back.
    pub(super) fn step_back(&mut self, is_new_being_said: bool) -> Option<&Item> {
        let first = if is_new_being_said { 1 } else { 2 };
        let steps = if self.steps_back == 0 { first } else { self.steps_back + 1 };
        let at = self.items.len().checked_sub(steps)?;
        self.steps_back = steps;
        self.items.get(at)
    }
}
