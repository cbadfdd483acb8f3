//! What can go wrong with the store, one list for each operation, and what to do about it.
//!
//! The texts are whole sentences that end with the next step. Text from files is made printable.

use std::fmt;
use std::path::PathBuf;

use aaep::printable;

use crate::audit::Broken;

/// Why the store could not be opened. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// Another process, or another store of this one, has the folder open.
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// Other users may write to the folder, so they could put files of their own there.
    OpenToOthers {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder could not be created, read or written.
    Io {
        /// Which.
        path: PathBuf,
        /// The system's message.
        why: String,
    },
    /// There is no room on the disk.
    Full {
        /// The folder.
        folder: PathBuf,
    },
    /// The file is not a store, or it is damaged.
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A later version of this program wrote the store.
    FutureFormat {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The audit log was damaged, or changed by another program.
    AuditBroken {
        /// The file.
        path: PathBuf,
        /// Where and how.
        broken: Broken,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &PathBuf| printable(&path.to_string_lossy()).into_owned();
        match self {
            OpenError::InUse { folder } => write!(
                f,
                "The store in {} is in use by another process. Stop that process, or choose another folder.",
                shown(folder)
            ),
            OpenError::OpenToOthers { folder } => write!(
                f,
                "Others may write to the folder {}. Take that right away, for example with chmod go-w, or choose another folder.",
                shown(folder)
            ),
            OpenError::Io { path, why } => write!(
                f,
                "{} could not be used: {}. Check that it exists and belongs to you, then start again.",
                shown(path),
                printable(why)
            ),
            OpenError::Full { folder } => write!(
                f,
                "There is no room left for the store in {}. Make room on the disk, then start again.",
                shown(folder)
            ),
            OpenError::Corrupt { path, why } => write!(
                f,
                "{} is damaged or is not a store: {}. Nothing was changed. Start the hub, which keeps the file and goes on with what can be read, or restore it from a backup.",
                shown(path),
                printable(why)
            ),
            OpenError::FutureFormat { path, found, known } => write!(
                f,
                "{} was written by a later version: it has format {found}, and this version knows formats up to {known}. Nothing was changed. Use the later version, or choose another folder.",
                shown(path)
            ),
            OpenError::AuditBroken { path, broken } => write!(
                f,
                "The audit log {} cannot be trusted. {broken} Nothing was changed. Start the hub, which keeps the file and begins a new log that records that this one is broken; then find out why.",
                shown(path)
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a commit was not done. Nothing was stored, unless the commit is in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitError {
    /// There is no room on the disk.
    Full,
    /// The disk failed.
    Io {
        /// The system's message.
        why: String,
    },
    /// The store is damaged.
    Corrupt {
        /// What is wrong.
        why: String,
    },
    /// The disk failed in the middle, and the store could not be opened again to find out what was stored.
    InDoubt {
        /// The system's message.
        why: String,
    },
    /// The order of an event is not larger than that of the previous event.
    OutOfOrder {
        /// Its order.
        order: u64,
        /// The smallest order that it may have.
        next_order: u64,
    },
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Full => f.write_str(
                "Nothing was stored, because there is no room left on the disk. What was stored before is still there. Make room, then try again.",
            ),
            CommitError::Io { why } => write!(
                f,
                "Nothing was stored, because the disk failed: {}. Check the disk, then try again.",
                printable(why)
            ),
            CommitError::Corrupt { why } => write!(
                f,
                "Nothing was stored, because the store is damaged: {}. Stop, and restore it from a backup.",
                printable(why)
            ),
            CommitError::InDoubt { why } => write!(
                f,
                "The disk failed, and it is not known yet whether the last changes were stored: {}. Make room or check the disk; the hub goes on when it can read what it stored.",
                printable(why)
            ),
            CommitError::OutOfOrder { order, next_order } => write!(
                f,
                "Nothing was stored, because an event has order {order} where at least {next_order} was due. Number events upwards."
            ),
        }
    }
}

impl std::error::Error for CommitError {}

/// Why a session was not deleted. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteError {
    /// There is no such session.
    NoSuchSession,
    /// The session is running, or one of its asks is open.
    StillRunning,
    /// The deletion could not be stored.
    Commit(CommitError),
}

impl fmt::Display for DeleteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeleteError::NoSuchSession => {
                f.write_str("There is no such session. List the sessions to see their ids.")
            }
            DeleteError::StillRunning => f.write_str(
                "The session is still running, so it was not deleted. Wait until it has ended, then try again.",
            ),
            DeleteError::Commit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DeleteError {}

impl From<CommitError> for DeleteError {
    fn from(error: CommitError) -> Self {
        DeleteError::Commit(error)
    }
}

/// Why stored data could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The disk failed, or is so full that the store could not be opened again.
    Unavailable {
        /// The system's message.
        why: String,
    },
    /// The store is damaged.
    Corrupt {
        /// What is wrong.
        why: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Unavailable { why } => write!(
                f,
                "The store cannot be read for now: {}. Check the disk and the room on it, then try again.",
                printable(why)
            ),
            ReadError::Corrupt { why } => write!(
                f,
                "The store is damaged: {}. Stop, and restore it from a backup.",
                printable(why)
            ),
        }
    }
}

impl std::error::Error for ReadError {}
