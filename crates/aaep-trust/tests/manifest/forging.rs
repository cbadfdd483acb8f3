//! What a forger tries: flipped bits, swapped keys, confused algorithms, headers that bring a key.

use aaep::extension::PREFIX;
use aaep_trust::keys::{Algorithm, Jwks, PublicKey, SigningAlgorithm};
use aaep_trust::manifest::VerifyError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::support::*;

#[test]
fn no_bit_of_the_jws_can_be_flipped() {
    for (algorithm, _) in both() {
        let key = key(algorithm);
        let keys = jwks_of(&key);
        let jws = signed(&key).jws;
        let mut bytes = jws.as_str().as_bytes().to_vec();
        assert!(verify(&bytes, &keys).is_ok());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                let result = verify(&bytes, &keys);
                assert!(result.is_err(), "bit {bit} of byte {at} in {}", jws.as_str());
                bytes[at] ^= 1 << bit;
            }
        }
        assert!(verify(&bytes, &keys).is_ok());
    }
}

#[test]
fn no_bit_of_what_is_signed_can_be_flipped() {
    let key = key(SigningAlgorithm::Es256);
    let keys = jwks_of(&key);
    let jws = signed(&key).jws;
    let parts: Vec<&str> = jws.as_str().split('.').collect();
    for region in 0..3 {
        let plain = URL_SAFE_NO_PAD.decode(parts[region]).expect("base64url");
        for at in 0..plain.len() {
            let mut changed = plain.clone();
            changed[at] ^= 1;
            let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            parts[region] = URL_SAFE_NO_PAD.encode(&changed);
            let result = verify(parts.join(".").as_bytes(), &keys);
            assert!(result.is_err(), "byte {at} of part {region}");
            if region == 2 {
                assert_eq!(result, Err(VerifyError::WrongSignature));
            }
        }
    }
}

#[test]
fn nothing_beside_the_signature_can_be_changed() {
    let key = key(SigningAlgorithm::Es256);
    let keys = jwks_of(&key);
    let original = document(&signed(&key));
    for (pointer, value) in [
        ("/agent_id", json!("bank")),
        ("/agent_name", json!("Your Bank")),
        ("/max_concurrent_subscriptions", json!(1001)),
        ("/languages_supported/0", json!("en-US")),
        ("/conformance_levels_supported", json!([1])),
        ("/extensions/agentvoice/endpoints/0/uri", json!("https://evil.example/")),
        ("/extensions/agentvoice/expires_at", json!("2099-01-01T00:00:00.000Z")),
        ("/extensions/agentvoice/jwks_uri", json!("https://evil.example/")),
    ] {
        let mut changed = original.clone();
        *changed.pointer_mut(pointer).expect(pointer) = value;
        let result = verify(changed.to_string().as_bytes(), &keys);
        assert_eq!(result, Err(VerifyError::ContentDiffers), "{pointer}");
    }
    let mut added = original.clone();
    added["extensions"]["evil"] = json!({});
    assert_eq!(verify(added.to_string().as_bytes(), &keys), Err(VerifyError::ContentDiffers));
    let mut removed = original.clone();
    removed.as_object_mut().expect("an object").remove("contact");
    assert_eq!(verify(removed.to_string().as_bytes(), &keys), Err(VerifyError::ContentDiffers));
    let mut stripped = original;
    stripped["extensions"][PREFIX].as_object_mut().expect("an object").remove("signed_manifest");
    assert_eq!(verify(stripped.to_string().as_bytes(), &keys), Err(VerifyError::Unsigned));
}

#[test]
fn the_signature_of_another_manifest_does_not_fit() {
    let key = key(SigningAlgorithm::EdDsa);
    let (mut first, second) = (document(&signed(&key)), {
        let mut other = description();
        other.agent_id = "other".to_owned();
        let built = aaep_trust::manifest::build(&other).expect("a manifest");
        aaep_trust::manifest::sign(&built, &key, NOW, HOUR).expect("signed")
    });
    first["extensions"][PREFIX]["signed_manifest"] = second.jws.as_str().into();
    let result = verify(first.to_string().as_bytes(), &jwks_of(&key));
    assert_eq!(result, Err(VerifyError::ContentDiffers));
}

#[test]
fn a_swapped_key_is_noticed() {
    for (algorithm, _) in both() {
        let (honest, forger) = (key(algorithm), key(algorithm));
        let jws = signed(&forger).jws;
        let unknown = verify(jws.as_str().as_bytes(), &jwks_of(&honest));
        assert_eq!(unknown, Err(VerifyError::UnknownKid(forger.kid().to_string())));
        // The forger signs and says that it was the honest key.
        let claims = forge(&header(&honest, ""), &payload(jws.as_str()), &forger);
        let wrong = verify(claims.as_bytes(), &jwks_of(&honest));
        assert_eq!(wrong, Err(VerifyError::WrongSignature));
    }
}

