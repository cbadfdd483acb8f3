//! Agents publish, and wait for the answers to their questions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{Event, EventId, Message, Mode, Object, ReplyToken, SessionId, Severity};
use aaep_engine::{Input, Output, Refusal, is_filled};
use serde::{Deserialize, Serialize};

use super::entry;
use super::owner::{OpenAsk, Owner};
use super::refused::Refused;
use super::session_agent::SessionAgent;
use super::settlement::{Asked, Settlement};
use crate::access::Principal;
use crate::store::{Change, MAX_IDEMPOTENCY_KEYS, ReadError, Reader, StoredAnswer};

/// An event that stands, and is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Its id.
    pub event_id: EventId,
    /// Its session.
    pub session_id: SessionId,
    /// Its token, if it is a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<ReplyToken>,
    /// Whether it came before, so that this changed nothing.
    #[serde(rename = "repeated", skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
}

impl Published {
    fn of(event: &Event, is_repeated: bool) -> Self {
        Published {
            event_id: event.envelope.event_id.clone(),
            session_id: event.envelope.session_id.clone(),
            reply_token: entry::question(event).cloned(),
            is_repeated,
        }
    }
}

/// An event on its way in.
pub(super) enum Draft {
    /// The engine has to fill in what its agent left out before it can be read.
    ToFill(Object),
    /// Nothing was left out, so that it was read where it came in, beside others.
    Read(Result<Box<Event>, Refused>),
}

impl Draft {
    pub(super) fn new(object: Object) -> Self {
        if is_filled(&object) { Draft::Read(read(&object)) } else { Draft::ToFill(object) }
    }
}

/// Reads an event that is complete.
fn read(object: &Object) -> Result<Box<Event>, Refused> {
    let reading = aaep::read_object(object, Mode::Strict);
    match reading.message {
        Some(Message::Event(event)) => Ok(event),
        Some(_) => Err(Refused::NotAnEvent),
        None => {
            let mut violations = reading.violations;
            violations.retain(|violation| violation.severity == Severity::Error);
            Err(Refused::NotValid { violations })
        }
    }
}

/// What was answered under idempotency keys, the newest of them.
#[derive(Debug, Default)]
pub(super) struct Answers {
    known: HashMap<(u64, String), Arc<[u8]>>,
    order: VecDeque<(u64, String)>,
}

impl Answers {
    pub(super) fn new(stored: &[StoredAnswer]) -> Self {
        let mut answers = Answers::default();
        for it in stored {
            answers.keep(it.agent, it.idempotency_key.clone(), Arc::clone(&it.answer));
        }
        answers
    }

