//! Limits on connections: which principal holds them, which give way, and which are reserved for the person
//! (T4 in §10.2.2, ruling 38).
//!
//! A connection is unclaimed until a credential or an address shows which principal holds it. An unclaimed
//! connection never keeps anyone out: it gives way to a new one whenever there is no room, the quietest
//! first. A claimed connection gives way only while it is idle. The last connections are reserved: some for
//! answers, and some for the person alone. This file reads no clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::access::guard::Guard;
use crate::access::limits::LimitError;

/// How many connections are reserved for answers, for each principal and in total. The same number again is
/// reserved for the person.
pub const RESERVED_CONNECTIONS: usize = 8;
/// The number of unclaimed connections for which there is always room.
pub const UNCLAIMED_CONNECTIONS: usize = 64;
/// The least number of connections that one program may have, however few its principal may have.
const MIN_PROGRAM_CONNECTIONS: usize = 4;
/// The most connections that may be about to end at once. Beyond it, new ones are refused.
const MAX_LEAVING: usize = 256;
/// The suffix of a principal's id that counts its connections on the local socket separately.
const LOCAL_POOL: &str = " on the local socket";

/// All connections, grouped by how they behave when there is no room.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts {
    /// Connections that stay open and have no holder.
    unclaimed: usize,
    /// Connections that a principal holds, or that carry calls of a principal.
    claimed: usize,
    /// Connections that were asked to end and have not ended yet.
    leaving: usize,
    /// Connections that can be asked to end, the one that has been quiet the longest first.
    movable: BTreeMap<u64, MovableConnection>,
    next_number: u64,
}

/// A connection that can be asked to end.
#[derive(Debug)]
struct MovableConnection {
    holder: Option<ConnectionHolder>,
    is_busy: bool,
    gives_way: Arc<Notify>,
}

/// The principal, and perhaps the program, that holds a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ConnectionHolder {
    principal: String,
    /// The process at the other end, if the system reports it.
    program: Option<u32>,
}

impl ConnectionCounts {
    /// All open connections, including those about to end.
    pub(super) fn all(&self) -> usize {
        self.unclaimed + self.claimed + self.leaving
    }

    /// Asks the first movable connection that matches to end. Returns whether there was one.
    fn make_way(&mut self, is_meant: impl Fn(&MovableConnection) -> bool) -> bool {
        let found = self.movable.iter().find(|(_, it)| is_meant(it)).map(|(number, _)| *number);
        let Some(connection) = found.and_then(|number| self.movable.remove(&number)) else {
            return false;
        };
        self.count(connection.holder.is_some(), false);
        self.leaving += 1;
        connection.gives_way.notify_one();
        true
    }

    /// Asks an unclaimed connection to end: a quiet one, or else the one that has been busy the longest.
    fn make_way_unclaimed(&mut self) -> bool {
        self.make_way(|it| it.holder.is_none() && !it.is_busy)
            || self.make_way(|it| it.holder.is_none())
    }

    /// Adds a connection that stays open to its count, or removes it.
    fn count(&mut self, is_claimed: bool, is_more: bool) {
        let count = if is_claimed { &mut self.claimed } else { &mut self.unclaimed };
        *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
    }
}

impl Guard {
    /// Admits a connection before its principal is known.
    pub fn connection(&self) -> Result<ConnectionPermit, LimitError> {
        let mut counts = self.counts();
        let connections = &mut counts.connections;
        let free = self.limits().connections.saturating_sub(connections.claimed);
        if connections.leaving >= MAX_LEAVING {
            return Err(LimitError::Connections);
        }
        if connections.unclaimed >= free.max(UNCLAIMED_CONNECTIONS)
            && !connections.make_way_unclaimed()
        {
            return Err(LimitError::Connections);
        }
        connections.unclaimed += 1;
        drop(counts);
        let mut permit = self.new_permit();
        permit.list();
        Ok(permit)
    }

    /// Admits a connection for a known principal: a call on a connection that is already open.
    pub fn claimed_connection(
        &self,
        claim: Claim<'_>,
        now_us: u64,
    ) -> Result<ConnectionPermit, LimitError> {
        self.counts().connections.unclaimed += 1;
        let mut permit = self.new_permit();
        permit.busy = 1;
        permit.belongs_to(claim, now_us)?;
        Ok(permit)
    }

