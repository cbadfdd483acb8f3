//! Publishing: takes events from agents, and looks up the outcomes of their asks.

use aaep::extension::{DOOR_FIELDS, Delivery, Original, PREFIX};
use aaep::{
    CoreType, Event, EventId, Message, Mode, Object, Payload, ReplyToken, SessionId, Severity,
};
use aaep_engine::{
    EngineInput, FILLED_FIELDS, Output, PrincipalNumber, Refusal, complete, is_filled,
    is_same_chunk,
};
use serde::Serialize;
use serde_json::Value;

use super::answers::{KeyLookup, KeyedRequest};
use super::entry;
use super::holders::NameClaim;
use super::open_asks::HubOpenAsk;
use super::own_ids;
use super::owner::EngineOwner;
use super::refused::Refused;
use super::session_agent::SessionAgent;
use super::settlement::{AskOrigin, Settlement};
use crate::access::{LimitError, MAX_EVENTS_AT_ONCE, Principal};
use crate::bounds::MAX_KEY_BYTES;
use crate::store::{ReadError, Reader, StoreChange};

/// An event that was accepted and stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Its id.
    pub event_id: EventId,
    /// Its session.
    pub session_id: SessionId,
    /// Its reply token, if it is an ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<ReplyToken>,
    /// Whether the event came before, so that this request changed nothing.
    #[serde(rename = "repeated", skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
}

impl Published {
    fn of(event: &Event, is_repeated: bool) -> Self {
        Published {
            event_id: event.envelope.event_id.clone(),
            session_id: event.envelope.session_id.clone(),
            reply_token: entry::ask_token(event).cloned(),
            is_repeated,
        }
    }
}

/// An event that is about to be published.
pub(super) struct EventDraft {
    event: DraftContent,
    /// The ids that the agent wrote, if they had another form.
    original: Option<Box<Original>>,
}

enum DraftContent {
    /// The engine has to fill in omitted fields before the event can be read.
    ToFill(Object),
    /// Nothing was omitted, so the event was read where it came in, in parallel with others.
    Read(Result<Box<Event>, Refused>),
}

impl EventDraft {
    pub(super) fn new(principal: &Principal, mut object: Object) -> Self {
        let original = own_ids::give_form(&principal.id, &mut object);
        let event = if is_filled(&object) {
            DraftContent::Read(read(&object))
        } else {
            DraftContent::ToFill(object)
        };
        EventDraft { event, original }
    }
}

/// Reads a complete event.
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

