//! `aaep agents doctor`: what it finds, and what it says to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{ClaudeCode, run};
use crate::support::{Hub, err, out};

/// A machine with a Claude Code that says this version, and no other agent.
fn machine<'h>(hub: Option<&'h Hub>, version: &str) -> ClaudeCode<'h> {
    let claude = ClaudeCode::new(hub);
    let programs = claude.home.path().join("bin");
    fs::create_dir_all(&programs).expect("a folder");
    let program = programs.join("claude");
    fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    claude
}

/// Runs the doctor. Gives its exit code and what it says.
fn doctor(claude: &ClaudeCode) -> (Option<i32>, String) {
    let mut command = claude.command(&["agents", "doctor"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", claude.home.path().join("bin").display()));
    if claude.hub.is_none() {
        command.env("AAEP_HUB", "http://127.0.0.1:9");
    }
    let output = command.output().expect("aaep runs");
    assert!(output.stderr.is_empty(), "{}", err(&output));
    (output.status.code(), out(&output).trim_end().to_owned())
}

#[test]
fn it_says_what_is_not_set_up_and_finds_no_problem_in_that() {
    let claude = machine(None, "2.1.325");
    let (code, said) = doctor(&claude);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Claude Code: Version 2.1.325, which is known here."), "{said}");
    assert!(said.contains("It is not set up. To hear it: aaep agents add claude-code"), "{said}");
    assert!(said.ends_with("No problem was found."), "{said}");
}

#[test]
fn without_a_hub_or_a_listener_nobody_can_be_asked() {
    let alone = machine(None, "2.1.999");
    run(&alone, &["agents", "add", "claude-code"]);
    let (code, said) = doctor(&alone);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Version 2.1.999. What is known here was learned from"), "{said}");
    assert!(said.contains("The hub: problem. It cannot be reached."), "{said}");
    assert!(said.contains("aaep serve"), "{said}");
    assert!(said.contains("a model of Claude Code approves in your place, but you are asked"));
    assert!(said.ends_with("1 problem found."), "{said}");
}

#[test]
fn hooks_that_were_changed_by_hand_are_a_problem() {
    let hub = Hub::start();
    let _person = hub.person();
    let claude = machine(Some(&hub), "2.1.325");
    run(&claude, &["agents", "add", "claude-code", "--answer-later", "8"]);
    let (code, said) = doctor(&claude);
    assert!(!said.contains("were changed by hand"), "{said}");
    assert!(said.contains("you can answer for 8 hours after it ended"), "{said}");
    assert!(said.contains("The hub: It runs, and hooks reach it."), "{said}");
    assert_eq!(code, Some(0), "{said}");
    let path = claude.home.path().join(".claude/settings.json");
    let text = fs::read_to_string(&path).expect("settings");
    let mut settings: Value = serde_json::from_str(&text).expect("JSON");
    // Without this, a hook that fails lets the tool run.
    let gate = &mut settings["hooks"]["PreToolUse"][0]["hooks"][0];
    gate.as_object_mut().expect("a hook").remove("onFailure");
    fs::write(&path, settings.to_string()).expect("written");
    let (code, said) = doctor(&claude);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Its hooks were changed by hand"), "{said}");
}

#[test]
fn a_model_that_approves_while_nobody_else_asks_is_a_problem() {
    let hub = Hub::start();
    let _person = hub.person();
    let claude = machine(Some(&hub), "2.1.325");
    run(&claude, &["agents", "add", "claude-code", "--policy", "tell"]);
    let (code, said) = doctor(&claude);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("and you are not asked here either"), "{said}");
    assert!(said.contains("--permission-mode default"), "{said}");
    let path = claude.home.path().join(".claude/settings.json");
    let text = fs::read_to_string(&path).expect("settings");
    let mut settings: Value = serde_json::from_str(&text).expect("JSON");
    settings["permissions"]["defaultMode"] = "default".into();
    fs::write(&path, settings.to_string()).expect("written");
    let (code, said) = doctor(&claude);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn only_claude_code_can_be_answered_later() {
    let claude = machine(None, "2.1.325");
    let refused = run(&claude, &["agents", "add", "codex", "--answer-later", "8"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("It is for Claude Code."), "{}", err(&refused));
    assert!(!claude.home.path().join(".codex").exists());
}