    /// Asks the least useful connection to end, because the system has no room for another. Returns whether
    /// there was one.
    pub fn make_way(&self) -> bool {
        let mut counts = self.counts();
        counts.connections.make_way_unclaimed() || counts.connections.make_way(|_| true)
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.counts().connections.all()
    }

    fn new_permit(&self) -> ConnectionPermit {
        ConnectionPermit {
            guard: self.clone(),
            holder: None,
            gives_way: Arc::new(Notify::new()),
            busy: 0,
            carries: 0,
            listed: None,
            is_leaving: false,
        }
    }
}

/// An admitted connection. Dropping this value frees it.
#[derive(Debug)]
pub struct ConnectionPermit {
    guard: Guard,
    holder: Option<ConnectionHolder>,
    gives_way: Arc<Notify>,
    /// The number of requests in progress.
    busy: usize,
    /// The number of calls that it carries. Each of them has a permit of its own.
    carries: usize,
    /// Its number among the movable connections.
    listed: Option<u64>,
    /// Whether it was asked to end.
    is_leaving: bool,
}

/// A principal's request to hold a connection, and the purpose.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The id of the principal.
    pub principal: &'a str,
    /// The process at the other end, if the system reports it.
    pub program: Option<u32>,
    /// Whether it arrived by the local socket, whose connections are counted separately.
    pub is_local_socket: bool,
    /// Which reserved connections it may use.
    pub reserve: Reserve,
}

/// Which reserved connections a claim may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// None of them.
    None,
    /// Those reserved for answers.
    Answers,
    /// Those reserved for answers, and those reserved for the person's own programs.
    Person,
}

impl Reserve {
    fn places(self) -> usize {
        match self {
            Reserve::None => 0,
            Reserve::Answers => RESERVED_CONNECTIONS,
            Reserve::Person => 2 * RESERVED_CONNECTIONS,
        }
    }
}

impl<'a> Claim<'a> {
    /// A claim by the principal with this id, without a program or a reserve.
    pub fn of(principal: &'a str) -> Self {
        Claim { principal, program: None, is_local_socket: false, reserve: Reserve::None }
    }
}

impl ConnectionPermit {
    /// Counts the connection for this principal and no longer for its previous holder. If there is no room,
    /// the previous holder keeps it.
    pub fn belongs_to(&mut self, claim: Claim<'_>, now_us: u64) -> Result<(), LimitError> {
        let Claim { principal, program, is_local_socket, reserve } = claim;
        let pool = if is_local_socket { LOCAL_POOL } else { "" };
        let holder = ConnectionHolder { principal: format!("{principal}{pool}"), program };
        if self.holder.as_ref() == Some(&holder) {
            return Ok(());
        }
        self.unlist();
        let most = self.guard.limits().connections_per_principal;
        // The program is always known on the local socket; elsewhere only for connections that arrived when
        // room was scarce.
        let of_program =
            if is_local_socket { most - most / 4 } else { (most / 4).max(MIN_PROGRAM_CONNECTIONS) };
        let claimed = self.take_place(&holder, of_program, reserve, now_us);
        if claimed.is_ok() {
            let before = self.holder.replace(holder);
            self.give_back(before);
        }
        self.list();
        claimed
    }

    fn take_place(
        &self,
        holder: &ConnectionHolder,
        of_program: usize,
        reserve: Reserve,
        now_us: u64,
    ) -> Result<(), LimitError> {
        let limits = self.guard.limits();
        let kept = reserve.places();
        let most = limits.connections_per_principal;
        let mut counts = self.guard.counts();
        let usage = self.guard.usage_of(&mut counts, &holder.principal, now_us)?;
        let (connections, own) = (usage.connections, usage.programs.get(&holder.program).copied());
        let is_theirs = |it: &MovableConnection| {
            it.holder.as_ref().is_some_and(|it| it.principal == holder.principal)
        };
        let is_own = |it: &MovableConnection| it.holder.as_ref() == Some(holder);
        let is_full = holder.program.is_some() && own.unwrap_or(0) >= of_program + kept;
        if is_full && !counts.connections.make_way(is_own) {
            return Err(LimitError::ConnectionsOfProgram);
        }
        if connections >= most + kept && !counts.connections.make_way(is_theirs) {
            return Err(LimitError::ConnectionsOfPrincipal);
        }
        if self.holder.is_none()
            && !self.is_leaving
            && counts.connections.claimed >= limits.connections + kept
            && !counts.connections.make_way(|it| it.holder.is_some())
        {
            return Err(LimitError::Connections);
        }
        let usage = self.guard.usage_of(&mut counts, &holder.principal, now_us)?;
        usage.connections += 1;
        *usage.programs.entry(holder.program).or_default() += 1;
        if !self.is_leaving && !self.is_counted_as_claimed() {
            counts.connections.count(false, false);
            counts.connections.count(true, true);
        }
        Ok(())
    }

