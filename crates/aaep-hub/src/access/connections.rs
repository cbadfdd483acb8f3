//! Limits on connections: which principal holds them, which give way, and which are reserved for the person
//! (T4 in §10.2.2, ruling 38).
//!
//! A connection is unclaimed until a credential or an address shows which principal holds it. An unclaimed
//! connection never keeps anyone out: when there is no room, one of the source with the most of them gives
//! way, the quietest first. So however many one program opens, another program keeps the one that it just
//! opened. A claimed connection gives way only while it is idle. The last connections are reserved: some for
//! answers, and some for the person alone. This file reads no clock.

mod counts;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::access::guard::Guard;
use crate::access::limits::LimitError;
pub(super) use counts::ConnectionCounts;
pub use counts::ConnectionSource;
use counts::{ConnectionHolder, MovableConnection};

/// How many connections are reserved for answers, for each principal and in total. The same number again is
/// reserved for the person.
pub const RESERVED_CONNECTIONS: usize = 8;
/// The number of unclaimed connections for which there is always room.
pub const UNCLAIMED_CONNECTIONS: usize = 64;
/// The least number of connections that one program may have, however few its principal may have.
const MIN_PROGRAM_CONNECTIONS: usize = 4;
/// The most connections that may be about to end at once. Beyond it, new ones are refused, except the first
/// of a source, for which there is as much room again.
const MAX_LEAVING: usize = 256;
/// The suffix of a principal's id that counts its connections on the local socket separately.
const LOCAL_POOL: &str = " on the local socket";

impl Guard {
    /// Admits a connection before its principal is known.
    pub fn connection(&self, source: ConnectionSource) -> Result<ConnectionPermit, LimitError> {
        let mut counts = self.counts();
        let connections = &mut counts.connections;
        let is_first = connections.of_source(source) == 0;
        if connections.leaving >= if is_first { 2 * MAX_LEAVING } else { MAX_LEAVING } {
            return Err(LimitError::Connections);
        }
        if connections.unclaimed >= self.most_unclaimed(connections)
            && !connections.make_way_unclaimed(Some(source))
        {
            return Err(LimitError::Connections);
        }
        connections.add(false, source);
        drop(counts);
        let mut permit = self.new_permit(source);
        permit.list();
        Ok(permit)
    }

    /// Whether there are so many unclaimed connections that it matters where the next one comes from.
    pub fn needs_source(&self) -> bool {
        let counts = self.counts();
        let connections = &counts.connections;
        connections.unclaimed >= self.most_unclaimed(connections) / 2
    }

    fn most_unclaimed(&self, connections: &ConnectionCounts) -> usize {
        let free = self.limits().connections.saturating_sub(connections.claimed);
        free.max(UNCLAIMED_CONNECTIONS)
    }

    /// Admits a connection for a known principal: a call on a connection that is already open.
    pub fn claimed_connection(
        &self,
        claim: Claim<'_>,
        now_us: u64,
    ) -> Result<ConnectionPermit, LimitError> {
        self.counts().connections.add(false, ConnectionSource::Unknown);
        let mut permit = self.new_permit(ConnectionSource::Unknown);
        permit.busy = 1;
        permit.belongs_to(claim, now_us)?;
        Ok(permit)
    }

    /// Asks the least useful connection to end, because the system has no room for another. Returns whether
    /// there was one.
    pub fn make_way(&self) -> bool {
        let mut counts = self.counts();
        counts.connections.make_way_unclaimed(None) || counts.connections.make_way(|_| true)
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.counts().connections.all()
    }

    fn new_permit(&self, source: ConnectionSource) -> ConnectionPermit {
        ConnectionPermit {
            guard: self.clone(),
            source,
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
    source: ConnectionSource,
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
            counts.connections.remove(false, self.source);
            counts.connections.add(true, self.source);
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
            counts.connections.remove(was_claimed, self.source);
            counts.connections.add(is_claimed, self.source);
        }
        self.list();
    }

    /// Where it comes from.
    pub fn source(&self) -> ConnectionSource {
        self.source
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
        let connection = MovableConnection {
            source: self.source,
            holder: self.holder.clone(),
            is_busy: self.busy > 0,
            gives_way: Arc::clone(&self.gives_way),
        };
        self.listed = Some(self.guard.counts().connections.list(connection));
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
            counts.connections.remove(is_claimed, self.source);
        }
    }
}

#[cfg(test)]
mod tests;
