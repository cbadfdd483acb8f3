//! `aaep tokens` as a person or a script uses it: what it says, what it leaves on disk, exit codes.

mod printed;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use printed::{err, out};
use serde_json::Value;

/// Runs `aaep tokens` with this file.
fn tokens(file: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep"))
        .arg("tokens")
        .args(arguments)
        .arg("--file")
        .arg(file)
        .output()
        .expect("aaep runs")
}

/// Makes a token and gives its id and its secret.
fn new(file: &Path, arguments: &[&str]) -> (String, String) {
    let made = tokens(file, &[&["new"], arguments].concat());
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let text = out(&made);
    let id = text.split([' ', ',']).nth(2).expect("Made token ID").to_owned();
    (id, text.lines().last().expect("the secret").to_owned())
}

#[test]
fn a_token_is_made_listed_and_revoked() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("aaep/tokens.toml");
    let empty = tokens(&file, &["list"]);
    assert_eq!(empty.status.code(), Some(0), "{}", err(&empty));
    assert!(out(&empty).contains("Make one with: aaep tokens new"), "{}", out(&empty));
    assert!(!file.parent().expect("a folder").exists(), "looking makes nothing");

    let (laptop, _) =
        new(&file, &["--name", "NVDA on the laptop", "--scope", "listen", "--scope", "reply"]);
    let (builder, _) = new(&file, &["--name", "builder", "--scope", "publish"]);
    let text = out(&tokens(&file, &["list"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("2 tokens in "), "{text}");
    assert!(
        lines[1].starts_with(&format!("Token {laptop}, NVDA on the laptop, ending in ")),
        "{text}"
    );
    assert!(
        lines[1].contains("For nobody else. Allows listen, reply. Hears its own agents. Made "),
        "{text}"
    );
    assert!(lines[1].ends_with(" Never expires."), "{text}");
    assert!(lines[2].contains("Allows publish."), "{text}");

    let revoked = tokens(&file, &["revoke", &laptop]);
    assert_eq!(revoked.status.code(), Some(0), "{}", err(&revoked));
    let said = format!("Token {laptop}, NVDA on the laptop, is revoked.");
    assert!(out(&revoked).starts_with(&said), "{}", out(&revoked));
    let again = tokens(&file, &["revoke", &laptop]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("aaep tokens list"), "{}", err(&again));
    let list: Value =
        serde_json::from_str(&out(&tokens(&file, &["list", "--json"]))).expect("JSON");
    assert_eq!(list.as_array().expect("a list").len(), 1);
    assert_eq!(list[0]["id"], builder);
}

#[test]
fn the_secret_is_shown_once_and_only_its_hash_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("tokens.toml");
    let made = tokens(&file, &["new", "--name", "n", "--scope", "listen"]);
    assert!(out(&made).contains("It is shown here once and never again."), "{}", out(&made));
    let secret = out(&made).lines().last().expect("the secret").to_owned();
    assert!(secret.starts_with("aaep_") && secret.len() == 48, "{secret}");
    let kept = fs::read_to_string(&file).expect("the file");
    assert!(!kept.contains(&secret[5..]), "the secret is in the file");
    for arguments in [&["list"][..], &["list", "--json"]] {
        let listed = out(&tokens(&file, arguments));
        assert!(listed.contains(&secret[44..]) && !listed.contains(&secret), "{listed}");
    }
}

#[test]
fn a_token_can_be_for_one_agent_and_end_by_itself() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("tokens.toml");
    let arguments = ["--name", "n", "--scope", "listen", "--hears", "builder"];
    let made =
        tokens(&file, &[&["new"], &arguments[..], &["--expires-in-days", "7", "--json"]].concat());
    let made: Value = serde_json::from_str(&out(&made)).expect("JSON");
    assert!(made["secret"].as_str().expect("text").starts_with("aaep_"));
    assert_eq!(made["hears"], serde_json::json!(["builder"]));
    assert_eq!(made["is_expired"], false);
    let text = out(&tokens(&file, &["list"]));
    assert!(text.contains("Hears builder.") && text.contains(" Expires 2"), "{text}");
}

#[test]
fn what_cannot_be_done_ends_with_2_and_a_next_step() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("tokens.toml");
    let wrong: &[(&[&str], &str)] = &[
        (&["new", "--name", "n"], "--scope"),
        (&["new", "--name", "n", "--scope", "root"], "use listen, reply, publish or admin"),
        (&["new", "--name", "n", "--scope", "reply"], "Add: --scope listen"),
        (&["new", "--name", "a\u{1b}[2J", "--scope", "listen"], "control characters"),
        (&["new", "--name", " ", "--scope", "listen"], "control characters. Choose another."),
        (&["new", "--name", "n", "--scope", "listen", "--hears", ""], "The name of an agent"),
        (&["new", "--name", "n", "--scope", "listen", "--expires-in-days", "0"], "0"),
        (&["revoke", "tok_000000000000"], "aaep tokens list"),
    ];
    for (arguments, words) in wrong {
        let refused = tokens(&file, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(err(&refused).contains(words), "{arguments:?}: {}", err(&refused));
        assert!(!err(&refused).contains('\u{1b}'));
    }
    assert!(!file.exists());
    fs::write(&file, "token = 7").expect("written");
    let broken = tokens(&file, &["list"]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(err(&broken).contains("line 1"), "{}", err(&broken));
    fs::write(home.path().join("plain"), "").expect("written");
    let in_a_file = tokens(
        &home.path().join("plain/tokens.toml"),
        &["new", "--name", "n", "--scope", "listen"],
    );
    assert_eq!(in_a_file.status.code(), Some(2), "{}", err(&in_a_file));
}

#[test]
fn names_that_steer_a_terminal_are_escaped() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("tokens.toml");
    let (id, _) = new(&file, &["--name", "a\u{202e}b", "--scope", "listen"]);
    let listed = tokens(&file, &["list"]);
    let as_json = tokens(&file, &["list", "--json"]);
    let revoked = tokens(&file, &["revoke", &id]);
    for output in [listed, as_json, revoked] {
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(!out(&output).contains('\u{202e}') && out(&output).contains("202e"));
    }
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("aaep/tokens.toml");
    new(&file, &["--name", "n", "--scope", "listen"]);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).expect("changed");
    let refused = tokens(&file, &["list"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains(&format!("Run: chmod 600 '{}'\n", file.display())),
        "{}",
        err(&refused)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_secret_that_nobody_could_see_opens_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("tokens.toml");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let made = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["tokens", "new", "--name", "n", "--scope", "listen", "--file"])
        .arg(&file)
        .stdout(full)
        .output()
        .expect("aaep runs");
    assert_eq!(made.status.code(), Some(2));
    assert!(out(&tokens(&file, &["list"])).starts_with("There is no token"));
}

#[test]
fn the_help_documents_the_exit_codes() {
    for command in ["new", "list", "revoke"] {
        let help = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["tokens", command, "--help"])
            .output()
            .expect("aaep runs");
        assert!(out(&help).contains("Exit codes:\n  0  "), "{}", out(&help));
    }
}
