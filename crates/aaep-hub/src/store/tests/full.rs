//! A full disk: nothing stored is lost, the errors are clear, and the store continues when there is room.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::*;
use crate::audit::verify;
use crate::store::open::open_on;
use crate::store::{CommitError, EndedSession, OpenOptions};

/// A disk with limited room for the file, on which syncs can be made to fail.
#[derive(Debug, Clone)]
pub(crate) struct TestDisk {
    pub(crate) room_bytes: Arc<AtomicU64>,
    /// How many syncs succeed before they fail.
    syncs: Arc<AtomicU64>,
    /// How many writes, growths and syncs succeed before all fail.
    changes: Arc<AtomicU64>,
    /// The file that reserves spare room, if any: without it, the disk has that much more room.
    spare: Option<std::path::PathBuf>,
}

#[derive(Debug)]
struct SmallDisk {
    inner: FileBackend,
    disk: TestDisk,
}

impl SmallDisk {
    fn count_change(&self) -> io::Result<()> {
        let count = |left: u64| left.checked_sub(1);
        let counted = self.disk.changes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
        counted.map(drop).map_err(|_| io::ErrorKind::FileTooLarge.into())
    }

    fn check(&self, end: u64) -> io::Result<()> {
        let given_up = self.disk.spare.as_ref().filter(|spare| !spare.exists());
        let more = given_up.map_or(0, |_| crate::store::spare::SPARE_BYTES);
        if end > self.disk.room_bytes.load(Ordering::SeqCst).saturating_add(more) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for SmallDisk {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.count_change()?;
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.count_change()?;
        let left = self.disk.syncs.load(Ordering::SeqCst);
        if left == 0 {
            return Err(io::Error::other("the disk is gone"));
        }
        self.disk.syncs.store(left - 1, Ordering::SeqCst);
        self.inner.sync_data()
    }

    /// Like a sparse file: it may be long, but only written bytes take room.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.count_change()?;
        self.check(offset + data.len() as u64)?;
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}

/// A store on such a disk, without a journal.
pub(crate) fn open_small(folder: &Path) -> (Store, RecoveredStore, TestDisk) {
    let (mut store, recovered, disk) = open_small_with_journal(folder);
    store.journal = None;
    (store, recovered, disk)
}

/// The same, with spare room reserved.
pub(crate) fn open_small_with_spare_room(folder: &Path) -> (Store, RecoveredStore, TestDisk) {
    let (mut store, recovered, disk) = open_on_disk(folder, Some(folder.join("spare")));
    store.journal = None;
    store.keep_spare_room();
    (store, recovered, disk)
}

/// A store whose database is on such a disk, but not its journal.
fn open_small_with_journal(folder: &Path) -> (Store, RecoveredStore, TestDisk) {
    open_on_disk(folder, None)
}

fn open_on_disk(
    folder: &Path,
    spare: Option<std::path::PathBuf>,
) -> (Store, RecoveredStore, TestDisk) {
    let disk = TestDisk {
        spare,
        room_bytes: Arc::new(AtomicU64::new(u64::MAX)),
        syncs: Arc::new(AtomicU64::new(u64::MAX)),
        changes: Arc::new(AtomicU64::new(u64::MAX)),
    };
    let path = folder.join("store.redb");
    let inside = disk.clone();
    let (store, recovered) = open_on(
        folder,
        OpenOptions::default(),
        Box::new(move |builder| {
            let file = std::fs::OpenOptions::new().read(true).write(true).open(&path);
            let file = file.map_err(redb::StorageError::Io)?;
            let inner = FileBackend::new(file)?;
            builder.create_with_backend(SmallDisk { inner, disk: inside.clone() })
        }),
    )
    .expect("the store opens");
    (store, recovered, disk)
}

pub(super) fn large_event(order: u64) -> StoreChange {
    let StoreChange::Event { session_id, event_id, .. } = event(order, "large") else {
        panic!("an event")
    };
    StoreChange::Event {
        order,
        session_id,
        event_id,
        agent: 7,
        principal: PrincipalNumber(8),
        by_hub: false,
        unix_us: moment(order),
        json: vec![b' '; 100_000].into(),
    }
}

#[test]
fn a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    for open in [open_small, open_small_with_journal] {
        fill_again_and_again(open);
    }
}

