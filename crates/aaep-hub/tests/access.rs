//! The doors as a hub uses them: requests from this machine and from others, real TLS, files that change.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use aaep::handshake::ReasonCode;
use aaep_engine::Now;
use aaep_hub::access::{
    Access, AccessConfig, AccessError, ClientCertificate, HeardAgents, NewToken, Page, Peer,
    Principal, RequestError, Scope, Scopes, Tokens, may_bind,
};
use aaep_hub::tls::{ClientCertificatePolicy, TlsFiles};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

const NOW: Now = Now { monotonic_us: 5_000_000, unix_us: 1_800_000_000_000_000 };

fn later(seconds: u64) -> Now {
    let us = seconds * 1_000_000;
    Now {
        monotonic_us: NOW.monotonic_us + us,
        unix_us: NOW.unix_us + i64::try_from(us).expect("small"),
    }
}

fn access(folder: &Path, config: &str, allow_plain_http: bool) -> Access {
    let config: AccessConfig = toml::from_str(config).expect("a configuration");
    let tokens = Tokens::load(&folder.join("tokens.toml")).expect("tokens");
    Access::new(config, tokens, None, allow_plain_http).expect("access")
}

fn make_token(folder: &Path, scopes: &[Scope]) -> (String, String) {
    let mut tokens = Tokens::load(&folder.join("tokens.toml")).expect("tokens");
    let new = NewToken {
        name: "reader".to_owned(),
        scopes: scopes.iter().copied().collect(),
        hears: HeardAgents::All,
        owners: [].into(),
        speaks_as: [].into(),
        expires: None,
    };
    let (secret, token) = tokens.create(new, NOW).expect("made");
    (secret.reveal().to_owned(), token.id)
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).expect("a header value");
    pairs.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
}

fn here() -> Peer {
    Peer::plain("127.0.0.1".parse().expect("an address"))
}

fn elsewhere() -> Peer {
    Peer::tls("192.0.2.7".parse().expect("an address"), None)
}

fn path() -> Uri {
    Uri::from_static("/events")
}

#[test]
fn a_program_on_this_machine_needs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let access = access(folder.path(), "", false);
    let principal = access.authenticate(&here(), &HeaderMap::new(), &path(), NOW);
    assert_eq!(principal, Ok(Principal::local()));
    assert!(!access.has_credentials());
    let all = "0.0.0.0:7000".parse().expect("an address");
    assert!(may_bind(all, true, access.has_credentials(), false).is_err());
}

#[test]
fn a_program_on_this_machine_can_be_made_to_need_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, _) = make_token(folder.path(), &[Scope::Publish]);
    let access = access(folder.path(), "loopback_needs_credentials = true", false);
    let nobody = access.authenticate(&here(), &HeaderMap::new(), &path(), NOW);
    assert_eq!(nobody, Err(AccessError::CredentialsRequired));
    let bearer = headers(&[("authorization", &format!("Bearer {secret}"))]);
    let agent = access.authenticate(&here(), &bearer, &path(), NOW).expect("let in");
    assert_eq!(agent.allow(Scope::Publish), Ok(()));
    assert_eq!(agent.allow(Scope::Reply), Err(AccessError::ScopeMissing(Scope::Reply)));
    let same_user = access.authenticate(&Peer::same_user(), &HeaderMap::new(), &path(), NOW);
    assert_eq!(same_user, Ok(Principal::local()), "the system itself says who that is");
}

#[test]
fn a_wrong_token_is_refused_even_where_none_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let access = access(folder.path(), "", false);
    let (other, _) = make_token(tempfile::tempdir().expect("a folder").path(), &[Scope::Listen]);
    for (value, expected) in [
        (format!("Bearer {other}"), AccessError::UnknownToken),
        ("Bearer nonsense".to_owned(), AccessError::UnknownToken),
        ("Basic YTpi".to_owned(), AccessError::UnsupportedScheme),
    ] {
        let outcome =
            access.authenticate(&here(), &headers(&[("authorization", &value)]), &path(), NOW);
        assert_eq!(outcome, Err(expected), "{value}");
    }
}

#[test]
fn what_a_proxy_on_this_machine_passes_on_is_not_the_local_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, _) = make_token(folder.path(), &[Scope::Listen]);
    let access = access(folder.path(), "", false);
    for name in ["forwarded", "x-forwarded-for", "x-real-ip", "via"] {
        let outcome = access.authenticate(&here(), &headers(&[(name, "x")]), &path(), NOW);
        assert_eq!(outcome, Err(AccessError::Forwarded), "{name}");
    }
    let bearer = format!("Bearer {secret}");
    let both = headers(&[("x-forwarded-for", "192.0.2.1"), ("authorization", &bearer)]);
    assert!(access.authenticate(&here(), &both, &path(), NOW).is_ok());
}

