//! The life of a ring: made, rotated, retired, readable by others, damaged, interrupted, contended.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;

const NOW: i64 = 1_790_000_000_000;
const DAY: Duration = Duration::from_hours(24);
const DAY_MS: i64 = 86_400_000;

fn ring() -> (TempDir, KeyRing) {
    let home = tempfile::tempdir().expect("a folder");
    let ring = KeyRing::open(&home.path().join("keys")).expect("an empty ring");
    (home, ring)
}

fn kids(ring: &KeyRing, now_unix_ms: i64) -> Vec<String> {
    let set = ring.jwks(now_unix_ms).to_string();
    Jwks::parse(set.as_bytes()).expect("a key set").keys().iter().map(|it| it.kid.clone()).collect()
}

fn text_of(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("a file")
}

#[test]
fn a_new_key_signs_and_is_there_after_a_restart() {
    for algorithm in [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa] {
        let (_home, mut ring) = ring();
        assert!(matches!(ring.active(), Err(KeyRingError::NoActiveKey)));
        let kid = ring.new_key(algorithm, DAY, NOW).expect("a key");
        let again = KeyRing::open(ring.folder()).expect("the ring");
        assert_eq!(again.records(), ring.records());
        let key = again.active().expect("a key");
        assert_eq!(key.kid(), kid);
        assert_eq!(key.algorithm(), algorithm.into());
        assert_eq!(kids(&again, NOW), [kid.to_string()]);
    }
}

#[test]
fn rotation_keeps_the_old_key_published_for_the_overlap_and_no_longer() {
    let (_home, mut ring) = ring();
    let old = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key").to_string();
    let new = ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW + 1).expect("a key").to_string();
    assert_eq!(ring.active().expect("a key").kid().as_str(), new);
    assert_eq!(kids(&ring, NOW + DAY_MS), [old.clone(), new.clone()], "the last moment of it");
    assert_eq!(kids(&ring, NOW + 1 + DAY_MS), [new.as_str()], "the first moment after it");
    assert!(ring.folder().join(format!("{old}.pem")).exists());
    ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW + 2 * DAY_MS).expect("a key");
    assert!(!ring.folder().join(format!("{old}.pem")).exists(), "its private half is deleted");
    assert!(ring.folder().join(format!("{new}.pem")).exists());
}

#[test]
fn a_key_set_shows_no_private_field() {
    let (_home, mut ring) = ring();
    ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
    ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    let set = ring.jwks(NOW);
    let keys = set["keys"].as_array().expect("a list");
    assert_eq!(keys.len(), 2);
    for key in keys {
        for name in key.as_object().expect("an object").keys() {
            let public = ["alg", "crv", "kid", "kty", "use", "x", "y"];
            assert!(public.contains(&name.as_str()), "{name}");
        }
    }
    let list = text_of(ring.folder(), "keys.toml");
    for record in ring.records() {
        let pem = text_of(ring.folder(), &format!("{}.pem", record.kid()));
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PKCS 8");
        let secret = &pem.lines().nth(1).expect("base64")[24..56];
        assert!(!set.to_string().contains(secret) && !list.contains(secret));
    }
}

#[test]
fn retiring_ends_the_overlap_at_once() {
    let (_home, mut ring) = ring();
    let old = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
    assert!(matches!(ring.retire(&old, NOW), Err(KeyRingError::IsActive(_))));
    let new = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
    ring.retire(&old, NOW).expect("retired");
    assert_eq!(kids(&ring, NOW), [new.to_string()]);
    assert!(!ring.folder().join(format!("{old}.pem")).exists());
    assert!(matches!(ring.retire(&old, NOW), Err(KeyRingError::AlreadyRetired(_))));
    let stranger = SigningKey::generate(SigningAlgorithm::Es256).expect("a key").kid();
    assert!(matches!(ring.retire(&stranger, NOW), Err(KeyRingError::UnknownKid(_))));
    assert_eq!(kids(&KeyRing::open(ring.folder()).expect("the ring"), NOW), [new.to_string()]);
}

#[test]
fn a_ring_forgets_the_oldest_retired_key_and_never_one_that_is_published() {
    let (_home, mut ring) = ring();
    for _ in 0..MAX_KEYS + 3 {
        ring.new_key(SigningAlgorithm::EdDsa, Duration::ZERO, NOW).expect("a key");
    }
    assert_eq!(ring.records().len(), MAX_KEYS);
    assert_eq!(fs::read_dir(ring.folder()).expect("a folder").count(), 3, "list, lock, one key");
    let (_home, mut ring) = self::ring();
    for _ in 0..MAX_KEYS {
        ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    }
    let full = ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW);
    assert!(matches!(full, Err(KeyRingError::TooManyKeys)));
    assert_eq!(kids(&KeyRing::open(ring.folder()).expect("the ring"), NOW).len(), MAX_KEYS);
}

