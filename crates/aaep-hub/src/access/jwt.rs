//! Signed tokens of a configured issuer (§10.3.1, RFC 7519, RFC 8725).
//!
//! The issuer, the audience and the algorithms come from the configuration; the algorithm of a key comes
//! from the key. A token is accepted only if all agree. The algorithm `none` and shared secrets are never
//! accepted, and nothing that a token's header points at is ever fetched.

use std::fmt;

use aaep_engine::Now;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde::Deserialize;

use crate::access::jwks::{IssuerKey, IssuerKeys, IssuerKeysError, JwksSource};
use crate::access::principal::{
    HeardAgents, HearsText, Principal, Scope, Scopes, is_name, name_list,
};

/// The largest accepted difference between the clocks of issuer and hub.
pub const CLOCK_SKEW_SECONDS: i64 = 60;
/// The longest name of a key, in bytes.
const MAX_KID_BYTES: usize = 256;

/// Which signed tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtConfig {
    /// The issuer, exactly as in the claim `iss`.
    pub issuer: String,
    /// The value that the claim `aud` must contain.
    pub audience: String,
    /// The accepted signature algorithms.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The issuer's keys, if they are in a file.
    #[serde(default)]
    pub jwks_file: Option<std::path::PathBuf>,
    /// The issuer's keys, if they are on the network: an https address, or an address on this machine.
    #[serde(default)]
    pub jwks_uri: Option<String>,
    /// The prefix of our scope names in the claim `scope`, such as `aaep:`.
    #[serde(default)]
    pub scope_prefix: String,
    /// Which agents the holders hear, unless the claim `aaep_hears` says.
    #[serde(default)]
    pub hears: HeardAgents,
    /// The people or groups that the holders belong to, unless the claim `aaep_for` says. If empty, each
    /// holder belongs to itself.
    #[serde(default, rename = "for")]
    pub owners: Vec<String>,
}

/// A signature algorithm that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum JwtAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// RSA PKCS 1 with SHA-256 and at least 2048 bits.
    #[serde(rename = "RS256")]
    Rs256,
}

impl From<JwtAlgorithm> for Algorithm {
    fn from(algorithm: JwtAlgorithm) -> Self {
        match algorithm {
            JwtAlgorithm::Es256 => Algorithm::ES256,
            JwtAlgorithm::EdDsa => Algorithm::EdDSA,
            JwtAlgorithm::Rs256 => Algorithm::RS256,
        }
    }
}

/// Why a signed token was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwtError {
    /// It is not a signed token, or its algorithm is insecure.
    Malformed,
    /// Its algorithm is not configured.
    Algorithm,
    /// It requires an extension that the hub does not know.
    Critical,
    /// The issuer has no matching key.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// A claim is missing or has the wrong form.
    Claims,
    /// It comes from another issuer.
    Issuer,
    /// It is meant for another audience.
    Audience,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// It names no scope of this hub.
    NoScopes,
    /// The issuer's keys are not available.
    Keys(IssuerKeysError),
}

impl fmt::Display for JwtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JwtError::Malformed => "This is not a signed token. Get a new one from the issuer.",
            JwtError::Algorithm => {
                "The token is signed in a way that is not configured. Check the setting algorithms."
            }
            JwtError::Critical => {
                "The token needs an extension that is unknown here. Get one without."
            }
            JwtError::UnknownKey => {
                "The issuer has no key of this name. Check that the keys are those of the issuer."
            }
            JwtError::Signature => "The signature of the token is wrong. Get a new one.",
            JwtError::Claims => {
                "The token lacks a claim or has one of the wrong form. It needs iss, aud, sub, exp and scope."
            }
            JwtError::Issuer => "The token is of another issuer. Check the setting issuer.",
            JwtError::Audience => "The token is for someone else. Check the setting audience.",
            JwtError::Expired => "The token has expired. Get a new one, and check the clock.",
            JwtError::NotYet => "The token is not valid yet. Check the clock.",
            JwtError::NoScopes => {
                "The token names no scope of this hub. Let the issuer add listen, reply, publish or admin."
            }
            JwtError::Keys(error) => return error.fmt(f),
        })
    }
}

impl std::error::Error for JwtError {}

#[derive(Deserialize)]
struct JwtClaims {
    iss: String,
    aud: AudienceClaim,
    sub: String,
    exp: f64,
    nbf: Option<f64>,
    #[serde(default)]
    scope: String,
    aaep_hears: Option<HearsText>,
    aaep_for: Option<Vec<String>>,
    aaep_speaks_as: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AudienceClaim {
    One(String),
    Several(Vec<String>),
}

impl AudienceClaim {
    fn names(&self, audience: &str) -> bool {
        match self {
            AudienceClaim::One(it) => it == audience,
            AudienceClaim::Several(them) => them.iter().any(|it| it == audience),
        }
    }
}

/// The trusted issuer and its keys.
#[derive(Debug)]
pub(crate) struct JwtIssuer {
    config: JwtConfig,
    keys: IssuerKeys,
}

impl JwtIssuer {
    pub(crate) fn new(config: JwtConfig, source: Box<dyn JwksSource>) -> Self {
        JwtIssuer { config, keys: IssuerKeys::new(source) }
    }

