//! Deletes data beyond the retention, and data that people want deleted.

use aaep_engine::Now;

use super::*;
use crate::audit::{Details, show, verify};
use crate::store::{DeleteError, MAX_SWEPT_SESSIONS, OpenOptions};

const SECOND_US: i64 = 1_000_000;

/// This many seconds after the hub began, on both clocks.
fn at(seconds: u64) -> Now {
    Now { monotonic_us: seconds * 1_000_000, unix_us: moment(seconds) }
}

fn open_keeping(folder: &Path, max_age_seconds: u64, max_bytes: u64) -> Store {
    let retention = Retention { max_age_seconds, max_bytes };
    let options = OpenOptions { retention, repairs: false };
    Store::open_with(folder, options).expect("the store opens").0
}

#[test]
fn old_ended_sessions_go_and_running_ones_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 10, u64::MAX);
    store.sweep(at(0)).expect("swept");
    store
        .commit(&[event(0, "old"), event(1, "running"), event(2, "young"), ended("old", 0)])
        .expect("stored");
    store.sweep(at(5)).expect("swept");
    store.commit(&[ended("young", 5 * SECOND_US)]).expect("stored");
    let swept = store.sweep(at(11)).expect("swept");
    assert_eq!((swept.sessions, swept.events, swept.is_done), (1, 1, true));
    let left: Vec<_> = store.reader().sessions(0, 9).expect("read");
    assert_eq!(
        left.iter().map(|it| it.session_id.clone()).collect::<Vec<_>>(),
        [session("running"), session("young")]
    );
    assert_eq!(store.reader().events(&session("old"), 0, 9).expect("read"), []);
    assert_eq!(store.sweep(at(11)).expect("swept").sessions, 0);
    assert_eq!(store.audit().last_seq, 1, "the log says once what the retention deleted");
}

#[test]
fn one_start_with_the_clock_forty_days_ahead_deletes_nothing() {
    const DAY_US: i64 = 24 * 3600 * SECOND_US;
    let folder = tempfile::tempdir().expect("a folder");
    let keep = || open_keeping(folder.path(), 30 * 24 * 3600, u64::MAX);
    let mut store = keep();
    store.sweep(at(0)).expect("swept");
    let answered = StoreChange::Answered {
        principal: PrincipalNumber(1),
        idempotency_key: "key".to_owned(),
        unix_us: moment(0),
        answer: b"1".as_slice().into(),
    };
    let words = entry("none", Some("words"));
    store.commit(&[event(0, "a"), ended("a", moment(1)), answered, words]).expect("stored");
    store.sweep(at(60)).expect("swept");
    drop(store);
    let mut store = keep();
    for seconds in 0..3600 {
        let now = at(seconds);
        let unix_us = now.unix_us + 40 * DAY_US;
        assert_eq!(store.sweep(Now { unix_us, ..now }).expect("swept").sessions, 0);
    }
    drop(store);
    // The date is right again.
    let mut store = keep();
    assert_eq!(store.sweep(at(3700)).expect("swept").sessions, 0);
    let reader = store.reader();
    assert!(reader.session(&session("a")).expect("read").is_some());
    assert!(reader.answer(PrincipalNumber(1), "key").expect("read").is_some());
    assert_eq!(reader.details(1).expect("read").as_deref(), Some("words"));
}

#[test]
fn a_session_that_ended_under_a_wrong_date_is_kept_as_long_as_any() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 1000, u64::MAX);
    let early = Now { monotonic_us: 0, unix_us: 0 };
    store.sweep(early).expect("swept");
    store.commit(&[event(0, "a"), ended("a", 1)]).expect("stored");
    // The clock is set from 1970 to today, and then runs steadily for a long time.
    for seconds in 0..900 {
        assert_eq!(store.sweep(at(seconds)).expect("swept").sessions, 0, "{seconds}");
    }
}

