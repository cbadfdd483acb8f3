//! What can be stored: plain facts, and the bounds that they keep.
//!
//! Knows nothing of what an event means, and never changes a fact on its way in.

use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId, SubscriptionId};

use crate::audit::Entry;
use crate::store::CommitError;

/// The longest JSON of one fact, in bytes.
pub const MAX_JSON_BYTES: usize = aaep::MAX_BYTES;

/// The longest terms of a subscription, in bytes. All of them are in memory after a start.
pub const MAX_TERMS_BYTES: usize = aaep::MAX_MESSAGE_BYTES;

/// The longest name of an agent or principal, and the longest idempotency key, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// How many sessions may run at once.
pub const MAX_RUNNING_SESSIONS: u64 = 4096;

/// How many events one session may have: twice what agents may send, so that the hub is never
/// kept from telling how a session went on.
pub const MAX_SESSION_EVENTS: u64 = 16_384;

/// How many questions may be open at once.
pub const MAX_OPEN_ASKS: u64 = 16_384;

/// How many settled questions are remembered. The oldest are forgotten first.
pub const MAX_SETTLED_ASKS: u64 = 65_536;

/// How many subscriptions may exist at once.
pub const MAX_SUBSCRIPTIONS: u64 = 16_384;

/// How many agents, and how many principals, have a number.
pub const MAX_NAMES: u64 = 65_536;

/// How many answers are kept under idempotency keys. The oldest are forgotten first.
pub const MAX_IDEMPOTENCY_KEYS: u64 = 16_384;

/// How many of them each principal has.
pub const MAX_IDEMPOTENCY_KEYS_EACH: usize = 1024;

/// How many changes one commit may have.
pub const MAX_CHANGES: usize = 65_536;

/// The time of a question, by the clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTime {
    /// When its default applies; none while its time stands still.
    pub ends_unix_us: Option<i64>,
    /// How much time is left while it stands still; none while the question waits to be presented.
    pub left_us: Option<u64>,
    /// When it ends at the latest.
    pub limit_unix_us: i64,
    /// How often its time was changed.
    pub changes: u32,
}

/// One fact to be stored. A commit stores all of its changes or none.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// An event is part of the history of its session. The first one makes the session.
    Event {
        /// Its place among all events of this store. Always larger than that of the one before.
        order: u64,
        /// Its session.
        session_id: SessionId,
        /// Its id.
        event_id: EventId,
        /// Whose session it is.
        agent: u64,
        /// Who speaks for that agent; of a session's first event it counts for the whole session.
        principal: u64,
        /// Whether the hub made it rather than the agent.
        by_hub: bool,
        /// Whether it goes past every queue.
        is_urgent: bool,
        /// When it was taken in.
        unix_us: i64,
        /// The event as it was taken in.
        json: Arc<[u8]>,
    },
    /// Which agent a session is of and who may hear it. A session that is not stored stays so.
    SessionAbout {
        /// The session.
        session_id: SessionId,
        /// What there is to know, as JSON.
        json: Arc<[u8]>,
    },
    /// A session is over. A session that is not stored stays so.
    SessionEnded {
        /// The session.
        session_id: SessionId,
        /// When.
        unix_us: i64,
    },
    /// A question was asked.
    AskOpened {
        /// The question.
        reply_token: ReplyToken,
        /// Its session.
        session_id: SessionId,
        /// Until when it waits.
        time: StoredTime,
    },
    /// The time of an open question is another one. A question that is not open stays so.
    AskMoved {
        /// The question.
        reply_token: ReplyToken,
        /// Until when it waits from now on.
        time: StoredTime,
    },
    /// A question is settled. Its token stays used, and its resolution can be told again.
    AskSettled {
        /// The question.
        reply_token: ReplyToken,
        /// When.
        unix_us: i64,
        /// How, as JSON.
        resolution: Arc<[u8]>,
    },
    /// Someone listens, or listens under other terms.
    Subscribed {
        /// The subscription.
        subscription_id: SubscriptionId,
        /// Whose it is.
        principal: u64,
        /// Whether they may answer questions.
        may_reply: bool,
        /// The terms, as JSON.
        json: Arc<[u8]>,
    },
    /// Someone left for good.
    Unsubscribed {
        /// The subscription.
        subscription_id: SubscriptionId,
    },
    /// The number of an agent. Only journals of earlier versions have it.
    Agent {
        /// The number.
        key: u64,
        /// The name.
        name: String,
    },
    /// The number of a principal.
    Principal {
        /// The number.
        key: u64,
        /// The name.
        name: String,
    },
    /// What an agent was answered, so that the same request sent again gets the same answer. Not
    /// tied to a session: it must not hold words of a person.
    Answered {
        /// Which agent.
        agent: u64,
        /// The key that the agent gave its request.
        idempotency_key: String,
        /// When.
        unix_us: i64,
        /// The answer. An empty one forgets the key.
        answer: Arc<[u8]>,
    },
    /// An entry of the audit log.
    Audit(Entry),
}

/// Refuses what is beyond the bounds, before anything is written.
pub(super) fn check(changes: &[Change]) -> Result<(), CommitError> {
    if changes.len() > MAX_CHANGES {
        return Err(CommitError::TooMany {
            what: "changes in one commit",
            max: MAX_CHANGES as u64,
        });
    }
    changes.iter().try_for_each(check_one)
}

fn check_one(change: &Change) -> Result<(), CommitError> {
    match change {
        Change::Event { json, .. } => bound("an event", json.len(), MAX_JSON_BYTES),
        Change::SessionAbout { json, .. } => {
            bound("what is known of a session", json.len(), MAX_TERMS_BYTES)
        }
        Change::Subscribed { json, .. } => bound("the terms", json.len(), MAX_TERMS_BYTES),
        Change::AskSettled { resolution, .. } => {
            bound("a resolution", resolution.len(), MAX_JSON_BYTES)
        }
        Change::Agent { name, .. } | Change::Principal { name, .. } => {
            bound("a name", name.len(), MAX_NAME_BYTES)
        }
        Change::Answered { idempotency_key, answer, .. } => {
            bound("an idempotency key", idempotency_key.len(), MAX_NAME_BYTES)?;
            bound("an answer", answer.len(), MAX_JSON_BYTES)
        }
        Change::Audit(entry) => check_entry(entry),
        Change::SessionEnded { .. }
        | Change::AskOpened { .. }
        | Change::AskMoved { .. }
        | Change::Unsubscribed { .. } => Ok(()),
    }
}

/// The same for an entry of the audit log.
pub(super) fn check_entry(entry: &Entry) -> Result<(), CommitError> {
    let Entry { kind, who, outcome, details, .. } = entry;
    bound("the kind of an audit entry", kind.len(), MAX_NAME_BYTES)?;
    bound("who is in an audit entry", who.as_ref().map_or(0, String::len), MAX_NAME_BYTES)?;
    bound("the outcome of an audit entry", outcome.len(), MAX_NAME_BYTES)?;
    bound("the details of an audit entry", details.as_ref().map_or(0, String::len), MAX_JSON_BYTES)
}

fn bound(what: &'static str, bytes: usize, max: usize) -> Result<(), CommitError> {
    if bytes > max { Err(CommitError::TooLarge { what, bytes, max }) } else { Ok(()) }
}
