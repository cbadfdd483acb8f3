//! The public keys of an issuer of signed tokens (RFC 7517), kept and fetched again with restraint.
//!
//! Where the document comes from is behind [`JwksSource`]; a file is here, the network is elsewhere.
//! A `kid` is only ever compared with those in the document: it never becomes a path or an address.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};

/// How large a document of keys may be.
pub const MAX_JWKS_BYTES: u64 = 256 * 1024;
/// How many keys of it are kept.
pub const MAX_JWKS_KEYS: usize = 64;
/// However many unknown keys are asked for, the document is fetched no more often than this.
pub const MIN_REFETCH_US: u64 = 30_000_000;
/// Keys are fetched anew when they are older, so that a withdrawn one goes.
const REFETCH_AFTER_US: u64 = 600_000_000;
/// Keys that could not be fetched anew for so long are believed no more.
const MAX_AGE_US: u64 = 86_400_000_000;

/// Where the keys come from. Whoever fetches over a network does so beforehand and hands over the
/// newest document here: a request waits for this.
pub trait JwksSource: Send + Sync + fmt::Debug {
    /// The document as it is now.
    fn fetch(&self) -> Result<Vec<u8>, JwksError>;
}

/// A document of keys in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileJwks(pub PathBuf);

impl JwksSource for FileJwks {
    fn fetch(&self) -> Result<Vec<u8>, JwksError> {
        let unreadable = |error: std::io::Error| {
            let path = self.0.to_string_lossy();
            JwksError::Unreadable(format!("{}: {error}", aaep::printable(&path)))
        };
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(unreadable)?;
        file.take(MAX_JWKS_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

/// The newest document that someone else fetched. Clones are the same.
#[derive(Debug, Clone)]
pub struct FetchedJwks(Arc<Mutex<Result<Vec<u8>, JwksError>>>);

impl Default for FetchedJwks {
    fn default() -> Self {
        let why = "they were not fetched yet".to_owned();
        FetchedJwks(Arc::new(Mutex::new(Err(JwksError::Unreadable(why)))))
    }
}

impl FetchedJwks {
    /// This is what was fetched last, or why nothing was.
    pub fn put(&self, fetched: Result<Vec<u8>, JwksError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fetched;
    }
}

impl JwksSource for FetchedJwks {
    fn fetch(&self) -> Result<Vec<u8>, JwksError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why the keys of the issuer cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksError {
    /// The source gave nothing, for this reason.
    Unreadable(String),
    /// The document is larger than any set of keys.
    TooLarge,
    /// The document is not a set of keys.
    Broken,
    /// The keys are too old, and newer ones cannot be had.
    TooOld,
}

impl fmt::Display for JwksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwksError::Unreadable(why) => {
                write!(f, "The keys of the issuer cannot be read: {why}. Check the setting jwks_file or jwks_uri.")
            }
            JwksError::TooLarge => f.write_str(
                "The document with the keys of the issuer is too large. Check that it is the right one.",
            ),
            JwksError::Broken => f.write_str(
                "The document with the keys of the issuer is not a JSON Web Key Set. Fetch it anew.",
            ),
            JwksError::TooOld => f.write_str(
                "The keys of the issuer are too old. Check why they cannot be fetched anew.",
            ),
        }
    }
}

impl std::error::Error for JwksError {}

/// A key, and the one algorithm that may be used with it.
pub(crate) struct Key {
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) public: DecodingKey,
}

/// The keys of an issuer, as last fetched.
pub(crate) struct Keys {
    source: Box<dyn JwksSource>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Arc<Vec<Key>>,
    fetched_us: Option<u64>,
    tried_us: Option<u64>,
    error: Option<JwksError>,
}

impl Keys {
    pub(crate) fn new(source: Box<dyn JwksSource>) -> Self {
        Keys { source, state: Mutex::default() }
    }

    /// The keys, fetched anew if they are old or if none is wanted, but never too often.
    pub(crate) fn get(
        &self,
        now_us: u64,
        is_wanted: impl Fn(&Key) -> bool,
    ) -> Result<Arc<Vec<Key>>, JwksError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = |since: Option<u64>, us: u64| {
            since.is_none_or(|since| now_us.saturating_sub(since) >= us)
        };
        let is_needed =
            passed(state.fetched_us, REFETCH_AFTER_US) || !state.keys.iter().any(is_wanted);
        if is_needed && passed(state.tried_us, MIN_REFETCH_US) {
            state.tried_us = Some(now_us);
            match self.source.fetch().and_then(|document| parse(&document)) {
                Ok(keys) => {
                    state.keys = Arc::new(keys);
                    state.fetched_us = Some(now_us);
                    state.error = None;
                }
                Err(error) => state.error = Some(error),
            }
        }
        if passed(state.fetched_us, MAX_AGE_US) {
            return Err(state.error.clone().unwrap_or(JwksError::TooOld));
        }
        Ok(Arc::clone(&state.keys))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The keys of a document that can be used. Others are passed over, as the standard wants.
fn parse(document: &[u8]) -> Result<Vec<Key>, JwksError> {
    if document.len() as u64 > MAX_JWKS_BYTES {
        return Err(JwksError::TooLarge);
    }
    let document: serde_json::Value =
        serde_json::from_slice(document).map_err(|_| JwksError::Broken)?;
    let keys = document.get("keys").and_then(|keys| keys.as_array()).ok_or(JwksError::Broken)?;
    let usable = keys.iter().filter_map(|key| usable(serde_json::from_value(key.clone()).ok()?));
    Ok(usable.take(MAX_JWKS_KEYS).collect())
}

/// The key, if it is a public one for signatures of a kind that is believed. What it is for is read
/// from the key, never from a token, so that no token can choose a weaker way.
fn usable(jwk: Jwk) -> Option<Key> {
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
    Some(Key { kid: jwk.common.key_id, algorithm, public })
}
