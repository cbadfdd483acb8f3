//! `aaep capture` against a real hub: what it records, when it stops, and that every line is whole.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Hub, aaep, err, out};

/// A running recorder.
fn recorder(url: &str, arguments: &[&str]) -> Child {
    begin(&mut aaep(&[&["capture", "--hub", url], arguments].concat()))
}

fn begin(command: &mut Command) -> Child {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("aaep runs");
    let stderr = child.stderr.take().expect("its words");
    let mut words = BufReader::new(stderr);
    let mut line = String::new();
    words.read_line(&mut line).expect("a line");
    assert!(line.starts_with("Recording"), "{line}");
    child.stderr = Some(words.into_inner());
    child
}

fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().expect("kill").success());
}

#[test]
fn every_wire_records_the_same() {
    let hub = Hub::start();
    let plain = hub.origin.clone();
    let socket = format!("{}/aaep/v1/ws", plain.replace("http://", "ws://"));
    let stream = format!("{plain}/aaep/v1/events");
    let recorders = [&plain, &socket, &stream].map(|url| recorder(url, &["--limit", "2"]));
    assert!(hub.run(&["emit", "say", "Good day."]).status.success());
    let recorded: Vec<Vec<Value>> = recorders
        .into_iter()
        .map(|child| lines(&out(&child.wait_with_output().expect("ends"))))
        .collect();
    assert_eq!(recorded[0].len(), 2);
    assert_eq!(recorded[0], recorded[1]);
    assert_eq!(recorded[0], recorded[2]);
    assert_eq!(recorded[0][0]["type"], "aaep:agent.session.started");
}

#[test]
fn only_what_is_wanted_is_recorded() {
    let hub = Hub::start();
    let begun = hub.run(&["emit", "start", "Begun."]);
    let session = out(&begun).trim().to_owned();
    let by_type = recorder(&hub.origin, &["--type", "session.c*", "--limit", "1"]);
    let by_urgency = recorder(&hub.origin, &["--urgency", "critical", "--limit", "1"]);
    let by_session = recorder(&hub.origin, &["--session", &session, "--limit", "1"]);
    assert!(hub.run(&["emit", "say", "Elsewhere."]).status.success());
    assert!(hub.run(&["emit", "state", "thinking", "--session", &session]).status.success());
    assert!(
        hub.run(&["emit", "end", "Broken.", "--failed", "--session", &session]).status.success()
    );
    let recorded = |child: Child| lines(&out(&child.wait_with_output().expect("ends")));
    assert_eq!(recorded(by_type)[0]["type"], "aaep:agent.session.completed");
    assert_eq!(recorded(by_urgency)[0]["type"], "aaep:agent.session.errored");
    assert_eq!(recorded(by_session)[0]["session_id"], session.as_str());
}

#[test]
fn a_recorder_cannot_answer() {
    let hub = Hub::start();
    let child = recorder(&hub.origin, &["--type", "state.changed", "--limit", "1"]);
    let asked = hub.run(&["ask", "Delete it?", "--timeout", "3600"]);
    assert_eq!(asked.status.code(), Some(1), "nobody waits for a recorder: {}", err(&asked));
    assert!(err(&asked).contains("Nobody was there"), "{}", err(&asked));
    signal(&child, "-TERM");
    child.wait_with_output().expect("ends");
}

#[test]
fn questions_are_recorded_only_if_they_are_wanted() {
    let hub = Hub::start();
    let person = hub.person();
    let plain = recorder(&hub.origin, &[]);
    let with_questions =
        recorder(&hub.origin, &["--questions", "--type", "awaiting.*", "--limit", "1"]);
    let asked = hub.aaep(&["ask", "Delete it?"]).stderr(Stdio::null()).spawn();
    let mut asked = asked.expect("aaep runs");
    let recorded = lines(&out(&with_questions.wait_with_output().expect("ends")));
    assert_eq!(recorded[0]["type"], "aaep:agent.awaiting.confirmation");
    let question = person.hears("awaiting.confirmation");
    assert_eq!(recorded[0]["reply_token"], question["reply_token"]);
    assert!(person.decides(&question, "reject"), "to record is not to answer");
    assert_eq!(asked.wait().expect("ends").code(), Some(1));
    signal(&plain, "-TERM");
    let recorded = lines(&out(&plain.wait_with_output().expect("ends")));
    assert!(recorded.iter().any(|it| it["to_state"] == "awaiting_input"));
    assert!(!recorded.iter().any(|it| it["type"] == "aaep:agent.awaiting.confirmation"));
}

