//! Invariants: what must hold after every step, for every seed.
//!
//! An invariant sees the inputs and outputs of the hub, the events that arrived at subscribers, and
//! the truth of the world. It never looks into the hub. Each file below has one group of
//! invariants.

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
pub mod time;

use std::rc::Rc;
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{Event, SessionId};
use aaep_engine::{Engine, EngineInput, Frame, Now, Output, Record};

use crate::truth::{SubscriberPresence, UnderstoodTerms, WorldTruth};

/// An event that the hub sent to one subscriber.
#[derive(Debug, Clone)]
pub struct DeliveredEvent {
    /// The index of the subscription in the world's truth.
    pub subscription: usize,
    /// The frame that was sent.
    pub frame: Arc<Frame>,
    /// The event in the frame, as a subscriber reads it.
    pub event: Rc<Event>,
    /// The terms in force when it was sent.
    pub terms: Rc<UnderstoodTerms>,
    /// Why a strict reader rejects the frame, if it does.
    pub fault: Option<Rc<str>>,
    /// When it was sent.
    pub sent_us: u64,
    /// The place of the output that sent it among all outputs of the hub.
    pub place: u64,
}

/// One input to the hub and everything that followed from it.
#[derive(Debug)]
pub struct HubStep<'a> {
    /// When the hub handled the input.
    pub now: Now,
    /// The input.
    pub input: &'a EngineInput,
    /// The outputs of the hub.
    pub outputs: &'a [Output],
    /// The place of the first of them among all outputs of the hub.
    pub first_place: u64,
    /// The events that the hub sent, in order.
    pub delivered: &'a [DeliveredEvent],
    /// The subscription whose presence the input changed, and its presence before.
    pub changed: Option<(usize, SubscriberPresence)>,
    /// When the hub wants its next tick.
    pub deadline: Option<u64>,
    /// The bytes that the hub holds for histories and logs.
    pub memory_bytes: usize,
    /// The subscriptions that were granted terms, and whether they are new.
    pub accepted: &'a [(usize, bool)],
    /// The subscriptions that resumed and cannot receive everything that they missed.
    pub lost: &'a [usize],
}

impl HubStep<'_> {
    /// The events that this step recorded.
    pub fn recorded(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Record(Record { event, .. }) => Some(event),
            _ => None,
        })
    }

    /// Whether this step begins the session.
    pub fn is_first_of(&self, session_id: &SessionId) -> bool {
        self.recorded().any(|event| {
            event.envelope.session_id == *session_id
                && matches!(event.payload, aaep::Payload::SessionStarted(_))
        })
    }

    /// The session that this step deleted, if any.
    pub fn deleted(&self) -> Option<&SessionId> {
        match self.input {
            EngineInput::DeleteSession { session_id } => Some(session_id),
            _ => None,
        }
    }

    /// The new subscriptions, each with the one whose stream it continues.
    pub fn newcomers<'t>(
        &'t self,
        truth: &'t WorldTruth,
    ) -> impl Iterator<Item = (usize, Option<usize>)> + 't {
        let is_new = self.accepted.iter().filter(|(_, is_new)| *is_new);
        is_new.map(|(at, _)| (*at, truth.subscriptions[*at].resumes))
    }

    /// The subscriptions that were told of a gap.
    pub fn gaps(&self) -> impl Iterator<Item = usize> {
        let has_gap = |it: &&DeliveredEvent| {
            Delivery::of(&it.event).is_some_and(|delivery| delivery.gap.is_some())
        };
        let told = self.delivered.iter().filter(has_gap).map(|it| it.subscription);
        told.chain(self.lost.iter().copied())
    }

    /// The subscriptions that have more pending events than one batch. Those events wait for the
    /// next batch, not for the rate.
    pub fn unfinished<'t>(&'t self, truth: &'t WorldTruth) -> impl Iterator<Item = usize> + 't {
        self.outputs.iter().filter_map(|output| match output {
            Output::More { subscriber } => truth.by_key.get(subscriber).copied(),
            _ => None,
        })
    }

    /// The events sent to one subscription.
    pub fn to(&self, subscription: usize) -> impl Iterator<Item = &DeliveredEvent> {
        self.delivered.iter().filter(move |it| it.subscription == subscription)
    }
}

/// A moment that invariants are shown.
#[derive(Debug)]
pub enum WorldMoment<'a> {
    /// The hub handled an input.
    Handled(&'a HubStep<'a>),
    /// An event arrived at its subscriber.
    Arrived(&'a DeliveredEvent),
    /// A connection broke; the events on its wire are lost.
    Lost(usize),
    /// The hub was killed or stopped, and started again from its storage. The outputs of the recovery come next.
    Restarted {
        /// Whether the machine's clock jumped meanwhile. If so, asks have the time left that the
        /// hub says; another invariant bounds that.
        clock_jumped: bool,
    },
    /// All subscribers came back, everything arrived, and nothing is due any more.
    Finished,
}

/// Something that must always hold.
pub trait Invariant {
    /// A short name that identifies the invariant in failures.
    fn name(&self) -> &'static str;
    /// What it demands, in a sentence.
    fn meaning(&self) -> &'static str;
    /// Looks at a moment. Returns a sentence about what is wrong, if anything.
    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String>;
}

/// The number of invariants.
pub const COUNT: usize = 40;

/// All invariants. `twin` is an engine of the same seed, for checks that compare two hubs;
/// `memory_bytes` is its memory budget.
pub fn all(twin: Engine, memory_bytes: usize) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(form::ValidFrames),
        Box::new(form::TimeGoesOn::default()),
        Box::new(time::TimesInOrder::default()),
        Box::new(handshake::WithinRequest),
        Box::new(handshake::WithinBounds),
        Box::new(shares::MemoryWithinBudget::new(memory_bytes)),
        Box::new(shares::PrincipalShares::default()),
        Box::new(pace::RateLimitKept::default()),
        Box::new(pace::SpacedEvents::default()),
        Box::new(pace::FilterKept),
        Box::new(pace::QuietFullWire),
        Box::new(critical::CriticalAtOnce::default()),
        Box::new(critical::CriticalArrival::default()),
        Box::new(asks::OneOutcome::default()),
        Box::new(asks::NoSelfAnswer::default()),
        Box::new(asks::NoUngivenAccept::default()),
        Box::new(asks::SettledInTime::default()),
        Box::new(asks::AskRecipients::default()),
        Box::new(asks::WithinMaximum::default()),
        Box::new(asks::ExtraTimeAllowed::default()),
        Box::new(consent::NoConsentBySilence::default()),
        Box::new(asks::NoExtraTimeAfterStop::default()),
        Box::new(consent::ExactAction::default()),
        Box::new(session::ToolAfterAnswer::default()),
        Box::new(consent::CoveredByAccept::default()),
        Box::new(session::NothingAfterEnd::default()),
        Box::new(session::RefusedLeavesNothing::default()),
        Box::new(session::DeletedStaysGone::default()),
        Box::new(kill::SessionGoesOn::default()),
        Box::new(stream::EventOnce::default()),
        Box::new(stream::OrderKept::default()),
        Box::new(stream::GaplessNumbers::default()),
        Box::new(stream::NothingLost::default()),
        Box::new(text::WholeText::default()),
        Box::new(text::BoundaryKept::default()),
        Box::new(text::OneLanguage::default()),
        Box::new(context::ContextFirst::default()),
        Box::new(context::OnlyText::default()),
        Box::new(stall::InvisibleStall::new(twin)),
        Box::new(form::WantedWords),
    ]
}
