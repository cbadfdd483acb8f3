//! Stores of earlier versions, as these left them when they were killed, are taken over.
//!
//! The folders of `tests/stores` were each written by the last version with that format: a session that ended with an
//! accepted question and was published under an idempotency key; and, in the journal alone, a running session with a
//! question that is open. From format 5 on, and in format 3, `pack_a_store_of_this_version` wrote them, with a second
//! agent in the session that ended.
//! Each file is packed: its length, then each block of 64 bytes that are not all zero, with its position and length.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aaep::SessionId;
use aaep::extension::{AskOutcome, DecidedBy};
use aaep_hub::audit;
use aaep_hub::store::{Retention, Store};

use crate::support::{
    Stream, confirmation, event, hub_in, me, progress, publish, reply, started, subscribe, token,
    try_publish,
};

fn unpack(from: &Path, to: &Path) {
    let packed = fs::read(from).expect("a packed file");
    let (length, mut rest) = packed.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    let mut bytes = vec![0; usize::try_from(length).expect("small")];
    while let Some((head, tail)) = rest.split_first_chunk::<5>() {
        let at = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (block, tail) = tail.split_at(usize::from(head[4]));
        bytes[at..at + block.len()].copy_from_slice(block);
        rest = tail;
    }
    fs::write(to, bytes).expect("written");
}

fn unpacked(format: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let stores = format!("tests/stores/format-{format}");
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join(stores);
    for file in ["store.redb", "store.journal", "audit.jsonl"] {
        unpack(&stores.join(format!("{file}.packed")), &folder.path().join(file));
    }
    folder
}

#[tokio::test]
async fn a_store_without_journal_times_opens_and_goes_on() {
    opens_and_goes_on(2).await;
}

#[tokio::test]
async fn a_store_without_an_index_of_event_ids_opens_and_goes_on() {
    opens_and_goes_on(3).await;
}

#[tokio::test]
async fn a_store_with_a_row_for_each_event_id_opens_and_goes_on() {
    opens_and_goes_on(4).await;
}

#[tokio::test]
async fn a_store_without_held_names_opens_and_goes_on() {
    opens_and_goes_on(5).await;
}

#[tokio::test]
async fn a_store_with_a_byte_for_critical_events_opens_and_goes_on() {
    opens_and_goes_on(6).await;
}

/// Earlier versions did not store which principal holds a name, but their events say which principal spoke.
#[tokio::test]
async fn names_in_a_store_of_a_version_before_are_held() {
    let principals = |format: u32| {
        let folder = unpacked(format);
        let (_, recovered) = Store::open(folder.path(), Retention::default()).expect("a store");
        let name = |wanted: &str| {
            let mut held = recovered.held_names.iter().filter(|it| it.agent_id == wanted);
            let principal = held.next().map(|it| it.principal);
            recovered.principals.iter().find(|it| Some(it.0) == principal).map(|it| it.1.clone())
        };
        (name("builder"), name("helper"))
    };
    let local = || Some("local".to_owned());
    assert_eq!(principals(2), (local(), None));
    assert_eq!(principals(3), (local(), local()));
    assert_eq!(principals(4), (local(), None));
    assert_eq!(principals(5), (local(), local()));
}

