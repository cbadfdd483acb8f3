//! In which state each producer of a session is, as far as subscribers know (§4.2.1, §2.2.5).
//!
//! States are names; none is unknown and any may follow any. Only the chain is held together: who
//! leaves a state was in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::Payload;
use aaep::event::reasoning::state::{
    AWAITING_INPUT, CALLING_TOOL, HANDING_OFF, IDLE, WRITING_OUTPUT,
};

use super::violation::OrderViolation;

/// The most producers of a session.
pub const MAX_PRODUCERS: usize = 64;

/// How long the names of a session's producers may be in all. The specification sets no limit.
pub const MAX_PRODUCER_NAME_BYTES: usize = 64 * 1024;

/// About how much memory one producer takes beside its name, the longest states counted.
const BYTES_EACH: usize = 640;

/// The longest name of a state, in code points (its schema says so). Of a longer one, which only a
/// tolerant reader lets through, this much is compared.
const MAX_STATE: usize = 64;

/// What subscribers know of one producer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Producer {
    /// The state that it entered last in its own words; none before its first `state.changed`.
    announced: Option<Box<str>>,
    /// The state that its events imply since then.
    implied: Option<&'static str>,
    /// The state that someone else told subscribers since then.
    told: Option<Box<str>>,
}

impl Producer {
    fn state(&self) -> &str {
        self.told.as_deref().or(self.implied).or(self.announced.as_deref()).unwrap_or(IDLE)
    }
}

/// The producers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Producers {
    known: BTreeMap<Arc<str>, Producer>,
    name_bytes: usize,
    /// Producers may be in any state, because a part of the stream was not seen.
    pub(super) may_be_unknown: bool,
}

/// The state that an event implies (§4.2.1): it was not announced, but subscribers know.
pub(super) fn implied_by(payload: &Payload) -> Option<&'static str> {
    match payload {
        Payload::ToolInvoked(_) => Some(CALLING_TOOL),
        Payload::OutputStreaming(_) => Some(WRITING_OUTPUT),
        Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => {
            Some(AWAITING_INPUT)
        }
        Payload::HandoffRequested(_) => Some(HANDING_OFF),
        _ => None,
    }
}

impl Producers {
    pub(super) fn state_of(&self, agent_id: &str) -> &str {
        self.known.get(agent_id).map_or(IDLE, Producer::state)
    }

    /// The name of a known producer, shared.
    pub(super) fn name(&self, agent_id: &str) -> Option<Arc<str>> {
        self.known.get_key_value(agent_id).map(|(name, _)| Arc::clone(name))
    }

    /// Whether someone else told the state of this producer since it last spoke of it itself.
    pub(super) fn is_told(&self, agent_id: &str) -> bool {
        self.known.get(agent_id).is_some_and(|producer| producer.told.is_some())
    }

    /// Whether there is room for what must be remembered of this producer.
    pub(super) fn check_room(&self, agent_id: &str) -> Result<(), OrderViolation> {
        let is_known = self.known.contains_key(agent_id);
        if is_known || self.has_room(agent_id) {
            Ok(())
        } else {
            Err(OrderViolation::TooManyProducers)
        }
    }

    /// Whether the producer may say that it leaves this state.
    pub(super) fn check_left(&self, agent_id: &str, left: &str) -> Result<(), OrderViolation> {
        self.check_room(agent_id)?;
        let left = bounded(left);
        let unknown = Producer::default();
        let producer = self.known.get(agent_id).unwrap_or(&unknown);
        if producer.announced.is_none() && producer.told.is_none() {
            let fits = left == IDLE || self.may_be_unknown;
            return if fits { Ok(()) } else { Err(OrderViolation::FirstStateNotIdle) };
        }
        let announced = producer.announced.as_deref().unwrap_or(IDLE);
        let mut expected = vec![announced];
        expected.extend(producer.told.as_deref());
        expected.extend(producer.implied);
        if expected.contains(&left) {
            return Ok(());
        }
        expected.dedup();
        let expected = expected.into_iter().map(str::to_owned).collect();
        Err(OrderViolation::StateDoesNotFollow { expected })
    }

    /// The producer says that it entered a state.
    pub(super) fn enter(&mut self, agent_id: &str, entered: &str) {
        if let Some((_, producer)) = self.remember(agent_id) {
            let announced = Some(bounded(entered).into());
            *producer = Producer { announced, implied: None, told: None };
        }
    }

    /// An event of the producer implies a state. Gives back the name of the producer, shared.
    pub(super) fn imply(&mut self, agent_id: &str, implied: &'static str) -> Arc<str> {
        match self.remember(agent_id) {
            Some((name, producer)) => {
                producer.implied = Some(implied);
                producer.told = None;
                name
            }
            None => agent_id.into(),
        }
    }

    /// Someone else told subscribers in which state the producer is.
    pub(super) fn tell(&mut self, agent_id: &str, state: &str) {
        if let Some((_, producer)) = self.remember(agent_id) {
            producer.told = Some(bounded(state).into());
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.known.len() * BYTES_EACH + self.name_bytes
    }

    fn has_room(&self, agent_id: &str) -> bool {
        self.known.len() < MAX_PRODUCERS
            && self.name_bytes + agent_id.len() <= MAX_PRODUCER_NAME_BYTES
    }

    /// The producer, new or known; none if there is no room for a new one.
    fn remember(&mut self, agent_id: &str) -> Option<(Arc<str>, &mut Producer)> {
        if !self.known.contains_key(agent_id) {
            if !self.has_room(agent_id) {
                return None;
            }
            self.name_bytes += agent_id.len();
            self.known.insert(agent_id.into(), Producer::default());
        }
        let name = self.name(agent_id)?;
        self.known.get_mut(agent_id).map(|producer| (name, producer))
    }
}

/// As much of a state's name as is kept and compared.
fn bounded(state: &str) -> &str {
    state.char_indices().nth(MAX_STATE).map_or(state, |(end, _)| &state[..end])
}
