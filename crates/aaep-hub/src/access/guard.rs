//! Counts each principal's share of the hub's resources (T4 in §10.2.2).
//!
//! Every use is a permit that returns itself when dropped, so that no way out of a function can forget it.
//! Memory is bounded: a principal that holds nothing and has been quiet is forgotten. This file reads no
//! clock. Connections are counted in `connections`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::access::connections::ConnectionCounts;
use crate::access::limits::{LimitError, Limits};

/// The most principals that are counted separately at once.
pub const MAX_PRINCIPALS: usize = 4096;
/// Budgets are counted in millionths of an event, so that rounding loses nothing.
const EVENT: u64 = 1_000_000;

/// How many refused requests of a principal are answered at once after a quiet time.
const FREE_REFUSALS: u64 = 200;
/// How far apart the answers to its further refused requests are, in microseconds.
const REFUSAL_INTERVAL_US: u64 = 10_000;
/// The longest that such an answer waits, in microseconds.
const LONGEST_WAIT_US: u64 = 1_000_000;

/// Counts permits and enforces the limits. Clones share their counts.
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Arc<GuardShared>,
}

#[derive(Debug)]
struct GuardShared {
    limits: Limits,
    counts: Mutex<GuardCounts>,
}

#[derive(Debug, Default)]
pub(super) struct GuardCounts {
    pub(super) connections: ConnectionCounts,
    principals: HashMap<String, PrincipalUsage>,
}

/// The resources that one principal holds.
#[derive(Debug, Clone, Default)]
pub(super) struct PrincipalUsage {
    pub(super) connections: usize,
    /// The number of connections of each program.
    pub(super) programs: BTreeMap<Option<u32>, usize>,
    requests: usize,
    subscriptions: usize,
    /// The events that may still be published, in millionths, as of `budget_at_us`.
    budget: u64,
    budget_at_us: u64,
    /// When the free refusals will be all there again.
    refusals_until_us: u64,
}

impl Guard {
    /// A guard with these limits.
    pub fn new(limits: Limits) -> Self {
        Guard { shared: Arc::new(GuardShared { limits, counts: Mutex::default() }) }
    }

    /// The limits that it enforces.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Admits a subscription for the principal with this id.
    pub fn subscription(
        &self,
        principal: &str,
        now_us: u64,
    ) -> Result<SubscriptionPermit, LimitError> {
        let most = self.limits().subscriptions_per_principal;
        let mut counts = self.counts();
        let usage = self.usage_of(&mut counts, principal, now_us)?;
        if usage.subscriptions >= most {
            return Err(LimitError::SubscriptionsOfPrincipal);
        }
        usage.subscriptions += 1;
        drop(counts);
        Ok(SubscriptionPermit { guard: self.clone(), principal: principal.to_owned() })
    }

    /// Admits a request of the principal with this id.
    pub fn request(&self, principal: &str, now_us: u64) -> Result<RequestPermit, LimitError> {
        let most = self.limits().requests_per_principal;
        let mut counts = self.counts();
        let usage = self.usage_of(&mut counts, principal, now_us)?;
        if usage.requests >= most {
            return Err(LimitError::RequestsOfPrincipal);
        }
        usage.requests += 1;
        drop(counts);
        Ok(RequestPermit { guard: self.clone(), principal: principal.to_owned() })
    }

    /// Deducts this many events from the principal's publishing budget: all of them or none.
    pub fn publish(&self, principal: &str, events: u32, now_us: u64) -> Result<(), LimitError> {
        if events > self.limits().events_at_once() {
            return Err(LimitError::TooManyAtOnce);
        }
        let per_second = u64::from(self.limits().publishes_per_second.max(1));
        let mut counts = self.counts();
        let usage = self.usage_of(&mut counts, principal, now_us)?;
        let cost = u64::from(events) * EVENT;
        if usage.budget < cost {
            // A budget grows by this many millionths per microsecond.
            let wait_us = (cost - usage.budget).div_ceil(per_second);
            return Err(LimitError::PublishRate { retry_after_ms: wait_us.div_ceil(1000) });
        }
        usage.budget -= cost;
        Ok(())
    }

    /// Counts a request of this principal that was refused, and returns how long its answer waits. A program
    /// that goes on in spite of refusals would otherwise take the processor from everyone else.
    pub(crate) fn refused(&self, principal: &str, now_us: u64) -> Duration {
        let mut counts = self.counts();
        let Ok(usage) = self.usage_of(&mut counts, principal, now_us) else {
            return Duration::from_micros(LONGEST_WAIT_US);
        };
        let free_us = FREE_REFUSALS * REFUSAL_INTERVAL_US;
        let until_us = usage.refusals_until_us.max(now_us) + REFUSAL_INTERVAL_US;
        usage.refusals_until_us = until_us.min(now_us + free_us + LONGEST_WAIT_US);
        Duration::from_micros(usage.refusals_until_us.saturating_sub(now_us + free_us))
    }

    /// The number of principals being counted.
    pub fn principals(&self) -> usize {
        self.counts().principals.len()
    }

