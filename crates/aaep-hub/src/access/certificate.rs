//! The principal behind a client certificate (§10.3.1, mutual TLS).
//!
//! TLS has already verified the certificate against the configured authority; this file verifies nothing. It
//! reads the names and the fingerprint with `x509-parser`. Matching by fingerprint alone would mean a new
//! configuration after every renewal, and most authorities renew often.

use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::access::principal::{HeardAgents, Principal, Scopes};
use crate::access::token::hex;

/// The most names that are read from a certificate. A certificate with more is refused.
pub const MAX_CERTIFICATE_NAMES: usize = 64;

/// The names and the fingerprint of a verified client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    sha256: String,
    names: Vec<CertificateName>,
}

/// A name in a certificate, or its fingerprint, as the configuration can match it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum CertificateName {
    /// The SHA-256 of the whole certificate, written as `sha256:` followed by 64 hexadecimal digits.
    Sha256(String),
    /// A DNS name among the alternative names, written `dns:laptop.example.org`.
    Dns(String),
    /// An email address among the alternative names, written `email:ada@example.org`.
    Email(String),
    /// A URI among the alternative names, written `uri:spiffe://example.org/reader`.
    Uri(String),
    /// The common name of the subject, written `cn:Ada`, for authorities that issue nothing better.
    CommonName(String),
}

impl TryFrom<String> for CertificateName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            "Write sha256:, dns:, email:, uri: or cn:, and then what the certificate says there."
                .to_owned()
        };
        let (kind, value) = text.split_once(':').ok_or_else(wrong)?;
        let value = value.trim().to_owned();
        if value.is_empty() || value.contains('*') {
            return Err("A name to match is written out in full, without an asterisk.".to_owned());
        }
        match kind {
            "sha256" => {
                let digits: String = value.chars().filter(|it| *it != ':').collect();
                if digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_hexdigit()) {
                    return Ok(CertificateName::Sha256(digits.to_ascii_lowercase()));
                }
                Err("A fingerprint has 64 hexadecimal digits. Colons between them may stay."
                    .to_owned())
            }
            "dns" => Ok(CertificateName::Dns(value.to_ascii_lowercase())),
            "email" => Ok(CertificateName::Email(value)),
            "uri" => Ok(CertificateName::Uri(value)),
            "cn" => Ok(CertificateName::CommonName(value)),
            _ => Err(wrong()),
        }
    }
}

/// Maps a client certificate to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateRule {
    /// The name or fingerprint that the certificate must have.
    #[serde(rename = "match")]
    pub matches: CertificateName,
    /// The name of the principal. Rules with the same name make the same principal.
    pub name: String,
    /// What the principal may do.
    pub scopes: Scopes,
    /// Which agents the principal hears.
    #[serde(default)]
    pub hears: HeardAgents,
    /// The people or groups that it belongs to. If empty, it belongs only to itself.
    #[serde(default, rename = "for")]
    pub owners: Vec<String>,
    /// The only agent names that it may use. If empty, it may use any name that nobody else holds.
    #[serde(default)]
    pub speaks_as: Vec<String>,
}

impl CertificateRule {
    pub(crate) fn principal(&self) -> Principal {
        // The expiry of a certificate is checked when it is used for a new connection.
        let principal =
            Principal::new(format!("certificate:{}", self.name), self.name.clone(), self.scopes);
        principal.with_rights(&self.hears, &self.owners, &self.speaks_as)
    }
}

