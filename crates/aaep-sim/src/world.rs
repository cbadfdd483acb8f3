//! One world: its agents and subscribers, the schedule of what happens next, and the result.

mod feed;
mod stored;
mod turns;
mod words;

use std::collections::BTreeMap;

use aaep::ReplyToken;
use aaep::extension::AskOutcome;
use aaep_engine::{Engine, EngineInput, Now, PrincipalNumber};

use self::stored::WorldStorage;
use crate::agent::SimulatedAgent;
use crate::check::{self, Invariant, WorldMoment};
use crate::hub::{self, WorldHub};
use crate::rng::SeededRng;
use crate::story::WorldStory;
use crate::subscriber::SimulatedSubscriber;
use crate::truth::WorldTruth;

/// When a world begins, in microseconds since the Unix epoch.
const BEGIN_UNIX_US: i64 = 1_790_000_000_000_000;

/// The most steps of a world. One that takes more counts as endless.
const MAX_STEPS: u64 = 60_000;

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantFailure {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// What it demands.
    pub meaning: &'static str,
    /// What was found instead.
    pub what: String,
}

/// The result of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldOutcome {
    /// Its seed.
    pub seed: u64,
    /// The invariant that failed, if any.
    pub failure: Option<InvariantFailure>,
    /// The story of the run.
    pub story: WorldStory,
    /// How many inputs the hub handled.
    pub steps: u64,
}

/// Something that is scheduled to happen.
#[derive(Debug)]
enum ScheduledTurn {
    AgentActs(usize),
    SubscriberActs(usize),
    /// A message reaches the hub.
    Reaches(WorldSpeaker, Box<EngineInput>),
    /// The next event on a subscriber's wire arrives, if the connection is still the one with this number.
    Arrives(usize, u64),
    /// The wire of a subscriber has taken everything that it was sent, if the connection is still
    /// the one with this number.
    Takes(usize, u64),
    /// The hub notices that the connection of a subscription broke.
    Notices(usize, u64),
    /// An agent learns the outcome of its ask.
    Answers(usize, ReplyToken, AskOutcome),
    /// Something goes wrong in the world.
    Trouble,
    /// From now on nothing goes wrong, and everyone finishes.
    Calm,
}

/// The sender of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorldSpeaker {
    Agent,
    Subscriber(usize),
}

/// A running world.
pub struct World {
    rng: SeededRng,
    now_us: u64,
    /// What the machine's clock shows, in Unix time, when the world's own time is zero.
    unix_us: i64,
    hub: Box<dyn WorldHub>,
    /// What the hub stored, to recover from after a kill.
    stored: WorldStorage,
    todo: BTreeMap<(u64, u64), ScheduledTurn>,
    counter: u64,
    agents: Vec<SimulatedAgent>,
    /// An agent that opens as many sessions as it can.
    hog: SimulatedAgent,
    agent_free_us: Vec<u64>,
    subscribers: Vec<SimulatedSubscriber>,
    truth: WorldTruth,
    invariants: Vec<Box<dyn Invariant>>,
    story: WorldStory,
    failure: Option<InvariantFailure>,
    steps: u64,
    /// How many outputs the hub gave.
    outputs: u64,
    is_calm: bool,
    /// Whether the last session has begun. Subscribers that missed something while no session ran
    /// are told so in it.
    has_closed: bool,
}

/// Runs the world of a seed around the real engine.
pub fn run(seed: u64) -> WorldOutcome {
    run_with(seed, |engine| Box::new(engine))
}

/// Runs the world of a seed around a hub that `make` builds from the real engine.
pub fn run_with(seed: u64, make: impl FnOnce(Engine) -> Box<dyn WorldHub>) -> WorldOutcome {
    let mut world = World::new(seed, make);
    world.run();
    WorldOutcome { seed, failure: world.failure, story: world.story, steps: world.steps }
}

