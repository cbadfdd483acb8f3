//! The journal: what was acknowledged is there after a crash, whatever the database has written by then.

use std::fs;

use super::*;
use crate::audit::verify;
use crate::store::OpenOptions;

/// What a crash would leave of an open store.
fn crashed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        fs::copy(&path, copy.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    copy
}

fn journal(folder: &Path) -> std::path::PathBuf {
    folder.join("store.journal")
}

/// A store with so many commits that only its journal has on the disk, and how long the journal is after each.
fn journaled(folder: &Path, commits: u64) -> (Store, Vec<u64>) {
    let (mut store, _) = open(folder);
    let mut ends = Vec::new();
    for order in 0..commits {
        store.commit(&[event(order, "a"), entry("a", Some("delete it?"))]).expect("stored");
        ends.push(store.journal.as_ref().expect("a journal").end());
    }
    (store, ends)
}

#[test]
fn a_crash_takes_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let asked = Change::AskOpened {
        reply_token: token("one"),
        session_id: session("a"),
        time: time(Some(900), None),
    };
    store.commit(&[event(0, "a"), asked, entry("a", Some("delete it?"))]).expect("stored");
    for order in 1..50 {
        store.commit(&[event(order, "a")]).expect("stored");
    }
    let copy = crashed(folder.path());
    let (after, recovered) = open(copy.path());
    assert_eq!(orders(&recovered), (0..50).collect::<Vec<_>>());
    assert_eq!(recovered.open_asks.len(), 1);
    assert_eq!(recovered.next_order, 50);
    assert_eq!(after.audit(), store.audit());
    assert_eq!(after.reader().details(1), Ok(Some("delete it?".to_owned())));
    assert_eq!(verify(&copy.path().join("audit.jsonl")).expect("the chain holds").entries, 1);
    drop(after);
    // It is the journal that had it.
    let copy = crashed(folder.path());
    fs::remove_file(journal(copy.path())).expect("removed");
    assert!(matches!(open_error(copy.path()), OpenError::AuditBroken { .. }));
}

#[test]
fn the_journal_of_a_store_that_was_moved_away_is_not_taken_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_store, _) = journaled(folder.path(), 3);
    let copy = crashed(folder.path());
    for gone in ["store.redb", "audit.jsonl"] {
        fs::remove_file(copy.path().join(gone)).expect("moved away");
    }
    let (mut store, recovered) = open(copy.path());
    assert_eq!(orders(&recovered), Vec::<u64>::new());
    store.commit(&[event(0, "b")]).expect("stored");
    assert_eq!(orders(&open(crashed(copy.path()).path()).1), [0]);
}

#[test]
fn it_goes_on_after_one_crash_and_another() {
    let mut folder = tempfile::tempdir().expect("a folder");
    for round in 0..5 {
        let (mut store, recovered) = open(folder.path());
        assert_eq!(orders(&recovered), (0..round * 3).collect::<Vec<_>>());
        for order in round * 3..round * 3 + 3 {
            store.commit(&[event(order, "a"), entry("a", None)]).expect("stored");
        }
        folder = crashed(folder.path());
    }
    let verified = verify(&folder.path().join("audit.jsonl")).expect("the chain holds");
    assert_eq!(verified.entries, 15);
}

#[test]
fn what_a_crash_cut_off_at_the_end_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_store, ends) = journaled(folder.path(), 4);
    let (before, end) = (ends[2], ends[3]);
    for kept in [before, before + 1, before + 31, before + 32, end - 1] {
        let copy = crashed(folder.path());
        let mut bytes = fs::read(journal(copy.path())).expect("bytes");
        bytes[usize::try_from(kept).expect("small")..].fill(0);
        fs::write(journal(copy.path()), bytes).expect("written");
        // The line was not in the audit file yet either.
        let audit = fs::read_to_string(copy.path().join("audit.jsonl")).expect("lines");
        let three: String = audit.lines().take(3).flat_map(|line| [line, "\n"]).collect();
        fs::write(copy.path().join("audit.jsonl"), three).expect("written");
        let (mut store, recovered) = open(copy.path());
        assert_eq!(orders(&recovered), [0, 1, 2], "{kept} bytes");
        store.commit(&[event(3, "a"), entry("a", None)]).expect("it goes on");
        assert_eq!(orders(&open(crashed(copy.path()).path()).1), [0, 1, 2, 3]);
    }
}

