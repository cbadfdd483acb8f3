//! Small files that keep something for one person alone: replaced whole, changed by one program at a time.
//!
//! What is broken, or what somebody else could have written, is set aside with a word and never believed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use crate::console::{self, Failure, name_of};
use crate::serve::state_folder;

/// The largest file that is read. Ours never come near it.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

const NEXT: &str = "Look at the rights of its folder.";

/// Something that is kept in a file of its own.
pub(crate) trait Kept: Default + Clone + PartialEq + Serialize + DeserializeOwned {
    /// The name of the file.
    const FILE: &'static str;
    /// What the file is called in a sentence.
    const CALLED: &'static str;
    /// What follows from it when it is set aside, and what to do.
    const WITHOUT_IT: &'static str;

    /// Whether it is as we write it.
    fn is_sound(&self) -> bool;
}

/// Where it is kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptFile<T> {
    path: PathBuf,
    what: PhantomData<T>,
}

impl<T: Kept> KeptFile<T> {
    /// The file of the person who runs this program.
    pub(crate) fn own() -> Result<Self, Failure> {
        Ok(KeptFile::at(state_folder()?.join(T::FILE)))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        KeptFile { path, what: PhantomData }
    }

    /// What is kept, as it is.
    pub(crate) fn look(&self) -> Result<T, Failure> {
        self.change(|kept| kept.clone())
    }

    /// Changes it, alone. What was changed is on the disk when this comes back.
    pub(crate) fn change<V>(&self, change: impl FnOnce(&mut T) -> V) -> Result<V, Failure> {
        let _lock = self.lock()?;
        let before = self.read()?;
        let mut kept = before.clone();
        let value = change(&mut kept);
        if kept != before {
            let written = self.write(&kept);
            written.map_err(|error| Failure::of_file("write", &self.path, &error, NEXT))?;
        }
        Ok(value)
    }

    /// Waits until no other program changes it. It changes within milliseconds.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.path.with_extension("lock");
        let failed = |error: &io::Error| Failure::of_file("lock", &path, error, NEXT);
        let file = open_lock(&path).map_err(|error| failed(&error))?;
        file.lock().map_err(|error| failed(&error))?;
        Ok(file)
    }

    fn read(&self) -> Result<T, Failure> {
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(Failure::of_file("read", &self.path, &error, NEXT)),
        };
        if !is_own(&found) {
            return self.set_aside("somebody else could have written it");
        }
        let mut text = Vec::new();
        let read = File::open(&self.path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
        read.map_err(|error| Failure::of_file("read", &self.path, &error, NEXT))?;
        match serde_json::from_slice::<T>(&text) {
            Ok(kept) if kept.is_sound() => Ok(kept),
            _ => self.set_aside("it is broken"),
        }
    }

    /// Begins anew. What the person was told by it stands for nothing from now on.
    fn set_aside(&self, why: &str) -> Result<T, Failure> {
        let aside = self.path.with_extension("json.broken");
        fs::rename(&self.path, &aside)
            .map_err(|error| Failure::of_file("set aside", &self.path, &error, NEXT))?;
        console::say(&format!(
            "{} is not used, because {why}. It is now {}. {}",
            T::CALLED,
            name_of(&aside),
            T::WITHOUT_IT
        ));
        Ok(T::default())
    }

    fn write(&self, kept: &T) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

/// Opens a file that is only there to be locked, and makes it where it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether it is a file that nobody but this person can write.
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

/// Makes the folder for its owner alone. One that is there stays as it is.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