#[test]
fn another_machine_needs_a_token_and_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, _) = make_token(folder.path(), &[Scope::Listen, Scope::Reply]);
    let access = access(folder.path(), "", false);
    let nobody = access.authenticate(&elsewhere(), &HeaderMap::new(), &path(), NOW);
    let nobody = nobody.expect_err("refused");
    assert_eq!(nobody.reason_code(), ReasonCode::AuthenticationRequired);
    let bearer = headers(&[("authorization", &format!("bearer {secret} "))]);
    let reader = access.authenticate(&elsewhere(), &bearer, &path(), NOW).expect("let in");
    assert_eq!(reader.scopes, Scopes::NONE.with(Scope::Listen).with(Scope::Reply));
    let plain = Peer::plain("192.0.2.7".parse().expect("an address"));
    let refused = access.authenticate(&plain, &bearer, &path(), NOW);
    assert_eq!(refused, Err(AccessError::PlainRemote));
}

#[test]
fn the_insecure_flag_lifts_encryption_but_not_authentication() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, _) = make_token(folder.path(), &[Scope::Listen]);
    let access = access(folder.path(), "", true);
    let plain = Peer::plain("192.0.2.7".parse().expect("an address"));
    let nobody = access.authenticate(&plain, &HeaderMap::new(), &path(), NOW);
    assert_eq!(nobody, Err(AccessError::CredentialsRequired));
    let bearer = headers(&[("authorization", &format!("Bearer {secret}"))]);
    assert!(access.authenticate(&plain, &bearer, &path(), NOW).is_ok());
}

#[test]
fn a_revocation_acts_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, id) = make_token(folder.path(), &[Scope::Listen]);
    let access = access(folder.path(), "", false);
    let bearer = headers(&[("authorization", &format!("Bearer {secret}"))]);
    assert!(access.authenticate(&elsewhere(), &bearer, &path(), NOW).is_ok());
    let mut tokens = Tokens::load(&folder.path().join("tokens.toml")).expect("tokens");
    tokens.revoke(&id).expect("revoked");
    let outcome = access.authenticate(&elsewhere(), &bearer, &path(), later(1));
    assert_eq!(outcome, Err(AccessError::UnknownToken));
    let (next, _) = make_token(folder.path(), &[Scope::Listen]);
    let bearer = headers(&[("authorization", &format!("Bearer {next}"))]);
    assert!(access.authenticate(&elsewhere(), &bearer, &path(), later(2)).is_ok());
}

#[test]
fn a_token_in_the_address_counts_only_where_it_is_configured() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, _) = make_token(folder.path(), &[Scope::Listen]);
    let uri: Uri = format!("/events?access_token={secret}").parse().expect("an address");
    let none = HeaderMap::new();
    let usual = access(folder.path(), "", false);
    let outcome = usual.authenticate(&elsewhere(), &none, &uri, NOW);
    assert_eq!(outcome, Err(AccessError::QueryNotAllowed));
    let browser = access(folder.path(), "token_in_query = true", false);
    assert!(browser.authenticate(&elsewhere(), &none, &uri, NOW).is_ok());
}

#[test]
fn a_foreign_page_does_not_get_to_the_second_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let config =
        "host_names = [\"hub.example.org\"]\nallowed_origins = [\"https://reader.example\"]";
    let access = access(folder.path(), config, false);
    let check = |pairs: &[(&'static str, &str)]| {
        access.check(&here(), &http::Method::GET, &headers(pairs), &path())
    };
    assert_eq!(check(&[("host", "localhost:7000")]), Ok(Page::None));
    let own = [("host", "localhost:7000"), ("origin", "http://localhost:7000")];
    assert_eq!(check(&own), Ok(Page::Ours));
    let configured = [("host", "localhost:7000"), ("origin", "https://reader.example")];
    assert!(matches!(check(&configured), Ok(Page::Allowed(_))));
    let rebound = [("host", "evil.example:7000"), ("origin", "http://evil.example:7000")];
    assert!(matches!(check(&rebound), Err(RequestError::ForeignHost(_))));
    let foreign = [("host", "localhost:7000"), ("origin", "https://evil.example")];
    assert!(matches!(check(&foreign), Err(RequestError::ForeignOrigin(_))));
    assert_eq!(check(&[]), Err(RequestError::NoHost));
}

