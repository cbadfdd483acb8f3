//! Accepts events: checks their order, adds them to the history, and delivers them (§4.5).

mod extension;
mod fill;
mod words;

use std::sync::Arc;

use aaep::event::action::{OutputStreaming, ToolCompleted, ToolStatus};
use aaep::event::reasoning::{StateChanged, state};
use aaep::{Envelope, Event, EventId, Object, Payload, SessionId, Timestamp, Urgency};

use super::{Engine, EngineSession, MAX_AGENT_ID_BYTES, MAX_CLOCK_DIFFERENCE_US, MAX_SESSIONS};
use crate::ask::{is_default_safe, question};
use crate::audience::{HistoryEntry, SessionKey, cut};
use crate::clock::Now;
use crate::io::{AgentTags, Author, Output, PrincipalNumber, Record, Refusal};
use crate::order::{Admitted, LeftOpen, SessionOrder};
use crate::weight::{json_of, weight_of_json};
use words::send_normal;

pub use words::{complete, is_same_chunk};

pub use fill::{FILLED_FIELDS, is_filled};

impl Engine {
    pub(super) fn publish(
        &mut self,
        now: Now,
        (principal, tags): (PrincipalNumber, AgentTags),
        mut event: Event,
        out: &mut Vec<Output>,
    ) {
        complete(&mut event);
        let event_id = event.envelope.event_id.clone();
        let begins_at = self.begins_at(&event);
        match self.admit(now, (principal, tags), &event) {
            Err(refusal) => out.push(Output::Refused { principal, event_id, refusal }),
            Ok((session, admitted)) => {
                out.push(Output::Published { principal, event_id });
                if let Some(session) = self.sessions.get_mut(session) {
                    session.note_producer(&event, now.unix_us);
                    session.heard_us = now.monotonic_us;
                    session.silent_before_us = 0;
                }
                self.note_languages(principal, &event);
                if let Some(begins_at) = begins_at {
                    send_normal(&mut event, begins_at);
                }
                self.take_in(now, session, event, &admitted, out);
            }
        }
    }

    /// Where the text of an event begins in its output, if it has text.
    fn begins_at(&self, event: &Event) -> Option<u64> {
        let Payload::OutputStreaming(chunk) = &event.payload else { return None };
        let session = self.session(&event.envelope.session_id);
        Some(session.map_or(chunk.position, |session| session.order.begins_at(chunk)))
    }

    /// An event that was accepted, if it is in memory.
    pub fn published(&self, event_id: &EventId) -> Option<&Event> {
        let session = self.sessions.get(self.sessions.with_event(event_id)?)?;
        let mut events = session.history.iter().rev().map(|entry| &*entry.event);
        events.find(|event| event.envelope.event_id == *event_id)
    }

    /// Whether the event may come now. On `Err`, nothing has changed.
    fn admit(
        &mut self,
        now: Now,
        (principal, tags): (PrincipalNumber, AgentTags),
        event: &Event,
    ) -> Result<(SessionKey, Admitted), Refusal> {
        if self.sessions.with_event(&event.envelope.event_id).is_some() {
            return Err(Refusal::Repeated);
        }
        if event.envelope.producer.agent_id.len() > MAX_AGENT_ID_BYTES {
            let what = "producer.agent_id";
            return Err(Refusal::TooLong { what, max_bytes: MAX_AGENT_ID_BYTES });
        }
        self.check_clock(now, event)?;
        extension::check(event)?;
        if let Some((token, _)) = question(&event.payload) {
            if let Payload::AwaitingConfirmation(asked) = &event.payload
                && !is_default_safe(asked)
            {
                return Err(Refusal::UnsafeDefault);
            }
            if self.asks.was_used(token) {
                return Err(Refusal::TokenUsed);
            }
            if self.asks.contains(token) {
                return Err(Refusal::TokenOpen);
            }
            if self.is_being_asked(event) {
                return Err(Refusal::AlreadyAsked);
            }
            self.check_ask_share(principal, event)?;
        }
        let is_terminal = event.event_type().core().is_some_and(aaep::CoreType::is_terminal);
        if !is_terminal {
            self.check_own_bytes(principal)?;
        }
        let id = &event.envelope.session_id;
        if let Some(key) = self.sessions.key_of(id) {
            let Some(session) = self.sessions.get_mut(key) else {
                return Err(Refusal::TooMany("sessions"));
            };
            if session.principal != principal {
                return Err(Refusal::NotYourSession);
            }
            if session.dropped_ids.may_have(&event.envelope.event_id) {
                return Err(Refusal::Repeated);
            }
            // Subscribers hear a state change from the state in which they believe the agent to be.
            let agent_id = &event.envelope.producer.agent_id;
            if let Payload::StateChanged(change) = &event.payload
                && let Some(known) = session.spoken.get(agent_id)
            {
                let left = session.order.check_leaving(agent_id, known, &change.to_state);
                left.map_err(Refusal::Order)?;
            }
            let admitted = session.order.admit(event).map_err(Refusal::Order)?;
            return Ok((key, admitted));
        }
        let mut order = SessionOrder::new();
        let admitted = order.admit(event).map_err(Refusal::Order)?;
        self.check_session_share(principal)?;
        self.make_room()?;
        let session = EngineSession::new(id.clone(), principal, tags);
        let key = self.sessions.insert(EngineSession { order, ..session });
        self.count_session(key);
        Ok((key, admitted))
    }

