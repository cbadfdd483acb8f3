//! What can be stored: plain facts, and the check that they keep their bounds.
//!
//! The store does not know what an event means, never changes a fact on its way in, and never refuses one for
//! its size: what the hub accepted is stored, see [`crate::bounds`].

use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId, SubscriptionId};
use aaep_engine::PrincipalNumber;

use crate::audit::Entry;
use crate::bounds::{
    MAX_ANSWER_BYTES, MAX_CHANGES, MAX_JSON_BYTES, MAX_NAME_BYTES, MAX_TERMS_BYTES,
};
use crate::store::held_names::StoredName;

/// The time of an ask, by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTime {
    /// When its default applies; `None` while its clock is stopped.
    pub ends_unix_us: Option<i64>,
    /// How much time is left while its clock is stopped; `None` while the ask waits to be presented.
    pub left_us: Option<u64>,
    /// When it ends at the latest.
    pub limit_unix_us: i64,
    /// How often its time was changed.
    pub changes: u32,
    /// When this was stored; `None` if an earlier version stored it.
    pub stored_unix_us: Option<i64>,
    /// When the last event before it was recorded; `None` if there was none, or if an earlier version stored
    /// it.
    pub event_unix_us: Option<i64>,
}

/// One fact to store. A commit stores all of its changes or none.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreChange {
    /// An event is part of the history of its session. The first event creates the session.
    Event {
        /// Its position among all events of this store. Always larger than that of the previous event.
        order: u64,
        /// Its session.
        session_id: SessionId,
        /// Its id.
        event_id: EventId,
        /// The agent that the session belongs to.
        agent: u64,
        /// The principal that speaks for that agent; the one of a session's first event counts for the whole
        /// session.
        principal: PrincipalNumber,
        /// Whether the hub made it, not the agent.
        by_hub: bool,
        /// When it was taken in.
        unix_us: i64,
        /// The event as it was taken in.
        json: Arc<[u8]>,
    },
    /// The agent of a session, and which subscribers may hear it. Has no effect if the session is not stored.
    SessionAbout {
        /// The session.
        session_id: SessionId,
        /// The details, as JSON.
        json: Arc<[u8]>,
    },
    /// A session is over. Has no effect if the session is not stored.
    SessionEnded {
        /// The session.
        session_id: SessionId,
        /// When.
        unix_us: i64,
    },
    /// An ask was published.
    AskOpened {
        /// The ask.
        reply_token: ReplyToken,
        /// Its session.
        session_id: SessionId,
        /// How long it waits.
        time: StoredTime,
    },
    /// The time of an open ask changed. Has no effect if the ask is not open.
    AskMoved {
        /// The ask.
        reply_token: ReplyToken,
        /// How long it waits from now on.
        time: StoredTime,
    },
    /// An ask is settled. Its token stays used, and its resolution can be told again.
    AskSettled {
        /// The ask.
        reply_token: ReplyToken,
        /// When.
        unix_us: i64,
        /// How, as JSON.
        resolution: Arc<[u8]>,
    },
    /// A subscription was made, or its terms changed.
    Subscribed {
        /// The subscription.
        subscription_id: SubscriptionId,
        /// The principal that it belongs to.
        principal: PrincipalNumber,
        /// Whether the subscriber may answer asks.
        may_reply: bool,
        /// The terms, as JSON.
        json: Arc<[u8]>,
    },
    /// A subscription ended for good.
    Unsubscribed {
        /// The subscription.
        subscription_id: SubscriptionId,
    },
    /// The number of an agent. Only the journals of earlier versions contain it.
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
    /// A principal speaks under an agent name.
    NameHeld(StoredName),
    /// A name is forgotten: whoever uses it next is the first.
    NameForgotten {
        /// The name.
        agent_id: String,
    },
    /// The answer that an agent got, so that the same request gets the same answer again. It does not belong to
    /// a session, so it must not contain a person's words.
    Answered {
        /// The principal that sent the request.
        principal: PrincipalNumber,
        /// The key that it gave its request.
        idempotency_key: String,
        /// When.
        unix_us: i64,
        /// The answer. An empty answer deletes the key.
        answer: Arc<[u8]>,
    },
    /// An entry of the audit log.
    Audit(Entry),
}

/// The first thing beyond its bound, which is a bug in the hub: what it is, its size, and the bound.
pub(super) fn beyond_bounds(changes: &[StoreChange]) -> Option<(&'static str, usize, usize)> {
    let all = [("the changes of a commit", changes.len(), MAX_CHANGES)];
    let mut bounded = all.into_iter().chain(changes.iter().flat_map(bounded));
    bounded.find(|(_, found, max)| found > max)
}

fn bounded(change: &StoreChange) -> Vec<(&'static str, usize, usize)> {
    match change {
        StoreChange::Event { json, .. } => vec![("an event", json.len(), MAX_JSON_BYTES)],
        StoreChange::SessionAbout { json, .. } => {
            vec![("what is known of a session", json.len(), MAX_TERMS_BYTES)]
        }
        StoreChange::Subscribed { json, .. } => vec![("terms", json.len(), MAX_TERMS_BYTES)],
        StoreChange::AskSettled { resolution, .. } => {
            vec![("a resolution", resolution.len(), MAX_JSON_BYTES)]
        }
        StoreChange::Agent { name, .. }
        | StoreChange::Principal { name, .. }
        | StoreChange::NameHeld(StoredName { agent_id: name, .. })
        | StoreChange::NameForgotten { agent_id: name } => {
            vec![("a name", name.len(), MAX_NAME_BYTES)]
        }
        StoreChange::Answered { idempotency_key, answer, .. } => vec![
            ("an idempotency key", idempotency_key.len(), MAX_NAME_BYTES),
            ("an answer", answer.len(), MAX_ANSWER_BYTES),
        ],
        StoreChange::Audit(Entry { who, outcome, details, .. }) => vec![
            ("who is in an audit entry", who.as_ref().map_or(0, String::len), MAX_NAME_BYTES),
            ("the outcome of an audit entry", outcome.len(), MAX_NAME_BYTES),
            (
                "the words of an audit entry",
                details.as_ref().map_or(0, String::len),
                MAX_JSON_BYTES,
            ),
        ],
        StoreChange::SessionEnded { .. }
        | StoreChange::AskOpened { .. }
        | StoreChange::AskMoved { .. }
        | StoreChange::Unsubscribed { .. } => Vec::new(),
    }
}
