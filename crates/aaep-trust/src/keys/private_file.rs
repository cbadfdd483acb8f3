//! Files that only their owner may read: checked before reading, written completely or not at all.
//!
//! A file that others can read is refused with the command that closes it, never repaired silently: its owner
//! must learn that its content may be known. On systems without Unix permissions only the atomic writing is
//! guaranteed.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Why a private file or folder cannot be used.
#[derive(Debug)]
pub enum PrivateFileError {
    /// Others than the owner can read or change it.
    OpenToOthers {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The permissions that it should have.
        wanted: u32,
    },
    /// It is larger than anything that belongs there.
    TooLarge(PathBuf),
    /// It is a link or something other than a plain file.
    NotAFile(PathBuf),
    /// The operating system does not allow it.
    System {
        /// The operation that failed.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
}

impl fmt::Display for PrivateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivateFileError::OpenToOthers { path, mode, wanted } => {
                let name = name_of(path);
                let for_shell = name.replace('\'', "'\\''");
                write!(
                    f,
                    "{name} can be used by others than its owner, its mode is {mode:o}. \
                     Close it with: chmod {wanted:o} '{for_shell}'. If others may have read a key \
                     there, make a new one with: aaep keys new"
                )
            }
            PrivateFileError::TooLarge(path) => write!(
                f,
                "{} is larger than it can be. Look what it is, and put the right file back from a copy",
                name_of(path)
            ),
            PrivateFileError::NotAFile(path) => write!(
                f,
                "{} is not a plain file. Look what it is, and put the file itself there",
                name_of(path)
            ),
            PrivateFileError::System { verb, path, error } => write!(
                f,
                "cannot {verb} {}: {}. Check that the folder is yours and has room",
                name_of(path),
                reason(error)
            ),
        }
    }
}

impl std::error::Error for PrivateFileError {}

fn name_of(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}

/// A system error in words, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn system(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrivateFileError {
    let path = path.to_owned();
    move |error| PrivateFileError::System { verb, path, error }
}

/// Creates a folder for its owner alone, with its parent folders, unless it exists.
pub(crate) fn make_folder(path: &Path) -> Result<(), PrivateFileError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(system("make", path))
}

/// Refuses a folder that others can read. A missing folder is accepted.
pub(crate) fn check_folder(path: &Path) -> Result<(), PrivateFileError> {
    match fs::metadata(path) {
        Ok(metadata) => check_mode(path, &metadata, 0o700),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(system("look at", path)(error)),
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &fs::Metadata, wanted: u32) -> Result<(), PrivateFileError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o7777;
    let for_others = mode & 0o077;
    if for_others == 0 {
        return Ok(());
    }
    Err(PrivateFileError::OpenToOthers { path: path.to_owned(), mode, wanted })
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &fs::Metadata, _: u32) -> Result<(), PrivateFileError> {
    Ok(())
}

/// Reads a private file; `None` if it does not exist.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(PrivateFileError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(system("look at", path)(error)),
    }
    let file = File::open(path).map_err(system("read", path))?;
    // Checks the open file, so that it cannot be replaced in between.
    check_mode(path, &file.metadata().map_err(system("look at", path))?, 0o600)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(system("read", path))?;
    if bytes.len() as u64 > max_bytes {
        return Err(PrivateFileError::TooLarge(path.to_owned()));
    }
    Ok(Some(bytes))
}

/// Writes a private file atomically: after a crash or on a full disk there is the old file or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PrivateFileError> {
    let beside = beside(path);
    // A leftover of an earlier crash is worthless.
    let _ = fs::remove_file(&beside);
    let written = create(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(system("write", path)(error));
    }
    sync_folder(path)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<(), PrivateFileError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(system("write", path))
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<(), PrivateFileError> {
    Ok(())
}

/// Removes a file. A missing file is not an error.
pub(crate) fn remove(path: &Path) -> Result<(), PrivateFileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(system("remove", path)(error)),
        _ => sync_folder(path),
    }
}

/// Takes a lock, which is held as long as the file lives; `None` if another process has it.
pub(crate) fn lock(path: &Path) -> Result<Option<File>, PrivateFileError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(system("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(system("lock", path)(error)),
    }
}
