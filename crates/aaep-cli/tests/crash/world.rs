//! One hub with agents, people and subscribers, killed again and again.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::askers::{Asker, ask_all_again};
use crate::board::Board;
use crate::check::check;
use crate::daemon::{Daemon, Place};
use crate::http::Client;
use crate::ledger::{Ledger, Seen, Wants};
use crate::publishers::Publisher;
use crate::random::Random;
use crate::stored::Stored;
use crate::subscribers::{Answering, Subscriber};
use crate::work;

/// Longer than anything takes here, so that a world that hangs ends.
const PATIENCE: Duration = Duration::from_mins(2);

/// The longest time from when the hub listens until it is killed.
const MAX_LIFE_MS: u64 = 150;

/// The longest time from its start until it is killed, if it is killed while it starts.
const MAX_START_MS: u64 = 60;

/// How many agents ask.
const ASKERS: u64 = 6;

/// How many faults are shown.
const SHOWN: usize = 20;

pub(crate) struct World {
    board: Arc<Board>,
    ledger: Arc<Ledger>,
    place: Place,
    random: Random,
    subscribers: Vec<JoinHandle<()>>,
    agents: Vec<JoinHandle<()>>,
    answering: Arc<Answering>,
    kills: u64,
    kills_while_starting: u64,
}

/// Lets every thread that still waits end, in any case.
struct GoHome(Arc<Board>);

impl Drop for GoHome {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl World {
    /// Lets it run, with this many kills, and panics if anything is wrong at the end.
    pub(crate) fn run(seed: u64, rounds: u64) -> Seen {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World {
            board: Arc::default(),
            ledger: Arc::default(),
            place: Place::new(folder.path()),
            random: Random::new(seed),
            subscribers: Vec::new(),
            agents: Vec::new(),
            answering: Arc::default(),
            kills: 0,
            kills_while_starting: 0,
        };
        let home = GoHome(Arc::clone(&world.board));
        let hub = world.place.start();
        world.board.up(hub.address(&world.place));
        world.start_subscribers();
        world.start_agents();
        let hub = world.kill_and_start_again(hub, rounds);
        world.finish();
        drop(home);
        hub.stop();
        for subscriber in std::mem::take(&mut world.subscribers) {
            subscriber.join().expect("a subscriber ended well");
        }
        world.judge(folder)
    }

    fn subscriber(&mut self, name: &str, wants: Wants, answers: bool) -> Subscriber {
        Subscriber {
            board: Arc::clone(&self.board),
            ledger: Arc::clone(&self.ledger),
            name: name.to_owned(),
            wants,
            answering: answers.then(|| Arc::clone(&self.answering)),
            random: self.random.fork(),
        }
    }

    /// Subscribers are there, and have heard something, before anything is killed: with nothing heard,
    /// nobody could say where they were.
    fn start_subscribers(&mut self) {
        let everything = Wants::Everything;
        let (ready, is_ready) = mpsc::channel();
        let start = |subscriber: Subscriber, run: fn(Subscriber, &Sender<()>)| {
            let ready = ready.clone();
            thread::spawn(move || run(subscriber, &ready))
        };
        let all = [
            start(self.subscriber("stream that answers", everything, true), Subscriber::stream),
            start(self.subscriber("stream", everything, false), Subscriber::stream),
            start(self.subscriber("usual stream", Wants::TheUsual, false), Subscriber::stream),
            start(self.subscriber("socket that answers", everything, true), Subscriber::socket),
            start(self.subscriber("socket", everything, false), Subscriber::socket),
        ];
        self.subscribers.extend(all);
        for _ in &self.subscribers {
            is_ready.recv_timeout(PATIENCE).expect("a subscriber did not get in");
        }
        self.publish_and_be_heard("first");
    }

    fn start_agents(&mut self) {
        let publisher = |name: &str, has_keys| Publisher {
            board: Arc::clone(&self.board),
            ledger: Arc::clone(&self.ledger),
            name: name.to_owned(),
            has_keys,
        };
        let start =
            |publisher: Publisher, run: fn(Publisher)| thread::spawn(move || run(publisher));
        self.agents = vec![
            start(publisher("single", false), Publisher::singles),
            start(publisher("keyed", true), Publisher::singles),
            start(publisher("lines", false), Publisher::lines),
            start(publisher("keyedlines", true), Publisher::lines),
            start(publisher("socket", false), Publisher::socket),
        ];
        for number in 0..ASKERS {
            let asker = Asker {
                board: Arc::clone(&self.board),
                ledger: Arc::clone(&self.ledger),
                name: format!("asker{number}"),
                random: self.random.fork(),
                answering: Arc::clone(&self.answering),
            };
            self.agents.push(thread::spawn(move || asker.run()));
        }
    }