    /// Whether the agent's clock is about right. A running session may continue from its last timestamp even
    /// if it was our clock that jumped.
    fn check_clock(&self, now: Now, event: &Event) -> Result<(), Refusal> {
        let at_us = event.envelope.timestamp.unix_us();
        let session = self.sessions.key_of(&event.envelope.session_id);
        let last_us = session.and_then(|key| self.sessions.get(key)).map(|session| session.last_us);
        let ahead_us = at_us.saturating_sub(now.unix_us);
        let is_ahead = ahead_us > MAX_CLOCK_DIFFERENCE_US && last_us.is_none_or(|it| at_us > it);
        let is_behind = ahead_us < -MAX_CLOCK_DIFFERENCE_US && last_us.is_none();
        if is_ahead || is_behind { Err(Refusal::ClockDiffers { ahead_us }) } else { Ok(()) }
    }

    /// Whether the same action of the same session already waits for an answer (§6.1).
    fn is_being_asked(&self, event: &Event) -> bool {
        let Payload::AwaitingConfirmation(new) = &event.payload else { return false };
        let Some(session) = self.sessions.key_of(&event.envelope.session_id) else { return false };
        self.asks_in(session).any(|ask| {
            matches!(&ask.event.payload,
                Payload::AwaitingConfirmation(open) if open.action == new.action)
        })
    }

    /// Drops the oldest ended session when there are too many. Running ones are never dropped.
    fn make_room(&mut self) -> Result<(), Refusal> {
        if self.sessions.len() < MAX_SESSIONS {
            return Ok(());
        }
        let ended = self.sessions.iter().find(|(_, session)| session.order.is_ended());
        let Some(key) = ended.map(|(key, _)| key) else {
            return Err(Refusal::TooMany("sessions"));
        };
        self.drop_ended_session(key);
        Ok(())
    }

    /// Deletes an ended session, also from the logs of audiences, which may have kept it longer.
    pub(super) fn delete_session(&mut self, session_id: &SessionId) {
        if let Some(key) = self.sessions.key_of(session_id) {
            if !self.has_ended(session_id) {
                return;
            }
            self.forget(key);
        }
        for audience in self.audiences.values_mut() {
            audience.delete_session(session_id);
        }
    }

    /// Publishes an admitted event, with the events that must come before and after it.
    fn take_in(
        &mut self,
        now: Now,
        session: SessionKey,
        event: Event,
        admitted: &Admitted,
        out: &mut Vec<Output>,
    ) {
        if admitted.terminal {
            self.withdraw_all(now, session, None, out);
            self.close_left_open(now, session, &event.envelope, &admitted.left_open, out);
        }
        let asked = question(&event.payload).map(|(token, _)| token.clone());
        if asked.is_some() {
            self.announce_waiting(now, session, &event.envelope, out);
        }
        let event = self.as_subscribers_know_it(session, event);
        let event = match &event.payload {
            Payload::StateChanged(change) if leaves_waiting(change) => {
                self.withdraw_by_state(now, session, event, out)
            }
            _ => event,
        };
        let event = Arc::new(event);
        match asked {
            Some(token) => self.ask(now, session, &event, &token, out),
            None => self.append(now, session, event, Author::Agent, out),
        }
    }

