//! A subscriber whose hub is its child, and is killed two hundred times: on standard input and output that is
//! what a cut is. It hears everything once all the same, because a hub that starts again goes on from its store.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aaep::event::action::CoalesceBoundary;
use aaep_subscriber::Wishes;
use aaep_subscriber::blocking::connect;
use serde_json::{Value, json};

use crate::cuts::hear_everything;
use crate::support::try_post;

const KILLS: usize = 200;
const PATIENCE: Duration = Duration::from_mins(5);

/// What both threads know about the hub.
struct World {
    origin: String,
    process_file: PathBuf,
    kills: AtomicUsize,
    /// How many pieces the hub has accepted.
    pieces: AtomicUsize,
}

impl World {
    fn new(folder: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        World {
            origin: format!("http://{address}"),
            process_file: folder.join("process"),
            kills: AtomicUsize::new(0),
            pieces: AtomicUsize::new(0),
        }
    }

    /// The target that starts a hub, which says under which number it runs.
    fn target(&self, folder: &Path) -> String {
        let address = self.origin.replace("http://", "");
        let inside = |name: &str| folder.join(name).display().to_string();
        let aaep = env!("CARGO_BIN_EXE_aaep");
        format!(
            "stdio:/bin/sh -c \"echo $$ >{}.new; mv {}.new {}; exec {aaep} serve --stdio --bind {address} \
             --socket none --log error --store {} --tokens {} --keys {}\"",
            self.process_file.display(),
            self.process_file.display(),
            self.process_file.display(),
            inside("store"),
            inside("tokens.toml"),
            inside("keys"),
        )
    }

    /// Kills the hub at some moment of its life, again and again.
    fn kill(&self) {
        let began = Instant::now();
        // A subscriber that got nothing at all before the first kill is told that something may be missing.
        while self.pieces.load(Ordering::SeqCst) < 3 {
            assert!(began.elapsed() < PATIENCE, "the hub takes nothing");
            thread::sleep(Duration::from_millis(1));
        }
        while self.kills.load(Ordering::SeqCst) < KILLS {
            assert!(began.elapsed() < PATIENCE, "the hub does not come back");
            let kills = u64::try_from(self.kills.load(Ordering::SeqCst)).expect("few");
            // From before it answers to well after. However slow the machine is, every other one is after.
            while kills % 2 == 1 && !self.answers() {
                assert!(began.elapsed() < PATIENCE, "the hub does not come back");
                thread::sleep(Duration::from_millis(5));
            }
            thread::sleep(Duration::from_millis(20 + kills * 7919 % 180));
            let Ok(process) = fs::read_to_string(&self.process_file) else { continue };
            let _ = fs::remove_file(&self.process_file);
            let killed = Command::new("kill").args(["-KILL", process.trim()]).output();
            if killed.expect("kill runs").status.success() {
                self.kills.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn answers(&self) -> bool {
        TcpStream::connect(self.origin.replace("http://", "")).is_ok()
    }

    /// Publishes an event until the hub acknowledges it.
    fn publish(&self, event: &Value) -> Value {
        let began = Instant::now();
        loop {
            match try_post(&self.origin, "/aaep/v1/publish", event) {
                Some((200..300, body)) => return body,
                Some((400..500, body)) => panic!("{body}"),
                _ => thread::sleep(Duration::from_millis(5)),
            }
            assert!(began.elapsed() < PATIENCE, "the hub takes nothing");
        }
    }

    /// Speaks piece by piece until the hub was killed often enough; all that was said.
    fn speak(&self) -> String {
        let producer = json!({ "agent_id": "reciter" });
        self.publish(&json!({
            "type": "aaep:agent.session.started", "producer": producer, "session_id": "sess_1",
            "event_id": "evt_began", "summary_normal": "Reciting.",
        }));
        let (mut said, mut position) = (String::new(), 0);
        for number in 0.. {
            let is_last = self.kills.load(Ordering::SeqCst) >= KILLS;
            let chunk = format!("{number} ");
            self.publish(&json!({
                "type": "aaep:agent.output.streaming", "producer": producer,
                "session_id": "sess_1", "event_id": format!("evt_piece{number}"),
                "chunk": chunk, "position": position, "complete": is_last,
            }));
            position += chunk.len();
            said.push_str(&chunk);
            self.pieces.fetch_add(1, Ordering::SeqCst);
            if is_last {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.publish(&json!({
            "type": "aaep:agent.session.completed", "producer": producer, "session_id": "sess_1",
            "event_id": "evt_ended", "summary_normal": "Recited.",
        }));
        said
    }
}

#[test]
fn a_subscriber_whose_hub_is_killed_two_hundred_times_on_standard_input_and_output_hears_everything_once()
 {
    let folder = tempfile::tempdir().expect("a folder");
    let world = Arc::new(World::new(folder.path()));
    let target = world.target(folder.path());
    let mut wishes = Wishes::new("reader").longest_wait(Duration::from_millis(20));
    wishes.capabilities.coalesce_boundaries = Some(vec![CoalesceBoundary::None]);
    let mut subscriber = connect(&target, wishes).expect("a hub");
    let (speaker, killer) = (Arc::clone(&world), Arc::clone(&world));
    let speaking = thread::spawn(move || speaker.speak());
    let killing = thread::spawn(move || killer.kill());
    let (heard, reconnected) = hear_everything(&mut subscriber, PATIENCE);
    killing.join().expect("killed");
    let said = speaking.join().expect("spoken");
    assert!(reconnected > KILLS / 8, "{reconnected}");
    assert!(heard == said, "heard {} of {} characters", heard.len(), said.len());
}
