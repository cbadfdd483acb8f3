//! The redb database behind the store, reopened when a failed write has shut it.
//!
//! After any failed write redb refuses everything until it is opened again. That happens here, under a lock
//! that readers hold only while they read, so that a full disk never makes stored data unreadable.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableError,
    WriteTransaction,
};

use crate::store::event_ids::NewestIds;
use crate::store::fault::{StoreFault, guarded};
use crate::store::folder::create_file;
use crate::store::journal::{JournalContents, JournalEnd};
use crate::store::table::{META, StoreCounters, has_journal, store_id};
use crate::store::{apply, journal, log, recover, spare};

/// How much memory cached pages may take.
const CACHE_BYTES: usize = 16 << 20;

/// Opens the database, the first time and again.
pub(crate) type DatabaseOpener =
    Box<dyn Fn(&Builder) -> Result<Database, redb::DatabaseError> + Send + Sync>;

/// The open database, shared by the single writer and all readers.
pub(crate) struct SharedDatabase {
    opener: DatabaseOpener,
    /// The journal, which has commits that the file may lack; `None` for a store in memory.
    journal: Option<PathBuf>,
    current: RwLock<OpenDatabase>,
}

struct OpenDatabase {
    /// `None` if it could not be opened again.
    database: Option<Database>,
    /// Whether it was closed for good.
    is_closed: bool,
    /// How often it was opened, so that the second thread that wants to reopen it sees that this was done.
    generation: u64,
}

impl SharedDatabase {
    /// Opens the database for the first time, and applies the journal. Also returns what was lost, if anything.
    pub(crate) fn open(
        opener: DatabaseOpener,
        journal: Option<PathBuf>,
    ) -> Result<(Self, Option<String>), StoreFault> {
        let (database, lost) = guarded(|| {
            let database = opener(&builder())?;
            let lost = match &journal {
                Some(path) => catch_up_or_set_aside(&database, path)?,
                None => None,
            };
            Ok((database, lost))
        })?;
        let database = Some(database);
        let current = RwLock::new(OpenDatabase { database, is_closed: false, generation: 0 });
        Ok((SharedDatabase { opener, journal, current }, lost))
    }

    /// Reads from one snapshot of the store. Reopens the database if a failed write has shut it.
    pub(crate) fn read<T>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        let (generation, result) = self.read_once(&work);
        match result {
            Err(StoreFault::Latched) => {
                self.reopen(generation)?;
                self.read_once(&work).1
            }
            result => result,
        }
    }

    fn read_once<T>(
        &self,
        work: &impl Fn(&ReadTransaction) -> Result<T, StoreFault>,
    ) -> (u64, Result<T, StoreFault>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &current.database else {
            return (current.generation, Err(StoreFault::Latched));
        };
        (current.generation, guarded(|| work(&database.begin_read()?)))
    }

    /// Does the work in one transaction; the work decides whether it has to be durable. After a failure it is
    /// unknown whether the transaction counts: see [`SharedDatabase::reopen`].
    pub(crate) fn write(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<Durability, StoreFault>,
    ) -> (u64, Result<Durability, StoreFault>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &current.database else {
            return (current.generation, Err(StoreFault::Latched));
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

    /// Opens the database again, unless another thread has done so since this generation.
    pub(crate) fn reopen(&self, generation: u64) -> Result<(), StoreFault> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.generation != generation {
            return Ok(());
        }
        if current.is_closed {
            return Err(StoreFault::Io("the store was closed".to_owned()));
        }
        // The old one must release the file first. It may want to write, and the disk has failed.
        let former = current.database.take();
        let _ = guarded(|| {
            drop(former);
            Ok(())
        });
        let reopened = match open(&self.opener, self.journal.as_deref()) {
            Err(StoreFault::Full) if self.release_spare_room() => {
                let reopened = open(&self.opener, self.journal.as_deref());
                // Opening took a little of the room; reserve the rest again before other programs take it.
                if let Some(folder) = self.folder() {
                    spare::keep(folder);
                }
                reopened
            }
            reopened => reopened,
        };
        current.database = Some(reopened?);
        current.generation += 1;
        Ok(())
    }

    /// Makes the file as short as its content allows. This takes as long as rewriting the file. Call it only
    /// when the journal has nothing that the database lacks.
    pub(crate) fn compact(&self) -> Result<(), StoreFault> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &mut current.database else { return Err(StoreFault::Latched) };
        guarded(|| Ok(database.compact().map(drop)?))
    }

    /// The folder of the store; `None` for a store in memory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.journal.as_deref().and_then(Path::parent)
    }

    /// Releases the room that is reserved for a full disk. Returns whether there was any.
    pub(crate) fn release_spare_room(&self) -> bool {
        self.folder().is_some_and(spare::release)
    }

    /// Closes the database for good, even if there are still readers.
    pub(crate) fn close(&self) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.is_closed = true;
        drop(current.database.take());
    }
}

/// The settings for every database: a small cache.
pub(crate) fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn open(opener: &DatabaseOpener, journal: Option<&Path>) -> Result<Database, StoreFault> {
    guarded(|| {
        let database = opener(&builder())?;
        if let Some(journal) = journal {
            catch_up(&database, journal)?;
        }
        Ok(database)
    })
}

