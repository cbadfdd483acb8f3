//! An audit file that a crash tore, and one that another program changed.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::audit::{AdoptError, Broken, BrokenReason, ChainHead, Hash, look, show, verify};
use crate::store::{OpenOptions, SyncedAudit};

/// A store whose audit file is safe up to the second entry, while two more are certain to be in the store only.
/// Returns the path of the log, its text, and where the safe part ends.
fn half_safe(folder: &Path) -> (PathBuf, Vec<u8>, usize) {
    let (mut store, _) = open(folder);
    store.commit(&[entry("a", Some("one")), entry("a", None)]).expect("stored");
    store.sync_audit().expect("synced");
    let path = folder.join("audit.jsonl");
    let safe = fs::read(&path).expect("bytes").len();
    store.commit(&[entry("a", Some("three")), entry("a", None)]).expect("stored");
    drop(store);
    let text = fs::read(&path).expect("bytes");
    (path, text, safe)
}

#[test]
fn whatever_a_crash_leaves_of_the_unsynced_end_is_made_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, whole, safe) = half_safe(folder.path());
    let copy = fs::read(folder.path().join("store.redb")).expect("bytes");
    for end in (safe..=whole.len()).step_by(131).chain([whole.len() - 1, whole.len()]) {
        for zeros in [0, 1, 5000] {
            fs::write(folder.path().join("store.redb"), &copy).expect("written");
            fs::write(&path, [&whole[..end], &vec![0; zeros]].concat()).expect("written");
            let (store, recovered) = open(folder.path());
            // The repair is recorded in an entry of its own.
            let said = recovered.notes.len();
            assert!(said <= 1);
            assert_eq!(store.audit().last_seq, 4 + said as u64);
            drop(store);
            let found = fs::read(&path).expect("bytes");
            assert!(found.starts_with(&whole), "cut at {end}, {zeros} zeros");
            assert_eq!(found.len() > whole.len(), said == 1, "cut at {end}, {zeros} zeros");
        }
    }
}

#[test]
fn a_log_that_someone_changed_is_never_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, whole, safe) = half_safe(folder.path());
    let changed_at = |at: usize| {
        let mut text = whole.clone();
        text[at] ^= 1;
        text
    };
    let first = whole.iter().position(|byte| *byte == b'\n').expect("lines") + 1;
    let cases = [
        (changed_at(10), 1),
        (changed_at(first + 10), 2),
        (whole[..safe - 1].to_vec(), 2),
        (whole[..first].to_vec(), 2),
        (Vec::new(), 2),
        (changed_at(safe + 10), 3),
        (changed_at(whole.len() - 10), 4),
        ([&whole[..], b"x"].concat(), 5),
        ([&whole[..], &whole[..first]].concat(), 5),
        ([&whole[..safe + 9], b"\n"].concat(), 3),
    ];
    let database = folder.path().join("store.redb");
    for (text, line) in cases {
        fs::write(&path, &text).expect("written");
        let before = fs::read(&database).expect("bytes");
        match open_error(folder.path()) {
            OpenError::AuditBroken { path: named, broken } => {
                assert_eq!((named, broken.line), (path.clone(), line), "{:?}", broken.why);
            }
            other => panic!("{other}"),
        }
        assert_eq!(fs::read(&path).expect("bytes"), text, "the file was touched");
        assert_eq!(fs::read(&database).expect("bytes"), before, "the store was touched");
    }
    fs::write(&path, &whole).expect("written");
    assert_eq!(open(folder.path()).0.audit().last_seq, 4);
}

#[test]
fn a_new_log_says_that_the_old_one_is_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, whole, _) = half_safe(folder.path());
    let mut changed = whole.clone();
    changed[10] ^= 1;
    fs::write(&path, &changed).expect("written");
    let options = OpenOptions { repairs: true, ..OpenOptions::default() };
    let (mut store, recovered) = Store::open_with(folder.path(), options).expect("opened");
    assert!(
        recovered.notes[0].contains("audit-broken-1.jsonl"),
        "it is told: {:?}",
        recovered.notes
    );
    store.commit(&[entry("a", Some("six"))]).expect("stored");
    let shown: Vec<_> = show(&store.reader()).map(|it| it.expect("shown").line).collect();
    assert_eq!(shown.iter().map(|line| line.seq).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(shown[0].kind, "log_broken");
    assert!(shown[0].outcome.contains("audit-broken-1.jsonl"), "{}", shown[0].outcome);
    assert!(shown[0].outcome.contains("Line 1"), "{}", shown[0].outcome);
    let digest = Hash::of(&[&changed]).to_string();
    assert!(shown[0].outcome.contains(&digest), "{}", shown[0].outcome);
    drop(store);
    assert_eq!(fs::read(folder.path().join("audit-broken-1.jsonl")).expect("kept"), changed);
    let tail = fs::read(folder.path().join("audit-broken-1-tail.jsonl")).expect("kept");
    assert!(whole.ends_with(&tail) && !tail.is_empty());
    let verified = verify(&path).expect("the new chain holds");
    assert_eq!(verified.entries, 2);
    assert!(
        verified.replaced.is_some_and(|why| why.contains(&digest)),
        "and says what it replaces"
    );
    assert_eq!(open(folder.path()).0.audit().last_seq, 6, "and it opens without the option");
}

#[test]
fn a_log_without_its_store_is_not_taken_on() {
    let folder = tempfile::tempdir().expect("a folder");
    half_safe(folder.path());
    fs::remove_file(folder.path().join("store.redb")).expect("removed");
    let error = open_error(folder.path());
    assert!(
        matches!(&error, OpenError::AuditBroken { broken, .. } if broken.why == BrokenReason::Foreign),
        "{error}"
    );
}

#[test]
fn of_a_long_log_the_end_is_verified_when_it_is_opened_and_all_of_it_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let StoreChange::Audit(mut long) = entry("a", None) else { panic!("an entry") };
    long.who = Some("\u{e9}".repeat(500));
    let mut head = ChainHead { seq: 0, hash: Hash::ZERO };
    let mut text = Vec::new();
    while text.len() < 5 << 20 {
        text.extend(head.write(&long, None));
    }
    fs::write(&path, &text).expect("written");
    let ChainHead { seq, hash } = head;
    let safe = SyncedAudit { first_seq: 1, seq, hash, bytes: text.len() as u64 };
    let check = |safe| {
        look(&path, safe, || Ok(std::iter::empty())).map_err(|error| match error {
            AdoptError::Broken(Broken { line, why }) => (line, why),
            AdoptError::Fault(fault) => panic!("{fault:?}"),
        })
    };
    assert_eq!(check(safe), Ok(()));
    assert_eq!(verify(&path).expect("the chain holds").entries, seq);
    let other = SyncedAudit { hash: Hash::ZERO, ..safe };
    assert_eq!(check(other), Err((seq, BrokenReason::Foreign)));
    let line = text.len() / usize::try_from(seq).expect("small");
    for (at, opened) in
        [(text.len() - line - 50, Err((seq - 1, BrokenReason::Changed))), (50, Ok(()))]
    {
        let mut changed = text.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).expect("written");
        assert_eq!(check(safe), opened);
        assert!(verify(&path).is_err(), "all of it is verified on demand");
    }
}
