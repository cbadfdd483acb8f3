//! The hub when its disk fails: it waits, reports that, and tells nobody about anything that is not stored.
//! Also tests that one commit is bounded.

mod full_disk;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use aaep::{Message, Mode, Object, SessionId};
use aaep_engine::EngineInput;
use aaep_engine::terms::Door;
use redb::{ReadableTable as _, ReadableTableMetadata as _};
use serde_json::json;

use super::keeper::DeferredEffect;
use super::owner::EngineOwner;
use super::publish::EventDraft;
use super::{Hub, HubError, MessageOutcome, Published, Refused};
use crate::access::{Guard, Limits, Principal};
use crate::bounds::MAX_CHANGES;
use crate::store::table::{ASKS, EVENTS, SESSIONS, SET_ASIDE, SUBSCRIPTIONS, pair};
use crate::store::tests::full::open_small;
use crate::store::{ReplayedEvent, Retention, Store, StoreChange};

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

/// How long anything may take before a test fails. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of something that must come to an end.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it comes to an end")
}

/// Waits until the owner has taken every request of the tasks that were spawned before.
async fn until_taken(hub: &Hub) {
    // A test has one thread: the tasks run now, and send their requests before this one's.
    tokio::task::yield_now().await;
    hub.look_up(|_| ()).await.expect("answered");
    // And what was answered meanwhile has reached them.
    tokio::task::yield_now().await;
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

/// Publishes until the disk is full. Returns the request that then waits for room.
async fn fill(hub: &Hub, session: &str) -> tokio::task::JoinHandle<PublishOutcome> {
    for number in 0..1000 {
        let mut event = event("progress.updated", &"Half. ".repeat(2000));
        event["session_id"] = session.into();
        event.insert("correlation_id".to_owned(), json!(format!("c{number}")));
        let (hub_, me) = (hub.clone(), Principal::local());
        let task = tokio::spawn(async move { hub_.publish(&me, vec![event], None).await });
        until(|| task.is_finished() || hub.trouble().is_some()).await;
        if hub.trouble().is_some() {
            return task;
        }
        task.await.expect("no panic").expect("answered")[0].as_ref().expect("taken");
    }
    panic!("the disk never got full");
}

type PublishOutcome = Result<Vec<Result<Published, Refused>>, HubError>;

#[tokio::test]
async fn on_a_full_disk_nothing_is_acknowledged_until_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, recovered).expect("a hub");
    let me = Principal::local();
    let started = vec![event("session.started", "Tidying.")];
    hub.publish(&me, started, None).await.expect("answered")[0].as_ref().expect("taken");
    let file = folder.path().join("store.redb");
    disk.room_bytes.store(file.metadata().expect("a file").len() / 2, Ordering::SeqCst);
    let waiting = fill(&hub, "sess_one").await;
    assert!(hub.trouble().is_some_and(|why| why.contains("no room")), "{:?}", hub.trouble());
    assert!(!waiting.is_finished() && !hub.is_dead());
    let session_id = SessionId::parse("sess_one").expect("an id");
    let stored =
        |hub: &Hub| hub.reader().session(&session_id).expect("read").expect("there").events;
    let before = stored(&hub);

    disk.room_bytes.store(u64::MAX, Ordering::SeqCst);
    let outcome = waiting.await.expect("no panic").expect("answered");
    outcome[0].as_ref().expect("taken");
    assert_eq!(stored(&hub), before + 1);
    until(|| hub.trouble().is_none()).await;
    hub.stop().await;
}

