//! The tables of the store, and how their rows are written as bytes.
//!
//! Composite keys are big-endian, so that the order of the bytes is the order of the numbers. A row that cannot
//! be read is a fault of the file and never a panic.

use aaep_engine::PrincipalNumber;
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::audit::Hash;
use crate::store::event_ids::RunKey;
use crate::store::fault::StoreFault;
use crate::store::journal::StoreId;

/// The current format. A store with a larger format is refused; smaller ones are upgraded: 1 had no journal; 2
/// did not store when the time of an ask was stored, and had no counted time; 3 had no index of event ids and
/// did not count settled asks by principal; 4 had a row for each event in that index; 5 did not store who holds
/// which name; 6 stored of each event whether it is critical.
pub(crate) const FORMAT: u32 = 7;

/// Single values: the format, the counters, how much of the audit file is safe.
pub(crate) const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
/// Session id to its facts.
pub(crate) const SESSIONS: TableDefinition<&str, &[u8]> = TableDefinition::new("sessions");
/// Session number to session id, for running sessions.
pub(crate) const RUNNING: TableDefinition<u64, &str> = TableDefinition::new("running");
/// Time of its end and session number to session id.
pub(crate) const ENDED: TableDefinition<[u8; 16], &str> = TableDefinition::new("ended");
/// Session number and order of its first event to a chunk of events.
pub(crate) const EVENTS: TableDefinition<[u8; 16], &[u8]> = TableDefinition::new("events");
/// Session number, class, part and first order of a run to digests of event ids and their orders.
pub(crate) const EVENT_ID_RUNS: TableDefinition<RunKey, &[u8]> =
    TableDefinition::new("event id runs");
/// The index of format 4, with a row for each event.
pub(crate) const OLD_EVENT_IDS: TableDefinition<[u8; 24], u64> = TableDefinition::new("event ids");
/// Reply token to an open ask.
pub(crate) const ASKS: TableDefinition<&str, &[u8]> = TableDefinition::new("asks");
/// Reply token to a settled ask.
pub(crate) const SETTLED: TableDefinition<&str, &[u8]> = TableDefinition::new("settled");
/// Age to reply token, oldest first.
pub(crate) const SETTLED_BY_AGE: TableDefinition<u64, &str> =
    TableDefinition::new("settled by age");
/// Session number and age to reply token.
pub(crate) const SETTLED_OF_SESSION: TableDefinition<[u8; 16], &str> =
    TableDefinition::new("settled of session");
/// Principal and age to reply token.
pub(crate) const SETTLED_OF_PRINCIPAL: TableDefinition<[u8; 16], &str> =
    TableDefinition::new("settled of principal");
/// Principal to the number of its settled asks that are remembered.
pub(crate) const SETTLED_COUNTS: TableDefinition<u64, u64> = TableDefinition::new("settled counts");
/// Subscription id to its terms.
pub(crate) const SUBSCRIPTIONS: TableDefinition<&str, &[u8]> =
    TableDefinition::new("subscriptions");
/// Number to name.
pub(crate) const AGENTS: TableDefinition<u64, &str> = TableDefinition::new("agents");
/// Number to name.
pub(crate) const PRINCIPALS: TableDefinition<u64, &str> = TableDefinition::new("principals");
/// Agent name to the principal that used it last, and when.
pub(crate) const HELD_NAMES: TableDefinition<&str, &[u8]> = TableDefinition::new("held names");
/// Agent and idempotency key to answer.
pub(crate) const ANSWERS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("answers");
/// Age to agent and idempotency key, oldest first.
pub(crate) const ANSWERS_BY_AGE: TableDefinition<u64, &[u8]> =
    TableDefinition::new("answers by age");
/// Audit number to the line that the file may lack.
pub(crate) const AUDIT_WAITING: TableDefinition<u64, &[u8]> = TableDefinition::new("audit waiting");
/// Audit number to the words that are not in the file.
pub(crate) const AUDIT_DETAILS: TableDefinition<u64, &[u8]> = TableDefinition::new("audit details");
/// Session number and audit number of every entry with words.
pub(crate) const AUDIT_OF_SESSION: TableDefinition<[u8; 16], ()> =
    TableDefinition::new("audit of session");

