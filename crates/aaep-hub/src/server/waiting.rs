//! The asks that wait for people, as a list that can be read without a subscription.

use aaep::Timestamp;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::ServerApp;
use super::answer::{self, HttpResponse};
use super::query;
use super::subscribers::failed;
use crate::access::Principal;
use crate::hub::{AskCursor, ListedAsk};
use crate::store::MAX_PAGE_ROWS;

/// The default number of asks in a response.
const DEFAULT_ASKS: u64 = 100;

/// The most bytes of events in a response, so that every client can read it at once.
const MAX_EVENT_BYTES: usize = 2 * 1024 * 1024;

impl ServerApp {
    /// A page of the open asks that the principal may hear. It lists the oldest ask of each asking
    /// principal, then the next one of each, so that no principal hides the asks of others.
    pub(super) async fn waiting_asks(
        &self,
        principal: &Principal,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let limit = query::number_within(uri, "limit", 1..=MAX_PAGE_ROWS as u64)?;
        let limit = usize::try_from(limit.unwrap_or(DEFAULT_ASKS)).unwrap_or(MAX_PAGE_ROWS);
        let after = query::cursor::<AskCursor>(uri)?;
        let found = self.hub.waiting_asks(principal).await;
        let waiting = found.map_err(|error| failed(&error))?;
        let rest = waiting.iter().filter(|ask| after.is_none_or(|after| ask.place > after));
        let (mut rows, mut bytes, mut next, mut last) = (Vec::new(), 0, None, None);
        for ask in rest {
            let (row, size) = row(ask);
            bytes += size;
            if rows.len() == limit || (bytes > MAX_EVENT_BYTES && !rows.is_empty()) {
                next = last;
                break;
            }
            rows.push(row);
            last = Some(ask.place);
        }
        let mut body = json!({ "waiting": waiting.len(), "asks": rows });
        if let Some(next) = next {
            body["next"] = next.to_string().into();
        }
        Ok(answer::json(StatusCode::OK, &body))
    }
}

/// An ask, and the size of its event in bytes. Without the right to reply, the reply token is left out
/// everywhere.
fn row(ask: &ListedAsk) -> (Value, usize) {
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
