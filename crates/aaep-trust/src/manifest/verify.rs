//! Verifying a signed manifest (§10.4.2), with one error variant for each way in which it can be wrong.
//!
//! The input is the compact JWS itself, or a JSON manifest that carries its JWS; then both must have the same
//! content. Only the signed payload is trusted afterwards, never the JSON around it. Nothing here fetches
//! anything or reads a clock.

mod error;

use aaep::{Manifest, Message, Mode, Timestamp};
use serde_json::Value;

use super::jws::ParsedJws;
use super::{data_of, member};
use crate::fetch::HttpAddress;
use crate::keys::{Algorithm, Jwks, Thumbprint};
use crate::quoted;
use crate::strict_json::{self, NotStrict};

pub use error::VerifyError;

/// The largest signed manifest that is verified, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 256 * 1024;

/// What the verifier knows beforehand. Fields that are left open are not checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'e> {
    /// The keys that this producer is known by. Empty if none is known yet.
    pub pins: &'e [Thumbprint],
    /// The origin that the manifest was fetched from, such as `https://example.org`.
    pub origin: Option<&'e str>,
    /// The `agent_id` that the producer gave in `subscription.accepted` (§10.4.2).
    pub agent_id: Option<&'e str>,
}

/// A manifest whose signature was verified.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedManifest {
    /// The producer's name for the key that signed.
    pub kid: String,
    /// The thumbprint of that key.
    pub thumbprint: Thumbprint,
    /// The algorithm of the signature.
    pub algorithm: Algorithm,
    /// Whether the key was pinned beforehand.
    pub pinned: bool,
    /// When the signature expires, if it says.
    pub expires_unix_ms: Option<i64>,
    /// The signed content.
    pub manifest: Manifest,
}

/// Verifies a signed manifest: a compact JWS, or a JSON manifest that carries one.
pub fn verify(
    bytes: &[u8],
    keys: &Jwks,
    expected: &Expected<'_>,
    now_unix_ms: i64,
) -> Result<VerifiedManifest, VerifyError> {
    Unverified::parse(bytes)?.verify(keys, expected, now_unix_ms)
}

/// A signed manifest that is well formed. Nothing in it may be trusted yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Unverified {
    jws: ParsedJws,
    payload: Value,
    manifest: Manifest,
    /// The JSON manifest that carried the JWS, without it.
    beside: Option<Value>,
}

impl Unverified {
    /// Parses a compact JWS or a JSON manifest.
    pub fn parse(bytes: &[u8]) -> Result<Self, VerifyError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(VerifyError::TooLarge);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| VerifyError::MalformedJws("it is not UTF-8"))?
            .trim_ascii();
        let (jws, beside) = if text.starts_with('{') {
            let (jws, beside) = take_jws(text)?;
            (jws, Some(beside))
        } else {
            (text.to_owned(), None)
        };
        let jws = ParsedJws::parse(&jws)?;
        let (payload, manifest) = read_manifest(&jws.payload)?;
        Ok(Unverified { jws, payload, manifest, beside })
    }

    /// The address of the key set, as the manifest claims it: a hint to be checked, not to be trusted.
    pub fn jwks_uri(&self) -> Option<&str> {
        data_of(&self.manifest)?.get(member::JWKS_URI)?.as_str()
    }

    /// Verifies it with these keys.
    pub fn verify(
        self,
        keys: &Jwks,
        expected: &Expected<'_>,
        now_unix_ms: i64,
    ) -> Result<VerifiedManifest, VerifyError> {
        let jwk = keys
            .find(&self.jws.kid)
            .ok_or_else(|| VerifyError::UnknownKid(self.jws.kid.clone()))?;
        if jwk.key.algorithm() != self.jws.algorithm {
            return Err(VerifyError::AlgorithmNotOfKey {
                named: self.jws.algorithm,
                of_key: jwk.key.algorithm(),
            });
        }
        if !jwk.key.has_signed(&self.jws.signed, &self.jws.signature) {
            return Err(VerifyError::WrongSignature);
        }
        if self.beside.is_some_and(|beside| beside != self.payload) {
            return Err(VerifyError::ContentDiffers);
        }
        let thumbprint = jwk.key.thumbprint();
        let pinned = expected.pins.contains(&thumbprint);
        if !pinned && !expected.pins.is_empty() {
            return Err(VerifyError::NotPinned {
                found: thumbprint,
                pinned: expected.pins.to_vec(),
                origin: expected.origin.map(str::to_owned),
            });
        }
        check_issuer(&self.manifest, expected)?;
        let expires_unix_ms = expiry(&self.payload, &self.manifest)?;
        if let Some(expired_unix_ms) = expires_unix_ms.filter(|at| *at <= now_unix_ms) {
            return Err(VerifyError::Expired { expired_unix_ms });
        }
        Ok(VerifiedManifest {
            kid: self.jws.kid,
            thumbprint,
            algorithm: self.jws.algorithm,
            pinned,
            expires_unix_ms,
            manifest: self.manifest,
        })
    }
}

