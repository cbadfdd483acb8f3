//! The part of the access rules that the hub needs while it works: which local programs may answer, and
//! which names are bound to which principals (rulings 36 and 37).
//!
//! [`Access`](crate::access::Access) fills it in from the configuration and the token file; the hub only
//! reads it. It never identifies a principal.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::name_reading::NameReading;

/// The name of programs that give none: streams without a handshake. This name can never be allowed.
pub(crate) const UNNAMED_PROGRAM: &str = "unnamed";

/// Which local programs may answer, and which names are bound to which principals.
#[derive(Debug, Default)]
pub struct Roster {
    /// Whether every local program counts as allowed.
    trusts_local_programs: bool,
    contents: RwLock<RosterContents>,
    /// The number of changes so far.
    generation: AtomicU64,
}

/// The contents of the configuration and the token file that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RosterContents {
    /// The local programs that the person allowed to answer, by the names they give themselves.
    pub(crate) allowed: BTreeSet<String>,
    /// The ids of the principals that are bound to each name. Names that read alike are one name.
    pub(crate) bound: HashMap<NameReading, BTreeSet<String>>,
}

impl Roster {
    /// An empty roster. With `trusts_local_programs`, every local program may answer.
    pub fn new(trusts_local_programs: bool) -> Self {
        Roster { trusts_local_programs, ..Roster::default() }
    }

    /// Whether every local program counts as allowed.
    pub fn trusts_local_programs(&self) -> bool {
        self.trusts_local_programs
    }

    /// Whether the local program that gives itself this name may answer.
    pub fn may_answer(&self, program: &str) -> bool {
        self.trusts_local_programs || self.read(|contents| contents.allowed.contains(program))
    }

    /// Whether a name that reads like this is bound to principals, but not to the one with this id.
    pub(crate) fn is_bound_to_others(&self, name: NameReading, principal_id: &str) -> bool {
        self.read(|contents| {
            contents.bound.get(&name).is_some_and(|ids| !ids.contains(principal_id))
        })
    }

    /// Whether a name that reads like this is bound to the principal with this id.
    pub(crate) fn is_bound_to(&self, name: NameReading, principal_id: &str) -> bool {
        self.read(|contents| {
            contents.bound.get(&name).is_some_and(|ids| ids.contains(principal_id))
        })
    }

    /// A number that changes whenever the contents do.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Replaces the contents.
    pub(crate) fn set(&self, contents: RosterContents) {
        let mut before = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        if *before != contents {
            *before = contents;
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    fn read<T>(&self, query: impl FnOnce(&RosterContents) -> T) -> T {
        query(&self.contents.read().unwrap_or_else(PoisonError::into_inner))
    }
}
