//! The public keys of an issuer of signed tokens (RFC 7517), cached and refetched at limited intervals.
//!
//! [`JwksSource`] hides where the document comes from; the file source is here, the network is elsewhere. A
//! `kid` is only compared with those in the document: it never becomes a path or an address.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};

/// The largest key document, in bytes.
pub const MAX_JWKS_BYTES: u64 = 256 * 1024;
/// The most keys that are kept from one document.
pub const MAX_JWKS_KEYS: usize = 64;
/// The shortest time between two fetches, however many unknown keys are requested.
pub const MIN_REFETCH_US: u64 = 30_000_000;
/// The age at which keys are fetched again, so that withdrawn ones disappear.
const REFETCH_AFTER_US: u64 = 600_000_000;
/// The age at which keys that could not be refetched are no longer trusted.
const MAX_AGE_US: u64 = 86_400_000_000;

/// Where the keys come from. A network source fetches beforehand and returns its newest document here,
/// because a request waits for this call.
pub trait JwksSource: Send + Sync + fmt::Debug {
    /// Returns the current document.
    fn fetch(&self) -> Result<Vec<u8>, IssuerKeysError>;
}

/// A key document in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileJwks(pub PathBuf);

impl JwksSource for FileJwks {
    fn fetch(&self) -> Result<Vec<u8>, IssuerKeysError> {
        let unreadable = |error: std::io::Error| {
            let path = self.0.to_string_lossy();
            IssuerKeysError::Unreadable(format!("{}: {error}", aaep::printable(&path)))
        };
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(unreadable)?;
        file.take(MAX_JWKS_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

/// The newest document from a task that fetches it. Clones share it.
#[derive(Debug, Clone)]
pub struct FetchedJwks(Arc<Mutex<Result<Vec<u8>, IssuerKeysError>>>);

impl Default for FetchedJwks {
    fn default() -> Self {
        let why = "they were not fetched yet".to_owned();
        FetchedJwks(Arc::new(Mutex::new(Err(IssuerKeysError::Unreadable(why)))))
    }
}

impl FetchedJwks {
    /// Stores the newest document, or why there is none.
    pub fn put(&self, fetched: Result<Vec<u8>, IssuerKeysError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fetched;
    }
}

impl JwksSource for FetchedJwks {
    fn fetch(&self) -> Result<Vec<u8>, IssuerKeysError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why the issuer's keys are not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerKeysError {
    /// The source could not be read, for this reason.
    Unreadable(String),
    /// The document exceeds [`MAX_JWKS_BYTES`].
    TooLarge,
    /// The document is not a set of keys.
    Broken,
    /// The keys are too old, and newer ones are not available.
    TooOld,
}

impl fmt::Display for IssuerKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IssuerKeysError::Unreadable(why) => {
                write!(f, "The keys of the issuer cannot be read: {why}. Check the setting jwks_file or jwks_uri.")
            }
            IssuerKeysError::TooLarge => f.write_str(
                "The document with the keys of the issuer is too large. Check that it is the right one.",
            ),
            IssuerKeysError::Broken => f.write_str(
                "The document with the keys of the issuer is not a JSON Web Key Set. Fetch it again.",
            ),
            IssuerKeysError::TooOld => f.write_str(
                "The keys of the issuer are too old. Check why they cannot be fetched again.",
            ),
        }
    }
}

impl std::error::Error for IssuerKeysError {}

/// A key, and the only algorithm that may be used with it.
pub(crate) struct IssuerKey {
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) public: DecodingKey,
}

/// The keys of an issuer, as last fetched.
pub(crate) struct IssuerKeys {
    source: Box<dyn JwksSource>,
    cache: Mutex<KeyCache>,
}

#[derive(Default)]
struct KeyCache {
    keys: Arc<Vec<IssuerKey>>,
    fetched_us: Option<u64>,
    tried_us: Option<u64>,
    error: Option<IssuerKeysError>,
}

impl IssuerKeys {
    pub(crate) fn new(source: Box<dyn JwksSource>) -> Self {
        IssuerKeys { source, cache: Mutex::default() }
    }

    /// Returns the keys. Fetches them first if they are old or none is wanted, but never too often.
    pub(crate) fn get(
        &self,
        now_us: u64,
        is_wanted: impl Fn(&IssuerKey) -> bool,
    ) -> Result<Arc<Vec<IssuerKey>>, IssuerKeysError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = |since: Option<u64>, us: u64| {
            since.is_none_or(|since| now_us.saturating_sub(since) >= us)
        };
        let is_needed =
            passed(cache.fetched_us, REFETCH_AFTER_US) || !cache.keys.iter().any(is_wanted);
        if is_needed && passed(cache.tried_us, MIN_REFETCH_US) {
            cache.tried_us = Some(now_us);
            match self.source.fetch().and_then(|document| parse(&document)) {
                Ok(keys) => {
                    cache.keys = Arc::new(keys);
                    cache.fetched_us = Some(now_us);
                    cache.error = None;
                }
                Err(error) => cache.error = Some(error),
            }
        }
        if passed(cache.fetched_us, MAX_AGE_US) {
            return Err(cache.error.clone().unwrap_or(IssuerKeysError::TooOld));
        }
        Ok(Arc::clone(&cache.keys))
    }
}

impl fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerKeys").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The usable keys of a document. Others are skipped, as the standard requires.
fn parse(document: &[u8]) -> Result<Vec<IssuerKey>, IssuerKeysError> {
    if document.len() as u64 > MAX_JWKS_BYTES {
        return Err(IssuerKeysError::TooLarge);
    }
    let document: serde_json::Value =
        serde_json::from_slice(document).map_err(|_| IssuerKeysError::Broken)?;
    let keys =
        document.get("keys").and_then(|keys| keys.as_array()).ok_or(IssuerKeysError::Broken)?;
    let usable =
        keys.iter().filter_map(|key| usable_key(serde_json::from_value(key.clone()).ok()?));
    Ok(usable.take(MAX_JWKS_KEYS).collect())
}

/// Returns the key if it is a public key for a supported signature algorithm. The algorithm is read from the
/// key, never from a token, so that no token can choose a weaker one.
fn usable_key(jwk: Jwk) -> Option<IssuerKey> {
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::EllipticCurve(it) if it.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        _ => return None,
    };
    let common = &jwk.common;
    let is_other_algorithm = common.key_algorithm.is_some_and(|it| it != named);
    let is_other_use =
        common.public_key_use.as_ref().is_some_and(|it| *it != PublicKeyUse::Signature);
    let is_other_operation =
        common.key_operations.as_ref().is_some_and(|it| !it.contains(&KeyOperations::Verify));
    if is_other_algorithm || is_other_use || is_other_operation {
        return None;
    }
    let public = DecodingKey::from_jwk(&jwk).ok()?;
    Some(IssuerKey { kid: jwk.common.key_id, algorithm, public })
}
