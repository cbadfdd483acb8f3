//! All subscribers in one thread: what each of them receives, and what it does when.

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

use super::jobs::{JobQueue, JobResult, SoakJob};
use super::subscriber::{PolledLine, SoakBehavior, SoakPresence, SoakSubscriber};
use super::totals::SoakTotals;
use crate::wire::{HubAddress, OpenedSubscription, SubscriberWire};

/// The token of the waker, which is not a subscriber.
const WAKER: Token = Token(usize::MAX);

/// How often to check which subscribers are due.
const LOOK: Duration = Duration::from_millis(100);

/// How long all subscribers must receive nothing, at the end, before missing events count as lost.
/// A subscriber that takes three events a second may need a long time to receive what the hub
/// remembers.
const SILENCE: Duration = Duration::from_mins(1);

/// The longest that the end phase may take.
const PATIENCE: Duration = Duration::from_hours(2);

/// How long the hub has to notice that a subscriber leaves.
const FAREWELL: Duration = Duration::from_secs(1);

/// One in this many visitors leaves without closing its subscription, and never resumes it.
const VANISHING: u64 = 10;

/// The phases at the end of the soak. All subscribers connect and stay while agents still publish,
/// because a gap is told in a running session.
#[derive(Default)]
pub(super) struct SoakEnding {
    /// Whether all subscribers must connect and stay.
    pub(super) must_gather: AtomicBool,
    /// Whether all subscribers are connected and read.
    pub(super) has_gathered: AtomicBool,
    /// Whether the agents have ended, so that subscribers receive the remaining events and leave.
    pub(super) is_over: AtomicBool,
}

/// The state of the phase after the last event.
struct FinalPhase {
    since: Instant,
    deliveries: u64,
    /// When a subscriber last received something.
    heard: Instant,
}

pub(super) struct SoakCrowd {
    poll: Poll,
    subscribers: Vec<SoakSubscriber>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    jobs: JobQueue,
    done: Receiver<JobResult>,
    totals: Arc<SoakTotals>,
    /// The number of the next session.
    next_session: Arc<AtomicU64>,
    ending: Arc<SoakEnding>,
    buffer: Vec<u8>,
}

impl SoakCrowd {
    pub(super) fn new(
        place: &HubAddress,
        count: usize,
        totals: Arc<SoakTotals>,
        next_session: Arc<AtomicU64>,
        ending: Arc<SoakEnding>,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(|error| error.to_string())?;
        let (jobs, done) = JobQueue::start(place, waker);
        let subscribers = (0..count).map(SoakSubscriber::new).collect();
        let timers = BinaryHeap::new();
        let buffer = vec![0; 1 << 16];
        Ok(SoakCrowd {
            poll,
            subscribers,
            timers,
            jobs,
            done,
            totals,
            next_session,
            ending,
            buffer,
        })
    }

