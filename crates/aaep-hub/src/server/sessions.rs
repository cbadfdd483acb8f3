//! Stored sessions: listing them, reading their events, and deleting them.

use std::collections::HashMap;

use aaep::extension::PREFIX;
use aaep::{ReplyToken, SessionId};
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::ServerApp;
use super::answer::{self, HttpResponse};
use super::query;
use super::subscribers::failed;
use crate::access::Principal;
use crate::hub::GivenAnswer;
use crate::store::{DeleteError, MAX_PAGE_ROWS, SessionCursor, StoredEvent};

/// The default number of rows in a response.
const DEFAULT_ROWS: u64 = 100;

/// The most sessions that can be skipped by number. Beyond it, only the cursor of an earlier page leads on.
const MAX_SKIPPED: u64 = 4096;

impl ServerApp {
    /// The sessions that the principal may hear, running ones first, then the newest.
    pub(super) async fn sessions(
        &self,
        principal: &Principal,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let limit = limit(uri)?;
        let mut next = query::cursor::<SessionCursor>(uri)?;
        let skip = query::number_within(uri, "skip", 0..=MAX_SKIPPED)?.unwrap_or(0);
        let mut to_skip = usize::try_from(skip).unwrap_or(usize::MAX);
        while to_skip > 0 {
            let page = self.hub.sessions(principal, next, to_skip).await;
            let page = page.map_err(|error| failed(&error))?;
            to_skip = to_skip.saturating_sub(page.sessions.len());
            if page.next.is_none() {
                return Ok(answer::json(StatusCode::OK, &json!({ "sessions": [] })));
            }
            next = page.next;
        }
        let page = self.hub.sessions(principal, next, limit).await;
        let page = page.map_err(|error| failed(&error))?;
        let mut body = json!({ "sessions": page.sessions });
        if let Some(next) = page.next {
            body["next"] = next.to_string().into();
        }
        Ok(answer::json(StatusCode::OK, &body))
    }

    /// Events of a session as they were received, from an order on.
    pub(super) async fn session_events(
        &self,
        principal: &Principal,
        id: &str,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let from_order = query::whole_number(uri, "from_order")?.unwrap_or(0);
        let limit = limit(uri)?;
        let Ok(id) = SessionId::parse(id) else { return Ok(no_such_session()) };
        let found = self.hub.session_events(principal, &id, from_order, limit).await;
        let Some(events) = found.map_err(|error| failed(&error))? else {
            return Ok(no_such_session());
        };
        let next = events.last().map(|event| event.order + 1);
        let mut events: Vec<Value> = events.iter().map(row).collect();
        let settled = events.iter().filter_map(settled_ask).collect();
        let answers = self.hub.given_answers(principal, settled).await;
        let answers = answers.map_err(|error| failed(&error))?;
        for row in &mut events {
            add_answer(row, &answers);
        }
        let body = json!({ "events": events, "next_from_order": next });
        Ok(answer::json(StatusCode::OK, &body))
    }

    /// Deletes a session that has ended.
    pub(super) async fn delete_session(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let Ok(id) = SessionId::parse(id) else { return Ok(no_such_session()) };
        let outcome = self.hub.delete_session(principal, &id).await;
        Ok(match outcome.map_err(|error| failed(&error))? {
            Ok(_) => answer::done(),
            Err(DeleteError::NoSuchSession) => no_such_session(),
            Err(error @ DeleteError::StillRunning) => {
                answer::refusal(StatusCode::CONFLICT, "still_running", &error.to_string())
            }
            Err(error @ DeleteError::Commit(_)) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                answer::refusal(status, "not_stored", &error.to_string())
            }
        })
    }
}

impl ServerApp {
    /// Ends a running session by hand.
    pub(super) async fn end_session(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let Ok(id) = SessionId::parse(id) else { return Ok(no_such_session()) };
        let outcome = self.hub.end_session(principal, &id).await.map_err(|error| failed(&error))?;
        Ok(match outcome {
            None => no_such_session(),
            Some(true) => answer::done(),
            Some(false) => answer::refusal(
                StatusCode::CONFLICT,
                "already_ended",
                "The session has ended already. Nothing was changed.",
            ),
        })
    }
}

fn limit(uri: &Uri) -> Result<usize, Box<HttpResponse>> {
    let limit = query::number_within(uri, "limit", 1..=MAX_PAGE_ROWS as u64)?;
    Ok(usize::try_from(limit.unwrap_or(DEFAULT_ROWS)).unwrap_or(MAX_PAGE_ROWS))
}

fn row(event: &StoredEvent) -> Value {
    let own: Value = serde_json::from_slice(&event.json).unwrap_or_default();
    json!({
        "order": event.order,
        "taken_in_unix_us": event.unix_us,
        "by_hub": event.by_hub,
        "event": own,
    })
}

/// The ask whose settlement a row reports. Only rows of the hub can report it.
fn settled_ask(row: &Value) -> Option<ReplyToken> {
    let resolution = &row["event"]["extensions"][PREFIX]["resolution"];
    let token = resolution["reply_token"].as_str().filter(|_| row["by_hub"] == true)?;
    ReplyToken::parse(token).ok()
}

/// Adds to a row that reports a settlement who answered the ask, if that is stored.
fn add_answer(row: &mut Value, answers: &HashMap<ReplyToken, GivenAnswer>) {
    if let Some(answer) = settled_ask(row).and_then(|token| answers.get(&token)) {
        row["answer"] = json!(answer);
    }
}

fn no_such_session() -> HttpResponse {
    answer::refusal(
        StatusCode::NOT_FOUND,
        "no_such_session",
        "There is no such session, or you may not hear it. GET /aaep/v1/sessions lists those you may.",
    )
}