/// Table and key of a row that is not valid, to the row.
pub(crate) const SET_ASIDE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("set aside");

/// Creates all tables, so that readers find them.
pub(crate) fn create_all(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    transaction.open_table(META)?;
    transaction.open_table(SESSIONS)?;
    transaction.open_table(RUNNING)?;
    transaction.open_table(ENDED)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(EVENT_ID_RUNS)?;
    transaction.open_table(ASKS)?;
    transaction.open_table(SETTLED)?;
    transaction.open_table(SETTLED_BY_AGE)?;
    transaction.open_table(SETTLED_OF_SESSION)?;
    transaction.open_table(SETTLED_OF_PRINCIPAL)?;
    transaction.open_table(SETTLED_COUNTS)?;
    transaction.open_table(SUBSCRIPTIONS)?;
    transaction.open_table(AGENTS)?;
    transaction.open_table(PRINCIPALS)?;
    transaction.open_table(HELD_NAMES)?;
    transaction.open_table(ANSWERS)?;
    transaction.open_table(ANSWERS_BY_AGE)?;
    transaction.open_table(AUDIT_WAITING)?;
    transaction.open_table(AUDIT_DETAILS)?;
    transaction.open_table(AUDIT_OF_SESSION)?;
    transaction.open_table(SET_ASIDE)?;
    Ok(())
}

/// A key of two numbers.
pub(crate) fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&first.to_be_bytes());
    key[8..].copy_from_slice(&second.to_be_bytes());
    key
}

/// The second number of such a key.
pub(crate) fn second(key: [u8; 16]) -> u64 {
    key.last_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// A time as a number with the same sort order, also before 1970.
pub(crate) fn sortable(unix_us: i64) -> u64 {
    unix_us.cast_unsigned() ^ (1 << 63)
}

/// The key of an answer.
pub(crate) fn answer_key(principal: PrincipalNumber, idempotency_key: &str) -> Vec<u8> {
    [&principal.0.to_be_bytes(), idempotency_key.as_bytes()].concat()
}

/// Decodes a row from its beginning.
pub(crate) struct RowReader<'a> {
    rest: &'a [u8],
    table: &'static str,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(rest: &'a [u8], table: &'static str) -> Self {
        RowReader { rest, table }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], StoreFault> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| StoreFault::row(self.table))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Bytes that are preceded by their length.
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], StoreFault> {
        let count = usize::try_from(self.number()?).map_err(|_| StoreFault::row(self.table))?;
        self.bytes(count)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreFault> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| StoreFault::row(self.table))
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreFault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn moment(&mut self) -> Result<i64, StoreFault> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A time or `None`, which is stored as the earliest possible time.
    pub(crate) fn optional_moment(&mut self) -> Result<Option<i64>, StoreFault> {
        Ok(Some(self.moment()?).filter(|moment| *moment != i64::MIN))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, StoreFault> {
        Ok(self.array::<1>()? != [0])
    }

    /// All remaining bytes.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// All remaining bytes, parsed as text.
    pub(crate) fn parsed<T: std::str::FromStr>(self) -> Result<T, StoreFault> {
        parse(std::str::from_utf8(self.rest).ok(), self.table)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Parses text from the file.
pub(crate) fn parse<T: std::str::FromStr>(
    text: Option<&str>,
    table: &'static str,
) -> Result<T, StoreFault> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| StoreFault::row(table))
}

/// The row of the store's id.
const ID_KEY: &str = "id";