#[tokio::test]
async fn on_a_full_disk_what_is_there_can_be_read_and_nothing_is_left_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, recovered).expect("a hub");
    let me = Principal::local();
    let started = vec![event("session.started", "Tidying.")];
    hub.publish(&me, started, None).await.expect("answered")[0].as_ref().expect("taken");
    let file = folder.path().join("store.redb");
    disk.room_bytes.store(file.metadata().expect("a file").len() / 2, Ordering::SeqCst);
    let waiting = fill(&hub, "sess_one").await;

    assert_eq!(hub.sessions(&me, None, 9).await.expect("read").sessions.len(), 1);
    let session_id = SessionId::parse("sess_one").expect("an id");
    let events = hub.session_events(&me, &session_id, 0, 9).await.expect("read").expect("there");
    assert!(!events.is_empty());
    hub.waiting_asks(&me).await.expect("read");
    hub.count().await.expect("counted");
    // A new request is refused at once, and its sender learns that it does not count.
    let late = hub.publish(&me, vec![event("progress.updated", "More.")], None).await;
    let error = late.expect_err("nothing is taken");
    assert!(matches!(error, HubError::NotTaken { .. }), "{error:?}");
    assert!(error.to_string().contains("does not count"), "{error}");
    assert!(matches!(hub.tell(&me, reply()).await, Err(HubError::NotTaken { .. })));
    disk.room_bytes.store(u64::MAX, Ordering::SeqCst);
    in_time(waiting).await.expect("no panic").expect("answered")[0].as_ref().expect("taken");
    hub.stop().await;
}

#[tokio::test]
async fn a_reply_that_waits_for_the_disk_is_answered_when_it_is_known_whether_it_counts() {
    let hub = Hub::builder().start().expect("a hub");
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let slow = move |owner: &mut EngineOwner| {
        let work = move |_: &mut Store| waits.recv().expect("told to go on");
        owner.batch.effects.push(DeferredEffect::Store(Box::new(work)));
    };
    hub.look_up(slow).await.expect("done");
    let asking = hub.clone();
    let told = tokio::spawn(async move { asking.tell(&Principal::local(), reply()).await });
    until_taken(&hub).await;
    assert!(!told.is_finished(), "nothing is said before it is known");
    go.send(()).expect("the keeper waits");
    assert_eq!(
        in_time(told).await.expect("no panic"),
        Ok(MessageOutcome::NotCounted),
        "there is no such question"
    );
    hub.stop().await;
}

fn reply() -> Message {
    let reply = json!({
        "type": "confirmation.reply", "reply_token": "rpl_x", "decision": "accept",
        "subscription_id": "sub_x", "timestamp": "2026-05-24T14:22:24.812Z",
    });
    aaep::read(reply.to_string().as_bytes(), Mode::Strict).message.expect("valid")
}

/// The disk is full, a reply was taken just before, and the hub stops: the sender hears that the reply does not
/// count.
#[tokio::test]
async fn a_reply_that_was_never_stored_is_said_not_to_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, recovered).expect("a hub");
    // While the keeper is busy, the hub takes a reply together with more data than the disk has room for.
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let slow = move |owner: &mut EngineOwner| {
        let work = move |_: &mut Store| waits.recv().expect("told to go on");
        owner.batch.effects.push(DeferredEffect::Store(Box::new(work)));
    };
    hub.look_up(slow).await.expect("done");
    let much = |owner: &mut EngineOwner| {
        let name = "x".repeat(16 << 20);
        owner.batch.changes.push(StoreChange::Principal { key: 99, name });
    };
    hub.look_up(much).await.expect("done");
    let asking = hub.clone();
    let told = tokio::spawn(async move { asking.tell(&Principal::local(), reply()).await });
    until_taken(&hub).await;
    let length = folder.path().join("store.redb").metadata().expect("a file").len();
    disk.room_bytes.store(length / 2, Ordering::SeqCst);
    go.send(()).expect("the keeper waits");
    until(|| hub.trouble().is_some()).await;
    assert!(!told.is_finished() && !hub.is_dead(), "nothing is said before it is known");
    hub.stop().await;
    let told = in_time(told).await.expect("no panic");
    assert_eq!(told, Err(HubError::ReplyLost));
    assert!(HubError::ReplyLost.to_string().contains("does not count"));
}

