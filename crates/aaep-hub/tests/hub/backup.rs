//! A backup that is made while agents speak has everything that was acknowledged before it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_hub::audit;
use aaep_hub::hub::Hub;
use aaep_hub::store::restore;
use serde_json::json;

use crate::support::{
    Stream, confirmation, hub, hub_in, me, progress, publish, started, subscribe, token,
};

const TOKEN: &str = "rpl_0123456789abcdef0123456789abcdef";

/// Publishes until it is told to stop. Returns the ids of the acknowledged events, in order.
async fn speak(hub: Hub, session: String, is_over: Arc<AtomicBool>) -> Vec<String> {
    publish(&hub, started(&session)).await;
    let mut acknowledged = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let published = publish(&hub, progress(&session, "On and on.")).await;
        acknowledged.push(published.event_id.to_string());
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_acknowledged_before_is_in_a_backup_under_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(&folder.path().join("store"));
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_ask")).await;
    publish(&hub, confirmation("sess_ask", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let is_over = Arc::new(AtomicBool::new(false));
    let speakers: Vec<_> = (0..4)
        .map(|at| tokio::spawn(speak(hub.clone(), format!("sess_{at}"), Arc::clone(&is_over))))
        .collect();
    // These events are acknowledged before the backup begins.
    let mut before = Vec::new();
    for _ in 0..50 {
        let published = publish(&hub, progress("sess_ask", "Before.")).await;
        before.push(published.event_id.to_string());
    }
    let mut file = hub.backup(&me()).await.expect("made").expect("on the disk");
    is_over.store(true, Ordering::SeqCst);
    let mut spoken = Vec::new();
    for speaker in speakers {
        spoken.push(speaker.await.expect("no panic"));
    }
    let to = folder.path().join("backup");
    let restored = restore(&mut file, &to).expect("restored");
    assert!(restored.audit_entries >= 2, "asked, and the backup itself: {restored:?}");
    hub.stop().await;
    drop((hub, stream));

    assert!(audit::verify(&to.join("audit.jsonl")).is_ok());
    let hub = hub_in(&to);
    let events_of = async |session: &str| {
        let id = aaep::SessionId::parse(session).expect("an id");
        let (mut all, mut from) = (Vec::new(), 0);
        loop {
            let page = hub.session_events(&me(), &id, from, 1000).await.expect("answered");
            let page = page.expect("there");
            let Some(last) = page.last() else { return all };
            from = last.order + 1;
            all.extend(page.iter().map(|it| it.event_id.to_string()));
        }
    };
    let stored = events_of("sess_ask").await;
    assert!(before.iter().all(|id| stored.contains(id)), "nothing acknowledged is missing");
    for (at, spoken) in spoken.iter().enumerate() {
        // The backup shows one moment: it has the beginning of each session, without gaps.
        let stored = events_of(&format!("sess_{at}")).await;
        let there = spoken.iter().take_while(|id| stored.contains(id)).count();
        assert!(spoken[there..].iter().all(|id| !stored.contains(id)), "no gap");
    }
    let open = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert!(open.settlement.is_none(), "the question is open there, too");
}

#[tokio::test]
async fn a_hub_in_memory_has_nothing_to_back_up() {
    assert!(hub().backup(&me()).await.expect("answered").is_none());
}
