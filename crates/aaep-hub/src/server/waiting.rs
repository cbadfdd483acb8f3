//! The questions that wait for people, as a list that can be looked at without listening.

use aaep::Timestamp;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::App;
use super::answer::{self, Answer};
use super::listeners::failed;
use super::query;
use crate::access::Principal;
use crate::hub::WaitingAsk;
use crate::store::MAX_PAGE_ROWS;

/// How many questions an answer has unless it is asked for another number.
const DEFAULT_ASKS: u64 = 100;

/// How many bytes of events an answer has at most, so that every client can take it whole.
const MAX_EVENT_BYTES: usize = 2 * 1024 * 1024;

impl App {
    /// The open questions that the principal may hear, the oldest first.
    pub(super) async fn waiting_asks(
        &self,
        principal: &Principal,
        uri: &Uri,
    ) -> Result<Answer, Box<Answer>> {
        let limit = query::number_within(uri, "limit", 1..=MAX_PAGE_ROWS as u64)?;
        let limit = usize::try_from(limit.unwrap_or(DEFAULT_ASKS)).unwrap_or(MAX_PAGE_ROWS);
        let found = self.hub.waiting_asks(principal).await;
        let waiting = found.map_err(|error| failed(&error))?;
        let mut bytes = 0;
        let rows = waiting.iter().take(limit).map_while(|ask| {
            let (row, size) = row(ask);
            bytes += size;
            (bytes <= MAX_EVENT_BYTES).then_some(row)
        });
        let rows: Vec<Value> = rows.collect();
        let body = json!({ "waiting": waiting.len(), "asks": rows });
        Ok(answer::json(StatusCode::OK, &body))
    }
}

/// A question, and how many bytes its event has. Without the right to reply there is no token, here or there.
fn row(ask: &WaitingAsk) -> (Value, usize) {
    let text = serde_json::to_vec(&*ask.event).unwrap_or_default();
    let mut event: Value = serde_json::from_slice(&text).unwrap_or_default();
    if ask.reply_token.is_none()
        && let Some(fields) = event.as_object_mut()
    {
        fields.remove("reply_token");
    }
    let mut row = json!({
        "session_id": ask.session_id,
        "agent_id": ask.agent_id,
        "asked_at": Timestamp::from_unix_us(ask.asked_unix_us),
        "left_ms": ask.left_ms,
        "paused": ask.is_paused,
        "event": event,
    });
    if let Some(token) = &ask.reply_token {
        row["reply_token"] = token.as_str().into();
    }
    (row, text.len())
}