fn fill_again_and_again(open_small: fn(&Path) -> (Store, RecoveredStore, TestDisk)) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _, disk) = open_small(folder.path());
    let reader = store.reader();
    store.commit(&[event(0, "a"), entry("a", Some("delete it?"))]).expect("stored");
    let file = folder.path().join("store.redb");
    let mut next_order = 1;
    for round in 0..3 {
        let length = file.metadata().expect("a file").len();
        disk.room_bytes.store(length + 300_000, Ordering::SeqCst);
        let error = loop {
            let commit = [large_event(next_order), entry("large", None)];
            match store.commit(&commit) {
                Ok(()) => next_order += 1,
                Err(error) => break error,
            }
            assert!(next_order < 1000, "the disk never got full");
        };
        assert_eq!(error, CommitError::Full, "round {round}");
        assert!(error.to_string().contains("Make room"));
        assert_eq!(reader.events(&session("a"), 0, 9).expect("read"), [stored(0, "a")]);
        let large = reader.session(&session("large")).expect("read").expect("there");
        assert_eq!(large.events, next_order - 1);
        assert_eq!(store.audit().last_seq, next_order);
        // Small changes may or may not find room; they must not affect what is stored.
        store.commit(&[StoreChange::Agent { key: 1, name: "x".to_owned() }]).ok();
        disk.room_bytes.store(u64::MAX, Ordering::SeqCst);
        store.commit(&[large_event(next_order), entry("large", None)]).expect("there is room");
        next_order += 1;
    }
    drop(store);
    let (store, recovered) = open(folder.path());
    assert_eq!(orders(&store, &recovered), (0..next_order).collect::<Vec<_>>());
    assert_eq!(store.audit().last_seq, next_order);
    let verified = verify(&folder.path().join("audit.jsonl")).expect("the chain holds");
    assert_eq!(verified.entries, next_order);
}

#[test]
fn a_commit_whose_sync_fails_is_told_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _, disk) = open_small(folder.path());
    store.commit(&[event(0, "a")]).expect("stored");
    let mut next_order = 1;
    for syncs in 0..8 {
        disk.syncs.store(syncs, Ordering::SeqCst);
        let result = store.commit(&[event(next_order, "a"), entry("a", None)]);
        disk.syncs.store(u64::MAX, Ordering::SeqCst);
        let events = store.reader().events(&session("a"), next_order, 9).expect("read again");
        match result {
            Ok(()) => {
                assert_eq!(events, [stored(next_order, "a")]);
                next_order += 1;
            }
            Err(CommitError::Io { why }) => {
                assert!(why.contains("the disk is gone"), "{why}");
                assert_eq!(events, []);
            }
            // The store could not be opened again: a read now finds one or the other.
            Err(CommitError::InDoubt { .. }) => next_order += events.len() as u64,
            Err(other) => panic!("{other}"),
        }
    }
    store.commit(&[event(next_order, "a")]).expect("it goes on");
    let last_seq = store.sync_audit().expect("synced").last_seq;
    drop(store);
    let (store, recovered) = open(folder.path());
    assert_eq!(orders(&store, &recovered), (0..=next_order).collect::<Vec<_>>());
    let verified = verify(&folder.path().join("audit.jsonl")).expect("the chain holds");
    assert_eq!(verified.last_seq, last_seq);
    assert!(next_order > 1, "no commit got through");
}

/// Stores the changes as a hub does: until that works, or it is known that it worked. Fails if the hub would have to
/// end.
fn try_to_keep(store: &mut Store, changes: &[StoreChange]) -> bool {
    let kept = match store.settle_doubt() {
        Ok(Some(true)) => Ok(()),
        Ok(_) => store.commit(changes),
        Err(error) => Err(error),
    };
    match kept {
        Ok(()) => true,
        Err(CommitError::Full | CommitError::Io { .. } | CommitError::InDoubt { .. }) => false,
        Err(other) => panic!("the hub ends: {other}"),
    }
}