#[test]
fn the_right_name_with_another_key_behind_it_is_stopped_by_the_pin() {
    let (honest, forger) = (key(SigningAlgorithm::Es256), key(SigningAlgorithm::Es256));
    let jws = forge(&header(&honest, ""), &payload(signed(&honest).jws.as_str()), &forger);
    let replaced = jwks([(honest.kid().as_str(), forger.public())]);
    let result = verify_pinned(jws.as_bytes(), &replaced, &[honest.kid()]);
    let Err(VerifyError::NotPinned { found, pinned, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!((found, pinned), (forger.kid(), vec![honest.kid()]));
}

#[test]
fn algorithms_that_prove_nothing_are_not_taken() {
    let key = key(SigningAlgorithm::Es256);
    let payload = payload(signed(&key).jws.as_str());
    for name in ["none", "None", "nOnE", "", "HS256", "HS384", "HS512", "ES384", "PS256", "RS1"] {
        let header = format!("{{\"alg\":\"{name}\",\"kid\":\"{}\"}}", key.kid());
        let result = verify(forge(&header, &payload, &key).as_bytes(), &jwks_of(&key));
        assert_eq!(result, Err(VerifyError::AlgorithmNotAllowed(name.to_owned())));
    }
    // An empty signature, as `none` has it.
    let header = URL_SAFE_NO_PAD.encode(header(&key, ""));
    let empty = format!("{header}.{}.", URL_SAFE_NO_PAD.encode(&payload));
    assert_eq!(verify(empty.as_bytes(), &jwks_of(&key)), Err(VerifyError::WrongSignature));
}

#[test]
fn an_algorithm_that_is_not_that_of_the_key_is_not_taken() {
    let (p256, ed25519) = (key(SigningAlgorithm::Es256), key(SigningAlgorithm::EdDsa));
    let payload = payload(signed(&p256).jws.as_str());
    for (key, named, of_key) in [
        (&p256, Algorithm::EdDsa, Algorithm::Es256),
        (&p256, Algorithm::Rs256, Algorithm::Es256),
        (&ed25519, Algorithm::Es256, Algorithm::EdDsa),
    ] {
        let header = format!("{{\"alg\":\"{named}\",\"kid\":\"{}\"}}", key.kid());
        let result = verify(forge(&header, &payload, key).as_bytes(), &jwks_of(key));
        assert_eq!(result, Err(VerifyError::AlgorithmNotOfKey { named, of_key }));
    }
}

#[test]
fn a_header_that_brings_a_key_or_its_own_rules_is_refused() {
    let key = key(SigningAlgorithm::Es256);
    let payload = payload(signed(&key).jws.as_str());
    let own_key = serde_json::Value::from(key.public().to_jwk()).to_string();
    for (name, value) in [
        ("jku", "\"https://evil.example/keys\""),
        ("x5u", "\"https://evil.example/chain\""),
        ("jwk", own_key.as_str()),
        ("x5c", "[]"),
        ("crit", "[\"exp\"]"),
        ("crit", "[]"),
        ("b64", "false"),
        ("zip", "\"DEF\""),
    ] {
        let header = header(&key, &format!(",\"{name}\":{value}"));
        let result = verify(forge(&header, &payload, &key).as_bytes(), &jwks_of(&key));
        assert_eq!(result, Err(VerifyError::ForbiddenHeader(name)), "{header}");
    }
}

#[test]
fn a_header_that_is_odd_is_refused_by_the_name_of_its_oddity() {
    let key = key(SigningAlgorithm::Es256);
    let payload = payload(signed(&key).jws.as_str());
    let code = |header: &str| {
        let jws = forge(header, &payload, &key);
        verify(jws.as_bytes(), &jwks_of(&key)).map_or_else(|error| error.code(), |_| "believed")
    };
    let kid = key.kid();
    assert_eq!(code(&header(&key, ",\"typ\":\"application/JOSE\",\"new\":1")), "believed");
    assert_eq!(code(&header(&key, ",\"typ\":\"at+jwt\"")), "malformed_jws");
    assert_eq!(code(&header(&key, ",\"typ\":7")), "malformed_jws");
    assert_eq!(code(&header(&key, ",\"alg\":\"ES256\"")), "duplicate_member");
    assert_eq!(code("{\"alg\":\"ES256\"}"), "no_kid");
    assert_eq!(code("{\"alg\":\"ES256\",\"kid\":\"\"}"), "no_kid");
    assert_eq!(code("{\"alg\":\"ES256\",\"kid\":[1]}"), "no_kid");
    assert_eq!(code(&format!("{{\"kid\":\"{kid}\"}}")), "malformed_jws");
    assert_eq!(code("[]"), "malformed_jws");
    assert_eq!(code(""), "malformed_jws");
    assert_eq!(code(&header(&key, &format!(",\"x\":\"{}\"", "y".repeat(5000)))), "malformed_jws");
}

#[test]
fn a_payload_that_is_not_a_manifest_is_refused_though_it_is_signed() {
    let key = key(SigningAlgorithm::Es256);
    let code = |payload: &[u8]| {
        let jws = forge(&header(&key, ""), payload, &key);
        verify(jws.as_bytes(), &jwks_of(&key)).map_or_else(|error| error.code(), |_| "believed")
    };
    let twice =
        br#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest",
        "agent_id":"good","agent_id":"evil","aaep_versions_supported":["1.0.0"]}"#;
    assert_eq!(code(twice), "duplicate_member");
    assert_eq!(code(b"{}"), "not_a_manifest");
    assert_eq!(code(b"words"), "not_a_manifest");
    assert_eq!(code(b""), "not_a_manifest");
    let close = br#"{"type":"subscription.close","subscription_id":"sub_1"}"#;
    assert_eq!(code(close), "not_a_manifest");
}

#[test]
fn garbage_and_cut_off_documents_are_refused() {
    let key = key(SigningAlgorithm::Es256);
    let keys = jwks_of(&key);
    let signed = signed(&key);
    let jws = signed.jws.as_str();
    for length in 0..jws.len() {
        assert!(verify(&jws.as_bytes()[..length], &keys).is_err(), "the first {length} bytes");
    }
    let json = document(&signed).to_string();
    for length in 0..json.len() {
        assert!(verify(&json.as_bytes()[..length], &keys).is_err(), "the first {length} bytes");
    }
    let padded = format!("{jws}=");
    let dotted = format!("{jws}.");
    let spaced = jws.replacen('.', " .", 1);
    for text in [padded.as_str(), dotted.as_str(), spaced.as_str(), "...", "..", "\u{feff}{}"] {
        assert_eq!(
            verify(text.as_bytes(), &keys).expect_err(text).code(),
            "malformed_jws",
            "{text}"
        );
    }
    assert_eq!(verify(b"\xff\xfe", &keys).expect_err("bytes").code(), "malformed_jws");
    let mut not_text = document(&signed);
    not_text["extensions"][PREFIX]["signed_manifest"] = json!({ "jws": jws });
    let result = verify(not_text.to_string().as_bytes(), &keys);
    assert_eq!(result.expect_err("not a string").code(), "malformed_jws");
}

#[test]
fn a_key_off_the_curve_or_of_zeros_verifies_nothing() {
    let key = key(SigningAlgorithm::Es256);
    let jws = signed(&key).jws;
    for public in
        [PublicKey::P256 { x: [0; 32], y: [0; 32] }, PublicKey::P256 { x: [255; 32], y: [255; 32] }]
    {
        let keys: Jwks = jwks([(key.kid().as_str(), &public)]);
        let result = verify(jws.as_str().as_bytes(), &keys);
        assert_eq!(result, Err(VerifyError::WrongSignature));
    }
    // The signature of zeros that some libraries took for any message.
    let mut parts: Vec<&str> = jws.as_str().split('.').collect();
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    parts[2] = &zeros;
    let result = verify(parts.join(".").as_bytes(), &jwks_of(&key));
    assert_eq!(result, Err(VerifyError::WrongSignature));
}

#[test]
fn an_rsa_signature_of_another_producer_is_believed() {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let public = pair.public_key();
    let set = json!({ "keys": [{
        "kty": "RSA", "kid": "2026", "use": "sig", "alg": "RS256",
        "n": part(public.modulus().big_endian_without_leading_zero()),
        "e": part(public.exponent().big_endian_without_leading_zero()),
    }] });
    let keys = Jwks::parse(set.to_string().as_bytes()).expect("a key set");
    let payload = payload(signed(&key(SigningAlgorithm::EdDsa)).jws.as_str());
    let text = format!("{}.{}", part(b"{\"alg\":\"RS256\",\"kid\":\"2026\"}"), part(&payload));
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .expect("a signature");
    let jws = format!("{text}.{}", part(&signature));
    let verified = verify(jws.as_bytes(), &keys).expect("believed");
    assert_eq!((verified.kid.as_str(), verified.algorithm), ("2026", Algorithm::Rs256));
    signature[7] ^= 1;
    let forged = format!("{text}.{}", part(&signature));
    assert_eq!(verify(forged.as_bytes(), &keys), Err(VerifyError::WrongSignature));
}