    /// Runs until all subscribers received everything, or until that takes too long.
    pub(super) fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut over: Option<FinalPhase> = None;
        let mut is_gathering = false;
        for at in 0..self.subscribers.len() {
            self.connect(at);
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
                let is_here = |it: &SoakSubscriber| matches!(it.presence, SoakPresence::Here(_));
                let is_complete = self.subscribers.iter().all(is_here);
                self.ending.has_gathered.store(is_complete, Ordering::Relaxed);
            }
            if self.ending.is_over.load(Ordering::Relaxed) {
                let deliveries = self.totals.deliveries.load(Ordering::Relaxed);
                let over = over.get_or_insert(FinalPhase { since: now, deliveries, heard: now });
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

    /// Carries out what is due for a subscriber.
    fn act(&mut self, at: usize) {
        let must_stay = self.ending.must_gather.load(Ordering::Relaxed);
        let subscriber = &mut self.subscribers[at];
        subscriber.due = None;
        match std::mem::replace(&mut subscriber.presence, SoakPresence::Away) {
            SoakPresence::Away => self.connect(at),
            SoakPresence::Coming => subscriber.presence = SoakPresence::Coming,
            SoakPresence::Here(line) if must_stay => subscriber.presence = SoakPresence::Here(line),
            SoakPresence::Here(line) => self.turn(at, line),
            SoakPresence::Stalled(line) => {
                if must_stay || subscriber.random.between(0, 1) == 0 {
                    self.listen(at, line);
                } else {
                    drop(line);
                    self.leave(at, Duration::ZERO);
                }
            }
            SoakPresence::Leaving(line) => {
                drop(line);
                subscriber.become_new();
                let pause = subscriber.kind.pauses(&mut subscriber.random);
                self.leave(at, pause);
            }
        }
    }

    /// Lets a connected subscriber do what it does now and then.
    fn turn(&mut self, at: usize, mut line: PolledLine) {
        let subscriber = &mut self.subscribers[at];
        let pause = subscriber.kind.pauses(&mut subscriber.random);
        match subscriber.kind {
            SoakBehavior::Stalled => {
                let deregistered = self.poll.registry().deregister(line.source());
                if deregistered.is_err() {
                    self.totals.fault("a connection could not be set aside".to_owned());
                }
                subscriber.presence = SoakPresence::Stalled(line);
                self.set_due(at, pause);
            }
            SoakBehavior::Visitor if subscriber.random.between(1, VANISHING) == 1 => {
                drop(line);
                subscriber.become_new();
                SoakTotals::add(&self.totals.vanished);
                self.leave(at, pause);
            }
            SoakBehavior::Visitor => {
                let id = &subscriber.subscription_id;
                let message = json!({ "type": "subscription.close", "subscription_id": id });
                if subscriber.wire == SubscriberWire::Stream {
                    self.do_soon(SoakJob::Say { message, line: Some(line) });
                    self.subscribers[at].become_new();
                    self.leave(at, pause);
                } else {
                    // Events that it no longer reads do not count.
                    let _ = self.poll.registry().deregister(line.source());
                    if let Err(error) = line.send(&subscriber.wire.message(&message)) {
                        self.totals.fault(format!("subscriber {at} could not leave: {error}"));
                    }
                    subscriber.presence = SoakPresence::Leaving(line);
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

    /// Notes that a subscriber is disconnected, and schedules its return.
    fn leave(&mut self, at: usize, pause: Duration) {
        self.totals.here.fetch_sub(1, Ordering::Relaxed);
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = SoakPresence::Away;
        subscriber.read = Vec::new();
        self.set_due(at, pause);
    }

    fn do_soon(&self, job: SoakJob) {
        if !self.jobs.hand_in(job) {
            self.totals.fault("nobody connects any more".to_owned());
        }
    }

    fn connect(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = SoakPresence::Coming;
        let resume = subscriber.resume();
        SoakTotals::add(if resume.is_some() {
            &self.totals.returns
        } else {
            &self.totals.arrivals
        });
        let job = SoakJob::Open {
            subscriber: at,
            wire: subscriber.wire,
            capabilities: subscriber.capabilities.clone(),
            resume,
            has_small_buffer: subscriber.kind == SoakBehavior::Stalled,
        };
        self.do_soon(job);
    }

    fn take(&mut self, done: JobResult) {
        match done {
            JobResult::Opened {
                subscriber: at,
                opened: Ok(OpenedSubscription { socket, subscription_id, read }),
            } => match PolledLine::new(socket) {
                Ok(line) => {
                    let subscriber = &mut self.subscribers[at];
                    subscriber.subscription_id = subscription_id;
                    subscriber.read = read;
                    if subscriber.kind == SoakBehavior::Visitor {
                        let begun = self.next_session.load(Ordering::Relaxed);
                        subscriber.hearing.joins_before(begun);
                    }
                    SoakTotals::add(&self.totals.here);
                    if !std::mem::replace(&mut subscriber.has_come, true) {
                        SoakTotals::add(&self.totals.have_come);
                    }
                    self.listen(at, line);
                }
                Err(error) => self.totals.fault(format!("subscriber {at}: {error}")),
            },
            JobResult::Opened { subscriber: at, opened: Err(why) } => {
                self.totals.fault(format!("subscriber {at} could not come: {why}"));
                self.subscribers[at].presence = SoakPresence::Away;
                self.set_due(at, FAREWELL);
            }
            JobResult::Said(Ok(())) => {}
            JobResult::Said(Err(why)) => {
                self.totals.fault(format!("a subscriber was not heard: {why}"));
            }
        }
    }

    /// Lets a subscriber read from now on.
    fn listen(&mut self, at: usize, mut line: PolledLine) {
        let registry = self.poll.registry();
        if let Err(error) = registry.register(line.source(), Token(at), Interest::READABLE) {
            self.totals.fault(format!("subscriber {at}: {error}"));
        }
        let subscriber = &mut self.subscribers[at];
        subscriber.presence = SoakPresence::Here(line);
        subscriber.stay();
        if let Some(due) = subscriber.due {
            self.timers.push(Reverse((due, at)));
        }
        self.read(at);
    }

    /// Lets all subscribers connect and read, at the end.
    fn gather(&mut self) {
        for at in 0..self.subscribers.len() {
            let presence = &self.subscribers[at].presence;
            if matches!(presence, SoakPresence::Away | SoakPresence::Stalled(_)) {
                self.set_due(at, Duration::ZERO);
            }
        }
    }

    /// The number of sessions that a subscriber must have received, if that is known.
    fn wanted(&self, subscriber: &SoakSubscriber) -> Option<u64> {
        let is_known = subscriber.kind != SoakBehavior::Visitor && subscriber.hearing.gaps == 0;
        is_known.then(|| self.totals.sessions.load(Ordering::Relaxed))
    }

    fn has_heard_all(&self) -> bool {
        self.subscribers.iter().all(|it| {
            let is_here = matches!(it.presence, SoakPresence::Here(_));
            let has_all = self.wanted(it).is_none_or(|wanted| it.hearing.ended >= wanted);
            is_here && has_all && it.hearing.unended() == 0
        })
    }

    /// Notes what subscribers have not received in the end.
    fn judge(&self) {
        for (at, subscriber) in self.subscribers.iter().enumerate() {
            let (kind, hearing) = (subscriber.kind, &subscriber.hearing);
            if !matches!(subscriber.presence, SoakPresence::Here(_)) {
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
