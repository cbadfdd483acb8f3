//! The questions that wait now, for people who look instead of listening.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aaep::{Event, ReplyToken, SessionId};

use super::owner::Owner;
use super::{Hub, HubError};
use crate::access::{Principal, Scope};

/// The place of a question in the list of those that wait: first the first question of every principal, then the
/// second of each, and so on (ruling 38). It stays the same as long as the question is open, so that a page can
/// go on after it.
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

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub struct WaitingAsk {
    /// Its place in the list.
    pub place: AskCursor,
    /// Its token; none for those who may not reply. Never a credential.
    pub reply_token: Option<ReplyToken>,
    /// Its session.
    pub session_id: SessionId,
    /// The agent whose session it is.
    pub agent_id: String,
    /// The event that asks, in all its languages.
    pub event: Arc<Event>,
    /// When it was asked, in microseconds since 1970 began.
    pub asked_unix_us: i64,
    /// How long it can still be answered, in milliseconds.
    pub left_ms: u64,
    /// Whether its time stands still; then `left_ms` is when it goes on at the latest, and ends.
    pub is_paused: bool,
}

impl Hub {
    /// The open questions that a principal may hear: of each principal that asked the oldest, then of each the next
    /// one, and so on. Looking is not listening: whoever
    /// only looks does not count as someone who could answer.
    pub async fn waiting_asks(&self, principal: &Principal) -> Result<Vec<WaitingAsk>, HubError> {
        let who = principal.clone();
        // What is not stored yet is heard by nobody. While nothing can be stored, those who look are still answered.
        if self.shared.status.what_is_wrong().is_some() {
            return self.look(move |owner| owner.waiting_asks(&who)).await;
        }
        self.call(move |owner| owner.waiting_asks(&who)).await
    }
}

impl Owner {
    fn waiting_asks(&self, principal: &Principal) -> Vec<WaitingAsk> {
        let may_reply = principal.scopes.has(Scope::Reply);
        let hearing = principal.hearing();
        let waiting = self.engine.waiting_asks(self.clock.now());
        let heard = waiting.into_iter().filter_map(|ask| {
            let agent_id = ask.event.envelope.producer.agent_id.clone();
            let open = self.asks.get(&ask.reply_token)?;
            let place = AskCursor { round: open.round, order: ask.order };
            hearing.includes(&ask.tags).then(|| WaitingAsk {
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
        let mut heard: Vec<WaitingAsk> = heard.collect();
        heard.sort_by_key(|ask| ask.place);
        heard
    }
}
