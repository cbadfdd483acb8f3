//! `aaep keys` as a person or a script uses it: what it says, what it leaves on disk, exit codes.

mod printed;

use std::path::Path;
use std::process::{Command, Output};

use printed::{err, out};
use serde_json::Value;

/// Runs `aaep keys` with this folder.
fn keys(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep"))
        .arg("keys")
        .args(arguments)
        .arg("--folder")
        .arg(folder)
        .output()
        .expect("aaep runs")
}

/// Makes a key and gives its name.
fn new(folder: &Path, arguments: &[&str]) -> String {
    let made = keys(folder, &[&["new"], arguments].concat());
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let text = out(&made);
    text.split_whitespace().nth(2).expect("Made key KID").to_owned()
}

#[test]
fn a_key_is_made_listed_rotated_and_retired() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("keys");
    let empty = keys(&folder, &["list"]);
    assert_eq!(empty.status.code(), Some(0));
    assert!(out(&empty).ends_with("Make one with: aaep keys new\n"), "{}", out(&empty));
    assert!(!folder.exists(), "looking makes nothing");

    let first = new(&folder, &[]);
    let second = new(&folder, &["--algorithm", "eddsa"]);
    let text = out(&keys(&folder, &["list"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("2 keys in "), "{text}");
    assert!(lines[1].starts_with(&format!("Key {first}, ES256, made ")), "{text}");
    assert!(lines[1].contains("no longer signs, published until "), "{text}");
    assert!(lines[2].starts_with(&format!("Key {second}, EdDSA, made ")), "{text}");
    assert!(lines[2].ends_with(": signs now."), "{text}");

    let active = keys(&folder, &["retire", &second]);
    assert_eq!(active.status.code(), Some(2));
    assert!(err(&active).contains("make another first with: aaep keys new"), "{}", err(&active));
    let retired = keys(&folder, &["retire", &first]);
    assert_eq!(retired.status.code(), Some(0), "{}", err(&retired));
    let again = keys(&folder, &["retire", &first]);
    assert_eq!(again.status.code(), Some(2));

    let list: Value =
        serde_json::from_slice(&keys(&folder, &["list", "--json"]).stdout).expect("JSON");
    assert_eq!((&list[0]["kid"], &list[0]["state"]), (&first.into(), &"retired".into()));
    assert_eq!((&list[1]["kid"], &list[1]["state"]), (&second.clone().into(), &"active".into()));
    let set: Value =
        serde_json::from_slice(&keys(&folder, &["list", "--jwks"]).stdout).expect("JSON");
    let published = set["keys"].as_array().expect("a list");
    assert_eq!(published.len(), 1);
    assert_eq!(published[0]["kid"], second);
    assert_eq!(published[0].get("d"), None);
}

#[test]
fn without_an_overlap_the_old_key_is_retired_at_once() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("keys");
    let first = new(&folder, &[]);
    new(&folder, &["--overlap-days", "0"]);
    assert!(out(&keys(&folder, &["list"])).contains("retired since"));
    assert!(!folder.join(format!("{first}.pem")).exists());
}

#[test]
fn what_cannot_be_done_ends_with_2_and_a_next_step() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("keys");
    let unknown = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    let missing = keys(&folder, &["retire", unknown]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("aaep keys list"), "{}", err(&missing));
    let wrong = keys(&folder, &["retire", "../../etc/passwd"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("copy all 43 characters"), "{}", err(&wrong));
    let rsa = keys(&folder, &["new", "--algorithm", "none"]);
    assert_eq!(rsa.status.code(), Some(2));
    std::fs::write(home.path().join("file"), "").expect("written");
    let in_a_file = keys(&home.path().join("file/keys"), &["new"]);
    assert_eq!(in_a_file.status.code(), Some(2));
    assert!(err(&in_a_file).starts_with("aaep: cannot "), "{}", err(&in_a_file));
}

#[cfg(unix)]
#[test]
fn keys_that_others_can_read_are_refused_with_the_command_that_closes_them() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("keys");
    new(&folder, &[]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("changed");
    let refused = keys(&folder, &["list"]);
    assert_eq!(refused.status.code(), Some(2));
    let command = format!("chmod 700 '{}'", folder.display());
    assert!(err(&refused).contains(&command), "{}", err(&refused));
}

#[test]
fn the_help_documents_the_exit_codes() {
    for command in ["new", "list", "retire"] {
        let help = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["keys", command, "--help"])
            .output()
            .expect("aaep runs");
        assert!(out(&help).contains("Exit codes:\n  0  "), "{}", out(&help));
    }
}
