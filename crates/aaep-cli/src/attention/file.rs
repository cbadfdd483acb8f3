//! The file that keeps the numbers: for one person alone, replaced whole, changed by one program at a time.
//!
//! What is broken, or what somebody else could have written, is set aside with a word and never believed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::numbers::Numbers;
use crate::console::{self, Failure, name_of};
use crate::serve::state_folder;

/// The largest file that is read. Ours never comes near it.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

const NEXT: &str = "Look at the rights of its folder.";

/// Where the numbers are kept.
#[derive(Debug, Clone)]
pub(crate) struct NumbersFile {
    path: PathBuf,
}

impl NumbersFile {
    /// The file of the person who runs this program.
    pub(crate) fn own() -> Result<Self, Failure> {
        Ok(NumbersFile { path: state_folder()?.join("questions.json") })
    }

    #[cfg(test)]
    fn at(path: PathBuf) -> Self {
        NumbersFile { path }
    }

    /// The numbers as they are.
    pub(crate) fn look(&self) -> Result<Numbers, Failure> {
        self.change(|numbers| numbers.clone())
    }

    /// Changes the numbers, alone. What was changed is on the disk when this comes back.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Numbers) -> T) -> Result<T, Failure> {
        let _lock = self.lock()?;
        let before = self.read()?;
        let mut numbers = before.clone();
        let value = change(&mut numbers);
        if numbers != before {
            let written = self.write(&numbers);
            written.map_err(|error| Failure::of_file("write", &self.path, &error, NEXT))?;
        }
        Ok(value)
    }

    /// Waits until no other program changes the numbers. They change within milliseconds.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.path.with_extension("lock");
        let failed = |error: &io::Error| Failure::of_file("lock", &path, error, NEXT);
        if let Some(folder) = path.parent() {
            make_folder(folder).map_err(|error| failed(&error))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| failed(&error))?;
        file.lock().map_err(|error| failed(&error))?;
        Ok(file)
    }

    fn read(&self) -> Result<Numbers, Failure> {
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Numbers::default()),
            Err(error) => return Err(Failure::of_file("read", &self.path, &error, NEXT)),
        };
        if !is_own(&found) {
            return self.set_aside("somebody else could have written it");
        }
        let mut text = Vec::new();
        let read = File::open(&self.path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
        read.map_err(|error| Failure::of_file("read", &self.path, &error, NEXT))?;
        match serde_json::from_slice::<Numbers>(&text) {
            Ok(numbers) if numbers.is_sound() => Ok(numbers),
            _ => self.set_aside("it is broken"),
        }
    }

    /// Begins anew. The numbers that the person has heard stand for nothing from now on, so that nothing
    /// is answered by mistake.
    fn set_aside(&self, why: &str) -> Result<Numbers, Failure> {
        let aside = self.path.with_extension("json.broken");
        fs::rename(&self.path, &aside)
            .map_err(|error| Failure::of_file("set aside", &self.path, &error, NEXT))?;
        console::say(&format!(
            "The file of your question numbers is not used, because {why}. It is now {}. \
             Numbers begin anew: run aaep attention before you answer.",
            name_of(&aside)
        ));
        Ok(Numbers::default())
    }

    fn write(&self, numbers: &Numbers) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(numbers)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
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

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::asked;

    fn give(file: &NumbersFile, token: &str) -> Option<u8> {
        let asked = asked(token, &json!({}));
        file.change(|numbers| numbers.give(1_790_000_000, "unix:", &asked)).expect("changed")
    }

    #[test]
    fn numbers_are_kept_from_one_run_to_the_next_for_one_person_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/questions.json");
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_a"), Some(1));
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_b"), Some(2));
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_a"), Some(1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn two_programs_at_once_never_give_one_number_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let give_ten = |name: &'static str| {
            let file = NumbersFile::at(path.clone());
            move || (0..10).filter_map(|at| give(&file, &format!("rpl_{name}{at}"))).collect()
        };
        let threads: Vec<thread::JoinHandle<Vec<u8>>> =
            ["a", "b", "c", "d"].map(|name| thread::spawn(give_ten(name))).into_iter().collect();
        let mut given: Vec<u8> =
            threads.into_iter().flat_map(|it| it.join().expect("no panic")).collect();
        given.sort_unstable();
        assert_eq!(given, (1..=40).collect::<Vec<u8>>());
    }

    #[test]
    fn a_broken_file_is_set_aside_and_never_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let file = NumbersFile::at(path.clone());
        give(&file, "rpl_a");
        let whole = fs::read_to_string(&path).expect("text");
        for broken in ["", "{", "[]", &whole[..whole.len() / 2], &whole.replace("rpl_a", "../x")] {
            fs::write(&path, broken).expect("written");
            assert_eq!(file.look().expect("numbers"), Numbers::default(), "{broken}");
            let aside = folder.path().join("questions.json.broken");
            assert_eq!(fs::read_to_string(aside).expect("set aside"), broken);
            assert!(!path.exists());
        }
        assert_eq!(give(&file, "rpl_b"), Some(1));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_or_that_is_a_link_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let file = NumbersFile::at(path.clone());
        give(&file, "rpl_a");
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(&path, open).expect("permissions");
        assert_eq!(file.look().expect("numbers"), Numbers::default());
        give(&file, "rpl_a");
        let elsewhere = folder.path().join("elsewhere.json");
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("a link");
        assert_eq!(file.look().expect("numbers"), Numbers::default());
        assert!(elsewhere.exists(), "what the link names stays as it is");
    }
}
