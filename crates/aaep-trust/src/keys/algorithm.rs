//! The signature algorithms of §10.4.1: those that we sign with, and those that we accept.
//!
//! All others, including `none` and every shared-secret algorithm, have no name here and can therefore not be
//! requested.

use std::fmt;

/// An algorithm whose signatures we verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA on the curve P-256 with SHA-256, which §10.4.1 recommends.
    Es256,
    /// Ed25519.
    EdDsa,
    /// RSA with PKCS #1 padding and SHA-256. We verify it for other producers and never sign with it.
    Rs256,
}

impl Algorithm {
    /// Parses the name in a JWS header, if we accept it. RFC 9864 calls Ed25519 by its own name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "ES256" => Some(Algorithm::Es256),
            "EdDSA" | "Ed25519" => Some(Algorithm::EdDsa),
            "RS256" => Some(Algorithm::Rs256),
            _ => None,
        }
    }

    /// The name as we write it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Rs256 => "RS256",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An algorithm that we make keys for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SigningAlgorithm {
    /// ECDSA on the curve P-256 with SHA-256, which §10.4.1 recommends.
    #[default]
    Es256,
    /// Ed25519.
    EdDsa,
}

impl From<SigningAlgorithm> for Algorithm {
    fn from(algorithm: SigningAlgorithm) -> Self {
        match algorithm {
            SigningAlgorithm::Es256 => Algorithm::Es256,
            SigningAlgorithm::EdDsa => Algorithm::EdDsa,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_key_algorithms_have_a_name() {
        for name in ["none", "None", "HS256", "HS384", "HS512", "es256", "ES384", "PS256", ""] {
            assert_eq!(Algorithm::parse(name), None, "{name}");
        }
        for algorithm in [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256] {
            assert_eq!(Algorithm::parse(algorithm.name()), Some(algorithm));
        }
    }
}
