//! Which sessions of an agent are told by `aaep follow`, so that its hooks do not tell them a second time.
//!
//! A lock says that the program lives; the system lets it go when the program ends, however it ends. Then the hooks
//! tell everything again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::console::CommandFailure;
use crate::english::{bridging, following};
use crate::folders::{make_folder_of, state_folder};

/// The largest list that is read.
const MAX_LIST_BYTES: u64 = 64 * 1024;

/// The list of the sessions that are followed. Held as long as this program follows the agent.
#[derive(Debug)]
pub(super) struct FollowedSessions {
    _lock: File,
    list: PathBuf,
    written: Vec<String>,
}

impl FollowedSessions {
    /// Claims an agent. Only one program can follow it at a time.
    pub(super) fn claim(name: &str, called: &str) -> Result<Self, CommandFailure> {
        let (lock, list) = places(&state_folder()?, name);
        let cannot = |error: io::Error| {
            CommandFailure::of_file("write", &lock, &error, bridging::LOOK_AT_RIGHTS)
        };
        make_folder_of(&lock).map_err(cannot)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(following::is_followed_already(called).into());
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let mut sessions = FollowedSessions { _lock: file, list, written: vec![String::new()] };
        sessions.write(Vec::new());
        Ok(sessions)
    }

    /// Writes the list if it changed. A list that cannot be written makes the hooks tell these sessions as well.
    pub(super) fn write(&mut self, sessions: Vec<String>) {
        if sessions == self.written {
            return;
        }
        let write = || -> io::Result<()> {
            let folder = self.list.parent().ok_or(io::ErrorKind::NotFound)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            let plain = sessions.iter().filter(|it| !it.contains(char::is_control));
            for session in plain {
                writeln!(file, "{session}")?;
            }
            file.persist(&self.list)?;
            Ok(())
        };
        if write().is_ok() {
            self.written = sessions;
        } else {
            // What is written there is no longer true.
            let _ = fs::remove_file(&self.list);
        }
    }
}

/// Whether a session of an agent is told by a program that follows it.
pub(crate) fn is_followed(name: &str, session: &str) -> bool {
    state_folder().is_ok_and(|folder| is_followed_in(&folder, name, session))
}

fn is_followed_in(folder: &Path, name: &str, session: &str) -> bool {
    let (lock, list) = places(folder, name);
    let Ok(file) = File::open(lock) else { return false };
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return false;
    }
    let mut text = String::new();
    let read = File::open(list).and_then(|it| it.take(MAX_LIST_BYTES).read_to_string(&mut text));
    read.is_ok() && !session.is_empty() && text.lines().any(|it| it == session)
}

/// The lock and the list.
fn places(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let folder = folder.join("followed");
    (folder.join(format!("{name}.lock")), folder.join(format!("{name}.txt")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_followed_only_while_a_program_follows_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (lock, list) = places(folder.path(), "codex");
        let is_followed = |session: &str| is_followed_in(folder.path(), "codex", session);
        assert!(!is_followed("t1"), "nothing is there");
        make_folder_of(&lock).expect("a folder");
        let file = File::create(&lock).expect("a file");
        file.try_lock().expect("a lock");
        let mut sessions = FollowedSessions { _lock: file, list, written: Vec::new() };
        sessions.write(vec!["t1".to_owned(), "t2\nt3".to_owned()]);
        assert!(is_followed("t1"));
        for other in ["t", "t3", "", "t1\n"] {
            assert!(!is_followed(other), "{other}");
        }
        sessions.write(vec!["t4".to_owned()]);
        assert!(is_followed("t4") && !is_followed("t1"));
        drop(sessions);
        assert!(!is_followed("t4"), "the list stays, and nobody follows");
    }
}
