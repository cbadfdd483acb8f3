//! The units of a log: what an audience is told, one after the other.

use std::cell::OnceCell;
use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::{StateChanged, state};
use aaep::{Envelope, Event, EventId, Object, Payload, Producer, SessionId, Timestamp};

use super::HistoryEntry;
use crate::frame::Frame;
use crate::ids::derived_event_id;
use crate::io::{AgentTags, Author};
use crate::keys::SessionKey;

/// What a unit says, as far as merging is concerned (ruling 10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// A piece of an output. Pieces of one output can be joined.
    Text,
    /// Progress. Only the newest is delivered.
    Progress,
    /// A state change. Several fold into one, from the first state left to the last state entered.
    State,
    /// A tool event that can be merged into a digest when too many wait.
    PlainTool,
    /// Anything else. It is never merged.
    Other,
    /// A unit of a deleted session. There is nothing left to deliver.
    Deleted,
}

/// One entry of the log: an event, or a piece of a text.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The global order of the last event that it stands for.
    pub(crate) order: u64,
    pub(crate) session: SessionKey,
    pub(crate) event: Arc<Event>,
    pub(crate) kind: UnitKind,
    /// Whether it is delivered to everyone at once, past filter and rate. A deleted unit stays what it was.
    pub(crate) is_critical: bool,
    /// Whether it is an event of the agent as the agent sent it. Its time is when it happened.
    pub(crate) is_agents_own: bool,
    /// The latest timestamp of its session up to it.
    pub(crate) latest_us: i64,
    /// How many of the agent's events it stands for.
    pub(crate) stands_for: u64,
    /// The global order of the event that caused it.
    pub(super) made_at: u64,
    /// How many bytes it takes without its frame.
    pub(super) weight: usize,
    pub(crate) sequence_number: Option<u64>,
    pub(super) frame: OnceCell<Arc<Frame>>,
}

/// The id of a merged event, from the id of the last unit that it stands for.
pub(crate) fn merged_id(last: &EventId, audience: u64) -> EventId {
    derived_event_id(last, u64::MAX, audience)
}

impl Unit {
    /// The chunk, if the unit is text.
    pub(crate) fn text(&self) -> Option<&OutputStreaming> {
        match &self.event.payload {
            Payload::OutputStreaming(chunk) => Some(chunk),
            _ => None,
        }
    }

    /// The ids under which a subscriber may receive it: that of a merged event that ends with it, and its
    /// own.
    pub(crate) fn ids(&self, audience: u64) -> [EventId; 2] {
        let own = &self.event.envelope.event_id;
        [merged_id(own, audience), own.clone()]
    }

    /// Whether a subscriber may receive it under this id.
    pub(super) fn has_id(&self, audience: u64, id: &EventId) -> bool {
        let own = &self.event.envelope.event_id;
        own == id || merged_id(own, audience) == *id
    }

    /// How many bytes it takes, with its frame.
    pub(super) fn bytes(&self) -> usize {
        self.weight + self.frame.get().map_or(0, |frame| frame.json.len())
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.kind == UnitKind::Deleted
    }

    /// A placeholder for events that left memory. A subscriber that reaches it is told of a gap.
    pub(super) fn gone(order: u64) -> Self {
        const RIGHT: &str = "a constant of the right form";
        let event_id = EventId::parse("evt_gone").expect(RIGHT);
        let session_id = SessionId::parse("sess_gone").expect(RIGHT);
        let timestamp = Timestamp::from_unix_us(0).expect(RIGHT);
        let envelope = Envelope::new(event_id, session_id, timestamp, Producer::new("gone"));
        let event = Arc::new(Event::new(envelope, state_without_words(state::IDLE)));
        let weight = crate::weight::weight(&event);
        let entry = HistoryEntry {
            order,
            session: SessionKey::DELETED,
            tags: AgentTags::default(),
            event: Arc::clone(&event),
            sequence_number: 0,
            author: Author::Hub,
            latest_us: 0,
            weight,
        };
        Unit::new(&entry, event, UnitKind::Deleted, None)
    }

    /// Removes everything except the ids, which a subscriber may still name to say how far it is.
    pub(super) fn delete(&mut self) {
        let Envelope { event_id, session_id, timestamp, .. } = self.event.envelope.clone();
        let producer = Producer::new(self.agent());
        let envelope = Envelope::new(event_id, session_id, timestamp, producer);
        self.event = Arc::new(Event::new(envelope, state_without_words(state::IDLE)));
        self.kind = UnitKind::Deleted;
        self.weight = size_of::<Unit>() + crate::weight::weight(&self.event);
        self.frame.take();
    }

    pub(crate) fn agent(&self) -> &str {
        &self.event.envelope.producer.agent_id
    }

    pub(crate) fn new(
        entry: &HistoryEntry,
        event: Arc<Event>,
        kind: UnitKind,
        sequence_number: Option<u64>,
    ) -> Self {
        let is_same = event.envelope.event_id == entry.event.envelope.event_id;
        Unit {
            order: entry.order,
            session: entry.session,
            event,
            kind,
            is_critical: entry.event.is_critical(),
            is_agents_own: entry.author == Author::Agent && is_same,
            latest_us: entry.latest_us,
            stands_for: 1,
            made_at: entry.order,
            weight: size_of::<Unit>() + entry.weight,
            sequence_number,
            frame: OnceCell::new(),
        }
    }
}

/// Whether an event asks the person something, or announces that its agent will.
pub(crate) fn is_before_ask(event: &Event) -> bool {
    let waits = matches!(&event.payload,
        Payload::StateChanged(change) if change.to_state == state::AWAITING_INPUT);
    waits || is_ask(event)
}

fn is_ask(event: &Event) -> bool {
    matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
}

pub(super) fn kind_of(payload: &Payload) -> UnitKind {
    match payload {
        Payload::OutputStreaming(_) => UnitKind::Text,
        Payload::ProgressUpdated(_) => UnitKind::Progress,
        Payload::StateChanged(_) => UnitKind::State,
        Payload::ToolInvoked(tool) if tool.irreversible != Some(true) => UnitKind::PlainTool,
        Payload::ToolCompleted(tool) if tool.status == aaep::event::action::ToolStatus::Success => {
            UnitKind::PlainTool
        }
        _ => UnitKind::Other,
    }
}

pub(super) fn state_without_words(state: &str) -> StateChanged {
    StateChanged {
        from_state: state.to_owned(),
        to_state: state.to_owned(),
        summary_terse: None,
        summary_normal: None,
        summary_detailed: None,
        expected_duration_ms: None,
        other: Object::new(),
    }
}