/// The id of the store; `None` before it has one.
pub(crate) fn store_id(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<StoreId>, StoreFault> {
    let row = meta.get(ID_KEY)?;
    row.map(|row| row.value().try_into().map_err(|_| StoreFault::row("meta"))).transpose()
}

/// Gives the store this id unless it has one. Returns whether it had none.
pub(crate) fn put_id(
    meta: &mut Table<'_, &'static str, &'static [u8]>,
    id: StoreId,
) -> Result<bool, StoreFault> {
    let has_none = store_id(meta)?.is_none();
    if has_none {
        meta.insert(ID_KEY, id.as_slice())?;
    }
    Ok(has_none)
}

/// Gives the store another id, so that its journal is not its journal any more.
pub(crate) fn replace_id(
    meta: &mut Table<'_, &'static str, &'static [u8]>,
) -> Result<(), StoreFault> {
    meta.remove(ID_KEY)?;
    give_id(meta)
}

/// Gives the store an id unless it has one.
pub(crate) fn give_id(meta: &mut Table<'_, &'static str, &'static [u8]>) -> Result<(), StoreFault> {
    if store_id(meta)?.is_none() {
        let mut id = StoreId::default();
        getrandom::fill(&mut id).map_err(|error| StoreFault::Io(error.to_string()))?;
        meta.insert(ID_KEY, id.as_slice())?;
    }
    Ok(())
}

/// The row that says whether commits may be in the journal alone.
const JOURNAL_KEY: &str = "journal";

/// Whether commits may be in the journal alone; `None` if an earlier version wrote the store.
pub(crate) fn has_journal(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<bool>, StoreFault> {
    Ok(meta.get(JOURNAL_KEY)?.map(|row| row.value() != [0]))
}

/// Records whether commits may be in the journal alone from now on.
pub(crate) fn set_has_journal(
    meta: &mut Table<'_, &'static str, &'static [u8]>,
    has_journal: bool,
) -> Result<(), StoreFault> {
    meta.insert(JOURNAL_KEY, [u8::from(has_journal)].as_slice())?;
    Ok(())
}

/// The row that records that acknowledged data is lost, until a hub has continued from that.
const INCOMPLETE_KEY: &str = "incomplete";

/// Whether acknowledged data is lost, and no hub has continued from that yet.
pub(crate) fn is_incomplete(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<bool, StoreFault> {
    Ok(meta.get(INCOMPLETE_KEY)?.is_some())
}

/// Records that acknowledged data is lost, or that a hub has continued from that.
pub(crate) fn set_incomplete(
    meta: &mut Table<'_, &'static str, &'static [u8]>,
    is_incomplete: bool,
) -> Result<(), StoreFault> {
    if is_incomplete {
        meta.insert(INCOMPLETE_KEY, [1].as_slice())?;
    } else {
        meta.remove(INCOMPLETE_KEY)?;
    }
    Ok(())
}

/// Counters that never go back, whatever is deleted, and the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoreCounters {
    /// How many transactions there were; shows after a failure whether the last one counts.
    pub(crate) commits: u64,
    pub(crate) next_order: u64,
    pub(crate) next_session: u64,
    pub(crate) next_age: u64,
    /// How many bytes of events are stored.
    pub(crate) event_bytes: u64,
    /// How much time was counted so far. It has a row of its own.
    pub(crate) counted_us: u64,
}

impl StoreCounters {
    pub(crate) const KEY: &'static str = "counters";

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.commits, self.next_order, self.next_session, self.next_age, self.event_bytes]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(bytes, "meta");
        Ok(StoreCounters {
            commits: row.number()?,
            next_order: row.number()?,
            next_session: row.number()?,
            next_age: row.number()?,
            event_bytes: row.number()?,
            counted_us: 0,
        })
    }
}

/// How much of the audit file is known to be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncedAudit {
    /// The number of the file's first entry.
    pub(crate) first_seq: u64,
    /// The number of the last safe entry.
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// Where that entry ends in the file.
    pub(crate) bytes: u64,
}

impl SyncedAudit {
    pub(crate) const KEY: &'static str = "audit";

    /// Before anything was written.
    pub(crate) const NOTHING: SyncedAudit =
        SyncedAudit { first_seq: 1, seq: 0, hash: Hash::ZERO, bytes: 0 };

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(56);
        bytes.extend(self.first_seq.to_le_bytes());
        bytes.extend(self.seq.to_le_bytes());
        bytes.extend(self.hash.0);
        bytes.extend(self.bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(bytes, "meta");
        Ok(SyncedAudit {
            first_seq: row.number()?,
            seq: row.number()?,
            hash: Hash(row.array()?),
            bytes: row.number()?,
        })
    }
}