/// At a start: applies the intact part of the journal. Sets the rest aside, and returns what that means.
fn catch_up_or_set_aside(database: &Database, path: &Path) -> Result<Option<String>, StoreFault> {
    let Some(found) = journal_in(database, path)? else { return Ok(None) };
    let (end, commits) = (found.end, found.records.len());
    let lost = match end {
        JournalEnd::Whole => None,
        JournalEnd::Cut => {
            tracing::info!("A power cut tore the last commit. It was not acknowledged to anyone.");
            None
        }
        JournalEnd::Missing => Some(
            "The journal of the store is missing, though the hub was not stopped in order. What was stored \
             in the last minute before that may be lost. All open questions end without consent."
                .to_owned(),
        ),
        JournalEnd::Unreadable => {
            let name = damaged_name(path)?;
            std::fs::rename(path, path.with_file_name(&name))?;
            Some(format!(
                "The journal of the store cannot be read and was kept as {name}. What was stored in the last minute \
                 before the hub stopped may be lost. All open questions end without consent."
            ))
        }
        JournalEnd::Damaged { at } => {
            let name = set_aside(path)?;
            Some(format!(
                "The journal of the store is damaged after {commits} commits. A copy was kept as {name}; what \
                 was stored after that is lost. All open questions end without consent."
            ))
            .inspect(|_| tracing::debug!(at, "The journal is damaged from here on."))
        }
    };
    apply_journal(database, found, Durability::None)?;
    if let JournalEnd::Damaged { at } = end {
        journal::zero_from(path, at)?;
    }
    Ok(lost)
}

/// How many damaged journals are kept. If there are more, something else is wrong.
const MAX_DAMAGED_JOURNALS: u32 = 1000;

/// Keeps a copy of a damaged journal under a new name, and returns that name.
fn set_aside(path: &Path) -> Result<String, StoreFault> {
    let name = damaged_name(path)?;
    let mut copy = create_file(&path.with_file_name(&name))?;
    std::io::copy(&mut std::fs::File::open(path)?, &mut copy)?;
    copy.sync_all()?;
    Ok(name)
}

/// An unused name for a damaged journal.
fn damaged_name(path: &Path) -> Result<String, StoreFault> {
    (1..=MAX_DAMAGED_JOURNALS)
        .map(|number| format!("journal-damaged-{number}"))
        .find(|name| !path.with_file_name(name).exists())
        .ok_or_else(|| StoreFault::Io("there are too many damaged journals".to_owned()))
}

/// Applies the commits that the database lacks. In memory only: the journal has them on disk.
fn catch_up(database: &Database, journal: &Path) -> Result<(), StoreFault> {
    let Some(found) = journal_in(database, journal)? else { return Ok(()) };
    if !matches!(found.end, JournalEnd::Whole | JournalEnd::Cut) {
        return Err(StoreFault::Corrupt("its journal was damaged while it was open".to_owned()));
    }
    apply_journal(database, found, Durability::None)
}

fn journal_in(database: &Database, journal: &Path) -> Result<Option<JournalContents>, StoreFault> {
    let transaction = database.begin_read()?;
    match transaction.open_table(META) {
        Ok(meta) => journal_of(&meta, journal).map(Some),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Applies the commits of a journal in one transaction.
pub(crate) fn apply_journal(
    database: &Database,
    found: JournalContents,
    durability: Durability,
) -> Result<(), StoreFault> {
    if found.records.is_empty() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    let mut newest = NewestIds::default();
    for (number, content) in found.records {
        let decoded = journal::decode(&content)?;
        let mut meta = transaction.open_table(META)?;
        let mut counters = recover::counters(&meta)?;
        apply::apply(&transaction, &mut counters, &mut newest, &decoded.changes)
            .map_err(as_damage)?;
        log::write_lines(&transaction, &mut meta, &decoded.lines)?;
        counters.commits = number;
        meta.insert(StoreCounters::KEY, counters.to_bytes().as_slice())?;
    }
    commit(transaction, durability)
}

/// The commits in the journal that the database lacks.
pub(crate) fn journal_of(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    journal: &Path,
) -> Result<JournalContents, StoreFault> {
    let commits = recover::counters(meta)?.commits;
    match store_id(meta)? {
        Some(id) => Ok(journal::read(journal, &id, commits, has_journal(meta)?)),
        None => Ok(JournalContents { records: Vec::new(), end: JournalEnd::Whole }),
    }
}

/// A commit that the store once accepted cannot be refused now, so this is damage.
fn as_damage(fault: StoreFault) -> StoreFault {
    match fault {
        StoreFault::Refused(error) => {
            StoreFault::Corrupt(format!("its journal does not fit it: {error}"))
        }
        fault => fault,
    }
}

fn commit(mut transaction: WriteTransaction, durability: Durability) -> Result<(), StoreFault> {
    // This can only fail if there are savepoints, and there are none.
    let is_set = transaction.set_durability(durability).is_ok();
    debug_assert!(is_set, "without savepoints, any durability will do");
    // This is rare and worth two waits for the disk, because many commits depend on it.
    transaction.set_two_phase_commit(true);
    Ok(transaction.commit()?)
}
