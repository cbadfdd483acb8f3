//! `aaep manifest` against producers on this machine: honest, unsigned, changed, moved, silent.

mod printed;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use printed::{err, out};
use serde_json::Value;
use tempfile::TempDir;

const MANIFEST: &str = "/.well-known/aaep-manifest.json";
const KEYS: &str = "/.well-known/aaep-jwks.json";

/// A producer on this machine, with its keys and with what a subscriber keeps.
struct Producer {
    home: TempDir,
    origin: String,
    answers: Arc<Mutex<HashMap<String, Vec<u8>>>>,
}

impl Producer {
    /// A producer that publishes nothing yet. Its server ends with the test.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("bound"));
        let answers: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
        let served = Arc::clone(&answers);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(&stream);
                let mut first = String::new();
                let _ = reader.read_line(&mut first);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                let path = first.split(' ').nth(1).unwrap_or_default();
                let found = served.lock().expect("answers").get(path).cloned();
                let (status, body) = match found {
                    Some(body) => ("200 OK", body),
                    None => ("404 Not Found", Vec::new()),
                };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = (&stream).write_all(head.as_bytes());
                let _ = (&stream).write_all(&body);
            }
        });
        Producer { home: tempfile::tempdir().expect("a folder"), origin, answers }
    }

    fn publish(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.answers.lock().expect("answers").insert(path.to_owned(), body.into());
    }

    fn keys_folder(&self) -> PathBuf {
        self.home.path().join("keys")
    }

    /// Makes a key, signs with it and publishes both. Gives the key's name.
    fn sign_with_new_key(&self) -> String {
        let folder = self.keys_folder();
        let made = run(&["keys", "new", "--overlap-days", "0"], &folder);
        let kid = out(&made).split_whitespace().nth(2).expect("Made key KID").to_owned();
        self.publish(KEYS, run(&["keys", "list", "--jwks"], &folder).stdout);
        self.publish(MANIFEST, self.show(&["--sign"]).stdout);
        kid
    }

    fn show(&self, more: &[&str]) -> Output {
        let usual = ["manifest", "show", "--agent-id", "photo-tidier", "--origin", &self.origin];
        let shown = run(&[&usual, more].concat(), &self.keys_folder());
        assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
        shown
    }

    /// Verifies as a subscriber with pins of its own.
    fn verify(&self, url: &str, more: &[&str]) -> Output {
        let pins = self.home.path().join("listener/pins.toml");
        let pins = pins.to_str().expect("UTF-8");
        aaep(&[&["manifest", "verify", url, "--pins", pins], more].concat())
    }

    /// The published manifest with one value changed.
    fn change(&self, pointer: &str, value: Value) {
        let text = self.answers.lock().expect("answers")[MANIFEST].clone();
        let mut manifest: Value = serde_json::from_slice(&text).expect("JSON");
        *manifest.pointer_mut(pointer).expect(pointer) = value;
        self.publish(MANIFEST, manifest.to_string());
    }
}

fn aaep(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep")).args(arguments).output().expect("aaep runs")
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    aaep(&[arguments, &["--folder", folder.to_str().expect("UTF-8")]].concat())
}

fn is_invalid(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(1), "{}{}", out(output), err(output));
    assert!(
        out(output).starts_with("Not valid. ") && out(output).contains(words),
        "{}",
        out(output)
    );
}

fn could_not(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(2), "{}{}", out(output), err(output));
    assert!(err(output).contains(words), "{}", err(output));
}

#[test]
fn a_manifest_is_shown_and_is_valid() {
    let shown = aaep(&[
        "manifest",
        "show",
        "--agent-id",
        "a",
        "--agent-name",
        "A",
        "--language",
        "en-GB",
        "--language",
        "yo-NG",
        "--transport",
        "sse=https://example.org/events",
        "--transport",
        "stdio-jsonrpc",
        "--level",
        "1",
        "--contact",
        "help@example.org",
    ]);
    assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
    assert_eq!(aaep::validate(&shown.stdout, aaep::Mode::Strict), []);
    let manifest: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(manifest["transports_supported"], serde_json::json!(["sse", "stdio-jsonrpc"]));
    let wrong = aaep(&["manifest", "show", "--agent-id", "a", "--level", "9"]);
    could_not(&wrong, "/conformance_levels_supported");
}

#[test]
fn nothing_is_signed_without_a_key_or_a_place() {
    let home = tempfile::tempdir().expect("a folder");
    let usual = ["manifest", "show", "--agent-id", "a", "--sign"];
    could_not(&run(&usual, home.path()), "--origin");
    let folder = home.path().join("keys");
    let placed = [&usual[..], &["--origin", "https://example.org"]].concat();
    could_not(&run(&placed, &folder), "make one with: aaep keys new");
}

#[test]
fn a_signed_manifest_is_valid_and_pinned_when_the_user_says_so() {
    let producer = Producer::new();
    let kid = producer.sign_with_new_key();
    let host = producer.origin.trim_start_matches("http://");

    let first = producer.verify(host, &[]);
    assert_eq!(first.status.code(), Some(0), "{}{}", out(&first), err(&first));
    let text = out(&first);
    assert!(text.starts_with("Valid. This is the manifest of \"photo-tidier\".\n"), "{text}");
    assert!(text.contains(&format!("signed with ES256 by key {kid}")), "{text}");
    assert!(text.contains(&format!("verify {host} --pin {kid} --trust-first")), "{text}");
    assert!(!producer.home.path().join("listener").exists(), "nothing is remembered unasked");

    let trusting = producer.verify(&producer.origin, &["--trust-first"]);
    assert_eq!(trusting.status.code(), Some(0), "{}", err(&trusting));
    assert!(out(&trusting).contains("From now on the producer is known by this key"));
    let known = producer.verify(&format!("{}{MANIFEST}", producer.origin), &["--json"]);
    let report: Value = serde_json::from_slice(&known.stdout).expect("JSON");
    assert_eq!(report["valid"], true);
    assert_eq!(report["pinned"], true);
    assert_eq!(report["thumbprint"], kid);
    assert_eq!(report["algorithm"], "ES256");
}

