//! Requests of agents: publish, ask and wait, and receive instructions from people.

use aaep::extension::Accepts;
use aaep::{Code, CoreType, EventType, Mode, Object, ReplyToken, Timestamp, Violation};
use http::header::LOCATION;
use http::{HeaderMap, Request, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::ServerApp;
use super::answer::{self, HttpResponse, JSON_LINES};
use super::body::{self, BodyKind};
use super::query;
use super::subscribers::failed;
use crate::access::{LimitError, Principal};
use crate::bounds::MAX_KEY_BYTES;
use crate::hub::{HubError, Published, PublishedAskState, Refused, own_ids};
use aaep_trust::strict_json::{self, NotStrict};

impl ServerApp {
    /// Publishes events: one, or one on each line.
    pub(super) async fn publish(
        &self,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let kind = body::kind(request.headers(), true)?;
        let key = idempotency_key(request.headers())?;
        let bytes = self.body(request).await?;
        if kind == BodyKind::Lines {
            return self.publish_lines(principal, &bytes, key).await;
        }
        let event = read_event(&bytes).map_err(|wrong| Box::new(not_valid(&wrong)))?;
        match self.publish_one(principal, event, key).await? {
            Ok(published) => Ok(answer::json(StatusCode::OK, &published)),
            Err(refused) => Ok(refusal(&refused)),
        }
    }

    async fn publish_one(
        &self,
        principal: &Principal,
        event: Object,
        key: Option<String>,
    ) -> Result<Result<Published, Refused>, Box<HttpResponse>> {
        let outcomes = self.hub.publish(principal, vec![event], key).await;
        let outcomes = outcomes.map_err(|error| failed(&error))?;
        // If the key was used for an empty request, there is no outcome.
        Ok(outcomes.into_iter().next().unwrap_or(Err(Refused::Before)))
    }

    async fn publish_lines(
        &self,
        principal: &Principal,
        bytes: &[u8],
        key: Option<String>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        // Lines are counted before they are parsed, because the violations of a line are longer than the
        // line.
        let most = usize::try_from(self.guard.limits().events_at_once()).unwrap_or(usize::MAX);
        let lines: Vec<&[u8]> = lines.take(most.saturating_add(1)).collect();
        if lines.len() > most {
            return Ok(answer::limited(LimitError::TooManyAtOnce));
        }
        let mut events = Vec::new();
        let mut wrong: Vec<Option<Vec<Violation>>> = Vec::new();
        for line in lines {
            match read_event(line) {
                Ok(event) => {
                    events.push(event);
                    wrong.push(None);
                }
                Err(violations) => wrong.push(Some(violations)),
            }
        }
        let outcomes = if events.is_empty() {
            Vec::new()
        } else {
            let outcomes = self.hub.publish(principal, events, key).await;
            outcomes.map_err(|error| failed(&error))?
        };
        if let Some(Err(Refused::Limit(limit))) = outcomes.first() {
            return Ok(answer::limited(*limit));
        }
        Ok(lines_answer(&wrong, outcomes))
    }

    /// Publishes an ask and waits for its outcome.
    pub(super) async fn ask(
        &self,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let wait = query::wait(request.uri())?;
        let key = idempotency_key(request.headers())?;
        let event = read_event(&self.json_body(request).await?);
        let event = event.map_err(|wrong| Box::new(not_valid(&wrong)))?;
        if !is_ask(&event) {
            return Ok(answer::refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "not_a_question",
                "This event asks nothing. Send agent.awaiting.confirmation or \
                 agent.awaiting.clarification here, and the rest to /aaep/v1/publish.",
            ));
        }
        let published = match self.publish_one(principal, event, key).await? {
            Ok(published) => published,
            Err(refused) => return Ok(refusal(&refused)),
        };
        match &published.reply_token {
            Some(token) => self.wait_for(principal, token, wait).await,
            None => Ok(answer::refusal(
                StatusCode::CONFLICT,
                "not_a_question",
                "This event_id or idempotency key was used for an event that asks nothing. Use another one.",
            )),
        }
    }

    /// The state of an ask.
    pub(super) async fn ask_state(
        &self,
        principal: &Principal,
        token: &str,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let wait = query::wait(uri)?;
        let token = parse_token(principal, token)?;
        self.wait_for(principal, &token, wait).await
    }

    async fn wait_for(
        &self,
        principal: &Principal,
        token: &ReplyToken,
        wait: std::time::Duration,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let state = tokio::select! {
            state = self.hub.ask_state(principal, token, wait) => state,
            // A hub that stops ends the wait; the ask stays open across the restart.
            () = self.stopping() => {
                self.hub.ask_state(principal, token, std::time::Duration::ZERO).await
            }
        };
        let state = state.map_err(|error| failed(&error))?;
        Ok(state_answer(token, &state))
    }

    /// Withdraws an ask (§6.8).
    pub(super) async fn withdraw(
        &self,
        principal: &Principal,
        token: &str,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let token = parse_token(principal, token)?;
        self.hub.withdraw(principal, &token).await.map_err(|error| failed(&error))?;
        Ok(answer::done())
    }

    /// Declares which instructions an agent accepts from people.
    pub(super) async fn accepts(
        &self,
        principal: &Principal,
        agent_id: &str,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let bytes = self.json_body(request).await?;
        let accepts = read_accepts(agent_id, &bytes)?;
        match self.hub.declare(principal, agent_id, accepts).await {
            Ok(()) => Ok(answer::done()),
            Err(HubError::NoSuchAgent) => Ok(answer::refusal(
                StatusCode::CONFLICT,
                "name_taken",
                "Somebody else speaks under this agent_id, or too many agents are here. Choose \
                 another agent_id, or try again later.",
            )),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The instructions that people gave an agent.
    pub(super) async fn inbox(
        &self,
        principal: &Principal,
        agent_id: &str,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let after = query::whole_number(uri, "after")?.unwrap_or(0);
        let wait = query::wait(uri)?;
        let instructions = tokio::select! {
            found = self.hub.instructions(principal, agent_id, after, wait) => {
                found.map_err(|error| failed(&error))?
            }
            () = self.stopping() => Vec::new(),
        };
        Ok(answer::json(StatusCode::OK, &json!({ "instructions": instructions })))
    }
}

/// Parses an event from an agent: an object without duplicate members. The hub checks the rest.
fn read_event(bytes: &[u8]) -> Result<Object, Vec<Violation>> {
    let all = || aaep::validate(bytes, Mode::Strict);
    match strict_json::parse(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(NotStrict::NotJson) => Err(all()),
        Err(NotStrict::DuplicateMember) => {
            // The hub may fill in members that are missing.
            Err(all().into_iter().filter(|it| it.code == Code::DuplicateKey).collect())
        }
    }
}

fn is_ask(event: &Object) -> bool {
    let name = event.get("type").and_then(Value::as_str).map(EventType::parse);
    matches!(
        name,
        Some(Ok(EventType::Core(CoreType::AwaitingConfirmation | CoreType::AwaitingClarification)))
    )
}

/// The key that identifies a repeated request.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Box<HttpResponse>> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if values.next().is_some() || !is_visible || text.len() > MAX_KEY_BYTES {
        return Err(Box::new(answer::refusal(
            StatusCode::BAD_REQUEST,
            "wrong_idempotency_key",
            "The header Idempotency-Key is not one. Send 1 to 255 visible ASCII characters, once.",
        )));
    }
    Ok(Some(text.to_owned()))
}

