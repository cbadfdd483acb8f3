//! One world: who is in it, what happens next, and what came of it.

mod feed;
mod stored;
mod turns;
mod words;

use std::collections::BTreeMap;

use aaep::ReplyToken;
use aaep_engine::{Engine, Input, Now, Resolution};

use self::stored::Stored;
use crate::agent::Agent;
use crate::check::{self, Invariant, Moment};
use crate::hub::{self, Hub};
use crate::rng::Rng;
use crate::story::Story;
use crate::subscriber::Subscriber;
use crate::truth::Truth;

/// When a world begins, in microseconds since 1970 began.
const BEGIN_UNIX_US: i64 = 1_790_000_000_000_000;

/// The most steps of a world: one that takes more never ends.
const MAX_STEPS: u64 = 60_000;

/// What failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// What it demands.
    pub meaning: &'static str,
    /// What is wrong.
    pub what: String,
}

/// What came of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What failed, if something did.
    pub failure: Option<Failure>,
    /// What happened.
    pub story: Story,
    /// How many inputs the hub handled.
    pub steps: u64,
}

/// Something that will happen.
#[derive(Debug)]
enum Todo {
    AgentActs(usize),
    SubscriberActs(usize),
    /// Something that was said reaches the hub.
    Reaches(Who, Box<Input>),
    /// The next event on a subscriber's wire arrives, if the connection is still that one.
    Arrives(usize, u64),
    /// The wire of a subscriber has taken all that it was sent, if the connection is still that one.
    Takes(usize, u64),
    /// The hub notices that the connection of a subscription broke.
    Notices(usize, u64),
    /// An agent hears how its question was settled.
    Answers(usize, ReplyToken, Resolution),
    /// Something goes wrong in the world.
    Trouble,
    /// From now on nothing goes wrong any more, and everyone finishes.
    Calm,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Agent,
    Subscriber(usize),
}

/// A world that runs.
pub struct World {
    rng: Rng,
    now_us: u64,
    /// How far the clock of the machine is off.
    unix_us: i64,
    hub: Box<dyn Hub>,
    /// What the hub stored, for when it is killed.
    stored: Stored,
    todo: BTreeMap<(u64, u64), Todo>,
    counter: u64,
    agents: Vec<Agent>,
    /// One that takes as many sessions as it can.
    hog: Agent,
    agent_free_us: Vec<u64>,
    subscribers: Vec<Subscriber>,
    truth: Truth,
    invariants: Vec<Box<dyn Invariant>>,
    story: Story,
    failure: Option<Failure>,
    steps: u64,
    is_calm: bool,
    /// Whether the last session has begun: who missed something while no session ran is told in it.
    has_closed: bool,
}

/// Runs the world of a seed around the real engine.
pub fn run(seed: u64) -> Outcome {
    run_with(seed, |engine| Box::new(engine))
}

/// Runs the world of a seed around a hub that is made of the real engine.
pub fn run_with(seed: u64, make: impl FnOnce(Engine) -> Box<dyn Hub>) -> Outcome {
    let mut world = World::new(seed, make);
    world.run();
    Outcome { seed, failure: world.failure, story: world.story, steps: world.steps }
}

impl World {
    fn new(seed: u64, make: impl FnOnce(Engine) -> Box<dyn Hub>) -> Self {
        let mut rng = Rng::new(seed);
        let ceiling = rng.chance(15).then(|| rng.between(3, 40));
        let is_killed = rng.chance(25);
        let agents = rng.between(1, 4);
        let subscribers = rng.size(1, 7);
        let is_patient = rng.chance(35);
        // In some worlds an agent's principal listens too, and tries to answer itself (ruling 37).
        let answers_itself = rng.chance(25);
        let subscriber = |number, rng: &mut Rng| {
            let mut subscriber = Subscriber::new(number, is_patient, rng);
            if answers_itself && number == 0 {
                subscriber.principal = 0;
            }
            subscriber
        };
        let mut world = World {
            now_us: 1_000_000,
            unix_us: BEGIN_UNIX_US,
            hub: make(hub::engine(seed, ceiling)),
            stored: Stored::new(seed, ceiling, is_killed),
            todo: BTreeMap::new(),
            counter: 0,
            hog: Agent::hog(&mut Rng::new(seed)),
            agents: (0..agents).map(|key| Agent::new(key * 10, &mut rng)).collect(),
            agent_free_us: vec![0; usize::try_from(agents).unwrap_or(0)],
            subscribers: (0..subscribers).map(|number| subscriber(number, &mut rng)).collect(),
            truth: Truth::new(hub::at_a_time(seed), hub::is_cramped(seed)),
            invariants: check::all(hub::engine(seed, ceiling), hub::memory_bytes(seed)),
            story: Story::default(),
            failure: None,
            steps: 0,
            is_calm: false,
            has_closed: false,
            rng,
        };
        for at in 0..world.agents.len() {
            let pause = world.rng.below(3_000_000);
            world.later(pause, Todo::AgentActs(at));
        }
        for at in 0..world.subscribers.len() {
            // Most are there from the beginning; some come late.
            let pause = if world.rng.chance(70) { 0 } else { world.rng.below(12_000_000) };
            world.later(pause, Todo::SubscriberActs(at));
        }
        let calm = world.rng.between(8_000_000, 25_000_000);
        world.later(calm, Todo::Calm);
        world.later(1_000_000, Todo::Trouble);
        world
    }

    fn run(&mut self) {
        while self.failure.is_none() {
            if self.steps > MAX_STEPS {
                self.fail("comes to an end", "A world comes to an end.", "It never ended.".into());
                return;
            }
            let next = self.todo.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.hub.deadline();
            match (next, deadline) {
                (None, None) if self.has_closed => break,
                (None, None) => self.one_more_session(),
                (next, Some(deadline)) if next.is_none_or(|next| deadline <= next) => {
                    // Timers fire late now and then, but before whatever else comes.
                    let late = if self.rng.chance(10) { self.rng.below(20_000) } else { 0 };
                    let at = (deadline + late).min(next.unwrap_or(u64::MAX)).max(deadline);
                    self.now_us = self.now_us.max(at);
                    self.feed(None, &Input::Tick);
                }
                _ => {
                    let Some(((at, _), todo)) = self.todo.pop_first() else { break };
                    self.now_us = self.now_us.max(at);
                    self.turn(todo);
                }
            }
        }
        self.show(&Moment::Finished);
    }

    /// Shows a moment to all invariants.
    fn show(&mut self, moment: &Moment<'_>) {
        if self.failure.is_some() {
            return;
        }
        for invariant in &mut self.invariants {
            if let Err(what) = invariant.see(&self.truth, moment) {
                let (name, meaning) = (invariant.name(), invariant.meaning());
                self.fail(name, meaning, what);
                return;
            }
        }
    }

    fn fail(&mut self, invariant: &'static str, meaning: &'static str, what: String) {
        self.story.tell(self.now_us, &format!("BROKEN: {invariant}. {what}"));
        self.failure = Some(Failure { invariant, meaning, what });
    }

    fn now(&self) -> Now {
        let since = i64::try_from(self.now_us).unwrap_or(i64::MAX);
        Now { monotonic_us: self.now_us, unix_us: self.unix_us + since }
    }

    /// Something will happen after so many microseconds.
    fn later(&mut self, pause_us: u64, todo: Todo) {
        self.at(self.now_us + pause_us, todo);
    }

    fn at(&mut self, at_us: u64, todo: Todo) {
        self.counter += 1;
        self.todo.insert((at_us, self.counter), todo);
    }

    fn tell(&mut self, what: &str) {
        self.story.tell(self.now_us, what);
    }
}
