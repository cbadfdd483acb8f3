//! `aaep emit` in its short forms, from files and from standard input.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Hub, aaep, err, out};

#[test]
fn a_session_in_short_forms_is_heard_in_order() {
    let hub = Hub::start();
    let person = hub.person();
    let tidy = |arguments: &[&str]| {
        let output = hub.aaep(&[&["emit"], arguments].concat()).env("AAEP_AGENT", "tidy").output();
        let output = output.expect("aaep runs");
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output).trim().to_owned()
    };
    let session = tidy(&["start", "Tidying up."]);
    assert!(aaep::SessionId::parse(&session).is_ok(), "{session}");
    let printed = tidy(&["state", "thinking", "--session", &session]);
    assert_eq!(printed, "", "nobody wants to hear the id of each event");
    tidy(&["say", "I found nothing.", "--session", &session, "--language", "en-GB"]);
    tidy(&["end", "All is tidy.", "--session", &session]);
    let started = person.hears("session.started");
    assert_eq!(
        (&started["summary_normal"], &started["session_id"]),
        (&"Tidying up.".into(), &session.clone().into())
    );
    assert_eq!(person.hears("state.changed")["to_state"], "thinking");
    let said = person.hears("output.streaming");
    assert_eq!(said["chunk"], "I found nothing.");
    assert_eq!(said["localization_hints"]["primary_language"], "en-GB");
    assert_eq!(person.hears("session.completed")["session_id"], session.as_str());
}

