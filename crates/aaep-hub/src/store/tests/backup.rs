//! A backup has everything that was stored at one moment, and an incomplete backup is refused.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use aaep_engine::PrincipalNumber;

use crate::audit::{self, Entry};
use crate::store::backup::{BackupError, restore};
use crate::store::tests::{ended, event, open, session, token};
use crate::store::{Store, StoreChange, StoredTime};

fn entry(number: i64) -> StoreChange {
    StoreChange::Audit(Entry {
        unix_us: number,
        kind: "asked",
        session_id: Some(session("a")),
        reply_token: Some(token("one")),
        who: Some("builder".to_owned()),
        outcome: format!("entry {number}"),
        details: Some(format!("words {number}")),
    })
}

/// A store with rows in nearly every table, and an audit log that is partly in the file.
fn filled(folder: &Path) -> Store {
    let (mut store, _) = open(folder);
    let time = StoredTime {
        ends_unix_us: Some(5),
        left_us: None,
        limit_unix_us: 9,
        changes: 1,
        stored_unix_us: Some(1),
        event_unix_us: None,
    };
    let settled = token("two");
    let opened =
        |reply_token| StoreChange::AskOpened { reply_token, session_id: session("a"), time };
    let changes = [
        event(1, "a"),
        event(2, "b"),
        ended("b", 20),
        opened(token("one")),
        opened(settled.clone()),
        StoreChange::AskSettled {
            reply_token: settled,
            unix_us: 5,
            resolution: b"{}".as_slice().into(),
        },
        StoreChange::Subscribed {
            subscription_id: aaep::SubscriptionId::parse("sub_1").expect("an id"),
            principal: PrincipalNumber(1),
            may_reply: true,
            json: b"{}".as_slice().into(),
        },
        StoreChange::Agent { key: 7, name: "Ägent".to_owned() },
        StoreChange::Principal { key: 1, name: "me".to_owned() },
        StoreChange::Answered {
            principal: PrincipalNumber(1),
            idempotency_key: "k".to_owned(),
            unix_us: 1,
            answer: b"[]".as_slice().into(),
        },
    ];
    store.commit(&changes).expect("stored");
    // Enough entries that the file is synced for some of them, while a few wait in the store.
    for number in 0..600 {
        store.commit(&[entry(number)]).expect("stored");
    }
    store
}

fn stream_of(store: &Store, folder: &Path) -> Vec<u8> {
    let path = folder.join("stream");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .expect("a file");
    store.write_backup(&file).expect("written");
    file.seek(SeekFrom::Start(0)).expect("back");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("read");
    bytes
}

#[test]
fn a_restored_store_has_everything_and_its_audit_log_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(&folder.path().join("store"));
    let stream = stream_of(&store, folder.path());
    let to = folder.path().join("backup");
    let restored = restore(&mut stream.as_slice(), &to).expect("restored");
    assert_eq!((restored.audit_entries, restored.sessions), (600, 2));
    assert!(audit::verify(&to.join("audit.jsonl")).is_ok());
    let (copy, recovered) = open(&to);
    assert_eq!(copy.audit(), crate::store::AuditState { missing_in_file: 0, ..store.audit() });
    assert_eq!(recovered.agents, [(7, "Ägent".to_owned())]);
    assert_eq!((recovered.open_asks.len(), recovered.answers.len()), (1, 1));
    let all = |store: &Store| audit::show(&store.reader()).collect::<Vec<_>>();
    assert_eq!(all(&copy), all(&store), "with all words");
    for id in ["a", "b"] {
        let events = |store: &Store| store.reader().events(&session(id), 0, 9).expect("read");
        assert_eq!(events(&copy), events(&store));
    }
    drop(copy);
    // It continues as a store of its own.
    let (mut copy, _) = open(&to);
    copy.commit(&[event(3, "a"), entry(601)]).expect("stored");
    drop(copy);
    assert!(audit::verify(&to.join("audit.jsonl")).is_ok());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&to), 0o700);
        for file in fs::read_dir(&to).expect("files") {
            let path = file.expect("a file").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn half_a_backup_and_a_changed_one_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(&folder.path().join("store"));
    let stream = stream_of(&store, folder.path());
    let to = folder.path().join("backup");
    let mut wrong: Vec<Vec<u8>> =
        (0..20).map(|part| stream[..stream.len() * part / 20].to_vec()).collect();
    wrong.push(stream[..stream.len() - 1].to_vec());
    for part in 0..20 {
        let mut changed = stream.clone();
        changed[stream.len() * part / 20] ^= 1;
        wrong.push(changed);
    }
    for bytes in wrong {
        restore(&mut bytes.as_slice(), &to).expect_err("not whole");
        assert!(!to.exists(), "nothing that looks whole is left");
    }
    let left = fs::read_dir(folder.path()).expect("files").count();
    assert_eq!(left, 2, "the store and the stream, and no part of a backup");
}

#[test]
fn a_folder_that_is_in_use_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(&folder.path().join("store"));
    let stream = stream_of(&store, folder.path());
    let to = folder.path().join("backup");
    fs::create_dir(&to).expect("a folder");
    fs::write(to.join("mine"), "words").expect("a file");
    let refused = restore(&mut stream.as_slice(), &to).expect_err("not empty");
    assert!(matches!(refused, BackupError::NotEmpty(_)), "{refused}");
    assert_eq!(fs::read(to.join("mine")).expect("still there"), b"words");
    fs::remove_file(to.join("mine")).expect("removed");
    restore(&mut stream.as_slice(), &to).expect("an empty folder is fine");
}
