//! Files that cannot be read are kept under other names, what can be read is served, and nothing of that is silent.

use std::fs;

use super::*;
use crate::audit::{BrokenReason, show, verify};
use crate::store::{OpenOptions, StoredName};

const DATABASE: &str = "store.redb";

/// The size of a page of redb.
const PAGE_BYTES: usize = 4096;

fn repaired(folder: &Path) -> (Store, RecoveredStore) {
    let options = OpenOptions { repairs: true, ..OpenOptions::default() };
    Store::open_with(folder, options).expect("it opens whatever is damaged")
}

/// What a kill leaves of an open store.
fn killed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in ["store.redb", "store.journal", "audit.jsonl"] {
        fs::copy(folder.join(file), copy.path().join(file)).expect("copied");
    }
    copy
}

/// The events of a replay, and whether all that is stored can be read.
fn replayed(store: &Store, recovered: &RecoveredStore) -> Vec<StoredEvent> {
    let mut found = Vec::new();
    for event in recovered.replay(&store.reader()) {
        match event.expect("readable") {
            ReplayedEvent::Event(event) => found.push(event),
            ReplayedEvent::Damaged(_) => return found,
        }
    }
    found
}

fn principal(key: u64) -> StoreChange {
    StoreChange::Principal { key, name: format!("token {key}") }
}

/// Every page of the database, one after the other, is overwritten. Whatever that hits, the store opens, gives no
/// other history, and takes commits; or it is told that something was lost.
#[test]
fn damage_anywhere_is_kept_and_told_and_the_rest_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let stored_events: Vec<_> = (0..30).map(|order| stored(order, "a")).collect();
    store.commit(&[principal(8)]).expect("stored");
    for order in 0..30 {
        store.commit(&[event(order, "a"), entry("a", Some("words"))]).expect("stored");
    }
    drop(store);
    let whole = fs::read(folder.path().join(DATABASE)).expect("bytes");
    let is_used = |at: &usize| whole[*at..].iter().take(PAGE_BYTES).any(|byte| *byte != 0);
    let used: Vec<usize> = (0..whole.len()).step_by(PAGE_BYTES).filter(is_used).collect();
    let (mut salvaged, mut rescued) = (0, 0);
    for at in used {
        let copy = killed(folder.path());
        let mut damaged = whole.clone();
        let end = (at + PAGE_BYTES).min(damaged.len());
        damaged[at..end].fill(0xa5);
        fs::write(copy.path().join(DATABASE), &damaged).expect("written");
        let (mut store, recovered) = repaired(copy.path());
        let found = replayed(&store, &recovered);
        assert!(stored_events.starts_with(&found), "damage at {at}");
        assert!(!copy.path().join("audit-broken-1.jsonl").exists(), "damage at {at}");
        if let Ok(kept) = fs::read(copy.path().join("store-damaged-1.redb")) {
            // redb marks a file as open before it reads which pages are free.
            let is_same = kept
                .iter()
                .zip(&damaged)
                .enumerate()
                .all(|(at, (one, other))| one == other || at == 9);
            assert!(kept.len() == damaged.len() && is_same, "kept as it was, damage at {at}");
            assert!(recovered.is_incomplete, "damage at {at}");
            let [note] = recovered.notes.as_slice() else { panic!("{:?}", recovered.notes) };
            assert!(note.contains("store-damaged-1.redb"), "{note}");
            salvaged += 1;
            rescued += usize::from(found.len() == stored_events.len());
        } else if found.len() < stored_events.len() {
            // Only a hub reads the events, and then it has the store rebuilt.
            drop(store);
            let (again, recovered) =
                Store::rebuild(copy.path(), OpenOptions::default(), "a page").expect("rebuilt");
            assert!(recovered.is_incomplete && recovered.notes.len() == 1, "damage at {at}");
            assert!(stored_events.starts_with(&replayed(&again, &recovered)), "damage at {at}");
            store = again;
        }
        store.commit(&[event(1 << 40, "b"), entry("b", None)]).expect("it goes on");
        drop(store);
        let (_, recovered) = open(copy.path());
        assert_eq!((recovered.notes, recovered.is_incomplete), (Vec::new(), false), "{at}");
        verify(&copy.path().join("audit.jsonl")).expect("the chain holds");
    }
    assert!(salvaged > 5 && rescued > 0, "{salvaged} {rescued}");
}