#[tokio::test]
async fn a_hub_that_cannot_store_can_still_be_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small(folder.path());
    let hub = Hub::builder().start_on(store, recovered).expect("a hub");
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
        let (subscriber, _) = owner.engine.subscription(&id).expect("known");
        for round in 0..20_u64 {
            owner.handle(EngineInput::Block { subscriber }, None);
            for part in 0..2 {
                let text = json!({
                    "type": "aaep:agent.output.streaming", "session_id": "sess_one",
                    "producer": { "agent_id": "builder" }, "chunk": "One. ",
                    "position": (round * 2 + part) * 5, "complete": false,
                });
                let text = text.as_object().cloned().expect("an object");
                owner.publish_all(&me, vec![EventDraft::new(&me, text)], None)[0]
                    .as_ref()
                    .expect("taken");
            }
            owner.handle(EngineInput::Unblock { subscriber }, None);
        }
        let is_subscribed =
            |change: &&StoreChange| matches!(change, StoreChange::Subscribed { .. });
        let ids: Vec<_> = owner.remembered.keys().cloned().collect();
        (ids == [id], owner.batch.changes.iter().filter(is_subscribed).count())
    });
    assert_eq!(stored.await, Ok((true, 0)), "once, when the turn ends");
    hub.stop().await;
}

#[tokio::test]
async fn what_waited_for_the_disk_is_stored_in_bounded_commits() {
    let hub = Hub::builder().start().expect("a hub");
    let ask_owner = |work: Box<dyn FnOnce(&mut EngineOwner) + Send>| {
        let hub = hub.clone();
        tokio::spawn(async move { hub.call(work).await })
    };
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let slow = move |owner: &mut EngineOwner| {
        let work = move |_: &mut Store| waits.recv().expect("told to go on");
        owner.batch.effects.push(DeferredEffect::Store(Box::new(work)));
    };
    let mut asked = vec![ask_owner(Box::new(slow))];
    // Each of these fits into one commit; both together do not.
    for _ in 0..2 {
        until_taken(&hub).await;
        asked.push(ask_owner(Box::new(|owner| {
            let session_id = SessionId::parse("sess_unknown").expect("an id");
            let change = StoreChange::SessionEnded { session_id, unix_us: 0 };
            owner.batch.changes.extend(std::iter::repeat_n(change, MAX_CHANGES * 2 / 3));
        })));
    }
    until_taken(&hub).await;
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
            let mut critical = event("handoff.requested", "Help.");
            critical.remove("progress");
            critical.insert("reason".to_owned(), json!(format!("Help {number}.")));
            critical.insert("target_kind".to_owned(), json!("human"));
            owner.publish_all(&me, vec![EventDraft::new(&me, critical)], None)[0]
                .as_ref()
                .expect("taken");
        }
        let is_withdrawal = |it: &&DeferredEffect| {
            matches!(it, DeferredEffect::Wire(aaep_transport::wire::Command::Withdraw { .. }))
        };
        (owner.must_withdraw, owner.batch.effects.iter().filter(is_withdrawal).count())
    });
    assert_eq!(told.await, Ok((true, 0)), "when the turn ends");
    hub.stop().await;
}

/// Starts two sessions in a store.
async fn two_sessions(folder: &std::path::Path) {
    let hub = Hub::builder().store(folder).start().expect("a hub");
    let me = Principal::local();
    for session in ["sess_one", "sess_two"] {
        let mut started = event("session.started", "Tidying.");
        started["session_id"] = session.into();
        hub.publish(&me, vec![started], None).await.expect("answered");
    }
    hub.stop().await;
}

