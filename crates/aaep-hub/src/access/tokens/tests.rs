//! Tokens in use: what is written, what is accepted, and when.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::access::principal::Scope;

const SECOND_US: u64 = 1_000_000;
const BEGAN_UNIX_US: i64 = 1_800_000_000_000_000;

fn at(seconds: u64) -> Now {
    let passed_us = seconds * SECOND_US;
    Now {
        monotonic_us: passed_us,
        unix_us: BEGAN_UNIX_US + i64::try_from(passed_us).expect("small"),
    }
}

fn subscriber(name: &str) -> NewToken {
    let scopes = Scopes::NONE.with(Scope::Listen);
    NewToken {
        name: name.to_owned(),
        scopes,
        hears: HeardAgents::All,
        owners: ["ada".to_owned()].into(),
        speaks_as: ["builder".to_owned()].into(),
        expires: None,
    }
}

fn empty() -> (TempDir, PathBuf, Tokens) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokens.toml");
    let tokens = Tokens::load(&path).expect("no file, no tokens");
    (folder, path, tokens)
}

#[test]
fn a_token_is_found_again_and_its_secret_is_not_in_the_file() {
    let (_folder, path, mut tokens) = empty();
    let mut new = subscriber("NVDA on the laptop");
    new.hears = HeardAgents::only(["builder".to_owned()]).expect("a list");
    let (secret, token) = tokens.create(new, at(0)).expect("made");
    let read = Tokens::load(&path).expect("read");
    assert_eq!(read.list(), std::slice::from_ref(&token));
    assert_eq!(read.find(secret.reveal(), at(1)), Ok(&token));
    let text = fs::read_to_string(&path).expect("the file");
    assert!(!text.contains(&secret.reveal()[5..]) && text.contains(&token.last_four));
    assert!(secret.reveal().ends_with(&token.last_four));
    assert_eq!(token.principal().id, format!("token:{}", token.id));
}

#[test]
fn two_tokens_never_share_a_secret_or_an_id() {
    let (_folder, _, mut tokens) = empty();
    let (one, first) = tokens.create(subscriber("a"), at(0)).expect("made");
    let (two, second) = tokens.create(subscriber("a"), at(0)).expect("made");
    assert_ne!(one, two);
    assert_ne!(first.id, second.id);
    assert_eq!(tokens.find(two.reveal(), at(0)).expect("known").id, second.id);
}

#[test]
fn a_token_of_another_hub_is_unknown() {
    let (_folder, _, mut tokens) = empty();
    let (_other_folder, _, mut other) = empty();
    tokens.create(subscriber("ours"), at(0)).expect("made");
    let (secret, _) = other.create(subscriber("theirs"), at(0)).expect("made");
    assert_eq!(tokens.find(secret.reveal(), at(0)), Err(AccessError::UnknownToken));
    assert_eq!(tokens.find("aaep_short", at(0)), Err(AccessError::UnknownToken));
}

#[test]
fn a_token_ends_on_the_second() {
    let (_folder, path, mut tokens) = empty();
    let mut new = subscriber("visitor");
    new.expires = Timestamp::from_second(1_800_000_060).ok();
    let (secret, _) = tokens.create(new, at(0)).expect("made");
    let tokens = Tokens::load(&path).expect("read");
    assert!(tokens.find(secret.reveal(), at(59)).is_ok());
    assert_eq!(tokens.find(secret.reveal(), at(60)), Err(AccessError::ExpiredToken));
    assert_eq!(tokens.find(secret.reveal(), at(61)), Err(AccessError::ExpiredToken));
}

#[test]
fn a_revocation_by_another_program_acts_within_a_second() {
    let (_folder, path, mut tokens) = empty();
    let (secret, token) = tokens.create(subscriber("phone"), at(0)).expect("made");
    tokens.refresh(at(10));
    assert!(tokens.find(secret.reveal(), at(10)).is_ok());
    Tokens::load(&path).expect("read").revoke(&token.id).expect("revoked");
    let a_moment_later = Now { monotonic_us: 11 * SECOND_US - 1, ..at(10) };
    tokens.refresh(a_moment_later);
    assert!(tokens.find(secret.reveal(), at(10)).is_ok(), "not yet looked at");
    tokens.refresh(at(11));
    assert_eq!(tokens.find(secret.reveal(), at(11)), Err(AccessError::UnknownToken));
}

#[test]
fn a_change_by_another_program_is_not_overwritten() {
    let (_folder, path, mut here) = empty();
    let mut there = Tokens::load(&path).expect("read");
    let (one, _) = here.create(subscriber("one"), at(0)).expect("made");
    let (two, _) = there.create(subscriber("two"), at(0)).expect("made");
    let read = Tokens::load(&path).expect("read");
    assert!(read.find(one.reveal(), at(0)).is_ok() && read.find(two.reveal(), at(0)).is_ok());
}