    /// Whether nobody holds the connection yet and half of this principal's connections are in use.
    pub fn needs_program(&self, principal: &str, now_us: u64) -> bool {
        let most = self.guard.limits().connections_per_principal;
        let mut counts = self.guard.counts();
        let usage = self.guard.usage_of(&mut counts, principal, now_us);
        self.holder.is_none() && usage.is_ok_and(|usage| usage.connections >= most / 2)
    }

    /// Notes that a request began.
    pub fn work(&mut self) {
        self.unlist();
        self.busy += 1;
        self.list();
    }

    /// Notes that a request ended. A connection without requests gives way to others.
    pub fn rest(&mut self) {
        self.unlist();
        self.busy = self.busy.saturating_sub(1);
        self.list();
    }

    /// Notes a call that has a permit of its own. Until that call ends, this connection does not give way.
    pub fn carry(&mut self) {
        self.carry_calls(self.carries + 1);
    }

    /// Notes that a carried call ended.
    pub fn put_down(&mut self) {
        self.carry_calls(self.carries.saturating_sub(1));
    }

    fn carry_calls(&mut self, calls: usize) {
        self.unlist();
        let was_claimed = self.is_counted_as_claimed();
        self.carries = calls;
        let is_claimed = self.is_counted_as_claimed();
        if was_claimed != is_claimed && !self.is_leaving {
            let mut counts = self.guard.counts();
            counts.connections.count(was_claimed, false);
            counts.connections.count(is_claimed, true);
        }
        self.list();
    }

    /// Notifies when the connection must end to make room for another.
    pub fn gives_way(&self) -> Arc<Notify> {
        Arc::clone(&self.gives_way)
    }

    fn is_counted_as_claimed(&self) -> bool {
        self.holder.is_some() || self.carries > 0
    }

    /// Adds it to the movable connections, if it can be asked to end.
    fn list(&mut self) {
        let stays = self.carries > 0 || (self.holder.is_some() && self.busy > 0);
        if stays || self.is_leaving || self.listed.is_some() {
            return;
        }
        let mut counts = self.guard.counts();
        let number = counts.connections.next_number;
        counts.connections.next_number += 1;
        let connection = MovableConnection {
            holder: self.holder.clone(),
            is_busy: self.busy > 0,
            gives_way: Arc::clone(&self.gives_way),
        };
        counts.connections.movable.insert(number, connection);
        drop(counts);
        self.listed = Some(number);
    }

    /// Removes it from the movable connections. If it is not among them any more, it was asked to end.
    fn unlist(&mut self) {
        if let Some(number) = self.listed.take() {
            let removed = self.guard.counts().connections.movable.remove(&number);
            self.is_leaving |= removed.is_none();
        }
    }