async fn opens_and_goes_on(format: u32) {
    let folder = unpacked(format);
    let hub = hub_in(folder.path());
    assert_eq!(hub.notes(), Vec::<String>::new());

    let settled = hub.ask_state(&me(), &token("rpl_settled"), Duration::ZERO).await.expect("known");
    assert_eq!(settled.settlement.map(|it| it.outcome), Some(AskOutcome::Accept));
    // Its time is long over, and its default is no.
    let open = hub.ask_state(&me(), &token("rpl_open"), Duration::ZERO).await.expect("known");
    let settlement = open.settlement.expect("its time is over");
    assert_eq!(
        (settlement.outcome, settlement.decided_by),
        (AskOutcome::Reject, DecidedBy::Timeout)
    );

    let again = vec![started("sess_old")];
    let again = hub.publish(&me(), again, Some("old-key".to_owned())).await.expect("answered");
    if format < 3 {
        // That format did not store which request a key belongs to, so the key is refused.
        assert_eq!(again[0].as_ref().expect_err("in doubt").code(), "idempotency_key_used");
    } else {
        again[0].as_ref().expect("answered as it was");
    }
    publish(&hub, progress("sess_running", "It goes on.")).await;
    let ended = try_publish(&hub, &me(), progress("sess_old", "Too late.")).await;
    assert_eq!(ended.expect_err("it is over").code(), "ended");

    for (session, least) in [("sess_old", 5), ("sess_running", 5)] {
        let id = SessionId::parse(session).expect("an id");
        let events = hub.session_events(&me(), &id, 0, 100).await.expect("read").expect("there");
        assert!(events.len() >= least, "{session}: {}", events.len());
        let kinds: Vec<_> = events.iter().map(|it| it.json.clone()).collect();
        assert!(kinds.iter().all(|it| serde_json::from_slice::<serde_json::Value>(it).is_ok()));
    }
    hub.stop().await;
    drop(hub);
    audit::verify(&folder.path().join("audit.jsonl")).expect("the chain holds");
    every_event_is_found_by_its_id(folder.path());

    let hub = hub_in(folder.path());
    publish(&hub, progress("sess_running", "And on.")).await;
    let id = SessionId::parse("sess_old").expect("an id");
    hub.delete_session(&me(), &id).await.expect("answered").expect("deleted");
    hub.stop().await;
}

fn every_event_is_found_by_its_id(folder: &Path) {
    let (store, _) = Store::open(folder, Retention::default()).expect("a store");
    let reader = store.reader();
    for session in ["sess_old", "sess_running"] {
        let id = SessionId::parse(session).expect("an id");
        let events = reader.events(&id, 0, 100).expect("read");
        assert!(events.len() >= 5, "{session}: {}", events.len());
        for event in events {
            let found = reader.event(&id, &event.event_id).expect("read").map(|it| it.order);
            assert_eq!(found, Some(event.order));
        }
    }
}

/// The opposite of `unpack`.
fn pack(from: &Path, to: &Path) {
    let bytes = fs::read(from).expect("a file");
    let mut packed = (bytes.len() as u64).to_le_bytes().to_vec();
    for (number, block) in bytes.chunks(64).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            let at = u32::try_from(number * 64).expect("small");
            packed.extend(at.to_le_bytes());
            packed.push(u8::try_from(block.len()).expect("at most 64"));
            packed.extend(block);
        }
    }
    fs::write(to, packed).expect("written");
}

/// Writes a sample for later versions: run it with the last version that has a format.
#[tokio::test]
#[ignore = "writes files: AAEP_PACK_STORE says into which folder"]
async fn pack_a_store_of_this_version() {
    let to = std::env::var("AAEP_PACK_STORE").expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let subscription = subscribe(&hub, serde_json::json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    let began = hub.publish(&me(), vec![started("sess_old")], Some("old-key".to_owned())).await;
    began.expect("answered")[0].as_ref().expect("taken");
    let mut second = progress("sess_old", "A second agent works on it.");
    second["producer"]["agent_id"] = "helper".into();
    publish(&hub, second).await;
    publish(&hub, confirmation("sess_old", "rpl_settled")).await;
    stream.next_of("awaiting.confirmation");
    reply(&hub, &me(), &subscription, "rpl_settled", "accept").await;
    let done = serde_json::json!({ "summary_normal": "Done." });
    publish(&hub, event("session.completed", Some("sess_old"), &done)).await;
    hub.stop().await;
    drop((hub, stream));

    let hub = hub_in(folder.path());
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_running")).await;
    for text in ["One.", "Two.", "Three."] {
        publish(&hub, progress("sess_running", text)).await;
    }
    publish(&hub, confirmation("sess_running", "rpl_open")).await;
    stream.next_of("awaiting.confirmation");
    // As a kill leaves it.
    for file in ["store.redb", "store.journal", "audit.jsonl"] {
        pack(&folder.path().join(file), &Path::new(&to).join(format!("{file}.packed")));
    }
    hub.stop().await;
}
