//! Pins: by which key each producer is known (§10.4.3, a directory that the user keeps).
//!
//! They are in a TOML file that only its owner can read. The first key is stored when the user agrees; afterwards
//! exactly this key is accepted. A pin is never changed because a producer asks for it.

use std::fmt;
use std::path::{Path, PathBuf};

use aaep::Timestamp;
use serde::{Deserialize, Serialize};

use crate::keys::private_file;
use crate::keys::{PrivateFileError, Thumbprint, in_range};

/// How many producers a file can hold.
pub const MAX_PINS: usize = 4096;

/// The largest file of pins that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The longest name of a producer, in bytes.
const MAX_NAME_BYTES: usize = 512;

const HEADER: &str = "# By which key each producer is known. Written by aaep manifest verify.\n\n";

/// The key by which a producer is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The producer: its origin, such as `https://example.org`.
    pub producer: String,
    /// Its key.
    pub thumbprint: Thumbprint,
    /// When it was pinned.
    pub pinned_unix_ms: i64,
}

/// All pins of a user.
#[derive(Debug)]
pub struct PinStore {
    path: PathBuf,
    pins: Vec<Pin>,
}

/// Why pins cannot be read or stored.
#[derive(Debug)]
pub enum PinError {
    /// The file cannot be used.
    File(PrivateFileError),
    /// The file is not a list of pins in our format.
    Unreadable(PathBuf),
    /// Another process is changing the file.
    Busy,
    /// There are already [`MAX_PINS`].
    TooMany,
    /// The name of the producer is empty or too long.
    Name,
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::File(error) => error.fmt(f),
            PinError::Unreadable(path) => write!(
                f,
                "{} is not a list of pins; put it back from a copy, or name another file with --pins",
                aaep::printable(&path.to_string_lossy())
            ),
            PinError::Busy => {
                f.write_str("another program is changing the pins right now; try again in a moment")
            }
            PinError::TooMany => write!(
                f,
                "{MAX_PINS} producers are pinned already; remove some from the file, or name another with --pins"
            ),
            PinError::Name => {
                f.write_str("the name of the producer is empty or too long; check the address")
            }
        }
    }
}

impl std::error::Error for PinError {}

impl From<PrivateFileError> for PinError {
    fn from(error: PrivateFileError) -> Self {
        PinError::File(error)
    }
}

impl PinStore {
    /// Reads the pins in this file. A missing file holds none; it is created with the first pin.
    pub fn open(path: &Path) -> Result<Self, PinError> {
        let pins = match private_file::read(path, MAX_FILE_BYTES)? {
            None => Vec::new(),
            Some(bytes) => parse(&bytes).ok_or_else(|| PinError::Unreadable(path.to_owned()))?,
        };
        Ok(PinStore { path: path.to_owned(), pins })
    }

    /// The pin of a producer.
    pub fn get(&self, producer: &str) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.producer == producer)
    }

    /// All pins.
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// Stores the key of a producer, replacing any other. Call it only when the user agrees.
    pub fn pin(
        &mut self,
        producer: &str,
        thumbprint: Thumbprint,
        now_unix_ms: i64,
    ) -> Result<(), PinError> {
        if producer.is_empty() || producer.len() > MAX_NAME_BYTES {
            return Err(PinError::Name);
        }
        if let Some(folder) = self.path.parent() {
            private_file::make_folder(folder)?;
        }
        let mut lock = self.path.clone().into_os_string();
        lock.push(".lock");
        let _lock = private_file::lock(Path::new(&lock))?.ok_or(PinError::Busy)?;
        // Pins that another process has written since must not be lost.
        let mut pins = PinStore::open(&self.path)?.pins;
        pins.retain(|pin| pin.producer != producer);
        if pins.len() >= MAX_PINS {
            return Err(PinError::TooMany);
        }
        let producer = producer.to_owned();
        pins.push(Pin { producer, thumbprint, pinned_unix_ms: in_range(now_unix_ms) });
        private_file::write(&self.path, write(&pins).as_bytes())?;
        self.pins = pins;
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinList {
    #[serde(default)]
    pin: Vec<PinEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinEntry {
    producer: String,
    thumbprint: String,
    pinned_at: String,
}

fn write(pins: &[Pin]) -> String {
    let pin = pins
        .iter()
        .map(|pin| PinEntry {
            producer: pin.producer.clone(),
            thumbprint: pin.thumbprint.to_string(),
            pinned_at: Timestamp::from_unix_ms(pin.pinned_unix_ms)
                .map_or_else(String::new, |at| at.as_str().to_owned()),
        })
        .collect();
    let list = toml::to_string(&PinList { pin }).expect("tables of strings can be written as TOML");
    format!("{HEADER}{list}")
}

/// Reads the pins of a file; `None` if it is not in our format, or lists a producer twice.
fn parse(bytes: &[u8]) -> Option<Vec<Pin>> {
    let list: PinList = toml::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    if list.pin.len() > MAX_PINS {
        return None;
    }
    let read = |entry: PinEntry| {
        Some(Pin {
            producer: entry.producer,
            thumbprint: Thumbprint::parse(&entry.thumbprint).ok()?,
            pinned_unix_ms: Timestamp::parse(&entry.pinned_at).ok()?.unix_us().div_euclid(1000),
        })
    };
    let pins: Vec<Pin> = list.pin.into_iter().map(read).collect::<Option<_>>()?;
    let mut names: Vec<&str> = pins.iter().map(|pin| pin.producer.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() == pins.len()).then_some(pins)
}