#[test]
fn two_processes_do_not_lose_each_others_keys() {
    let (_home, mut ring) = ring();
    let first = ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    let mut other = KeyRing::open(ring.folder()).expect("the ring");
    let second = other.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    let third = ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    assert_eq!(kids(&ring, NOW), [first, second, third].map(|it| it.to_string()));
    let _held = private_file::lock(&ring.folder().join("keys.lock")).expect("a lock");
    let busy = ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW);
    assert!(matches!(busy, Err(KeyRingError::Busy)), "{busy:?}");
}

#[test]
fn a_list_that_is_torn_or_tampered_with_is_refused() {
    let (_home, mut ring) = ring();
    ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    ring.new_key(SigningAlgorithm::EdDsa, DAY, NOW).expect("a key");
    let path = ring.folder().join("keys.toml");
    let list = fs::read_to_string(&path).expect("the list");
    let two_active = list.replace("retires_at", "created_at_too");
    let kid = ring.records()[0].kid().as_str();
    let other_kid = list.replace(kid, "../../../../../../../../../../../etc/passwd");
    let swapped = list.replace(kid, ring.records()[1].kid().as_str());
    for text in [&list[..list.len() - 9], "\u{0}", "key = 1", &two_active, &other_kid, &swapped] {
        fs::write(&path, text).expect("written");
        let opened = KeyRing::open(ring.folder());
        assert!(matches!(opened, Err(KeyRingError::ListUnreadable(_))), "{text}");
    }
    fs::write(&path, vec![b'#'; 100_000]).expect("written");
    let opened = KeyRing::open(ring.folder());
    assert!(matches!(opened, Err(KeyRingError::File(PrivateFileError::TooLarge(_)))));
}

#[test]
fn a_private_key_that_is_missing_cut_off_or_exchanged_does_not_sign() {
    let (_home, mut ring) = ring();
    let kid = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
    let path = ring.folder().join(format!("{kid}.pem"));
    let pem = fs::read(&path).expect("the key");
    let other = SigningKey::generate(SigningAlgorithm::Es256).expect("a key");
    let other = other.to_pem().expect("PEM").into_bytes();
    for (content, expected) in [
        (&pem[..pem.len() / 2], PrivateKeyProblem::Unusable),
        (&other[..], PrivateKeyProblem::AnotherKey),
    ] {
        fs::write(&path, content).expect("written");
        let Err(KeyRingError::PrivateKey { problem, .. }) = ring.active() else {
            panic!("it must not sign");
        };
        assert_eq!(problem, expected);
    }
    fs::remove_file(&path).expect("removed");
    let Err(KeyRingError::PrivateKey { problem, .. }) = ring.active() else {
        panic!("it must not sign");
    };
    assert_eq!(problem, PrivateKeyProblem::Missing);
}

