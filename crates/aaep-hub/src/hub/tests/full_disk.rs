//! A full disk while the hub runs: sessions can be ended and deleted, which makes room.

use aaep::SessionId;

use super::*;
use crate::store::Store;
use crate::store::tests::full::open_small_with_spare_room;

#[tokio::test]
async fn a_running_session_can_be_ended_and_deleted_and_then_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, recovered, disk) = open_small_with_spare_room(folder.path());
    let hub = Hub::builder().start_on(store, recovered).expect("a hub");
    let me = Principal::local();
    let started = vec![event("session.started", "Tidying.")];
    hub.publish(&me, started, None).await.expect("answered")[0].as_ref().expect("taken");
    let file = folder.path().join("store.redb");
    let length = file.metadata().expect("a file").len();
    disk.room_bytes.store(length + 2_000_000, Ordering::SeqCst);
    let waiting = fill(&hub, "sess_one").await;

    let session_id = SessionId::parse("sess_one").expect("an id");
    let ended = hub.end_session(&me, &session_id).await;
    assert_eq!(ended, Ok(Some(true)));
    let deleted = hub.delete_session(&me, &session_id).await.expect("answered");
    assert!(deleted.expect("deleted").events > 0);
    // There is room: the waiting request is answered, and nothing of the session comes back.
    in_time(waiting).await.expect("no panic").expect("answered")[0].as_ref().expect("taken");
    until(|| hub.trouble().is_none()).await;
    let mut again = event("session.started", "Tidying again.");
    again["session_id"] = "sess_two".into();
    let again = hub.publish(&me, vec![again], None).await.expect("answered");
    again[0].as_ref().expect("taken");
    let left = hub.sessions(&me, None, 9).await.expect("read").sessions;
    let left: Vec<_> = left.iter().map(|it| it.session_id.as_str()).collect();
    assert_eq!(left, ["sess_two"]);
    hub.stop().await;
}

#[tokio::test]
async fn a_deletion_that_was_asked_for_just_before_there_was_room_is_done() {
    let hub = Hub::builder().start().expect("a hub");
    let (done, is_done) = tokio::sync::oneshot::channel();
    let late = move |owner: &mut EngineOwner| {
        // The owner saw a full disk, but the keeper has found room since.
        let delete = move |_: &mut Store| {
            done.send(()).expect("someone waits");
            None
        };
        owner.delete.try_send(Box::new(delete)).map_err(drop).expect("there is room for it");
    };
    hub.call(late).await.expect("answered");
    tokio::time::timeout(Duration::from_secs(20), is_done).await.expect("in time").expect("done");
    hub.stop().await;
}

#[tokio::test]
async fn beyond_those_that_wait_a_deletion_is_refused_and_changes_nothing() {
    let hub = Hub::builder().start().expect("a hub");
    let me = Principal::local();
    let mut done = event("session.completed", "Done.");
    done.remove("progress");
    for event in [event("session.started", "Tidying."), done] {
        let events = vec![event];
        hub.publish(&me, events, None).await.expect("answered")[0].as_ref().expect("taken");
    }
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let slow = move |owner: &mut EngineOwner| {
        let work = move |_: &mut Store| {
            begun.send(()).expect("someone waits");
            waits.recv().expect("told to go on");
        };
        owner.batch.effects.push(DeferredEffect::Store(Box::new(work)));
    };
    hub.look_up(slow).await.expect("done");
    // The keeper takes nothing more from here on, so that the queue gets full.
    tokio::time::timeout(Duration::from_secs(20), has_begun)
        .await
        .expect("in time")
        .expect("begun");
    let fail = |owner: &mut EngineOwner| owner.status.note_failure("There is no room.", false);
    hub.look_up(fail).await.expect("done");
    let fill = |owner: &mut EngineOwner| {
        while owner.delete.try_send(Box::new(|_: &mut Store| None)).is_ok() {}
    };
    hub.look_up(fill).await.expect("done");
    let session_id = SessionId::parse("sess_one").expect("an id");
    let refused = hub.delete_session(&me, &session_id).await.expect_err("too many wait");
    assert!(
        matches!(&refused, HubError::NotTaken { why } if why.contains("Try again")),
        "{refused}"
    );
    let is_known = move |owner: &mut EngineOwner| {
        owner.engine.principal_of(&SessionId::parse("sess_one").expect("an id")).is_some()
    };
    assert!(hub.look_up(is_known).await.expect("answered"), "the session is still there");
    go.send(()).expect("the keeper waits");
    hub.look_up(|owner: &mut EngineOwner| owner.status.clear_failure()).await.expect("done");
    hub.delete_session(&me, &session_id).await.expect("answered").expect("deleted");
    hub.stop().await;
}
