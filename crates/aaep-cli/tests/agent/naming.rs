//! One way to name a hub, for agents and for people who listen, and the advice for the old ways.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Hub, aaep, err, out};

/// A person's own machine, on which no setting names the hub.
fn at_home(folder: &Path, mut command: Command) -> Output {
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, folder);
    }
    command.output().expect("aaep runs")
}

#[test]
fn agents_and_subscribers_meet_at_the_same_hub_without_being_told_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let person = hub.person();
    let run = |arguments: &[&str]| at_home(folder.path(), aaep(arguments));
    let said = run(&["emit", "say", "It works."]);
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    assert_eq!(person.hears("output.streaming")["chunk"], "It works.");
    let attention = run(&["attention"]);
    assert_eq!(out(&attention), "Nothing waits for you.\n", "{}", err(&attention));
    let sessions = run(&["sessions", "list"]);
    assert!(out(&sessions).starts_with("1 session at unix:"), "{}", out(&sessions));

    let elsewhere = ["--hub", "http://127.0.0.1:1"];
    for command in
        [&["emit", "say", "Hm."][..], &["attention"], &["sessions", "list"], &["replay", "list"]]
    {
        let output = run(&[command, &elsewhere].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(err(&output).contains("127.0.0.1:1"), "{command:?}: {}", err(&output));
    }
    std::fs::create_dir_all(folder.path().join("aaep")).expect("a folder");
    let settings = "[listen]\nhub = \"http://127.0.0.1:1\"\n";
    std::fs::write(folder.path().join("aaep/aaep.toml"), settings).expect("settings");
    let output = run(&["emit", "say", "Hm."]);
    assert_eq!(output.status.code(), Some(2), "an agent goes where the settings say");
    for address in
        [hub.origin.replace("http:", "ws:") + "/aaep/v1/ws", hub.origin.replace("http:", "grpc:")]
    {
        let output = run(&["emit", "say", "Over any of its wires.", "--hub", &address]);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", err(&output));
    }
}

#[test]
fn old_ways_to_name_a_hub_say_what_to_type_now() {
    let url = "http://127.0.0.1:9";
    for (arguments, typed) in [
        (vec!["listen", url], "aaep listen --hub http://127.0.0.1:9"),
        (vec!["listen", "--address", url], "aaep listen --hub http://127.0.0.1:9"),
        (vec!["attention", url, url], "aaep attention --hub http://127.0.0.1:9 --hub"),
        (vec!["doctor", url], "aaep doctor --hub http://127.0.0.1:9"),
        (vec!["capture", url], "aaep capture --hub http://127.0.0.1:9"),
    ] {
        let output = aaep(&arguments).output().expect("aaep runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(typed), "{arguments:?}: {}", err(&output));
    }
}
