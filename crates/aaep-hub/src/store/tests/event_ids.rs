//! Finding an event by its id takes as long in a long session as in a short one.

use redb::{ReadableTableMetadata as _, TableHandle as _};

use super::*;
use crate::store::table::{EVENT_ID_RUNS, EVENTS, META, OLD_EVENT_IDS, SESSIONS, pair};

#[test]
fn a_repeated_event_is_found_by_reading_one_chunk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    for order in 0..100 {
        store.commit(&[event(order, "a")]).expect("stored");
    }
    // Reading any other chunk would meet damage.
    let session_a = store.reader().session(&session("a")).expect("read").expect("there");
    let (_, damaged) = store.shared.write(|transaction| {
        let mut chunks = transaction.open_table(EVENTS)?;
        for order in (0..100).filter(|order| *order != 3) {
            chunks.insert(pair(session_a.number, order), b"damaged".as_slice())?;
        }
        Ok(redb::Durability::Immediate)
    });
    damaged.expect("written");
    let reader = store.reader();
    let found = reader.event(&session("a"), &event_id(3)).expect("read");
    assert_eq!(found, Some(stored(3, "a")));
    assert_eq!(reader.event(&session("a"), &event_id(100)).expect("read"), None);
}

#[test]
fn the_index_goes_with_its_session() {
    let mut store = Store::in_memory();
    store.commit(&[event(0, "a"), event(1, "a"), event(2, "b")]).expect("stored");
    store.commit(&[ended("a", moment(3))]).expect("stored");
    store.delete_session(&session("a"), None, moment(4)).expect("deleted");
    let rows = store.shared.read(|it| Ok(it.open_table(EVENT_ID_RUNS)?.len()?)).expect("read");
    assert_eq!(rows, 0);
    let found = store.reader().event(&session("b"), &event_id(2)).expect("read");
    assert_eq!(found, Some(stored(2, "b")));
}

#[test]
fn a_store_with_another_index_gets_this_one_when_it_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(0, "a"), event(1, "b"), event(2, "a")]).expect("stored");
    for order in 3..40 {
        store.commit(&[event(order, "a")]).expect("stored");
    }
    let (_, changed) = store.shared.write(|transaction| {
        transaction.delete_table(EVENT_ID_RUNS)?;
        // Format 4 had a row for each event.
        transaction.open_table(OLD_EVENT_IDS)?.insert([7; 24], 0)?;
        let mut meta = transaction.open_table(META)?;
        meta.insert("format", 4_u32.to_le_bytes().as_slice())?;
        // A row that cannot be read does not affect the others.
        transaction.open_table(SESSIONS)?.insert("sess_broken", b"x".as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
    drop(store);
    let (store, _) = open(folder.path());
    let find = |name, order| store.reader().event(&session(name), &event_id(order)).expect("read");
    for (name, order) in [("a", 0), ("b", 1)].into_iter().chain((2..40).map(|order| ("a", order))) {
        assert_eq!(find(name, order), Some(stored(order, name)));
    }
    let tables =
        store.shared.read(|it| Ok(it.list_tables()?.map(|it| it.name().to_owned()).collect()));
    let tables: Vec<String> = tables.expect("read");
    assert!(!tables.iter().any(|name| name == OLD_EVENT_IDS.name()), "{tables:?}");
    let rows = store.shared.read(|it| Ok(it.open_table(EVENT_ID_RUNS)?.len()?)).expect("read");
    assert_eq!(rows, 3, "two runs, and how far they reach");
}

#[test]
fn every_event_of_a_long_session_is_found_in_few_rows() {
    let mut store = Store::in_memory();
    let mut next = 0;
    // One at a time, and in groups of many lengths, up to more than a long run.
    for length in (0..300).map(|_| 1).chain((1..40).map(|it| it * 7)).chain([5_000, 1, 20, 4_096]) {
        let events: Vec<StoreChange> =
            (next..next + length).map(|order| event(order, "a")).collect();
        store.commit(&events).expect("stored");
        next += length;
    }
    store.commit(&[event(next, "b")]).expect("stored");
    let rows = store.shared.read(|it| Ok(it.open_table(EVENT_ID_RUNS)?.len()?)).expect("read");
    assert!(rows < next / 30, "{rows} rows for {next} events");
    let reader = store.reader();
    for order in (0..next).step_by(37).chain([next - 1]) {
        let found = reader.event(&session("a"), &event_id(order)).expect("read");
        assert_eq!(found.map(|it| it.order), Some(order));
    }
    assert_eq!(reader.event(&session("a"), &event_id(next)).expect("read"), None, "of another");
    store.commit(&[ended("a", moment(3))]).expect("stored");
    store.delete_session(&session("a"), None, moment(4)).expect("deleted");
    let rows = store.shared.read(|it| Ok(it.open_table(EVENT_ID_RUNS)?.len()?)).expect("read");
    assert_eq!(rows, 0);
}

#[test]
fn a_restored_store_has_the_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(&folder.path().join("first"));
    store.commit(&[event(0, "a"), event(1, "a")]).expect("stored");
    let path = folder.path().join("stream");
    let file = std::fs::File::create(&path).expect("a file");
    store.write_backup(&file).expect("written");
    let second = folder.path().join("second");
    let mut from = std::fs::File::open(&path).expect("the file");
    crate::store::restore(&mut from, &second).expect("restored");
    let (store, _) = open(&second);
    let found = store.reader().event(&session("a"), &event_id(0)).expect("read");
    assert_eq!(found, Some(stored(0, "a")));
}
