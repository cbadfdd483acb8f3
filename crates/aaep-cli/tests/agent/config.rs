//! `aaep config`: the settings, where they come from, and that a broken file is always reported.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{aaep, err, out};

fn run(home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = aaep(&[&["config"], arguments].concat());
    command.env("HOME", home).env("XDG_CONFIG_HOME", home).env_remove("VISUAL");
    command.env_remove("EDITOR").envs(variables.iter().copied());
    command.output().expect("aaep runs")
}

/// An editor that adds these lines to the file.
fn editor(home: &Path, lines: &str) -> String {
    let path = home.join("my editor").with_file_name("editor");
    fs::write(&path, format!("#!/bin/sh\ncat >> \"$2\" <<'END'\n{lines}\nEND\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("runnable");
    format!("{} --wait", path.display())
}

fn file(home: &Path) -> PathBuf {
    home.join("aaep/aaep.toml")
}

#[test]
fn a_file_is_begun_with_everything_explained_and_nothing_set() {
    let home = tempfile::tempdir().expect("a folder");
    let path = out(&run(home.path(), &["path"], &[]));
    assert_eq!(path.trim(), file(home.path()).to_str().expect("UTF-8"));
    let none = run(home.path(), &["check"], &[]);
    assert_eq!(none.status.code(), Some(0));
    assert!(out(&none).contains("There is no file"), "{}", out(&none));
    let before = out(&run(home.path(), &["show"], &[]));
    let edited = run(home.path(), &["edit"], &[("EDITOR", &editor(home.path(), ""))]);
    assert_eq!(edited.status.code(), Some(0), "{}{}", out(&edited), err(&edited));
    let text = fs::read_to_string(file(home.path())).expect("a file");
    assert!(text.contains("#words_per_minute = "), "{text}");
    let mode = fs::metadata(file(home.path())).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(out(&run(home.path(), &["show"], &[])), before);
}

#[test]
fn a_broken_file_is_said_with_its_line_and_not_used() {
    let home = tempfile::tempdir().expect("a folder");
    let bad = "[[rules]]\nname = \"all\"\nagent = \"x\"\nrisk = \"high\"\nanswer = \"accept\"";
    let edited = run(home.path(), &["edit"], &[("VISUAL", &editor(home.path(), bad))]);
    assert_eq!(edited.status.code(), Some(1), "{}{}", out(&edited), err(&edited));
    assert!(out(&edited).contains("never accepts"), "{}", out(&edited));
    assert!(out(&edited).contains(", line "), "{}", out(&edited));
    let checked = run(home.path(), &["check"], &[]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(out(&checked).contains("aaep config edit"), "{}", out(&checked));
    let shown = run(home.path(), &["show"], &[]);
    assert_eq!(shown.status.code(), Some(2));
    assert!(err(&shown).contains(", line "), "{}", err(&shown));
}

#[test]
fn each_setting_is_shown_with_where_it_comes_from() {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join("aaep")).expect("a folder");
    let text = "[listen]\nprofile = \"quiet\"\nwords_per_minute = 250\n\
                [[rules]]\nname = \"mail\"\nagent = \"mail\"\nanswer = \"reject\"\n";
    fs::write(file(home.path()), text).expect("written");
    let shown = run(home.path(), &["show", "--profile", "debug"], &[("AAEP_LANGUAGES", "fr")]);
    let text = out(&shown);
    for line in [
        "listen profile: \"debug\", from the flag --profile.",
        "listen languages: [\"fr\"], from the variable AAEP_LANGUAGES.",
        "listen words_per_minute: 250, from the file.",
        "listen hub: your own hub, by default.",
        "lines on: true, by default.",
        "rule mail: rejects questions of mail, about anything, from the file.",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}{}", err(&shown));
    }
}

#[test]
fn without_an_editor_it_says_what_to_do() {
    let home = tempfile::tempdir().expect("a folder");
    let edited = run(home.path(), &["edit"], &[]);
    assert_eq!(edited.status.code(), Some(2));
    assert!(err(&edited).contains("Set EDITOR"), "{}", err(&edited));
    let gone = run(home.path(), &["edit"], &[("EDITOR", "/nowhere/editor")]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(err(&gone).contains("could not be started"), "{}", err(&gone));
}
