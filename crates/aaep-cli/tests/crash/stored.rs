//! The contents of the store at the end.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use aaep_hub::store::{MAX_PAGE_ROWS, Retention, Store};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// An event as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) session_id: String,
    pub(crate) event_id: String,
    pub(crate) by_hub: bool,
    pub(crate) is_critical: bool,
    /// Whether every subscriber receives it unchanged: it is never merged with others.
    pub(crate) is_whole: bool,
}

/// The parts of the store that are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    /// By session, and in each in their order.
    pub(crate) events: Vec<Kept>,
    /// For each entry of the audit log that says that a question was settled: the hash of its token, and
    /// how it was settled.
    pub(crate) settled: Vec<(String, String)>,
}

impl Stored {
    pub(crate) fn read(folder: &Path) -> Self {
        Stored { events: events(folder), settled: settled(folder) }
    }
}

fn events(folder: &Path) -> Vec<Kept> {
    let (store, _) = Store::open(folder, Retention::default()).expect("the store opens");
    let reader = store.reader();
    let mut events = Vec::new();
    let mut skip = 0;
    loop {
        let sessions = reader.sessions(skip, MAX_PAGE_ROWS).expect("read");
        if sessions.is_empty() {
            return events;
        }
        skip += sessions.len();
        for session in sessions {
            let mut from_order = 0;
            loop {
                let page =
                    reader.events(&session.session_id, from_order, MAX_PAGE_ROWS).expect("read");
                let Some(last) = page.last() else { break };
                from_order = last.order + 1;
                events.extend(page.iter().map(|event| Kept {
                    session_id: session.session_id.to_string(),
                    event_id: event.event_id.to_string(),
                    by_hub: event.by_hub,
                    is_critical: is_critical(&event.json),
                    is_whole: is_critical(&event.json) || is_whole(&event.json),
                }));
            }
        }
    }
}

fn is_critical(json: &[u8]) -> bool {
    let Some(aaep::Message::Event(event)) = aaep::read(json, aaep::Mode::Tolerant).message else {
        panic!("no event: {}", String::from_utf8_lossy(json))
    };
    event.is_critical()
}

/// Whether an event is of a type that is never merged with others.
fn is_whole(json: &[u8]) -> bool {
    let event: Value = serde_json::from_slice(json).expect("events are JSON");
    let kind = event["type"].as_str().unwrap_or_default();
    kind.starts_with("aaep:agent.session.") || event["irreversible"] == true
}

/// Has the audit log verified, and reads it.
fn settled(folder: &Path) -> Vec<(String, String)> {
    let run = |command: &str| {
        Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["audit", command, "--store"])
            .arg(folder)
            .env_remove("AAEP_STORE")
            .output()
            .expect("aaep runs")
    };
    let verified = run("verify");
    assert!(
        verified.status.success(),
        "the audit log does not hold: {}",
        String::from_utf8_lossy(&verified.stdout)
    );
    let exported = run("export");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let text = String::from_utf8(exported.stdout).expect("UTF-8");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let settled = lines.filter(|line| line["kind"] == "settled");
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    settled.map(|line| (text(&line, "reply_token_sha256"), text(&line, "outcome"))).collect()
}

/// The hash under which the audit log names a question.
pub(crate) fn hash_of(token: &str) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(token.as_bytes()) {
        write!(text, "{byte:02x}").expect("a text takes text");
    }
    text
}
