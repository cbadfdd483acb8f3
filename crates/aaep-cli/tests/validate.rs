//! `aaep validate` and `aaep schema` as a person or a script uses them: files, pipes, exit codes.

mod printed;

use printed::{err, out};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `aaep` in the project's root with this on standard input.
fn aaep(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("aaep starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that refuses its arguments does not read; that is not this test's business.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("aaep ends");
    writer.join().expect("the input was written");
    output
}

fn session() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("samples/session.jsonl")).expect("the sample");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn valid_messages_end_with_0() {
    let output = aaep(&["validate", "samples/session.jsonl", "samples/manifest.json"], b"");
    assert_eq!(out(&output), "19 messages checked. All are valid.\n");
    assert_eq!(err(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn invalid_messages_end_with_1_and_a_line_each() {
    let output = aaep(&["validate", "samples/broken.jsonl"], b"");
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    let first = text.lines().next().expect("a line");
    assert_eq!(
        first,
        "samples/broken.jsonl:1: error: evt_0199c1d2000000000000000000000001: /timestamp: \
         \"yesterday\" is wrong; expected a moment such as 2026-05-24T14:22:11.342Z. \
         Write it that way. (§3.2.5, wrong_format)"
    );
    assert!(
        text.ends_with("5 messages checked. 0 valid, 5 not valid, 11 errors in all.\n"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_done_ends_with_2_and_a_next_step() {
    let missing = aaep(&["validate", "no-such-file.json"], b"");
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        err(&missing).contains("no such file or directory. Check the name"),
        "{}",
        err(&missing)
    );
    let empty = aaep(&["validate"], b" \n");
    assert_eq!(empty.status.code(), Some(2));
    assert!(err(&empty).contains("standard input holds no message."), "{}", err(&empty));
    let folder = aaep(&["validate", "samples"], b"");
    assert_eq!(folder.status.code(), Some(2));
    assert!(err(&folder).contains("is a folder"));
    assert_eq!(aaep(&["validate", "--format", "morse"], b"").status.code(), Some(2));
}

#[test]
fn an_unreadable_file_does_not_hide_the_others() {
    let output = aaep(&["validate", "no-such-file.json", "samples/broken.jsonl"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("5 messages checked."));
}

#[test]
fn lines_an_array_and_documents_are_told_apart() {
    let lines = session();
    let pretty: Vec<String> = lines
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|value| serde_json::to_string_pretty(&value).expect("JSON"))
        .collect();
    for text in [
        lines.join("\n"),
        format!("[{}]", lines.join(",\n")),
        format!("[\n{}\n]\n", pretty.join(",\n")),
        pretty.join("\n"),
    ] {
        let output = aaep(&["validate", "-"], text.as_bytes());
        assert_eq!(out(&output), "18 messages checked. All are valid.\n", "{text}");
    }
    let one = aaep(&["validate"], pretty[2].as_bytes());
    assert_eq!(out(&one), "1 message checked. It is valid.\n");
}

#[test]
fn the_line_of_a_problem_is_the_line_of_the_file() {
    let lines = session();
    let text = format!("[\n\n{},\n{{\"type\":\"nothing\"}}\n]", lines[2]);
    let output = aaep(&["validate"], text.as_bytes());
    assert!(out(&output).starts_with("standard input:4: error: /type: "), "{}", out(&output));
}

#[test]
fn machines_get_an_object_per_problem_and_a_summary() {
    let output = aaep(&["validate", "--format", "json", "samples/broken.jsonl"], b"");
    let values: Vec<serde_json::Value> =
        out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(values[0]["file"], "samples/broken.jsonl");
    assert_eq!(values[0]["line"], 1);
    assert_eq!(values[0]["code"], "wrong_format");
    assert_eq!(values[0]["pointer"], "/timestamp");
    assert_eq!(values[0]["section"], "3.2.5");
    let summary = &values.last().expect("a summary")["summary"];
    assert_eq!(
        (&summary["checked"], &summary["invalid"], &summary["errors"]),
        (&5.into(), &5.into(), &11.into())
    );
}

#[test]
fn a_subscriber_bears_with_what_a_producer_must_not_do() {
    let mut event: serde_json::Value = serde_json::from_str(&session()[2]).expect("JSON");
    event["mood"] = "cheerful".into();
    let text = event.to_string();
    assert_eq!(aaep(&["validate"], text.as_bytes()).status.code(), Some(1));
    let tolerant = aaep(&["validate", "--tolerant"], text.as_bytes());
    assert_eq!(tolerant.status.code(), Some(0));
    assert!(
        out(&tolerant).starts_with("note, 1 time, first at standard input:1: "),
        "{}",
        out(&tolerant)
    );
    let listed = aaep(&["validate", "--tolerant", "--notes"], text.as_bytes());
    assert!(out(&listed).contains("standard input:1: note: evt_"), "{}", out(&listed));
}

#[test]
fn a_session_out_of_order_is_refused() {
    let mut lines = session();
    // The irreversible tool runs without the answer, and once more after the end.
    let tool = lines[11].clone();
    lines.remove(10);
    lines.remove(9);
    lines.push(tool);
    let output = aaep(&["validate"], lines.join("\n").as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(text.contains("irreversible_without_accept"), "{text}");
    assert!(text.contains("standard input:17: error: evt_"), "{text}");
    assert!(text.contains(", ended)"), "{text}");
    let tolerant = aaep(&["validate", "--tolerant"], lines.join("\n").as_bytes());
    assert_eq!(tolerant.status.code(), Some(0), "a subscriber goes on listening");
}

#[test]
fn every_event_is_valid_by_itself() {
    for line in session() {
        let output = aaep(&["validate"], line.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{line}: {}", out(&output));
        let message: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let name = message["type"].as_str().expect("a type");
        let needs_note = name.starts_with("aaep:agent.") && !name.ends_with("session.started");
        let has_note = out(&output).contains("(§4.5.1, order_not_judged)");
        assert_eq!(has_note, needs_note, "{line}: {}", out(&output));
        assert!(out(&output).ends_with("1 message checked. It is valid.\n"), "{}", out(&output));
    }
}

#[test]
fn order_is_judged_from_the_first_start_or_as_the_flags_say() {
    let lines = session();
    let (started, later) = (&lines[2], &lines[3]);
    let other = later.replace("sess_0199", "sess_0299");
    assert_ne!(other, *later, "the sample names its session so");
    let cases = [
        // A session that was already running is followed, and its start is not asked for.
        (&[&other, started, later, &other][..], &[][..], None),
        (&[started, later, &other][..], &[][..], Some("standard input:3: error: evt_")),
        (&[later][..], &["--order"][..], Some("standard input:1: error: evt_")),
        (&[started, later, &other][..], &["--no-order"][..], None),
        (&[later][..], &["--no-order"][..], None),
    ];
    for (input, flags, error) in cases {
        let text: Vec<&str> = input.iter().map(|line| line.as_str()).collect();
        let output = aaep(&[&["validate"][..], flags].concat(), text.join("\n").as_bytes());
        let told = out(&output);
        assert_eq!(output.status.code(), Some(i32::from(error.is_some())), "{told}");
        assert!(error.is_none_or(|error| told.starts_with(error)), "{told}");
        assert!(error.is_none() || told.contains("not_started"), "{told}");
        assert!(!told.contains("order_not_judged"), "{told}");
    }
    let both = aaep(&["validate", "--order", "--no-order"], b"");
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn a_session_whose_time_goes_back_is_refused() {
    let lines = session();
    let text = format!("{}\n{}\n{}\n", lines[2], lines[4], lines[3]);
    let output = aaep(&["validate"], text.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("standard input:3: error: evt_"), "{}", out(&output));
    assert!(out(&output).contains("time_went_back"), "{}", out(&output));
}

#[test]
fn quiet_says_nothing() {
    let output = aaep(&["validate", "--quiet", "samples/broken.jsonl"], b"");
    assert_eq!((out(&output).as_str(), err(&output).as_str()), ("", ""));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn nothing_foreign_reaches_the_terminal_unescaped() {
    let text =
        "{\"type\":\"\\u001b]0;owned\\u0007\",\"event_id\":\"\\u001b[2J\\u202e\",\"\\r\\nfake\":1}";
    for arguments in
        [&["validate"][..], &["validate", "--notes"], &["validate", "--format", "json"]]
    {
        let output = aaep(arguments, text.as_bytes());
        assert_eq!(output.status.code(), Some(1));
        let bytes = [output.stdout.clone(), output.stderr.clone()].concat();
        let is_clean = |byte: &u8| *byte == b'\n' || !byte.is_ascii_control();
        assert!(bytes.iter().all(is_clean), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_line_of_any_length_is_refused_without_being_held() {
    let mut text = b"{\"a\":\"".to_vec();
    text.resize(40 << 20, b'x');
    text.extend_from_slice(b"\"}\n");
    text.extend_from_slice(session()[2].as_bytes());
    let output = aaep(&["validate"], &text);
    assert!(out(&output).contains("too_large"), "{}", out(&output));
    assert!(out(&output).ends_with("2 messages checked. 1 valid, 1 not valid, 1 error in all.\n"));
}

#[test]
fn a_reader_that_goes_away_causes_no_complaint() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["validate", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("aaep starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("a pipe");
    let _ = stdin.write_all("{\"type\":1}\n".repeat(200_000).as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("aaep ends");
    assert_eq!(err(&output), "");
}

#[test]
fn schemas_are_written_in_the_public_layout() {
    let folder = std::env::temp_dir().join(format!("aaep-schema-{}", std::process::id()));
    let output = aaep(&["schema", "--out", folder.to_str().expect("a name")], b"");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    for name in [
        "envelope.schema.json",
        "core/agent.session.started.schema.json",
        "core/agent.awaiting.confirmation.schema.json",
        "handshake/subscription.request.schema.json",
        "handshake/subscription.renegotiate.schema.json",
        "handshake/confirmation.reply.schema.json",
        "producer.manifest.schema.json",
        "extensions/agentvoice.schema.json",
    ] {
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        let schema: serde_json::Value = serde_json::from_str(&text).expect(name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        let id = schema["$id"].as_str().expect("an id");
        assert!(id.ends_with(name) || name.starts_with("extensions/"), "{id}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes away again");
    let bundle = aaep(&["schema", "--bundle", "--out", folder.to_str().expect("a name")], b"");
    assert_eq!(bundle.status.code(), Some(0), "{}", err(&bundle));
    for name in ["aaep.schema.json", "core/agent.session.started.schema.json"] {
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        assert!(text.contains("\"$ref\": \"#/$defs/envelope\""), "{text}");
        assert!(!text.contains("\"$ref\": \"http"), "{text}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes away again");
    let nowhere = aaep(&["schema", "--out", "/proc/nowhere"], b"");
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(err(&nowhere).contains("Choose a folder that you may write to"), "{}", err(&nowhere));
}

#[test]
fn a_short_event_is_not_valid_as_it_is_and_it_is_said_what_a_hub_fills_in() {
    let short = br#"{"type":"aaep:agent.output.streaming","session_id":"0c6f-1","chunk":"Hm.",
        "complete":true,"producer":{"agent_id":"tidy"}}"#;
    let output = aaep(&["validate"], short);
    assert_eq!(output.status.code(), Some(1), "other producers have nobody who fills it in");
    let told = out(&output);
    let note = told.lines().find(|line| line.starts_with("note")).expect("a note");
    for name in ["@context", "event_id", "session_id", "timestamp", "position"] {
        assert!(note.contains(name), "{name}: {note}");
    }
    assert!(note.contains("Published to a hub, it is valid."), "{note}");
    let other =
        br#"{"type":"aaep:agent.output.streaming","chunk":7,"producer":{"agent_id":"tidy"}}"#;
    let told = out(&aaep(&["validate"], other));
    assert!(told.contains("The rest is wrong there too."), "{told}");
    let reply = br#"{"type":"confirmation.reply","decision":"accept"}"#;
    assert!(!out(&aaep(&["validate"], reply)).contains("hub_fills_in"));
}
