//! Reads PEM files within bounds.
//!
//! The contents are never shown: errors name only the file.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// The largest file, in bytes. The authorities of a whole browser fit in.
pub const MAX_PEM_BYTES: u64 = 1024 * 1024;
/// The most certificates in one file.
pub const MAX_CERTIFICATES: usize = 1024;

/// All certificates in a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&bytes).take(MAX_CERTIFICATES + 1).collect();
    match found {
        Ok(certificates) if certificates.len() > MAX_CERTIFICATES => {
            Err(TlsError::TooLarge(path.to_owned()))
        }
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(TlsError::NoCertificate(path.to_owned())),
    }
}

/// The first private key in a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path)?;
    let found = PrivateKeyDer::from_pem_slice(&bytes);
    let is_encrypted = || bytes.windows(9).any(|window| window == b"ENCRYPTED");
    found.map_err(|_| {
        if is_encrypted() {
            TlsError::EncryptedKey(path.to_owned())
        } else {
            TlsError::NoKey(path.to_owned())
        }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => TlsError::Missing(path.to_owned()),
        _ => TlsError::Unreadable(path.to_owned(), error.to_string()),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_PEM_BYTES {
        return Err(TlsError::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

/// Whether anyone except the owner and the owner's group can read the file.
#[cfg(unix)]
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o004 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_readable_by_others(_: &Path) -> bool {
    false
}
