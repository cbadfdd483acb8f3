//! A small store, written as a hub writes it, and how `aaep` is run on it.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::PrincipalNumber;
use aaep_hub::audit::Entry;
use aaep_hub::store::{Retention, Store, StoreChange};

/// Text that would clear a terminal and turn it around, if it came through.
pub(crate) const NASTY: &str = "\u{1b}[2J\u{202e}\u{9b}";

/// Runs `aaep` with these arguments and this store.
pub(crate) fn aaep(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(arguments)
        .arg("--store")
        .arg(folder)
        .env_remove("AAEP_STORE")
        .output()
        .expect("aaep runs")
}

pub(crate) fn out(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let is_plain = |c: char| c == '\n' || (!c.is_control() && c != '\u{202e}');
    assert!(text.chars().all(is_plain), "it would steer a terminal: {text:?}");
    text
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

pub(crate) fn open(folder: &Path) -> Store {
    Store::open(folder, Retention::default()).expect("a store").0
}

/// A store with a session that ended, `sess_done`, one that runs, `sess_runs`, and four entries.
pub(crate) fn write(folder: &Path) {
    let mut store = open(folder);
    let mut changes = vec![
        StoreChange::Agent { key: 1, name: "builder".to_owned() },
        StoreChange::Agent { key: 2, name: format!("mean{NASTY}") },
    ];
    let events = [
        r#"{"type":"aaep:agent.session.started","summary_normal":"The build begins."}"#.to_owned(),
        r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#
            .to_owned(),
        r#"{"type":"aaep:agent.awaiting.confirmation","action":"Delete it","consequence":"Gone."}"#
            .to_owned(),
    ];
    changes.extend((0..).zip(&events).map(|(order, json)| event(order, "sess_done", 1, json)));
    let words = serde_json::json!({ "type": format!("x:{NASTY}"), "summary_normal": NASTY });
    changes.push(event(10, "sess_runs", 2, &words.to_string()));
    changes.push(event(11, "sess_runs", 2, "not JSON \u{1b}"));
    changes
        .push(StoreChange::SessionEnded { session_id: session("sess_done"), unix_us: moment(20) });
    changes.extend([
        entry("asked", "builder", "waits", "Delete the database?"),
        entry("reply", "Ada", "reject", "Never"),
        entry("settled", "Ada", "reject", NASTY),
        StoreChange::Audit(Entry {
            unix_us: moment(30),
            kind: "asked",
            session_id: Some(session("sess_runs")),
            reply_token: None,
            who: Some(NASTY.to_owned()),
            outcome: NASTY.to_owned(),
            details: None,
        }),
    ]);
    store.commit(&changes).expect("stored");
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::parse(id).expect("an id")
}

fn event(order: u64, session_id: &str, agent: u64, json: &str) -> StoreChange {
    StoreChange::Event {
        order,
        session_id: session(session_id),
        event_id: EventId::parse(&format!("evt_{order}")).expect("digits"),
        agent,
        principal: PrincipalNumber(1),
        by_hub: order == 1,
        unix_us: moment(order),
        json: Arc::from(json.as_bytes()),
    }
}

fn entry(kind: &'static str, who: &str, outcome: &str, words: &str) -> StoreChange {
    StoreChange::Audit(Entry {
        unix_us: moment(25),
        kind,
        session_id: Some(session("sess_done")),
        reply_token: Some(ReplyToken::parse("rpl_1").expect("a token")),
        who: Some(who.to_owned()),
        outcome: outcome.to_owned(),
        details: Some(words.to_owned()),
    })
}

/// This many seconds after the store began.
fn moment(seconds: u64) -> i64 {
    1_700_000_000_000_000 + i64::try_from(seconds).expect("small") * 1_000_000
}