/// An authority, the files of a hub under it, and client certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority") }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("issued"), key)
    }

    fn identity(&self, name: &str) -> Identity {
        let (certificate, key) = self.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (certificate.der().clone(), key)
    }

    fn files(&self, folder: &Path, policy: ClientCertificatePolicy) -> TlsFiles {
        let (certificate, key) = self.issue("hub.example.org");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).expect("written");
            path
        };
        TlsFiles {
            certificate: write("hub.pem", certificate.pem()),
            private_key: write("hub.key", key.serialize_pem()),
            client_authority: Some(write("clients.pem", self.issuer.pem())),
            client_certificate: policy,
        }
    }
}

/// Does a TLS handshake in memory. Returns the certificate that the hub verified, or the error.
fn shake_hands(
    files: &TlsFiles,
    authority: &Authority,
    identity: Option<Identity>,
) -> Result<Option<ClientCertificate>, rustls::Error> {
    let tls = files.build(NOW.unix_us / 1_000_000).expect("TLS");
    let mut roots = RootCertStore::empty();
    roots.add(authority.issuer.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = match identity {
        Some((certificate, key)) => {
            builder.with_client_auth_cert(vec![certificate], key).expect("an identity")
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("hub.example.org").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut server = ServerConnection::new(tls.config).expect("a server");
    let mut rounds = 0;
    while client.is_handshaking() || server.is_handshaking() {
        rounds += 1;
        assert!(rounds < 100, "the handshake never ends");
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("into memory");
        server.read_tls(&mut bytes.as_slice()).expect("from memory");
        server.process_new_packets()?;
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).expect("into memory");
        client.read_tls(&mut bytes.as_slice()).expect("from memory");
        client.process_new_packets()?;
    }
    assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
    let certificate = server.peer_certificates().and_then(|chain| chain.first());
    Ok(certificate.map(|der| ClientCertificate::read(der).expect("a verified certificate")))
}

const RULES: &str = "[[certificates]]\nmatch = \"dns:laptop.example.org\"\nname = \"Ada\"\n\
                     scopes = [\"listen\", \"reply\"]\nhears = [\"builder\"]\n";

#[test]
fn a_client_certificate_says_who_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let files = authority.files(folder.path(), ClientCertificatePolicy::Required);
    let access = access(folder.path(), RULES, false);
    assert!(access.has_credentials());
    let come = |name: &str| {
        let certificate = shake_hands(&files, &authority, Some(authority.identity(name)));
        let peer = Peer { certificate: certificate.expect("a handshake"), ..elsewhere() };
        access.authenticate(&peer, &HeaderMap::new(), &path(), NOW)
    };
    let ada = come("laptop.example.org").expect("let in");
    assert_eq!((ada.id.as_str(), ada.name.as_str()), ("certificate:Ada", "Ada"));
    assert_eq!(ada.hears, HeardAgents::only(["builder".to_owned()]).expect("a list"));
    assert_eq!(come("stranger.example.org"), Err(AccessError::UnknownCertificate));
}

#[test]
fn a_certificate_of_another_authority_does_not_even_connect() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, other) = (Authority::new(), Authority::new());
    for policy in [ClientCertificatePolicy::Required, ClientCertificatePolicy::Optional] {
        let files = authority.files(folder.path(), policy);
        let forged = Some(other.identity("laptop.example.org"));
        assert!(shake_hands(&files, &authority, forged).is_err());
    }
}

#[test]
fn a_client_without_a_certificate_comes_in_only_where_it_is_optional() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let required = authority.files(folder.path(), ClientCertificatePolicy::Required);
    assert!(shake_hands(&required, &authority, None).is_err());
    let optional = authority.files(folder.path(), ClientCertificatePolicy::Optional);
    assert_eq!(shake_hands(&optional, &authority, None).expect("a handshake"), None);
    let access = access(folder.path(), RULES, false);
    let nobody = access.authenticate(&elsewhere(), &HeaderMap::new(), &path(), NOW);
    assert_eq!(nobody, Err(AccessError::CredentialsRequired));
}

#[test]
fn a_wrong_token_is_not_saved_by_a_good_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let access = access(folder.path(), RULES, false);
    let (der, _) = authority.identity("laptop.example.org");
    let certificate = ClientCertificate::read(&der).ok();
    let peer = Peer { certificate, ..elsewhere() };
    let wrong = headers(&[("authorization", "Bearer nonsense")]);
    let outcome = access.authenticate(&peer, &wrong, &path(), NOW);
    assert_eq!(outcome, Err(AccessError::UnknownToken));
}
