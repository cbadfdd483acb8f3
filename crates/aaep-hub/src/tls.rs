//! TLS of the hub: certificates, keys and client authorities from files (§8.2.8, §10.1.2).
//!
//! It uses rustls with aws-lc-rs, TLS 1.2 and 1.3. The configuration is built completely or not at all, so a
//! failed renewal leaves the old one in use. Nothing here opens a socket or reads a clock.

mod error;
mod pem;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::Deserialize;
use x509_parser::prelude::{FromDer as _, X509Certificate};

pub use error::{TlsError, TlsWarning};
pub use pem::{MAX_CERTIFICATES, MAX_PEM_BYTES};
pub use stamp::TlsStamp;

/// HTTP/1.1 in ALPN.
const HTTP1: &[u8] = b"http/1.1";
/// HTTP/2 in ALPN.
#[cfg(feature = "grpc")]
pub(crate) const HTTP2: &[u8] = b"h2";
/// A certificate that expires within this many days causes a warning.
const SOON_DAYS: i64 = 14;
const DAY_S: i64 = 86_400;

/// The table `[tls]`: the paths of the files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The hub's certificate, followed by the intermediate ones, in PEM.
    pub certificate: PathBuf,
    /// The private key of the certificate, in PEM, without a passphrase.
    pub private_key: PathBuf,
    /// The authorities whose client certificates are accepted, in PEM. Without it, clients are not asked for
    /// one.
    #[serde(default)]
    pub client_authority: Option<PathBuf>,
    /// Whether clients may connect without a certificate all the same.
    #[serde(default)]
    pub client_certificate: ClientCertificatePolicy,
}

/// Whether a client needs a certificate, where client authorities are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificatePolicy {
    /// A connection needs a valid certificate.
    #[default]
    Required,
    /// A client without a certificate may present a token instead. An invalid certificate is refused.
    Optional,
}

/// A TLS configuration, ready for use.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The configuration for new connections.
    pub config: Arc<ServerConfig>,
    /// Problems that do not prevent its use.
    pub warnings: Vec<TlsWarning>,
    /// The state of the files that it was built from.
    pub stamp: TlsStamp,
}

impl TlsFiles {
    /// Builds TLS from the current files. The time is used only for warnings.
    pub fn build(&self, unix_s: i64) -> Result<Tls, TlsError> {
        // The stamp is taken first, so that a change in between is noticed the next time.
        let stamp = self.stamp();
        let chain = pem::certificates(&self.certificate)?;
        let key = pem::private_key(&self.private_key)?;
        let mut warnings = date_warnings(&self.certificate, &chain, unix_s)?;
        if pem::is_readable_by_others(&self.private_key) {
            warnings.push(TlsWarning::KeyReadableByOthers(self.private_key.clone()));
        }
        let config = self.configure(chain, key)?;
        Ok(Tls { config: Arc::new(config), warnings, stamp })
    }

    /// The state of the files. Build again when it differs from [`Tls::stamp`].
    pub fn stamp(&self) -> TlsStamp {
        let client_authority = self.client_authority.as_deref();
        TlsStamp::of([&*self.certificate, &*self.private_key].into_iter().chain(client_authority))
    }

    fn configure(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Provider(error.to_string()))?;
        let builder = match &self.client_authority {
            Some(path) => {
                let policy = self.client_certificate;
                builder.with_client_cert_verifier(client_verifier(path, policy, provider)?)
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::KeyMismatch {
                certificate: self.certificate.clone(),
                private_key: self.private_key.clone(),
            },
            rustls::Error::InvalidCertificate(_) => {
                TlsError::BadCertificate(self.certificate.clone())
            }
            _ => TlsError::BadKey(self.private_key.clone()),
        })?;
        // The server picks the first of these that the client supports. Browsers support both and get
        // HTTP/1.1, which serves everything except gRPC; gRPC clients support only HTTP/2.
        config.alpn_protocols = vec![HTTP1.to_vec()];
        #[cfg(feature = "grpc")]
        config.alpn_protocols.push(HTTP2.to_vec());
        Ok(config)
    }
}

fn client_verifier(
    path: &Path,
    policy: ClientCertificatePolicy,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(path)? {
        roots.add(certificate).map_err(|_| TlsError::BadCertificate(path.to_owned()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match policy {
        ClientCertificatePolicy::Required => builder,
        ClientCertificatePolicy::Optional => builder.allow_unauthenticated(),
    };
    builder.build().map_err(|_| TlsError::BadCertificate(path.to_owned()))
}

/// Warnings about the validity dates of the certificates.
fn date_warnings(
    path: &Path,
    chain: &[CertificateDer<'static>],
    unix_s: i64,
) -> Result<Vec<TlsWarning>, TlsError> {
    let mut warnings = Vec::new();
    for der in chain {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|_| TlsError::BadCertificate(path.to_owned()))?;
        let validity = certificate.validity();
        let (begins, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let path = path.to_owned();
        if ends < unix_s {
            warnings.push(TlsWarning::Expired(path));
        } else if begins > unix_s {
            warnings.push(TlsWarning::NotYetValid(path));
        } else if ends - unix_s < SOON_DAYS * DAY_S {
            warnings.push(TlsWarning::ExpiresSoon { path, days: (ends - unix_s) / DAY_S });
        }
    }
    Ok(warnings)
}

#[cfg(all(test, unix))]
mod tests;
