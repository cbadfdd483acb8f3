//! A JWKS (RFC 7517): the public keys that a producer publishes, read with suspicion.
//!
//! Keys of kinds that we do not use are skipped. A set that is ambiguous, or that shows a private key, is refused
//! as a whole.

use std::fmt;

use serde_json::{Map, Value, json};

use super::algorithm::Algorithm;
use super::public::{JwkProblem, PublicKey};
use crate::{quoted, strict_json};

/// The largest key set that is read, in bytes.
pub const MAX_JWKS_BYTES: usize = 256 * 1024;

/// How many keys a set may have.
pub const MAX_JWKS_KEYS: usize = 64;

/// The longest `kid`, in bytes.
pub const MAX_KID_BYTES: usize = 256;

/// The members of a JWK that only a private or secret key has (RFC 7518, section 6).
const PRIVATE_MEMBERS: &[&str] = &["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// One published key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwk {
    /// The producer's name for the key.
    pub kid: String,
    /// The key.
    pub key: PublicKey,
}

/// The keys of a producer that can verify a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// Why a key set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksError {
    /// It has more bytes than [`MAX_JWKS_BYTES`].
    TooLarge,
    /// It is not JSON.
    NotJson,
    /// An object in it has the same member twice.
    DuplicateMember,
    /// It is JSON without a list called `keys`, or an entry of the list is not an object.
    NotAKeySet,
    /// It has more keys than [`MAX_JWKS_KEYS`].
    TooManyKeys(usize),
    /// It publishes a private key.
    HoldsPrivateKey(String),
    /// Two keys have the same `kid`.
    SameKidTwice(String),
    /// A key is not well formed.
    MalformedKey(String),
}

impl fmt::Display for JwksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwksError::TooLarge => write!(f, "The key set has more than {MAX_JWKS_BYTES} bytes.")?,
            JwksError::NotJson => f.write_str("The key set is not JSON.")?,
            JwksError::DuplicateMember => f.write_str("The key set has the same member twice.")?,
            JwksError::NotAKeySet => {
                f.write_str("The document is not a key set: it has no list of keys.")?;
            }
            JwksError::TooManyKeys(count) => {
                write!(f, "The key set has {count} keys, more than {MAX_JWKS_KEYS}.")?;
            }
            JwksError::HoldsPrivateKey(kid) => {
                return write!(
                    f,
                    "The key set shows the private key {} to everyone, so anyone can sign as this \
                     producer. Trust nothing that it signed, and tell the people who run it.",
                    quoted(kid)
                );
            }
            JwksError::SameKidTwice(kid) => {
                write!(f, "The key set has two keys called {}.", quoted(kid))?;
            }
            JwksError::MalformedKey(kid) => {
                write!(f, "The key {} in the key set is not well formed.", quoted(kid))?;
            }
        }
        f.write_str(" Tell the people who run the producer.")
    }
}

impl std::error::Error for JwksError {}

impl Jwks {
    /// Reads a key set.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwksError> {
        if bytes.len() > MAX_JWKS_BYTES {
            return Err(JwksError::TooLarge);
        }
        let document = strict_json::parse(bytes).map_err(|problem| match problem {
            strict_json::NotStrict::NotJson => JwksError::NotJson,
            strict_json::NotStrict::DuplicateMember => JwksError::DuplicateMember,
        })?;
        let list = document.get("keys").and_then(Value::as_array).ok_or(JwksError::NotAKeySet)?;
        if list.len() > MAX_JWKS_KEYS {
            return Err(JwksError::TooManyKeys(list.len()));
        }
        let mut keys: Vec<Jwk> = Vec::with_capacity(list.len());
        for item in list {
            let Some(jwk) = read_key(item.as_object().ok_or(JwksError::NotAKeySet)?)? else {
                continue;
            };
            if keys.iter().any(|other| other.kid == jwk.kid) {
                return Err(JwksError::SameKidTwice(jwk.kid));
            }
            keys.push(jwk);
        }
        Ok(Jwks { keys })
    }

    /// The key with this `kid`.
    pub fn find(&self, kid: &str) -> Option<&Jwk> {
        self.keys.iter().find(|jwk| jwk.kid == kid)
    }

    /// All keys that can verify a manifest.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }
}

/// The key of a JWK; `None` if it is not for verifying, or of a kind that we do not use.
fn read_key(jwk: &Map<String, Value>) -> Result<Option<Jwk>, JwksError> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let kid = text("kid").unwrap_or_default();
    if PRIVATE_MEMBERS.iter().any(|name| jwk.contains_key(*name)) {
        return Err(JwksError::HoldsPrivateKey(kid.to_owned()));
    }
    if kid.is_empty() || kid.len() > MAX_KID_BYTES {
        return Ok(None);
    }
    let key = match PublicKey::from_jwk(jwk) {
        Ok(key) => key,
        Err(JwkProblem::OtherKind) => return Ok(None),
        Err(JwkProblem::Malformed) => return Err(JwksError::MalformedKey(kid.to_owned())),
    };
    let is_for_signatures = jwk.get("use").is_none_or(|purpose| purpose == "sig");
    let may_verify = jwk.get("key_ops").is_none_or(|operations| {
        operations.as_array().is_some_and(|list| list.iter().any(|it| it == "verify"))
    });
    let is_for_its_algorithm = jwk
        .get("alg")
        .is_none_or(|name| name.as_str().and_then(Algorithm::parse) == Some(key.algorithm()));
    let is_usable = is_for_signatures && may_verify && is_for_its_algorithm;
    Ok(is_usable.then(|| Jwk { kid: kid.to_owned(), key }))
}

/// The key set that publishes these keys, each with its thumbprint as `kid`.
pub(super) fn publish<'k>(keys: impl Iterator<Item = &'k PublicKey>) -> Value {
    let list: Vec<Value> = keys
        .map(|key| {
            let mut jwk = key.to_jwk();
            jwk.insert("alg".to_owned(), key.algorithm().name().into());
            jwk.insert("kid".to_owned(), key.thumbprint().as_str().into());
            jwk.insert("use".to_owned(), "sig".into());
            jwk.into()
        })
        .collect();
    json!({ "keys": list })
}
