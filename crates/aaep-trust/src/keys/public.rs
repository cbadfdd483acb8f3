//! A public key, its RFC 7638 thumbprint, and the verification of its signatures.
//!
//! The thumbprint is computed from the key itself, never taken from a name that someone gives the key.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::algorithm::Algorithm;

/// The length of an RSA modulus in bytes, 2048 to 8192 bits.
const RSA_MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// The longest RSA exponent in bytes.
const MAX_RSA_EXPONENT_BYTES: usize = 8;

/// The RFC 7638 thumbprint of a key: SHA-256 over its canonical JWK, in base64url.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thumbprint(String);

impl Thumbprint {
    /// Parses a thumbprint: 43 characters of base64url that stand for 32 bytes.
    pub fn parse(text: &str) -> Result<Self, NotAThumbprint> {
        match URL_SAFE_NO_PAD.decode(text) {
            Ok(bytes) if bytes.len() == 32 => Ok(Thumbprint(text.to_owned())),
            _ => Err(NotAThumbprint),
        }
    }

    /// The thumbprint as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Thumbprint {
    type Err = NotAThumbprint;

    fn from_str(text: &str) -> Result<Self, NotAThumbprint> {
        Thumbprint::parse(text)
    }
}

/// The text is not a thumbprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAThumbprint;

impl fmt::Display for NotAThumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not a thumbprint; copy all 43 characters, letters, digits, - and _")
    }
}

impl std::error::Error for NotAThumbprint {}

/// A public key of one of the three kinds that we verify with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// A point on the curve P-256.
    P256 {
        /// The first coordinate.
        x: [u8; 32],
        /// The second coordinate.
        y: [u8; 32],
    },
    /// An Ed25519 key.
    Ed25519 {
        /// The key.
        x: [u8; 32],
    },
    /// An RSA key of 2048 to 8192 bits.
    Rsa {
        /// The modulus, without leading zeros.
        n: Vec<u8>,
        /// The exponent, without leading zeros.
        e: Vec<u8>,
    },
}

/// Why a JWK does not give a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwkProblem {
    /// It is of a kind that we do not use, but others may.
    OtherKind,
    /// It is of a kind that we use, but not well formed.
    Malformed,
}

impl PublicKey {
    /// Reads the key of a JWK (RFC 7517). Members that do not belong to the key itself are ignored.
    pub fn from_jwk(jwk: &Map<String, Value>) -> Result<Self, JwkProblem> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| {
            let text = text(name).ok_or(JwkProblem::Malformed)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| JwkProblem::Malformed)
        };
        let coordinate =
            |name: &str| bytes(name)?.try_into().map_err(|_: Vec<u8>| JwkProblem::Malformed);
        match (text("kty"), text("crv")) {
            (Some("EC"), Some("P-256")) => {
                Ok(PublicKey::P256 { x: coordinate("x")?, y: coordinate("y")? })
            }
            (Some("OKP"), Some("Ed25519")) => Ok(PublicKey::Ed25519 { x: coordinate("x")? }),
            (Some("RSA"), _) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                let is_right = RSA_MODULUS_BYTES.contains(&n.len())
                    && (1..=MAX_RSA_EXPONENT_BYTES).contains(&e.len())
                    && n.first() != Some(&0)
                    && e.first() != Some(&0);
                if is_right { Ok(PublicKey::Rsa { n, e }) } else { Err(JwkProblem::Malformed) }
            }
            _ => Err(JwkProblem::OtherKind),
        }
    }

    /// The key as a JWK with only the members that its thumbprint covers.
    pub fn to_jwk(&self) -> Map<String, Value> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let jwk = match self {
            PublicKey::P256 { x, y } => {
                json!({ "crv": "P-256", "kty": "EC", "x": encode(x), "y": encode(y) })
            }
            PublicKey::Ed25519 { x } => json!({ "crv": "Ed25519", "kty": "OKP", "x": encode(x) }),
            PublicKey::Rsa { n, e } => json!({ "e": encode(e), "kty": "RSA", "n": encode(n) }),
        };
        match jwk {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The thumbprint of the key (RFC 7638).
    pub fn thumbprint(&self) -> Thumbprint {
        let mut members: Vec<(String, Value)> = self.to_jwk().into_iter().collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        let text: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let digest = Sha256::digest(format!("{{{}}}", text.join(",")));
        Thumbprint(URL_SAFE_NO_PAD.encode(digest))
    }

    /// The one algorithm that the key is for.
    pub const fn algorithm(&self) -> Algorithm {
        match self {
            PublicKey::P256 { .. } => Algorithm::Es256,
            PublicKey::Ed25519 { .. } => Algorithm::EdDsa,
            PublicKey::Rsa { .. } => Algorithm::Rs256,
        }
    }

    /// Whether the holder of this key signed exactly these bytes.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::P256 { x, y } => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(x);
                point[33..].copy_from_slice(y);
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            PublicKey::Ed25519 { x } => {
                UnparsedPublicKey::new(&ED25519, x).verify(message, signature)
            }
            PublicKey::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
        }
        .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(jwk: Value) -> Result<PublicKey, JwkProblem> {
        match jwk {
            Value::Object(members) => PublicKey::from_jwk(&members),
            _ => unreachable!("tests pass objects"),
        }
    }

    #[test]
    fn the_thumbprint_is_that_of_the_published_examples() {
        // RFC 8037, appendices A.2 and A.3.
        let okp = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let found = key(okp).expect("a key").thumbprint();
        assert_eq!(found.as_str(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn coordinates_of_another_length_are_refused() {
        let short = URL_SAFE_NO_PAD.encode([1; 31]);
        let right = URL_SAFE_NO_PAD.encode([1; 32]);
        for (x, y) in [(&short, &right), (&right, &short)] {
            let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
            assert_eq!(key(jwk), Err(JwkProblem::Malformed));
        }
        let small = URL_SAFE_NO_PAD.encode([255; 128]);
        let weak = json!({ "kty": "RSA", "n": small, "e": "AQAB" });
        assert_eq!(key(weak), Err(JwkProblem::Malformed), "1024 bits are too few");
        let other = json!({ "kty": "EC", "crv": "P-384", "x": right, "y": right });
        assert_eq!(key(other), Err(JwkProblem::OtherKind));
        assert_eq!(key(json!({ "kty": "oct", "k": right })), Err(JwkProblem::OtherKind));
    }

    #[test]
    fn a_point_off_the_curve_has_signed_nothing() {
        let key = PublicKey::P256 { x: [1; 32], y: [1; 32] };
        assert!(!key.has_signed(b"anything", &[1; 64]));
        assert!(!key.has_signed(b"anything", &[]));
        assert!(!PublicKey::Ed25519 { x: [0; 32] }.has_signed(b"anything", &[0; 64]));
    }

    #[test]
    fn a_thumbprint_is_32_bytes() {
        assert!(Thumbprint::parse("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k").is_ok());
        for wrong in
            ["", "../../../etc/passwd", "kPrK", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k="]
        {
            assert_eq!(Thumbprint::parse(wrong), Err(NotAThumbprint), "{wrong}");
        }
    }
}
