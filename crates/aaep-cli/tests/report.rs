//! `aaep report`: the figures of the recorded sessions, and what happens to broken recordings.
//!
//! The figures are committed. After an intended change, write them again with:
//! `AAEP_WRITE_DOCS=1 cargo test -p aaep-cli --test report`

mod printed;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use printed::{err, out};
use serde_json::{Value, json};

const CAPTURES: [&str; 7] =
    ["coding", "answer", "permissions", "three", "flood", "crossing", "claim"];
const PROFILES: [&str; 4] = ["screen-reader", "braille", "low-cognitive-load", "quiet"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/captures")
}

fn capture(name: &str) -> String {
    folder().join(format!("{name}.jsonl")).to_str().expect("UTF-8").to_owned()
}

fn report(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("report").args(arguments).output().expect("aaep runs")
}

/// The report of a text that comes on standard input.
fn report_of(text: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["report", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("aaep runs");
    child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("written");
    child.wait_with_output().expect("it ends")
}

fn object(output: &Output) -> Value {
    serde_json::from_str(out(output).trim()).unwrap_or_else(|error| panic!("{error} {output:?}"))
}

/// An event on a line, at this many seconds.
fn line(seconds: u64, kind: &str, fields: &Value) -> String {
    let mut event = json!({
        "@context": ["https://aaep-protocol.org/context/v1", "urn:uuid:ad788fbe-34bf-41c1-a6a9-7fc3ed86da4e"],
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{seconds}"),
        "session_id": "sess_1", "timestamp": format!("2026-11-02T06:{:02}:{:02}.000Z", seconds / 60, seconds % 60),
        "producer": { "agent_id": "weaver" },
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    format!("{event}\n")
}

fn says(seconds: u64, words: &str) -> String {
    let fields = json!({ "chunk": words, "position": 0, "complete": true });
    line(seconds, "output.streaming", &fields)
}

fn asks(seconds: u64) -> String {
    let fields = json!({
        "action": "Delete it.", "consequence": "It is gone.", "reply_token": format!("rpl_{seconds}"),
        "timeout_seconds": 5, "default_decision": "reject", "urgency": "critical",
    });
    line(seconds, "awaiting.confirmation", &fields)
}

/// Compares with what is committed, or writes it.
fn is_committed(name: &str, content: &str) {
    let path = folder().join(name);
    if std::env::var_os("AAEP_WRITE_DOCS").is_some() {
        fs::write(&path, content).expect("it is written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let change = "if this is meant, run: AAEP_WRITE_DOCS=1 cargo test -p aaep-cli --test report";
    assert!(committed == content, "{name} is not what it was; {change}\n{content}");
}

/// A figure in a table: milliseconds as seconds.
fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Number(number) if name.ends_with("_ms") => {
            let tenths = number.as_u64().expect("a time") / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

const FIGURES: [(&str, &str); 17] = [
    ("Words per minute", "words_per_minute"),
    ("Events", "events"),
    ("From the first event to the last", "session_ms"),
    ("Words emitted", "words_emitted"),
    ("Words spoken", "words_spoken"),
    ("Announcements per minute", "announcements_per_minute"),
    ("Longest silence", "longest_silence_ms"),
    ("Announcements repeated", "repeated_announcements"),
    ("Announcements cut off for good", "cut_announcements"),
    ("Questions", "asks"),
    ("Questions missed", "asks_missed"),
    ("From a question to its first word, at most", "slowest_ask_ms"),
    ("Behind what happened, at most", "furthest_behind_ms"),
    ("The same for ends, failures and settled questions", "urgent_behind_ms"),
    ("Ends told after more than one sentence", "late_ends"),
    ("Said before an end that was known", "said_before_an_end"),
    ("Behind at the end", "behind_at_the_end_ms"),
];

#[test]
fn the_figures_of_the_recorded_sessions_are_those_that_are_committed() {
    let mut page = String::from(
        "# How the recorded sessions are to listen to\n\n\
         Made by `aaep report` for each capture of this folder; a test makes them anew and compares. What the captures \
         are is in\n[README.md](README.md).\n",
    );
    for name in CAPTURES {
        let reports = PROFILES.map(|profile| {
            let output = report(&[&capture(name), "--profile", profile, "--json"]);
            assert_eq!(output.status.code(), Some(0), "{name} {profile}: {output:?}");
            object(&output)
        });
        write!(page, "\n## {name}\n\n| |").expect("a string");
        for profile in PROFILES {
            page.extend([" ", profile, " |"]);
        }
        page.push_str("\n|---|---|---|---|---|\n");
        for (words, field) in FIGURES {
            page.extend(["| ", words, " |"]);
            for it in &reports {
                page.extend([" ", &cell(field, &it[field]), " |"]);
            }
            page.push('\n');
        }
    }
    is_committed("figures.md", &page);
}

#[test]
fn nothing_is_missed_repeated_or_cut_in_any_profile() {
    let captures = CAPTURES.map(capture);
    let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
    for profile in ["screen-reader", "braille", "captions", "low-cognitive-load", "quiet", "debug"]
    {
        for pace in ["50", "180", "450"] {
            let options = ["--json", "--profile", profile, "--words-per-minute", pace];
            let output = report(&[&captures[..], &options].concat());
            assert_eq!(output.status.code(), Some(0), "{profile} at {pace}: {}", out(&output));
            assert_eq!(out(&output).lines().count(), CAPTURES.len());
        }
    }
}

#[test]
fn the_sessions_have_the_character_that_they_are_kept_for() {
    let of = |name: &str| object(&report(&[&capture(name), "--json"]));
    assert_eq!(of("permissions")["asks"], 5);
    assert_eq!(of("three")["asks"], 1);
    assert!(of("answer")["words_emitted"].as_u64() > Some(300));
    let text = |name: &str| fs::read_to_string(capture(name)).expect("the capture");
    assert!(text("coding").matches("tool.invoked").count() > 15, "storms of tools");
    assert!(of("flood")["words_emitted"].as_u64() > Some(3000), "more than anyone can hear");
    assert_eq!(of("crossing")["asks"], 2);
    assert!(text("claim").contains("all tests pass.") && text("claim").contains("FAILED"));
    let agents = [1, 1, 2, 3, 3, 3, 2];
    for (name, agents) in CAPTURES.into_iter().zip(agents) {
        let mut names: Vec<String> = text(name)
            .lines()
            .map(|it| {
                serde_json::from_str::<Value>(it).expect("JSON")["producer"]["agent_id"].to_string()
            })
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), agents, "{name}: {names:?}");
        assert!(text(name).len() < 200_000, "{name} is small enough to be kept");
    }
}

#[test]
fn the_page_is_the_one_that_is_committed() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("page.html");
    let output = report(&[&capture("permissions"), "--html", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    is_committed("permissions.html", &fs::read_to_string(&path).expect("the page"));
    assert_eq!(
        fs::read_dir(scratch.path()).expect("the folder").count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn text_tells_each_capture_by_its_name() {
    let output = report(&[&capture("coding"), &capture("three")]);
    let text = out(&output);
    assert!(text.starts_with("coding.jsonl, profile screen-reader\nPace: 180 words per minute\n"));
    assert!(text.contains("\n\nthree.jsonl, profile screen-reader\n"), "{text}");
    assert!(text.contains("\nQuestions missed: 0\n"), "{text}");
    assert!(err(&output).is_empty());
}

#[test]
fn a_line_that_is_cut_off_is_named_and_the_rest_is_heard() {
    let whole = says(0, "Good day.");
    let cut = whole.split_at(60).0;
    let text = format!("{whole}{cut}\n\n{{\"type\":\"nothing\"}}\n{}", says(2, "Good night."));
    let output = report_of(&text, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let object = object(&output);
    assert_eq!(object["events"], 2);
    assert_eq!(object["broken_lines_count"], 2);
    assert_eq!(object["broken_lines"][0]["line"], 2);
    assert_eq!(object["broken_lines"][1]["line"], 4);
    assert_eq!(object["is_good"], true, "what could be heard was heard");
    let words = out(&report_of(&text, &[]));
    assert!(words.contains("\nLine 2 could not be read: "), "{words}");
}

#[test]
fn many_broken_lines_are_counted_and_not_all_named() {
    let text = format!("{}{}", says(0, "Good day."), "{\"cut\n".repeat(5000));
    let output = report_of(&text, &["--json"]);
    let object = object(&output);
    assert_eq!(object["broken_lines_count"], 5000);
    assert_eq!(object["broken_lines"].as_array().map(Vec::len), Some(20));
    assert!(out(&report_of(&text, &[])).contains("And 4,980 lines more could not be read."));
}

#[test]
fn nothing_to_hear_could_not_be_done() {
    for text in ["", "\n\n", "not JSON\n", "[]", "\u{1b}[2J"] {
        let output = report_of(text, &[]);
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        assert!(err(&output).contains("holds no event"), "{}", err(&output));
        assert!(err(&output).contains("aaep capture"), "the next step: {}", err(&output));
        assert!(!err(&output).contains('\u{1b}'));
    }
    for path in ["/nowhere/at.all", env!("CARGO_MANIFEST_DIR")] {
        assert_eq!(report(&[path]).status.code(), Some(2));
    }
    let good = capture("three");
    let output = report(&["/nowhere/at.all", &good]);
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).starts_with("three.jsonl"), "the other one is reported on all the same");
    for arguments in [&["--profile", "loud"][..], &["--words-per-minute", "0"]] {
        assert_eq!(report(&[&[good.as_str()], arguments].concat()).status.code(), Some(2));
    }
}

#[test]
fn one_event_is_a_session_too() {
    let object = object(&report_of(&says(0, "Good day."), &["--json"]));
    assert_eq!((&object["events"], &object["session_ms"]), (&json!(1), &json!(0)));
    assert_eq!(object["words_spoken"], 3, "with the name of the agent");
}

#[test]
fn time_that_goes_back_stands_still_and_is_told() {
    let text = [says(50, "One."), says(10, "Two."), says(20, "Three."), says(60, "Four.")].concat();
    let object = object(&report_of(&text, &["--json"]));
    assert_eq!(object["events_dated_back"], 2);
    assert_eq!(object["session_ms"], 10_000);
    assert!(out(&report_of(&text, &[])).contains("Dated before the event before them: 2 events."));
}

#[test]
fn a_question_that_nobody_could_hear_in_time_is_exit_code_1() {
    let long = json!({ "error_category": "unknown", "summary_normal": format!("Failed {}", "word ".repeat(100)), "urgency": "critical" });
    let text = line(0, "session.errored", &long) + &asks(1);
    let output = report_of(&text, &["--words-per-minute", "60"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(out(&output).contains("Questions missed: 1, and should be 0\n"), "{}", out(&output));
}

#[test]
fn a_question_without_an_end_and_handshakes_are_no_trouble() {
    let request = "{\"type\":\"subscription.request\",\"aaep_version\":\"1.0.0\",\"subscriber_id\":\"reader\",\"capabilities\":{}}\n";
    let output = report_of(&format!("{request}{}", asks(1)), &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let object = object(&output);
    assert_eq!((&object["asks"], &object["asks_missed"]), (&json!(1), &json!(0)));
    assert_eq!((&object["events"], &object["broken_lines_count"]), (&json!(1), &json!(0)));
}

#[test]
fn a_recording_that_is_too_large_is_refused_and_not_held() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("large.jsonl");
    let file = fs::File::create(&path).expect("a file");
    // Nothing but zeros, and none of them on the disk.
    file.set_len(200 * 1024 * 1024).expect("a hole");
    let output = report(&[path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("more than 128 MiB"), "{}", err(&output));
}

#[test]
fn a_capture_is_never_overwritten_by_its_own_page() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("dear.jsonl");
    let text = says(0, "Good day.");
    fs::write(&path, &text).expect("written");
    let name = path.to_str().expect("UTF-8");
    let around = format!(
        "{}/../{}/dear.jsonl",
        scratch.path().display(),
        scratch.path().file_name().and_then(|it| it.to_str()).expect("a name")
    );
    assert_eq!(report(&[name, "--html", &around]).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&path).expect("the capture"), text);
    let nowhere = scratch.path().join("no/such/page.html");
    let output = report(&[name, "--html", nowhere.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
