//! `aaep backup` and `aaep audit show` while a hub runs, and what can be done with a backup.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{Hub, aaep, err, out};

/// Runs a command of the person who runs the hub in this folder.
fn run(hub: &Hub, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = hub.aaep(arguments);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, folder);
    }
    command.output().expect("aaep runs")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_hub_that_runs_is_backed_up_and_its_audit_log_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let run = |arguments: &[&str]| run(&hub, folder.path(), arguments);
    let asked = run(&["ask", "Delete the attic?", "--irreversible", "--timeout", "5"]);
    assert_eq!(asked.status.code(), Some(1), "nobody was there: {}", err(&asked));

    let shown = run(&["audit", "show"]);
    assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
    assert!(out(&shown).contains("Delete the attic?"), "{}", out(&shown));
    let store = folder.path().join("store");
    let by_folder = run(&["audit", "show", "--store", path(&store)]);
    assert_eq!(out(&by_folder), out(&shown), "{}", err(&by_folder));
    assert!(err(&by_folder).contains("is asked"), "{}", err(&by_folder));

    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    let backup = other.join("store");
    let made = run(&["backup", path(&backup)]);
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    assert!(out(&made).contains("is complete: 1 session"), "{}", out(&made));
    let again = run(&["backup", path(&backup)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("Choose a new or an empty folder"), "{}", err(&again));
    let left: Vec<_> = fs::read_dir(&other).expect("files").collect();
    assert_eq!(left.len(), 1, "nothing but the backup: {left:?}");

    let held = aaep(&["audit", "verify", "--store", path(&backup)]).output().expect("aaep runs");
    assert_eq!(held.status.code(), Some(0), "{}{}", out(&held), err(&held));
    let listed = aaep(&["sessions", "list", "--store", path(&backup)]).output().expect("it runs");
    assert!(out(&listed).starts_with("1 session in "), "{}{}", out(&listed), err(&listed));
    // A hub can continue with it.
    let restored = Hub::serve(&other, "127.0.0.1:0");
    let shown_there = self::run(&restored, &other, &["audit", "show"]);
    let there = out(&shown_there);
    assert!(there.starts_with(&out(&shown)), "{there}{}", err(&shown_there));
}

#[cfg(unix)]
#[test]
fn a_store_that_no_hub_uses_is_backed_up_from_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let started = run(&hub, folder.path(), &["emit", "start", "Tidying up.", "--agent", "tidy"]);
    assert_eq!(started.status.code(), Some(0), "{}", err(&started));
    hub.stop();
    let (store, backup) = (folder.path().join("store"), folder.path().join("backup"));
    let made = aaep(&["backup", path(&backup), "--store", path(&store)]).output().expect("runs");
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let listed = aaep(&["sessions", "list", "--store", path(&backup)]).output().expect("runs");
    assert!(out(&listed).contains("by tidy"), "{}{}", out(&listed), err(&listed));
    let none = aaep(&["backup", path(&folder.path().join("none")), "--hub", "http://127.0.0.1:1"])
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .expect("runs");
    assert_eq!(none.status.code(), Some(2));
    assert!(!folder.path().join("none").exists(), "{}", err(&none));
}
