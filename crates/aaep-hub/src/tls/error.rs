//! Errors and warnings about the TLS files.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why TLS could not be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsError {
    /// There is no such file.
    Missing(PathBuf),
    /// The file cannot be read, for this reason.
    Unreadable(PathBuf, String),
    /// The file exceeds [`crate::tls::MAX_PEM_BYTES`], or has too many certificates.
    TooLarge(PathBuf),
    /// The file has no certificate in PEM, or a damaged one.
    NoCertificate(PathBuf),
    /// A certificate cannot be used.
    BadCertificate(PathBuf),
    /// The file has no private key in PEM, or a damaged one.
    NoKey(PathBuf),
    /// The key needs a passphrase, and nobody is there to type it.
    EncryptedKey(PathBuf),
    /// The type of the key is not supported.
    BadKey(PathBuf),
    /// The key belongs to another certificate.
    KeyMismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        private_key: PathBuf,
    },
    /// The cryptography of this build does not support TLS.
    Provider(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Missing(path) => {
                write!(f, "There is no file {}. Check the path in the table tls.", shown(path))
            }
            TlsError::Unreadable(path, why) => {
                write!(f, "{} cannot be read: {why}. Check who may read it.", shown(path))
            }
            TlsError::TooLarge(path) => write!(
                f,
                "{} is too large to be a file of certificates. Check the path in the table tls.",
                shown(path)
            ),
            TlsError::NoCertificate(path) => write!(
                f,
                "{} has no whole certificate in PEM. It begins with BEGIN CERTIFICATE; convert the file if it is in DER.",
                shown(path)
            ),
            TlsError::BadCertificate(path) => write!(
                f,
                "A certificate in {} cannot be used. Let its authority issue a new one.",
                shown(path)
            ),
            TlsError::NoKey(path) => write!(
                f,
                "{} has no whole private key in PEM. It begins with BEGIN PRIVATE KEY; check that it is not the certificate.",
                shown(path)
            ),
            TlsError::EncryptedKey(path) => write!(
                f,
                "The key in {} needs a passphrase. Store it without one, readable by its owner alone.",
                shown(path)
            ),
            TlsError::BadKey(path) => write!(
                f,
                "The key in {} is of a kind that cannot be used. Use ECDSA, Ed25519 or RSA.",
                shown(path)
            ),
            TlsError::KeyMismatch { certificate, private_key } => write!(
                f,
                "The key in {} does not belong to the certificate in {}. Use the two that were made together.",
                shown(private_key),
                shown(certificate)
            ),
            TlsError::Provider(why) => {
                write!(f, "This build cannot speak TLS: {why}. Install another build.")
            }
        }
    }
}

impl std::error::Error for TlsError {}

/// A problem that does not prevent the use of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsWarning {
    /// Clients will refuse the certificate, because it has expired.
    Expired(PathBuf),
    /// Clients will refuse the certificate, because it is not valid yet.
    NotYetValid(PathBuf),
    /// The certificate expires soon.
    ExpiresSoon {
        /// The file.
        path: PathBuf,
        /// The number of whole days left.
        days: i64,
    },
    /// Other users of the machine can read the key.
    KeyReadableByOthers(PathBuf),
}

impl fmt::Display for TlsWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsWarning::Expired(path) => write!(
                f,
                "A certificate in {} has expired, so clients will not connect. Renew it.",
                shown(path)
            ),
            TlsWarning::NotYetValid(path) => write!(
                f,
                "A certificate in {} is not valid yet. Check the clock of this machine.",
                shown(path)
            ),
            TlsWarning::ExpiresSoon { path, days } => {
                write!(f, "A certificate in {} expires in {days} days. Renew it.", shown(path))
            }
            TlsWarning::KeyReadableByOthers(path) => {
                write!(f, "Other users can read the key. Run: chmod 600 '{}'", shown(path))
            }
        }
    }
}

fn shown(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}