#[cfg(unix)]
mod permissions {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    }

    #[test]
    fn folder_and_files_are_for_their_owner_alone() {
        let (_home, mut ring) = ring();
        ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
        assert_eq!(mode(ring.folder()), 0o700);
        for entry in fs::read_dir(ring.folder()).expect("a folder").flatten() {
            assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
        }
    }

    #[test]
    fn what_others_can_read_is_refused_with_the_command_that_closes_it() {
        let (_home, mut ring) = ring();
        let kid = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
        let path = ring.folder().join(format!("{kid}.pem"));
        for open in [0o640, 0o604, 0o620, 0o666] {
            chmod(&path, open);
            let said = ring.active().expect_err("refused").to_string();
            let command = format!("chmod 600 '{}'", path.display());
            assert!(said.contains(&command) && said.contains(&format!("{open:o}")), "{said}");
            assert_eq!(mode(&path), open, "it is not repaired silently");
        }
        chmod(&path, 0o600);
        ring.active().expect("it signs again");
        chmod(ring.folder(), 0o755);
        let said = KeyRing::open(ring.folder()).expect_err("refused").to_string();
        assert!(said.contains(&format!("chmod 700 '{}'", ring.folder().display())), "{said}");
        assert!(ring.new_key(SigningAlgorithm::Es256, DAY, NOW).is_err());
    }

    #[test]
    fn a_link_in_place_of_a_key_is_refused() {
        let (home, mut ring) = ring();
        let kid = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
        let path = ring.folder().join(format!("{kid}.pem"));
        let elsewhere = home.path().join("elsewhere.pem");
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("a link");
        let found = ring.active();
        assert!(matches!(found, Err(KeyRingError::File(PrivateFileError::NotAFile(_)))));
    }

    #[test]
    fn a_crash_before_the_list_is_written_leaves_the_old_ring() {
        let (_home, mut ring) = ring();
        let kid = ring.new_key(SigningAlgorithm::Es256, DAY, NOW).expect("a key");
        // A folder at the path of the new list simulates a disk that refuses to write.
        fs::create_dir(ring.folder().join("keys.toml.new")).expect("a folder");
        let failed = ring.new_key(SigningAlgorithm::Es256, DAY, NOW);
        assert!(matches!(failed, Err(KeyRingError::File(PrivateFileError::System { .. }))));
        assert_eq!(ring.active().expect("the old key").kid(), kid);
        let again = KeyRing::open(ring.folder()).expect("the ring");
        assert_eq!(kids(&again, NOW), [kid.to_string()]);
        let pems = fs::read_dir(ring.folder()).expect("a folder").flatten();
        let pems = pems.filter(|it| it.path().extension().is_some_and(|it| it == "pem"));
        assert_eq!(pems.count(), 1, "no key stays that nobody knows of");
    }
}

#[test]
fn a_key_set_is_read_with_suspicion() {
    let key = SigningKey::generate(SigningAlgorithm::Es256).expect("a key");
    let mut good = key.public().to_jwk();
    good.insert("kid".to_owned(), "a".into());
    let parse = |keys: Value| Jwks::parse(json!({ "keys": keys }).to_string().as_bytes());
    assert_eq!(parse(json!([good])).expect("a set").keys().len(), 1);
    let named = |name: &str, value: Value| {
        let mut jwk = good.clone();
        jwk.insert(name.to_owned(), value);
        jwk
    };
    for passed_over in [
        json!({ "kty": "EC", "crv": "P-384", "kid": "b" }),
        named("use", "enc".into()).into(),
        named("alg", "ES384".into()).into(),
        named("key_ops", json!(["sign"])).into(),
        named("kid", "x".repeat(MAX_KID_BYTES + 1).into()).into(),
    ] {
        assert_eq!(parse(json!([passed_over])).expect("a set").keys(), []);
    }
    for name in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
        let leaked = parse(json!([named(name, "AAAA".into())]));
        assert_eq!(leaked, Err(JwksError::HoldsPrivateKey("a".to_owned())), "{name}");
    }
    assert_eq!(parse(json!([good, good])), Err(JwksError::SameKidTwice("a".to_owned())));
    assert_eq!(
        parse(json!([named("x", "AA".into())])),
        Err(JwksError::MalformedKey("a".to_owned()))
    );
    assert_eq!(parse(json!([1])), Err(JwksError::NotAKeySet));
    assert_eq!(Jwks::parse(b"[]"), Err(JwksError::NotAKeySet));
    assert_eq!(Jwks::parse(b"{\"keys\":["), Err(JwksError::NotJson));
    assert_eq!(Jwks::parse(b"{\"keys\":[],\"keys\":[]}"), Err(JwksError::DuplicateMember));
}

#[test]
fn ten_thousand_keys_are_too_many() {
    let key = |at: usize| json!({ "kty": "unknown", "kid": at.to_string() });
    let many: Vec<Value> = (0..10_000).map(key).collect();
    let set = json!({ "keys": many }).to_string();
    assert!(set.len() > MAX_JWKS_BYTES);
    assert_eq!(Jwks::parse(set.as_bytes()), Err(JwksError::TooLarge));
    let tiny = format!("{{\"keys\":[{}{{}}]}}", "{},".repeat(9_999));
    assert_eq!(Jwks::parse(tiny.as_bytes()), Err(JwksError::TooManyKeys(10_000)));
}

#[test]
fn no_key_has_a_name_that_looks_like_an_option() {
    // One in 64 would, so it is almost certain among a thousand.
    for _ in 0..1000 {
        let key = generate_nameable(SigningAlgorithm::EdDsa).expect("a key");
        assert!(!key.kid().as_str().starts_with('-'), "{}", key.kid());
    }
}
