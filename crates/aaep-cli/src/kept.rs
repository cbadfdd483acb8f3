//! Small files that keep state for one person: replaced as a whole, changed by one program at a time.
//!
//! A file that is broken, or that somebody else could have written, is set aside with a message and never trusted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use crate::console::{self, CommandFailure, name_of};
use crate::english::keeping;
use crate::folders::{make_folder_of, state_folder};

/// The largest file that is read. Our own files are far smaller.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// State that is kept in a file of its own.
pub(crate) trait KeptState:
    Default + Clone + PartialEq + Serialize + DeserializeOwned
{
    /// The name of the file.
    const FILE: &'static str;
    /// The name of the file within a sentence.
    const CALLED: &'static str;
    /// The consequence of setting the file aside, and what to do.
    const WITHOUT_IT: &'static str;

    /// Whether the content is as we would have written it.
    fn is_sound(&self) -> bool;
}

/// A file that keeps one `KeptState`.
#[derive(Debug, Clone)]
pub(crate) struct KeptFile<T> {
    path: PathBuf,
    what: PhantomData<T>,
}

impl<T: KeptState> KeptFile<T> {
    /// The file of the person who runs this program.
    pub(crate) fn own() -> Result<Self, CommandFailure> {
        Ok(KeptFile::at(state_folder()?.join(T::FILE)))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        KeptFile { path, what: PhantomData }
    }

    /// The current content.
    pub(crate) fn look(&self) -> Result<T, CommandFailure> {
        self.change(|kept| kept.clone())
    }

    /// Changes the content under a lock. The change is on the disk when this returns.
    pub(crate) fn change<V>(&self, change: impl FnOnce(&mut T) -> V) -> Result<V, CommandFailure> {
        let _lock = self.lock()?;
        let before = self.read()?;
        let mut kept = before.clone();
        let value = change(&mut kept);
        if kept != before {
            let written = self.write(&kept);
            written.map_err(|error| self.failure("write", &error))?;
        }
        Ok(value)
    }

    /// Waits until no other program changes the file. Changes take milliseconds.
    fn lock(&self) -> Result<File, CommandFailure> {
        let path = self.path.with_extension("lock");
        let failed = |error: &io::Error| {
            CommandFailure::of_file("lock", &path, error, keeping::LOOK_AT_RIGHTS)
        };
        let file = open_lock(&path).map_err(|error| failed(&error))?;
        file.lock().map_err(|error| failed(&error))?;
        Ok(file)
    }

    fn read(&self) -> Result<T, CommandFailure> {
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(self.failure("read", &error)),
        };
        if !is_own(&found) {
            return self.set_aside(keeping::SOMEBODY_ELSE);
        }
        let mut text = Vec::new();
        let read = File::open(&self.path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
        read.map_err(|error| self.failure("read", &error))?;
        match serde_json::from_slice::<T>(&text) {
            Ok(kept) if kept.is_sound() => Ok(kept),
            _ => self.set_aside(keeping::BROKEN),
        }
    }

    /// Starts over with an empty state. Nothing that the person was told from the old one is valid any more.
    fn set_aside(&self, why: &str) -> Result<T, CommandFailure> {
        let aside = self.path.with_extension("json.broken");
        fs::rename(&self.path, &aside).map_err(|error| self.failure("set aside", &error))?;
        console::say(&keeping::set_aside(T::CALLED, why, &name_of(&aside), T::WITHOUT_IT));
        Ok(T::default())
    }

    /// The file could not be read, written or set aside.
    fn failure(&self, verb: &str, error: &io::Error) -> CommandFailure {
        CommandFailure::of_file(verb, &self.path, error, keeping::LOOK_AT_RIGHTS)
    }

    fn write(&self, kept: &T) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

/// Opens a file that exists only to be locked, and creates it if it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    make_folder_of(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether it is a file that only this person can write.
#[cfg(unix)]
fn is_own(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = aaep_transport::local::own_user_id();
    found.is_file() && found.uid() == own && found.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(found: &fs::Metadata) -> bool {
    found.is_file()
}
