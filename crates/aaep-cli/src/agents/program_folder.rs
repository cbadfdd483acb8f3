//! The hooks of an agent that runs programs by their names from one folder. A program that is not ours is left alone.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aaep_bridge::{BridgedAgent, settings};
use tempfile::NamedTempFile;

use crate::console::{CommandFailure, name_of};
use crate::english::bridging::{self, LOOK_AT_RIGHTS};

/// The largest program that is compared with ours.
const MAX_BYTES: u64 = 64 * 1024;

/// A folder of programs.
#[derive(Debug)]
pub(super) struct ProgramFolder {
    agent: BridgedAgent,
    folder: PathBuf,
}

impl ProgramFolder {
    pub(super) fn new(agent: BridgedAgent, folder: PathBuf) -> Self {
        ProgramFolder { agent, folder }
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// The text of a program, or `None` if there is none. Fails if it is not ours.
    fn read(&self, name: &str) -> Result<Option<String>, CommandFailure> {
        let path = self.folder.join(name);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CommandFailure::of_file("read", &path, &error, LOOK_AT_RIGHTS));
            }
        };
        let is_readable = found.is_file() && found.len() <= MAX_BYTES;
        let text = is_readable.then(|| fs::read_to_string(&path).unwrap_or_default());
        let ours = text.filter(|it| settings::is_ours(self.agent, it));
        ours.map(Some).ok_or_else(|| bridging::is_taken(self.agent, &name_of(&path)).into())
    }

    /// Which of these programs are there, as they are here.
    pub(super) fn has_all(&self, programs: &[(&str, String)]) -> bool {
        let is_there = |(name, text): &(&str, String)| {
            self.read(name).is_ok_and(|found| found.as_ref() == Some(text))
        };
        programs.iter().all(is_there)
    }

    /// Whether any of these programs is there and ours.
    pub(super) fn has_any(&self, programs: &[(&str, String)]) -> bool {
        programs.iter().any(|(name, _)| self.read(name).is_ok_and(|it| it.is_some()))
    }

    /// Writes the programs. Nothing is written if one of them is not ours.
    pub(super) fn write(&self, programs: &[(&str, String)]) -> Result<(), CommandFailure> {
        for (name, _) in programs {
            self.read(name)?;
        }
        for (name, text) in programs {
            let path = self.folder.join(name);
            self.write_one(&path, text)
                .map_err(|error| CommandFailure::of_file("write", &path, &error, LOOK_AT_RIGHTS))?;
        }
        Ok(())
    }

    fn write_one(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755))?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Deletes our programs, and returns whether there were any.
    pub(super) fn delete(&self, programs: &[(&str, String)]) -> Result<bool, CommandFailure> {
        let mut was_there = false;
        for (name, _) in programs {
            // A program of somebody else stays.
            if self.read(name).is_ok_and(|it| it.is_some()) {
                let path = self.folder.join(name);
                fs::remove_file(&path).map_err(|error| {
                    CommandFailure::of_file("delete", &path, &error, LOOK_AT_RIGHTS)
                })?;
                was_there = true;
            }
        }
        // If others are in it, it stays.
        let _ = fs::remove_dir(&self.folder);
        Ok(was_there)
    }
}
