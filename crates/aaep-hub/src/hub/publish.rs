//! Agents publish, and wait for the answers to their questions.

use aaep::extension::{DOOR_FIELDS, Delivery, Original, PREFIX};
use aaep::{
    CoreType, Event, EventId, Message, Mode, Object, Payload, ReplyToken, SessionId, Severity,
};
use aaep_engine::{FILLED_FIELDS, Input, Output, Refusal, complete, is_filled, is_same_chunk};
use serde::Serialize;
use serde_json::Value;

use super::answers::{KeyedRequest, Known};
use super::entry;
use super::holders::NameClaim;
use super::own_ids;
use super::owner::{OpenAsk, Owner};
use super::refused::Refused;
use super::session_agent::SessionAgent;
use super::settlement::{Asked, Settlement};
use crate::access::{LimitError, MAX_EVENTS_AT_ONCE, Principal};
use crate::bounds::MAX_KEY_BYTES;
use crate::store::{Change, ReadError, Reader};

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
pub(super) struct Draft {
    event: DraftEvent,
    /// The ids as its agent wrote them, where they had another form.
    original: Option<Box<Original>>,
}

enum DraftEvent {
    /// The engine has to fill in what its agent left out before it can be read.
    ToFill(Object),
    /// Nothing was left out, so that it was read where it came in, beside others.
    Read(Result<Box<Event>, Refused>),
}