fn parse_token(principal: &Principal, text: &str) -> Result<ReplyToken, Box<HttpResponse>> {
    own_ids::token(&principal.id, text).ok_or_else(|| failed(&HubError::NoSuchAsk))
}

fn read_accepts(agent_id: &str, bytes: &[u8]) -> Result<Vec<Accepts>, Box<HttpResponse>> {
    let stated = match strict_json::parse(bytes) {
        Ok(Value::Object(stated)) => stated,
        _ => Object::new(),
    };
    let mut hello = stated;
    hello.insert("type".to_owned(), "agentvoice:agent.hello".into());
    hello.insert("agent_id".to_owned(), agent_id.into());
    match aaep::read_object(&hello, Mode::Strict).into_result() {
        Ok(aaep::Message::AgentHello(hello)) => Ok(hello.accepts),
        Ok(_) => Err(Box::new(answer::not_found())),
        Err(wrong) => Err(Box::new(answer::not_valid(StatusCode::BAD_REQUEST, &wrong))),
    }
}

fn not_valid(violations: &[Violation]) -> HttpResponse {
    answer::not_valid(StatusCode::UNPROCESSABLE_ENTITY, violations)
}

fn refusal(refused: &Refused) -> HttpResponse {
    match refused {
        Refused::Limit(limit) => answer::limited(*limit),
        refused => answer::json(answer::status(refused.status()), &refusal_object(refused)),
    }
}

fn refusal_object(refused: &Refused) -> Value {
    match refused {
        Refused::NotValid { violations } => answer::violations_object(violations),
        Refused::Rules { event_id, .. } | Refused::EventIdUsed { event_id } => json!({
            "error": refused.code(),
            "message": refused.to_string(),
            "event_id": event_id,
        }),
        refused => json!({ "error": refused.code(), "message": refused.to_string() }),
    }
}

/// One line for each request line, in the same order. `wrong` has the violations of lines that could not be
/// read.
fn lines_answer(
    wrong: &[Option<Vec<Violation>>],
    outcomes: Vec<Result<Published, Refused>>,
) -> HttpResponse {
    let mut outcomes = outcomes.into_iter();
    let mut is_refused = false;
    let mut text = String::new();
    for line in wrong {
        let value = match line {
            Some(violations) => Err(answer::violations_object(violations)),
            None => match outcomes.next().unwrap_or(Err(Refused::Before)) {
                Ok(published) => Ok(json!(published)),
                Err(refused) => Err(refusal_object(&refused)),
            },
        };
        is_refused |= value.is_err();
        let value = value.unwrap_or_else(|refused| refused);
        text.push_str(&value.to_string());
        text.push('\n');
    }
    let status = if is_refused { StatusCode::CONFLICT } else { StatusCode::OK };
    answer::whole(status, JSON_LINES, text)
}

/// An ask: settled, or still open with the address where to ask again.
fn state_answer(token: &ReplyToken, state: &PublishedAskState) -> HttpResponse {
    let mut object = Object::new();
    object.insert("event_id".to_owned(), state.event_id.as_str().into());
    object.insert("session_id".to_owned(), state.session_id.as_str().into());
    object.insert("reply_token".to_owned(), token.as_str().into());
    if let Some(settlement) = &state.settlement {
        object.insert("status".to_owned(), "settled".into());
        if let Ok(Value::Object(settled)) = serde_json::to_value(settlement) {
            object.extend(settled);
        }
        return answer::json(StatusCode::OK, &object);
    }
    object.insert("status".to_owned(), "open".into());
    let deadline = state.ends_unix_us.and_then(|us| Timestamp::from_unix_ms(us / 1000));
    if let Some(deadline) = deadline {
        object.insert("deadline".to_owned(), deadline.as_str().into());
    }
    let place = format!("/aaep/v1/asks/{}", token.as_str());
    answer::with_header(answer::json(StatusCode::ACCEPTED, &object), LOCATION, &place)
}
