//! The audit log as it is written: readable without this code, chained, without people's words.

use std::fs;

use redb::ReadableTable;
use sha2::{Digest, Sha256};

use super::*;
use crate::audit::{BrokenReason, Details, export, show, verify};

fn three_entries(folder: &Path) {
    let (mut store, _) = open(folder);
    store.commit(&[event(0, "a"), entry("a", Some("Delete the \"database\"?"))]).expect("stored");
    store.commit(&[entry("a", None), entry("a", Some("no"))]).expect("stored");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn a_line_can_be_read_and_verified_without_this_code() {
    let folder = tempfile::tempdir().expect("a folder");
    three_entries(folder.path());
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).expect("text");
    let mut previous = "0".repeat(64);
    for (number, line) in text.lines().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["seq"], number + 1);
        assert_eq!(value["time"], "2023-11-14T22:13:21.000Z");
        assert_eq!(value["previous"], previous);
        assert_eq!(value["reply_token_sha256"], hex(&Sha256::digest(b"rpl_one")));
        let (before, _) = line.rsplit_once(",\"hash\":").expect("the last member");
        previous = hex(&Sha256::digest(format!("{before}}}")));
        assert_eq!(value["hash"], previous);
    }
    assert_eq!(text.lines().count(), 3);
    assert!(!text.contains("database") && !text.contains("rpl_one"));
}

#[test]
fn the_same_words_have_another_hash_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[entry("a", Some("yes")), entry("a", Some("yes"))]).expect("stored");
    let shown: Vec<_> = show(&store.reader()).map(|it| it.expect("shown").line).collect();
    assert_ne!(shown[0].details_hash, shown[1].details_hash);
    let bare = hex(&Sha256::digest(b"yes"));
    assert!(shown.iter().all(|line| line.details_hash.as_deref() != Some(&bare)));
}

#[test]
fn what_a_peer_chose_cannot_steer_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let StoreChange::Audit(mut nasty) = entry("a", Some("\u{1b}[2J\u{202e}\n{\"seq\":9}")) else {
        panic!("an entry")
    };
    nasty.who = Some("\u{1b}]0;x\u{7}\u{202e}Ada\n\u{1f600}".to_owned());
    store.commit(&[StoreChange::Audit(nasty.clone())]).expect("stored");
    let mut exported = Vec::new();
    assert_eq!(export(&store.reader(), &mut exported), Ok(1));
    let file = fs::read(folder.path().join("audit.jsonl")).expect("bytes");
    for text in [&file, &exported] {
        let (last, line) = text.split_last().expect("a line");
        assert_eq!(*last, b'\n');
        assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
    }
    let shown = show(&store.reader()).next().expect("one").expect("shown");
    assert_eq!(shown.line.who, nasty.who);
    assert_eq!(Details::Words(nasty.details.expect("words")), shown.details);
}

#[test]
fn verifying_names_the_first_line_that_cannot_be_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    three_entries(folder.path());
    let path = folder.path().join("audit.jsonl");
    let whole = fs::read_to_string(&path).expect("text");
    let lines: Vec<&str> = whole.lines().collect();
    let check = |text: String| {
        let other = folder.path().join("other.jsonl");
        fs::write(&other, text).expect("written");
        verify(&other).map(|it| it.entries).map_err(|broken| (broken.line, broken.why))
    };
    assert_eq!(check(whole.clone()), Ok(3));
    assert_eq!(check(String::new()), Ok(0));
    assert_eq!(check(whole.replacen("told", "TOLD", 1)), Err((1, BrokenReason::Changed)));
    assert_eq!(check(format!("{}\n{}\n", lines[0], lines[2])), Err((2, BrokenReason::NotNext)));
    assert_eq!(check(format!("{}\n{}\n", lines[0], lines[0])), Err((2, BrokenReason::NotNext)));
    assert_eq!(check(format!("{}\n", lines[1])), Err((1, BrokenReason::NotTheFirst)));
    assert_eq!(check(format!("{}\n{}", lines[0], &lines[1][..50])), Err((2, BrokenReason::Torn)));
    assert_eq!(check(format!("{}\n\n", lines[0])), Err((2, BrokenReason::NotAnEntry)));
    assert_eq!(check(format!("{}\nnull\n", lines[0])), Err((2, BrokenReason::NotAnEntry)));
    assert_eq!(check("x".repeat(100_000)), Err((1, BrokenReason::TooLong)));
    let missing = verify(&folder.path().join("none")).expect_err("no file");
    assert!(matches!(missing.why, BrokenReason::Unreadable(_)));
}

