//! The hub when its disk fails: it waits, it says so, and it tells nobody what is not stored. And what it stores at
//! once, which is bounded.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aaep::{Message, Mode, Object, SessionId};
use aaep_engine::Input;
use aaep_engine::terms::Door;
use serde_json::json;

use super::keeper::Effect;
use super::owner::Owner;
use super::publish::Draft;
use super::{Hub, HubError};
use crate::access::Principal;
use crate::store::tests::full::open_small;
use crate::store::{Change, MAX_CHANGES, Store};

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

#[tokio::test]
async fn a_subscription_that_changes_often_within_a_turn_is_stored_once() {
    let hub = Hub::builder().start().expect("a hub");
    let me = Principal::local();
    hub.publish(&me, vec![event("session.started", "Tidying.")], None).await.expect("answered");
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "test",
        "capabilities": { "event_filters": { "include": ["*"] } },
    });
    let read = aaep::read(request.to_string().as_bytes(), Mode::Strict).message;
    let Some(Message::SubscriptionRequest(request)) = read else { panic!("no request") };
    let stored = hub.call(move |owner| {
        let accepted = owner.subscribe(&me, Door::Open, *request, None).expect("accepted");
        let id = accepted.subscription_id;
        let (listener, _) = owner.engine.subscription(&id).expect("known");
        for round in 0..20_u64 {
            owner.handle(Input::Block { listener }, None);
            for part in 0..2 {
                let text = json!({
                    "type": "aaep:agent.output.streaming", "session_id": "sess_one",
                    "producer": { "agent_id": "builder" }, "chunk": "One. ",
                    "position": (round * 2 + part) * 5, "complete": false,
                });
                let text = text.as_object().cloned().expect("an object");
                owner.publish_all(&me, vec![Draft::new(text)], None)[0].as_ref().expect("taken");
            }
            owner.handle(Input::Unblock { listener }, None);
        }
        let is_subscribed = |change: &&Change| matches!(change, Change::Subscribed { .. });
        let ids: Vec<_> = owner.remembered.keys().cloned().collect();
        (ids == [id], owner.batch.changes.iter().filter(is_subscribed).count())
    });
    assert_eq!(stored.await, Ok((true, 0)), "once, when the turn ends");
    hub.stop().await;
}

#[tokio::test]
async fn what_waited_for_the_disk_is_stored_in_bounded_commits() {
    let hub = Hub::builder().start().expect("a hub");
    let ask_owner = |work: Box<dyn FnOnce(&mut Owner) + Send>| {
        let hub = hub.clone();
        tokio::spawn(async move { hub.call(work).await })
    };
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let slow = move |owner: &mut Owner| {
        let work = move |_: &mut Store| waits.recv().expect("told to go on");
        owner.batch.effects.push(Effect::Store(Box::new(work)));
    };
    let mut asked = vec![ask_owner(Box::new(slow))];
    // Each of these fits into one commit, both together do not.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        asked.push(ask_owner(Box::new(|owner| {
            let session_id = SessionId::parse("sess_unknown").expect("an id");
            let change = Change::SessionEnded { session_id, unix_us: 0 };
            owner.batch.changes.extend(std::iter::repeat_n(change, MAX_CHANGES * 2 / 3));
        })));
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    go.send(()).expect("the keeper waits");
    for asked in asked {
        assert_eq!(asked.await.expect("no panic"), Ok(()));
    }
    assert!(!hub.is_dead());
    hub.stop().await;
}

#[tokio::test]
async fn many_urgent_events_at_once_tell_each_full_wire_once() {
    let hub = Hub::builder().start().expect("a hub");
    let me = Principal::local();
    hub.publish(&me, vec![event("session.started", "Tidying.")], None).await.expect("answered");
    let told = hub.call(move |owner| {
        for number in 0..100 {
            let mut urgent = event("handoff.requested", "Help.");
            urgent.remove("progress");
            urgent.insert("reason".to_owned(), json!(format!("Help {number}.")));
            urgent.insert("target_kind".to_owned(), json!("human"));
            owner.publish_all(&me, vec![Draft::new(urgent)], None)[0].as_ref().expect("taken");
        }
        let is_withdrawal = |it: &&Effect| {
            matches!(it, Effect::Wire(aaep_transport::wire::Command::Withdraw { .. }))
        };
        (owner.must_withdraw, owner.batch.effects.iter().filter(is_withdrawal).count())
    });
    assert_eq!(told.await, Ok((true, 0)), "when the turn ends");
    hub.stop().await;
}