#[test]
fn the_compact_form_is_verified_too() {
    let producer = Producer::new();
    producer.sign_with_new_key();
    producer.publish(MANIFEST, producer.show(&["--sign", "--jws"]).stdout);
    let verified = producer.verify(&producer.origin, &[]);
    assert_eq!(verified.status.code(), Some(0), "{}{}", out(&verified), err(&verified));
}

#[test]
fn a_changed_key_is_refused_aloud_until_the_user_accepts_it() {
    let producer = Producer::new();
    let old = producer.sign_with_new_key();
    assert_eq!(producer.verify(&producer.origin, &["--trust-first"]).status.code(), Some(0));
    let new = producer.sign_with_new_key();
    for more in [&[][..], &["--trust-first"]] {
        let refused = producer.verify(&producer.origin, more);
        is_invalid(&refused, "WARNING: the key has changed.");
        assert!(out(&refused).contains(&old) && out(&refused).contains(&new), "{}", out(&refused));
    }
    // The command that the refusal names.
    let text = out(&producer.verify(&producer.origin, &[]));
    let command = text.split("accept it with: aaep ").nth(1).expect("a command").trim().to_owned();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["manifest", "verify"]);
    let accepted = producer.verify(words[2], &words[3..]);
    assert_eq!(accepted.status.code(), Some(0), "{}{}", out(&accepted), err(&accepted));
    let known = producer.verify(&producer.origin, &[]);
    assert!(out(&known).contains("This is the key that the producer is known by."));
}

#[test]
fn another_key_than_the_one_on_the_command_line_is_refused() {
    let producer = Producer::new();
    producer.sign_with_new_key();
    // One that begins like an option is a key as well.
    for other in [
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
        "-hrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    ] {
        is_invalid(&producer.verify(&producer.origin, &["--pin", other]), other);
    }
    let other = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    let trusting = producer.verify(&producer.origin, &["--pin", other, "--trust-first"]);
    is_invalid(&trusting, other);
    assert!(!producer.home.path().join("listener/pins.toml").exists());
}

#[test]
fn what_is_wrong_with_a_manifest_ends_with_1() {
    let producer = Producer::new();
    producer.publish(MANIFEST, producer.show(&[]).stdout);
    is_invalid(&producer.verify(&producer.origin, &[]), "The manifest is not signed");
    producer.sign_with_new_key();
    producer.change("/agent_id", "bank".into());
    is_invalid(&producer.verify(&producer.origin, &[]), "something else than what was signed");
    producer.publish(MANIFEST, "<html>\u{1b}[2J");
    let html = producer.verify(&producer.origin, &["--json"]);
    assert_eq!(html.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&html.stdout).expect("JSON");
    assert_eq!((&report["valid"], &report["code"]), (&false.into(), &"malformed_jws".into()));
}

#[test]
fn a_manifest_copied_from_elsewhere_is_noticed() {
    let (honest, thief) = (Producer::new(), Producer::new());
    honest.sign_with_new_key();
    let stolen = honest.answers.lock().expect("answers").clone();
    thief.answers.lock().expect("answers").extend(stolen);
    could_not(&thief.verify(&thief.origin, &[]), "has its keys at another place");
    let keys = format!("{}{KEYS}", honest.origin);
    is_invalid(&thief.verify(&thief.origin, &["--jwks", &keys]), "It may be a copy.");
}

#[test]
fn what_cannot_be_checked_ends_with_2_and_a_next_step() {
    let producer = Producer::new();
    could_not(&producer.verify(&producer.origin, &[]), "status 404");
    producer.sign_with_new_key();
    producer.publish(KEYS, "{}");
    could_not(&producer.verify(&producer.origin, &[]), "is not a key set");
    producer.publish(KEYS, r#"{"keys":[{"kty":"EC","kid":"a","d":"AAAA"}]}"#);
    could_not(&producer.verify(&producer.origin, &[]), "shows the private key");
    producer.publish(MANIFEST, vec![b' '; 300 * 1024]);
    could_not(&producer.verify(&producer.origin, &[]), "more than 262144 bytes");
    could_not(&producer.verify("http://192.0.2.1", &[]), "--insecure-allow-plain-http");
    could_not(&producer.verify("ftp://example.org", &[]), "Use an https address");
    could_not(&producer.verify("127.0.0.1:1", &[]), "Check the name and the port");
    let json = producer.verify("127.0.0.1:1", &["--json"]);
    assert_eq!(json.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&report["valid"], &report["code"]), (&Value::Null, &"not_checked".into()));
}

#[test]
fn the_help_documents_the_exit_codes() {
    for command in ["show", "verify"] {
        let help = aaep(&["manifest", command, "--help"]);
        assert!(out(&help).contains("Exit codes:\n  0  "), "{}", out(&help));
    }
}
