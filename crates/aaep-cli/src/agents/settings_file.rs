//! The settings file of an agent: read, replaced as a whole with a copy of the old one beside it, and put back.
//!
//! A link, a file that somebody else owns, or one that changed in between is left alone.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aaep_bridge::{BridgedAgent, settings};
use tempfile::NamedTempFile;

use crate::console::{CommandFailure, name_of};
use crate::english::bridging::{self, LOOK_AT_RIGHTS};

/// The largest settings that are read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A settings file.
#[derive(Debug)]
pub(super) struct SettingsFile {
    agent: BridgedAgent,
    path: PathBuf,
}

impl SettingsFile {
    pub(super) fn new(agent: BridgedAgent, path: PathBuf) -> Self {
        SettingsFile { agent, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The text, or `None` if there is no file.
    pub(super) fn read(&self) -> Result<Option<String>, CommandFailure> {
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CommandFailure::of_file("read", &self.path, &error, LOOK_AT_RIGHTS));
            }
        };
        let left_alone = |why: &str| {
            let what = bridging::left_alone(&name_of(&self.path), &why);
            CommandFailure::new(what, bridging::change_by_hand(self.agent))
        };
        if !found.is_file() {
            return Err(left_alone(bridging::IS_NOT_A_FILE));
        }
        if found.permissions().readonly() {
            return Err(left_alone(bridging::IS_READ_ONLY));
        }
        if found.len() > MAX_BYTES {
            return Err(left_alone(bridging::IS_TOO_LARGE));
        }
        let text = fs::read_to_string(&self.path)
            .map_err(|error| CommandFailure::of_file("read", &self.path, &error, LOOK_AT_RIGHTS))?;
        Ok(Some(text))
    }

    /// Replaces the text, and returns the copy of the old one. Nothing happens if both are the same.
    pub(super) fn replace(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Option<PathBuf>, CommandFailure> {
        if before == after {
            return Ok(None);
        }
        let mut backup = None;
        if fs::symlink_metadata(&self.path).is_ok() {
            let copy = self.backup_path();
            // The first copy is the one from before our first change.
            if !copy.exists() {
                self.write(&copy, before)?;
            }
            backup = Some(copy);
        }
        self.write_unless_changed(before, after)?;
        Ok(backup)
    }

    /// Takes our change away: if nothing else was changed since, the file is to the letter what it was before.
    pub(super) fn restore(&self, before: &str, after: &str) -> Result<(), CommandFailure> {
        let copy = self.backup_path();
        let same = |original: &str| settings::mean_the_same(self.agent, original, after);
        match fs::read_to_string(&copy) {
            Ok(original) => {
                let text = if same(&original) { &original } else { after };
                self.write_unless_changed(before, text)?;
                let _ = fs::remove_file(&copy);
                Ok(())
            }
            // There were no settings before.
            Err(_) if settings::are_empty(self.agent, after) => fs::remove_file(&self.path)
                .map_err(|error| {
                    CommandFailure::of_file("delete", &self.path, &error, LOOK_AT_RIGHTS)
                }),
            Err(_) => self.write_unless_changed(before, after),
        }
    }

    fn backup_path(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".before-aaep");
        self.path.with_file_name(name)
    }

    fn write_unless_changed(&self, before: &str, after: &str) -> Result<(), CommandFailure> {
        if self.read()?.unwrap_or_default() != before {
            return Err(bridging::changed_meanwhile(&name_of(&self.path)).into());
        }
        self.write(&self.path, after)
    }

    /// Writes a file as a whole, with the rights of the settings.
    fn write(&self, path: &Path, text: &str) -> Result<(), CommandFailure> {
        let written = (|| {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut file = NamedTempFile::new_in(folder)?;
            file.write_all(text.as_bytes())?;
            if let Ok(found) = fs::metadata(&self.path) {
                fs::set_permissions(file.path(), found.permissions())?;
            }
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        })();
        written.map_err(|error| CommandFailure::of_file("write", path, &error, LOOK_AT_RIGHTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "{\n\t\"model\":   \"opus\"\n}";
    const AFTER: &str = "{ \"model\": \"opus\", \"hooks\": {} }";

    fn file_with(text: &str) -> (tempfile::TempDir, SettingsFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.json");
        fs::write(&path, text).expect("written");
        (folder, SettingsFile::new(BridgedAgent::ClaudeCode, path))
    }

    #[test]
    fn a_change_that_is_taken_back_leaves_the_file_as_it_was_to_the_letter() {
        let (folder, file) = file_with(BEFORE);
        let copy = file.replace(BEFORE, AFTER).expect("replaced").expect("a copy");
        assert_eq!(fs::read_to_string(&copy).expect("the copy"), BEFORE);
        assert_eq!(file.read().expect("read").as_deref(), Some(AFTER));
        file.restore(AFTER, "{ \"model\": \"opus\" }").expect("restored");
        assert_eq!(file.read().expect("read").as_deref(), Some(BEFORE));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn what_was_changed_since_stays() {
        let (_folder, file) = file_with(BEFORE);
        file.replace(BEFORE, AFTER).expect("replaced");
        let theirs = "{ \"model\": \"haiku\" }";
        file.restore(AFTER, theirs).expect("restored");
        assert_eq!(file.read().expect("read").as_deref(), Some(theirs));
    }

    #[test]
    fn settings_that_did_not_exist_are_gone_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file =
            SettingsFile::new(BridgedAgent::ClaudeCode, folder.path().join("new/settings.json"));
        assert_eq!(file.replace("", AFTER).expect("written"), None);
        file.restore(AFTER, "{}\n").expect("deleted");
        assert_eq!(file.read().expect("no file"), None);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_files_that_changed_are_left_alone() {
        let (folder, file) = file_with(BEFORE);
        assert!(file.replace("{}", AFTER).is_err(), "it is not what was read");
        assert_eq!(file.read().expect("read").as_deref(), Some(BEFORE));
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(file.path(), &link).expect("a link");
        assert!(SettingsFile::new(BridgedAgent::ClaudeCode, link).read().is_err());
        let mut rights = fs::metadata(file.path()).expect("rights").permissions();
        rights.set_readonly(true);
        fs::set_permissions(file.path(), rights).expect("set");
        assert!(file.read().is_err());
    }
}
