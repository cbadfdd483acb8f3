//! Everything that can go wrong below the store, before an operation turns it into its own error.
//!
//! redb's own errors end here; nothing of redb is part of the public interface.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::store::{CommitError, ReadError};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum StoreFault {
    /// There is no room on the disk.
    Full,
    /// Another process has the file open.
    InUse,
    /// The disk failed.
    Io(String),
    /// redb shut itself after an earlier failure and must be opened again.
    Latched,
    /// The data that was read is not valid.
    Corrupt(String),
    /// The request itself is refused.
    Refused(CommitError),
}

impl StoreFault {
    /// A row that is not valid.
    pub(crate) fn row(table: &str) -> Self {
        StoreFault::Corrupt(format!("a row of {table} cannot be understood"))
    }
}

/// Runs work that may meet a damaged page. redb trusts its pages and may panic on a damaged one; that must
/// become an error and never take the hub down.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreFault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a page cannot be understood");
        Err(StoreFault::Corrupt(why.to_owned()))
    })
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => StoreFault::Full,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                StoreFault::Corrupt(error.to_string())
            }
            _ => StoreFault::Io(error.to_string()),
        }
    }
}

impl From<redb::Error> for StoreFault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => error.into(),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => StoreFault::Latched,
            redb::Error::DatabaseAlreadyOpen => StoreFault::InUse,
            error => StoreFault::Corrupt(error.to_string()),
        }
    }
}

/// redb has one error type for each operation; all of them convert to `redb::Error`.
macro_rules! from_redb {
    ($($name:ident),+) => {
        $(impl From<redb::$name> for StoreFault {
            fn from(error: redb::$name) -> Self {
                redb::Error::from(error).into()
            }
        })+
    };
}

from_redb!(StorageError, TableError, TransactionError, CommitError, DatabaseError, CompactionError);

impl From<StoreFault> for CommitError {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Full => CommitError::Full,
            StoreFault::InUse => {
                CommitError::Io { why: "another process took the file".to_owned() }
            }
            StoreFault::Io(why) => CommitError::Io { why },
            StoreFault::Latched => CommitError::Io { why: "an earlier write failed".to_owned() },
            StoreFault::Corrupt(why) => CommitError::Corrupt { why },
            StoreFault::Refused(error) => error,
        }
    }
}

impl From<StoreFault> for ReadError {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Corrupt(why) => ReadError::Corrupt { why },
            other => match CommitError::from(other) {
                CommitError::Full => {
                    ReadError::Unavailable { why: "there is no room left on the disk".to_owned() }
                }
                CommitError::Io { why } => ReadError::Unavailable { why },
                other => ReadError::Unavailable { why: other.to_string() },
            },
        }
    }
}