    fn kill_and_start_again(&mut self, mut hub: Daemon, rounds: u64) -> Daemon {
        for _ in 0..rounds {
            self.kills += 1;
            match self.random.below(6) {
                0 => {
                    self.kills_while_starting += 1;
                    // Another hub can start only when the last one is gone.
                    self.board.down();
                    hub.kill();
                    hub = self.place.start();
                    thread::sleep(Duration::from_millis(self.random.below(MAX_START_MS)));
                }
                1 => thread::sleep(Duration::from_millis(self.random.below(MAX_LIFE_MS))),
                2 => {
                    self.wait_for_load();
                    thread::sleep(Duration::from_millis(self.random.below(MAX_LIFE_MS)));
                }
                _ => {
                    self.wait_for_subscribers();
                    thread::sleep(Duration::from_millis(self.random.below(MAX_LIFE_MS)));
                }
            }
            self.board.down();
            hub.kill();
            hub = self.place.start();
            self.board.up(hub.address(&self.place));
        }
        hub
    }

    /// Waits until something was acknowledged: on a busy machine, nobody may have returned before that.
    fn wait_for_load(&self) {
        let before = self.ledger.entries().acknowledged.len();
        self.wait_until("something was acknowledged", |world| {
            world.ledger.entries().acknowledged.len() > before
        });
    }

    /// Waits until all subscribers listen again.
    fn wait_for_subscribers(&self) {
        self.wait_until("everyone listens", |world| {
            let life = world.board.address().map_or(0, |(_, life)| life);
            world.ledger.listen_in(life) == world.subscribers.len()
        });
    }

    /// Lets agents finish, asks for every outcome once more, and waits until subscribers have everything.
    fn finish(&mut self) {
        self.board.wind_down();
        self.wait_until("the agents have finished", |world| {
            world.agents.iter().all(JoinHandle::is_finished)
        });
        for agent in std::mem::take(&mut self.agents) {
            agent.join().expect("an agent ended well");
        }
        ask_all_again(&self.ledger, &self.board);
        self.publish_and_be_heard("last");
    }

    /// Publishes an event, and waits until every subscriber has heard it. They hear in order, so they have
    /// then heard all before it.
    fn publish_and_be_heard(&mut self, name: &str) {
        let (session_id, event_id) = (format!("sess_{name}"), format!("evt_{name}"));
        let event = work::session("world", &session_id, &event_id, "started");
        let answer = Client::new(&self.board).post("/aaep/v1/publish", &event);
        let answer = answer.unwrap_or_else(|_| panic!("the {name} event was not answered"));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let place = crate::ledger::Place::new(session_id, event_id.clone());
        self.ledger.acknowledged(place, false);
        self.wait_until(&format!("everyone has heard the {name} event"), |world| {
            world.ledger.have_all_heard(world.subscribers.len(), &event_id)
        });
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let faults = self.ledger.entries().faults.join("\n");
            assert!(
                began.elapsed() < PATIENCE && faults.is_empty(),
                "it was waited in vain until {what}. {faults}\nThe log of the hub:\n{}",
                self.place.log_text()
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn judge(&self, folder: tempfile::TempDir) -> Seen {
        let stored = Stored::read(&self.place.store());
        let entries = self.ledger.entries();
        let mut faults = check(&entries, &stored);
        let log = self.place.log_text();
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            faults.push(format!("the hub panicked: {line}"));
        }
        if !faults.is_empty() {
            let mut text =
                format!("{} faults. All is kept in {}", faults.len(), folder.keep().display());
            for fault in faults.iter().take(SHOWN) {
                write!(text, "\n- {fault}").expect("a text takes text");
            }
            panic!("{text}");
        }
        Seen::of(&entries, self.kills, self.kills_while_starting)
    }
}
