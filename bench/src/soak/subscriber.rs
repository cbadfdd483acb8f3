//! One of the crowd: what it wants, how it behaves, and where it is.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use mio::event::Source;
use serde_json::{Value, json};

use super::hearing::{Hearing, Wants};
use crate::random::Random;
use crate::wire::{Resume, Socket, Wire};

/// How many of the subscribers answer questions: one on each wire.
pub(super) const PEOPLE: usize = 3;

/// After so many subscribers, the kinds begin again.
const ROUND: usize = 20;

/// How a subscriber behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Hears everything, and answers questions.
    Person,
    /// Hears everything, all the time.
    Steady,
    /// Takes three events a second, whole sentences.
    Slow,
    /// The same, and its connection breaks now and then.
    SlowAndCut,
    /// Its connection breaks now and then; it comes back and goes on.
    Cut,
    /// Does not read for a while, now and then.
    Stalled,
    /// Leaves, mostly in order, and subscribes again later as somebody new.
    Visitor,
}

impl Kind {
    pub(super) fn of(place: usize) -> Self {
        if place < PEOPLE {
            return Kind::Person;
        }
        match place % ROUND {
            0..=8 => Kind::Slow,
            9 => Kind::SlowAndCut,
            10 | 11 => Kind::Stalled,
            12 | 13 => Kind::Cut,
            14 => Kind::Visitor,
            _ => Kind::Steady,
        }
    }

    pub(super) fn is_slow(self) -> bool {
        matches!(self, Kind::Slow | Kind::SlowAndCut)
    }

    pub(super) fn hearing(self) -> Hearing {
        match self {
            Kind::Person | Kind::Steady => Hearing::new(Wants::Numbered, false),
            Kind::Cut | Kind::Visitor => Hearing::new(Wants::Everything, false),
            Kind::Stalled => Hearing::new(Wants::Everything, true),
            Kind::Slow | Kind::SlowAndCut => Hearing::new(Wants::Text, true),
        }
    }

    fn capabilities(self, place: usize) -> Value {
        let verbosity = ["terse", "normal", "detailed"][place / ROUND % 3];
        if self.is_slow() {
            return json!({
                "max_events_per_second": 3, "coalesce_boundaries": ["sentence"],
                "preferred_verbosity": verbosity,
                "supported_extensions": [aaep::extension::CONTEXT],
            });
        }
        json!({
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
            "supports_confirmation_reply": true, "preferred_verbosity": verbosity,
            "supported_extensions": [aaep::extension::CONTEXT],
        })
    }

    /// How long it stays as it is once it is here; for ever if that is all it does.
    pub(super) fn stays(self, random: &mut Random) -> Option<Duration> {
        let (first, last) = match self {
            Kind::Person | Kind::Steady | Kind::Slow => return None,
            Kind::Cut | Kind::SlowAndCut => (10, 60),
            Kind::Stalled => (5, 20),
            Kind::Visitor => (15, 90),
        };
        Some(Duration::from_millis(random.between(first * 1000, last * 1000)))
    }

    /// How long it is away, or does not read.
    pub(super) fn pauses(self, random: &mut Random) -> Duration {
        let (first, last) = match self {
            // One in ten stalls for longer than the hub remembers.
            Kind::Stalled if random.between(1, 10) == 1 => (420, 600),
            Kind::Stalled => (20, 120),
            Kind::Visitor => (1, 10),
            _ => (0, 3),
        };
        Duration::from_millis(random.between(first * 1000, last * 1000))
    }
}

/// Where a subscriber is.
pub(super) enum Presence {
    /// Not connected.
    Away,
    /// Connected, and reads.
    Here(Line),
    /// Connected, and does not read.
    Stalled(Line),
    /// Connected; it has said that it leaves.
    Leaving(Line),
    /// Someone connects for it.
    Coming,
}

/// A connection that is polled.
pub(super) enum Line {
    Tcp(mio::net::TcpStream),
    Local(mio::net::UnixStream),
}

impl Line {
    pub(super) fn new(socket: Socket) -> std::io::Result<Self> {
        match socket {
            Socket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Line::Tcp(mio::net::TcpStream::from_std(stream)))
            }
            Socket::Local(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Line::Local(mio::net::UnixStream::from_std(stream)))
            }
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Line::Tcp(stream) => stream.read(buffer),
            Line::Local(stream) => stream.read(buffer),
        }
    }

    /// Sends something short. If the system does not take all of it at once, it is an error.
    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Line::Tcp(stream) => stream.write_all(bytes),
            Line::Local(stream) => stream.write_all(bytes),
        }
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            Line::Tcp(stream) => stream,
            Line::Local(stream) => stream,
        }
    }
}

/// One of the crowd.
pub(super) struct Subscriber {
    pub(super) kind: Kind,
    pub(super) wire: Wire,
    pub(super) capabilities: Value,
    pub(super) presence: Presence,
    /// Whether it has been connected at least once.
    pub(super) has_come: bool,
    pub(super) hearing: Hearing,
    /// Empty before it subscribed.
    pub(super) subscription_id: String,
    /// Empty before it heard anything.
    pub(super) last_event_id: String,
    /// The beginning of something that has not come whole.
    pub(super) read: Vec<u8>,
    /// When it does something else.
    pub(super) due: Option<Instant>,
    pub(super) random: Random,
}

impl Subscriber {
    pub(super) fn new(place: usize) -> Self {
        let kind = Kind::of(place);
        Subscriber {
            kind,
            wire: [Wire::Stream, Wire::WebSocket, Wire::Local][place % 3],
            capabilities: kind.capabilities(place),
            presence: Presence::Away,
            has_come: false,
            hearing: kind.hearing(),
            subscription_id: String::new(),
            last_event_id: String::new(),
            read: Vec::new(),
            due: None,
            random: Random::new(place as u64),
        }
    }

    /// Where it left off, if it was here.
    pub(super) fn resume(&self) -> Option<Resume> {
        (!self.subscription_id.is_empty()).then(|| Resume {
            subscription_id: self.subscription_id.clone(),
            last_event_id: self.last_event_id.clone(),
        })
    }

    /// When it does something else, if it is here from now on.
    pub(super) fn stay(&mut self) {
        let time = self.kind.stays(&mut self.random);
        self.due = time.map(|time| Instant::now() + time);
    }

    /// It is somebody new from now on, who heard nothing.
    pub(super) fn begin_anew(&mut self) {
        self.hearing = self.kind.hearing();
        self.subscription_id.clear();
        self.last_event_id.clear();
    }
}
