//! The store under what a process cannot do to itself: being killed, meeting a second process, a
//! disk that is really full; and how fast it is.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::PrincipalNumber;
use aaep_hub::audit::{self, Entry};
use aaep_hub::store::{
    CommitError, OpenError, RecoveredStore, ReplayedEvent, Retention, Store, StoreChange,
    StoredTime,
};

/// Tells the child processes below where their store is.
const FOLDER: &str = "AAEP_TEST_STORE";

/// How many events each numbered commit has, each in a session of its own.
const EVENTS: u64 = 3;

fn event(order: u64, session: u64, bytes: usize) -> StoreChange {
    StoreChange::Event {
        order,
        session_id: SessionId::parse(&format!("sess_{session}")).expect("digits"),
        event_id: EventId::parse(&format!("evt_{order:016x}")).expect("digits"),
        agent: 1,
        principal: PrincipalNumber(1),
        by_hub: false,
        unix_us: 0,
        json: vec![b'x'; bytes].into(),
    }
}

/// The commit with this number: three events, a question that settles the one before, an entry.
fn numbered(number: u64) -> Vec<StoreChange> {
    let token = |number: u64| ReplyToken::parse(&format!("rpl_{number}")).expect("digits");
    let session_id = SessionId::parse("sess_0").expect("digits");
    let mut changes: Vec<StoreChange> =
        (0..EVENTS).map(|at| event(number * EVENTS + at, at, 500)).collect();
    changes.push(StoreChange::AskOpened {
        reply_token: token(number),
        session_id: session_id.clone(),
        time: StoredTime {
            ends_unix_us: Some(9),
            left_us: None,
            limit_unix_us: 9,
            changes: 0,
            stored_unix_us: Some(0),
            event_unix_us: None,
        },
    });
    if number > 0 {
        changes.push(StoreChange::AskSettled {
            reply_token: token(number - 1),
            unix_us: 0,
            resolution: b"1".as_slice().into(),
        });
    }
    changes.push(StoreChange::Audit(Entry {
        unix_us: 0,
        kind: "asked",
        session_id: Some(session_id),
        reply_token: Some(token(number)),
        who: None,
        outcome: number.to_string(),
        details: Some(format!("words {number}")),
    }));
    changes
}

fn child(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// How long a child may take for its next line. It is not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);

/// The lines of a child, as they come. The list ends when the child does.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    let out = child.stdout.take().expect("piped");
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).all(|line| to.send(line).is_ok())
    });
    lines
}

#[test]
#[ignore = "the process that the test below kills"]
fn commit_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (mut store, recovered) =
        Store::open(Path::new(&folder), Retention::default()).expect("opened");
    let first = recovered.next_order / EVENTS;
    let mut out = std::io::stdout();
    for number in first.. {
        store.commit(&numbered(number)).expect("stored");
        writeln!(out, "stored {number}").expect("told");
        out.flush().expect("told");
    }
}

