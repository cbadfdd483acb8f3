//! Signed tokens: valid, forged, confused, late, early and misdirected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::*;
use crate::access::jwks::MIN_REFETCH_US;

const NOW_S: i64 = 1_800_000_000;

fn at(seconds: i64) -> Now {
    let monotonic_us = u64::try_from(seconds).expect("not negative") * 1_000_000;
    Now { monotonic_us, unix_us: (NOW_S + seconds) * 1_000_000 }
}

/// An issuer's keys: the private one, and the public one under a name.
struct TestSigner {
    algorithm: Algorithm,
    key: EncodingKey,
    jwk: Value,
}

impl TestSigner {
    fn new(algorithm: Algorithm, kid: &str) -> Self {
        let key = match algorithm {
            Algorithm::ES256 => {
                let pair = rcgen::KeyPair::generate().expect("a key");
                EncodingKey::from_ec_der(&pair.serialize_der())
            }
            Algorithm::EdDSA => {
                let pair = aws_lc_rs::signature::Ed25519KeyPair::generate().expect("a key");
                let der: Pkcs8V1Der = pair.as_der().expect("DER");
                EncodingKey::from_ed_der(der.as_ref())
            }
            _ => {
                let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048)
                    .expect("a key");
                let der: Pkcs8V1Der = pair.as_der().expect("DER");
                // The key in PKCS 1 follows the fixed header of PKCS 8.
                EncodingKey::from_rsa_der(&der.as_ref()[26..])
            }
        };
        let public = Jwk::from_encoding_key(&key, algorithm).expect("a public key");
        let mut jwk = serde_json::to_value(public).expect("JSON");
        jwk["kid"] = json!(kid);
        TestSigner { algorithm, key, jwk }
    }

    fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = self.jwk["kid"].as_str().map(str::to_owned);
        encode(&header, claims, &self.key).expect("signed")
    }

    fn sign_as(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).expect("signed")
    }
}

#[derive(Debug)]
struct TestJwks {
    keys: std::sync::Mutex<Result<Value, IssuerKeysError>>,
    fetched: AtomicUsize,
}

impl JwksSource for Arc<TestJwks> {
    fn fetch(&self) -> Result<Vec<u8>, IssuerKeysError> {
        self.fetched.fetch_add(1, Ordering::SeqCst);
        let keys = self.keys.lock().expect("no panic while locked").clone()?;
        Ok(json!({ "keys": keys }).to_string().into_bytes())
    }
}

fn issuer(keys: Value) -> (JwtIssuer, Arc<TestJwks>) {
    let document =
        Arc::new(TestJwks { keys: std::sync::Mutex::new(Ok(keys)), fetched: AtomicUsize::new(0) });
    let config = JwtConfig {
        issuer: "https://id.example".to_owned(),
        audience: "aaep".to_owned(),
        algorithms: vec![JwtAlgorithm::Es256, JwtAlgorithm::EdDsa, JwtAlgorithm::Rs256],
        jwks_file: None,
        jwks_uri: None,
        scope_prefix: String::new(),
        hears: HeardAgents::All,
        owners: Vec::new(),
    };
    (JwtIssuer::new(config, Box::new(Arc::clone(&document))), document)
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example", "aud": "aaep", "sub": "ada", "exp": NOW_S + 300,
        "scope": "openid listen reply",
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    if value.is_null() {
        claims.as_object_mut().expect("an object").remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

#[test]
fn a_token_of_each_algorithm_is_believed() {
    for algorithm in [Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256] {
        let signer = TestSigner::new(algorithm, "k1");
        let (issuer, _) = issuer(json!([signer.jwk]));
        let principal = issuer.verify(&signer.sign(&claims()), at(0)).expect("believed");
        assert_eq!((principal.id.as_str(), principal.name.as_str()), ("jwt:ada", "ada"));
        let expected = Scopes::NONE.with(Scope::Listen).with(Scope::Reply);
        assert_eq!((principal.scopes, principal.hears), (expected, HeardAgents::All));
    }
}

#[test]
fn an_algorithm_that_is_not_configured_is_refused() {
    let signer = TestSigner::new(Algorithm::EdDSA, "k1");
    let (mut issuer, _) = issuer(json!([signer.jwk]));
    issuer.config.algorithms = vec![JwtAlgorithm::Es256];
    assert_eq!(issuer.verify(&signer.sign(&claims()), at(0)), Err(JwtError::Algorithm));
}

#[test]
fn a_public_key_is_never_a_shared_secret() {
    let signer = TestSigner::new(Algorithm::RS256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    let modulus = signer.jwk["n"].as_str().expect("a modulus");
    let document = signer.jwk.to_string();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("k1".to_owned());
    for secret in [modulus.as_bytes(), document.as_bytes()] {
        let forged = encode(&header, &claims(), &EncodingKey::from_secret(secret)).expect("signed");
        assert_eq!(issuer.verify(&forged, at(0)), Err(JwtError::Algorithm));
    }
}

#[test]
fn a_shared_secret_among_the_keys_is_passed_over() {
    let secret = b"0123456789abcdef0123456789abcdef";
    let oct = json!({ "kty": "oct", "kid": "k1", "k": URL_SAFE_NO_PAD.encode(secret) });
    let (issuer, _) = issuer(json!([oct]));
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("k1".to_owned());
    let forged = encode(&header, &claims(), &EncodingKey::from_secret(secret)).expect("signed");
    assert_eq!(issuer.verify(&forged, at(0)), Err(JwtError::Algorithm));
}

#[test]
fn a_key_serves_its_own_algorithm_only() {
    let rsa = TestSigner::new(Algorithm::RS256, "k1");
    let ec = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([rsa.jwk]));
    assert_eq!(issuer.verify(&ec.sign(&claims()), at(0)), Err(JwtError::UnknownKey));
    let mut for_encryption = ec.jwk.clone();
    for_encryption["use"] = json!("enc");
    let mut for_another = ec.jwk.clone();
    for_another["alg"] = json!("ES384");
    let (strict, _) = self::issuer(json!([for_encryption, for_another]));
    assert_eq!(strict.verify(&ec.sign(&claims()), at(0)), Err(JwtError::UnknownKey));
}

#[test]
fn an_unsigned_token_is_refused() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    let good = signer.sign(&claims());
    let payload = good.split('.').nth(1).expect("claims");
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": alg, "kid": "k1" }).to_string());
        for token in [format!("{header}.{payload}."), format!("{header}.{payload}")] {
            assert_eq!(issuer.verify(&token, at(0)), Err(JwtError::Malformed), "{alg}");
        }
    }
    let parts: Vec<&str> = good.split('.').collect();
    assert!(issuer.verify(&format!("{}.{}.", parts[0], parts[1]), at(0)).is_err());
}