#[test]
fn tools_progress_and_text_on_standard_input_need_no_ids_and_no_positions() {
    let hub = Hub::start();
    let person = hub.person();
    let session = "0c6f3c1e-4d0b-4a52-9f3e-1b9b2a7d6c55";
    let emit = |arguments: &[&str]| {
        let output = hub.run(&[&["emit"], arguments, &["--session", session]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
    };
    emit(&["start", "Testing."]);
    emit(&["tool", "npm", "Runs the tests."]);
    emit(&["progress", "Half are done.", "--percent", "50"]);
    emit(&["tool", "npm", "--failed", "Two tests failed."]);
    emit(&["tool", "npm", "Again.", "--call", "toolu_01-x"]);
    emit(&["tool", "npm", "--done", "--call", "toolu_01-x"]);
    let invoked = person.hears("tool.invoked");
    assert_eq!(person.hears("progress.updated")["progress"]["percent"], 50);
    let failed = person.hears("tool.completed");
    assert_eq!(failed["tool_call_id"], invoked["tool_call_id"]);
    assert_eq!(
        (&failed["status"], &failed["error_message"]),
        (&"error".into(), &"Two tests failed.".into())
    );
    assert_eq!(person.hears("tool.completed")["status"], "success");

    let mut command = hub.aaep(&["emit", "stream", "--session", session]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("aaep runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all("Ọlá 🚀 flies. And".as_bytes()).expect("it reads");
    let mut text =
        person.hears("output.streaming")["chunk"].as_str().unwrap_or_default().to_owned();
    input.write_all(" lands.".as_bytes()).expect("it reads");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    loop {
        let piece = person.hears("output.streaming");
        let at = text.chars().count();
        text.push_str(piece["chunk"].as_str().unwrap_or_default());
        assert_eq!(piece["position"], at, "{piece}");
        if piece["complete"] == true {
            break;
        }
    }
    assert_eq!(text, "Ọlá 🚀 flies. And lands.");
    emit(&["stream", "One piece, "]);
    emit(&["stream", "then the last.", "--last"]);
    emit(&["end", "Done."]);
    let ended = person.hears("session.completed");
    assert_eq!(ended["extensions"]["agentvoice"]["original"]["session_id"], session);
}

#[test]
fn words_without_a_session_are_heard_in_one_of_their_own() {
    let hub = Hub::start();
    let person = hub.person();
    let output = hub.run(&["emit", "say", "The build is done.", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let answers: Vec<Value> =
        out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(person.hears("output.streaming")["chunk"], "The build is done.");
    assert_eq!(person.hears("session.completed")["session_id"], answers[0]["session_id"]);
}

#[test]
fn a_session_that_ends_badly_says_so_at_once() {
    let hub = Hub::start();
    let person = hub.person();
    let session = out(&hub.run(&["emit", "start", "Building."])).trim().to_owned();
    hub.run(&["emit", "end", "It broke.", "--failed", "--session", &session]);
    let errored = person.hears("session.errored");
    assert_eq!(
        (&errored["urgency"], &errored["summary_normal"]),
        (&"critical".into(), &"It broke.".into())
    );
}

#[test]
fn what_is_refused_is_exit_code_1_and_said_with_its_line() {
    let hub = Hub::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("events.jsonl");
    let started =
        r#"{"type":"aaep:agent.session.started","session_id":"sess_1","summary_normal":"A."}"#;
    let completed =
        r#"{"type":"aaep:agent.session.completed","session_id":"sess_1","summary_normal":"B."}"#;
    let lines = [
        started,
        r#"{"type":"subscription.close","subscription_id":"sub_1"}"#,
        r#"{"type":"aaep:agent.tool.completed","session_id":"sess_1","tool":"x","status":"success"}"#,
        "not json",
        completed,
        completed,
    ];
    std::fs::write(&file, lines.join("\n")).expect("a file");
    let output = hub.run(&["emit", file.to_str().expect("a name"), "--agent", "tidy"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert_eq!(out(&output).lines().count(), 2, "{}", out(&output));
    for line in ["at line 2", "at line 3", "at line 4", "at line 6"] {
        assert!(err(&output).contains(line), "{line} in {}", err(&output));
    }
    assert!(!err(&output).contains("at line 1:") && !err(&output).contains("at line 5:"));
}

#[test]
fn lines_on_standard_input_are_heard_as_they_come() {
    let hub = Hub::start();
    let person = hub.person();
    let mut child = hub
        .aaep(&["emit", "-", "--agent", "tidy", "--session", "sess_Typed"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("aaep runs");
    let mut input = child.stdin.take().expect("its input");
    let mut type_in = |text: &str| input.write_all(text.as_bytes()).expect("a line");
    type_in("{\"type\":\"aaep:agent.session.started\",\"summary_normal\":\"A.\"}\n");
    assert_eq!(person.hears("session.started")["session_id"], "sess_Typed");
    type_in("{\"type\":\"aaep:agent.session.completed\",\"summary_normal\":\"B.\"}\n");
    person.hears("session.completed");
    drop(input);
    assert_eq!(child.wait().expect("aaep ends").code(), Some(0));
}

#[test]
fn what_cannot_be_done_is_exit_code_2_and_says_what_to_do() {
    for (arguments, next) in [
        (&["emit", "say", "x", "--hub", "http://127.0.0.1:1"][..], "aaep serve"),
        (&["emit", "say", "x", "--hub", "http://192.0.2.1:7117"], "https"),
        (&["emit", "say", "x", "--hub", "nonsense"], "Write it like"),
        (&["emit", "end", "x", "--hub", "http://127.0.0.1:1"], "aaep emit start"),
        (&["emit", "/nowhere/at/all.json"], "Check the name"),
        (&["emit"], "FILE"),
    ] {
        let output = aaep(arguments).output().expect("aaep runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(next), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn a_refusal_names_what_was_typed() {
    let hub = Hub::start();
    for (arguments, named) in [
        (&["emit", "start", "Tidying.", "--language", "no such tag"][..], "\n  --language: "),
        (&["emit", "start", ""], "\n  the summary: "),
        (&["emit", "state", "thinking", "--session", "sess_Gone"], "--session: The session has "),
        (&["ask", "Delete it?", "--language", "no such tag"], "\n  --language: "),
        (&["ask", "Delete it?", "--default", "maybe"], "--default maybe cannot be used: "),
        (&["ask", "Which?", "--choices", "a, "], "\n  --choices: "),
    ] {
        let output = hub.run(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(err(&output).contains(named), "{arguments:?}: {}", err(&output));
    }
}