impl ClientCertificate {
    /// Reads a certificate that TLS has verified, in DER.
    pub fn read(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, certificate) =
            X509Certificate::from_der(der).map_err(|_| CertificateError::Unreadable)?;
        if !rest.is_empty() {
            return Err(CertificateError::Unreadable);
        }
        let mut names = Vec::new();
        let mut common = certificate.subject().iter_common_name();
        if let (Some(name), None) = (common.next(), common.next())
            && let Ok(name) = name.as_str()
        {
            names.push(CertificateName::CommonName(name.to_owned()));
        }
        let alternative =
            certificate.subject_alternative_name().map_err(|_| CertificateError::Unreadable)?;
        for name in alternative.iter().flat_map(|it| &it.value.general_names) {
            if names.len() >= MAX_CERTIFICATE_NAMES {
                return Err(CertificateError::TooManyNames);
            }
            names.extend(match name {
                GeneralName::DNSName(it) => Some(CertificateName::Dns(it.to_ascii_lowercase())),
                GeneralName::RFC822Name(it) => Some(CertificateName::Email((*it).to_owned())),
                GeneralName::URI(it) => Some(CertificateName::Uri((*it).to_owned())),
                _ => None,
            });
        }
        Ok(ClientCertificate { sha256: hex(&Sha256::digest(der)), names })
    }

    /// The SHA-256 of the certificate in lower-case hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Whether the certificate has this name or fingerprint.
    pub fn is(&self, name: &CertificateName) -> bool {
        match name {
            CertificateName::Sha256(digits) => *digits == self.sha256,
            other => self.names.contains(other),
        }
    }
}

/// Why a certificate cannot identify a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateError {
    /// It is not an X.509 certificate.
    Unreadable,
    /// It has more than [`MAX_CERTIFICATE_NAMES`] names.
    TooManyNames,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CertificateError::Unreadable => {
                "The client certificate cannot be read. Let its authority issue a new one."
            }
            CertificateError::TooManyNames => {
                "The client certificate has too many names. Let its authority issue one with fewer."
            }
        })
    }
}

impl std::error::Error for CertificateError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn name(text: &str) -> CertificateName {
        CertificateName::try_from(text.to_owned()).expect("a name")
    }

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params =
            CertificateParams::new(vec!["Laptop.example.org".to_owned()]).expect("SAN");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn a_certificate_is_known_by_each_of_its_names() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "Ada");
            for san in [
                SanType::Rfc822Name("ada@example.org".try_into().expect("ASCII")),
                SanType::URI("spiffe://example.org/reader".try_into().expect("ASCII")),
            ] {
                params.subject_alt_names.push(san);
            }
        });
        let certificate = ClientCertificate::read(&der).expect("a certificate");
        let fingerprint = format!("sha256:{}", certificate.sha256().to_uppercase());
        for known in [
            "dns:laptop.EXAMPLE.org",
            "cn:Ada",
            "email:ada@example.org",
            "uri:spiffe://example.org/reader",
            &fingerprint,
        ] {
            assert!(certificate.is(&name(known)), "{known}");
        }
        for unknown in [
            "dns:example.org",
            "cn:ada",
            "cn:laptop.example.org",
            "dns:Ada",
            "email:Ada@example.org",
        ] {
            assert!(!certificate.is(&name(unknown)), "{unknown}");
        }
    }

    #[test]
    fn a_wildcard_in_a_certificate_stands_for_nobody_else() {
        let der = certificate(|params| {
            params.subject_alt_names =
                vec![SanType::DnsName("*.example.org".try_into().expect("ASCII"))];
        });
        let certificate = ClientCertificate::read(&der).expect("a certificate");
        assert!(!certificate.is(&name("dns:laptop.example.org")));
        assert!(CertificateName::try_from("dns:*.example.org".to_owned()).is_err());
    }

    #[test]
    fn too_many_names_are_refused() {
        let der = certificate(|params| {
            params.subject_alt_names = (0..=MAX_CERTIFICATE_NAMES)
                .map(|n| SanType::DnsName(format!("h{n}.example.org").try_into().expect("ASCII")))
                .collect();
        });
        assert_eq!(ClientCertificate::read(&der), Err(CertificateError::TooManyNames));
    }

    #[test]
    fn a_fingerprint_may_be_copied_from_openssl() {
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(name(&format!("sha256:{colons}")), CertificateName::Sha256("ab".repeat(32)));
        for wrong in ["sha256:ab", "sha1:ab", "Ada", "cn:", "cn: ", ":x"] {
            assert!(CertificateName::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_not_a_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(ClientCertificate::read(&bytes), Err(CertificateError::Unreadable));
        }

        #[test]
        fn a_damaged_certificate_never_panics(at in 0usize..300, byte: u8, keep in 0usize..400) {
            let mut der = certificate(|_| {});
            let at = at % der.len();
            der[at] = byte;
            der.truncate(keep.max(1));
            let _ = ClientCertificate::read(&der);
        }
    }
}