#[test]
fn a_changed_or_foreign_token_is_refused() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let stranger = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    assert_eq!(issuer.verify(&stranger.sign(&claims()), at(0)), Err(JwtError::Signature));
    let good = signer.sign(&with("scope", json!("listen")));
    let more = URL_SAFE_NO_PAD.encode(with("scope", json!("listen admin")).to_string());
    let parts: Vec<&str> = good.split('.').collect();
    let raised = format!("{}.{more}.{}", parts[0], parts[2]);
    assert_eq!(issuer.verify(&raised, at(0)), Err(JwtError::Signature));
    for garbage in ["", ".", "..", "...", "a.b.c", "é.é.é", &good[..good.len() / 2]] {
        assert!(issuer.verify(garbage, at(0)).is_err(), "{garbage}");
    }
}

#[test]
fn the_name_of_a_key_is_only_compared() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, document) = issuer(json!([signer.jwk]));
    let mut header = Header::new(Algorithm::ES256);
    let long = "k".repeat(MAX_KID_BYTES + 1);
    for kid in ["../../../etc/passwd", "file:///dev/null", "k1' OR '1'='1", "K1", "", "k1\0", &long]
    {
        header.kid = Some(kid.to_owned());
        let token = signer.sign_as(&header, &claims());
        assert_eq!(issuer.verify(&token, at(0)), Err(JwtError::UnknownKey), "{kid}");
    }
    assert_eq!(document.fetched.load(Ordering::SeqCst), 1, "seven unknown names, one fetch");
}

#[test]
fn what_a_header_points_at_or_brings_is_ignored() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let stranger = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some("k1".to_owned());
    header.jwk = serde_json::from_value(stranger.jwk.clone()).ok();
    header.jku = Some("https://evil.example/keys".to_owned());
    let forged = stranger.sign_as(&header, &claims());
    assert_eq!(issuer.verify(&forged, at(0)), Err(JwtError::Signature));
    header.jwk = None;
    header.crit = Some(vec!["b64".to_owned()]);
    let critical = signer.sign_as(&header, &claims());
    assert_eq!(issuer.verify(&critical, at(0)), Err(JwtError::Critical));
}

#[test]
fn without_a_name_there_must_be_one_key_only() {
    let (one, two) =
        (TestSigner::new(Algorithm::ES256, "k1"), TestSigner::new(Algorithm::ES256, "k2"));
    let token = one.sign_as(&Header::new(Algorithm::ES256), &claims());
    let (single, _) = issuer(json!([one.jwk]));
    assert!(single.verify(&token, at(0)).is_ok());
    let (several, _) = issuer(json!([one.jwk, two.jwk]));
    assert_eq!(several.verify(&token, at(0)), Err(JwtError::UnknownKey));
}

