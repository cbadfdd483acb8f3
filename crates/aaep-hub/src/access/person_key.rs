//! The person's key: the secret that the person's own programs have and agents lack (ruling 37).
//!
//! It is in a file that only its user can read, made when the hub first starts. A program that presents it
//! acts for the person. Other programs of the same user could read it, as `docs/security.md` explains;
//! programs of other users cannot.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::access::token::TokenHash;

/// The name of the file, which is in the same folder as the token file.
pub const PERSON_KEY_FILE: &str = "person.key";

/// The start of every such key, so that people and hubs can tell it from a token. A hub that does not know a
/// person's key treats its sender as a local program without a credential.
pub(crate) const PERSON_KEY_PREFIX: &str = "aaep-person_";

/// The number of characters after the prefix.
const KEY_CHARS: usize = 43;

/// How much of the file is read: more than any key has.
const MAX_BYTES: u64 = 1024;

/// The hash of the key, for comparison. The secret itself is not kept.
#[derive(Clone, Copy)]
pub struct PersonKey(TokenHash);

impl std::fmt::Debug for PersonKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PersonKey([redacted])")
    }
}

impl PersonKey {
    /// The path of the key that belongs to this token file.
    pub fn path_beside(tokens: &Path) -> PathBuf {
        tokens.with_file_name(PERSON_KEY_FILE)
    }

    /// Reads the key, and makes one first if there is none. If none can be made, for example because the
    /// folder cannot be written, it logs a warning and returns `None`: then nobody can act as the person.
    pub fn load_or_make(path: &Path) -> io::Result<Option<Self>> {
        let secret = match read_person_key(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
            read => return read.map(|secret| Some(PersonKey(TokenHash::of(&secret)))),
        };
        match secret {
            Ok(secret) => Ok(Some(PersonKey(TokenHash::of(&secret)))),
            Err(error) => {
                let path = path.display().to_string();
                tracing::warn!(
                    path = %aaep::printable(&path), %error,
                    "No key for the person could be made. Until there is one, only tokens and \
                     allowed programs answer."
                );
                Ok(None)
            }
        }
    }

    /// Whether this credential is the key.
    pub(crate) fn is(&self, credential: &str) -> bool {
        self.0.is(&TokenHash::of(credential))
    }
}

/// Reads the key from a file, for the person's own programs. Refuses a file that other users can read or
/// change.
pub fn read_person_key(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if is_open_to_others(&file.metadata()?) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users can read or change it; delete it, and the hub makes a new one when it starts",
        ));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    let key = text.trim();
    if !is_person_key(key) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a key; delete it, and the hub makes a new one when it starts",
        ));
    }
    Ok(key.to_owned())
}

/// Makes a key. If another program makes one at the same moment, the first one counts.
fn make(path: &Path) -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("the system gave no randomness"))?;
    let secret = format!("{PERSON_KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    // Written whole under another name first: no program reads half a key, and a full disk leaves none behind.
    let new = path.with_extension(format!("new-{}", URL_SAFE_NO_PAD.encode(&bytes[..6])));
    let written = write_new(&new, &secret).and_then(|()| put_in_place(&new, path));
    let _ = std::fs::remove_file(&new);
    match written {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_person_key(path),
        Err(error) => Err(error),
    }
}

fn write_new(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

/// Gives a file its name, unless another file has it. Where the disk knows no links, the last program wins.
fn put_in_place(new: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(new, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(new, path),
        linked => linked,
    }
}

/// Whether a text has the form of a person's key, of this hub or another.
pub fn is_person_key(text: &str) -> bool {
    text.strip_prefix(PERSON_KEY_PREFIX).is_some_and(|rest| {
        rest.len() == KEY_CHARS
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    })
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

// On other systems the user's configuration folder belongs to the user, and there are no such modes.
#[cfg(not(unix))]
fn is_open_to_others(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let folder = folder();
        let path = PersonKey::path_beside(&folder.path().join("new/tokens.toml"));
        let load = || PersonKey::load_or_make(&path).expect("readable").expect("a key");
        let made = load();
        let secret = read_person_key(&path).expect("the secret");
        assert!(made.is(&secret) && !made.is("aaep-person_other"));
        assert!(load().is(&secret), "the same");
        assert!(!format!("{made:?}").contains(&secret[5..]));
    }

    #[test]
    fn of_many_programs_that_make_a_key_at_once_all_have_the_same_and_nothing_else_is_left() {
        let folder = folder();
        let path = folder.path().join(PERSON_KEY_FILE);
        let made: Vec<PersonKey> = std::thread::scope(|scope| {
            let load = || PersonKey::load_or_make(&path).expect("readable").expect("a key");
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|it| it.join().expect("no panic")).collect()
        });
        let secret = read_person_key(&path).expect("the secret");
        assert!(made.iter().all(|it| it.is(&secret)));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn where_no_key_can_be_made_nobody_is_the_person() {
        let folder = folder();
        let file = folder.path().join("a file");
        std::fs::write(&file, "").expect("written");
        let none = PersonKey::load_or_make(&file.join(PERSON_KEY_FILE));
        assert!(matches!(none, Ok(None) | Err(_)), "no panic, and no key");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_could_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder();
        let path = folder.path().join(PERSON_KEY_FILE);
        PersonKey::load_or_make(&path).expect("a key");
        let open = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, open).expect("permissions");
        assert!(read_person_key(&path).is_err() && PersonKey::load_or_make(&path).is_err());
    }

    #[test]
    fn what_is_not_a_key_is_not_taken_for_one() {
        let folder = folder();
        let path = folder.path().join(PERSON_KEY_FILE);
        let token = format!("aaep_{}", "A".repeat(43));
        for text in ["", "aaep-person_", "\u{0}", &token, &"aaep-person_x".repeat(400)] {
            std::fs::write(&path, text).expect("written");
            #[cfg(unix)]
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("permissions");
            assert!(read_person_key(&path).is_err(), "{text}");
        }
    }
}