#[test]
fn words_that_were_changed_in_the_store_are_told_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    three_entries(folder.path());
    let (store, _) = open(folder.path());
    let (_, changed) = store.shared.write(|transaction| {
        let mut details = transaction.open_table(crate::store::table::AUDIT_DETAILS)?;
        let mut row = details.get(3)?.expect("words").value().to_vec();
        let last = row.len() - 1;
        row[last] = b'O';
        details.insert(3, row.as_slice())?;
        Ok(redb::Durability::Immediate)
    });
    changed.expect("written");
    let details: Vec<_> = show(&store.reader()).map(|it| it.expect("shown").details).collect();
    assert_eq!(details[2], Details::Changed);
    assert_eq!(details[1], Details::None);
}

#[test]
fn the_store_lets_go_of_lines_that_the_file_has_safely() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    for _ in 0..600 {
        store.commit(&[entry("a", None)]).expect("stored");
    }
    let waiting = store.reader().waiting_lines(0, 10_000).expect("read").len();
    assert!(waiting < 300, "{waiting} lines wait");
    assert_eq!(store.sync_audit().expect("synced").last_seq, 600);
    assert_eq!(store.reader().waiting_lines(0, 10).expect("read").len(), 0);
    assert_eq!(show(&store.reader()).count(), 600);
}

#[test]
fn a_store_in_memory_shows_its_log_too() {
    let mut store = Store::in_memory();
    store.commit(&[entry("a", Some("words")), entry("a", None)]).expect("stored");
    let details: Vec<_> = show(&store.reader()).map(|it| it.expect("shown").details).collect();
    assert_eq!(details, [Details::Words("words".to_owned()), Details::None]);
}

#[test]
fn a_log_is_shown_from_the_middle_as_from_the_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    for number in 0..3000 {
        let entry = Entry {
            unix_us: number,
            kind: "asked",
            session_id: None,
            reply_token: None,
            who: None,
            outcome: "x".repeat(usize::try_from(number).expect("small") % 97),
            details: None,
        };
        store.commit(&[StoreChange::Audit(entry)]).expect("stored");
    }
    let reader = store.reader();
    let all: Vec<_> = crate::audit::show(&reader).map(|it| it.expect("whole")).collect();
    assert_eq!(all.len(), 3000);
    for after in [0, 1, 2, 700, 1500, 2743, 2744, 2998, 2999, 3000, 5000] {
        let rest: Vec<_> =
            crate::audit::show_after(&reader, after).map(|it| it.expect("whole")).collect();
        let from = usize::try_from(after).expect("small").min(all.len());
        assert_eq!(rest, all[from..], "after {after}");
    }
}

/// What a power cut leaves of an open store, with these bytes of the audit log as zeros.
fn zeroed(folder: &Path, from: usize, to: usize) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in ["store.redb", "store.journal", "audit.jsonl"] {
        std::fs::copy(folder.join(file), copy.path().join(file)).expect("copied");
    }
    let path = copy.path().join("audit.jsonl");
    let mut bytes = std::fs::read(&path).expect("bytes");
    let to = to.min(bytes.len());
    bytes[from..to].fill(0);
    std::fs::write(path, bytes).expect("written");
    copy
}

