//! Every command ends quietly when the program that reads its output has ended, as in `aaep … | head -1`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Hub, aaep, err, out};

/// Commands that are tried, and what they say on standard error that is not a complaint.
const TRIED: &[(&[&str], &str)] = &[
    (&["listen"], ""),
    (&["listen", "--json"], ""),
    (&["agents"], ""),
    (&["replay"], ""),
    (&["validate", "samples/broken.jsonl"], ""),
    (&["emit", "say", "Done."], ""),
    (&["attention"], ""),
    (&["attention", "--json"], ""),
    (&["tell"], ""),
    (&["config", "show"], ""),
    (&["doctor"], ""),
    (&["doctor", "--json"], ""),
    (&["report", "examples/captures/answer.jsonl"], ""),
    (&["keys", "list"], ""),
    (&["tokens", "list"], ""),
    (&["allow"], ""),
    (&["chat"], ""),
    (&["sessions", "list"], ""),
    (&["audit", "show"], ""),
    (&["manifest", "show", "--agent-id", "tidy"], ""),
    (&["completions", "bash"], ""),
    (&["man"], ""),
    (&["--help"], ""),
    (&["listen", "--help"], ""),
];

/// Commands that have another purpose than their output, or that other tests try.
const NOT_TRIED: &[&str] = &[
    "acp", "answer", "ask", "backup", "cancel", "capture", "demo", "follow", "help", "hook", "mcp",
    "schema", "serve",
];

/// Runs a command whose output nobody reads.
fn unread(command: &mut Command) -> Output {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.current_dir(root).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    command.spawn().expect("aaep runs").wait_with_output().expect("it ends")
}

#[test]
fn every_command_ends_quietly_when_nobody_reads_its_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    hub.run(&["emit", "say", "Something to tell."]);
    for (arguments, expected) in TRIED {
        let mut command = hub.aaep(arguments);
        for name in
            ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
        {
            command.env(name, folder.path());
        }
        // A speech server that `aaep doctor` starts would go on after the test, so it looks for one that is not there.
        command.env("SPEECHD_ADDRESS", "inet_socket:127.0.0.1:1");
        let output = unread(&mut command);
        assert_eq!(err(&output), *expected, "{arguments:?}");
    }
}

#[test]
fn every_command_is_tried_with_an_output_that_nobody_reads() {
    let help = aaep(&["--help"]).output().expect("aaep runs");
    let commands: BTreeSet<String> = out(&help)
        .lines()
        .skip_while(|line| !line.starts_with("You listen:"))
        .take_while(|line| !line.starts_with("Options:"))
        .filter(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(commands.contains("listen"), "{commands:?}");
    let tried = TRIED.iter().map(|(arguments, _)| arguments[0]);
    let known: BTreeSet<&str> = tried.chain(NOT_TRIED.iter().copied()).collect();
    for command in &commands {
        assert!(known.contains(command.as_str()), "{command} is in no list");
    }
}
