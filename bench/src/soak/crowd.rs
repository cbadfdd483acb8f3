//! All listeners in one thread: what comes for each of them, and what each of them does when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use serde_json::json;

use super::hearing::Event;
use super::jobs::{self, Done, Job};
use super::listener::{Kind, Line, Listener, PEOPLE, Presence};
use super::plan::decision;
use super::totals::Totals;
use crate::timing;
use crate::wire::{Frame, Opened, Place, Wire};

/// Not a listener.
const WAKER: Token = Token(usize::MAX);

/// How often it is looked whether somebody is due.
const LOOK: Duration = Duration::from_millis(100);

/// How long after the last event everyone may take to hear it.
const PATIENCE: Duration = Duration::from_mins(3);

/// How long a hub has to hear that someone leaves.
const FAREWELL: Duration = Duration::from_secs(1);

pub(super) struct Crowd {
    poll: Poll,
    listeners: Vec<Listener>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    jobs: Sender<Job>,
    done: Receiver<Done>,
    totals: Arc<Totals>,
    /// Whether the agents are done, so that everyone hears the rest and goes.
    is_over: Arc<AtomicBool>,
    buffer: Vec<u8>,
}

impl Crowd {
    pub(super) fn new(
        place: &Place,
        count: usize,
        totals: Arc<Totals>,
        is_over: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(|error| error.to_string())?;
        let (jobs, done) = jobs::start(place, waker);
        let listeners = (0..count).map(Listener::new).collect();
        let timers = BinaryHeap::new();
        let buffer = vec![0; 1 << 16];
        Ok(Crowd { poll, listeners, timers, jobs, done, totals, is_over, buffer })
    }