#[test]
fn of_a_file_that_is_no_database_the_journal_and_the_audit_log_are_taken_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let asked = StoreChange::AskOpened {
        reply_token: token("one"),
        session_id: session("a"),
        time: time(Some(900), None),
    };
    store
        .commit(&[principal(3), event(0, "a"), asked, entry("a", Some("may I?"))])
        .expect("stored");
    store.checkpoint().expect("written");
    store.commit(&[event(1, "a"), event(2, "b"), principal(8), entry("b", None)]).expect("stored");
    let whole = fs::read(folder.path().join(DATABASE)).expect("bytes");
    for damaged in [vec![0xff; 100_000], b"x".to_vec(), whole[..whole.len() / 2].to_vec()] {
        let copy = killed(folder.path());
        fs::write(copy.path().join(DATABASE), &damaged).expect("written");
        let (mut store, recovered) = repaired(copy.path());
        assert!(recovered.is_incomplete, "open questions end without consent");
        let note = &recovered.notes[0];
        assert!(note.contains("store-damaged-1.redb") && note.contains("2 sessions"), "{note}");
        let orders: Vec<_> = replayed(&store, &recovered).iter().map(|it| it.order).collect();
        assert_eq!(orders, [1, 2], "what the journal has");
        assert!(recovered.sessions.iter().all(|it| it.ended_unix_us.is_some()), "none goes on");
        assert!(recovered.next_order > 2);
        let next = recovered.principals.iter().map(|it| it.0).max().expect("one");
        assert!(next > 8, "no number of a principal is given again");
        let kinds: Vec<_> = show(&store.reader()).map(|it| it.expect("whole").line.kind).collect();
        assert_eq!(kinds, ["asked", "asked", "start_repaired"], "one chain");
        store.commit(&[event(recovered.next_order, "c")]).expect("it goes on");
        drop(store);
        assert!(open(copy.path()).1.notes.is_empty(), "it is told once");
        let kept = fs::read(copy.path().join("store-damaged-1.redb")).expect("kept");
        // redb writes to a file that looks like its own before it finds the damage.
        assert!(kept == damaged || damaged.starts_with(b"redb"), "it is kept as it was");
        assert!(copy.path().join("store-damaged-1.journal").is_file());
    }
}

#[test]
fn a_store_whose_database_is_gone_keeps_its_audit_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(0, "a"), entry("a", None)]).expect("stored");
    drop(store);
    fs::remove_file(folder.path().join(DATABASE)).expect("removed");
    let log = fs::read(folder.path().join("audit.jsonl")).expect("bytes");
    let (_store, recovered) = repaired(folder.path());
    assert!(recovered.notes[0].contains("audit-broken-1.jsonl"), "{:?}", recovered.notes);
    let kept = fs::read(folder.path().join("audit-broken-1.jsonl")).expect("kept");
    assert_eq!(kept, log);
}

#[test]
fn a_journal_that_cannot_be_read_is_kept_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(0, "a")]).expect("stored");
    store.checkpoint().expect("written");
    store.commit(&[event(1, "a")]).expect("stored");
    let copy = killed(folder.path());
    let journal = copy.path().join("store.journal");
    fs::remove_file(&journal).expect("removed");
    fs::create_dir(&journal).expect("something in the way");
    let (store, recovered) = open(copy.path());
    assert!(recovered.is_incomplete);
    assert!(recovered.notes[0].contains("journal-damaged-1"), "{:?}", recovered.notes);
    assert!(copy.path().join("journal-damaged-1").is_dir(), "it is kept");
    assert_eq!(replayed(&store, &recovered).len(), 1);
    drop(store);
    assert!(open(copy.path()).1.notes.is_empty());
}

#[test]
fn an_audit_log_that_cannot_be_read_is_kept_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[entry("a", None)]).expect("stored");
    drop(store);
    let path = folder.path().join("audit.jsonl");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("something in the way");
    let error = open_error(folder.path());
    assert!(
        matches!(&error, OpenError::AuditBroken { broken, .. } if matches!(broken.why, BrokenReason::Unreadable(_))),
        "{error}"
    );
    let (mut store, recovered) = repaired(folder.path());
    assert!(recovered.notes[0].contains("audit-broken-1.jsonl"), "{:?}", recovered.notes);
    store.commit(&[entry("a", None)]).expect("stored");
    drop(store);
    assert!(folder.path().join("audit-broken-1.jsonl").is_dir(), "it is kept");
    let verified = verify(&path).expect("the new chain holds");
    assert!(verified.replaced.is_some_and(|why| why.contains("cannot be read")));
}

#[test]
fn names_survive_damage_as_far_as_events_say_who_spoke() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let name = StoredName {
        agent_id: "photos".to_owned(),
        principal: 8,
        used_unix_us: 5,
        taken_from: None,
    };
    store.commit(&[principal(8), StoreChange::NameHeld(name.clone())]).expect("stored");
    let copy = killed(folder.path());
    fs::write(copy.path().join(DATABASE), vec![0xff; 5000]).expect("written");
    let (_store, recovered) = repaired(copy.path());
    assert_eq!(recovered.held_names, [name], "the journal has it");
}
