//! How many events a subscriber may still get now (§5.3.1.1, §5.6.1, ruling 6).
//!
//! In no window of one second more than the negotiated number. After quiet, a burst up to that number is
//! allowed; while anything is held, events leave one by one, at least 1/rate apart.

use crate::clock::SECOND_US;

/// The second is cut into this many slots. What was spent in a slot comes back when the slot has
/// ended and a second has passed, so never too early, and at most a slot too late.
const SLOTS: usize = 64;
const SLOT_US: u64 = SECOND_US / SLOTS as u64;
/// A slot counts while it runs and for the second after it.
const COUNTED: usize = SLOTS + 1;

/// The budget of one subscriber. While nothing was spent lately, it owns no memory.
#[derive(Debug)]
pub(crate) struct Budget {
    max: u64,
    /// The slots that count and in which something was spent, by number, the oldest first, and how
    /// much: at most [`COUNTED`].
    spent: Vec<(u64, u64)>,
    /// When something was last spent.
    last_us: u64,
    /// Whether something is held: then events are spaced.
    is_holding: bool,
}

impl Budget {
    pub(crate) fn new(max_events_per_second: u64) -> Self {
        Budget {
            max: max_events_per_second.max(1),
            spent: Vec::new(),
            last_us: 0,
            is_holding: false,
        }
    }

    /// Another rate from now on; what was spent stays spent.
    pub(crate) fn set_max(&mut self, max_events_per_second: u64) {
        self.max = max_events_per_second.max(1);
    }

    /// Takes one event out of the budget, if there is one.
    pub(crate) fn spend(&mut self, now_us: u64) -> bool {
        if self.next_us(now_us) > now_us {
            return false;
        }
        self.last_us = now_us;
        let newest = now_us / SLOT_US;
        match self.spent.last_mut() {
            Some((number, count)) if *number >= newest => *count += 1,
            _ => {
                self.spent.reserve_exact(1);
                self.spent.push((newest, 1));
            }
        }
        true
    }

    /// Whether something is held. Once nothing is, a burst is allowed again.
    pub(crate) fn note_held(&mut self, is_held: bool) {
        self.is_holding = is_held;
    }

    /// When the next event may go; now, if it may. If it may not, it is held, and events are spaced from then on.
    pub(crate) fn next_us(&mut self, now_us: u64) -> u64 {
        self.forget(now_us);
        let Some((oldest, _)) = self.spent.first().copied() else { return now_us };
        self.is_holding |= self.is_empty();
        let spaced_us =
            self.last_us + if self.is_holding { SECOND_US.div_ceil(self.max) } else { 0 };
        let free_us = if self.is_empty() { (oldest + COUNTED as u64) * SLOT_US } else { now_us };
        now_us.max(free_us).max(spaced_us)
    }

    fn is_empty(&self) -> bool {
        self.spent.iter().map(|(_, count)| count).sum::<u64>() >= self.max
    }

    /// Lets come back what was spent long enough ago.
    fn forget(&mut self, now_us: u64) {
        let newest = now_us / SLOT_US;
        self.spent.retain(|(number, _)| number + COUNTED as u64 > newest);
        if self.spent.is_empty() {
            self.spent = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_allowed_and_comes_back_a_second_later() {
        let mut budget = Budget::new(3);
        assert!((0..3).all(|_| budget.spend(500)));
        assert!(!budget.spend(500));
        let next = budget.next_us(500);
        assert!((SECOND_US + 500..=SECOND_US + 2 * SLOT_US).contains(&next), "{next}");
        assert!(!budget.spend(next - 1));
        assert!(budget.spend(next));
    }

    #[test]
    fn while_something_is_held_events_leave_one_by_one() {
        let mut budget = Budget::new(5);
        let mut sent = Vec::new();
        let mut now_us = 0;
        while sent.len() < 15 {
            now_us = budget.next_us(now_us);
            assert!(budget.spend(now_us));
            sent.push(now_us);
        }
        assert!(sent[..5].iter().all(|at| *at == 0), "{sent:?}");
        assert!(sent[5..].windows(2).all(|pair| pair[1] - pair[0] >= SECOND_US / 5), "{sent:?}");
        assert!(sent[14] <= 3 * SECOND_US + 2 * SLOT_US, "{sent:?}");
        budget.note_held(false);
        assert!((0..5).all(|_| budget.spend(now_us + 2 * SECOND_US)));
    }

    #[test]
    fn an_idle_budget_owns_nothing() {
        let mut budget = Budget::new(2);
        assert!(budget.spend(0));
        assert!(budget.spent.capacity() > 0);
        assert_eq!(budget.next_us(3 * SECOND_US), 3 * SECOND_US);
        assert_eq!(budget.spent.capacity(), 0);
    }

    proptest! {
        #[test]
        fn no_window_of_a_second_has_more_than_the_rate(
            max in 1u64..20,
            steps in proptest::collection::vec(0u64..400_000, 1..200),
        ) {
            let mut budget = Budget::new(max);
            let mut now_us = 0;
            let mut sent = Vec::new();
            for step in steps {
                now_us += step;
                while budget.spend(now_us) {
                    sent.push(now_us);
                }
                prop_assert!(budget.next_us(now_us) > now_us);
            }
            for (at, first) in sent.iter().enumerate() {
                let in_window = sent[at..].iter().take_while(|it| **it < first + SECOND_US).count();
                prop_assert!(in_window as u64 <= max);
            }
        }
    }
}
