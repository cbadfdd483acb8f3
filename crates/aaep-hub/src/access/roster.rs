//! What the hub has to know of its doors while it works: which local programs may answer, and which
//! names are bound to whom (rulings 36 and 37).
//!
//! The doors fill it in from the configuration and the file of the tokens; the hub only reads it. It
//! never says who somebody is.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// What programs are called that give no name: streams without a handshake. Nobody is allowed by it.
pub(crate) const UNNAMED_PROGRAM: &str = "unnamed";

/// Which local programs may answer, and which names are bound to whom.
#[derive(Debug, Default)]
pub struct Roster {
    /// Whether every local program counts as allowed.
    trusts_local_programs: bool,
    known: RwLock<Known>,
    /// How often it changed.
    generation: AtomicU64,
}

/// What the configuration and the file of the tokens say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The local programs that the person allowed to answer, by what they call themselves.
    pub(crate) allowed: BTreeSet<String>,
    /// The principals that are bound to each name, by their ids.
    pub(crate) bound: HashMap<String, BTreeSet<String>>,
}

impl Roster {
    /// A roster of nobody. With `trusts_local_programs`, every local program may answer.
    pub fn new(trusts_local_programs: bool) -> Self {
        Roster { trusts_local_programs, ..Roster::default() }
    }

    /// Whether every local program counts as allowed.
    pub fn trusts_local_programs(&self) -> bool {
        self.trusts_local_programs
    }

    /// Whether the local program that calls itself so may answer questions.
    pub fn may_answer(&self, program: &str) -> bool {
        self.trusts_local_programs || self.read(|known| known.allowed.contains(program))
    }

    /// Whether this name is bound to principals, and the one with this id is not among them.
    pub fn is_bound_to_others(&self, agent_id: &str, principal_id: &str) -> bool {
        self.read(|known| known.bound.get(agent_id).is_some_and(|ids| !ids.contains(principal_id)))
    }

    /// Whether this name is bound to the principal with this id.
    pub fn is_bound_to(&self, agent_id: &str, principal_id: &str) -> bool {
        self.read(|known| known.bound.get(agent_id).is_some_and(|ids| ids.contains(principal_id)))
    }

    /// A number that changes whenever what is known does.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// From now on this is known.
    pub(crate) fn set(&self, known: Known) {
        let mut before = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if *before != known {
            *before = known;
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}
