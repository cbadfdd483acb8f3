//! Honest manifests are believed, and each honest mistake is told by its own name.

use aaep_trust::keys::{Algorithm, Jwks, KeyRing, SigningAlgorithm};
use aaep_trust::manifest::{self, Expected, MAX_MANIFEST_BYTES, VerifyError};
use std::time::Duration;

use crate::support::*;

#[test]
fn a_signed_manifest_is_believed_in_each_of_its_forms() {
    for (signing, algorithm) in both() {
        let key = key(signing);
        let signed = signed(&key);
        let compact = format!("{}\n", signed.jws);
        let json = document(&signed).to_string();
        let pretty = format!("{:#}", document(&signed));
        for bytes in [compact, json, pretty] {
            let verified = verify(bytes.as_bytes(), &jwks_of(&key)).expect("believed");
            assert_eq!(verified.kid, key.kid().as_str());
            assert_eq!(verified.thumbprint, key.kid());
            assert_eq!(verified.algorithm, algorithm);
            assert!(!verified.pinned);
            assert_eq!(verified.expires_unix_ms, Some(NOW + HOUR_MS));
            assert_eq!(verified.manifest.agent_id, "photo-tidier");
        }
    }
}

#[test]
fn a_manifest_without_a_signature_is_unsigned() {
    let bytes = serde_json::to_vec(&built()).expect("JSON");
    assert_eq!(verify(&bytes, &Jwks::default()), Err(VerifyError::Unsigned));
}

#[test]
fn a_signature_counts_until_it_expires_and_not_a_moment_longer() {
    let key = key(SigningAlgorithm::Es256);
    let jws = signed(&key).jws;
    let at =
        |now| manifest::verify(jws.as_str().as_bytes(), &jwks_of(&key), &Expected::default(), now);
    assert!(at(NOW + HOUR_MS - 1).is_ok());
    let expired = VerifyError::Expired { expired_unix_ms: NOW + HOUR_MS };
    assert_eq!(at(NOW + HOUR_MS), Err(expired.clone()));
    assert!(expired.to_string().contains("2026-09-21T15:13:20.000Z"), "{expired}");
}

#[test]
fn the_expiry_of_a_jwt_counts_too() {
    let key = key(SigningAlgorithm::Es256);
    let with = |exp: &str| {
        let payload = format!(
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\"type\":\
             \"aaep:producer.manifest\",\"agent_id\":\"a\",\"aaep_versions_supported\":[\"1.0.0\"],\
             \"exp\":{exp}}}"
        );
        verify(
            forge(&header(&key, ",\"typ\":\"JWT\""), payload.as_bytes(), &key).as_bytes(),
            &jwks_of(&key),
        )
    };
    assert!(with("1790000001").is_ok());
    let expired = VerifyError::Expired { expired_unix_ms: NOW };
    assert_eq!(with("1790000000"), Err(expired));
    assert_eq!(with("\"never\""), Err(VerifyError::ExpiryUnreadable));
    assert_eq!(with("-9223372036854775808").expect_err("expired").code(), "expired");
}

#[test]
fn a_manifest_copied_to_another_place_is_noticed() {
    let key = key(SigningAlgorithm::Es256);
    let jws = signed(&key).jws;
    for origin in
        ["https://evil.example", "http://agents.example.org", "https://agents.example.org:8443"]
    {
        let expected = Expected { origin: Some(origin), ..Expected::default() };
        let result = manifest::verify(jws.as_str().as_bytes(), &jwks_of(&key), &expected, NOW);
        assert!(matches!(result, Err(VerifyError::IssuerMismatch { .. })), "{origin}");
    }
}

#[test]
fn the_agent_must_be_the_one_that_the_subscription_is_with() {
    let key = key(SigningAlgorithm::Es256);
    let jws = signed(&key).jws;
    let with = |agent_id| {
        let expected = Expected { agent_id: Some(agent_id), ..Expected::default() };
        manifest::verify(jws.as_str().as_bytes(), &jwks_of(&key), &expected, NOW)
    };
    assert!(with("photo-tidier").is_ok());
    let said = with("bank").expect_err("another agent").to_string();
    assert!(said.contains("\"photo-tidier\"") && said.contains("\"bank\""), "{said}");
}

#[test]
fn what_a_rotated_key_signed_is_believed_within_the_overlap_and_not_after_it() {
    let home = tempfile::tempdir().expect("a folder");
    let mut ring = KeyRing::open(&home.path().join("keys")).expect("a ring");
    ring.new_key(SigningAlgorithm::Es256, HOUR, NOW).expect("a key");
    let day = Duration::from_hours(24);
    let old = ring.active().expect("a key");
    let by_old = manifest::sign(&built(), &old, NOW, day).expect("signed").jws;
    ring.new_key(SigningAlgorithm::EdDsa, HOUR, NOW).expect("a key");
    let by_new =
        manifest::sign(&built(), &ring.active().expect("a key"), NOW, day).expect("signed");
    let at = |jws: &str, now: i64| {
        let keys = Jwks::parse(ring.jwks(now).to_string().as_bytes()).expect("a key set");
        manifest::verify(jws.as_bytes(), &keys, &Expected::default(), now).map(|it| it.algorithm)
    };
    assert_eq!(at(by_old.as_str(), NOW + HOUR_MS - 1), Ok(Algorithm::Es256));
    assert_eq!(at(by_new.jws.as_str(), NOW + HOUR_MS - 1), Ok(Algorithm::EdDsa));
    let gone = VerifyError::UnknownKid(old.kid().to_string());
    assert_eq!(at(by_old.as_str(), NOW + HOUR_MS), Err(gone));
    assert_eq!(at(by_new.jws.as_str(), NOW + HOUR_MS), Ok(Algorithm::EdDsa));
}

#[test]
fn ten_megabytes_are_not_looked_at() {
    let huge = vec![b'{'; 10 << 20];
    assert_eq!(verify(&huge, &Jwks::default()), Err(VerifyError::TooLarge));
    let just_fits = vec![b'{'; MAX_MANIFEST_BYTES];
    assert!(matches!(verify(&just_fits, &Jwks::default()), Err(VerifyError::NotAManifest(_))));
}

#[test]
fn every_error_says_what_to_do_and_has_a_name_of_its_own() {
    let kid = key(SigningAlgorithm::EdDsa).kid();
    let hostile = "\u{1b}[2Jx".to_owned();
    let errors = [
        VerifyError::TooLarge,
        VerifyError::Unsigned,
        VerifyError::NotAManifest("It is not JSON.".to_owned()),
        VerifyError::DuplicateMember,
        VerifyError::MalformedJws("its header is too long"),
        VerifyError::ForbiddenHeader("jku"),
        VerifyError::AlgorithmNotAllowed(hostile.clone()),
        VerifyError::NoKid,
        VerifyError::UnknownKid(hostile.clone()),
        VerifyError::AlgorithmNotOfKey { named: Algorithm::Rs256, of_key: Algorithm::Es256 },
        VerifyError::WrongSignature,
        VerifyError::ContentDiffers,
        VerifyError::NotPinned { found: kid.clone(), pinned: vec![kid], origin: Some(hostile) },
        VerifyError::IssuerMismatch { claimed: "\"a\"".to_owned(), expected: "\"b\"".to_owned() },
        VerifyError::Expired { expired_unix_ms: i64::MIN },
        VerifyError::ExpiryUnreadable,
    ];
    let mut codes: Vec<&str> = errors.iter().map(VerifyError::code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), errors.len());
    for error in errors {
        let said = error.to_string();
        assert!(said.split(". ").count() > 1 || said.contains(", so "), "{said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}