/// How many whole commits are there; panics at half a one.
fn whole_commits(folder: &Path, recovered: &RecoveredStore, store: &Store) -> u64 {
    assert_eq!(recovered.next_order % EVENTS, 0, "half a commit");
    let commits = recovered.next_order / EVENTS;
    let order = |event| match event {
        Ok(ReplayedEvent::Event(event)) => event.order,
        other => panic!("{other:?}"),
    };
    let orders: Vec<u64> = recovered.replay(&store.reader()).map(order).collect();
    assert_eq!(orders, (0..commits * EVENTS).collect::<Vec<_>>());
    let open = recovered.open_asks.iter().map(|ask| ask.reply_token.as_str().to_owned());
    let last = commits.checked_sub(1).map(|last| format!("rpl_{last}"));
    assert_eq!(open.collect::<Vec<_>>(), last.into_iter().collect::<Vec<_>>());
    assert_eq!(recovered.settled_asks.len() as u64, commits.saturating_sub(1));
    let verified = audit::verify(&folder.join("audit.jsonl")).expect("the chain holds");
    assert_eq!(verified.entries, commits, "log and store disagree");
    assert_eq!(store.audit().last_hash, verified.last_hash);
    if let Some(last) = commits.checked_sub(1) {
        let words = store.reader().details(commits).expect("read");
        assert_eq!(words, Some(format!("words {last}")));
    }
    commits
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_half_done_is_seen_when_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let mut acknowledged = 0;
    for round in 0..24 {
        let mut child = child("commit_until_killed", folder.path());
        let lines = lines_of(&mut child);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Killed after this many commits, at some moment within the next ones; or while it opens.
        let commits = (seed >> 33) % 12;
        let within = Duration::from_micros((seed >> 40) % 3000);
        let mut told = 0;
        let mut note = |line: String| {
            if let Some((_, number)) = line.rsplit_once("stored ") {
                acknowledged = number.parse::<u64>().expect("a number") + 1;
                told += 1;
            }
            told
        };
        if round % 6 != 5 {
            while note(lines.recv_timeout(PATIENCE).expect("another commit")) <= commits {}
        }
        let begun = Instant::now();
        while begun.elapsed() < within {
            std::hint::spin_loop();
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        // Lines that it wrote before it died count.
        for line in &lines {
            note(line);
        }
        let (store, recovered) =
            Store::open(folder.path(), Retention::default()).expect("opens after the kill");
        let found = whole_commits(folder.path(), &recovered, &store);
        assert!(found >= acknowledged, "round {round}: {acknowledged} told, {found} there");
        assert!(found <= acknowledged + 1, "more than was being written");
        // A commit that was stored but not reported counts; the next process continues after it.
        acknowledged = found;
    }
    assert!(acknowledged > 24, "the test must have seen commits");
}

#[test]
#[ignore = "the other process of the test below"]
fn hold_until_told() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let _store = Store::open(Path::new(&folder), Retention::default()).expect("opened");
    writeln!(std::io::stdout(), "open").expect("told");
    std::thread::park();
}

#[test]
fn two_processes_cannot_have_the_same_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = child("hold_until_told", folder.path());
    let lines = lines_of(&mut child);
    while !lines.recv_timeout(PATIENCE).expect("it opens the store").ends_with("open") {}
    let error = Store::open(folder.path(), Retention::default()).map(|_| ()).expect_err("in use");
    assert_eq!(error, OpenError::InUse { folder: folder.path().to_owned() });
    child.kill().expect("killed");
    child.wait().expect("gone");
    Store::open(folder.path(), Retention::default()).expect("free again");
}

/// Needs a disk of a few megabytes: mount -t tmpfs -o size=48m,mode=700 none FOLDER.
#[test]
#[ignore = "needs AAEP_SMALL_DISK, a folder on a very small disk"]
fn a_disk_that_is_really_full() {
    let disk = std::env::var_os("AAEP_SMALL_DISK").expect("AAEP_SMALL_DISK names the folder");
    let folder = Path::new(&disk).join("store");
    let (mut store, recovered) = Store::open(&folder, Retention::default()).expect("opened");
    let first = SessionId::parse("sess_0").expect("digits");
    let mut number = recovered.next_order / EVENTS;
    for megabytes in [4, 2, 0] {
        // What takes the room shrinks from round to round.
        let ballast = Path::new(&disk).join("ballast");
        fs::write(&ballast, vec![1; megabytes << 20]).expect("room for ballast");
        let before = number;
        let error = loop {
            match store.commit(&numbered(number)) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, CommitError::Full);
        assert!(number > before, "nothing went in after room was made");
        assert_eq!(store.reader().session(&first).expect("read").expect("there").events, number);
    }
}

