//! The folder of the store: its files, their permissions, and the lock.
//!
//! Never changes the permissions of a folder that already existed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use crate::store::OpenError;

/// The database.
pub(crate) const DATABASE: &str = "store.redb";
/// Commits that the database may lack.
pub(crate) const JOURNAL: &str = "store.journal";
/// The audit log.
pub(crate) const AUDIT: &str = "audit.jsonl";
/// The file that is locked while the store is open.
const LOCK: &str = "lock";

/// The folder, locked for this process as long as this value lives.
#[derive(Debug)]
pub(crate) struct LockedFolder {
    lock: File,
}

impl LockedFolder {
    /// Creates the folder if needed, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |error: io::Error| io_error(path, path, &error);
        make_folder(path).map_err(failed)?;
        if is_open_to_others(path).map_err(failed)? {
            return Err(OpenError::OpenToOthers { folder: path.to_owned() });
        }
        let lock_path = path.join(LOCK);
        let lock = create_file(&lock_path).map_err(|error| io_error(path, &lock_path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(LockedFolder { lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { folder: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(io_error(path, &lock_path, &error)),
        }
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // A program that this process is just starting has a copy of the file for a moment. The lock must not
        // outlive the store because of that copy.
        let _ = self.lock.unlock();
    }
}

/// Converts an error about a file of the folder.
pub(crate) fn io_error(folder: &Path, path: &Path, error: &io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            OpenError::Full { folder: folder.to_owned() }
        }
        _ => OpenError::Io { path: path.to_owned(), why: error.to_string() },
    }
}

/// Opens one of our files for reading and writing, or creates it. Other users may not read it.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let is_new = !path.exists();
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    if is_new && let Some(folder) = path.parent() {
        sync_folder(folder)?;
    }
    Ok(file)
}

/// Waits until the names of the folder's files are on disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Only Unix lets a folder be opened as a file.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_ends_with_the_store_even_if_someone_has_a_copy_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = LockedFolder::open(folder.path()).expect("locked");
        // The copy that a program inherits for a moment while it is being started.
        let copy = first.lock.try_clone().expect("a copy");
        let in_use = OpenError::InUse { folder: folder.path().to_owned() };
        assert_eq!(LockedFolder::open(folder.path()).err(), Some(in_use));
        drop(first);
        assert!(LockedFolder::open(folder.path()).is_ok());
        drop(copy);
    }
}
