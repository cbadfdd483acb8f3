//! Invariants: what must hold after every step, whatever the seed.
//!
//! An invariant sees what went into the hub, what came out, what arrived at subscribers, and what is
//! true in the world. It never looks into the hub. One file per group below.

pub mod asks;
pub mod consent;
pub mod context;
pub mod critical;
pub mod form;
pub mod handshake;
pub mod kill;
pub mod owed;
pub mod pace;
pub mod session;
pub mod shares;
pub mod stall;
pub mod stream;
pub mod text;

use std::rc::Rc;
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{Event, SessionId};
use aaep_engine::{Engine, Frame, Input, Now, Output, Record};

use crate::truth::{Presence, Terms, Truth};

/// An event that the hub sent to one subscriber.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// To which subscription, by the world's number.
    pub subscription: usize,
    /// What was sent.
    pub frame: Arc<Frame>,
    /// The same, read as a subscriber reads it.
    pub event: Rc<Event>,
    /// The terms that held when it was sent.
    pub terms: Rc<Terms>,
    /// Why a strict reader would not take it, if so.
    pub fault: Option<Rc<str>>,
    /// When it was sent.
    pub sent_us: u64,
}

/// One input to the hub and all that it did.
#[derive(Debug)]
pub struct Step<'a> {
    /// When.
    pub now: Now,
    /// What happened.
    pub input: &'a Input,
    /// What the hub said.
    pub outputs: &'a [Output],
    /// The events that it sent, in order.
    pub delivered: &'a [Delivered],
    /// The subscription whose presence the input changed, and how it was before.
    pub changed: Option<(usize, Presence)>,
    /// When the hub wants to be called again.
    pub deadline: Option<u64>,
    /// How many bytes it holds for histories and logs.
    pub memory_bytes: usize,
    /// The subscriptions that got terms, and whether they are new.
    pub accepted: &'a [(usize, bool)],
    /// The subscriptions that came back and cannot be told everything.
    pub lost: &'a [usize],
}

impl Step<'_> {
    /// The events that are part of history from now on.
    pub fn recorded(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Record(Record { event, .. }) => Some(event),
            _ => None,
        })
    }

    /// Whether the step begins this session.
    pub fn is_first_of(&self, session_id: &SessionId) -> bool {
        self.recorded().any(|event| {
            event.envelope.session_id == *session_id
                && matches!(event.payload, aaep::Payload::SessionStarted(_))
        })
    }

    /// The session that was deleted.
    pub fn deleted(&self) -> Option<&SessionId> {
        match self.input {
            Input::DeleteSession { session_id } => Some(session_id),
            _ => None,
        }
    }

    /// The new subscriptions, each with the one whose stream it goes on with.
    pub fn newcomers<'t>(
        &'t self,
        truth: &'t Truth,
    ) -> impl Iterator<Item = (usize, Option<usize>)> + 't {
        let is_new = self.accepted.iter().filter(|(_, is_new)| *is_new);
        is_new.map(|(at, _)| (*at, truth.subscriptions[*at].resumes))
    }

    /// The subscriptions that were told that something is missing.
    pub fn gaps(&self) -> impl Iterator<Item = usize> {
        let has_gap = |it: &&Delivered| {
            Delivery::of(&it.event).is_some_and(|delivery| delivery.gap.is_some())
        };
        let told = self.delivered.iter().filter(has_gap).map(|it| it.subscription);
        told.chain(self.lost.iter().copied())
    }

    /// The subscriptions that did not get all they could in one batch: the rest waits for the next one, not for the rate.
    pub fn unfinished<'t>(&'t self, truth: &'t Truth) -> impl Iterator<Item = usize> + 't {
        self.outputs.iter().filter_map(|output| match output {
            Output::More { subscriber } => truth.by_key.get(subscriber).copied(),
            _ => None,
        })
    }

    /// What was sent to one subscription.
    pub fn to(&self, subscription: usize) -> impl Iterator<Item = &Delivered> {
        self.delivered.iter().filter(move |it| it.subscription == subscription)
    }
}

/// What an invariant is shown.
#[derive(Debug)]
pub enum Moment<'a> {
    /// The hub handled something.
    Handled(&'a Step<'a>),
    /// An event arrived at its subscriber.
    Arrived(&'a Delivered),
    /// A connection broke; what was on the wire is lost.
    Lost(usize),
    /// The hub was killed and started again with what it had stored. What it does about that comes next.
    Restarted {
        /// Whether the clock of the machine jumped meanwhile. Then questions have the time that the hub says
        /// that they have left, which the invariant for that bounds.
        clock_jumped: bool,
    },
    /// Everyone came back, everything arrived, and nothing is due any more.
    Finished,
}

/// Something that must always hold.
pub trait Invariant {
    /// A short name, by which failures are known.
    fn name(&self) -> &'static str;
    /// What it demands, in a sentence.
    fn meaning(&self) -> &'static str;
    /// Looks at what happened; says what is wrong, if something is.
    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String>;
}

/// How many invariants there are.
pub const COUNT: usize = 39;

/// All invariants. The twin is an engine of the same seed, for what can be told by comparing; its budget for memory is
/// given.
pub fn all(twin: Engine, memory_bytes: usize) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(form::ValidFrames),
        Box::new(form::Clock::default()),
        Box::new(handshake::WithinRequest),
        Box::new(handshake::Places),
        Box::new(shares::Memory::new(memory_bytes)),
        Box::new(shares::Shares::default()),
        Box::new(pace::Rate::default()),
        Box::new(pace::Spaced::default()),
        Box::new(pace::Filter),
        Box::new(pace::Quiet),
        Box::new(critical::AtOnce::default()),
        Box::new(critical::Arrival::default()),
        Box::new(asks::OneOutcome::default()),
        Box::new(asks::Others::default()),
        Box::new(asks::Consent::default()),
        Box::new(asks::Patience::default()),
        Box::new(asks::Addressed::default()),
        Box::new(asks::Maximum::default()),
        Box::new(asks::MoreTime::default()),
        Box::new(consent::Silence::default()),
        Box::new(asks::LessTime::default()),
        Box::new(consent::ExactAction::default()),
        Box::new(session::ToolAfterAnswer::default()),
        Box::new(consent::Covered::default()),
        Box::new(session::Ending::default()),
        Box::new(session::Refusals::default()),
        Box::new(session::Deleted::default()),
        Box::new(kill::GoesOn::default()),
        Box::new(stream::Once::default()),
        Box::new(stream::Order::default()),
        Box::new(stream::Numbers::default()),
        Box::new(stream::Nothing::default()),
        Box::new(text::Whole::default()),
        Box::new(text::Boundary::default()),
        Box::new(text::OneLanguage::default()),
        Box::new(context::Context::default()),
        Box::new(context::OnlyText::default()),
        Box::new(stall::Stall::new(twin)),
        Box::new(form::WantedWords),
    ]
}
