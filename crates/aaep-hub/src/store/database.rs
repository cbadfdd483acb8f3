//! The redb database behind the store, opened again when a failed write has shut it.
//!
//! After any failed write redb refuses everything until it is opened anew. That happens here, under
//! a lock that readers hold only while they read, so that a full disk costs nobody what was stored.

use std::sync::{PoisonError, RwLock};

use redb::{Builder, Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::store::fault::{Fault, guarded};

/// How much memory pages may take.
const CACHE_BYTES: usize = 16 << 20;

/// How the database is opened, the first time and again.
pub(crate) type Opener =
    Box<dyn Fn(&Builder) -> Result<Database, redb::DatabaseError> + Send + Sync>;

/// The open database, shared by the one writer and all readers.
pub(crate) struct Shared {
    opener: Opener,
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
    pub(crate) fn open(opener: Opener) -> Result<Self, Fault> {
        let database = open(&opener)?;
        let current =
            RwLock::new(Current { database: Some(database), is_closed: false, generation: 0 });
        Ok(Shared { opener, current })
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

    /// Does the work in one durable transaction. After a failure nobody knows yet whether it counts:
    /// see [`Shared::reopen`].
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Fault>,
    ) -> (u64, Result<T, Fault>) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(database) = &current.database else {
            return (current.generation, Err(Fault::Latched));
        };
        let result = guarded(|| {
            let transaction = database.begin_write()?;
            match work(&transaction) {
                Ok(done) => {
                    transaction.commit()?;
                    Ok(done)
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
        current.database = Some(open(&self.opener)?);
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

fn open(opener: &Opener) -> Result<Database, Fault> {
    guarded(|| Ok(opener(&builder())?))
}
