//! Principals have names; the engine and the store know them by numbers that stay the same over every
//! restart.

use std::collections::HashMap;

use crate::bounds::{MAX_NAME_BYTES, MAX_NAMES};
use crate::store::Change;

/// The numbers of one kind of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: HashMap<String, u64>,
    by_key: HashMap<u64, String>,
    next: u64,
}

/// There are as many names as can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyNames;

impl Names {
    pub(super) fn new(stored: Vec<(u64, String)>) -> Self {
        let next = stored.iter().map(|(key, _)| key + 1).max().unwrap_or(1);
        let by_name = stored.iter().map(|(key, name)| (name.clone(), *key)).collect();
        Names { by_name, by_key: stored.into_iter().collect(), next }
    }

    /// The number of a name. A new one is to be stored, as the change that `store` makes of it.
    pub(super) fn key(
        &mut self,
        name: &str,
        changes: &mut Vec<Change>,
        store: fn(u64, String) -> Change,
    ) -> Result<u64, TooManyNames> {
        if let Some(key) = self.by_name.get(name) {
            return Ok(*key);
        }
        if self.by_key.len() as u64 >= MAX_NAMES || name.len() > MAX_NAME_BYTES {
            return Err(TooManyNames);
        }
        let key = self.next;
        self.next += 1;
        self.by_name.insert(name.to_owned(), key);
        self.by_key.insert(key, name.to_owned());
        changes.push(store(key, name.to_owned()));
        Ok(key)
    }

    /// The numbers of the names that are meant.
    pub(super) fn numbers_where(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = u64> {
        self.by_name.iter().filter(move |(name, _)| is_meant(name)).map(|(_, key)| *key)
    }

    /// The name of a number.
    pub(super) fn name(&self, key: u64) -> Option<&str> {
        self.by_key.get(&key).map(String::as_str)
    }
}