/// From each write, growth and sync of the database on, all fail, until the disk is well again.
#[test]
fn whatever_the_disk_refuses_nothing_ends_and_nothing_is_lost_or_stored_twice() {
    for open_small in [open_small, open_small_with_journal] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, _, disk) = open_small(folder.path());
        let reader = store.reader();
        let (mut order, mut refused) = (0, 0);
        for well in 0.. {
            // The journal has some that the database has only in memory.
            for _ in 0..2 {
                assert!(try_to_keep(&mut store, &[event(order, "a"), entry("a", Some("words"))]));
                order += 1;
            }
            disk.changes.store(well, Ordering::SeqCst);
            let written = store.checkpoint().is_ok();
            let changes = [large_event(order), entry("large", None)];
            let mut is_kept = false;
            for _ in 0..3 {
                is_kept = is_kept || try_to_keep(&mut store, &changes);
                // Readers get an answer or an error.
                let _ = reader.events(&session("a"), 0, 9);
                let _ = store.sweep(aaep_engine::Now { monotonic_us: 0, unix_us: moment(order) });
            }
            let is_done = written && is_kept && disk.changes.load(Ordering::SeqCst) > 0;
            disk.changes.store(u64::MAX, Ordering::SeqCst);
            if !is_kept {
                refused += 1;
                assert!(try_to_keep(&mut store, &changes), "the disk is well again");
            }
            order += 1;
            let last = reader.events(&session("large"), order - 1, 9).expect("read");
            assert_eq!(last.len(), 1);
            if is_done {
                break;
            }
        }
        assert!(refused > 3, "the disk refused something: {refused}");
        drop(store);
        let (store, recovered) = open(folder.path());
        assert_eq!(orders(&store, &recovered), (0..order).collect::<Vec<_>>());
        assert_eq!(store.audit().last_seq, order);
        let verified = verify(&folder.path().join("audit.jsonl")).expect("the chain holds");
        assert_eq!(verified.entries, order);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_audit_file_without_room_is_caught_up_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[entry("a", Some("first"))]).expect("stored");
    store.log.write_to_full_device();
    store.commit(&[entry("a", Some("second"))]).expect("the store has it");
    store.commit(&[entry("a", None)]).expect("the store has it");
    assert_eq!(store.audit().missing_in_file, 2);
    let shown: Vec<_> = crate::audit::show(&store.reader()).map(|it| it.expect("shown")).collect();
    assert_eq!(shown.len(), 3, "what the file lacks is shown from the store");
    drop(store);
    let path = folder.path().join("audit.jsonl");
    assert_eq!(verify(&path).expect("the chain holds").entries, 1);
    let (store, recovered) = open(folder.path());
    assert_eq!(store.audit().missing_in_file, 0);
    assert!(recovered.notes[0].contains("or the disk was full"), "{:?}", recovered.notes);
    assert_eq!(verify(&path).expect("the chain holds").entries, 4, "and that this was repaired");
}

#[test]
fn on_a_full_disk_a_session_that_runs_can_be_ended_and_then_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _, disk) = open_small_with_spare_room(folder.path());
    let opened = StoreChange::AskOpened {
        reply_token: token("one"),
        session_id: session("large"),
        time: time(Some(9), None),
    };
    store.commit(&[large_event(0), opened]).expect("stored");
    let length = folder.path().join("store.redb").metadata().expect("a file").len();
    disk.room_bytes.store(length + 300_000, Ordering::SeqCst);
    let mut order = 1;
    while store.commit(&[large_event(order)]).is_ok() {
        order += 1;
        assert!(order < 1000, "the disk never gets full");
    }
    let ended = store.end_session(&session("large"), Some("Ada"), moment(order));
    assert_eq!(ended, Ok(EndedSession::Ended));
    let again = store.end_session(&session("large"), Some("Ada"), moment(order));
    assert_eq!(again, Ok(EndedSession::AlreadyEnded));
    let deleted = store.delete_session(&session("large"), Some("Ada"), moment(order));
    assert_eq!(deleted.expect("its question is not open any more").events, order);
    store.commit(&[event(order, "a")]).expect("there is room");
    assert_eq!(
        store.end_session(&session("gone"), None, moment(order)),
        Ok(EndedSession::NoSuchSession)
    );
}
