//! The ways in which a signed manifest can be wrong, in words that say what to do.

use std::fmt;

use aaep::Timestamp;

use crate::keys::{Algorithm, Thumbprint};
use crate::quoted;

/// Why a signed manifest is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyError {
    /// It has more bytes than [`super::MAX_MANIFEST_BYTES`].
    TooLarge,
    /// It is a manifest without a signature.
    Unsigned,
    /// It, or the signed payload, is not a manifest; with the first error.
    NotAManifest(String),
    /// An object in it has the same member twice.
    DuplicateMember,
    /// The signature is not a compact JWS; with the reason, to follow a colon.
    MalformedJws(&'static str),
    /// The header of the signature contains a key, the address of one, or rules of its own.
    ForbiddenHeader(&'static str),
    /// The signature uses an algorithm that proves nothing or that we do not accept, such as `none`.
    AlgorithmNotAllowed(String),
    /// The signature names no key.
    NoKid,
    /// The signature names a key that the key set does not have.
    UnknownKid(String),
    /// The signature names an algorithm that does not belong to the key.
    AlgorithmNotOfKey {
        /// The algorithm in the header.
        named: Algorithm,
        /// The algorithm of the key.
        of_key: Algorithm,
    },
    /// The key did not sign these bytes: they were changed, or another key signed.
    WrongSignature,
    /// The content of the JSON manifest differs from the JWS that it carries.
    ContentDiffers,
    /// The producer is not known by this key.
    NotPinned {
        /// The key that signed.
        found: Thumbprint,
        /// The keys that the producer is known by.
        pinned: Vec<Thumbprint>,
        /// Where the manifest was fetched from.
        origin: Option<String>,
    },
    /// The manifest belongs to somebody else. Both texts are already quoted.
    IssuerMismatch {
        /// The owner that the manifest claims.
        claimed: String,
        /// The expected owner.
        expected: String,
    },
    /// The signature has expired.
    Expired {
        /// When it expired.
        expired_unix_ms: i64,
    },
    /// The expiry of the signature cannot be read.
    ExpiryUnreadable,
}

impl VerifyError {
    /// A stable name for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            VerifyError::TooLarge => "too_large",
            VerifyError::Unsigned => "unsigned",
            VerifyError::NotAManifest(_) => "not_a_manifest",
            VerifyError::DuplicateMember => "duplicate_member",
            VerifyError::MalformedJws(_) => "malformed_jws",
            VerifyError::ForbiddenHeader(_) => "forbidden_header",
            VerifyError::AlgorithmNotAllowed(_) => "algorithm_not_allowed",
            VerifyError::NoKid => "no_kid",
            VerifyError::UnknownKid(_) => "unknown_kid",
            VerifyError::AlgorithmNotOfKey { .. } => "algorithm_not_of_key",
            VerifyError::WrongSignature => "wrong_signature",
            VerifyError::ContentDiffers => "content_differs",
            VerifyError::NotPinned { .. } => "not_pinned",
            VerifyError::IssuerMismatch { .. } => "issuer_mismatch",
            VerifyError::Expired { .. } => "expired",
            VerifyError::ExpiryUnreadable => "expiry_unreadable",
        }
    }
}

const DO_NOT_TRUST: &str =
    "Do not trust this producer until the people who run it have explained it.";

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::TooLarge => {
                let limit = super::MAX_MANIFEST_BYTES;
                write!(f, "The manifest has more than {limit} bytes. Ask for a smaller one.")
            }
            VerifyError::Unsigned => f.write_str(
                "The manifest is not signed, so anyone could have written it. Ask the people who \
                 run the producer to sign it.",
            ),
            VerifyError::NotAManifest(problem) => {
                write!(
                    f,
                    "This is not a valid manifest. {problem} Check that the address is right."
                )
            }
            VerifyError::DuplicateMember => write!(
                f,
                "The same member stands in an object twice, so readers would disagree about what \
                 was signed. {DO_NOT_TRUST}"
            ),
            VerifyError::MalformedJws(why) => {
                write!(f, "The signature is not a compact JWS: {why}. {DO_NOT_TRUST}")
            }
            VerifyError::ForbiddenHeader(name) => write!(
                f,
                "The header of the signature has {name}, by which a forger could choose the key \
                 or the rules. {DO_NOT_TRUST}"
            ),
            VerifyError::AlgorithmNotAllowed(name) => write!(
                f,
                "The signature uses the algorithm {}, which is not taken. Ask the people who run \
                 the producer to sign with ES256, EdDSA or RS256.",
                quoted(name)
            ),
            VerifyError::NoKid => f.write_str(
                "The signature does not say which key made it. Ask the people who run the \
                 producer to name the key in kid.",
            ),
            VerifyError::UnknownKid(kid) => write!(
                f,
                "The signature is by key {}, which the key set does not have. The key may be \
                 retired. Try again later; if it stays so, ask the people who run the producer.",
                quoted(kid)
            ),
            VerifyError::AlgorithmNotOfKey { named, of_key } => {
                write!(f, "The signature says {named}, but its key is for {of_key}. {DO_NOT_TRUST}")
            }
            VerifyError::WrongSignature => write!(
                f,
                "The signature does not fit: the manifest was changed after it was signed, or \
                 another key signed it. {DO_NOT_TRUST}"
            ),
            VerifyError::ContentDiffers => {
                write!(f, "The manifest says something else than what was signed. {DO_NOT_TRUST}")
            }
            VerifyError::NotPinned { found, pinned, origin } => {
                not_pinned(f, found, pinned, origin.as_deref())
            }
            VerifyError::IssuerMismatch { claimed, expected } => write!(
                f,
                "The manifest belongs to {claimed}, but it was expected from {expected}. It may \
                 be a copy. {DO_NOT_TRUST}"
            ),
            VerifyError::Expired { expired_unix_ms } => write!(
                f,
                "The signature expired at {}. Check the clock of this computer; if it is right, \
                 ask the people who run the producer to sign again.",
                Timestamp::from_unix_ms(*expired_unix_ms)
                    .map_or_else(|| "a time long past".to_owned(), |at| at.as_str().to_owned())
            ),
            VerifyError::ExpiryUnreadable => {
                write!(f, "It cannot be read when the signature expires. {DO_NOT_TRUST}")
            }
        }
    }
}

fn not_pinned(
    f: &mut fmt::Formatter<'_>,
    found: &Thumbprint,
    pinned: &[Thumbprint],
    origin: Option<&str>,
) -> fmt::Result {
    let known: Vec<&str> = pinned.iter().map(Thumbprint::as_str).collect();
    let origin = origin.map_or_else(|| "URL".into(), aaep::printable);
    write!(
        f,
        "WARNING: the key has changed. The manifest is signed by key {found}, but this producer \
         is known by key {}. Someone may be pretending to be this producer. Ask the people who \
         run it, over another channel, whether {found} is their key. Only if they say so, accept \
         it with: aaep manifest verify {origin} --pin {found} --trust-first",
        known.join(", or key ")
    )
}

impl std::error::Error for VerifyError {}
