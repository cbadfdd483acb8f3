//! A producer is known by its key from the first time on, and a changed key is refused aloud.

use std::fs;

use aaep_trust::keys::{PrivateFileError, SigningAlgorithm, Thumbprint};
use aaep_trust::manifest::{MAX_PINS, PinError, PinStore, VerifyError};

use crate::support::*;

#[test]
fn the_pinned_key_is_known_and_any_other_is_refused_aloud() {
    let (known, other) = (key(SigningAlgorithm::Es256), key(SigningAlgorithm::EdDsa));
    let pins = [known.kid()];
    let good = verify_pinned(signed(&known).jws.as_str().as_bytes(), &jwks_of(&known), &pins);
    assert!(good.expect("believed").pinned);
    let changed = verify_pinned(signed(&other).jws.as_str().as_bytes(), &jwks_of(&other), &pins);
    let said = changed.expect_err("refused").to_string();
    assert!(said.starts_with("WARNING: the key has changed."), "{said}");
    assert!(said.contains(known.kid().as_str()), "{said}");
    let command = format!("aaep manifest verify {ORIGIN} --pin {} --trust-first", other.kid());
    assert!(said.ends_with(&command), "{said}");
}

#[test]
fn a_forged_manifest_is_told_from_a_changed_key() {
    let (known, other) = (key(SigningAlgorithm::Es256), key(SigningAlgorithm::Es256));
    let forged = forge(&header(&known, ""), &payload(signed(&known).jws.as_str()), &other);
    let result = verify_pinned(forged.as_bytes(), &jwks_of(&known), &[known.kid()]);
    assert_eq!(result, Err(VerifyError::WrongSignature));
}

#[test]
fn pins_survive_a_restart_and_are_replaced_only_by_the_users_word() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("aaep").join("pins.toml");
    let mut store = PinStore::open(&path).expect("no pins yet");
    assert_eq!(store.get(ORIGIN), None);
    let (first, second) = (key(SigningAlgorithm::Es256).kid(), key(SigningAlgorithm::Es256).kid());
    store.pin(ORIGIN, first.clone(), NOW).expect("pinned");
    store.pin("https://other.example", second.clone(), NOW).expect("pinned");
    let mut again = PinStore::open(&path).expect("the pins");
    assert_eq!(again.pins(), store.pins());
    assert_eq!(again.get(ORIGIN).map(|pin| &pin.thumbprint), Some(&first));
    again.pin(ORIGIN, second.clone(), NOW + 5).expect("pinned");
    let pin = PinStore::open(&path).expect("the pins").get(ORIGIN).cloned().expect("a pin");
    assert_eq!((pin.thumbprint, pin.pinned_unix_ms), (second, NOW + 5));
    assert_eq!(again.pins().len(), 2);
}

#[test]
fn two_programs_do_not_lose_each_others_pins() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("pins.toml");
    let (mut one, mut two) =
        (PinStore::open(&path).expect("pins"), PinStore::open(&path).expect("pins"));
    one.pin("https://a.example", key(SigningAlgorithm::EdDsa).kid(), NOW).expect("pinned");
    two.pin("https://b.example", key(SigningAlgorithm::EdDsa).kid(), NOW).expect("pinned");
    assert_eq!(PinStore::open(&path).expect("pins").pins().len(), 2);
}

#[test]
fn a_file_of_pins_that_is_torn_or_contradicts_itself_is_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("pins.toml");
    let mut store = PinStore::open(&path).expect("no pins yet");
    store.pin(ORIGIN, key(SigningAlgorithm::EdDsa).kid(), NOW).expect("pinned");
    let good = fs::read_to_string(&path).expect("the file");
    let twice = format!("{good}{}", &good[good.find("[[pin]]").expect("a pin")..]);
    let unknown = good.replace("pinned_at", "expires_at");
    for text in [&good[..good.len() - 5], &twice, &unknown, "\u{1}", "pin = 3"] {
        fs::write(&path, text).expect("written");
        let opened = PinStore::open(&path);
        assert!(matches!(opened, Err(PinError::Unreadable(_))), "{text}");
        let pinned = store.pin("https://new.example", key(SigningAlgorithm::EdDsa).kid(), NOW);
        assert!(pinned.is_err(), "it is not written over");
        assert_eq!(fs::read_to_string(&path).expect("the file"), *text);
    }
}

#[cfg(unix)]
#[test]
fn pins_that_others_can_change_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("pins.toml");
    let mut store = PinStore::open(&path).expect("no pins yet");
    store.pin(ORIGIN, key(SigningAlgorithm::EdDsa).kid(), NOW).expect("pinned");
    let mode = || fs::metadata(&path).expect("the file").permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("changed");
    let opened = PinStore::open(&path);
    let Err(PinError::File(error @ PrivateFileError::OpenToOthers { .. })) = opened else {
        panic!("{opened:?}");
    };
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn names_and_numbers_of_pins_are_bounded() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("pins.toml");
    let kid = key(SigningAlgorithm::EdDsa).kid();
    let mut store = PinStore::open(&path).expect("no pins yet");
    for name in ["", &"x".repeat(1000)] {
        assert!(matches!(store.pin(name, kid.clone(), NOW), Err(PinError::Name)));
    }
    assert!(!path.exists());
    let entry = |at: usize, kid: &Thumbprint| {
        format!(
            "[[pin]]\nproducer = \"https://p{at}.example\"\nthumbprint = \"{kid}\"\npinned_at = \"2026-09-21T14:13:20.000Z\"\n"
        )
    };
    let full: String = (0..MAX_PINS).map(|at| entry(at, &kid)).collect();
    store.pin(ORIGIN, kid.clone(), NOW).expect("pinned, and the file is private");
    fs::write(&path, full).expect("written");
    assert!(matches!(store.pin(ORIGIN, kid.clone(), NOW), Err(PinError::TooMany)));
    store.pin("https://p7.example", kid, NOW + 1).expect("a pin that is there can be replaced");
    assert_eq!(PinStore::open(&path).expect("the pins").pins().len(), MAX_PINS);
}
