//! Requests of an administrator while the hub runs.

use std::io::Read as _;

use aaep_hub::access::{HeardAgents, Scope};
use aaep_hub::audit;
use aaep_hub::store::restore;
use serde_json::Value;

use crate::support::*;

fn with_store() -> TestHub {
    TestHub::with(|options| {
        let folder = options.tokens.parent().expect("a folder").join("store");
        options.store = Some(folder);
    })
}

/// Asks this many questions, which nobody answers.
fn ask(hub: &TestHub, count: usize) {
    hub.begin("sess_1");
    for at in 0..count {
        let mut event = question("sess_1");
        event["action"] = format!("Delete folder {at}").into();
        assert_eq!(hub.post("/aaep/v1/asks", &event).status, 200);
    }
}

#[test]
fn the_audit_log_is_read_in_pages_while_the_hub_runs() {
    let hub = with_store();
    ask(&hub, 7);
    let (mut all, mut after) = (Vec::<Value>::new(), 0);
    loop {
        let page = hub.get(&format!("/aaep/v1/audit?limit=4&after={after}"));
        assert_eq!(page.status, 200, "{}", page.body);
        let page = page.json();
        let entries = page["entries"].as_array().expect("entries");
        assert!(entries.len() <= 4);
        all.extend(entries.iter().cloned());
        let Some(next) = page["next_after"].as_u64() else { break };
        after = next;
    }
    assert_eq!(all.len(), 14, "asked and settled: {all:?}");
    for (one, next) in all.iter().zip(&all[1..]) {
        assert_eq!(next["previous"], one["hash"], "the chain goes over pages");
    }
    assert_eq!(all[0]["details_state"], "present");
    assert!(all[0]["details"].as_str().expect("words").contains("Delete folder 0"));
    for wrong in ["after=x", "limit=0", "limit=1025"] {
        hub.get(&format!("/aaep/v1/audit?{wrong}")).refuses(400, "wrong_parameter");
    }
}

#[test]
fn a_backup_comes_over_http_and_can_be_restored() {
    let hub = with_store();
    ask(&hub, 3);
    let mut client = hub.connect();
    client.send(&request("", "GET", "/aaep/v1/backup", ""));
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let length = Reply { status: 200, head, body: String::new() };
    let length: usize =
        length.header("content-length").expect("a length").parse().expect("a number");
    let bytes = client.exactly(length);
    let to = hub.folder.path().join("backup");
    let restored = restore(&mut bytes.as_slice(), &to).expect("restored");
    assert_eq!((restored.sessions, restored.audit_entries), (1, 7));
    assert!(audit::verify(&to.join("audit.jsonl")).is_ok());
    let mut log = String::new();
    let file = std::fs::File::open(to.join("audit.jsonl"));
    file.expect("a log").read_to_string(&mut log).expect("text");
    assert!(log.contains("\"kind\":\"backup\""), "{log}");
}

#[test]
fn only_an_admin_who_hears_everyone_keeps_the_hub() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let subscriber = token(&hub.folder, "listener", &[Scope::Listen, Scope::Reply, Scope::Publish]);
    let mail = HeardAgents::Only(["mail".to_owned()].into());
    let restricted = token_hearing(&hub.folder, "mail admin", &[Scope::Admin], mail);
    let admin = token(&hub.folder, "admin", &[Scope::Admin]);
    hub.wait_until_known(&admin);
    for path in ["/aaep/v1/audit", "/aaep/v1/backup"] {
        hub.as_someone(&subscriber, "GET", path, "").refuses(403, "scope_missing");
        hub.as_someone(&restricted, "GET", path, "").refuses(403, "hears_some");
    }
    assert_eq!(hub.as_someone(&admin, "GET", "/aaep/v1/audit", "").status, 200);
    let nothing = hub.as_someone(&admin, "GET", "/aaep/v1/backup", "");
    nothing.refuses(409, "nothing_stored");
}
