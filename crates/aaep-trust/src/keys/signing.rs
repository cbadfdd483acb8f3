//! A private key: made here, stored as PKCS #8 in PEM, used to sign. It is never written anywhere else.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use super::algorithm::{Algorithm, SigningAlgorithm};
use super::public::{PublicKey, Thumbprint};

/// The length of a line of base64 in PEM (RFC 7468).
const PEM_LINE: usize = 64;

/// A key that signs.
pub struct SigningKey {
    pair: SigningPair,
    public: PublicKey,
}

enum SigningPair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningKeyError {
    /// The text is not PKCS #8 in PEM, or its key is not for ES256 or `EdDSA`.
    Unusable,
    /// The cryptographic library could not make a key or a signature, for lack of randomness or memory.
    Library,
}

impl fmt::Display for SigningKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SigningKeyError::Unusable => {
                "the file holds no private key for ES256 or EdDSA in PKCS 8 PEM; put it back from a \
                 copy, or make a new key with: aaep keys new"
            }
            SigningKeyError::Library => {
                "the cryptographic library gave up, for want of randomness or memory; try again"
            }
        })
    }
}

impl std::error::Error for SigningKeyError {}

/// Shows the id of the key, never the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid()).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes a new key.
    pub fn generate(algorithm: SigningAlgorithm) -> Result<Self, SigningKeyError> {
        let pair = match algorithm {
            SigningAlgorithm::Es256 => {
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(SigningPair::P256)
            }
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate().map(SigningPair::Ed25519),
        };
        Self::of_pair(pair.map_err(|_| SigningKeyError::Library)?)
    }

    /// Reads a key from PKCS #8 in PEM.
    pub fn from_pem(text: &[u8]) -> Result<Self, SigningKeyError> {
        let der =
            PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| SigningKeyError::Unusable)?;
        let der = der.secret_pkcs8_der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .map(SigningPair::P256)
            .or_else(|_| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(SigningPair::Ed25519));
        Self::of_pair(pair.map_err(|_| SigningKeyError::Unusable)?)
    }

    fn of_pair(pair: SigningPair) -> Result<Self, SigningKeyError> {
        let public = match &pair {
            SigningPair::P256(pair) => {
                let point = pair.public_key().as_ref();
                let coordinate = |range| {
                    let bytes: Option<&[u8]> = point.get::<std::ops::Range<usize>>(range);
                    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(SigningKeyError::Unusable)
                };
                PublicKey::P256 { x: coordinate(1..33)?, y: coordinate(33..65)? }
            }
            SigningPair::Ed25519(pair) => {
                let bytes = pair.public_key().as_ref();
                PublicKey::Ed25519 { x: bytes.try_into().map_err(|_| SigningKeyError::Unusable)? }
            }
        };
        Ok(SigningKey { pair, public })
    }

    /// The key as PKCS #8 in PEM: the secret itself, for a private file only.
    pub(super) fn to_pem(&self) -> Result<String, SigningKeyError> {
        let der = match &self.pair {
            SigningPair::P256(pair) => pair.to_pkcs8v1(),
            SigningPair::Ed25519(pair) => pair.to_pkcs8v1(),
        };
        let encoded = STANDARD.encode(der.map_err(|_| SigningKeyError::Library)?.as_ref());
        let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
        for line in encoded.as_bytes().chunks(PEM_LINE) {
            pem.extend(line.iter().copied().map(char::from).chain(['\n']));
        }
        pem.push_str("-----END PRIVATE KEY-----\n");
        Ok(pem)
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The id of the key: its thumbprint.
    pub fn kid(&self) -> Thumbprint {
        self.public.thumbprint()
    }

    /// The algorithm that it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// Signs these bytes. An ES256 signature is its two numbers concatenated, as in JWS.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningKeyError> {
        let signature = match &self.pair {
            SigningPair::P256(pair) => pair.sign(&SystemRandom::new(), message),
            SigningPair::Ed25519(pair) => pair.try_sign(message),
        };
        Ok(signature.map_err(|_| SigningKeyError::Library)?.as_ref().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_pem_and_signs_the_same() {
        for algorithm in [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa] {
            let key = SigningKey::generate(algorithm).expect("a key");
            let pem = key.to_pem().expect("PEM");
            let again = SigningKey::from_pem(pem.as_bytes()).expect("the same key");
            assert_eq!(again.public(), key.public());
            let signature = again.sign(b"words").expect("a signature");
            assert_eq!(signature.len(), 64);
            assert!(key.public().has_signed(b"words", &signature));
            assert!(!key.public().has_signed(b"other words", &signature));
        }
    }

    #[test]
    fn debugging_shows_no_secret() {
        let key = SigningKey::generate(SigningAlgorithm::EdDsa).expect("a key");
        let pem = key.to_pem().expect("PEM");
        let secret = pem.lines().nth(1).expect("base64");
        let shown = format!("{key:?}");
        assert!(shown.contains(key.kid().as_str()) && !shown.contains(&secret[24..]), "{shown}");
    }

    #[test]
    fn garbage_is_not_a_key() {
        let key = SigningKey::generate(SigningAlgorithm::Es256).expect("a key");
        let pem = key.to_pem().expect("PEM");
        let cut = &pem.as_bytes()[..pem.len() / 2];
        let empty = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for text in [&b""[..], b"\xff\xfe", cut, empty] {
            assert_eq!(SigningKey::from_pem(text).err(), Some(SigningKeyError::Unusable));
        }
    }
}