#[test]
fn the_person_records_questions_on_a_hub_that_trusts_no_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve_without_trust(folder.path());
    let options =
        ["capture", "--hub", &hub.origin, "--questions", "--type", "awaiting.*", "--limit", "1"];
    let mut command = aaep(&options);
    let child = begin(command.env("XDG_CONFIG_HOME", folder.path()).env("HOME", folder.path()));
    let asked = hub.aaep(&["ask", "Delete it?", "--timeout", "3600"]).stderr(Stdio::null()).spawn();
    let mut asked = asked.expect("aaep runs");
    let recorded = lines(&out(&child.wait_with_output().expect("ends")));
    assert_eq!(recorded[0]["type"], "aaep:agent.awaiting.confirmation");
    assert_eq!(asked.wait().expect("ends").code(), Some(1), "nobody is left who could answer");
}

#[test]
fn text_is_recorded_in_the_pieces_in_which_it_came() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start();
    let begun = hub.run(&["emit", "start", "Begun."]);
    let session = out(&begun).trim().to_owned();
    let child = recorder(&hub.origin, &["--type", "output.streaming", "--limit", "2"]);
    let piece = |position: u64, chunk: &str, complete: bool| {
        serde_json::json!({ "type": "aaep:agent.output.streaming", "session_id": session,
            "producer": { "agent_id": "script" }, "chunk": chunk, "output_id": "out_1",
            "position": position, "complete": complete })
    };
    let pieces = [piece(0, "Good", false), piece(4, " da", false), piece(7, "y.", true)];
    let path = folder.path().join("pieces.json");
    fs::write(&path, serde_json::to_string(&pieces).expect("JSON")).expect("written");
    let told = hub.run(&["emit", path.to_str().expect("UTF-8")]);
    assert!(told.status.success(), "{}", err(&told));
    let recorded = lines(&out(&child.wait_with_output().expect("ends")));
    // A character may come with the next piece, because a mark that belongs to it could follow.
    let chunks: Vec<&str> = recorded.iter().filter_map(|it| it["chunk"].as_str()).collect();
    assert_eq!(chunks.len(), 2);
    let joined = chunks.concat();
    assert!("Good day.".starts_with(&joined) && joined.len() < "Good day.".len(), "{chunks:?}");
}

#[test]
fn a_signal_ends_it_cleanly_with_whole_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start();
    for (name, number) in [("-INT", 1), ("-TERM", 2)] {
        let path = folder.path().join(format!("{number}.jsonl"));
        let path_text = path.to_str().expect("UTF-8");
        let child = recorder(&hub.origin, &["--output", path_text]);
        assert!(hub.run(&["emit", "say", "Good day."]).status.success());
        while fs::read_to_string(&path).expect("the file").lines().count() < 2 {
            std::thread::yield_now();
        }
        signal(&child, name);
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(err(&output).contains("Recorded "), "{}", err(&output));
        assert!(lines(&fs::read_to_string(&path).expect("the file")).len() >= 2);
    }
}

#[test]
fn it_stops_when_its_time_is_over() {
    let hub = Hub::start();
    let output = recorder(&hub.origin, &["--for", "1"]).wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "");
}

#[test]
fn no_file_is_overwritten_and_no_hub_is_said_with_the_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kept.jsonl");
    fs::write(&path, "dear\n").expect("written");
    let path_text = path.to_str().expect("UTF-8");
    let hub = Hub::start();
    let output =
        aaep(&["capture", "--hub", &hub.origin, "--output", path_text]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&path).expect("the file"), "dear\n");
    for url in ["http://127.0.0.1:1", "unix:/nowhere/at.all", "ftp://127.0.0.1", "nonsense"] {
        let output = aaep(&["capture", "--hub", url]).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{url}: {}", err(&output));
        assert_eq!(out(&output), "");
        assert!(err(&output).matches(". ").count() >= 1, "a next step: {}", err(&output));
    }
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let hub = Hub::start();
    let mut child = recorder(&hub.origin, &[]);
    drop(child.stdout.take());
    let status = loop {
        assert!(hub.run(&["emit", "say", "Is anyone there?"]).status.success());
        if let Some(status) = child.try_wait().expect("its state") {
            break status;
        }
    };
    assert_eq!(status.code(), Some(2));
}
