//! Counting what everyone takes of the hub, and giving it back when they go (T4 in §10.2.2).
//!
//! What is taken is a permit that returns itself when dropped, so that no way out of a function can
//! forget it. Memory is bounded: whoever holds nothing and has been quiet is forgotten. No clock.
//!
//! A connection on which nothing happens gives way to a new one, the oldest first, and some places are kept for the
//! person's own programs and for answers, so that nobody can lock a person out.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::access::limits::{LimitError, Limits};

/// How many principals are kept apart at once.
pub const MAX_PRINCIPALS: usize = 4096;
/// How many connections of a principal, and of all, are kept for the person's own programs and for answers.
pub const RESERVED_CONNECTIONS: usize = 8;
/// What is added to the id of a principal for connections of programs that the system tells apart.
const LOCAL_POOL: &str = " on the local socket";
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
    /// The connections on which nothing happens, the one that has been quiet longest first.
    idle: BTreeMap<u64, Idle>,
    next_idle: u64,
    /// How many connections were told to end and have not ended yet.
    leaving: usize,
}

/// A connection on which nothing happens.
#[derive(Debug)]
struct Idle {
    holder: Option<Holder>,
    gives_way: Arc<Notify>,
}

/// Whose a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    principal: String,
    /// The process at the other end, if the system says so.
    program: Option<u32>,
}

impl Counts {
    /// How many connections stay.
    fn staying(&self) -> usize {
        self.connections.saturating_sub(self.leaving)
    }

    /// The connection that has been quiet longest, of those that are meant, ends. Whether there is one.
    fn make_way(&mut self, is_meant: impl Fn(Option<&Holder>) -> bool) -> bool {
        let mut idle = self.idle.iter().filter(|(_, idle)| is_meant(idle.holder.as_ref()));
        let Some(number) = idle.next().map(|(number, _)| *number) else { return false };
        if let Some(idle) = self.idle.remove(&number) {
            idle.gives_way.notify_one();
            self.leaving += 1;
        }
        true
    }
}

/// What one principal has taken.
#[derive(Debug, Clone, Default)]
struct Taken {
    connections: usize,
    /// How many of them each program has.
    programs: BTreeMap<Option<u32>, usize>,
    requests: usize,
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
        if counts.staying() >= self.limits().connections
            && !counts.make_way(|_| true)
            && counts.staying() >= self.limits().connections + RESERVED_CONNECTIONS
        {
            return Err(LimitError::Connections);
        }
        counts.connections += 1;
        drop(counts);
        let mut permit = ConnectionPermit {
            guard: self.clone(),
            holder: None,
            gives_way: Arc::new(Notify::new()),
            busy: 0,
            idle: None,
            is_leaving: false,
        };
        permit.rest();
        Ok(permit)
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

    /// Takes a request of the principal with this id.
    pub fn request(&self, principal: &str, now_us: u64) -> Result<RequestPermit, LimitError> {
        let most = self.limits().requests_per_principal;
        let mut counts = self.counts();
        let taken = self.taken(&mut counts, principal, now_us)?;
        if taken.requests >= most {
            return Err(LimitError::RequestsOfPrincipal);
        }
        taken.requests += 1;
        drop(counts);
        Ok(RequestPermit { guard: self.clone(), principal: principal.to_owned() })
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
                let holds = taken.connections + taken.subscriptions + taken.requests;
                holds > 0 || taken.budget < full
            });
            if counts.principals.len() >= MAX_PRINCIPALS {
                return Err(LimitError::Principals);
            }
        }
        let new = Taken { budget: full, budget_at_us: now_us, ..Taken::default() };
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
    holder: Option<Holder>,
    gives_way: Arc<Notify>,
    /// How many requests are under way on it.
    busy: usize,
    /// Its number among those on which nothing happens.
    idle: Option<u64>,
    /// Whether it was told to end.
    is_leaving: bool,
}

/// Whose a connection is, and what for.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The id of the principal.
    pub principal: &'a str,
    /// The process at the other end, if the system says so.
    pub program: Option<u32>,
    /// Whether it may take a place that is kept: it is the person's own program, or it answers.
    pub is_reserved: bool,
}

impl<'a> Claim<'a> {
    /// A connection of the principal with this id, for anything.
    pub fn of(principal: &'a str) -> Self {
        Claim { principal, program: None, is_reserved: false }
    }
}

impl ConnectionPermit {
    /// Counts the connection as that of a principal, now that it is known. A connection that was another's before
    /// is that no more; if it cannot be had, it stays so.
    pub fn belongs_to(&mut self, claim: Claim<'_>, now_us: u64) -> Result<(), LimitError> {
        let Claim { principal, program, is_reserved } = claim;
        // Programs that the system tells apart do not share places with those that it does not.
        let pool = if program.is_some() { LOCAL_POOL } else { "" };
        let principal = &format!("{principal}{pool}");
        let holder = Holder { principal: principal.clone(), program };
        if self.holder.as_ref() == Some(&holder) {
            return Ok(());
        }
        let limits = self.guard.limits();
        let most = limits.connections_per_principal;
        let of_program = most - most / 4;
        let mut counts = self.guard.counts();
        if counts.staying() > limits.connections && !is_reserved {
            return Err(LimitError::Connections);
        }
        let taken = self.guard.taken(&mut counts, principal, now_us)?;
        let (connections, own) = (taken.connections, taken.programs.get(&program).copied());
        let kept = if is_reserved { RESERVED_CONNECTIONS } else { 0 };
        let is_theirs = |it: Option<&Holder>| it.is_some_and(|it| it.principal == *principal);
        let is_own = |it: Option<&Holder>| it == Some(&holder);
        let is_full = program.is_some() && own.unwrap_or(0) >= of_program + kept;
        if is_full && !counts.make_way(is_own) {
            return Err(LimitError::ConnectionsOfProgram);
        }
        if connections >= most + kept && !counts.make_way(is_theirs) {
            return Err(LimitError::ConnectionsOfPrincipal);
        }
        let taken = self.guard.taken(&mut counts, principal, now_us)?;
        taken.connections += 1;
        *taken.programs.entry(program).or_default() += 1;
        drop(counts);
        self.leave(Some(holder));
        Ok(())
    }