    fn give_back(&self, before: Option<ConnectionHolder>) {
        let Some(before) = before else { return };
        self.guard.give_back(&before.principal, |usage| {
            usage.connections = usage.connections.saturating_sub(1);
            if let Some(count) = usage.programs.get_mut(&before.program) {
                *count -= 1;
                if *count == 0 {
                    usage.programs.remove(&before.program);
                }
            }
        });
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.unlist();
        let is_claimed = self.is_counted_as_claimed();
        let holder = self.holder.take();
        self.give_back(holder);
        let mut counts = self.guard.counts();
        if self.is_leaving {
            counts.connections.leaving = counts.connections.leaving.saturating_sub(1);
        } else {
            counts.connections.count(is_claimed, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::limits::Limits;

    fn guard() -> Guard {
        Guard::new(Limits { connections: 3, connections_per_principal: 2, ..Limits::default() })
    }

    /// A connection with a request of this principal in progress.
    fn busy(guard: &Guard, principal: &str) -> Result<ConnectionPermit, LimitError> {
        let mut permit = guard.connection()?;
        permit.work();
        permit.belongs_to(Claim::of(principal), 0)?;
        Ok(permit)
    }

    #[test]
    fn connections_are_bounded_and_come_back() {
        let guard = guard();
        let first = busy(&guard, "a").expect("room");
        let _others = [busy(&guard, "b").expect("room"), busy(&guard, "c").expect("room")];
        assert_eq!(busy(&guard, "d").err(), Some(LimitError::Connections));
        drop(first);
        assert!(busy(&guard, "d").is_ok());
        assert_eq!(guard.connections(), 2);
    }

    #[tokio::test]
    async fn an_unclaimed_connection_keeps_nobody_out_even_if_something_happens_on_it() {
        let guard = guard();
        let most = UNCLAIMED_CONNECTIONS;
        let mut unclaimed: Vec<_> = (0..most).map(|_| guard.connection().expect("room")).collect();
        unclaimed[1..].iter_mut().for_each(ConnectionPermit::work);
        let mut newer = Vec::new();
        for leaving in unclaimed.drain(..3) {
            let mut permit = guard.connection().expect("room");
            permit.work();
            newer.push(permit);
            leaving.gives_way().notified().await;
        }
        assert_eq!(newer[0].belongs_to(Claim::of("a"), 0), Ok(()));
        assert_eq!(guard.connections(), most);
    }

    #[test]
    fn a_connection_that_carries_a_call_gives_way_to_nobody_until_it_ends() {
        let guard = guard();
        let mut carrier = guard.connection().expect("room");
        carrier.carry();
        let call = guard.claimed_connection(Claim::of("a"), 0).expect("room");
        assert_eq!(guard.connections(), 2);
        assert!(!guard.make_way(), "both stay");
        drop(call);
        carrier.put_down();
        assert!(guard.make_way());
    }

    #[tokio::test]
    async fn a_quiet_connection_gives_way_the_oldest_first() {
        let guard = guard();
        let mut all = [busy(&guard, "a").expect("room"), busy(&guard, "a").expect("room")];
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
    fn places_are_kept_for_answers_and_more_for_the_person() {
        let guard = guard();
        let mut held: Vec<_> =
            (0..3).map(|n| busy(&guard, &n.to_string()).expect("room")).collect();
        let mut claim = |principal: &str, reserve| {
            let mut permit = guard.connection().expect("room");
            permit.work();
            let claimed = permit.belongs_to(Claim { reserve, ..Claim::of(principal) }, 0);
            held.push(permit);
            claimed
        };
        assert_eq!(claim("new", Reserve::None), Err(LimitError::Connections));
        for number in 0..RESERVED_CONNECTIONS {
            assert_eq!(claim(&format!("answers {number}"), Reserve::Answers), Ok(()));
        }
        assert_eq!(claim("new", Reserve::Answers), Err(LimitError::Connections));
        assert_eq!(claim("person", Reserve::Person), Ok(()));
    }

    #[test]
    fn one_program_leaves_places_for_the_others() {
        let limits = Limits { connections_per_principal: 4, ..Limits::default() };
        let guard = Guard::new(limits);
        let mut busy: Vec<_> = (0..5).map(|_| guard.connection().expect("room")).collect();
        busy.iter_mut().for_each(ConnectionPermit::work);
        let of =
            |program| Claim { program: Some(program), is_local_socket: true, ..Claim::of("local") };
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
        three.iter_mut().for_each(ConnectionPermit::work);
        assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()));
        assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()), "the same again takes nothing");
        assert_eq!(three[1].belongs_to(Claim::of("a"), 0), Ok(()));
        assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Err(LimitError::ConnectionsOfPrincipal));
        assert_eq!(three[2].belongs_to(Claim::of("b"), 0), Ok(()));
        assert_eq!(three[0].belongs_to(Claim::of("b"), 0), Ok(()), "it is no more that of a");
        assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Ok(()));
    }
}
