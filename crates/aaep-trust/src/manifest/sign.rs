//! Signing a manifest (§10.4.1): a compact JWS whose payload is the manifest itself.
//!
//! The JWS is used in three places: in `signed_manifest` of `subscription.accepted`, at the manifest's URI for
//! requests that accept `application/jose`, and in `extensions.agentvoice` of the JSON manifest there, so that a
//! reader without JWS support still gets JSON, and one fetch is enough.

use std::fmt;
use std::time::Duration;

use aaep::extension::{CONTEXT, PREFIX};
use aaep::{CompactJws, Manifest, Message, Object, Prefix, Severity, Timestamp, Uri};

use super::{jws, member};
use crate::keys::{SigningKey, SigningKeyError};

/// The longest JWS in characters: the limit of §3.7 for a string in a message.
pub const MAX_JWS_CHARACTERS: usize = 16_384;

/// A manifest and its signature.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedManifest {
    /// The JWS, for `signed_manifest` and for `application/jose`.
    pub jws: CompactJws,
    /// The manifest with the JWS in `extensions.agentvoice.signed_manifest`, for `application/json`.
    pub document: Manifest,
}

/// Why a manifest was not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignError {
    /// Its JWS would have more than [`MAX_JWS_CHARACTERS`], or the document would exceed the limit for a message.
    TooLarge,
    /// The time or the expiry is outside the years that a timestamp can express.
    Time,
    /// The cryptographic library failed.
    Library(SigningKeyError),
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignError::TooLarge => f.write_str(
                "the manifest is too large to be signed; name fewer languages, endpoints or event types",
            ),
            SignError::Time => f.write_str(
                "the manifest would be valid into a year that cannot be written; choose fewer days",
            ),
            SignError::Library(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SignError {}

/// Signs a manifest as of now, valid for `valid_for`.
///
/// # Panics
/// Never: the constants are valid.
pub fn sign(
    manifest: &Manifest,
    key: &SigningKey,
    now_unix_ms: i64,
    valid_for: Duration,
) -> Result<SignedManifest, SignError> {
    let end_unix_ms =
        i64::try_from(valid_for.as_millis()).map_or(i64::MAX, |it| now_unix_ms.saturating_add(it));
    let moment = |unix_ms| Timestamp::from_unix_ms(unix_ms).ok_or(SignError::Time);
    let (issued, expires) = (moment(now_unix_ms)?, moment(end_unix_ms)?);
    let mut document = manifest.clone();
    let data = our_data(&mut document);
    data.remove(member::SIGNED_MANIFEST);
    data.insert(member::ISSUED_AT.to_owned(), issued.as_str().into());
    data.insert(member::EXPIRES_AT.to_owned(), expires.as_str().into());
    let payload =
        serde_json_canonicalizer::to_vec(&document).expect("a manifest can be written as JSON");
    let text = jws::write(&payload, key).map_err(SignError::Library)?;
    if text.len() > MAX_JWS_CHARACTERS {
        return Err(SignError::TooLarge);
    }
    let jws = CompactJws::parse(&text).map_err(|_| SignError::TooLarge)?;
    our_data(&mut document).insert(member::SIGNED_MANIFEST.to_owned(), text.into());
    let violations = aaep::check(&Message::Manifest(Box::new(document.clone())));
    if violations.iter().any(|violation| violation.severity == Severity::Error) {
        return Err(SignError::TooLarge);
    }
    Ok(SignedManifest { jws, document })
}

/// Our own data in a manifest, created and declared if it is missing.
fn our_data(manifest: &mut Manifest) -> &mut Object {
    let prefix = Prefix::parse(PREFIX).expect("a constant of the right form");
    manifest.context.declare(Uri::parse(CONTEXT).expect("a constant of the right form"));
    manifest.extensions.get_or_insert_default().0.entry(prefix).or_default()
}
