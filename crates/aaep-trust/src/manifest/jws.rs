//! A compact JWS (RFC 7515), parsed with a header that leaves the sender no choice.
//!
//! The key is found by `kid` among keys that we hold. A header that contains a key or the address of one, or
//! requires rules that we do not know, is refused before anything is computed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::verify::VerifyError;
use crate::keys::{Algorithm, MAX_KID_BYTES, SigningKey, SigningKeyError};
use crate::strict_json::{self, NotStrict};

/// The `typ` that we write, so that a signed manifest cannot be mistaken for something else that the key signs.
pub(super) const TYPE: &str = "aaep-manifest+jws";

/// The longest header that is read, in bytes.
const MAX_HEADER_BYTES: usize = 4096;

/// Header members by which a sender could choose the key or change the rules.
const FORBIDDEN: &[&str] = &["jku", "jwk", "x5u", "x5c", "crit", "b64", "zip"];

/// The accepted `typ` values of a signed manifest, without `application/`. The specification's own example uses
/// JWT.
const TYPES: &[&str] = &[TYPE, "jose", "jwt"];

/// A JWS whose parts are well formed. Nothing is verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedJws {
    pub(super) algorithm: Algorithm,
    pub(super) kid: String,
    pub(super) payload: Vec<u8>,
    pub(super) signature: Vec<u8>,
    /// Header and payload as they were written, which is what the signature covers.
    pub(super) signed: Vec<u8>,
}

impl ParsedJws {
    pub(super) fn parse(text: &str) -> Result<Self, VerifyError> {
        let malformed = VerifyError::MalformedJws;
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed("it does not have three parts with dots between them"));
        };
        if header.len() > MAX_HEADER_BYTES {
            return Err(malformed("its header is too long"));
        }
        let decode = |part: &str, why| URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed(why));
        let header_bytes = decode(header, "its header is not base64url")?;
        let (algorithm, kid) = read_header(&header_bytes)?;
        let payload_bytes = decode(payload, "its payload is not base64url")?;
        let signature = decode(signature, "its signature is not base64url")?;
        let signed = format!("{header}.{payload}").into_bytes();
        Ok(ParsedJws { algorithm, kid, payload: payload_bytes, signature, signed })
    }
}

fn read_header(bytes: &[u8]) -> Result<(Algorithm, String), VerifyError> {
    let header = match strict_json::parse(bytes) {
        Ok(Value::Object(header)) => header,
        Err(NotStrict::DuplicateMember) => return Err(VerifyError::DuplicateMember),
        Ok(_) | Err(NotStrict::NotJson) => {
            return Err(VerifyError::MalformedJws("its header is not a JSON object"));
        }
    };
    if let Some(name) = FORBIDDEN.iter().find(|name| header.contains_key(**name)) {
        return Err(VerifyError::ForbiddenHeader(name));
    }
    check_type(&header)?;
    let Some(Value::String(name)) = header.get("alg") else {
        return Err(VerifyError::MalformedJws("its header names no algorithm"));
    };
    let algorithm = Algorithm::parse(name)
        .ok_or_else(|| VerifyError::AlgorithmNotAllowed(name.chars().take(64).collect()))?;
    match header.get("kid").and_then(Value::as_str) {
        Some(kid) if (1..=MAX_KID_BYTES).contains(&kid.len()) => Ok((algorithm, kid.to_owned())),
        _ => Err(VerifyError::NoKid),
    }
}

fn check_type(header: &Map<String, Value>) -> Result<(), VerifyError> {
    let Some(value) = header.get("typ") else { return Ok(()) };
    let name = value.as_str().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_prefix("application/").unwrap_or(&name);
    if TYPES.contains(&name) {
        Ok(())
    } else {
        Err(VerifyError::MalformedJws("its type says that it is not a manifest"))
    }
}

/// Signs a payload.
pub(super) fn write(payload: &[u8], key: &SigningKey) -> Result<String, SigningKeyError> {
    let header =
        format!("{{\"alg\":\"{}\",\"kid\":\"{}\",\"typ\":\"{TYPE}\"}}", key.algorithm(), key.kid());
    let mut text =
        format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = key.sign(text.as_bytes())?;
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut text);
    Ok(text)
}
