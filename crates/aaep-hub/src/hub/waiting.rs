//! The open asks, for people who look them up instead of listening.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aaep::{Event, ReplyToken, SessionId};

use super::owner::EngineOwner;
use super::{Hub, HubError};
use crate::access::{Principal, Scope};

/// The position of an ask in the list of open asks: the first ask of every principal, then the second of each,
/// and so on (ruling 38). It stays the same as long as the ask is open, so that a page can continue after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskCursor {
    round: u64,
    order: u64,
}

impl fmt::Display for AskCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.round, self.order)
    }
}

impl FromStr for AskCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (round, order) = text.split_once('-').ok_or(())?;
        Ok(AskCursor { round: round.parse().map_err(drop)?, order: order.parse().map_err(drop)? })
    }
}

/// An open ask.
#[derive(Debug, Clone)]
pub struct ListedAsk {
    /// Its position in the list.
    pub place: AskCursor,
    /// Its reply token; `None` for principals that may not reply. It is never a credential.
    pub reply_token: Option<ReplyToken>,
    /// Its session.
    pub session_id: SessionId,
    /// The agent that its session belongs to.
    pub agent_id: String,
    /// The event that asks, in all its languages.
    pub event: Arc<Event>,
    /// When it was asked, in microseconds since 1970.
    pub asked_unix_us: i64,
    /// How long it can still be answered, in milliseconds.
    pub left_ms: u64,
    /// Whether its clock is stopped; then `left_ms` is the time until it resumes at the latest, and ends.
    pub is_paused: bool,
}

impl Hub {
    /// Lists the open asks that a principal may hear: the oldest ask of each principal that asked, then the
    /// next one of each, and so on. Looking is not listening: a program that only looks does not count as one
    /// that could answer.
    pub async fn waiting_asks(&self, principal: &Principal) -> Result<Vec<ListedAsk>, HubError> {
        let who = principal.clone();
        // Nobody hears what is not stored yet. While nothing can be stored, lookups are still answered.
        if self.shared.status.what_is_wrong().is_some() {
            return self.look_up(move |owner| owner.waiting_asks(&who)).await;
        }
        self.call(move |owner| owner.waiting_asks(&who)).await
    }
}

impl EngineOwner {
    fn waiting_asks(&self, principal: &Principal) -> Vec<ListedAsk> {
        let may_reply = principal.scopes.has(Scope::Reply);
        let hearing = principal.hearing();
        let waiting = self.engine.waiting_asks(self.clock.now());
        let heard = waiting.into_iter().filter_map(|ask| {
            let agent_id = ask.event.envelope.producer.agent_id.clone();
            let open = self.asks.get(&ask.reply_token)?;
            let place = AskCursor { round: open.round, order: ask.order };
            hearing.includes(&ask.tags).then(|| ListedAsk {
                place,
                session_id: ask.event.envelope.session_id.clone(),
                agent_id,
                asked_unix_us: open.asked_unix_us,
                left_ms: ask.left_us / 1000,
                is_paused: ask.is_paused,
                event: ask.event,
                reply_token: may_reply.then_some(ask.reply_token),
            })
        });
        let mut heard: Vec<ListedAsk> = heard.collect();
        heard.sort_by_key(|ask| ask.place);
        heard
    }
}