impl World {
    fn new(seed: u64, make: impl FnOnce(Engine) -> Box<dyn WorldHub>) -> Self {
        let mut rng = SeededRng::new(seed);
        let ceiling = rng.chance(15).then(|| rng.between(3, 40));
        let is_killed = rng.chance(25);
        let agents = rng.between(1, 4);
        let subscribers = rng.size(1, 7);
        let is_patient = rng.chance(35);
        // In some worlds an agent's principal also subscribes, and tries to answer its own asks (ruling 37).
        let answers_itself = rng.chance(25);
        let subscriber = |number, rng: &mut SeededRng| {
            let mut subscriber = SimulatedSubscriber::new(number, is_patient, rng);
            if answers_itself && number == 0 {
                subscriber.principal = PrincipalNumber(0);
            }
            subscriber
        };
        let mut world = World {
            now_us: 1_000_000,
            unix_us: BEGIN_UNIX_US,
            hub: make(hub::engine(seed, ceiling)),
            stored: WorldStorage::new(seed, ceiling, is_killed),
            todo: BTreeMap::new(),
            counter: 0,
            hog: SimulatedAgent::hog(&mut SeededRng::new(seed)),
            agents: (0..agents)
                .map(|key| SimulatedAgent::new(PrincipalNumber(key * 10), &mut rng))
                .collect(),
            agent_free_us: vec![0; usize::try_from(agents).unwrap_or(0)],
            subscribers: (0..subscribers).map(|number| subscriber(number, &mut rng)).collect(),
            truth: WorldTruth::new(hub::at_a_time(seed), hub::is_cramped(seed)),
            invariants: check::all(hub::engine(seed, ceiling), hub::memory_bytes(seed)),
            story: WorldStory::default(),
            failure: None,
            steps: 0,
            outputs: 0,
            is_calm: false,
            has_closed: false,
            rng,
        };
        for at in 0..world.agents.len() {
            let pause = world.rng.below(3_000_000);
            world.later(pause, ScheduledTurn::AgentActs(at));
        }
        for at in 0..world.subscribers.len() {
            // Most subscribers connect at the beginning; some join late.
            let pause = if world.rng.chance(70) { 0 } else { world.rng.below(12_000_000) };
            world.later(pause, ScheduledTurn::SubscriberActs(at));
        }
        let calm = world.rng.between(8_000_000, 25_000_000);
        world.later(calm, ScheduledTurn::Calm);
        world.later(1_000_000, ScheduledTurn::Trouble);
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
                    // Timers sometimes fire late, but before the next scheduled turn.
                    let late = if self.rng.chance(10) { self.rng.below(20_000) } else { 0 };
                    let at = (deadline + late).min(next.unwrap_or(u64::MAX)).max(deadline);
                    self.now_us = self.now_us.max(at);
                    self.feed(None, &EngineInput::Tick);
                }
                _ => {
                    let Some(((at, _), todo)) = self.todo.pop_first() else { break };
                    self.now_us = self.now_us.max(at);
                    self.turn(todo);
                }
            }
        }
        self.show(&WorldMoment::Finished);
    }

    /// Shows a moment to all invariants.
    fn show(&mut self, moment: &WorldMoment<'_>) {
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
        self.failure = Some(InvariantFailure { invariant, meaning, what });
    }

    fn now(&self) -> Now {
        let since = i64::try_from(self.now_us).unwrap_or(i64::MAX);
        Now { monotonic_us: self.now_us, unix_us: self.unix_us + since }
    }

    /// Schedules a turn after this many microseconds.
    fn later(&mut self, pause_us: u64, todo: ScheduledTurn) {
        self.at(self.now_us + pause_us, todo);
    }

    fn at(&mut self, at_us: u64, todo: ScheduledTurn) {
        self.counter += 1;
        self.todo.insert((at_us, self.counter), todo);
    }

    fn tell(&mut self, what: &str) {
        self.story.tell(self.now_us, what);
    }
}