    /// Listens until everything was heard, or until it takes too long.
    pub(super) fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut is_over_since = None;
        for at in 0..self.listeners.len() {
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
                if self.listeners[at].due == Some(due) {
                    self.act(at);
                }
            }
            if self.is_over.load(Ordering::Relaxed) {
                let since = *is_over_since.get_or_insert_with(|| {
                    self.gather();
                    now
                });
                if self.has_heard_all() || since.elapsed() > PATIENCE {
                    self.judge();
                    return Ok(());
                }
            }
        }
    }

    /// What is due for a listener.
    fn act(&mut self, at: usize) {
        let is_over = self.is_over.load(Ordering::Relaxed);
        let listener = &mut self.listeners[at];
        listener.due = None;
        match std::mem::replace(&mut listener.presence, Presence::Away) {
            Presence::Away => self.come(at),
            Presence::Coming => listener.presence = Presence::Coming,
            Presence::Here(line) if is_over => listener.presence = Presence::Here(line),
            Presence::Here(line) => self.turn(at, line),
            Presence::Stalled(line) => {
                if is_over || listener.random.between(0, 1) == 0 {
                    self.listen(at, line);
                } else {
                    drop(line);
                    self.leave(at, Duration::ZERO);
                }
            }
            Presence::Leaving(line) => {
                drop(line);
                listener.begin_anew();
                let pause = listener.kind.pauses(&mut listener.random);
                self.leave(at, pause);
            }
        }
    }

    /// A listener that was here does what it does now and then.
    fn turn(&mut self, at: usize, mut line: Line) {
        let listener = &mut self.listeners[at];
        let pause = listener.kind.pauses(&mut listener.random);
        match listener.kind {
            Kind::Stalled => {
                let deregistered = self.poll.registry().deregister(line.source());
                if deregistered.is_err() {
                    self.totals.fault("a connection could not be set aside".to_owned());
                }
                listener.presence = Presence::Stalled(line);
                self.set_due(at, pause);
            }
            Kind::Visitor => {
                let id = &listener.subscription_id;
                let message = json!({ "type": "subscription.close", "subscription_id": id });
                if listener.wire == Wire::Stream {
                    self.do_soon(Job::Say { message, line: Some(line) });
                    self.listeners[at].begin_anew();
                    self.leave(at, pause);
                } else {
                    // What it does not read any more does not count.
                    let _ = self.poll.registry().deregister(line.source());
                    if let Err(error) = line.send(&listener.wire.message(&message)) {
                        self.totals.fault(format!("listener {at} could not leave: {error}"));
                    }
                    listener.presence = Presence::Leaving(line);
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
        self.listeners[at].due = Some(due);
        self.timers.push(Reverse((due, at)));
    }

    /// A listener is not connected any more, and comes back later.
    fn leave(&mut self, at: usize, pause: Duration) {
        self.totals.here.fetch_sub(1, Ordering::Relaxed);
        let listener = &mut self.listeners[at];
        listener.presence = Presence::Away;
        listener.read = Vec::new();
        self.set_due(at, pause);
    }

    fn do_soon(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            self.totals.fault("nobody connects any more".to_owned());
        }
    }

    fn come(&mut self, at: usize) {
        let listener = &mut self.listeners[at];
        listener.presence = Presence::Coming;
        let resume = listener.resume();
        Totals::add(if resume.is_some() { &self.totals.returns } else { &self.totals.arrivals });
        let job = Job::Open {
            listener: at,
            wire: listener.wire,
            capabilities: listener.capabilities.clone(),
            resume,
            has_small_buffer: listener.kind == Kind::Stalled,
        };
        self.do_soon(job);
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Opened { listener: at, opened: Ok(Opened { socket, subscription_id, read }) } => {
                match Line::new(socket) {
                    Ok(line) => {
                        let listener = &mut self.listeners[at];
                        listener.subscription_id = subscription_id;
                        listener.read = read;
                        Totals::add(&self.totals.here);
                        self.listen(at, line);
                    }
                    Err(error) => self.totals.fault(format!("listener {at}: {error}")),
                }
            }
            Done::Opened { listener: at, opened: Err(why) } => {
                self.totals.fault(format!("listener {at} could not come: {why}"));
                self.listeners[at].presence = Presence::Away;
                self.set_due(at, FAREWELL);
            }
            Done::Said(Ok(())) => {}
            Done::Said(Err(why)) => self.totals.fault(format!("a listener was not heard: {why}")),
        }
    }

    /// A listener reads from now on.
    fn listen(&mut self, at: usize, mut line: Line) {
        let registry = self.poll.registry();
        if let Err(error) = registry.register(line.source(), Token(at), Interest::READABLE) {
            self.totals.fault(format!("listener {at}: {error}"));
        }
        let listener = &mut self.listeners[at];
        listener.presence = Presence::Here(line);
        listener.stay();
        if let Some(due) = listener.due {
            self.timers.push(Reverse((due, at)));
        }
        self.read(at);
    }

    /// Reads whatever there is for a listener.
    fn read(&mut self, at: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let still_there = loop {
            let listener = &mut self.listeners[at];
            let Presence::Here(line) = &mut listener.presence else { break true };
            match line.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => listener.read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.buffer = buffer;
        let is_open = self.hear(at);
        let is_here = matches!(self.listeners[at].presence, Presence::Here(_));
        if is_here && !(still_there && is_open) {
            Totals::add(&self.totals.let_go);
            self.leave(at, Duration::from_millis(500));
        }
    }

    /// Takes what came whole; whether the hub keeps the connection.
    fn hear(&mut self, at: usize) -> bool {
        let wire = self.listeners[at].wire;
        let bytes = std::mem::take(&mut self.listeners[at].read);
        let mut rest = bytes.as_slice();
        let mut is_open = true;
        while is_open {
            let (frame, used) = match wire.frame(rest) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(why) => {
                    self.totals.fault(format!("listener {at}: {why}"));
                    return false;
                }
            };
            match frame {
                Frame::Message(json) => is_open = self.hear_message(at, json),
                Frame::Lines(lines) => {
                    let lines = lines.split(|byte| *byte == b'\n');
                    for json in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                        is_open &= self.hear_message(at, json);
                    }
                }
                Frame::Ping(content) => self.send(at, &Wire::pong(content)),
                Frame::End => is_open = false,
                Frame::Other => {}
            }
            rest = &rest[used..];
        }
        self.listeners[at].read = rest.to_vec();
        is_open
    }

    /// Takes a message; whether the hub keeps the connection.
    fn hear_message(&mut self, at: usize, json: &[u8]) -> bool {
        let event: Event<'_> = match serde_json::from_slice(json) {
            Ok(event) => event,
            Err(error) => {
                self.totals.fault(format!("listener {at} got something that is no event: {error}"));
                return true;
            }
        };
        match event.kind.as_ref() {
            "agentvoice:closed" | "subscription.close" => return false,
            kind if !kind.starts_with("aaep:agent.") => {
                let text = aaep::printable(&String::from_utf8_lossy(json)).to_string();
                self.totals.fault(format!("listener {at} was told {text}"));
                return true;
            }
            _ => {}
        }
        Totals::add(&self.totals.deliveries);
        let listener = &mut self.listeners[at];
        let gaps = listener.hearing.gaps;
        for fault in listener.hearing.take(&event) {
            self.totals.fault(format!("listener {at}, {:?}: {fault}", listener.kind));
        }
        if listener.hearing.gaps > gaps {
            Totals::add(&self.totals.gaps);
        }
        if let Some(id) = &event.id {
            listener.last_event_id.clear();
            listener.last_event_id.push_str(id);
        }
        if let (Kind::Person, Some((number, index))) = (listener.kind, event.question()) {
            self.answer(at, number, index);
        }
        true
    }

    fn answer(&mut self, at: usize, number: u64, index: usize) {
        let (decision, who) = decision(number, index, PEOPLE);
        if who != at {
            return;
        }
        let message = json!({
            "type": "confirmation.reply", "reply_token": format!("rpl_soak{number}i{index}"),
            "decision": decision, "subscription_id": self.listeners[at].subscription_id,
            "timestamp": timing::timestamp(),
        });
        match self.listeners[at].wire {
            Wire::Stream => self.do_soon(Job::Say { message, line: None }),
            wire => self.send(at, &wire.message(&message)),
        }
    }

    fn send(&mut self, at: usize, bytes: &[u8]) {
        let Presence::Here(line) = &mut self.listeners[at].presence else { return };
        if let Err(error) = line.send(bytes) {
            // Whoever is let go hears so next.
            let is_gone =
                matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
            if !is_gone {
                self.totals.fault(format!("listener {at} could not speak: {error}"));
            }
        }
    }

    /// At the end, everyone comes and reads.
    fn gather(&mut self) {
        for at in 0..self.listeners.len() {
            let presence = &self.listeners[at].presence;
            if matches!(presence, Presence::Away | Presence::Stalled(_)) {
                self.set_due(at, Duration::ZERO);
            }
        }
    }

    /// How many sessions a listener must have heard, if that is known.
    fn wanted(&self, listener: &Listener) -> Option<u64> {
        let is_known = listener.kind != Kind::Visitor && listener.hearing.gaps == 0;
        is_known.then(|| self.totals.sessions.load(Ordering::Relaxed))
    }

    fn has_heard_all(&self) -> bool {
        self.listeners.iter().all(|it| {
            let is_here = matches!(it.presence, Presence::Here(_));
            let has_all = self.wanted(it).is_none_or(|wanted| it.hearing.ended >= wanted);
            is_here && has_all && it.hearing.unended() == 0
        })
    }

    /// Notes what anyone has not heard in the end.
    fn judge(&self) {
        for (at, listener) in self.listeners.iter().enumerate() {
            let (kind, hearing) = (listener.kind, &listener.hearing);
            if !matches!(listener.presence, Presence::Here(_)) {
                self.totals.fault(format!("listener {at}, {kind:?}, is not there in the end"));
            }
            if let Some(wanted) = self.wanted(listener).filter(|it| *it != hearing.ended) {
                let ended = hearing.ended;
                self.totals.fault(format!("listener {at}, {kind:?}: {ended} sessions of {wanted}"));
            } else if hearing.unended() > 0 {
                let count = hearing.unended();
                self.totals.fault(format!("listener {at}, {kind:?}: {count} sessions without end"));
            }
        }
    }
}
