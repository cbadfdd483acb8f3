//! What goes into the engine and what comes out: closed lists, no callbacks. Below, `input` and
//! `output`; here, what both speak of.

mod audit;
mod input;
mod output;

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::reply::Response;
use aaep::{Event, ReplyToken, SubscriptionId};

pub use audit::{Audit, ReplyRefusal};
pub use input::{EndReason, Input, Resume, SessionEnd};
pub use output::{Output, Refusal};

/// A person or program that was let in, by the number that the caller gave it (rulings 14 and 36). A
/// session belongs to the principal that began it.
pub type Principal = u64;

/// What decides who hears an agent: its owners, its name, and whatever else the caller chooses. The
/// engine only compares tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentTags(Arc<BTreeSet<String>>);

impl AgentTags {
    /// These tags.
    pub fn new(tags: impl IntoIterator<Item = String>) -> Self {
        AgentTags(Arc::new(tags.into_iter().collect()))
    }

    /// Each tag, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn shares_one_with(&self, other: &AgentTags) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

/// Whom a subscriber may hear: the rest does not exist for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hears {
    /// Every agent.
    #[default]
    All,
    /// Agents that have at least one of these tags.
    Tagged(AgentTags),
}

impl Hears {
    /// Whether it may hear an agent with these tags.
    pub fn includes(&self, tags: &AgentTags) -> bool {
        match self {
            Hears::All => true,
            Hears::Tagged(wanted) => wanted.shares_one_with(tags),
        }
    }
}

/// An event as it is part of history.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Whose session it is.
    pub principal: Principal,
    /// What decides who hears it.
    pub tags: AgentTags,
    /// The event as it was taken in.
    pub event: Arc<Event>,
    /// The same, written once.
    pub json: Arc<[u8]>,
    /// Whether it is told to everyone at once, past filter and rate.
    pub is_urgent: bool,
    /// Who made it.
    pub author: Author,
    /// When it was taken in, on the clock of the hub, in microseconds since 1970 began.
    pub unix_us: i64,
}

/// Who made an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent.
    Agent,
    /// The engine, for the agent's subscribers.
    Hub,
}

/// The time of a question as it is stored, by the clock of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskTimeRecord {
    /// The question.
    pub reply_token: ReplyToken,
    /// When its default applies; none while its time stands still.
    pub ends_unix_us: Option<i64>,
    /// How much time is left while it stands still; none while the question waits to be presented.
    pub left_us: Option<u64>,
    /// When it ends at the latest.
    pub limit_unix_us: i64,
    /// How often its time was changed.
    pub changes: u32,
    /// When this was stored, by the same clock; none if that is not known. After a stop, no more time is left
    /// than was left then, or when the question was asked.
    pub stored_unix_us: Option<i64>,
    /// When the last event before it was recorded, by the same clock. A clock that was set back since then stores
    /// a time that only seems to be earlier.
    pub event_unix_us: Option<i64>,
}

/// A subscription as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// Whose it is.
    pub principal: Principal,
    /// Whether they may answer.
    pub may_reply: bool,
    /// Whom they may hear.
    pub hears: Hears,
    /// The version that the subscriber speaks.
    pub aaep_version: aaep::Version,
    /// All that was asked for so far.
    pub asked: aaep::Capabilities,
    /// The id that the subscriber named when it came back and got this one; it may not know that it did.
    pub former_id: Option<SubscriptionId>,
    /// Everything after this event was sent in its place, or everything ever, if there is none. It counts
    /// for those without a rate or a pace; for others it means nothing.
    pub in_order_after: Option<aaep::EventId>,
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// The action may happen, once.
    Accept,
    /// The action must not happen.
    Reject,
    /// What was answered.
    Answer(Response),
    /// The agent's own default answer applies.
    DefaultAnswer(String),
    /// Nobody answered and there is no default.
    NoAnswer,
    /// The agent does not need to know any more.
    Withdrawn,
}
