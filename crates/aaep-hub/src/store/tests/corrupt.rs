//! Files that are damaged, foreign, from the future, or in use: refused in clear words, and left unchanged.

use std::fs;

use super::*;
use crate::store::table::{FORMAT, META};

const DATABASE: &str = "store.redb";

#[test]
fn what_is_not_a_database_is_refused_and_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(DATABASE);
    let noise = vec![0xff; 100_000];
    for content in [&b"x"[..], b"redb", &[0; 4096], &noise, b"SQLite format 3\0"] {
        fs::write(&path, content).expect("written");
        let error = open_error(folder.path());
        assert!(matches!(&error, OpenError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("restore it from a backup"));
        assert_eq!(fs::read(&path).expect("bytes"), content, "the file was touched");
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let other: redb::TableDefinition<u64, u64> = redb::TableDefinition::new("other");
    let database = redb::Database::create(folder.path().join(DATABASE)).expect("made");
    let transaction = database.begin_write().expect("begun");
    transaction.open_table(other).expect("made");
    transaction.commit().expect("stored");
    drop(database);
    assert!(matches!(open_error(folder.path()), OpenError::Corrupt { .. }));
}

#[test]
fn a_store_from_the_future_is_refused_in_clear_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(0, "a")]).expect("stored");
    let (_, changed) = store.shared.write(|transaction| {
        let mut meta = transaction.open_table(META)?;
        meta.insert("format", (FORMAT + 1).to_le_bytes().as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
    drop(store);
    let error = open_error(folder.path());
    assert!(
        matches!(error, OpenError::FutureFormat { found, known: FORMAT, .. } if found == FORMAT + 1),
        "{error}"
    );
    assert!(error.to_string().contains("later version"));
}

/// The events that can be read, and whether these are all.
fn replayed(store: &Store, recovered: &RecoveredStore) -> (Vec<StoredEvent>, bool) {
    let mut found = Vec::new();
    for event in recovered.replay(&store.reader()) {
        match event {
            Ok(ReplayedEvent::Event(event)) => found.push(event),
            Ok(ReplayedEvent::Damaged(_)) | Err(_) => return (found, false),
        }
    }
    (found, true)
}

/// Damage anywhere is an error or does not affect what was stored; it never causes a panic or a different
/// history.
#[test]
fn damage_anywhere_never_gives_another_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let stored_events: Vec<_> = (0..200).map(|order| stored(order, "a")).collect();
    for order in 0..200 {
        store.commit(&[event(order, "a"), entry("a", Some("words"))]).expect("stored");
    }
    drop(store);
    let path = folder.path().join(DATABASE);
    let whole = fs::read(&path).expect("bytes");
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut refused = 0;
    for _ in 0..60 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut damaged = whole.clone();
        let at = usize::try_from(seed >> 16).expect("64 bits") % whole.len();
        let end = (at + 512).min(damaged.len());
        damaged[at..end].fill(0xa5);
        fs::write(&path, &damaged).expect("written");
        match Store::open(folder.path(), Retention::default()) {
            Err(error) => {
                assert!(
                    matches!(error, OpenError::Corrupt { .. } | OpenError::AuditBroken { .. }),
                    "{error}"
                );
                // redb marks a file as open before it reads which pages are free. Only that mark, the tenth
                // byte, may change.
                let mut after = fs::read(&path).expect("bytes");
                after[9] = damaged[9];
                assert!(after == damaged, "the file was touched, damage at {at}");
                refused += 1;
            }
            Ok((store, recovered)) => {
                let (found, is_whole) = replayed(&store, &recovered);
                assert!(stored_events.starts_with(&found), "damage at {at}");
                let is_said = !is_whole || !recovered.damaged.is_empty();
                assert!(is_said || found.len() == stored_events.len(), "damage at {at} in silence");
            }
        }
    }
    assert!(refused > 0, "no damage was noticed");
    fs::write(&path, &whole).expect("written");
    let (store, recovered) = open(folder.path());
    assert_eq!(events(&store, &recovered), stored_events);
}

#[test]
fn a_file_that_was_cut_is_refused_and_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&(0..2000).map(|order| event(order, "a")).collect::<Vec<_>>()).expect("stored");
    drop(store);
    let path = folder.path().join(DATABASE);
    let whole = fs::read(&path).expect("bytes");
    for length in [1, 64, 319, 4096, 10_000, whole.len() / 2] {
        fs::write(&path, &whole[..length]).expect("written");
        let error = open_error(folder.path());
        assert!(matches!(&error, OpenError::Corrupt { .. }), "{length}: {error}");
        assert_eq!(fs::read(&path).expect("bytes"), &whole[..length], "touched at {length}");
    }
}

#[test]
fn a_second_store_in_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    let reader = store.reader();
    let error = open_error(folder.path());
    assert_eq!(error, OpenError::InUse { folder: folder.path().to_owned() });
    drop(store);
    let (_store, _) = open(folder.path());
    assert!(reader.session(&session("a")).is_err(), "the reader of a closed store reads nothing");
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("new/store");
    let (mut store, _) = open(&folder);
    store.commit(&[event(0, "a"), entry("a", None)]).expect("stored");
    drop(store);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in fs::read_dir(&folder).expect("a folder") {
        assert_eq!(mode(&file.expect("a file").path()), 0o600);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).expect("changed");
    assert_eq!(open_error(&folder), OpenError::OpenToOthers { folder: folder.clone() });
    assert_eq!(mode(&folder), 0o770, "a folder that was there is left as it is");
}
