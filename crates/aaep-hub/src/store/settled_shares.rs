//! Which settled asks are remembered: when there are too many, the principal with the most loses its oldest
//! (ruling 38).
//!
//! A principal that asks and settles without end forgets its own outcomes, and nobody else's.

use std::collections::BTreeMap;

use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::store::fault::StoreFault;
use crate::store::table::{
    RowReader, SESSIONS, SETTLED, SETTLED_BY_AGE, SETTLED_COUNTS, SETTLED_OF_PRINCIPAL, pair,
    second,
};

/// Counts a settled ask for its principal.
pub(super) fn add(
    transaction: &WriteTransaction,
    principal: u64,
    age: u64,
    token: &str,
) -> Result<(), StoreFault> {
    let mut of_principal = transaction.open_table(SETTLED_OF_PRINCIPAL)?;
    if of_principal.insert(pair(principal, age), token)?.is_some() {
        return Ok(());
    }
    let mut counts = transaction.open_table(SETTLED_COUNTS)?;
    let count = counts.get(principal)?.map_or(0, |count| count.value());
    counts.insert(principal, count + 1)?;
    Ok(())
}

/// Forgets the oldest ask of the principal with the most; returns its age and its token.
pub(super) fn take_oldest(
    transaction: &WriteTransaction,
) -> Result<Option<(u64, String)>, StoreFault> {
    let mut counts = transaction.open_table(SETTLED_COUNTS)?;
    let mut most = None;
    for row in counts.iter()? {
        let (principal, count) = row?;
        most = most.max(Some((count.value(), principal.value())));
    }
    let Some((count, principal)) = most else { return Ok(None) };
    let mut of_principal = transaction.open_table(SETTLED_OF_PRINCIPAL)?;
    let all = pair(principal, 0)..=pair(principal, u64::MAX);
    let oldest = match of_principal.range(all)?.next() {
        Some(row) => {
            let (key, token) = row?;
            Some((key.value(), token.value().to_owned()))
        }
        None => None,
    };
    if count > 1 && oldest.is_some() {
        counts.insert(principal, count - 1)?;
    } else {
        counts.remove(principal)?;
    }
    let Some((key, token)) = oldest else { return Ok(None) };
    of_principal.remove(key)?;
    Ok(Some((second(key), token)))
}

/// Counts the settled asks in a store from before they were counted.
pub(super) fn add_all(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    if transaction.open_table(SETTLED_OF_PRINCIPAL)?.len()? > 0 {
        return Ok(());
    }
    let mut principals = BTreeMap::new();
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let row = row?;
        let mut row = RowReader::new(row.1.value(), "sessions");
        if let (Ok(number), Ok(_agent), Ok(principal)) = (row.number(), row.number(), row.number())
        {
            principals.insert(number, principal);
        }
    }
    let settled = transaction.open_table(SETTLED)?;
    for row in transaction.open_table(SETTLED_BY_AGE)?.iter()? {
        let (age, token) = row?;
        let Some(row) = settled.get(token.value())? else { continue };
        let mut row = RowReader::new(row.value(), "settled");
        let (Ok(_age), Ok(session)) = (row.number(), row.number()) else { continue };
        let principal = principals.get(&session).copied().unwrap_or(0);
        add(transaction, principal, age.value(), token.value())?;
    }
    Ok(())
}