/// Takes the JWS out of a JSON manifest.
fn take_jws(text: &str) -> Result<(String, Value), VerifyError> {
    let (mut document, manifest) = read_manifest(text.as_bytes())?;
    let has_jws = data_of(&manifest).is_some_and(|data| data.contains_key(member::SIGNED_MANIFEST));
    if !has_jws {
        return Err(VerifyError::Unsigned);
    }
    let data = document
        .get_mut("extensions")
        .and_then(|extensions| extensions.get_mut(aaep::extension::PREFIX))
        .and_then(Value::as_object_mut)
        .ok_or(VerifyError::Unsigned)?;
    match data.remove(member::SIGNED_MANIFEST) {
        Some(Value::String(jws)) => Ok((jws, document)),
        _ => Err(VerifyError::MalformedJws("it is not a string")),
    }
}

/// Reads a manifest as a subscriber does, and as unambiguous JSON.
fn read_manifest(bytes: &[u8]) -> Result<(Value, Manifest), VerifyError> {
    let value = strict_json::parse(bytes).map_err(|problem| match problem {
        NotStrict::DuplicateMember => VerifyError::DuplicateMember,
        NotStrict::NotJson => VerifyError::NotAManifest("It is not JSON.".to_owned()),
    })?;
    match aaep::read(bytes, Mode::Tolerant).into_result() {
        Ok(Message::Manifest(manifest)) => Ok((value, *manifest)),
        Ok(_) => Err(VerifyError::NotAManifest("It is another message.".to_owned())),
        Err(violations) => {
            let first = violations.into_iter().find(|it| it.severity == aaep::Severity::Error);
            Err(VerifyError::NotAManifest(
                first.map_or_else(String::new, |violation| violation.to_string()),
            ))
        }
    }
}

/// Checks that the manifest belongs to the producer that it was requested from (§10.4.2, step 4).
fn check_issuer(manifest: &Manifest, expected: &Expected<'_>) -> Result<(), VerifyError> {
    if let Some(agent_id) = expected.agent_id.filter(|it| **it != *manifest.agent_id) {
        return Err(VerifyError::IssuerMismatch {
            claimed: quoted(&manifest.agent_id),
            expected: quoted(agent_id),
        });
    }
    let home = data_of(manifest).and_then(|data| data.get(member::MANIFEST_URI));
    let (Some(home), Some(origin)) = (home, expected.origin) else { return Ok(()) };
    let home = home.as_str().unwrap_or_default();
    let belongs_here = HttpAddress::parse(home).is_ok_and(|address| address.origin() == origin);
    if belongs_here {
        Ok(())
    } else {
        Err(VerifyError::IssuerMismatch { claimed: quoted(home), expected: quoted(origin) })
    }
}

/// When the signature expires: our own member, or `exp` as in JWT, whichever is earlier.
fn expiry(payload: &Value, manifest: &Manifest) -> Result<Option<i64>, VerifyError> {
    let ours = match data_of(manifest).and_then(|data| data.get(member::EXPIRES_AT)) {
        None => None,
        Some(value) => {
            let moment = value.as_str().and_then(|text| Timestamp::parse(text).ok());
            let moment = moment.ok_or(VerifyError::ExpiryUnreadable)?;
            Some(moment.unix_us().div_euclid(1000))
        }
    };
    let jwt = match payload.get("exp") {
        None => None,
        Some(value) => {
            Some(value.as_i64().ok_or(VerifyError::ExpiryUnreadable)?.saturating_mul(1000))
        }
    };
    Ok(ours.into_iter().chain(jwt).min())
}
