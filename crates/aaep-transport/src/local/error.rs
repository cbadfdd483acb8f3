//! Why a local socket could not be opened, and what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::MAX_SOCKET_PATH_BYTES;

/// Why a local socket could not be opened.
#[derive(Debug)]
pub enum LocalBindError {
    /// Another process listens there.
    InUse(PathBuf),
    /// Something that is not a socket is there. It is left alone.
    NoSocket(PathBuf),
    /// The path is longer than a socket path can be.
    TooLong(PathBuf),
    /// The operating system does not allow it.
    Failed(PathBuf, io::Error),
}

impl fmt::Display for LocalBindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "Another program listens on the socket {}, perhaps another hub. Stop it, or choose another \
                 path.",
                shown(path)
            ),
            Self::NoSocket(path) => write!(
                f,
                "{} exists and is not a socket. Move it away, or choose another path.",
                shown(path)
            ),
            Self::TooLong(path) => write!(
                f,
                "The path {} is too long for a socket. Choose one of at most {MAX_SOCKET_PATH_BYTES} bytes.",
                shown(path)
            ),
            Self::Failed(path, error) => write!(
                f,
                "The socket {} could not be opened: {}. Choose another path.",
                shown(path),
                error.kind()
            ),
        }
    }
}

fn shown(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}

impl std::error::Error for LocalBindError {}
