//! The hub when its disk fails: it waits, it says so, and it tells nobody what is not stored.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aaep::{Object, SessionId};
use serde_json::json;

use super::{Hub, HubError};
use crate::access::Principal;
use crate::store::tests::full::open_small;

fn event(kind: &str, text: &str) -> Object {
    let event = json!({
        "type": format!("aaep:agent.{kind}"), "session_id": "sess_one",
        "producer": { "agent_id": "builder" }, "progress": { "percent": 50 },
        "summary_normal": text,
    });
    let mut event = event.as_object().cloned().expect("an object");
    if kind == "session.started" {
        event.remove("progress");
    }
    event
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to that");
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_acknowledged_until_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, &recovered).expect("a hub");
    let me = Principal::local();
    let publish = |hub: Hub, event: Object| {
        let me = me.clone();
        tokio::spawn(async move { hub.publish(&me, vec![event], None).await })
    };
    let first = publish(hub.clone(), event("session.started", "Tidying.")).await.expect("no panic");
    first.expect("answered")[0].as_ref().expect("taken");

    let file = folder.path().join("store.redb");
    disk.room_bytes.store(file.metadata().expect("a file").len() / 2, Ordering::SeqCst);
    let waiting = publish(hub.clone(), event("progress.updated", &"Half. ".repeat(1000)));
    until(|| hub.trouble().is_some()).await;
    assert!(hub.trouble().is_some_and(|why| why.contains("no room")), "{:?}", hub.trouble());
    assert!(!waiting.is_finished() && !hub.is_dead());
    let session_id = SessionId::parse("sess_one").expect("an id");
    let stored =
        |hub: &Hub| hub.reader().session(&session_id).expect("read").expect("there").events;
    assert_eq!(stored(&hub), 1);

    disk.room_bytes.store(u64::MAX, Ordering::SeqCst);
    let outcome = waiting.await.expect("no panic").expect("answered");
    outcome[0].as_ref().expect("taken");
    assert_eq!(stored(&hub), 2);
    until(|| hub.trouble().is_none()).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_hub_that_cannot_store_can_still_be_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, &recovered).expect("a hub");
    disk.room_bytes.store(0, Ordering::SeqCst);
    let waiting = {
        let hub = hub.clone();
        tokio::spawn(async move {
            let event = event("session.started", "Tidying.");
            hub.publish(&Principal::local(), vec![event], None).await
        })
    };
    until(|| hub.trouble().is_some()).await;
    hub.stop().await;
    assert_eq!(waiting.await.expect("no panic"), Err(HubError::Stopped));
}
