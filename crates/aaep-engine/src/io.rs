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
pub use input::{EndReason, Input, Resume};
pub use output::{Output, Refusal};

/// An agent, by the number that the caller gave it: who may speak in a session and hears its answers.
pub type AgentKey = u64;

/// A person or program that was let in, by the number that the caller gave it (ruling 14).
pub type Principal = u64;

/// Whom a listener may hear: the rest does not exist for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hears {
    /// Every agent.
    #[default]
    All,
    /// These agents.
    Agents(Arc<BTreeSet<AgentKey>>),
}

impl Hears {
    /// Whether it may hear this agent.
    pub fn includes(&self, agent: AgentKey) -> bool {
        match self {
            Hears::All => true,
            Hears::Agents(agents) => agents.contains(&agent),
        }
    }
}

/// An event as it is part of history.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The agent whose session it is.
    pub agent: AgentKey,
    /// The event as it was taken in.
    pub event: Arc<Event>,
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
    /// The engine, for the agent's listeners.
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
    /// The version that the listener speaks.
    pub aaep_version: aaep::Version,
    /// All that was asked for so far.
    pub asked: aaep::Capabilities,
    /// The id that the listener named when it came back and got this one; it may not know that it did.
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