    /// Something happens on it.
    pub fn work(&mut self) {
        self.busy += 1;
        if let Some(number) = self.idle.take() {
            self.is_leaving |= self.guard.counts().idle.remove(&number).is_none();
        }
    }

    /// Something is done on it. When nothing happens any more, it gives way to others.
    pub fn rest(&mut self) {
        self.busy = self.busy.saturating_sub(1);
        if self.busy > 0 || self.idle.is_some() || self.is_leaving {
            return;
        }
        let mut counts = self.guard.counts();
        let number = counts.next_idle;
        counts.next_idle += 1;
        let (holder, gives_way) = (self.holder.clone(), Arc::clone(&self.gives_way));
        counts.idle.insert(number, Idle { holder, gives_way });
        drop(counts);
        self.idle = Some(number);
    }

    /// What says that it must end to make room for another.
    pub fn gives_way(&self) -> Arc<Notify> {
        Arc::clone(&self.gives_way)
    }

    fn leave(&mut self, next: Option<Holder>) {
        if let Some(before) = std::mem::replace(&mut self.holder, next) {
            self.guard.give_back(&before.principal, |taken| {
                taken.connections = taken.connections.saturating_sub(1);
                if let Some(count) = taken.programs.get_mut(&before.program) {
                    *count -= 1;
                    if *count == 0 {
                        taken.programs.remove(&before.program);
                    }
                }
            });
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.leave(None);
        let mut counts = self.guard.counts();
        counts.connections = counts.connections.saturating_sub(1);
        if let Some(number) = self.idle {
            self.is_leaving |= counts.idle.remove(&number).is_none();
        }
        if self.is_leaving {
            counts.leaving = counts.leaving.saturating_sub(1);
        }
    }
}

/// One request that is under way. It is given back when this is dropped.
#[derive(Debug)]
pub struct RequestPermit {
    guard: Guard,
    principal: String,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.guard.give_back(&self.principal, |taken| {
            taken.requests = taken.requests.saturating_sub(1);
        });
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
        let busy = || {
            let mut permit = guard.connection().expect("room");
            permit.work();
            permit
        };
        let first = busy();
        let _others: Vec<_> = (0..2 + RESERVED_CONNECTIONS).map(|_| busy()).collect();
        assert_eq!(guard.connection().err(), Some(LimitError::Connections));
        drop(first);
        assert!(guard.connection().is_ok());
    }

    #[tokio::test]
    async fn a_quiet_connection_gives_way_the_oldest_first() {
        let guard = guard();
        let mut all: Vec<_> = (0..2).map(|_| guard.connection().expect("room")).collect();
        for permit in &mut all {
            permit.work();
            permit.belongs_to(Claim::of("a"), 0).expect("room");
        }
        let mut third = guard.connection().expect("room");
        third.work();
        let full = third.belongs_to(Claim::of("a"), 0);
        assert_eq!(full, Err(LimitError::ConnectionsOfPrincipal), "something happens on both");
        all[1].rest();
        all[0].rest();
        assert_eq!(third.belongs_to(Claim::of("a"), 0), Ok(()));
        all[1].gives_way().notified().await;
    }

    #[test]
    fn a_place_is_kept_for_the_person_and_for_answers() {
        let guard = guard();
        let mut busy: Vec<_> = (0..3).map(|_| guard.connection().expect("room")).collect();
        busy.iter_mut().for_each(ConnectionPermit::work);
        for permit in &mut busy[..2] {
            permit.belongs_to(Claim::of("a"), 0).expect("room");
        }
        let claim = Claim { is_reserved: true, ..Claim::of("a") };
        assert!(busy[2].belongs_to(Claim::of("a"), 0).is_err());
        assert_eq!(busy[2].belongs_to(claim, 0), Ok(()));
    }

    #[test]
    fn one_program_leaves_places_for_the_others() {
        let limits = Limits { connections_per_principal: 4, ..Limits::default() };
        let guard = Guard::new(limits);
        let mut busy: Vec<_> = (0..5).map(|_| guard.connection().expect("room")).collect();
        busy.iter_mut().for_each(ConnectionPermit::work);
        let of = |program| Claim { program: Some(program), ..Claim::of("local") };
        for permit in &mut busy[..3] {
            permit.belongs_to(of(1), 0).expect("room");
        }
        assert_eq!(busy[3].belongs_to(of(1), 0), Err(LimitError::ConnectionsOfProgram));
        assert_eq!(busy[3].belongs_to(of(2), 0), Ok(()));
        let full = busy[4].belongs_to(of(2), 0);
        assert_eq!(full, Err(LimitError::ConnectionsOfPrincipal));
    }

    #[test]
    fn one_principal_cannot_take_everything() {
        let guard = guard();
        let mut three: Vec<_> = (0..3).map(|_| guard.connection().expect("room")).collect();
        assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()));
        assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()), "the same again takes nothing");
        assert_eq!(three[1].belongs_to(Claim::of("a"), 0), Ok(()));
        assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Err(LimitError::ConnectionsOfPrincipal));
        assert_eq!(three[2].belongs_to(Claim::of("b"), 0), Ok(()));
        assert_eq!(three[0].belongs_to(Claim::of("b"), 0), Ok(()), "it is no more that of a");
        assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Ok(()));
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
