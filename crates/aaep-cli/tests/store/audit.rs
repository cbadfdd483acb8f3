//! The audit log: shown, verified, exported, and caught when someone changed it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use aaep_hub::store::{OpenOptions, Store};
use serde_json::Value;

use crate::support::{aaep, err, open, out, write};

/// Runs `aaep audit verify` on a file alone.
fn verify_file(file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["audit", "verify", "--file"])
        .arg(file)
        .env_remove("AAEP_STORE")
        .output()
        .expect("aaep runs")
}

#[test]
fn entries_are_told_oldest_first_with_their_words() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let text = out(&aaep(home.path(), &["audit", "show"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    let first =
        "Entry 1, 2023-11-14T22:13:45.000Z: asked, by builder, session sess_done, question ";
    assert!(lines[0].starts_with(first), "{text}");
    assert!(lines[0].ends_with(". Outcome: waits. Words: Delete the database?"), "{text}");
    assert!(lines[2].ends_with(". Words: \\u{1b}[2J\\u{202e}\\u{9b}"), "{text}");
    assert!(!text.contains("rpl_1"), "tokens are never told");

    let last = out(&aaep(home.path(), &["audit", "show", "--last", "2"]));
    assert_eq!(last.lines().collect::<Vec<_>>(), lines[2..]);
    let one = out(&aaep(home.path(), &["audit", "show", "--session", "sess_runs"]));
    assert_eq!(one.lines().collect::<Vec<_>>(), lines[3..]);
    let none = out(&aaep(home.path(), &["audit", "show", "--session", "sess_other"]));
    assert_eq!(none, "The audit log has no entries of session sess_other.\n");
}

#[test]
fn a_log_that_holds_is_said_to_hold() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let held = aaep(home.path(), &["audit", "verify"]);
    assert_eq!(held.status.code(), Some(0), "{}", err(&held));
    assert!(out(&held).starts_with("The audit log holds: 4 entries, nothing changed.\n"));
    let alone = verify_file(&home.path().join("audit.jsonl"));
    assert_eq!(alone.status.code(), Some(0), "{}", err(&alone));
    assert!(out(&alone).contains("use --store"), "{}", out(&alone));
    let as_json: Value =
        serde_json::from_str(&out(&aaep(home.path(), &["audit", "verify", "--json"])))
            .expect("JSON");
    assert_eq!((&as_json["valid"], &as_json["entries"]), (&true.into(), &4.into()));
    let hash = as_json["last_hash"].as_str().expect("a hash");
    assert!(hash.len() == 64 && out(&held).contains(hash));
}

#[test]
fn an_empty_log_holds() {
    let home = tempfile::tempdir().expect("a folder");
    drop(open(home.path()));
    let held = aaep(home.path(), &["audit", "verify"]);
    assert_eq!(held.status.code(), Some(0), "{}", err(&held));
    assert_eq!(out(&held), "The audit log holds: 0 entries, nothing changed.\n");
    assert_eq!(out(&aaep(home.path(), &["audit", "show"])), "The audit log has no entries.\n");
    let listed = out(&aaep(home.path(), &["sessions", "list"]));
    assert!(listed.starts_with("There is no session in "), "{listed}");
}

#[test]
fn a_changed_line_is_caught_and_nothing_is_shown_as_true() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let file = home.path().join("audit.jsonl");
    let log = fs::read_to_string(&file).expect("the log");
    fs::write(&file, log.replacen("\"reject\"", "\"accept\"", 1)).expect("written");
    for verified in [aaep(home.path(), &["audit", "verify"]), verify_file(&file)] {
        assert_eq!(verified.status.code(), Some(1), "{}", err(&verified));
        let text = out(&verified);
        assert!(text.starts_with("The audit log cannot be trusted. Line 2 "), "{text}");
    }
    let as_json = aaep(home.path(), &["audit", "verify", "--json"]);
    assert_eq!(as_json.status.code(), Some(1));
    let as_json: Value = serde_json::from_str(&out(&as_json)).expect("JSON");
    assert_eq!((&as_json["valid"], &as_json["line"]), (&false.into(), &2.into()));
    let shown = aaep(home.path(), &["audit", "show"]);
    assert_eq!((shown.status.code(), out(&shown).as_str()), (Some(2), ""));
    assert!(err(&shown).contains("cannot be trusted"), "{}", err(&shown));
}

