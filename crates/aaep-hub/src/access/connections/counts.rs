//! The counts of all connections, and which connection is asked to end for another one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use tokio::sync::Notify;

/// Where an unclaimed connection comes from. The source with the most of them gives way first, so that a
/// source with one connection keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionSource {
    /// Nobody has looked, or the system does not tell.
    Unknown,
    /// This process on this machine.
    Program(u32),
    /// This address of another machine, or the network of 64 bits that its IPv6 address is in.
    Machine(IpAddr),
}

impl ConnectionSource {
    /// The source of a connection from another machine.
    pub fn machine(address: IpAddr) -> Self {
        ConnectionSource::Machine(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [one, two, three, four, ..] = address.segments();
                Ipv6Addr::new(one, two, three, four, 0, 0, 0, 0).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }

    /// The source of a connection from this process, if it is known.
    pub fn program(process: Option<u32>) -> Self {
        process.map_or(ConnectionSource::Unknown, ConnectionSource::Program)
    }
}

/// All connections, grouped by how they behave when there is no room.
#[derive(Debug, Default)]
pub(in crate::access) struct ConnectionCounts {
    /// Connections that stay open and have no holder, in total and of each source.
    pub(super) unclaimed: usize,
    sources: BTreeMap<ConnectionSource, usize>,
    /// Connections that a principal holds, or that carry calls of a principal.
    pub(super) claimed: usize,
    /// Connections that were asked to end and have not ended yet.
    pub(super) leaving: usize,
    /// Connections that can be asked to end, the one that has been quiet the longest first.
    pub(super) movable: BTreeMap<u64, MovableConnection>,
    next_number: u64,
}

/// A connection that can be asked to end.
#[derive(Debug)]
pub(super) struct MovableConnection {
    pub(super) source: ConnectionSource,
    pub(super) holder: Option<ConnectionHolder>,
    pub(super) is_busy: bool,
    pub(super) gives_way: Arc<Notify>,
}

/// The principal, and perhaps the program, that holds a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionHolder {
    pub(super) principal: String,
    /// The process at the other end, if the system reports it.
    pub(super) program: Option<u32>,
}

impl ConnectionCounts {
    /// All open connections, including those about to end.
    pub(super) fn all(&self) -> usize {
        self.unclaimed + self.claimed + self.leaving
    }

    /// The unclaimed connections of a source.
    pub(super) fn of_source(&self, source: ConnectionSource) -> usize {
        self.sources.get(&source).copied().unwrap_or(0)
    }

    /// Asks the first movable connection that matches to end. Returns whether there was one.
    pub(super) fn make_way(&mut self, is_meant: impl Fn(&MovableConnection) -> bool) -> bool {
        let found = self.movable.iter().find(|(_, it)| is_meant(it)).map(|(number, _)| *number);
        let Some(connection) = found.and_then(|number| self.movable.remove(&number)) else {
            return false;
        };
        self.remove(connection.holder.is_some(), connection.source);
        self.leaving += 1;
        connection.gives_way.notify_one();
        true
    }

    /// Asks an unclaimed connection of the source with the most of them to end: a quiet one, or else the one
    /// that has been busy the longest. A new connection of this source is counted already.
    pub(super) fn make_way_unclaimed(&mut self, new: Option<ConnectionSource>) -> bool {
        let count = |source: ConnectionSource, of: usize| of + usize::from(new == Some(source));
        let most = self.sources.iter().map(|(source, of)| count(*source, *of)).max();
        let has_most: Vec<ConnectionSource> = self
            .sources
            .iter()
            .filter(|(source, of)| Some(count(**source, **of)) == most)
            .map(|(source, _)| *source)
            .collect();
        let is_meant =
            |it: &MovableConnection| it.holder.is_none() && has_most.contains(&it.source);
        self.make_way(|it| is_meant(it) && !it.is_busy) || self.make_way(is_meant)
    }

    /// Counts a connection that stays open.
    pub(super) fn add(&mut self, is_claimed: bool, source: ConnectionSource) {
        if is_claimed {
            self.claimed += 1;
        } else {
            self.unclaimed += 1;
            *self.sources.entry(source).or_default() += 1;
        }
    }

    /// Counts a connection no longer.
    pub(super) fn remove(&mut self, is_claimed: bool, source: ConnectionSource) {
        if is_claimed {
            self.claimed = self.claimed.saturating_sub(1);
            return;
        }
        self.unclaimed = self.unclaimed.saturating_sub(1);
        let of_source = self.of_source(source);
        if of_source > 1 {
            self.sources.insert(source, of_source - 1);
        } else {
            self.sources.remove(&source);
        }
    }

    /// Adds a connection that can be asked to end, and returns its number.
    pub(super) fn list(&mut self, connection: MovableConnection) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.movable.insert(number, connection);
        number
    }
}
