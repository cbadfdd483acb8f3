//! The questions that wait now, for people who look instead of listening.

use std::sync::Arc;

use aaep::{Event, ReplyToken, SessionId};

use super::owner::Owner;
use super::{Hub, HubError};
use crate::access::{Principal, Scope};

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub struct WaitingAsk {
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
    /// The open questions that a principal may hear, the oldest first. Looking is not listening: whoever
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
            hearing.includes(&ask.tags).then(|| WaitingAsk {
                session_id: ask.event.envelope.session_id.clone(),
                agent_id,
                asked_unix_us: open.asked_unix_us,
                left_ms: ask.left_us / 1000,
                is_paused: ask.is_paused,
                event: ask.event,
                reply_token: may_reply.then_some(ask.reply_token),
            })
        });
        heard.collect()
    }
}