#[test]
fn zeros_behind_the_last_synced_line_are_written_again_from_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[entry("a", None)]).expect("stored");
    store.sync_audit().expect("synced");
    let safe = usize::try_from(folder.path().join("audit.jsonl").metadata().expect("a file").len());
    let safe = safe.expect("small");
    for order in 0..20 {
        store.commit(&[event(order, "a"), entry("a", Some("words"))]).expect("stored");
    }
    let whole = std::fs::read(folder.path().join("audit.jsonl")).expect("bytes");
    // At the end, in the middle before intact lines, from the first line on, and within one line.
    for (from, to) in
        [(4096, 9999), (4096, 4608), (safe, 2048), (safe, 9999), (safe + 9, safe + 12)]
    {
        let copy = zeroed(folder.path(), from, to);
        let (store, recovered) = open(copy.path());
        let after = std::fs::read(copy.path().join("audit.jsonl")).expect("bytes");
        assert!(
            after.starts_with(&whole) && after.len() > whole.len(),
            "all of it, and what was done"
        );
        assert!(recovered.notes.len() == 1 && recovered.notes[0].contains("power cut"), "{from}");
        assert!(!recovered.is_incomplete);
        assert_eq!(store.audit().last_seq, 22);
    }
    // Bytes that are neither a line of the store nor zeros do not come from a power cut.
    let copy = zeroed(folder.path(), 0, 0);
    let path = copy.path().join("audit.jsonl");
    let mut bytes = whole.clone();
    bytes[safe + 40] ^= 1;
    std::fs::write(path, bytes).expect("written");
    assert!(matches!(open_error(copy.path()), OpenError::AuditBroken { .. }));
}

#[test]
fn a_log_that_is_gone_after_a_kill_is_written_again_and_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, recovered) = open(folder.path());
    assert_eq!(recovered.notes, Vec::<String>::new(), "a new store never had one");
    store.commit(&[event(0, "a"), entry("a", None), entry("a", Some("words"))]).expect("stored");
    let copy = zeroed(folder.path(), 0, 0);
    let path = copy.path().join("audit.jsonl");
    let whole = std::fs::read(&path).expect("bytes");
    std::fs::remove_file(&path).expect("removed");
    let (store, recovered) = open(copy.path());
    assert_eq!(recovered.notes.len(), 1, "{:?}", recovered.notes);
    assert!(recovered.notes[0].contains("2 entries"), "{:?}", recovered.notes);
    let last = show(&store.reader()).last().expect("entries").expect("shown").line;
    assert_eq!((last.seq, last.kind.as_str()), (3, "start_repaired"));
    assert_eq!(last.outcome, recovered.notes[0]);
    drop(store);
    assert!(std::fs::read(&path).expect("bytes").starts_with(&whole));
    assert_eq!(verify(&path).expect("the chain holds").entries, 3);
    assert_eq!(open(copy.path()).1.notes, Vec::<String>::new(), "it is said once");
}

#[test]
fn a_log_that_was_emptied_or_cut_between_two_lines_is_written_again_and_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    for order in 0..3 {
        store.commit(&[event(order, "a"), entry("a", None)]).expect("stored");
    }
    for lines in 0..=3 {
        let copy = zeroed(folder.path(), 0, 0);
        let path = copy.path().join("audit.jsonl");
        let whole = fs::read_to_string(&path).expect("text");
        let kept: String = whole.split_inclusive('\n').take(lines).collect();
        fs::write(&path, kept).expect("written");
        let (store, recovered) = open(copy.path());
        if lines >= 2 {
            // A kill may keep the lines of one commit out of the file.
            assert_eq!(recovered.notes, Vec::<String>::new(), "{lines}");
        } else {
            let [note] = recovered.notes.as_slice() else { panic!("{:?}", recovered.notes) };
            assert!(note.contains(&format!("last {} entries", 3 - lines)), "{note}");
            let last = show(&store.reader()).last().expect("entries").expect("shown").line;
            assert_eq!((last.kind.as_str(), &last.outcome), ("start_repaired", note));
        }
        drop(store);
        assert!(fs::read_to_string(&path).expect("text").starts_with(&whole), "{lines}");
        assert_eq!(open(copy.path()).1.notes, Vec::<String>::new(), "it is said once");
    }
}