impl EngineOwner {
    /// Publishes events of an agent, each one separately. Under an idempotency key, only once.
    pub(super) fn publish_all(
        &mut self,
        principal: &Principal,
        events: Vec<EventDraft>,
        keyed: Option<KeyedRequest>,
    ) -> Vec<Result<Published, Refused>> {
        let Ok(number) = self.principal_number(principal) else {
            return events.iter().map(|_| Err(Refused::TooManyNames)).collect();
        };
        if keyed.as_ref().is_some_and(|it| it.key.len() > MAX_KEY_BYTES) {
            return events.iter().map(|_| Err(Refused::KeyTooLong)).collect();
        }
        if events.len() > MAX_EVENTS_AT_ONCE as usize {
            let limit = LimitError::TooManyAtOnce;
            return events.iter().map(|_| Err(Refused::Limit(limit))).collect();
        }
        match keyed.as_ref().map_or(KeyLookup::No, |it| self.answers.find(number, it)) {
            KeyLookup::No => {}
            KeyLookup::Same(outcomes) => {
                self.status.metrics.repeated();
                return outcomes;
            }
            KeyLookup::Another => {
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

    /// Publishes one event of an agent.
    pub(super) fn publish(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
        event: EventDraft,
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
        principal: PrincipalNumber,
        draft: EventDraft,
    ) -> Result<Published, Refused> {
        let EventDraft { event, original } = draft;
        let (event, left_out) = match event {
            DraftContent::Read(read) => (read?, Vec::new()),
            DraftContent::ToFill(mut object) => {
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
            let asked_again = || as_heard_before(event.clone(), before, (who, principal));
            return if is_own { repeat(before, &asked_again(), &left_out) } else { Err(foreign()) };
        }
        let whose = self.engine.principal_of(&session_id);
        if whose.is_some_and(|whose| whose != principal) {
            return Err(foreign());
        }
        // An event that left memory may still have been published before, unless the hub has just made its id.
        let is_new = left_out.contains(&"event_id");
        let may_be_stored =
            whose.is_none() || (!is_new && self.engine.may_have_dropped(&session_id, &event_id));
        if may_be_stored && let Some(before) = self.stored_before(principal, &published) {
            let before = before.map_err(|()| foreign())?;
            let event = as_heard_before(event, &before, (who, principal));
            return repeat(&before, &event, &left_out);
        }
        let agent_id = event.envelope.producer.agent_id.clone();
        self.speak_as(who, principal, (&agent_id, NameClaim::OrFree))?;
        if event
            .envelope
            .producer
            .agent_name
            .as_deref()
            .is_some_and(|it| self.reads_like_the_hub(it))
        {
            return Err(Refused::NameTaken);
        }
        if Delivery::is_for_the_hub_to_say(&event) {
            return Err(Refused::Rules { event_id, refusal: Refusal::SpeaksForTheHub });
        }
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        if !is_end && !self.running_bytes.has_room(principal) {
            return Err(Refused::RunningBytes);
        }
        let given = event.envelope.producer.clone();
        let project = Delivery::of(&event).and_then(|said| said.project);
        let mut event = with_hub_fields(event, who, original);
        if let Some(told) = self.told_name(who, principal, (&given, project.as_deref())) {
            event.envelope.producer.agent_name = Some(told);
        }
        // A session keeps the tags with which it began.
        let is_start = matches!(event.payload, Payload::SessionStarted(_));
        let begun = self.engine.tags_of(&session_id).filter(|_| !is_start).cloned();
        let tags = begun.unwrap_or_else(|| SessionAgent::new(who, &agent_id).tags);
        let about = if whose.is_none() {
            let agent = SessionAgent { agent_id: agent_id.clone(), tags: tags.clone() };
            let json = agent.to_json().ok_or(Refused::TooManyNames)?;
            Some(StoreChange::SessionAbout { session_id: session_id.clone(), json: json.into() })
        } else {
            None
        };
        // A rule must not answer the new holder of a name before the takeover has been announced.
        if whose.is_some() {
            self.announce_takeover(&session_id, &given, principal);
        }
        let input = EngineInput::Publish { principal, tags, event };
        for answer in self.handle(input, None) {
            if let Output::Refused { event_id, refusal, .. } = answer {
                return Err(Refused::Rules { event_id, refusal });
            }
        }
        self.batch.changes.extend(about);
        self.announce_takeover(&session_id, &given, principal);
        Ok(published)
    }

    /// Looks up an event in a session that the engine no longer remembers. Fails if the session belongs to
    /// another principal.
    fn stored_before(
        &self,
        principal: PrincipalNumber,
        event: &Published,
    ) -> Option<Result<Box<Event>, ()>> {
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

    /// An open ask of this principal.
    pub(super) fn open_ask_of(
        &self,
        principal: PrincipalNumber,
        reply_token: &ReplyToken,
    ) -> Option<&HubOpenAsk> {
        self.asks.get(reply_token).filter(|ask| ask.asked.principal == principal)
    }

    /// Withdraws an ask. Returns whether it was open and belonged to the principal.
    pub(super) fn withdraw(
        &mut self,
        principal: PrincipalNumber,
        reply_token: &ReplyToken,
    ) -> bool {
        let Some(ask) = self.asks.get(reply_token) else { return false };
        if ask.asked.principal != principal {
            return false;
        }
        let input = EngineInput::Withdraw { principal, reply_token: reply_token.clone() };
        let answers = self.handle(input, None);
        !answers.iter().any(|answer| matches!(answer, Output::NoSuchAsk { .. }))
    }
}

/// Adds the publisher to an ask, and the agent's own ids to an event that had any.
fn with_hub_fields(
    mut event: Box<Event>,
    who: &Principal,
    original: Option<Box<Original>>,
) -> Box<Event> {
    let publisher = entry::ask_token(&event).is_some().then(|| who.id.clone());
    if publisher.is_some() || original.is_some() {
        let said = Delivery::of(&event).unwrap_or_default();
        Delivery { publisher, original: original.map(|it| *it), ..said }.put_on(&mut event);
    }
    event
}

/// The event with the name under which people heard the one that came before, if the hub made that from the name that
/// the agent gives.
fn as_heard_before(
    mut event: Box<Event>,
    before: &Event,
    (who, principal): (&Principal, PrincipalNumber),
) -> Box<Event> {
    let producer = &mut event.envelope.producer;
    let heard = &before.envelope.producer.agent_name;
    let given = producer.agent_name.as_ref().unwrap_or(&producer.agent_id);
    let forms = EngineOwner::forms_of_name(who, principal, given);
    if heard.as_ref().is_some_and(|heard| forms.contains(heard)) {
        producer.agent_name.clone_from(heard);
    }
    event
}

/// The fields that an agent omitted, for the hub to fill in.
fn left_out(object: &Object) -> Vec<&'static str> {
    FILLED_FIELDS.into_iter().filter(|name| !object.contains_key(*name)).collect()
}

/// Answers an event whose id was used before: if both are the same event, the first one stands. Otherwise it is
/// refused, so that nobody learns the outcome of one ask by publishing another under its id.
fn repeat(before: &Event, again: &Event, left_out: &[&str]) -> Result<Published, Refused> {
    if is_same(before, again, left_out) {
        return Ok(Published::of(before, true));
    }
    Err(Refused::EventIdUsed { event_id: again.envelope.event_id.clone() })
}

/// Whether two events say the same. Ignores omitted fields, which the hub filled in differently the first time;
/// the timestamp, which a program may renew when it retries; the state that was left, which is told as
/// subscribers know it; and what the hub added to the first event: its publisher and its original ids.
fn is_same(before: &Event, again: &Event, left_out: &[&str]) -> bool {
    let is_text = matches!(before.payload, Payload::OutputStreaming(_));
    if is_text && !is_same_chunk(before, again) {
        return false;
    }
    // Compare the events as subscribers receive them, whatever the agent left to the hub (ruling 34).
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
        remove_hub_fields(event);
    }
    before == again
}

/// Removes the fields that the hub adds to an event, and any object that is empty without them.
fn remove_hub_fields(event: &mut Object) {
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

/// How an ask of this principal was settled, as far as that is stored. Asks of other principals are not found.
pub(super) fn settled(
    reader: &Reader,
    principal: PrincipalNumber,
    reply_token: &ReplyToken,
) -> Result<Option<(AskOrigin, Settlement)>, ReadError> {
    let Some(stored) = reader.settled(reply_token)? else { return Ok(None) };
    let Some(resolution) = stored.resolution else { return Ok(None) };
    let found = Settlement::from_stored(reply_token, &resolution);
    Ok(found.filter(|(asked, _)| asked.principal == principal))
}
