//! What can be stored: plain facts, and whether they keep their bounds.
//!
//! Knows nothing of what an event means, never changes a fact on its way in, and never refuses one for its size:
//! what was taken at the door is stored, see [`crate::bounds`].

use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId, SubscriptionId};

use crate::audit::Entry;
use crate::bounds::{
    MAX_ANSWER_BYTES, MAX_CHANGES, MAX_JSON_BYTES, MAX_NAME_BYTES, MAX_TERMS_BYTES,
};

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
    /// When this was stored; none if a version before stored it.
    pub stored_unix_us: Option<i64>,
    /// When the last event before it was recorded; none if there was none, or if a version before stored it.
    pub event_unix_us: Option<i64>,
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

/// The first thing that is beyond its bound, which is a mistake of the hub: what it is, how much, and the bound.
pub(super) fn beyond_bounds(changes: &[Change]) -> Option<(&'static str, usize, usize)> {
    let all = [("the changes of a commit", changes.len(), MAX_CHANGES)];
    let mut bounded = all.into_iter().chain(changes.iter().flat_map(bounded));
    bounded.find(|(_, found, max)| found > max)
}

fn bounded(change: &Change) -> Vec<(&'static str, usize, usize)> {
    match change {
        Change::Event { json, .. } => vec![("an event", json.len(), MAX_JSON_BYTES)],
        Change::SessionAbout { json, .. } => {
            vec![("what is known of a session", json.len(), MAX_TERMS_BYTES)]
        }
        Change::Subscribed { json, .. } => vec![("terms", json.len(), MAX_TERMS_BYTES)],
        Change::AskSettled { resolution, .. } => {
            vec![("a resolution", resolution.len(), MAX_JSON_BYTES)]
        }
        Change::Agent { name, .. } | Change::Principal { name, .. } => {
            vec![("a name", name.len(), MAX_NAME_BYTES)]
        }
        Change::Answered { idempotency_key, answer, .. } => vec![
            ("an idempotency key", idempotency_key.len(), MAX_NAME_BYTES),
            ("an answer", answer.len(), MAX_ANSWER_BYTES),
        ],
        Change::Audit(Entry { who, outcome, details, .. }) => vec![
            ("who is in an audit entry", who.as_ref().map_or(0, String::len), MAX_NAME_BYTES),
            ("the outcome of an audit entry", outcome.len(), MAX_NAME_BYTES),
            (
                "the words of an audit entry",
                details.as_ref().map_or(0, String::len),
                MAX_JSON_BYTES,
            ),
        ],
        Change::SessionEnded { .. }
        | Change::AskOpened { .. }
        | Change::AskMoved { .. }
        | Change::Unsubscribed { .. } => Vec::new(),
    }
}
