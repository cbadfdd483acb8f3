//! What the tests of manifests share: a described producer, keys, signed manifests, hostile JWS.

use std::time::Duration;

use aaep::{Capabilities, LanguageTag, Manifest, Uri};
use aaep_trust::keys::{Algorithm, Jwks, PublicKey, SigningAlgorithm, SigningKey, Thumbprint};
use aaep_trust::manifest::{
    self, Endpoint, Expected, ManifestDescription, SignedManifest, SigningReference,
    VerifiedManifest, VerifyError,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(crate) const NOW: i64 = 1_790_000_000_000;
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const ORIGIN: &str = "https://agents.example.org";

pub(crate) fn uri(text: &str) -> Uri {
    Uri::parse(text).expect("a URI")
}

pub(crate) fn description() -> ManifestDescription {
    let endpoint = |transport: &str, address: &str| Endpoint {
        transport: transport.to_owned(),
        uri: Some(uri(address)),
        framing: None,
    };
    let mut it = ManifestDescription::new("photo-tidier");
    it.agent_name = Some("Photo Tidier".to_owned());
    it.agent_version = Some("2.3.0".to_owned());
    it.languages = ["en-GB", "yo-NG"].map(|tag| LanguageTag::parse(tag).expect("a tag")).into();
    it.endpoints = vec![
        endpoint("sse", "https://agents.example.org/aaep/v1/events"),
        endpoint("websocket", "wss://agents.example.org/aaep/v1/ws"),
        Endpoint {
            transport: "unix-socket".to_owned(),
            uri: None,
            framing: Some("length-prefixed".to_owned()),
        },
    ];
    it.max_concurrent_subscriptions = Some(1000);
    it.contact = Some("help@example.org".to_owned());
    let mut widest = Capabilities::new();
    widest.max_events_per_second = Some(50);
    it.capabilities = Some(widest);
    it.signing = Some(SigningReference {
        manifest_uri: uri("https://agents.example.org/.well-known/aaep-manifest.json"),
        jwks_uri: uri("https://agents.example.org/.well-known/aaep-jwks.json"),
        kids: Vec::new(),
    });
    it
}

pub(crate) fn built() -> Manifest {
    manifest::build(&description()).expect("a manifest")
}

pub(crate) fn key(algorithm: SigningAlgorithm) -> SigningKey {
    SigningKey::generate(algorithm).expect("a key")
}

/// A key set with these keys under these names.
pub(crate) fn jwks<'k>(keys: impl IntoIterator<Item = (&'k str, &'k PublicKey)>) -> Jwks {
    let list: Vec<Value> = keys
        .into_iter()
        .map(|(kid, key)| {
            let mut jwk = key.to_jwk();
            jwk.insert("kid".to_owned(), kid.into());
            jwk.into()
        })
        .collect();
    Jwks::parse(json!({ "keys": list }).to_string().as_bytes()).expect("a key set")
}

pub(crate) fn jwks_of(key: &SigningKey) -> Jwks {
    jwks([(key.kid().as_str(), key.public())])
}

pub(crate) fn signed(key: &SigningKey) -> SignedManifest {
    manifest::sign(&built(), key, NOW, HOUR).expect("signed")
}

/// The document of a signed manifest as JSON.
pub(crate) fn document(signed: &SignedManifest) -> Value {
    serde_json::to_value(&signed.document).expect("JSON")
}

pub(crate) fn verify(bytes: &[u8], keys: &Jwks) -> Result<VerifiedManifest, VerifyError> {
    let expected = Expected { origin: Some(ORIGIN), ..Expected::default() };
    manifest::verify(bytes, keys, &expected, NOW)
}

pub(crate) fn verify_pinned(
    bytes: &[u8],
    keys: &Jwks,
    pins: &[Thumbprint],
) -> Result<VerifiedManifest, VerifyError> {
    let expected = Expected { origin: Some(ORIGIN), pins, ..Expected::default() };
    manifest::verify(bytes, keys, &expected, NOW)
}

/// A JWS with any header text and any payload, signed by the key over exactly these.
pub(crate) fn forge(header: &str, payload: &[u8], key: &SigningKey) -> String {
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = key.sign(text.as_bytes()).expect("a signature");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The payload of a JWS.
pub(crate) fn payload(jws: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(jws.split('.').nth(1).expect("three parts")).expect("base64url")
}

/// The usual header with something more in it.
pub(crate) fn header(key: &SigningKey, more: &str) -> String {
    format!("{{\"alg\":\"{}\",\"kid\":\"{}\"{more}}}", key.algorithm(), key.kid())
}

pub(crate) fn both() -> [(SigningAlgorithm, Algorithm); 2] {
    [(SigningAlgorithm::Es256, Algorithm::Es256), (SigningAlgorithm::EdDsa, Algorithm::EdDsa)]
}