/// Damages a row of a session's events.
fn damage_events(folder: &std::path::Path, session: &str) {
    let (store, recovered) = Store::open(folder, Retention::default()).expect("a store");
    let is_it = |it: &&crate::store::StoredSession| it.session_id.as_str() == session;
    let number = recovered.sessions.iter().find(is_it).expect("there").number;
    let (_, changed) = store.shared.write(|transaction| {
        let mut events = transaction.open_table(EVENTS)?;
        let all = pair(number, 0)..=pair(number, u64::MAX);
        let (key, mut row) = {
            let (key, row) = events.range(all)?.next().expect("a row")?;
            (key.value(), row.value().to_vec())
        };
        row[100] ^= 1;
        events.insert(key, row.as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
}

#[tokio::test]
async fn events_that_cannot_be_read_are_set_aside_and_the_rest_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    two_sessions(folder.path()).await;
    damage_events(folder.path(), "sess_one");
    let hub = Hub::builder().store(folder.path()).start().expect("the hub serves");
    let notes = hub.notes();
    assert!(notes.len() == 1 && notes[0].contains("sess_one"), "{notes:?}");
    let me = Principal::local();
    let mut goes_on = event("progress.updated", "Half.");
    let refused = hub.publish(&me, vec![goes_on.clone()], None).await.expect("answered");
    assert!(refused[0].is_err(), "a session that lost something takes no more events");
    goes_on["session_id"] = "sess_two".into();
    hub.publish(&me, vec![goes_on], None).await.expect("answered")[0].as_ref().expect("taken");
    hub.stop().await;
    drop(hub);
    let (mut store, recovered) = Store::open(folder.path(), Retention::default()).expect("a store");
    let shown: Vec<_> = crate::audit::show(&store.reader()).map(|it| it.expect("shown")).collect();
    assert_eq!(shown[0].line.outcome, notes[0]);
    let kept = store.shared.read(|it| Ok(it.open_table(SET_ASIDE)?.len()?));
    assert_eq!(kept.expect("read"), 1, "the row is kept");
    assert!(recovered.replay(&store.reader()).all(|it| matches!(it, Ok(ReplayedEvent::Event(_)))));
    let session_id = SessionId::parse("sess_one").expect("an id");
    store.delete_session(&session_id, None, 9).expect("it can be deleted");
}

#[tokio::test]
async fn rows_that_cannot_be_understood_are_set_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    two_sessions(folder.path()).await;
    let (store, _) = Store::open(folder.path(), Retention::default()).expect("a store");
    let (_, changed) = store.shared.write(|transaction| {
        transaction.open_table(SESSIONS)?.insert("sess_one", b"?".as_slice())?;
        transaction.open_table(ASKS)?.insert("rpl_x", b"?".as_slice())?;
        transaction.open_table(SUBSCRIPTIONS)?.insert("sub_x", b"?".as_slice())?;
        transaction.open_table(SUBSCRIPTIONS)?.insert("sub_y", [0; 20].as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
    drop(store);
    let hub = Hub::builder().store(folder.path()).start().expect("the hub serves");
    assert_eq!(hub.notes().len(), 3, "{:?}", hub.notes());
    hub.stop().await;
    drop(hub);
    let (store, recovered) = Store::open(folder.path(), Retention::default()).expect("a store");
    assert!(recovered.damaged.is_empty() && recovered.subscriptions.is_empty());
    assert_eq!(recovered.sessions.len(), 1);
    let kept = store.shared.read(|it| Ok(it.open_table(SET_ASIDE)?.len()?));
    assert_eq!(kept.expect("read"), 3);
}

/// All local agents are one principal; those that are present do not keep the sessions of absent ones open.
#[tokio::test]
async fn a_silent_session_ends_although_another_agent_of_the_same_principal_is_there() {
    let began = Instant::now();
    let limits = Limits { silent_session_ms: 1, ..Limits::default() };
    let hub = Hub::builder().guard(Guard::new(limits)).start().expect("a hub");
    let me = Principal::local();
    hub.declare(&me, "builder", vec![aaep::extension::Accepts::Cancel]).await.expect("declared");
    for (session, agent) in [("sess_one", "builder"), ("sess_two", "gone")] {
        let mut started = event("session.started", "Tidying.");
        started["session_id"] = session.into();
        started["producer"]["agent_id"] = agent.into();
        hub.publish(&me, vec![started], None).await.expect("answered")[0].as_ref().expect("taken");
    }
    let mut running = vec![String::new(); 2];
    while running.len() == 2 {
        // The clock of the hub has to go on by more than the limit, which is a millisecond.
        tokio::task::yield_now().await;
        let looked = hub.call(|owner| {
            owner.end_silent_sessions();
            let running = owner.engine.running_sessions();
            running.map(|(id, _)| id.to_string()).collect::<Vec<_>>()
        });
        running = looked.await.expect("answered");
        assert!(began.elapsed() < PATIENCE, "the silent session never ends");
    }
    assert_eq!(running, ["sess_one"]);
    let session_id = SessionId::parse("sess_two").expect("an id");
    let events = hub.session_events(&me, &session_id, 0, 9).await.expect("read").expect("there");
    let last = String::from_utf8(events.last().expect("an end").json.to_vec()).expect("UTF-8");
    assert!(last.contains("Ended without a word"), "{last}");
    hub.stop().await;
}