    /// Appends an event to the history of its session and delivers it.
    pub(super) fn append(
        &mut self,
        now: Now,
        key: SessionKey,
        event: Arc<Event>,
        author: Author,
        out: &mut Vec<Output>,
    ) {
        let json: Arc<[u8]> = json_of(&event).into();
        let Some(entry) = self.file_event(key, event, &json, author) else {
            return;
        };
        let Some(principal) = self.sessions.get(key).map(|it| it.principal) else { return };
        self.event_unix_us = Some(now.unix_us);
        out.push(Output::Record(Record {
            principal,
            tags: entry.tags.clone(),
            event: Arc::clone(&entry.event),
            json,
            author,
            unix_us: now.unix_us,
        }));
        self.deliver(now, &entry, out);
        self.trim_memory(now, &entry);
        if matches!(entry.event.payload, Payload::SessionStarted(_)) {
            self.tell_owed_gaps(now, key, out);
        }
    }

    /// Appends an event to the history of its session.
    pub(super) fn file_event(
        &mut self,
        key: SessionKey,
        event: Arc<Event>,
        json: &[u8],
        author: Author,
    ) -> Option<HistoryEntry> {
        let weight = weight_of_json(json);
        let session = self.sessions.get_mut(key)?;
        if session.next_number == 0 {
            session.first_order = self.next_order;
        }
        session.last_us = session.last_us.max(event.envelope.timestamp.unix_us());
        let entry = HistoryEntry {
            order: self.next_order,
            session: key,
            tags: session.tags.clone(),
            event,
            sequence_number: session.next_number,
            author,
            latest_us: session.last_us,
            weight,
        };
        self.next_order += 1;
        session.next_number += 1;
        session.history.push_back(entry.clone());
        self.sessions.note_event(&entry.event.envelope.event_id, key);
        self.newest = Some(entry.event.envelope.event_id.clone());
        self.hold(&entry);
        Some(entry)
    }

    /// An envelope with a new id, for an event that the engine makes itself.
    pub(super) fn own_envelope(&mut self, now: Now, key: SessionKey, like: &Envelope) -> Envelope {
        let session = self.sessions.get(key);
        let own_us = session.map_or(now.unix_us, |session| session.own_time_us(now));
        own_envelope(self.ids.event(), own_us, like)
    }

    /// Announces that the agent waits, if it did not say so itself (appendix A.4).
    fn announce_waiting(
        &mut self,
        now: Now,
        key: SessionKey,
        like: &Envelope,
        out: &mut Vec<Output>,
    ) {
        let agent = like.producer.agent_id.clone();
        let Some(session) = self.sessions.get_mut(key) else { return };
        let from = session.announced.get(&agent).cloned().unwrap_or(state::IDLE.to_owned());
        if from == state::AWAITING_INPUT {
            return;
        }
        session.speak_for(&agent, state::AWAITING_INPUT);
        let mut envelope = self.own_envelope(now, key, like);
        envelope.urgency = Some(Urgency::Background);
        let change = state_changed(from, state::AWAITING_INPUT, None);
        self.append(now, key, Arc::new(Event::new(envelope, change)), Author::Hub, out);
    }

    /// Announces something in a session that comes neither from an agent nor from an ask.
    pub(super) fn announce(
        &mut self,
        now: Now,
        session_id: &SessionId,
        words: String,
        out: &mut Vec<Output>,
    ) {
        let Some(key) = self.sessions.key_of(session_id) else { return };
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(last) = session.history.back().filter(|_| !session.order.is_ended()) else {
            return;
        };
        let like = last.event.envelope.clone();
        let agent_id = &like.producer.agent_id;
        let state = session.announced.get(agent_id).map_or(state::IDLE, String::as_str).to_owned();
        session.speak_for(agent_id, &state);
        let mut envelope = self.own_envelope(now, key, &like);
        // Only critical events may pass a filter and a rate (§5.3.1.1, §5.5.4).
        envelope.urgency = Some(Urgency::Critical);
        let change = state_changed(state.clone(), &state, Some(cut(words)));
        self.append(now, key, Arc::new(Event::new(envelope, change)), Author::Hub, out);
    }

