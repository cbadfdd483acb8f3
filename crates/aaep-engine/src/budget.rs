//! How many events a subscriber may still be sent now (§5.3.1.1, §5.6.1, ruling 6).
//!
//! No window of one second has more events than were negotiated. After a quiet time, a burst up to
//! that number is allowed. While events are held back, they leave one by one, at least 1/rate
//! apart.

use crate::clock::SECOND_US;

/// One second is divided into this many slots. What was spent in a slot becomes available again one
/// second after the slot has ended: never too early, and at most one slot too late.
const SLOTS: usize = 64;
const SLOT_US: u64 = SECOND_US / SLOTS as u64;
/// A slot counts while it runs and for one second after it.
const COUNTED: usize = SLOTS + 1;

/// The event budget of one subscriber. It owns no memory if nothing was spent lately.
#[derive(Debug)]
pub(crate) struct RateBudget {
    max: u64,
    /// The number of each counting slot in which something was spent, oldest first, and how much
    /// was spent: at most [`COUNTED`] entries.
    spent: Vec<(u64, u64)>,
    /// When something was last spent.
    last_us: u64,
    /// Whether events are held back: then they leave spaced.
    is_holding: bool,
}

impl RateBudget {
    pub(crate) fn new(max_events_per_second: u64) -> Self {
        RateBudget {
            max: max_events_per_second.max(1),
            spent: Vec::new(),
            last_us: 0,
            is_holding: false,
        }
    }

    /// Changes the rate from now on. What was spent stays spent.
    pub(crate) fn set_max(&mut self, max_events_per_second: u64) {
        self.max = max_events_per_second.max(1);
    }

    /// Takes one event out of the budget, if the budget allows it.
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

    /// Notes whether events are held back. When none are, a burst is allowed again.
    pub(crate) fn note_held(&mut self, is_held: bool) {
        self.is_holding = is_held;
    }

    /// When the next event may leave; `now_us` if it may leave now. Otherwise it is held back, and
    /// events are spaced from then on.
    pub(crate) fn next_us(&mut self, now_us: u64) -> u64 {
        self.forget(now_us);
        let Some((oldest, _)) = self.spent.first().copied() else { return now_us };
        self.is_holding |= self.is_exhausted();
        let spaced_us =
            self.last_us + if self.is_holding { SECOND_US.div_ceil(self.max) } else { 0 };
        let free_us =
            if self.is_exhausted() { (oldest + COUNTED as u64) * SLOT_US } else { now_us };
        now_us.max(free_us).max(spaced_us)
    }

    fn is_exhausted(&self) -> bool {
        self.spent.iter().map(|(_, count)| count).sum::<u64>() >= self.max
    }

    /// Makes available again what was spent long enough ago.
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
        let mut budget = RateBudget::new(3);
        assert!((0..3).all(|_| budget.spend(500)));
        assert!(!budget.spend(500));
        let next = budget.next_us(500);
        assert!((SECOND_US + 500..=SECOND_US + 2 * SLOT_US).contains(&next), "{next}");
        assert!(!budget.spend(next - 1));
        assert!(budget.spend(next));
    }

    #[test]
    fn while_something_is_held_events_leave_one_by_one() {
        let mut budget = RateBudget::new(5);
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
        let mut budget = RateBudget::new(2);
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
            let mut budget = RateBudget::new(max);
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