#[test]
fn a_broken_file_lets_nobody_in_until_it_is_whole_again() {
    let (_folder, path, mut tokens) = empty();
    let (secret, _) = tokens.create(subscriber("phone"), at(0)).expect("made");
    let whole = fs::read_to_string(&path).expect("the file");
    for broken in ["[[token]]\nid = \"tok_1\"", "\u{0}", "[[token]", &whole[..whole.len() - 10]] {
        write_as_owner(&path, broken);
        tokens.refresh(at(100));
        tokens.checked_us = None;
        let refused = tokens.find(secret.reveal(), at(100));
        assert!(
            matches!(refused, Err(AccessError::Tokens(TokensError::Broken(..)))),
            "{refused:?}"
        );
        assert!(tokens.list().is_empty());
    }
    write_as_owner(&path, &whole);
    tokens.refresh(at(200));
    assert!(tokens.find(secret.reveal(), at(200)).is_ok());
    fs::remove_file(&path).expect("removed");
    tokens.refresh(at(300));
    assert_eq!(tokens.find(secret.reveal(), at(300)), Err(AccessError::UnknownToken));
}

#[test]
fn a_file_with_impossible_values_is_refused_by_field() {
    let (_folder, path, mut tokens) = empty();
    tokens.create(subscriber("phone"), at(0)).expect("made");
    let whole = fs::read_to_string(&path).expect("the file");
    let hash = tokens.list()[0].hash.to_hex();
    for (from, to, named) in [
        (hash.as_str(), "abc", "sha256"),
        ("2027-01-15T08:00:00Z", "yesterday", "created"),
        ("\"phone\"", "\"\"", "name"),
        ("\"listen\"", "\"root\"", "scope"),
        ("last_four", "first_four", "first_four"),
    ] {
        assert!(whole.contains(from), "{from} in {whole}");
        write_as_owner(&path, &whole.replace(from, to));
        let error = Tokens::load(&path).expect_err("refused").to_string();
        assert!(error.contains(named) && error.contains("no token is accepted"), "{error}");
    }
    write_as_owner(&path, &format!("{whole}{}", whole.trim_start_matches(|it| it != '[')));
    assert!(Tokens::load(&path).expect_err("twice").to_string().contains("earlier one"));
}

#[test]
fn a_file_without_end_is_not_read_to_the_end() {
    let (_folder, path, _) = empty();
    let bytes = usize::try_from(MAX_TOKENS_BYTES).expect("fits") + 1;
    write_as_owner(&path, &"#".repeat(bytes));
    assert_eq!(Tokens::load(&path).expect_err("too large"), TokensError::TooLarge(path.clone()));
}

#[test]
fn what_makes_no_sense_is_not_made() {
    let (_folder, path, mut tokens) = empty();
    assert_eq!(tokens.create(subscriber(" "), at(0)), Err(TokensError::BadName));
    assert_eq!(tokens.create(subscriber("a\u{7}"), at(0)), Err(TokensError::BadName));
    let nothing = NewToken { scopes: Scopes::NONE, ..subscriber("a") };
    assert_eq!(tokens.create(nothing, at(0)), Err(TokensError::NoScopes));
    let past = NewToken { expires: Timestamp::from_second(5).ok(), ..subscriber("a") };
    assert_eq!(tokens.create(past, at(0)), Err(TokensError::AlreadyExpired));
    assert_eq!(tokens.revoke("tok_none"), Err(TokensError::NoSuchToken));
    assert!(!path.exists());
}

#[test]
fn a_folder_that_cannot_be_written_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("missing").join("tokens.toml");
    let mut tokens = Tokens::load(&path).expect("no file, no tokens");
    let error = tokens.create(subscriber("a"), at(0)).expect_err("no folder");
    assert!(matches!(error, TokensError::Unwritable(..)), "{error}");
    assert!(tokens.list().is_empty());
}

#[cfg(unix)]
#[test]
fn the_file_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, path, mut tokens) = empty();
    tokens.create(subscriber("a"), at(0)).expect("made");
    let mode = fs::metadata(&path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(names, 2, "the file and its lock, nothing left over");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("changed");
    assert_eq!(Tokens::load(&path).expect_err("refused"), TokensError::WritableByOthers(path));
}

#[cfg(unix)]
#[test]
fn a_file_whose_mode_was_repaired_is_believed_again() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path, mut tokens) = empty();
    let (secret, _) =
        Tokens::load(&path).expect("none").create(subscriber("a"), at(0)).expect("made");
    let set_mode = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    set_mode(0o620);
    tokens.refresh(at(1));
    assert!(matches!(tokens.find(secret.reveal(), at(1)), Err(AccessError::Tokens(_))));
    // Changing the mode changes neither the time nor the length of the file.
    set_mode(0o600);
    tokens.refresh(at(2));
    assert!(tokens.find(secret.reveal(), at(2)).is_ok());
}

fn write_as_owner(path: &Path, text: &str) {
    // An existing file keeps its mode; for a new one, the umask of the process may be too permissive.
    fs::write(path, text).expect("written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("mode");
    }
}
