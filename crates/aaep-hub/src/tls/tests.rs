//! Valid, invalid, swapped, damaged and renewed files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, PeerIncompatible, ProtocolVersion, ServerConnection,
    SupportedProtocolVersion,
};
use tempfile::TempDir;

use super::*;

/// In 2030. The certificates made here expire in 4096 unless a test says otherwise.
const NOW_S: i64 = 1_893_456_000;

struct TlsFolder {
    folder: TempDir,
    files: TlsFiles,
}

impl TlsFolder {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        path
    }
}

fn pair(change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = CertificateParams::new(vec!["hub.example.org".to_owned()]).expect("a name");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

fn folder(certificate: &str, key: &str) -> TlsFolder {
    let folder = tempfile::tempdir().expect("a folder");
    let files = TlsFiles {
        certificate: folder.path().join("hub.pem"),
        private_key: folder.path().join("hub.key"),
        client_authority: None,
        client_certificate: ClientCertificatePolicy::Required,
    };
    let folder = TlsFolder { folder, files };
    folder.write("hub.pem", certificate);
    folder.write("hub.key", key);
    folder
}

#[test]
fn a_good_pair_is_taken_without_a_word() {
    let (certificate, key) = pair(|_| {});
    let tls = folder(&certificate, &key).files.build(NOW_S).expect("built");
    assert_eq!(tls.warnings, []);
    let spoken = &tls.config.alpn_protocols;
    assert_eq!(
        spoken.first(),
        Some(&b"http/1.1".to_vec()),
        "browsers speak more, and need this one"
    );
}

/// How the hub reacts to the first bytes of a client.
fn answer(tls: &Tls, hello: &[u8]) -> Result<Option<ProtocolVersion>, rustls::Error> {
    let mut server = ServerConnection::new(Arc::clone(&tls.config)).expect("a server");
    server.read_tls(&mut &*hello).expect("from memory");
    server.process_new_packets()?;
    Ok(server.protocol_version())
}

/// The first bytes of a client that supports these versions.
fn hello(versions: &[&'static SupportedProtocolVersion]) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("hub.example.org").expect("a name");
    let mut bytes = Vec::new();
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    client.write_tls(&mut bytes).expect("into memory");
    bytes
}

/// The first bytes of a client that knows no version after 1.1. rustls cannot make them.
fn old_hello() -> Vec<u8> {
    let ciphers = [0x00, 0x02, 0xc0, 0x2b];
    let signatures = [0x00, 0x08, 0x00, 0x0d, 0x00, 0x04, 0x00, 0x02, 0x04, 0x03];
    let body = [&[3, 2][..], &[7; 32], &[0], &ciphers, &[1, 0], &signatures].concat();
    let length = u8::try_from(body.len()).expect("short");
    [&[0x16, 3, 1, 0, length + 4, 0x01, 0, 0, length][..], &body].concat()
}

#[test]
fn tls_1_3_is_spoken_and_nothing_older_than_1_2() {
    let (certificate, key) = pair(|_| {});
    let tls = folder(&certificate, &key).files.build(NOW_S).expect("built");
    assert_eq!(answer(&tls, &hello(&[&TLS12, &TLS13])), Ok(Some(ProtocolVersion::TLSv1_3)));
    assert_eq!(answer(&tls, &hello(&[&TLS12])), Ok(Some(ProtocolVersion::TLSv1_2)));
    let too_old = rustls::Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered);
    assert_eq!(answer(&tls, &old_hello()), Err(too_old));
}

#[test]
fn certificate_and_key_may_share_a_file() {
    let (certificate, key) = pair(|_| {});
    let both = format!("{key}{certificate}");
    assert!(folder(&both, &both).files.build(NOW_S).is_ok());
}

#[test]
fn each_wrong_file_is_named_with_what_is_wrong() {
    let (certificate, key) = pair(|_| {});
    let (_, other_key) = pair(|_| {});
    let missing = folder(&certificate, &key);
    fs::remove_file(&missing.files.private_key).expect("removed");
    let path = missing.files.private_key.clone();
    assert_eq!(missing.files.build(NOW_S).expect_err("refused"), TlsError::Missing(path));

    let no_key = folder(&certificate, &certificate);
    let path = no_key.files.private_key.clone();
    assert_eq!(no_key.files.build(NOW_S).expect_err("refused"), TlsError::NoKey(path));

    let swapped = folder(&key, &certificate);
    let path = swapped.files.certificate.clone();
    assert_eq!(swapped.files.build(NOW_S).expect_err("refused"), TlsError::NoCertificate(path));

    let mismatch = folder(&certificate, &other_key);
    let error = mismatch.files.build(NOW_S).expect_err("refused");
    assert!(matches!(error, TlsError::KeyMismatch { .. }), "{error}");
    assert!(error.to_string().contains("hub.key") && error.to_string().contains("hub.pem"));

    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = folder(&certificate, encrypted);
    let path = locked.files.private_key.clone();
    assert_eq!(locked.files.build(NOW_S).expect_err("refused"), TlsError::EncryptedKey(path));
}

#[test]
fn damaged_files_are_refused() {
    let (certificate, key) = pair(|_| {});
    let not_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (certificate, key) in [
        (&certificate[..certificate.len() / 2], key.as_str()),
        (certificate.as_str(), &key[..key.len() / 2]),
        ("", &key),
        (&certificate, ""),
        (not_der, &key),
        ("\u{0}\u{0}\u{0}", &key),
    ] {
        assert!(folder(certificate, key).files.build(NOW_S).is_err());
    }
    let bytes = usize::try_from(MAX_PEM_BYTES).expect("fits") + 1;
    let endless = folder(&" ".repeat(bytes), &key);
    let path = endless.files.certificate.clone();
    assert_eq!(endless.files.build(NOW_S).expect_err("refused"), TlsError::TooLarge(path));
}

#[test]
fn dates_are_warned_about_and_work_all_the_same() {
    let (old, old_key) = pair(|it| {
        it.not_before = date_time_ymd(2000, 1, 1);
        it.not_after = date_time_ymd(2029, 12, 31);
    });
    let old = folder(&old, &old_key);
    let warnings = old.files.build(NOW_S).expect("built").warnings;
    assert_eq!(warnings, [TlsWarning::Expired(old.files.certificate.clone())]);
    let soon = old.files.build(NOW_S - 4 * DAY_S).expect("built").warnings;
    let path = old.files.certificate.clone();
    assert_eq!(soon, [TlsWarning::ExpiresSoon { path: path.clone(), days: 3 }]);
    let early = old.files.build(0).expect("built").warnings;
    assert_eq!(early, [TlsWarning::NotYetValid(path)]);
}

#[test]
fn a_key_that_others_can_read_is_warned_about() {
    let (certificate, key) = pair(|_| {});
    let open = folder(&certificate, &key);
    fs::set_permissions(&open.files.private_key, fs::Permissions::from_mode(0o644)).expect("mode");
    let warnings = open.files.build(NOW_S).expect("built").warnings;
    assert_eq!(warnings, [TlsWarning::KeyReadableByOthers(open.files.private_key.clone())]);
}

#[test]
fn a_renewal_is_noticed() {
    let (certificate, key) = pair(|_| {});
    let renewed = folder(&certificate, &key);
    let tls = renewed.files.build(NOW_S).expect("built");
    assert_eq!(renewed.files.stamp(), tls.stamp);
    let (certificate, _) = pair(|it| {
        it.subject_alt_names
            .push(rcgen::SanType::DnsName("more.example".try_into().expect("ASCII")));
    });
    renewed.write("hub.pem", &certificate);
    assert_ne!(renewed.files.stamp(), tls.stamp);
    fs::remove_file(&renewed.files.certificate).expect("removed");
    assert_ne!(renewed.files.stamp(), tls.stamp);
}

#[test]
fn a_client_authority_must_be_one() {
    let (certificate, key) = pair(|_| {});
    let mut mutual = folder(&certificate, &key);
    mutual.files.client_authority = Some(mutual.folder.path().join("clients.pem"));
    let path = mutual.folder.path().join("clients.pem");
    assert_eq!(mutual.files.build(NOW_S).expect_err("refused"), TlsError::Missing(path.clone()));
    mutual.write("clients.pem", &key);
    assert_eq!(mutual.files.build(NOW_S).expect_err("refused"), TlsError::NoCertificate(path));
    mutual.write("clients.pem", &certificate);
    assert!(mutual.files.build(NOW_S).is_ok());
}
