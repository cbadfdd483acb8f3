//! The inputs and outputs of the engine: closed lists, no callbacks. `input` and `output` hold the
//! lists; this file holds the types that both use.

mod audit;
mod input;
mod output;

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::{Event, ReplyToken, SubscriptionId};

pub use audit::{Audit, ReplyRefusal};
pub use input::{EndReason, EngineInput, ResumePoint, SessionEnd};
pub use output::{Output, Refusal};

pub(crate) use crate::keys::PrincipalNumber;

/// Tags that decide which subscribers hear an agent: its owners, its name, and anything else that
/// the caller chooses. The engine only compares tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentTags(Arc<BTreeSet<String>>);

impl AgentTags {
    /// Tags from any collection of strings.
    pub fn new(tags: impl IntoIterator<Item = String>) -> Self {
        AgentTags(Arc::new(tags.into_iter().collect()))
    }

    /// The tags, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn shares_one_with(&self, other: &AgentTags) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

/// Which agents a subscriber may hear. All others do not exist for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HearingScope {
    /// Every agent.
    #[default]
    All,
    /// Agents that have at least one of these tags.
    Tagged(AgentTags),
}

impl HearingScope {
    /// Whether the subscriber may hear an agent with these tags.
    pub fn includes(&self, tags: &AgentTags) -> bool {
        match self {
            HearingScope::All => true,
            HearingScope::Tagged(wanted) => wanted.shares_one_with(tags),
        }
    }
}

/// An event as part of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The principal that owns the session.
    pub principal: PrincipalNumber,
    /// The tags of the agent, which decide which subscribers hear the event.
    pub tags: AgentTags,
    /// The event as it was admitted.
    pub event: Arc<Event>,
    /// The same event, encoded once.
    pub json: Arc<[u8]>,
    /// Who made it.
    pub author: Author,
    /// When it was admitted, on the clock of the hub, in microseconds since 1970 began.
    pub unix_us: i64,
}

/// Who made an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent.
    Agent,
    /// The engine, on behalf of the agent.
    Hub,
}

/// The time of an ask as it is stored, by the clock of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskTimeRecord {
    /// The token of the ask.
    pub reply_token: ReplyToken,
    /// When the default applies; `None` while the clock is paused or waiting.
    pub ends_unix_us: Option<i64>,
    /// How much time is left while the clock is paused; `None` while the ask waits to be presented.
    pub left_us: Option<u64>,
    /// The latest moment at which the ask can end.
    pub limit_unix_us: i64,
    /// How often the time was changed.
    pub changes: u32,
    /// When this was stored, by the same clock, if known. After a restart, no more time is left
    /// than was left then, or when the ask was made.
    pub stored_unix_us: Option<i64>,
    /// When the last event before it was recorded, by the same clock. A clock that was set back
    /// since then stores a time that only seems to be earlier.
    pub event_unix_us: Option<i64>,
}

/// A subscription as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// The id of the subscription.
    pub subscription_id: SubscriptionId,
    /// The principal that owns it.
    pub principal: PrincipalNumber,
    /// Whether the principal may answer.
    pub may_reply: bool,
    /// Which agents the subscriber may hear.
    pub hears: HearingScope,
    /// The version that the subscriber speaks.
    pub aaep_version: aaep::Version,
    /// All capabilities requested so far.
    pub asked: aaep::Capabilities,
    /// The id under which the subscriber resumed and received this subscription instead. It may not
    /// know the new id yet.
    pub former_id: Option<SubscriptionId>,
    /// Everything after this event was sent in order; everything ever, if there is none. This is
    /// meaningful only for subscribers without a rate and a pace.
    pub in_order_after: Option<aaep::EventId>,
    /// If the subscriber was sent everything before an orderly stop: where it was. This is true only
    /// until another event is recorded; from then on, leave it out.
    pub caught_up: Option<CaughtUp>,
}

/// Where a subscriber was that was sent everything before an orderly stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtUp {
    /// The event that it was sent last, if it was sent any.
    pub last_event_id: Option<aaep::EventId>,
}

/// The principal whose reply settled an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskAnswerer {
    /// The principal.
    pub principal: PrincipalNumber,
    /// Whether a rule answered instead of a person.
    pub is_automatic: bool,
}