/// Needs the same. Deletes on a really full disk, with the store open and after a kill.
#[test]
#[ignore = "needs AAEP_SMALL_DISK, a folder on a very small disk"]
fn deleting_makes_room_on_a_disk_that_is_really_full() {
    let disk = std::env::var_os("AAEP_SMALL_DISK").expect("AAEP_SMALL_DISK names the folder");
    let folder = Path::new(&disk).join("deleting");
    let mut number = 0;
    let mut order = 0;
    for round in 0..4 {
        let (mut store, recovered) = Store::open(&folder, Retention::default()).expect("opened");
        order = order.max(recovered.next_order);
        let name = |number: u64| SessionId::parse(&format!("sess_{number}")).expect("digits");
        // Fills the disk with sessions that have ended.
        let first = number;
        loop {
            let mut changes = vec![event(order, number, 50_000)];
            changes.push(StoreChange::SessionEnded { session_id: name(number), unix_us: 1 });
            match store.commit(&changes) {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error, CommitError::Full);
                    break;
                }
            }
            order += 1;
            number += 1;
        }
        assert!(number > first, "round {round}: nothing went in");
        let ballast = Path::new(&disk).join("ballast");
        let mut file = File::create(&ballast).expect("a file");
        while file.write_all(&[1; 4096]).is_ok() {}
        let reader = store.reader();
        assert!(reader.session(&name(first)).expect("history can be read").is_some());
        if round % 2 == 1 {
            // As a kill leaves it.
            drop(store);
            let opened = Store::open(&folder, Retention::default());
            store = opened.expect("opens on a full disk").0;
        }
        let kept = number - 1;
        for session in first..kept {
            store.delete_session(&name(session), None, 2).expect("deleted on a full disk");
        }
        drop(file);
        let changes = [event(order, 999_999, 50_000)];
        store.commit(&changes).expect("there is room again, with the ballast still there");
        order += 1;
        assert!(store.reader().session(&name(kept)).expect("read").is_some());
        fs::remove_file(ballast).expect("removed");
        drop(store);
    }
}

/// Four hundred megabytes of ended sessions, few of which are read again.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "writes half a gigabyte; run it alone"]
fn a_large_store_takes_little_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = Store::open(folder.path(), Retention::default()).expect("opened");
    for session in 0..100 {
        let orders = session * 4000..(session + 1) * 4000;
        let mut changes: Vec<StoreChange> =
            orders.map(|order| event(order, session, 1000)).collect();
        let session_id = SessionId::parse(&format!("sess_{session}")).expect("digits");
        changes.push(StoreChange::SessionEnded { session_id, unix_us: 1 });
        store.commit(&changes).expect("stored");
    }
    drop(store);
    let size = fs::metadata(folder.path().join("store.redb")).expect("a file").len();
    assert!(size > 400_000_000, "{size} bytes are not large");
    let (store, recovered) = Store::open(folder.path(), Retention::default()).expect("opened");
    let events = recovered.replay(&store.reader()).count();
    assert!(0 < events && events < 100_000);
    drop(store);
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).expect("Linux has it");
    let kilobytes: u64 =
        peak.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    assert!(kilobytes < 200_000, "{peak} for a file of {size} bytes");
    writeln!(std::io::stdout(), "{peak} for a file of {size} bytes").expect("told");
}

/// Compares durable commits with appending to a bare file and syncing it, in turns in one run.
#[test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
fn measure_durable_commits() {
    const ROUNDS: u32 = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let mut out = std::io::stdout();
    for sessions in [1, 8] {
        for group in [1, 10, 100] {
            let path = folder.path().join(format!("store-{sessions}-{group}"));
            let (mut store, _) = Store::open(&path, Retention::default()).expect("opened");
            let mut bare = File::create(folder.path().join("bare")).expect("made");
            let bytes = vec![b'x'; 500 * usize::try_from(group).expect("small")];
            let (mut stored, mut appended) = (Duration::ZERO, Duration::ZERO);
            let mut order = 0;
            for round in 0..2 * ROUNDS {
                let name = u64::from(round / 100) * sessions;
                let changes: Vec<StoreChange> =
                    (order..order + group).map(|it| event(it, name + it % sessions, 500)).collect();
                order += group;
                let begun = Instant::now();
                store.commit(&changes).expect("stored");
                let middle = Instant::now();
                bare.write_all(&bytes).expect("written");
                bare.sync_data().expect("synced");
                // The first half warms both up.
                if round >= ROUNDS {
                    stored += middle - begun;
                    appended += middle.elapsed();
                }
            }
            let each = stored / ROUNDS;
            writeln!(
                out,
                "{sessions} sessions, groups of {group}: {each:?} a commit, {:.0} commits/s, {:.0} events/s, bare {:?}, ratio {:.2}",
                1.0 / each.as_secs_f64(),
                f64::from(u32::try_from(group).expect("small")) / each.as_secs_f64(),
                appended / ROUNDS,
                appended.as_secs_f64() / stored.as_secs_f64(),
            )
            .expect("told");
        }
    }
}