    /// Returns the principal that holds this token.
    pub(crate) fn verify(&self, token: &str, now: Now) -> Result<Principal, JwtError> {
        let header = decode_header(token).map_err(|_| JwtError::Malformed)?;
        let algorithms = &self.config.algorithms;
        if !algorithms.iter().any(|it| Algorithm::from(*it) == header.alg) {
            return Err(JwtError::Algorithm);
        }
        if header.crit.is_some() {
            return Err(JwtError::Critical);
        }
        if header.kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID_BYTES) {
            return Err(JwtError::UnknownKey);
        }
        let is_wanted = |key: &IssuerKey| {
            key.algorithm == header.alg
                && header.kid.as_ref().is_none_or(|kid| key.kid.as_ref() == Some(kid))
        };
        let keys = self.keys.get(now.monotonic_us, is_wanted).map_err(JwtError::Keys)?;
        let wanted: Vec<&IssuerKey> = keys.iter().filter(|key| is_wanted(key)).collect();
        // Without a name the key must be unambiguous, or a token could be tried against all of them.
        if wanted.is_empty() || header.kid.is_none() && wanted.len() > 1 {
            return Err(JwtError::UnknownKey);
        }
        let mut outcome = Err(JwtError::UnknownKey);
        for key in wanted {
            outcome = verified_claims(token, key);
            if !matches!(outcome, Err(JwtError::Signature)) {
                break;
            }
        }
        self.principal_from(outcome?, now)
    }

    /// Turns the claims of a token with a valid signature into a principal.
    fn principal_from(&self, claims: JwtClaims, now: Now) -> Result<Principal, JwtError> {
        if claims.iss != self.config.issuer {
            return Err(JwtError::Issuer);
        }
        if !claims.aud.names(&self.config.audience) {
            return Err(JwtError::Audience);
        }
        let is_past = |seconds: f64| micros(seconds) <= now.unix_us;
        let skew = f64::from(i32::try_from(CLOCK_SKEW_SECONDS).unwrap_or(0));
        if is_past(claims.exp + skew) {
            return Err(JwtError::Expired);
        }
        if claims.nbf.is_some_and(|nbf| !is_past(nbf - skew)) {
            return Err(JwtError::NotYet);
        }
        if !is_name(&claims.sub) {
            return Err(JwtError::Claims);
        }
        let scope = |word: &str| Scope::named(word.strip_prefix(&self.config.scope_prefix)?);
        let scopes: Scopes = claims.scope.split(' ').filter_map(scope).collect();
        if scopes.is_empty() {
            return Err(JwtError::NoScopes);
        }
        let hears = match claims.aaep_hears {
            Some(hears) => HeardAgents::try_from(hears).map_err(|_| JwtError::Claims)?,
            None => self.config.hears.clone(),
        };
        let names = |names| name_list(names).map_err(|_| JwtError::Claims);
        let owners = names(claims.aaep_for.unwrap_or_else(|| self.config.owners.clone()))?;
        let speaks_as = claims.aaep_speaks_as.map(names).transpose()?;
        let mut principal = Principal::new(format!("jwt:{}", claims.sub), claims.sub, scopes);
        if !owners.is_empty() {
            principal.owners = owners;
        }
        let until_unix_us = Some(micros(claims.exp + skew));
        Ok(Principal { hears, speaks_as, until_unix_us, ..principal })
    }
}

/// The claims, if the signature is right. The caller checks issuer, audience and time, with its own clock.
fn verified_claims(token: &str, key: &IssuerKey) -> Result<JwtClaims, JwtError> {
    let mut validation = Validation::new(key.algorithm);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    match decode::<JwtClaims>(token, &key.public, &validation) {
        Ok(token) => Ok(token.claims),
        Err(error) => Err(match error.kind() {
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => JwtError::Claims,
            ErrorKind::Base64(_) | ErrorKind::InvalidToken => JwtError::Malformed,
            ErrorKind::InvalidAlgorithm => JwtError::Algorithm,
            _ => JwtError::Signature,
        }),
    }
}

/// Converts seconds to microseconds, saturating at the ends of the range.
fn micros(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float is cut to the nearest that fits")]
    let micros = (seconds * 1_000_000.0) as i64;
    micros
}

#[cfg(test)]
mod tests;
