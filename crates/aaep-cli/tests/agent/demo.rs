//! `aaep demo`: the person's answers decide, in every way in which they can be given.

use std::io::{BufRead as _, BufReader, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Hub, aaep, err, out, post};

/// How long anything may take before a test fails. Nothing is asserted about less.
const PATIENCE: Duration = Duration::from_mins(1);

const DELETED: &str = "Done: 240 photos are deleted.";
const KEPT: &str = "Done: Nothing was deleted.";

fn demo(arguments: &[&str], typed: &str) -> Output {
    let mut child = aaep(&[&["demo"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("aaep runs");
    let mut input = child.stdin.take().expect("its input");
    // A demonstration that needs nothing may have ended before it is all written.
    let _ = input.write_all(typed.as_bytes());
    drop(input);
    child.wait_with_output().expect("aaep ends")
}

fn ends_with(output: &Output, end: &str) {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    let text = out(output);
    assert!(text.lines().any(|line| line == end), "{end} is not in {text}");
    let other = if end == KEPT { DELETED } else { KEPT };
    assert!(!text.contains(other), "{text}");
}

#[test]
fn it_answers_by_itself_as_it_is_told_to() {
    ends_with(&demo(&["--answer", "accept"], ""), DELETED);
    ends_with(&demo(&["--answer", "reject"], ""), KEPT);
    ends_with(&demo(&["--answer", "none"], ""), KEPT);
}

#[test]
fn what_is_typed_decides() {
    let yes = demo(&[], "2\nyes\n");
    ends_with(&yes, DELETED);
    assert!(out(&yes).contains("May I: Delete 240 photos of 2019."), "{}", out(&yes));
    assert!(out(&yes).contains("Type yes or no, then Enter: "), "{}", out(&yes));
    ends_with(&demo(&[], "2019\nno\n"), KEPT);
}

#[test]
fn what_is_unclear_is_asked_again_and_never_a_yes() {
    let output = demo(&[], "7\nx\n1\ny\nyess\n\nno\n");
    ends_with(&output, KEPT);
    assert_eq!(out(&output).matches("Type a number from 1 to 2, then Enter: ").count(), 3);
    assert_eq!(out(&output).matches("Type yes or no, then Enter: ").count(), 4);
}

#[test]
fn when_nobody_types_any_more_the_answer_is_no() {
    ends_with(&demo(&[], "1\n"), KEPT);
    ends_with(&demo(&[], ""), KEPT);
}

#[test]
fn it_uses_no_control_characters() {
    let text = out(&demo(&["--answer", "accept"], ""));
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn a_person_elsewhere_can_cancel_what_the_agent_does() {
    let hub = Hub::start();
    let person = hub.person();
    let prompt = json!({ "type": "agentvoice:agent.prompt", "text": "How is the weather?" });
    let (status, told) = person.says(prompt);
    assert_eq!(status, 202, "{told}");
    let question = person.hears("awaiting.clarification");
    assert_eq!(question["session_id"], told["session_id"]);
    let cancel = json!({ "type": "agentvoice:session.cancel", "session_id": told["session_id"] });
    assert_eq!(person.says(cancel).0, 202);
    assert_eq!(person.hears("session.cancelled")["session_id"], told["session_id"]);
    assert!(!person.answers(&question, "Lagos"));
}

#[test]
fn who_asks_for_something_else_is_not_asked_any_more() {
    let hub = Hub::start();
    let person = hub.person();
    let prompt = |text: &str| json!({ "type": "agentvoice:agent.prompt", "text": text });
    let (_, first) = person.says(prompt("Delete record 12345."));
    let question = person.hears("awaiting.confirmation");
    let (_, second) = person.says(prompt("Tell me about the moon."));
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    assert_eq!(person.hears("session.cancelled")["session_id"], first["session_id"]);
    assert_eq!(person.hears("session.completed")["session_id"], second["session_id"]);
    assert!(!person.decides(&question, "accept"));
}

#[test]
fn when_served_it_asks_by_itself_and_takes_an_answer_that_names_no_subscription() {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = aaep(&["demo", "--serve", "--bind", "127.0.0.1:0"])
        .env("TMPDIR", home.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("aaep runs");
    let mut said = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut line = || said.next().expect("a line").expect("text");
    let origin = line().strip_prefix("Listening on ").expect("where").to_owned();
    assert!(line().starts_with("This hub trusts every program on this computer"));
    let place = origin.strip_prefix("http://").expect("an address").to_owned();
    let mut stream = TcpStream::connect(&place).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    write!(stream, "GET /events HTTP/1.1\r\nhost: {place}\r\n\r\n").expect("asked");
    let mut events = BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let mut hears = |kind: &str| {
        let is_it = |event: &Value| event["type"] == format!("aaep:agent.{kind}");
        events.find(is_it).unwrap_or_else(|| panic!("no {kind}"))
    };
    let asked = hears("awaiting.confirmation");
    let reply = json!({
        "type": "confirmation.reply", "reply_token": asked["reply_token"], "decision": "accept",
        "timestamp": "2020-01-01T00:00:00Z",
    });
    assert_eq!(post(&origin, "/messages", &reply).0, 202);
    hears("tool.invoked");
    child.kill().expect("it ends");
    child.wait().expect("it ends");
}

#[test]
fn a_port_that_is_taken_is_said_with_the_next_step() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = demo(&["--serve", "--bind", &address], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("--bind"), "{}", err(&output));
}

#[test]
fn it_leaves_nothing_behind_however_it_ends() {
    let home = tempfile::tempdir().expect("a folder");
    let is_empty = || home.path().read_dir().expect("a folder").next().is_none();
    let ended = aaep(&["demo", "--answer", "reject"]).env("TMPDIR", home.path()).output();
    assert_eq!(ended.expect("aaep runs").status.code(), Some(0));
    assert!(is_empty());

    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut child = aaep(&["demo"])
            .env("TMPDIR", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("aaep runs");
        let mut first = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().expect("its output"), &mut first)
            .expect("a word");
        assert!(!is_empty(), "its store is there");
        let pid = child.id().to_string();
        let told = std::process::Command::new("kill").args([signal, &pid]).status();
        assert!(told.expect("kill runs").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{signal}");
        assert!(is_empty(), "{signal}");
    }
}
