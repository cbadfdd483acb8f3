//! Stores of versions before, as these left them when they were killed, are taken on.
//!
//! `tests/stores/format-2` and `format-4` were each written by the last version with that format: a session that ended
//! with an accepted question and was published under an idempotency key; and, in the journal alone, a running session
//! with a question that is open.
//! Each file is packed: its length, then for each 64 bytes that are not all zero where they are, how many, and the bytes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aaep::SessionId;
use aaep::extension::{DecidedBy, Outcome};
use aaep_hub::audit;
use aaep_hub::store::{Retention, Store};

use crate::support::{hub_in, me, progress, publish, started, token, try_publish};

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
async fn a_store_of_the_version_before_opens_and_goes_on() {
    opens_and_goes_on(4).await;
}

async fn opens_and_goes_on(format: u32) {
    let folder = unpacked(format);
    let hub = hub_in(folder.path());
    assert_eq!(hub.notes(), Vec::<String>::new());

    let settled = hub.ask_state(&me(), &token("rpl_settled"), Duration::ZERO).await.expect("known");
    assert_eq!(settled.settlement.map(|it| it.outcome), Some(Outcome::Accept));
    // Long over by now, and its default is no.
    let open = hub.ask_state(&me(), &token("rpl_open"), Duration::ZERO).await.expect("known");
    let settlement = open.settlement.expect("its time is over");
    assert_eq!((settlement.outcome, settlement.decided_by), (Outcome::Reject, DecidedBy::Timeout));

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