#[test]
fn a_log_that_a_hub_has_set_aside_is_told_until_someone_has_looked_at_it() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let file = home.path().join("audit.jsonl");
    let log = fs::read_to_string(&file).expect("the log");
    fs::write(&file, log.replacen("\"reject\"", "\"accept\"", 1)).expect("written");
    // A hub opens its store in this way.
    let repairs = OpenOptions { repairs: true, ..OpenOptions::default() };
    drop(Store::open_with(home.path(), repairs).expect("opened"));
    let verified = aaep(home.path(), &["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(1), "{}", err(&verified));
    assert!(out(&verified).contains("audit-broken-1.jsonl"), "{}", out(&verified));
    let alone = verify_file(&file);
    assert_eq!(alone.status.code(), Some(0), "{}", err(&alone));
    assert!(out(&alone).contains("audit-broken-1.jsonl"), "{}", out(&alone));
    for kept in ["audit-broken-1.jsonl", "audit-broken-1-tail.jsonl"] {
        let _ = fs::remove_file(home.path().join(kept));
    }
    let verified = aaep(home.path(), &["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
    assert!(out(&verified).contains("audit-broken-1.jsonl"), "{}", out(&verified));
}

#[test]
fn lines_missing_at_the_end_are_noticed_by_the_store() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    // Once more, so that the store knows the file to be safe.
    drop(open(home.path()));
    let file = home.path().join("audit.jsonl");
    let log = fs::read_to_string(&file).expect("the log");
    let three: String = log.split_inclusive('\n').take(3).collect();
    fs::write(&file, three).expect("written");
    let alone = verify_file(&file);
    assert_eq!(alone.status.code(), Some(0), "a file alone cannot know");
    let with_store = aaep(home.path(), &["audit", "verify"]);
    assert_eq!(with_store.status.code(), Some(1), "{}", out(&with_store));
    fs::write(&file, &log[..log.len() - 5]).expect("written");
    let torn = verify_file(&file);
    assert_eq!(torn.status.code(), Some(1));
    assert!(out(&torn).contains("If a hub is writing to it now"), "{}", out(&torn));
}

#[test]
fn an_export_has_every_entry_and_never_replaces_a_file() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("store");
    write(&folder);
    let text = out(&aaep(&folder, &["audit", "export"]));
    assert!(text.is_ascii());
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[1]["details"], "Never");

    let file = home.path().join("export.jsonl");
    let name = file.to_str().expect("UTF-8");
    let written = aaep(&folder, &["audit", "export", "--output", name]);
    assert_eq!(written.status.code(), Some(0), "{}", err(&written));
    assert!(out(&written).starts_with("Wrote 4 entries to "), "{}", out(&written));
    assert_eq!(fs::read_to_string(&file).expect("the export"), text);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let again = aaep(&folder, &["audit", "export", "--output", name]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("Choose another name"), "{}", err(&again));
    assert_eq!(fs::read_to_string(&file).expect("the export"), text);
}

#[test]
fn a_missing_file_is_a_failure_and_not_an_answer() {
    let home = tempfile::tempdir().expect("a folder");
    let missing = verify_file(&home.path().join("none.jsonl"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).starts_with("aaep: cannot read "), "{}", err(&missing));
    let garbage = home.path().join("garbage");
    fs::write(&garbage, [0xff; 100]).expect("written");
    assert_eq!(verify_file(&garbage).status.code(), Some(1));
    assert_eq!(verify_file(home.path()).status.code(), Some(2));
}
