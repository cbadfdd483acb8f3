//! Counting what everyone takes of the hub, and giving it back when they go (T4 in §10.2.2).
//!
//! What is taken is a permit that returns itself when dropped, so that no way out of a function can
//! forget it. Memory is bounded: whoever holds nothing and has been quiet is forgotten. No clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::limits::{LimitError, Limits};

/// How many principals are kept apart at once.
pub const MAX_PRINCIPALS: usize = 4096;
/// Budgets are counted in millionths of an event, so that nothing is lost to rounding.
const EVENT: u64 = 1_000_000;

/// Counts what is taken. Clones count together.
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    connections: usize,
    principals: HashMap<String, Taken>,
}

/// What one principal has taken.
#[derive(Debug, Clone, Copy)]
struct Taken {
    connections: usize,
    subscriptions: usize,
    /// What may still be published, in millionths of an event, at the moment below.
    budget: u64,
    budget_at_us: u64,
}

impl Guard {
    /// A guard of these limits.
    pub fn new(limits: Limits) -> Self {
        Guard { shared: Arc::new(Shared { limits, counts: Mutex::default() }) }
    }

    /// The limits that are guarded.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Takes a connection, before anyone knows whose it is.
    pub fn connection(&self) -> Result<ConnectionPermit, LimitError> {
        let mut counts = self.counts();
        if counts.connections >= self.limits().connections {
            return Err(LimitError::Connections);
        }
        counts.connections += 1;
        drop(counts);
        Ok(ConnectionPermit { guard: self.clone(), principal: None })
    }

    /// Takes a subscription for the principal with this id.
    pub fn subscription(
        &self,
        principal: &str,
        now_us: u64,
    ) -> Result<SubscriptionPermit, LimitError> {
        let most = self.limits().subscriptions_per_principal;
        let mut counts = self.counts();
        let taken = self.taken(&mut counts, principal, now_us)?;
        if taken.subscriptions >= most {
            return Err(LimitError::SubscriptionsOfPrincipal);
        }
        taken.subscriptions += 1;
        drop(counts);
        Ok(SubscriptionPermit { guard: self.clone(), principal: principal.to_owned() })
    }

    /// Takes this many events out of what the principal may publish: all of them or none.
    pub fn publish(&self, principal: &str, events: u32, now_us: u64) -> Result<(), LimitError> {
        if events > self.limits().events_at_once() {
            return Err(LimitError::TooManyAtOnce);
        }
        let per_second = u64::from(self.limits().publishes_per_second.max(1));
        let mut counts = self.counts();
        let taken = self.taken(&mut counts, principal, now_us)?;
        let cost = u64::from(events) * EVENT;
        if taken.budget < cost {
            // A budget grows by as many millionths in a microsecond as there are events in a second.
            let wait_us = (cost - taken.budget).div_ceil(per_second);
            return Err(LimitError::PublishRate { retry_after_ms: wait_us.div_ceil(1000) });
        }
        taken.budget -= cost;
        Ok(())
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// How many principals are being counted.
    pub fn principals(&self) -> usize {
        self.counts().principals.len()
    }

    /// What the principal has taken, with its budget as of now. It is made room for, if it is new.
    fn taken<'c>(
        &self,
        counts: &'c mut Counts,
        principal: &str,
        now_us: u64,
    ) -> Result<&'c mut Taken, LimitError> {
        let full = u64::from(self.limits().publish_burst) * EVENT;
        if !counts.principals.contains_key(principal) && counts.principals.len() >= MAX_PRINCIPALS {
            counts.principals.retain(|_, taken| {
                self.refill(taken, now_us);
                taken.connections > 0 || taken.subscriptions > 0 || taken.budget < full
            });
            if counts.principals.len() >= MAX_PRINCIPALS {
                return Err(LimitError::Principals);
            }
        }
        let new = Taken { connections: 0, subscriptions: 0, budget: full, budget_at_us: now_us };
        let taken = counts.principals.entry(principal.to_owned()).or_insert(new);
        self.refill(taken, now_us);
        Ok(taken)
    }

    fn refill(&self, taken: &mut Taken, now_us: u64) {
        let passed_us = now_us.saturating_sub(taken.budget_at_us);
        let gained = passed_us.saturating_mul(u64::from(self.limits().publishes_per_second.max(1)));
        let full = u64::from(self.limits().publish_burst) * EVENT;
        taken.budget = taken.budget.saturating_add(gained).min(full);
        taken.budget_at_us = taken.budget_at_us.max(now_us);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, principal: &str, how: impl FnOnce(&mut Taken)) {
        if let Some(taken) = self.counts().principals.get_mut(principal) {
            how(taken);
        }
    }
}

/// One connection. It is given back when this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    guard: Guard,
    principal: Option<String>,
}

impl ConnectionPermit {
    /// Counts the connection as that of the principal with this id, now that it is known. A
    /// connection that was another's before is that no more; if it cannot be had, it stays so.
    pub fn belongs_to(&mut self, principal: &str, now_us: u64) -> Result<(), LimitError> {
        if self.principal.as_deref() == Some(principal) {
            return Ok(());
        }
        let most = self.guard.limits().connections_per_principal;
        let mut counts = self.guard.counts();
        let taken = self.guard.taken(&mut counts, principal, now_us)?;
        if taken.connections >= most {
            return Err(LimitError::ConnectionsOfPrincipal);
        }
        taken.connections += 1;
        drop(counts);
        self.leave(Some(principal.to_owned()));
        Ok(())
    }

    fn leave(&mut self, next: Option<String>) {
        if let Some(before) = std::mem::replace(&mut self.principal, next) {
            self.guard.give_back(&before, |taken| {
                taken.connections = taken.connections.saturating_sub(1);
            });
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.leave(None);
        let mut counts = self.guard.counts();
        counts.connections = counts.connections.saturating_sub(1);
    }
}

/// One subscription. It is given back when this is dropped.
#[derive(Debug)]
pub struct SubscriptionPermit {
    guard: Guard,
    principal: String,
}

impl Drop for SubscriptionPermit {
    fn drop(&mut self) {
        self.guard.give_back(&self.principal, |taken| {
            taken.subscriptions = taken.subscriptions.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guard() -> Guard {
        Guard::new(Limits {
            connections: 3,
            connections_per_principal: 2,
            subscriptions_per_principal: 2,
            publishes_per_second: 10,
            publish_burst: 20,
            ..Limits::default()
        })
    }

    #[test]
    fn connections_are_bounded_and_come_back() {
        let guard = guard();
        let first = guard.connection().expect("room");
        let _others = [guard.connection().expect("room"), guard.connection().expect("room")];
        assert_eq!(guard.connection().err(), Some(LimitError::Connections));
        drop(first);
        assert!(guard.connection().is_ok());
    }

    #[test]
    fn one_principal_cannot_take_everything() {
        let guard = guard();
        let mut three: Vec<_> = (0..3).map(|_| guard.connection().expect("room")).collect();
        assert_eq!(three[0].belongs_to("a", 0), Ok(()));
        assert_eq!(three[0].belongs_to("a", 0), Ok(()), "the same again takes nothing");
        assert_eq!(three[1].belongs_to("a", 0), Ok(()));
        assert_eq!(three[2].belongs_to("a", 0), Err(LimitError::ConnectionsOfPrincipal));
        assert_eq!(three[2].belongs_to("b", 0), Ok(()));
        assert_eq!(three[0].belongs_to("b", 0), Ok(()), "it is no more that of a");
        assert_eq!(three[2].belongs_to("a", 0), Ok(()));
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