impl Draft {
    pub(super) fn new(principal: &Principal, mut object: Object) -> Self {
        let original = own_ids::give_form(&principal.id, &mut object);
        let event = if is_filled(&object) {
            DraftEvent::Read(read(&object))
        } else {
            DraftEvent::ToFill(object)
        };
        Draft { event, original }
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

impl Owner {
    /// Takes events of an agent, each by itself. Under an idempotency key, once.
    pub(super) fn publish_all(
        &mut self,
        principal: &Principal,
        events: Vec<Draft>,
        keyed: Option<KeyedRequest>,
    ) -> Vec<Result<Published, Refused>> {
        let Ok(number) = self.principal(principal) else {
            return events.iter().map(|_| Err(Refused::TooManyNames)).collect();
        };
        if keyed.as_ref().is_some_and(|it| it.key.len() > MAX_KEY_BYTES) {
            return events.iter().map(|_| Err(Refused::KeyTooLong)).collect();
        }
        if events.len() > MAX_EVENTS_AT_ONCE as usize {
            let limit = LimitError::TooManyAtOnce;
            return events.iter().map(|_| Err(Refused::Limit(limit))).collect();
        }
        match keyed.as_ref().map_or(Known::No, |it| self.answers.find(number, it)) {
            Known::No => {}
            Known::Same(outcomes) => {
                self.status.metrics.repeated();
                return outcomes;
            }
            Known::Another => {
                self.status.metrics.refused(Refused::KeyUsed.code());
                return events.iter().map(|_| Err(Refused::KeyUsed)).collect();
            }
        }
        let outcomes: Vec<_> =
            events.into_iter().map(|event| self.publish(principal, number, event)).collect();
        if let Some(keyed) = keyed
            && outcomes.iter().any(Result::is_ok)
        {
            let unix_us = self.clock.now().unix_us;
            let changes = self.answers.add(number, keyed, &outcomes, unix_us);
            self.batch.changes.extend(changes);
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
        let Draft { event, original } = draft;
        let (event, left_out) = match event {
            DraftEvent::Read(read) => (read?, Vec::new()),
            DraftEvent::ToFill(mut object) => {
                let left_out = left_out(&object);
                self.engine.fill(self.clock.now(), &mut object);
                (read(&object)?, left_out)
            }
        };
        let event_id = event.envelope.event_id.clone();
        let session_id = event.envelope.session_id.clone();
        let published = Published::of(&event, false);
        let foreign =
            || Refused::Rules { event_id: event_id.clone(), refusal: Refusal::NotYourSession };
        if let Some(before) = self.engine.published(&event_id) {
            let whose = self.engine.principal_of(&before.envelope.session_id);
            let is_own = whose == Some(principal);
            return if is_own { repeat(before, &event, &left_out) } else { Err(foreign()) };
        }
        let whose = self.engine.principal_of(&session_id);
        if whose.is_some_and(|whose| whose != principal) {
            return Err(foreign());
        }
        // What left memory may have come before all the same, unless the hub has just made its id.
        let is_new = left_out.contains(&"event_id");
        let may_be_stored =
            whose.is_none() || (!is_new && self.engine.may_have_dropped(&session_id, &event_id));
        if may_be_stored && let Some(before) = self.stored_before(principal, &published) {
            let before = before.map_err(|()| foreign())?;
            return repeat(&before, &event, &left_out);
        }
        let agent_id = event.envelope.producer.agent_id.clone();
        self.speak_as(who, principal, (&agent_id, NameClaim::OrFree))?;
        if Delivery::is_for_the_hub_to_say(&event) {
            return Err(Refused::Rules { event_id, refusal: Refusal::SpeaksForTheHub });
        }
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        if !is_end && !self.running_bytes.has_room(principal) {
            return Err(Refused::RunningBytes);
        }
        let event = with_words_of_the_door(event, who, original);
        let agent = SessionAgent::new(who, &agent_id);
        let about = if whose.is_none() {
            let json = agent.to_json().ok_or(Refused::TooManyNames)?;
            Some(Change::SessionAbout { session_id: session_id.clone(), json: json.into() })
        } else {
            None
        };
        // Rules must not answer a new holder of a name before anybody heard of it.
        if whose.is_some() {
            self.tell_if_taken_over(&session_id, &agent_id, principal);
        }
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
    fn stored_before(&self, principal: u64, event: &Published) -> Option<Result<Box<Event>, ()>> {
        let session = self.reader.session(&event.session_id).ok()??;
        if session.principal != principal {
            return Some(Err(()));
        }
        let stored = self.reader.event(&event.session_id, &event.event_id).ok()??;
        match aaep::read(&stored.json, Mode::Tolerant).message {
            Some(Message::Event(event)) => Some(Ok(event)),
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

/// A question says who published it, and an event with ids of its agent's own which they were.
fn with_words_of_the_door(
    mut event: Box<Event>,
    who: &Principal,
    original: Option<Box<Original>>,
) -> Box<Event> {
    let publisher = entry::question(&event).is_some().then(|| who.id.clone());
    if publisher.is_some() || original.is_some() {
        let said = Delivery::of(&event).unwrap_or_default();
        Delivery { publisher, original: original.map(|it| *it), ..said }.put_on(&mut event);
    }
    event
}

/// What an agent left out of its event, for the hub to fill in.
fn left_out(object: &Object) -> Vec<&'static str> {
    FILLED_FIELDS.into_iter().filter(|name| !object.contains_key(*name)).collect()
}

/// The answer to an event whose id came before: the first event stands, if this is the same one. Nobody
/// learns the outcome of one question by asking another one under its id.
fn repeat(before: &Event, again: &Event, left_out: &[&str]) -> Result<Published, Refused> {
    if is_same(before, again, left_out) {
        return Ok(Published::of(before, true));
    }
    Err(Refused::EventIdUsed { event_id: again.envelope.event_id.clone() })
}

/// Whether two events say the same. What was left out has been filled in otherwise the first time; a program
/// may take a new timestamp when it tries again; the state that is left is told as subscribers know it; and the
/// hub has put on the first who published it, and which ids its agent wrote.
fn is_same(before: &Event, again: &Event, left_out: &[&str]) -> bool {
    let is_text = matches!(before.payload, Payload::OutputStreaming(_));
    if is_text && !is_same_chunk(before, again) {
        return false;
    }
    // As they are told, whatever the agent left to the hub (ruling 34).
    let (mut before, mut again) = (before.clone(), again.clone());
    complete(&mut before);
    complete(&mut again);
    let object = |event: &Event| match serde_json::to_value(event) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    };
    let (Some(mut before), Some(mut again)) = (object(&before), object(&again)) else {
        return false;
    };
    for event in [&mut before, &mut again] {
        for name in left_out.iter().copied().chain(["@context", "timestamp", "from_state"]) {
            event.remove(name);
        }
        if is_text {
            event.remove("chunk");
            event.remove("position");
        }
        remove_words_of_the_door(event);
    }
    before == again
}

/// Takes away what the hub puts on an event, with what is empty without it.
fn remove_words_of_the_door(event: &mut Object) {
    let Some(Value::Object(extensions)) = event.get_mut("extensions") else { return };
    if let Some(Value::Object(ours)) = extensions.get_mut(PREFIX) {
        ours.retain(|name, _| !DOOR_FIELDS.contains(&name.as_str()) && name != "counted_to");
        if ours.is_empty() {
            extensions.remove(PREFIX);
        }
    }
    if extensions.is_empty() {
        event.remove("extensions");
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
