//! Forgets principals that nothing refers to any more, so that there is room for new ones.

use std::collections::BTreeSet;

use redb::{ReadableTable, WriteTransaction};

use crate::store::fault::StoreFault;
use crate::store::table::{
    ANSWERS, HELD_NAMES, PRINCIPALS, RowReader, SESSIONS, SETTLED_COUNTS, SUBSCRIPTIONS,
};

/// Forgets unused principals and returns their numbers. A principal that used an agent name since this time is
/// not unused. The highest number stays, so that no number is used
/// twice.
pub(super) fn forget(
    transaction: &WriteTransaction,
    held_since_unix_us: i64,
) -> Result<BTreeSet<u64>, StoreFault> {
    let mut used = BTreeSet::new();
    for row in transaction.open_table(SESSIONS)?.iter()? {
        let row = row?;
        let mut row = RowReader::new(row.1.value(), "sessions");
        let (_number, _agent) = (row.number()?, row.number()?);
        used.insert(row.number()?);
    }
    for row in transaction.open_table(SUBSCRIPTIONS)?.iter()? {
        used.insert(RowReader::new(row?.1.value(), "subscriptions").number()?);
    }
    for row in transaction.open_table(ANSWERS)?.iter()? {
        let row = row?;
        let number = row.0.value().first_chunk().ok_or_else(|| StoreFault::row("answers"))?;
        used.insert(u64::from_be_bytes(*number));
    }
    for row in transaction.open_table(SETTLED_COUNTS)?.iter()? {
        used.insert(row?.0.value());
    }
    let mut held = transaction.open_table(HELD_NAMES)?;
    for row in held.iter()? {
        let row = row?;
        let mut row = RowReader::new(row.1.value(), "held names");
        let (principal, used_unix_us) = (row.number()?, row.moment()?);
        if used_unix_us >= held_since_unix_us {
            used.insert(principal);
        }
    }
    let mut principals = transaction.open_table(PRINCIPALS)?;
    used.extend(principals.last()?.map(|(number, _)| number.value()));
    let mut unused = BTreeSet::new();
    for row in principals.iter()? {
        let number = row?.0.value();
        if !used.contains(&number) {
            unused.insert(number);
        }
    }
    for number in &unused {
        principals.remove(number)?;
    }
    held.retain(|_, row| {
        let principal = RowReader::new(row, "held names").number();
        !principal.is_ok_and(|principal| unused.contains(&principal))
    })?;
    Ok(unused)
}