#[test]
fn claims_must_name_us_and_hold_now() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    for (name, value, expected) in [
        ("iss", json!("https://id.example/"), Some(JwtError::Issuer)),
        ("iss", json!(["https://id.example"]), Some(JwtError::Claims)),
        ("iss", Value::Null, Some(JwtError::Claims)),
        ("aud", json!("other"), Some(JwtError::Audience)),
        ("aud", json!([]), Some(JwtError::Audience)),
        ("aud", json!(["other", "aaep"]), None),
        ("aud", Value::Null, Some(JwtError::Claims)),
        ("sub", json!(""), Some(JwtError::Claims)),
        ("sub", json!("a\u{1b}[2J"), Some(JwtError::Claims)),
        ("sub", Value::Null, Some(JwtError::Claims)),
        ("exp", json!(NOW_S - 59), None),
        ("exp", json!(NOW_S - 60), Some(JwtError::Expired)),
        ("exp", json!(NOW_S - 61), Some(JwtError::Expired)),
        ("exp", json!(-1e300), Some(JwtError::Expired)),
        ("exp", json!("tomorrow"), Some(JwtError::Claims)),
        ("exp", Value::Null, Some(JwtError::Claims)),
        ("nbf", json!(NOW_S + 60), None),
        ("nbf", json!(NOW_S + 61), Some(JwtError::NotYet)),
        ("scope", json!("openid Listen listening"), Some(JwtError::NoScopes)),
        ("scope", Value::Null, Some(JwtError::NoScopes)),
        ("scope", json!(["listen"]), Some(JwtError::Claims)),
        ("aaep_hears", json!(["builder"]), None),
        ("aaep_hears", json!(7), Some(JwtError::Claims)),
    ] {
        let outcome = issuer.verify(&signer.sign(&with(name, value.clone())), at(0));
        assert_eq!(outcome.err(), expected, "{name} {value}");
    }
    let narrow = issuer.verify(&signer.sign(&with("aaep_hears", json!(["builder"]))), at(0));
    let other = Principal::local().agent_tags("other");
    assert!(!narrow.expect("believed").hearing().includes(&other));
}

#[test]
fn a_name_from_an_issuer_is_never_the_local_user() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let (issuer, _) = issuer(json!([signer.jwk]));
    let local = issuer.verify(&signer.sign(&with("sub", json!("local"))), at(0)).expect("believed");
    assert_ne!(local.id, Principal::local().id);
}

#[test]
fn scopes_may_have_a_prefix() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let (mut issuer, _) = issuer(json!([signer.jwk]));
    issuer.config.scope_prefix = "aaep:".to_owned();
    let token = signer.sign(&with("scope", json!("admin aaep:listen")));
    let principal = issuer.verify(&token, at(0)).expect("believed");
    assert_eq!(principal.scopes, Scopes::NONE.with(Scope::Listen));
}

#[test]
fn a_new_key_is_found_and_a_withdrawn_one_goes() {
    let (old, new) =
        (TestSigner::new(Algorithm::ES256, "old"), TestSigner::new(Algorithm::ES256, "new"));
    let far = json!(NOW_S + 1_000_000);
    let (old_token, new_token) = (old.sign(&with("exp", far.clone())), new.sign(&with("exp", far)));
    let (issuer, document) = issuer(json!([old.jwk]));
    assert!(issuer.verify(&old_token, at(0)).is_ok());
    *document.keys.lock().expect("free") = Ok(json!([new.jwk]));
    let interval_s = i64::try_from(MIN_REFETCH_US / 1_000_000).expect("small");
    assert_eq!(issuer.verify(&new_token, at(interval_s - 1)), Err(JwtError::UnknownKey));
    assert!(issuer.verify(&new_token, at(interval_s)).is_ok());
    assert_eq!(issuer.verify(&old_token, at(interval_s)), Err(JwtError::UnknownKey));
    assert_eq!(document.fetched.load(Ordering::SeqCst), 2);
}

#[test]
fn keys_that_cannot_be_fetched_again_are_believed_for_a_day() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let token = signer.sign(&with("exp", json!(NOW_S + 1_000_000)));
    let (issuer, document) = issuer(json!([signer.jwk]));
    assert!(issuer.verify(&token, at(0)).is_ok());
    *document.keys.lock().expect("free") = Err(IssuerKeysError::Unreadable("gone".to_owned()));
    assert!(issuer.verify(&token, at(86_399)).is_ok());
    let gone = JwtError::Keys(IssuerKeysError::Unreadable("gone".to_owned()));
    assert_eq!(issuer.verify(&token, at(86_400)), Err(gone));
}

#[test]
fn a_document_of_keys_is_bounded_and_may_be_garbage() {
    let signer = TestSigner::new(Algorithm::ES256, "k1");
    let token = signer.sign(&claims());
    let huge = json!("x".repeat(300_000));
    for (keys, expected) in [
        (json!({}), JwtError::Keys(IssuerKeysError::Broken)),
        (huge, JwtError::Keys(IssuerKeysError::TooLarge)),
        (json!([]), JwtError::UnknownKey),
        (json!([1, null, {}, { "kty": "EC" }]), JwtError::UnknownKey),
    ] {
        assert_eq!(issuer(keys).0.verify(&token, at(0)), Err(expected));
    }
    let among_garbage = issuer(json!([7, { "kty": "unknown" }, signer.jwk])).0;
    assert!(among_garbage.verify(&token, at(0)).is_ok());
}
