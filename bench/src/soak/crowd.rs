//! All subscribers in one thread: what comes for each of them, and what each of them does when.

mod hear;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use serde_json::json;

use super::jobs::{Done, Job, Jobs};
use super::subscriber::{Kind, Line, Presence, Subscriber};
use super::totals::Totals;
use crate::wire::{Opened, Place, Wire};

/// Not a subscriber.
const WAKER: Token = Token(usize::MAX);

/// How often it is looked whether somebody is due.
const LOOK: Duration = Duration::from_millis(100);

/// How long nobody may hear anything, in the end, until what is missing counts as lost. Who takes three events a
/// second may hear for a long time what the hub remembers.
const SILENCE: Duration = Duration::from_mins(1);

/// How long the end takes at most.
const PATIENCE: Duration = Duration::from_hours(2);

/// How long a hub has to hear that someone leaves.
const FAREWELL: Duration = Duration::from_secs(1);

/// One in this many visitors leaves without closing its subscription, and never comes back to it.
const VANISHING: u64 = 10;

/// How the soak comes to its end. Everyone comes and stays while agents still speak: that something is missing
/// is told in a session that runs.
#[derive(Default)]
pub(super) struct Ending {
    /// Whether everyone is to come and to stay.
    pub(super) must_gather: AtomicBool,
    /// Whether everyone is here and reads.
    pub(super) has_gathered: AtomicBool,
    /// Whether the agents are done, so that everyone hears the rest and goes.
    pub(super) is_over: AtomicBool,
}

/// The time after the last event.
struct Over {
    since: Instant,
    deliveries: u64,
    /// When somebody last heard something.
    heard: Instant,
}

pub(super) struct Crowd {
    poll: Poll,
    subscribers: Vec<Subscriber>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    jobs: Jobs,
    done: Receiver<Done>,
    totals: Arc<Totals>,
    /// The number of the session that begins next.
    next_session: Arc<AtomicU64>,
    ending: Arc<Ending>,
    buffer: Vec<u8>,
}

impl Crowd {
    pub(super) fn new(
        place: &Place,
        count: usize,
        totals: Arc<Totals>,
        next_session: Arc<AtomicU64>,
        ending: Arc<Ending>,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(|error| error.to_string())?;
        let (jobs, done) = Jobs::start(place, waker);
        let subscribers = (0..count).map(Subscriber::new).collect();
        let timers = BinaryHeap::new();
        let buffer = vec![0; 1 << 16];
        Ok(Crowd { poll, subscribers, timers, jobs, done, totals, next_session, ending, buffer })
    }