    fn keep(&mut self, principal: u64, key: String, answer: Arc<[u8]>) {
        let key = (principal, key);
        if self.known.insert(key.clone(), answer).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() as u64 > MAX_IDEMPOTENCY_KEYS {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    fn find(&self, principal: u64, key: &str) -> Option<Vec<Result<Published, Refused>>> {
        let answer = self.known.get(&(principal, key.to_owned()))?;
        let lines: Vec<Option<Line>> = serde_json::from_slice(answer).ok()?;
        lines.into_iter().map(|line| line.map_or(Some(Err(Refused::Before)), Line::read)).collect()
    }
}

/// An event that was published, as it is stored under an idempotency key.
#[derive(Serialize, Deserialize)]
struct Line {
    event_id: String,
    session_id: String,
    reply_token: Option<String>,
}

impl Line {
    fn read(self) -> Option<Result<Published, Refused>> {
        let reply_token = match self.reply_token {
            Some(token) => Some(ReplyToken::parse(&token).ok()?),
            None => None,
        };
        Some(Ok(Published {
            event_id: EventId::parse(&self.event_id).ok()?,
            session_id: SessionId::parse(&self.session_id).ok()?,
            reply_token,
            is_repeated: true,
        }))
    }

    fn of(published: &Published) -> Self {
        Line {
            event_id: published.event_id.to_string(),
            session_id: published.session_id.to_string(),
            reply_token: published.reply_token.as_ref().map(ToString::to_string),
        }
    }
}

impl Owner {
    /// Takes events of an agent, each by itself. Under an idempotency key, once.
    pub(super) fn publish_all(
        &mut self,
        principal: &Principal,
        events: Vec<Draft>,
        idempotency_key: Option<String>,
    ) -> Vec<Result<Published, Refused>> {
        let Ok(key) = self.principal(principal) else {
            return events.iter().map(|_| Err(Refused::TooManyNames)).collect();
        };
        if let Some(known) = idempotency_key.as_ref().and_then(|it| self.answers.find(key, it)) {
            self.status.metrics.repeated();
            return known;
        }
        let outcomes: Vec<_> =
            events.into_iter().map(|event| self.publish(principal, key, event)).collect();
        if let Some(idempotency_key) = idempotency_key
            && outcomes.iter().any(Result::is_ok)
        {
            let lines: Vec<Option<Line>> =
                outcomes.iter().map(|it| it.as_ref().ok().map(Line::of)).collect();
            let answer: Arc<[u8]> = serde_json::to_vec(&lines).unwrap_or_default().into();
            self.answers.keep(key, idempotency_key.clone(), Arc::clone(&answer));
            let unix_us = self.clock.now().unix_us;
            self.batch.changes.push(Change::Answered {
                agent: key,
                idempotency_key,
                unix_us,
                answer,
            });
        }
        outcomes
    }

    /// Takes one event of an agent.
    pub(super) fn publish(
        &mut self,
        who: &Principal,
        principal: u64,
        event: Draft,
    ) -> Result<Published, Refused> {
        let outcome = self.try_publish(who, principal, event);
        match &outcome {
            Ok(published) if published.is_repeated => self.status.metrics.repeated(),
            Ok(_) => self.status.metrics.published(),
            Err(refused) => self.status.metrics.refused(refused.code()),
        }
        outcome
    }

    fn try_publish(
        &mut self,
        who: &Principal,
        principal: u64,
        draft: Draft,
    ) -> Result<Published, Refused> {
        let event = match draft {
            Draft::Read(read) => read?,
            Draft::ToFill(mut object) => {
                self.engine.fill(self.clock.now(), &mut object);
                read(&object)?
            }
        };
        let event_id = event.envelope.event_id.clone();
        let session_id = event.envelope.session_id.clone();
        let published = Published::of(&event, false);
        let foreign =
            || Refused::Rules { event_id: event_id.clone(), refusal: Refusal::NotYourSession };
        if let Some(before) = self.engine.published(&event_id) {
            // Not as it is now: what was left out has been filled in otherwise the first time.
            let whose = self.engine.principal_of(&before.envelope.session_id);
            let is_own = whose == Some(principal);
            return if is_own { Ok(Published::of(before, true)) } else { Err(foreign()) };
        }
        let whose = self.engine.principal_of(&session_id);
        if whose.is_some_and(|whose| whose != principal) {
            return Err(foreign());
        }
        if whose.is_none()
            && let Some(before) = self.stored_before(principal, &published)
        {
            return before.map_err(|()| foreign());
        }
        let agent_id = event.envelope.producer.agent_id.clone();
        self.speak_as(who, principal, &agent_id)?;
        if Delivery::is_for_the_hub_to_say(&event) {
            return Err(Refused::Rules { event_id, refusal: Refusal::SpeaksForTheHub });
        }
        let mut event = event;
        if entry::question(&event).is_some() {
            let said = Delivery::of(&event).unwrap_or_default();
            let publisher = Some(who.id.clone());
            Delivery { publisher, ..said }.put_on(&mut event);
        }
        let agent = SessionAgent::new(who, &agent_id);
        let about = if whose.is_none() {
            let json = agent.to_json().ok_or(Refused::TooManyNames)?;
            Some(Change::SessionAbout { session_id: session_id.clone(), json: json.into() })
        } else {
            None
        };
        let input = Input::Publish { principal, tags: agent.tags, event };
        for answer in self.handle(input, None) {
            if let Output::Refused { event_id, refusal, .. } = answer {
                return Err(Refused::Rules { event_id, refusal });
            }
        }
        self.batch.changes.extend(about);
        self.tell_if_taken_over(&session_id, &agent_id, principal);
        Ok(published)
    }

    /// Whether an event of a session that the engine no longer remembers was stored long ago.
    fn stored_before(&self, principal: u64, event: &Published) -> Option<Result<Published, ()>> {
        let session = self.reader.session(&event.session_id).ok()??;
        if session.principal != principal {
            return Some(Err(()));
        }
        let stored = self.reader.event(&event.session_id, &event.event_id).ok()??;
        match aaep::read(&stored.json, Mode::Tolerant).message {
            Some(Message::Event(event)) => Some(Ok(Published::of(&event, true))),
            _ => None,
        }
    }

    /// A question of an agent that is open.
    pub(super) fn open_ask_of(&self, principal: u64, reply_token: &ReplyToken) -> Option<&OpenAsk> {
        self.asks.get(reply_token).filter(|ask| ask.asked.principal == principal)
    }

    /// An agent no longer needs an answer. Says whether that question was open and its own.
    pub(super) fn withdraw(&mut self, principal: u64, reply_token: &ReplyToken) -> bool {
        let Some(ask) = self.asks.get(reply_token) else { return false };
        if ask.asked.principal != principal {
            return false;
        }
        let input = Input::Withdraw { principal, reply_token: reply_token.clone() };
        let answers = self.handle(input, None);
        !answers.iter().any(|answer| matches!(answer, Output::NoSuchAsk { .. }))
    }
}

/// How a question of an agent was settled, as far as it is stored. Somebody else's is not found.
pub(super) fn settled(
    reader: &Reader,
    principal: u64,
    reply_token: &ReplyToken,
) -> Result<Option<(Asked, Settlement)>, ReadError> {
    let Some(stored) = reader.settled(reply_token)? else { return Ok(None) };
    let Some(resolution) = stored.resolution else { return Ok(None) };
    let found = Settlement::from_stored(reply_token, &resolution);
    Ok(found.filter(|(asked, _)| asked.principal == principal))
}