#[test]
fn a_long_stop_counts_once_the_clock_held_still_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 1000, u64::MAX);
    store.sweep(at(0)).expect("swept");
    store.commit(&[event(0, "a"), ended("a", moment(1))]).expect("stored");
    drop(store);
    let mut store = open_keeping(folder.path(), 1000, u64::MAX);
    let mut deleted_after = None;
    for seconds in 0..400 {
        let now = Now { monotonic_us: seconds * 1_000_000, unix_us: moment(seconds + 9600) };
        if store.sweep(now).expect("swept").sessions == 1 {
            deleted_after.get_or_insert(seconds);
        }
    }
    assert_eq!(deleted_after, Some(200), "a forty-eighth of the stop");
}

#[test]
fn too_many_bytes_take_the_oldest_ended_first_and_never_a_running_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 1_000_000_000, 0);
    store
        .commit(&[
            event(0, "first"),
            event(1, "running"),
            event(2, "second"),
            ended("second", 2),
            ended("first", 1),
        ])
        .expect("stored");
    let one = store.reader().session(&session("first")).expect("read").expect("there").bytes;
    drop(store);
    let mut store = open_keeping(folder.path(), 1_000_000_000, 2 * one);
    assert_eq!(store.sweep(at(3)).expect("swept").sessions, 1);
    assert!(store.reader().session(&session("second")).expect("read").is_some());
    drop(store);
    let mut store = open_keeping(folder.path(), 1_000_000_000, 0);
    assert_eq!(store.sweep(at(3)).expect("swept").sessions, 1);
    let left = store.reader().sessions(0, 9).expect("read");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].session_id, session("running"));
}

#[test]
fn a_sweep_does_a_bounded_piece_of_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 0, u64::MAX);
    let count = MAX_SWEPT_SESSIONS as u64 + 3;
    let events: Vec<_> = (0..count).map(|order| event(order, &order.to_string())).collect();
    let ends: Vec<_> = (0..count).map(|order| ended(&order.to_string(), 1)).collect();
    store.commit(&events).expect("stored");
    store.sweep(at(0)).expect("swept");
    store.commit(&ends).expect("stored");
    let swept = store.sweep(at(10)).expect("swept");
    assert_eq!((swept.sessions, swept.is_done), (MAX_SWEPT_SESSIONS as u64, false));
    let swept = store.sweep(at(10)).expect("swept");
    assert_eq!((swept.sessions, swept.is_done), (3, true));
}

#[test]
fn old_answers_and_words_without_a_session_go_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 10, u64::MAX);
    let answered = |key: &str, unix_us| StoreChange::Answered {
        principal: PrincipalNumber(1),
        idempotency_key: key.to_owned(),
        unix_us,
        answer: b"1".as_slice().into(),
    };
    let now = moment(12);
    store
        .commit(&[answered("old", 0), answered("new", now), entry("none", Some("words"))])
        .expect("stored");
    assert_eq!(store.reader().details(1).expect("read").as_deref(), Some("words"));
    store.sweep(Now { monotonic_us: 0, unix_us: now }).expect("swept");
    assert_eq!(store.reader().details(1).expect("read"), None);
    assert_eq!(store.reader().answer(PrincipalNumber(1), "old").expect("read"), None);
    assert!(store.reader().answer(PrincipalNumber(1), "new").expect("read").is_some());
}

