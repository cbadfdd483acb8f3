//! The keys that a producer signs with (§10.4.3): how they are made, stored, published, rotated and retired.
//!
//! A [`KeyRing`] is a folder that only its owner can read: `keys.toml` lists the keys, and each private key is a
//! file named by its thumbprint. One key is active and signs. Earlier keys stay published for an overlap, so that
//! their signatures can still be verified, and are then retired: no longer published, and their private half
//! deleted. A ring never gives out a private key except as a [`SigningKey`], and never repairs a folder that
//! others could read.

mod algorithm;
mod jwks;
pub(crate) mod private_file;
mod public;
mod record;
mod signing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

pub use algorithm::{Algorithm, SigningAlgorithm};
pub use jwks::{Jwk, Jwks, JwksError, MAX_JWKS_BYTES, MAX_JWKS_KEYS, MAX_KID_BYTES};
pub use private_file::PrivateFileError;
pub use public::{JwkProblem, NotAThumbprint, PublicKey, Thumbprint};
pub(crate) use record::in_range;
pub use record::{KeyRecord, KeyState};
pub use signing::{SigningKey, SigningKeyError};

/// How many keys a ring remembers, including the retired ones.
pub const MAX_KEYS: usize = 32;

/// How long a key stays published after it was replaced, unless configured otherwise: 30 days.
pub const DEFAULT_OVERLAP: Duration = Duration::from_hours(30 * 24);

/// The largest key list and the largest private key that are read, in bytes.
const MAX_LIST_BYTES: u64 = 64 * 1024;
const MAX_PEM_BYTES: u64 = 16 * 1024;

/// A folder of keys.
#[derive(Debug)]
pub struct KeyRing {
    folder: PathBuf,
    records: Vec<KeyRecord>,
}

/// Why an operation on a ring failed.
#[derive(Debug)]
pub enum KeyRingError {
    /// A file or the folder cannot be used.
    File(PrivateFileError),
    /// Another process is changing the ring.
    Busy,
    /// `keys.toml` is not a key list in our format.
    ListUnreadable(PathBuf),
    /// There is no key to sign with.
    NoActiveKey,
    /// The private key of this record is missing, unusable, or that of another key.
    PrivateKey {
        /// The key.
        kid: Thumbprint,
        /// What is wrong with it.
        problem: PrivateKeyProblem,
    },
    /// The ring has no key with this id.
    UnknownKid(Thumbprint),
    /// The active key cannot be retired without a replacement.
    IsActive(Thumbprint),
    /// The key is already retired.
    AlreadyRetired(Thumbprint),
    /// [`MAX_KEYS`] keys are published.
    TooManyKeys,
    /// The cryptographic library failed.
    Library(SigningKeyError),
}