    /// Changes a state change to start from the state that subscribers know. The engine may have announced a
    /// state that the agent does not know about.
    fn as_subscribers_know_it(&mut self, key: SessionKey, mut event: Event) -> Event {
        let Some(session) = self.sessions.get_mut(key) else { return event };
        let agent = event.envelope.producer.agent_id.clone();
        if let Payload::StateChanged(change) = &mut event.payload {
            if let Some(known) = session.spoken.remove(&agent) {
                change.from_state = known;
            }
            session.announced.insert(agent, change.to_state.clone());
        }
        event
    }

    /// Closes what an errored or cancelled session left open, before its end is told.
    pub(super) fn close_left_open(
        &mut self,
        now: Now,
        key: SessionKey,
        like: &Envelope,
        left: &LeftOpen,
        out: &mut Vec<Output>,
    ) {
        for tool in &left.tools {
            let completed = ToolCompleted {
                tool: tool.tool.clone(),
                status: ToolStatus::Timeout,
                tool_call_id: tool.tool_call_id.clone(),
                duration_ms: None,
                summary_terse: None,
                summary_normal: None,
                summary_detailed: None,
                error_message: Some("The session ended while the tool was running.".to_owned()),
                other: Object::new(),
            };
            let envelope = self.envelope_of(now, key, like, &tool.agent_id);
            self.append(now, key, Arc::new(Event::new(envelope, completed)), Author::Hub, out);
        }
        for output in &left.outputs {
            let last = OutputStreaming {
                chunk: String::new(),
                position: output.next_position,
                complete: true,
                coalesce_hint: None,
                output_id: output.output_id.clone(),
                content_type: None,
                language: None,
                other: Object::new(),
            };
            let envelope = self.envelope_of(now, key, like, &output.agent_id);
            self.append(now, key, Arc::new(Event::new(envelope, last)), Author::Hub, out);
        }
    }

    /// An envelope in the name of another agent of the session.
    fn envelope_of(
        &mut self,
        now: Now,
        key: SessionKey,
        like: &Envelope,
        agent_id: &str,
    ) -> Envelope {
        let mut envelope = self.own_envelope(now, key, like);
        let producer = self.sessions.get(key).and_then(|session| session.producers.get(agent_id));
        envelope.producer = producer.cloned().unwrap_or_else(|| aaep::Producer::new(agent_id));
        envelope
    }
}

/// An envelope with this id and time, for an event that the engine makes itself.
pub(super) fn own_envelope(id: EventId, unix_us: i64, like: &Envelope) -> Envelope {
    Envelope {
        event_id: id,
        timestamp: stamp(unix_us),
        sequence_number: None,
        correlation_id: None,
        context: aaep::Context::default(),
        urgency: Some(Urgency::Normal),
        ..like.clone()
    }
}

/// A state change that the engine makes itself.
pub(super) fn state_changed(from: String, to: &str, summary: Option<String>) -> StateChanged {
    StateChanged {
        from_state: from,
        to_state: to.to_owned(),
        summary_terse: None,
        summary_normal: summary,
        summary_detailed: None,
        expected_duration_ms: None,
        other: Object::new(),
    }
}

/// Whether the agent continues without waiting for an answer.
fn leaves_waiting(change: &StateChanged) -> bool {
    change.from_state == state::AWAITING_INPUT && change.to_state != state::AWAITING_INPUT
}

/// The moment as a timestamp.
fn stamp(unix_us: i64) -> Timestamp {
    let epoch = || Timestamp::from_unix_us(0).expect("the beginning of 1970 is a moment");
    Timestamp::from_unix_us(unix_us).unwrap_or_else(epoch)
}
