//! Maps the names of principals to the numbers that the engine and the store use. The numbers survive restarts.

use std::collections::HashMap;

use aaep_engine::PrincipalNumber;

use crate::bounds::{MAX_NAME_BYTES, MAX_NAMES};
use crate::store::StoreChange;

/// The numbers of all names.
#[derive(Debug, Default)]
pub(super) struct PrincipalNumbers {
    by_name: HashMap<String, PrincipalNumber>,
    by_key: HashMap<PrincipalNumber, String>,
    next: u64,
}

/// The hub cannot tell more names apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyNames;

impl PrincipalNumbers {
    pub(super) fn new(stored: Vec<(u64, String)>) -> Self {
        let next = stored.iter().map(|(key, _)| key + 1).max().unwrap_or(1);
        let stored = stored.into_iter().map(|(key, name)| (PrincipalNumber(key), name));
        let by_key: HashMap<_, _> = stored.collect();
        let by_name = by_key.iter().map(|(key, name)| (name.clone(), *key)).collect();
        PrincipalNumbers { by_name, by_key, next }
    }

    /// Returns the number of a name. A new name also adds the change that `store` makes from it.
    pub(super) fn key(
        &mut self,
        name: &str,
        changes: &mut Vec<StoreChange>,
        store: fn(u64, String) -> StoreChange,
    ) -> Result<PrincipalNumber, TooManyNames> {
        if let Some(key) = self.by_name.get(name) {
            return Ok(*key);
        }
        if self.by_key.len() as u64 >= MAX_NAMES || name.len() > MAX_NAME_BYTES {
            return Err(TooManyNames);
        }
        let key = PrincipalNumber(self.next);
        self.next += 1;
        self.by_name.insert(name.to_owned(), key);
        self.by_key.insert(key, name.to_owned());
        changes.push(store(key.0, name.to_owned()));
        Ok(key)
    }

    /// The numbers of all names for which `is_meant` holds.
    pub(super) fn numbers_where(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = PrincipalNumber> {
        self.by_name.iter().filter(move |(name, _)| is_meant(name)).map(|(_, key)| *key)
    }

    /// The name that has this number.
    pub(super) fn name(&self, key: PrincipalNumber) -> Option<&str> {
        self.by_key.get(&key).map(String::as_str)
    }
}
