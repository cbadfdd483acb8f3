//! The journal: acknowledged data is there after a crash, whatever the database has written by then.

use std::fs;

use super::*;
use crate::audit::verify;

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

/// A store with this many commits that are on disk only in its journal, and the length of the journal after
/// each.
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
    let asked = StoreChange::AskOpened {
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
    assert_eq!(orders(&store, &recovered), (0..50).collect::<Vec<_>>());
    assert_eq!(recovered.open_asks.len(), 1);
    assert_eq!(recovered.next_order, 50);
    assert_eq!(after.audit(), store.audit());
    assert_eq!(after.reader().details(1), Ok(Some("delete it?".to_owned())));
    assert_eq!(verify(&copy.path().join("audit.jsonl")).expect("the chain holds").entries, 1);
    drop(after);
}

#[test]
fn a_missing_journal_is_told_and_the_rest_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = journaled(folder.path(), 3);
    store.checkpoint().expect("written");
    store.commit(&[event(3, "a"), entry("a", None)]).expect("stored");
    for zeros in [None, Some(0), Some(262_144)] {
        let copy = crashed(folder.path());
        fs::remove_file(journal(copy.path())).expect("removed");
        if let Some(zeros) = zeros {
            fs::write(journal(copy.path()), vec![0; zeros]).expect("written");
        }
        let (store, recovered) = open(copy.path());
        assert!(recovered.is_incomplete, "what was in it is lost");
        assert!(recovered.notes[0].contains("journal"), "{:?}", recovered.notes);
        assert_eq!(orders(&store, &recovered), [0, 1, 2]);
        // The log is ahead of the store, and continues from its own end.
        assert_eq!(store.audit().last_seq, 5, "and says what was found");
        drop(store);
        let (mut store, recovered) = open(copy.path());
        assert!(recovered.is_incomplete, "until a hub has gone on from that");
        assert!(recovered.notes.is_empty(), "it is written once");
        store.commit(&[event(4, "a"), entry("a", None)]).expect("it goes on");
        drop(store);
        let (_store, recovered) = open(copy.path());
        assert!(!recovered.is_incomplete && recovered.notes.is_empty(), "once is enough");
        let log = verify(&copy.path().join("audit.jsonl")).expect("the chain holds");
        assert_eq!(log.entries, 6);
    }
}

#[test]
fn one_flipped_bit_in_the_last_record_does_not_pass_for_a_torn_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, ends) = journaled(folder.path(), 4);
    drop(store.reader());
    let whole = fs::read(journal(folder.path())).expect("bytes");
    let (from, to) = (ends[2], ends[3]);
    for at in (from..to).step_by(41).chain([to - 1]) {
        for bit in [0, 5] {
            let copy = crashed(folder.path());
            let mut bytes = whole.clone();
            bytes[usize::try_from(at).expect("small")] ^= 1 << bit;
            fs::write(journal(copy.path()), &bytes).expect("written");
            let (store, recovered) = open(copy.path());
            assert!(recovered.is_incomplete, "at {at}: passed in silence");
            assert!(recovered.notes[0].contains("journal-damaged-1"), "{:?}", recovered.notes);
            assert_eq!(orders(&store, &recovered), [0, 1, 2]);
            let kept = fs::read(copy.path().join("journal-damaged-1")).expect("a copy");
            assert!(kept == bytes, "the damaged journal is kept as it was");
        }
    }
}

#[test]
fn sectors_that_a_power_cut_left_out_are_a_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = journaled(folder.path(), 2);
    let before = store.journal.as_ref().expect("a journal").end();
    store.commit(&[super::full::large_event(2)]).expect("stored");
    let end = store.journal.as_ref().expect("a journal").end();
    let whole = fs::read(journal(folder.path())).expect("bytes");
    let (first, last) = (before.div_ceil(512), end / 512);
    for sector in [first, first + 1, u64::midpoint(first, last), last - 1, last] {
        let copy = crashed(folder.path());
        let mut bytes = whole.clone();
        let at = usize::try_from(sector * 512).expect("small");
        bytes[at..at + 512].fill(0);
        fs::write(journal(copy.path()), &bytes).expect("written");
        let (store, recovered) = open(copy.path());
        assert!(!recovered.is_incomplete && recovered.notes.is_empty(), "sector {sector}");
        assert_eq!(orders(&store, &recovered), [0, 1]);
    }
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
    assert_eq!(orders(&store, &recovered), Vec::<u64>::new());
    store.commit(&[event(0, "b")]).expect("stored");
    assert_eq!(orders_in(crashed(copy.path()).path()), [0]);
}

#[test]
fn it_goes_on_after_one_crash_and_another() {
    let mut folder = tempfile::tempdir().expect("a folder");
    for round in 0..5 {
        let (mut store, recovered) = open(folder.path());
        assert_eq!(orders(&store, &recovered), (0..round * 3).collect::<Vec<_>>());
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
        assert_eq!(orders(&store, &recovered), [0, 1, 2], "{kept} bytes");
        store.commit(&[event(3, "a"), entry("a", None)]).expect("it goes on");
        assert_eq!(orders_in(crashed(copy.path()).path()), [0, 1, 2, 3]);
    }
}

#[test]
fn damage_before_what_is_whole_is_set_aside_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_store, ends) = journaled(folder.path(), 4);
    let second = usize::try_from(ends[0]).expect("small");
    for at in [second, second + 9, second + 17, second + 25, second + 60] {
        let copy = crashed(folder.path());
        let mut bytes = fs::read(journal(copy.path())).expect("bytes");
        bytes[at] ^= 1;
        fs::write(journal(copy.path()), &bytes).expect("written");
        let (mut store, recovered) = open(copy.path());
        assert!(recovered.is_incomplete, "{at}");
        assert_eq!(orders(&store, &recovered), [0], "what came before it counts");
        let kept = fs::read(copy.path().join("journal-damaged-1")).expect("a copy");
        assert_eq!(kept, bytes);
        store.commit(&[event(9, "a"), entry("a", None)]).expect("it goes on");
        assert_eq!(orders_in(crashed(copy.path()).path()), [0, 9]);
    }
}

#[test]
fn a_database_from_before_and_a_journal_from_later_go_on_from_before() {
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
    let (store, recovered) = open(copy.path());
    assert!(recovered.is_incomplete && recovered.notes[0].contains("journal-damaged-1"));
    assert_eq!(orders(&store, &recovered), [0, 1]);
}

#[test]
fn a_full_journal_is_written_into_the_database_and_starts_over() {
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
        if now == 512 || order % 40 == 0 {
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
        assert_eq!(orders_in(copy.path()), [0, 1, 2], "{device}");
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
    assert_eq!(orders(&store, &recovered), [0]);
    let format = store.shared.read(|transaction| {
        let meta = transaction.open_table(crate::store::table::META)?;
        Ok(meta.get("format")?.map(|row| row.value().to_vec()))
    });
    assert_eq!(format.expect("read"), Some(crate::store::table::FORMAT.to_le_bytes().to_vec()));
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
    assert_eq!(orders_in(crashed(folder.path()).path()), [4]);
}

#[test]
fn an_orderly_end_leaves_nothing_to_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(journaled(folder.path(), 3));
    fs::remove_file(journal(folder.path())).expect("removed");
    assert_eq!(orders_in(folder.path()), [0, 1, 2]);
}