    /// Listens until everything was heard, or until it takes too long.
    pub(super) fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut over: Option<Over> = None;
        let mut is_gathering = false;
        for at in 0..self.subscribers.len() {
            self.come(at);
        }
        loop {
            match self.poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(error.to_string());
                }
                _ => {}
            }
            for event in &events {
                if event.token() != WAKER {
                    self.read(event.token().0);
                }
            }
            while let Ok(done) = self.done.try_recv() {
                self.take(done);
            }
            let now = Instant::now();
            while let Some(Reverse((due, at))) = self.timers.peek().copied()
                && due <= now
            {
                self.timers.pop();
                if self.subscribers[at].due == Some(due) {
                    self.act(at);
                }
            }
            if self.ending.must_gather.load(Ordering::Relaxed) {
                if !std::mem::replace(&mut is_gathering, true) {
                    self.gather();
                }
                let is_here = |it: &Subscriber| matches!(it.presence, Presence::Here(_));
                let is_complete = self.subscribers.iter().all(is_here);
                self.ending.has_gathered.store(is_complete, Ordering::Relaxed);
            }
            if self.ending.is_over.load(Ordering::Relaxed) {
                let deliveries = self.totals.deliveries.load(Ordering::Relaxed);
                let over = over.get_or_insert(Over { since: now, deliveries, heard: now });
                if std::mem::replace(&mut over.deliveries, deliveries) != deliveries {
                    over.heard = now;
                }
                let takes_too_long =
                    over.heard.elapsed() > SILENCE || over.since.elapsed() > PATIENCE;
                if self.has_heard_all() || takes_too_long {
                    self.judge();
                    return Ok(());
                }
            }
        }
    }

    /// What is due for a subscriber.
    fn act(&mut self, at: usize) {
        let must_stay = self.ending.must_gather.load(Ordering::Relaxed);
        let subscriber = &mut self.subscribers[at];
        subscriber.due = None;
        match std::mem::replace(&mut subscriber.presence, Presence::Away) {
            Presence::Away => self.come(at),
            Presence::Coming => subscriber.presence = Presence::Coming,
            Presence::Here(line) if must_stay => subscriber.presence = Presence::Here(line),
            Presence::Here(line) => self.turn(at, line),
            Presence::Stalled(line) => {
                if must_stay || subscriber.random.between(0, 1) == 0 {
                    self.listen(at, line);
                } else {
                    drop(line);
                    self.leave(at, Duration::ZERO);
                }
            }
            Presence::Leaving(line) => {
                drop(line);
                subscriber.begin_anew();
                let pause = subscriber.kind.pauses(&mut subscriber.random);
                self.leave(at, pause);
            }
        }
    }

    /// A subscriber that was here does what it does now and then.
    fn turn(&mut self, at: usize, mut line: Line) {
        let subscriber = &mut self.subscribers[at];
        let pause = subscriber.kind.pauses(&mut subscriber.random);
        match subscriber.kind {
            Kind::Stalled => {
                let deregistered = self.poll.registry().deregister(line.source());
                if deregistered.is_err() {
                    self.totals.fault("a connection could not be set aside".to_owned());
                }
                subscriber.presence = Presence::Stalled(line);
                self.set_due(at, pause);
            }
            Kind::Visitor if subscriber.random.between(1, VANISHING) == 1 => {
                drop(line);
                subscriber.begin_anew();
                Totals::add(&self.totals.vanished);
                self.leave(at, pause);
            }
            Kind::Visitor => {
                let id = &subscriber.subscription_id;
                let message = json!({ "type": "subscription.close", "subscription_id": id });
                if subscriber.wire == Wire::Stream {
                    self.do_soon(Job::Say { message, line: Some(line) });
                    self.subscribers[at].begin_anew();
                    self.leave(at, pause);
                } else {
                    // What it does not read any more does not count.
                    let _ = self.poll.registry().deregister(line.source());
                    if let Err(error) = line.send(&subscriber.wire.message(&message)) {
                        self.totals.fault(format!("subscriber {at} could not leave: {error}"));
                    }
                    subscriber.presence = Presence::Leaving(line);
                    self.set_due(at, FAREWELL);
                }
            }
            _ => {
                drop(line);
                self.leave(at, pause);
            }
        }
    }

    fn set_due(&mut self, at: usize, time: Duration) {
        let due = Instant::now() + time;
        self.subscribers[at].due = Some(due);
        self.timers.push(Reverse((due, at)));
    }

    /// A subscriber is not connected any more, and comes back later.
    fn leave(&mut self, at: usize, pause: Duration) {
        self.totals.here.fetch_sub(1, Ordering::Relaxed);
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = Presence::Away;
        subscriber.read = Vec::new();
        self.set_due(at, pause);
    }

    fn do_soon(&self, job: Job) {
        if !self.jobs.hand_in(job) {
            self.totals.fault("nobody connects any more".to_owned());
        }
    }

    fn come(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = Presence::Coming;
        let resume = subscriber.resume();
        Totals::add(if resume.is_some() { &self.totals.returns } else { &self.totals.arrivals });
        let job = Job::Open {
            subscriber: at,
            wire: subscriber.wire,
            capabilities: subscriber.capabilities.clone(),
            resume,
            has_small_buffer: subscriber.kind == Kind::Stalled,
        };
        self.do_soon(job);
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Opened {
                subscriber: at,
                opened: Ok(Opened { socket, subscription_id, read }),
            } => match Line::new(socket) {
                Ok(line) => {
                    let subscriber = &mut self.subscribers[at];
                    subscriber.subscription_id = subscription_id;
                    subscriber.read = read;
                    if subscriber.kind == Kind::Visitor {
                        let begun = self.next_session.load(Ordering::Relaxed);
                        subscriber.hearing.joins_before(begun);
                    }
                    Totals::add(&self.totals.here);
                    if !std::mem::replace(&mut subscriber.has_come, true) {
                        Totals::add(&self.totals.have_come);
                    }
                    self.listen(at, line);
                }
                Err(error) => self.totals.fault(format!("subscriber {at}: {error}")),
            },
            Done::Opened { subscriber: at, opened: Err(why) } => {
                self.totals.fault(format!("subscriber {at} could not come: {why}"));
                self.subscribers[at].presence = Presence::Away;
                self.set_due(at, FAREWELL);
            }
            Done::Said(Ok(())) => {}
            Done::Said(Err(why)) => self.totals.fault(format!("a subscriber was not heard: {why}")),
        }
    }

    /// A subscriber reads from now on.
    fn listen(&mut self, at: usize, mut line: Line) {
        let registry = self.poll.registry();
        if let Err(error) = registry.register(line.source(), Token(at), Interest::READABLE) {
            self.totals.fault(format!("subscriber {at}: {error}"));
        }
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = Presence::Here(line);
        subscriber.stay();
        if let Some(due) = subscriber.due {
            self.timers.push(Reverse((due, at)));
        }
        self.read(at);
    }

    /// At the end, everyone comes and reads.
    fn gather(&mut self) {
        for at in 0..self.subscribers.len() {
            let presence = &self.subscribers[at].presence;
            if matches!(presence, Presence::Away | Presence::Stalled(_)) {
                self.set_due(at, Duration::ZERO);
            }
        }
    }

    /// How many sessions a subscriber must have heard, if that is known.
    fn wanted(&self, subscriber: &Subscriber) -> Option<u64> {
        let is_known = subscriber.kind != Kind::Visitor && subscriber.hearing.gaps == 0;
        is_known.then(|| self.totals.sessions.load(Ordering::Relaxed))
    }

    fn has_heard_all(&self) -> bool {
        self.subscribers.iter().all(|it| {
            let is_here = matches!(it.presence, Presence::Here(_));
            let has_all = self.wanted(it).is_none_or(|wanted| it.hearing.ended >= wanted);
            is_here && has_all && it.hearing.unended() == 0
        })
    }

    /// Notes what anyone has not heard in the end.
    fn judge(&self) {
        for (at, subscriber) in self.subscribers.iter().enumerate() {
            let (kind, hearing) = (subscriber.kind, &subscriber.hearing);
            if !matches!(subscriber.presence, Presence::Here(_)) {
                self.totals.fault(format!("subscriber {at}, {kind:?}, is not there in the end"));
            }
            if let Some(wanted) = self.wanted(subscriber).filter(|it| *it != hearing.ended) {
                let ended = hearing.ended;
                self.totals
                    .fault(format!("subscriber {at}, {kind:?}: {ended} sessions of {wanted}"));
            } else if hearing.unended() > 0 {
                let count = hearing.unended();
                self.totals
                    .fault(format!("subscriber {at}, {kind:?}: {count} sessions without end"));
            }
        }
    }
}