/// What is wrong with the file of a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateKeyProblem {
    /// There is no file.
    Missing,
    /// The file does not hold a key.
    Unusable,
    /// The file holds the private half of another key.
    AnotherKey,
}

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRingError::File(error) => error.fmt(f),
            KeyRingError::Busy => {
                f.write_str("another program is changing the keys right now; try again in a moment")
            }
            KeyRingError::ListUnreadable(path) => write!(
                f,
                "{} is not a list of keys; put it back from a copy, or move the folder away and \
                 make a new key with: aaep keys new",
                aaep::printable(&path.to_string_lossy())
            ),
            KeyRingError::NoActiveKey => {
                f.write_str("there is no key to sign with; make one with: aaep keys new")
            }
            KeyRingError::PrivateKey { kid, problem } => {
                let what = match problem {
                    PrivateKeyProblem::Missing => "is missing",
                    PrivateKeyProblem::Unusable => "holds no private key",
                    PrivateKeyProblem::AnotherKey => "holds another private key",
                };
                write!(
                    f,
                    "the file of key {kid} {what}; put it back from a copy, or make a new key \
                     with: aaep keys new"
                )
            }
            KeyRingError::UnknownKid(kid) => {
                write!(f, "there is no key {kid} here; list those there are with: aaep keys list")
            }
            KeyRingError::IsActive(kid) => {
                write!(f, "key {kid} is the one that signs; make another first with: aaep keys new")
            }
            KeyRingError::AlreadyRetired(kid) => {
                write!(f, "key {kid} is retired already; nothing is left to do")
            }
            KeyRingError::TooManyKeys => write!(
                f,
                "{MAX_KEYS} keys are published already; retire one with: aaep keys retire KID"
            ),
            KeyRingError::Library(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyRingError {}

impl From<PrivateFileError> for KeyRingError {
    fn from(error: PrivateFileError) -> Self {
        KeyRingError::File(error)
    }
}

impl KeyRing {
    /// Opens the ring in this folder. A folder that does not exist is an empty ring; it is created with the first
    /// key.
    pub fn open(folder: &Path) -> Result<Self, KeyRingError> {
        private_file::check_folder(folder)?;
        let mut ring = KeyRing { folder: folder.to_owned(), records: Vec::new() };
        ring.load()?;
        Ok(ring)
    }

    /// Makes a new key, which signs from now on. The previous key stays published for the overlap.
    pub fn new_key(
        &mut self,
        algorithm: SigningAlgorithm,
        overlap: Duration,
        now_unix_ms: i64,
    ) -> Result<Thumbprint, KeyRingError> {
        private_file::make_folder(&self.folder)?;
        private_file::check_folder(&self.folder)?;
        let _lock = self.lock()?;
        self.load()?;
        self.forget_oldest_retired(now_unix_ms)?;
        let key = generate_nameable(algorithm).map_err(KeyRingError::Library)?;
        let (kid, pem) = (key.kid(), key.to_pem().map_err(KeyRingError::Library)?);
        private_file::write(&self.pem_path(&kid), pem.as_bytes())?;
        let overlap_ms = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
        let mut records = self.records.clone();
        for record in records.iter_mut().filter(|record| record.retires_unix_ms.is_none()) {
            record.retires_unix_ms = Some(in_range(now_unix_ms.saturating_add(overlap_ms)));
        }
        records.push(KeyRecord::new(key.public().clone(), now_unix_ms));
        if let Err(error) = self.save(records) {
            // A key that is not in the list is useless.
            let _ = private_file::remove(&self.pem_path(&kid));
            return Err(error);
        }
        self.delete_retired(now_unix_ms)?;
        Ok(kid)
    }

    /// All keys, oldest first.
    pub fn records(&self) -> &[KeyRecord] {
        &self.records
    }

    /// The folder of the ring.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The key that signs.
    pub fn active(&self) -> Result<SigningKey, KeyRingError> {
        let is_active = |record: &&KeyRecord| record.retires_unix_ms.is_none();
        let record = self.records.iter().find(is_active).ok_or(KeyRingError::NoActiveKey)?;
        let wrong = |problem| KeyRingError::PrivateKey { kid: record.kid().clone(), problem };
        let pem = private_file::read(&self.pem_path(record.kid()), MAX_PEM_BYTES)?
            .ok_or_else(|| wrong(PrivateKeyProblem::Missing))?;
        let key = SigningKey::from_pem(&pem).map_err(|_| wrong(PrivateKeyProblem::Unusable))?;
        if key.public() == record.public() {
            Ok(key)
        } else {
            Err(wrong(PrivateKeyProblem::AnotherKey))
        }
    }

    /// The key set to publish: only public keys, the active one and those in their overlap.
    pub fn jwks(&self, now_unix_ms: i64) -> Value {
        jwks::publish(self.published(now_unix_ms).map(KeyRecord::public))
    }

    /// The keys that are published now, oldest first.
    pub fn published(&self, now_unix_ms: i64) -> impl Iterator<Item = &KeyRecord> {
        self.records.iter().filter(move |it| it.state(now_unix_ms) != KeyState::Retired)
    }

    /// Ends the overlap of a key now: it is no longer published, and its private half is deleted.
    pub fn retire(&mut self, kid: &Thumbprint, now_unix_ms: i64) -> Result<(), KeyRingError> {
        if !self.folder.is_dir() {
            return Err(KeyRingError::UnknownKid(kid.clone()));
        }
        let _lock = self.lock()?;
        self.load()?;
        let mut records = self.records.clone();
        let record = records
            .iter_mut()
            .find(|record| record.kid() == kid)
            .ok_or_else(|| KeyRingError::UnknownKid(kid.clone()))?;
        match record.state(now_unix_ms) {
            KeyState::Active => return Err(KeyRingError::IsActive(kid.clone())),
            KeyState::Retired => return Err(KeyRingError::AlreadyRetired(kid.clone())),
            KeyState::Published => record.retires_unix_ms = Some(in_range(now_unix_ms)),
        }
        self.save(records)?;
        self.delete_retired(now_unix_ms)
    }

    fn lock(&self) -> Result<File, KeyRingError> {
        private_file::lock(&self.folder.join("keys.lock"))?.ok_or(KeyRingError::Busy)
    }

    fn list_path(&self) -> PathBuf {
        self.folder.join("keys.toml")
    }

    /// The path of a private key. A thumbprint has no characters that are special in a path.
    fn pem_path(&self, kid: &Thumbprint) -> PathBuf {
        self.folder.join(format!("{kid}.pem"))
    }

    fn load(&mut self) -> Result<(), KeyRingError> {
        let path = self.list_path();
        self.records = match private_file::read(&path, MAX_LIST_BYTES)? {
            None => Vec::new(),
            Some(bytes) => record::parse_list(&bytes).ok_or(KeyRingError::ListUnreadable(path))?,
        };
        Ok(())
    }

    fn save(&mut self, records: Vec<KeyRecord>) -> Result<(), KeyRingError> {
        private_file::write(&self.list_path(), record::write_list(&records).as_bytes())?;
        self.records = records;
        Ok(())
    }

    /// Deletes the private halves of keys that are retired by now.
    fn delete_retired(&self, now_unix_ms: i64) -> Result<(), KeyRingError> {
        for record in &self.records {
            if record.state(now_unix_ms) == KeyState::Retired {
                private_file::remove(&self.pem_path(record.kid()))?;
            }
        }
        Ok(())
    }

    /// Makes room for one more key.
    fn forget_oldest_retired(&mut self, now_unix_ms: i64) -> Result<(), KeyRingError> {
        self.delete_retired(now_unix_ms)?;
        while self.records.len() >= MAX_KEYS {
            let retired =
                self.records.iter().position(|it| it.state(now_unix_ms) == KeyState::Retired);
            self.records.remove(retired.ok_or(KeyRingError::TooManyKeys)?);
        }
        Ok(())
    }
}

/// A new key whose id is not mistaken for a command line option: one thumbprint in 64 begins with a hyphen, and
/// such a key is discarded.
fn generate_nameable(algorithm: SigningAlgorithm) -> Result<SigningKey, SigningKeyError> {
    loop {
        let key = SigningKey::generate(algorithm)?;
        if !key.kid().as_str().starts_with('-') {
            return Ok(key);
        }
    }
}
