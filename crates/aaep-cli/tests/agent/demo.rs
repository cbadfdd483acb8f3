//! `aaep demo`: what it shows, how to answer it, and that it leaves nothing behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Hub, aaep, err, out, post};

/// How long anything may take before a test fails. Nothing is asserted about less.
const PATIENCE: Duration = Duration::from_mins(1);

const DELETED: &str = "Finished. 240 photos are deleted.";
const KEPT: &str = "Finished. Nothing was deleted.";

/// Runs it where nobody can type and no voice is.
fn demo(arguments: &[&str]) -> Output {
    let nowhere = tempfile::tempdir().expect("a folder");
    let mut command = aaep(&[&["demo"], arguments].concat());
    for name in ["XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        command.env(name, nowhere.path());
    }
    command.stdin(Stdio::null()).output().expect("aaep ends")
}

fn ends_with(output: &Output, end: &str) {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    let text = out(output);
    assert!(
        text.lines().any(|line| line.starts_with("done: ") && line.ends_with(end)),
        "{end} is not in {text}"
    );
    let other = if end == KEPT { DELETED } else { KEPT };
    assert!(!text.contains(other), "{text}");
}

#[test]
fn it_answers_by_itself_as_it_is_told_to_and_with_no_where_nobody_can_type() {
    ends_with(&demo(&["--answer", "accept"]), DELETED);
    ends_with(&demo(&["--answer", "reject"]), KEPT);
    ends_with(&demo(&["--answer", "none"]), KEPT);
    ends_with(&demo(&[]), KEPT);
}

/// Where each of these is in a text, one after the other.
fn in_this_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part} does not follow in {text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn it_shows_in_the_words_of_aaep_listen_what_nothing_else_shows() {
    let output = demo(&["--answer", "accept"]);
    let text = out(&output);
    in_this_order(
        &text,
        &[
            "doing: Coder: Started.",
            "doing: Photo keeper: Started.",
            "agent: Coder: I read how the shop adds up a basket.",
            "Permission required: Photo keeper asks, question 1: Delete 240 photos.",
            "High risk. It cannot be undone.",
            "left it as it is.",
            "The demonstration types: 1 yes",
            "settled: Photo keeper: Accepted.",
            "agent: All 41 tests pass.",
            "error: In fact",
            "error: In fact",
            "Permission required: Coder asks",
            "somebody types: aaep answer 2 no",
            "Refused elsewhere.",
            "The shop was not published.",
        ],
    );
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn the_next_steps_work_as_they_are_typed() {
    let text = out(&demo(&["--answer", "reject"]));
    let program = env!("CARGO_BIN_EXE_aaep");
    for step in ["serve", "listen", "ask \"May I delete the old photos?\" --irreversible"] {
        let line = format!("{program} {step}");
        assert!(text.lines().any(|it| it.ends_with(&line)), "{line} is not in {text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let person = hub.person();
    let mut ask = hub.aaep(&["ask", "May I delete the old photos?", "--irreversible"]);
    let mut asking = ask.stdout(Stdio::null()).spawn().expect("aaep runs");
    assert!(person.decides(&person.hears("awaiting.confirmation"), "reject"));
    assert_eq!(asking.wait().expect("it ends").code(), Some(1));
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
fn a_prompt_for_something_else_withdraws_the_question() {
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
    let output = demo(&["--serve", "--bind", &address]);
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