    /// The usage of a principal, with its budget as of now. Makes room if the principal is new.
    pub(super) fn usage_of<'c>(
        &self,
        counts: &'c mut GuardCounts,
        principal: &str,
        now_us: u64,
    ) -> Result<&'c mut PrincipalUsage, LimitError> {
        let full = u64::from(self.limits().publish_burst) * EVENT;
        if !counts.principals.contains_key(principal) && counts.principals.len() >= MAX_PRINCIPALS {
            counts.principals.retain(|_, usage| {
                self.refill(usage, now_us);
                let holds = usage.connections + usage.subscriptions + usage.requests;
                holds > 0 || usage.budget < full || usage.refusals_until_us > now_us
            });
            if counts.principals.len() >= MAX_PRINCIPALS {
                return Err(LimitError::Principals);
            }
        }
        let new =
            PrincipalUsage { budget: full, budget_at_us: now_us, ..PrincipalUsage::default() };
        let usage = counts.principals.entry(principal.to_owned()).or_insert(new);
        self.refill(usage, now_us);
        Ok(usage)
    }

    fn refill(&self, usage: &mut PrincipalUsage, now_us: u64) {
        let passed_us = now_us.saturating_sub(usage.budget_at_us);
        let gained = passed_us.saturating_mul(u64::from(self.limits().publishes_per_second.max(1)));
        let full = u64::from(self.limits().publish_burst) * EVENT;
        usage.budget = usage.budget.saturating_add(gained).min(full);
        usage.budget_at_us = usage.budget_at_us.max(now_us);
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, GuardCounts> {
        self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn give_back(&self, principal: &str, how: impl FnOnce(&mut PrincipalUsage)) {
        if let Some(usage) = self.counts().principals.get_mut(principal) {
            how(usage);
        }
    }
}

/// A request in progress. Dropping this value ends it.
#[derive(Debug)]
pub struct RequestPermit {
    guard: Guard,
    principal: String,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.guard.give_back(&self.principal, |usage| {
            usage.requests = usage.requests.saturating_sub(1);
        });
    }
}

/// An admitted subscription. Dropping this value frees it.
#[derive(Debug)]
pub struct SubscriptionPermit {
    guard: Guard,
    principal: String,
}

impl Drop for SubscriptionPermit {
    fn drop(&mut self) {
        self.guard.give_back(&self.principal, |usage| {
            usage.subscriptions = usage.subscriptions.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_answers_to_many_refused_requests_wait_and_no_other_principal_does() {
        let guard = guard();
        for _ in 0..FREE_REFUSALS {
            assert_eq!(guard.refused("hog", 0), Duration::ZERO);
        }
        assert_eq!(guard.refused("hog", 0), Duration::from_millis(10));
        assert_eq!(guard.refused("hog", 0), Duration::from_millis(20));
        assert_eq!(guard.refused("person", 0), Duration::ZERO);
        let longest = (0..1000).map(|_| guard.refused("hog", 0)).max();
        assert_eq!(longest, Some(Duration::from_micros(LONGEST_WAIT_US)));
        // A pause is enough to be answered at once again, however many came before.
        let later_us = FREE_REFUSALS * REFUSAL_INTERVAL_US + LONGEST_WAIT_US;
        assert_eq!(guard.refused("hog", later_us), Duration::ZERO);
    }

    fn guard() -> Guard {
        Guard::new(Limits {
            subscriptions_per_principal: 2,
            publishes_per_second: 10,
            publish_burst: 20,
            ..Limits::default()
        })
    }

    #[test]
    fn subscriptions_come_back_when_they_end() {
        let guard = guard();
        let first = guard.subscription("a", 0).expect("room");
        let _second = guard.subscription("a", 0).expect("room");
        let third = guard.subscription("a", 0).err();
        assert_eq!(third, Some(LimitError::SubscriptionsOfPrincipal));
        assert!(guard.subscription("b", 0).is_ok());
        drop(first);
        assert!(guard.subscription("a", 0).is_ok());
    }

    #[test]
    fn publishing_has_a_burst_and_a_pace() {
        let guard = guard();
        assert_eq!(guard.publish("a", 20, 0), Ok(()));
        let late = guard.publish("a", 1, 0).expect_err("spent");
        assert_eq!(late, LimitError::PublishRate { retry_after_ms: 100 });
        assert_eq!(late.retry_after_seconds(), 1);
        assert!(guard.publish("a", 1, 99_999).is_err());
        assert_eq!(guard.publish("a", 1, 100_000), Ok(()));
        assert_eq!(guard.publish("b", 20, 0), Ok(()), "another has a budget of its own");
        assert_eq!(guard.publish("a", 21, 1 << 60), Err(LimitError::TooManyAtOnce));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let guard = guard();
        assert_eq!(guard.publish("a", 20, 5_000_000), Ok(()));
        assert!(guard.publish("a", 1, 0).is_err());
        assert!(guard.publish("a", 1, 5_000_000).is_err());
        assert_eq!(guard.publish("a", 1, 5_100_000), Ok(()));
    }

    #[test]
    fn a_crowd_of_principals_takes_bounded_memory() {
        let guard = guard();
        let _held = guard.subscription("held", 0).expect("room");
        for n in 1..MAX_PRINCIPALS {
            assert_eq!(guard.publish(&n.to_string(), 1, 0), Ok(()));
        }
        assert_eq!(guard.publish("one more", 1, 0), Err(LimitError::Principals));
        assert_eq!(guard.principals(), MAX_PRINCIPALS);
        assert_eq!(guard.publish("one more", 1, 100_000), Ok(()), "the quiet are forgotten");
        assert_eq!(guard.principals(), 2, "who holds something is not");
    }

    proptest! {
        #[test]
        fn nobody_publishes_more_than_burst_and_pace_allow(
            steps in proptest::collection::vec((0u64..500_000, 1u32..8), 1..200),
        ) {
            let guard = guard();
            let (mut now_us, mut published) = (0, 0);
            for (step, events) in steps {
                now_us += step;
                if guard.publish("a", events, now_us).is_ok() {
                    published += u64::from(events);
                }
                prop_assert!(published * EVENT <= 20 * EVENT + now_us * 10);
            }
        }
    }
}
