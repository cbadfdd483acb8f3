//! Encrypted connections: tokens, client certificates, and certificates that are renewed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use aaep_hub::access::{CertificateRule, Scope};
use aaep_hub::server::DaemonOptions;
use aaep_hub::tls::{ClientCertificatePolicy, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::support::*;

pub(crate) const NAME: &str = "hub.example.org";

pub(crate) struct Authority(pub(crate) CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// A certificate and its key, in PEM.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    // Like a renewal, it replaces the whole file.
    let new = path.with_extension("new");
    fs::write(&new, text).expect("writes");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("mode");
    fs::rename(&new, path).expect("renames");
}

pub(crate) fn files(folder: &TempDir, pair: &(String, String)) -> TlsFiles {
    let files = TlsFiles {
        certificate: folder.path().join("hub.pem"),
        private_key: folder.path().join("hub.key"),
        client_authority: None,
        client_certificate: ClientCertificatePolicy::Optional,
    };
    write(&files.certificate, &pair.0);
    write(&files.private_key, &pair.1);
    files
}

pub(crate) fn hub(
    folder: TempDir,
    files: TlsFiles,
    change: impl FnOnce(&mut DaemonOptions),
) -> TestHub {
    TestHub::in_folder(folder, |options| {
        options.bind = vec!["0.0.0.0:0".parse().expect("an address")];
        options.config.tls = Some(files);
        options.config.access.host_names = vec![NAME.to_owned()];
        change(options);
    })
}

/// A client's TLS settings, perhaps with its own certificate.
pub(crate) fn client_config(
    authority: &Authority,
    client: Option<&(String, String)>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(vec![certificate], key).expect("a certificate")
        }
    }
}

/// Sends a request over TLS. Returns its answer, or `None` if the TLS handshake failed.
fn ask(
    hub: &TestHub,
    authority: &Authority,
    client: Option<&(String, String)>,
    headers: &str,
) -> Option<String> {
    let config = client_config(authority, client);
    let name = ServerName::try_from(NAME).expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(("127.0.0.1", hub.address().port())).expect("connects");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let mut stream = StreamOwned::new(connection, socket);
    let text = format!(
        "GET /aaep/v1/agents HTTP/1.1\r\nhost: {NAME}\r\n{headers}connection: close\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // An end without a goodbye is an end.
    let _ = stream.read_to_end(&mut answer);
    (!answer.is_empty()).then(|| String::from_utf8(answer).expect("text"))
}

fn status(answer: Option<&String>) -> Option<&str> {
    answer.and_then(|it| it.split(' ').nth(1))
}

#[test]
fn other_machines_come_in_encrypted_and_with_a_token() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let token = token(&folder, "reader", &[Scope::Listen]);
    let files = files(&folder, &authority.issue(NAME));
    let hub = hub(folder, files, |options| {
        options.config.access.loopback_needs_credentials = true;
    });
    assert!(hub.daemon().origins()[0].starts_with("https://"));
    assert_eq!(status(ask(&hub, &authority, None, &token).as_ref()), Some("200"));
    assert_eq!(status(ask(&hub, &authority, None, "").as_ref()), Some("401"));
    let mut plain = Client::connect(([127, 0, 0, 1], hub.address().port()).into());
    plain.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(!plain.rest().contains("200"), "nothing is said unencrypted");
}

#[test]
fn a_client_certificate_says_who_it_is() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = files(&folder, &authority.issue(NAME));
    let path = folder.path().join("clients.pem");
    write(&path, &authority.0.pem());
    files.client_authority = Some(path);
    files.client_certificate = ClientCertificatePolicy::Required;
    let rule: CertificateRule =
        toml::from_str("match = \"dns:ada.example.org\"\nname = \"Ada\"\nscopes = [\"listen\"]\n")
            .expect("a rule");
    let hub = hub(folder, files, |options| options.config.access.certificates = vec![rule]);
    let ada = authority.issue("ada.example.org");
    assert_eq!(status(ask(&hub, &authority, Some(&ada), "").as_ref()), Some("200"));
    let bob = authority.issue("bob.example.org");
    assert_eq!(status(ask(&hub, &authority, Some(&bob), "").as_ref()), Some("401"));
    let forged = stranger.issue("ada.example.org");
    assert_eq!(status(ask(&hub, &authority, Some(&forged), "").as_ref()), None);
    assert_eq!(status(ask(&hub, &authority, None, "").as_ref()), None);
}

#[test]
fn a_renewed_certificate_is_taken_and_a_broken_one_is_not() {
    let (first, second) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().expect("a folder");
    let token = token(&folder, "reader", &[Scope::Listen]);
    let files = files(&folder, &first.issue(NAME));
    let hub = hub(folder, files.clone(), |_| {});
    assert_eq!(status(ask(&hub, &first, None, &token).as_ref()), Some("200"));
    assert_eq!(status(ask(&hub, &second, None, &token).as_ref()), None);
    write(&files.certificate, "this is not a certificate");
    let renewed = second.issue(NAME);
    write(&files.private_key, &renewed.1);
    // With a key without its certificate, or no certificate at all, the old pair stays in use.
    for _ in 0..20 {
        assert_eq!(status(ask(&hub, &first, None, &token).as_ref()), Some("200"));
    }
    write(&files.certificate, &renewed.0);
    wait_until("the renewed certificate is served", || {
        status(ask(&hub, &second, None, &token).as_ref()) == Some("200")
    });
    assert_eq!(status(ask(&hub, &first, None, &token).as_ref()), None, "the old one is gone");
}

#[test]
fn a_client_that_does_not_speak_tls_in_time_is_disconnected() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    token(&folder, "reader", &[Scope::Listen]);
    let files = files(&folder, &authority.issue(NAME));
    let hub = hub(folder, files, |options| options.config.limits.handshake_ms = 200);
    let mut silent = Client::connect(([127, 0, 0, 1], hub.address().port()).into());
    assert_eq!(silent.rest(), "");
}
