//! The state of each producer of a session, as far as subscribers know (§4.2.1, §2.2.5).
//!
//! States are names: none is unknown, and any may follow any other. Only the chain is checked: a
//! producer can leave only the state that it is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::Payload;
use aaep::event::reasoning::state::{
    AWAITING_INPUT, CALLING_TOOL, HANDING_OFF, IDLE, WRITING_OUTPUT,
};

use super::violation::OrderViolation;

/// The most producers of a session.
pub const MAX_PRODUCERS: usize = 64;

/// How long the names of a session's producers may be in total. The specification sets no limit.
pub const MAX_PRODUCER_NAME_BYTES: usize = 64 * 1024;

/// About how much memory one producer takes besides its name, with the longest states.
const BYTES_EACH: usize = 640;

/// The longest name of a state in code points, according to its schema. A tolerant reader lets
/// longer names through; this much of them is compared.
const MAX_STATE: usize = 64;

/// What subscribers know about one producer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ProducerState {
    /// The state that the producer announced last; `None` before its first `state.changed`.
    announced: Option<Box<str>>,
    /// The state that later events of the producer imply.
    implied: Option<&'static str>,
    /// The state that the hub told subscribers after that.
    told: Option<Box<str>>,
}

impl ProducerState {
    fn state(&self) -> &str {
        self.told.as_deref().or(self.implied).or(self.announced.as_deref()).unwrap_or(IDLE)
    }
}

/// The producers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionProducers {
    known: BTreeMap<Arc<str>, ProducerState>,
    name_bytes: usize,
    /// Whether producers may be in any state, because a part of the stream was not seen.
    pub(super) may_be_unknown: bool,
}

/// The state that an event implies (§4.2.1): it is not announced, but subscribers know it.
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

impl SessionProducers {
    pub(super) fn state_of(&self, agent_id: &str) -> &str {
        self.known.get(agent_id).map_or(IDLE, ProducerState::state)
    }

    /// The shared name of a known producer.
    pub(super) fn name(&self, agent_id: &str) -> Option<Arc<str>> {
        self.known.get_key_value(agent_id).map(|(name, _)| Arc::clone(name))
    }

    /// Whether the hub told the state of this producer after the producer last announced one.
    pub(super) fn is_told_by_hub(&self, agent_id: &str) -> bool {
        self.known.get(agent_id).is_some_and(|producer| producer.told.is_some())
    }

    /// Checks that there is room to remember this producer.
    pub(super) fn check_room(&self, agent_id: &str) -> Result<(), OrderViolation> {
        let is_known = self.known.contains_key(agent_id);
        if is_known || self.has_room(agent_id) {
            Ok(())
        } else {
            Err(OrderViolation::TooManyProducers)
        }
    }

    /// Checks that the producer may leave this state.
    pub(super) fn check_left(&self, agent_id: &str, left: &str) -> Result<(), OrderViolation> {
        self.check_room(agent_id)?;
        let left = bounded(left);
        let unknown = ProducerState::default();
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

    /// Notes that the producer announced a new state.
    pub(super) fn enter(&mut self, agent_id: &str, entered: &str) {
        if let Some((_, producer)) = self.remember(agent_id) {
            let announced = Some(bounded(entered).into());
            *producer = ProducerState { announced, implied: None, told: None };
        }
    }

    /// Notes the state that an event of the producer implies. Returns the shared name of the
    /// producer.
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

    /// Notes that the hub told subscribers the state of the producer.
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

    /// The producer, new or known; `None` if there is no room for a new one.
    fn remember(&mut self, agent_id: &str) -> Option<(Arc<str>, &mut ProducerState)> {
        if !self.known.contains_key(agent_id) {
            if !self.has_room(agent_id) {
                return None;
            }
            self.name_bytes += agent_id.len();
            self.known.insert(agent_id.into(), ProducerState::default());
        }
        let name = self.name(agent_id)?;
        self.known.get_mut(agent_id).map(|producer| (name, producer))
    }
}

/// The part of a state's name that is kept and compared.
fn bounded(state: &str) -> &str {
    state.char_indices().nth(MAX_STATE).map_or(state, |(end, _)| &state[..end])
}
