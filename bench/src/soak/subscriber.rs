//! One subscriber of the crowd: what it requests, how it behaves, and whether it is connected.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use mio::event::Source;
use serde_json::{Value, json};

use super::hearing::{DeliveryCheck, ExpectedDelivery};
use crate::random::SeededRandom;
use crate::wire::{EventSocket, ResumeFrom, SubscriberWire};

/// The number of subscribers that answer asks: one on each wire.
pub(super) const PEOPLE: usize = 3;

/// The number of subscribers after which the behaviors repeat.
const ROUND: usize = 20;

/// How a subscriber behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SoakBehavior {
    /// Receives everything, and answers asks.
    Person,
    /// Receives everything, all the time.
    Steady,
    /// Takes three events a second, whole sentences.
    Slow,
    /// Like `Slow`, and its connection breaks now and then.
    SlowAndCut,
    /// Its connection breaks now and then; it comes back and resumes.
    Cut,
    /// Stops reading for a while, now and then.
    Stalled,
    /// Leaves, usually by closing its subscription, and later subscribes again as a new subscriber.
    Visitor,
}

impl SoakBehavior {
    pub(super) fn of(place: usize) -> Self {
        if place < PEOPLE {
            return SoakBehavior::Person;
        }
        match place % ROUND {
            0..=8 => SoakBehavior::Slow,
            9 => SoakBehavior::SlowAndCut,
            10 | 11 => SoakBehavior::Stalled,
            12 | 13 => SoakBehavior::Cut,
            14 => SoakBehavior::Visitor,
            _ => SoakBehavior::Steady,
        }
    }

    pub(super) fn is_slow(self) -> bool {
        matches!(self, SoakBehavior::Slow | SoakBehavior::SlowAndCut)
    }

    pub(super) fn hearing(self) -> DeliveryCheck {
        match self {
            SoakBehavior::Person | SoakBehavior::Steady => {
                DeliveryCheck::new(ExpectedDelivery::Numbered, false)
            }
            SoakBehavior::Cut | SoakBehavior::Visitor => {
                DeliveryCheck::new(ExpectedDelivery::Everything, false)
            }
            SoakBehavior::Stalled => DeliveryCheck::new(ExpectedDelivery::Everything, true),
            SoakBehavior::Slow | SoakBehavior::SlowAndCut => {
                DeliveryCheck::new(ExpectedDelivery::Text, true)
            }
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

    /// How long it stays as it is once it is connected; none if it never changes.
    pub(super) fn stays(self, random: &mut SeededRandom) -> Option<Duration> {
        let (first, last) = match self {
            SoakBehavior::Person | SoakBehavior::Steady | SoakBehavior::Slow => return None,
            SoakBehavior::Cut | SoakBehavior::SlowAndCut => (10, 60),
            SoakBehavior::Stalled => (5, 20),
            SoakBehavior::Visitor => (15, 90),
        };
        Some(Duration::from_millis(random.between(first * 1000, last * 1000)))
    }

    /// How long it stays away or does not read.
    pub(super) fn pauses(self, random: &mut SeededRandom) -> Duration {
        let (first, last) = match self {
            // One in ten stalls for longer than the hub remembers.
            SoakBehavior::Stalled if random.between(1, 10) == 1 => (420, 600),
            SoakBehavior::Stalled => (20, 120),
            SoakBehavior::Visitor => (1, 10),
            _ => (0, 3),
        };
        Duration::from_millis(random.between(first * 1000, last * 1000))
    }
}

/// Whether a subscriber is connected.
pub(super) enum SoakPresence {
    /// Not connected.
    Away,
    /// Connected, and reads.
    Here(PolledLine),
    /// Connected, and does not read.
    Stalled(PolledLine),
    /// Connected, and has announced that it leaves.
    Leaving(PolledLine),
    /// A job is connecting it.
    Coming,
}

/// A connection that is polled.
pub(super) enum PolledLine {
    Tcp(mio::net::TcpStream),
    Local(mio::net::UnixStream),
}

impl PolledLine {
    pub(super) fn new(socket: EventSocket) -> std::io::Result<Self> {
        match socket {
            EventSocket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(PolledLine::Tcp(mio::net::TcpStream::from_std(stream)))
            }
            EventSocket::Local(stream) => {
                stream.set_nonblocking(true)?;
                Ok(PolledLine::Local(mio::net::UnixStream::from_std(stream)))
            }
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            PolledLine::Tcp(stream) => stream.read(buffer),
            PolledLine::Local(stream) => stream.read(buffer),
        }
    }

    /// Sends a short message. It is an error if the system does not take all of it at once.
    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            PolledLine::Tcp(stream) => stream.write_all(bytes),
            PolledLine::Local(stream) => stream.write_all(bytes),
        }
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            PolledLine::Tcp(stream) => stream,
            PolledLine::Local(stream) => stream,
        }
    }
}

/// One subscriber of the crowd.
pub(super) struct SoakSubscriber {
    pub(super) kind: SoakBehavior,
    pub(super) wire: SubscriberWire,
    pub(super) capabilities: Value,
    pub(super) presence: SoakPresence,
    /// Whether it has been connected at least once.
    pub(super) has_come: bool,
    pub(super) hearing: DeliveryCheck,
    /// Empty before it subscribed.
    pub(super) subscription_id: String,
    /// Empty before it received an event.
    pub(super) last_event_id: String,
    /// The beginning of an incomplete frame.
    pub(super) read: Vec<u8>,
    /// When it acts next.
    pub(super) due: Option<Instant>,
    pub(super) random: SeededRandom,
}

impl SoakSubscriber {
    pub(super) fn new(place: usize) -> Self {
        let kind = SoakBehavior::of(place);
        SoakSubscriber {
            kind,
            wire: [SubscriberWire::Stream, SubscriberWire::WebSocket, SubscriberWire::Local]
                [place % 3],
            capabilities: kind.capabilities(place),
            presence: SoakPresence::Away,
            has_come: false,
            hearing: kind.hearing(),
            subscription_id: String::new(),
            last_event_id: String::new(),
            read: Vec::new(),
            due: None,
            random: SeededRandom::new(place as u64),
        }
    }

    /// The point from which it resumes, if it was subscribed.
    pub(super) fn resume(&self) -> Option<ResumeFrom> {
        (!self.subscription_id.is_empty()).then(|| ResumeFrom {
            subscription_id: self.subscription_id.clone(),
            last_event_id: self.last_event_id.clone(),
        })
    }

    /// Schedules its next act, counted from now.
    pub(super) fn stay(&mut self) {
        let time = self.kind.stays(&mut self.random);
        self.due = time.map(|time| Instant::now() + time);
    }

    /// Turns it into a new subscriber that has not received anything.
    pub(super) fn become_new(&mut self) {
        self.hearing = self.kind.hearing();
        self.subscription_id.clear();
        self.last_event_id.clear();
    }
}
