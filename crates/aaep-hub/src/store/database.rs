//! The redb database behind the store, opened again when a failed write has shut it.
//!
//! After any failed write redb refuses everything until it is opened anew. That happens here, under
//! a lock that readers hold only while they read, so that a full disk costs nobody what was stored.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableError,
    WriteTransaction,
};

use crate::store::fault::{Fault, guarded};
use crate::store::table::{Counters, META, store_id};
use crate::store::{apply, journal, log, recover};

/// How much memory pages may take.
const CACHE_BYTES: usize = 16 << 20;

/// How the database is opened, the first time and again.
pub(crate) type Opener =
    Box<dyn Fn(&Builder) -> Result<Database, redb::DatabaseError> + Send + Sync>;

/// The open database, shared by the one writer and all readers.
pub(crate) struct Shared {
    opener: Opener,
    /// Where the commits are that the file may lack; none for a store in memory.
    journal: Option<PathBuf>,
    current: RwLock<Current>,
}

struct Current {
    /// None while it could not be opened again.
    database: Option<Database>,
    /// Whether it was closed for good.
    is_closed: bool,
    /// How often it was opened: tells who comes second that it was done already.
    generation: u64,
}

impl Shared {
    /// Opens the database.
    pub(crate) fn open(opener: Opener, journal: Option<PathBuf>) -> Result<Self, Fault> {
        let database = Some(open(&opener, journal.as_deref())?);
        let current = RwLock::new(Current { database, is_closed: false, generation: 0 });
        Ok(Shared { opener, journal, current })
    }

    /// Reads from one moment of the store. Opens it again if a failed write has shut it.
    pub(crate) fn read<T>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (generation, result) = self.read_once(&work);
        match result {
            Err(Fault::Latched) => {
                self.reopen(generation)?;
                self.read_once(&work).1
            }
            result => result,
        }
    }

    fn read_once<T>(
        &self,
        work: &impl Fn(&ReadTransaction) -> Result<T, Fault>,
    ) -> (u64, Result<T, Fault>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &current.database else {
            return (current.generation, Err(Fault::Latched));
        };
        (current.generation, guarded(|| work(&database.begin_read()?)))
    }

    /// Does the work in one transaction, of which the work says whether it has to be durable. After a
    /// failure nobody knows yet whether it counts: see [`Shared::reopen`].
    pub(crate) fn write(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<Durability, Fault>,
    ) -> (u64, Result<Durability, Fault>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &current.database else {
            return (current.generation, Err(Fault::Latched));
        };
        let result = guarded(|| {
            let transaction = database.begin_write()?;
            match work(&transaction) {
                Ok(durability) => {
                    commit(transaction, durability)?;
                    Ok(durability)
                }
                Err(fault) => {
                    drop(transaction);
                    Err(fault)
                }
            }
        });
        (current.generation, result)
    }

    /// Opens the database again, unless someone has done so since this generation.
    pub(crate) fn reopen(&self, generation: u64) -> Result<(), Fault> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.generation != generation {
            return Ok(());
        }
        if current.is_closed {
            return Err(Fault::Io("the store was closed".to_owned()));
        }
        // The old one must let go of the file first.
        drop(current.database.take());
        current.database = Some(open(&self.opener, self.journal.as_deref())?);
        current.generation += 1;
        Ok(())
    }

    /// Closes the database for good, whoever still has a way to read it.
    pub(crate) fn close(&self) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.is_closed = true;
        drop(current.database.take());
    }
}

/// How every database is opened: with little memory.
pub(crate) fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn open(opener: &Opener, journal: Option<&Path>) -> Result<Database, Fault> {
    guarded(|| {
        let database = opener(&builder())?;
        if let Some(journal) = journal {
            catch_up(&database, journal)?;
        }
        Ok(database)
    })
}

/// Takes on what the journal has and the database lacks. In memory only: the journal has it on the disk.
fn catch_up(database: &Database, journal: &Path) -> Result<(), Fault> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let records = journal_of(&meta, journal)?;
    if records.is_empty() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    for (number, content) in records {
        let decoded = journal::decode(&content)?;
        let mut meta = transaction.open_table(META)?;
        let mut counters = recover::counters(&meta)?;
        apply::apply(&transaction, &mut counters, &decoded.changes).map_err(not_fitting)?;
        log::write_lines(&transaction, &decoded.lines)?;
        counters.commits = number;
        meta.insert(Counters::KEY, counters.to_bytes().as_slice())?;
    }
    commit(transaction, Durability::None)
}

/// What the journal has of the commits that the database lacks.
pub(crate) fn journal_of(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    journal: &Path,
) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let commits = recover::counters(meta)?.commits;
    let id = store_id(meta)?;
    id.map_or(Ok(Vec::new()), |id| journal::read(journal, &id, commits))
}

/// What the store once took cannot be refused now.
fn not_fitting(fault: Fault) -> Fault {
    match fault {
        Fault::Refused(error) => Fault::Corrupt(format!("its journal does not fit it: {error}")),
        fault => fault,
    }
}

fn commit(mut transaction: WriteTransaction, durability: Durability) -> Result<(), Fault> {
    // There are no savepoints, which is all that this could fail for.
    let is_set = transaction.set_durability(durability).is_ok();
    debug_assert!(is_set, "without savepoints, any durability will do");
    // Rare and worth two waits for the disk: many commits depend on it.
    transaction.set_two_phase_commit(true);
    Ok(transaction.commit()?)
}