#[test]
fn damage_before_what_is_whole_is_refused_and_nothing_is_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_store, ends) = journaled(folder.path(), 4);
    for at in [0, 9, 17, 25, 40, usize::try_from(ends[1]).expect("small") + 40] {
        let copy = crashed(folder.path());
        let mut bytes = fs::read(journal(copy.path())).expect("bytes");
        bytes[at] ^= 1;
        fs::write(journal(copy.path()), &bytes).expect("written");
        let error = open_error(copy.path());
        assert!(matches!(error, OpenError::Corrupt { .. }), "{at}: {error}");
        assert!(error.to_string().contains("journal"), "{error}");
        assert_eq!(fs::read(journal(copy.path())).expect("bytes"), bytes);
    }
}

#[test]
fn a_database_from_before_and_a_journal_from_later_are_refused_together() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(journaled(folder.path(), 2));
    let backup = fs::read(folder.path().join("store.redb")).expect("bytes");
    let (mut store, _) = open(folder.path());
    store.checkpoint().expect("written");
    store.commit(&[event(2, "a")]).expect("stored");
    store.checkpoint().expect("written");
    store.commit(&[event(3, "a")]).expect("stored");
    let copy = crashed(folder.path());
    fs::write(copy.path().join("store.redb"), backup).expect("written");
    let error = open_error(copy.path());
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn a_full_journal_is_written_into_the_database_and_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let mut end = 0;
    let mut turns = 0;
    for order in 0..130 {
        store.commit(&[super::full::large_event(order)]).expect("stored");
        let now = store.journal.as_ref().expect("a journal").end();
        assert!(now <= 4 << 20, "{now} bytes");
        turns += u64::from(now < end);
        end = now;
        if now == 0 || order % 40 == 0 {
            assert_eq!(open(crashed(folder.path()).path()).1.next_order, order + 1);
        }
    }
    assert_eq!(turns, 3);
}

#[cfg(target_os = "linux")]
#[test]
fn without_room_or_sync_for_the_journal_the_database_takes_over() {
    for device in ["/dev/full", "/dev/null"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, _) = journaled(folder.path(), 2);
        // One has no room, the other cannot be synced.
        store.journal.as_mut().expect("a journal").write_to(device);
        store.commit(&[event(2, "a")]).expect("stored");
        let copy = crashed(folder.path());
        assert_eq!(orders(&open(copy.path()).1), [0, 1, 2], "{device}");
    }
}

#[test]
fn a_store_from_before_there_was_a_journal_is_taken_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(0, "a")]).expect("stored");
    let (_, changed) = store.shared.write(|transaction| {
        let mut meta = transaction.open_table(crate::store::table::META)?;
        meta.insert("format", 1_u32.to_le_bytes().as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
    drop(store);
    fs::remove_file(journal(folder.path())).expect("removed");
    let (store, recovered) = open(folder.path());
    assert_eq!(orders(&recovered), [0]);
    let format = store.shared.read(|transaction| {
        let meta = transaction.open_table(crate::store::table::META)?;
        Ok(meta.get("format")?.map(|row| row.value().to_vec()))
    });
    assert_eq!(format.expect("read"), Some(2_u32.to_le_bytes().to_vec()));
}

#[test]
fn what_is_deleted_does_not_stay_in_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = journaled(folder.path(), 3);
    store.commit(&[ended("a", moment(3))]).expect("stored");
    let has_words =
        |path: &Path| fs::read(path).expect("bytes").windows(10).any(|it| it == b"delete it?");
    assert!(has_words(&journal(folder.path())));
    store.delete_session(&session("a"), None, moment(4)).expect("deleted");
    assert!(!has_words(&journal(folder.path())));
    store.commit(&[event(4, "b")]).expect("it goes on");
    assert_eq!(orders(&open(crashed(folder.path()).path()).1), [4]);
}

#[test]
fn an_orderly_end_leaves_nothing_to_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(journaled(folder.path(), 3));
    fs::remove_file(journal(folder.path())).expect("removed");
    assert_eq!(orders(&open(folder.path()).1), [0, 1, 2]);
}

#[test]
fn a_journal_that_cannot_be_read_is_a_reason_not_to_open() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()));
    fs::remove_file(journal(folder.path())).expect("removed");
    fs::create_dir(journal(folder.path())).expect("something in the way");
    let opened = Store::open_with(folder.path(), OpenOptions::default());
    assert!(matches!(opened, Err(OpenError::Io { .. })), "it is not known what was in it");
}