#[test]
fn a_deleted_session_leaves_no_words_and_the_chain_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let opened = StoreChange::AskOpened {
        reply_token: token("one"),
        session_id: session("a"),
        time: time(Some(9), None),
    };
    let settled = StoreChange::AskSettled {
        reply_token: token("one"),
        unix_us: 3,
        resolution: b"\"my secret\"".as_slice().into(),
    };
    store.commit(&[event(0, "a"), event(1, "b"), opened]).expect("stored");
    store
        .commit(&[entry("a", Some("delete my secret?")), entry("b", Some("kept"))])
        .expect("stored");
    let refused = store.delete_session(&session("a"), None, 4);
    assert_eq!(refused, Err(DeleteError::StillRunning));
    store.commit(&[ended("a", 2)]).expect("stored");
    let refused = store.delete_session(&session("a"), None, 4);
    assert_eq!(refused, Err(DeleteError::StillRunning), "a question is open");
    store.commit(&[settled]).expect("stored");
    let deleted = store.delete_session(&session("a"), Some("Ada"), 4).expect("deleted");
    assert_eq!(deleted.events, 1);
    let again = store.delete_session(&session("a"), None, 5);
    assert_eq!(again, Err(DeleteError::NoSuchSession));
    drop(store);
    let (store, recovered) = open(folder.path());
    assert_eq!(orders(&store, &recovered), [1]);
    assert_eq!(recovered.used_tokens().collect::<Vec<_>>(), [&token("one")]);
    assert_eq!(recovered.settled_asks[0].resolution, None);
    let path = folder.path().join("audit.jsonl");
    assert_eq!(verify(&path).expect("the chain holds").entries, 3);
    let shown: Vec<_> = show(&store.reader()).map(|it| it.expect("shown")).collect();
    let details: Vec<_> = shown.iter().map(|it| it.details.clone()).collect();
    assert_eq!(details, [Details::Deleted, Details::Words("kept".to_owned()), Details::None]);
    assert_eq!(shown[2].line.kind, "session_deleted");
    assert_eq!(shown[2].line.who.as_deref(), Some("Ada"));
    assert_eq!(shown[2].line.session_id.as_deref(), Some("sess_a"));
}

#[test]
fn a_session_that_comes_again_after_its_deletion_is_a_new_one() {
    let mut store = Store::in_memory();
    store.commit(&[event(0, "a"), ended("a", 1)]).expect("stored");
    store.delete_session(&session("a"), None, 2).expect("deleted");
    store.commit(&[event(1, "a")]).expect("stored");
    let found = store.reader().session(&session("a")).expect("read").expect("there");
    assert_eq!((found.events, found.ended_unix_us), (1, None));
}

/// An event of this many bytes, in a session of this principal.
fn event_of(principal: u64, order: u64, name: &str, bytes: usize) -> StoreChange {
    let StoreChange::Event { session_id, event_id, .. } = event(order, name) else {
        panic!("an event")
    };
    StoreChange::Event {
        order,
        session_id,
        event_id,
        agent: 7,
        principal: PrincipalNumber(principal),
        by_hub: false,
        unix_us: moment(order),
        json: vec![b' '; bytes].into(),
    }
}

#[test]
fn the_principal_with_the_most_loses_its_oldest_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 1_000_000_000, 20_000);
    let mut changes = vec![event_of(1, 0, "ofAda", 1000), ended("ofAda", 1)];
    for order in 1..10 {
        let name = format!("hog{order}");
        changes.push(event_of(2, order, &name, 5000));
        changes.push(ended(&name, 1 + i64::try_from(order).expect("small")));
    }
    store.commit(&changes).expect("stored");
    store.sweep(at(20)).expect("swept");
    let is_there = |name: &str| store.reader().session(&session(name)).expect("read").is_some();
    assert!(is_there("ofAda"), "the oldest of all is of someone who has little");
    assert!(!is_there("hog1") && is_there("hog9"));
}

#[test]
fn nobody_loses_what_has_ended_because_of_what_another_has_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open_keeping(folder.path(), 1_000_000_000, 20_000);
    let ada = [event_of(1, 0, "ofAda", 1000), ended("ofAda", 1)];
    store.commit(&ada).expect("stored");
    store.commit(&[event_of(2, 1, "hog", 100_000)]).expect("stored");
    let swept = store.sweep(at(20)).expect("swept");
    assert_eq!((swept.sessions, swept.is_done), (0, true));
    assert!(store.reader().session(&session("ofAda")).expect("read").is_some());
}
