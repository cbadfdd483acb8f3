//! The order of a session: which event may come now (§3.2.4, §3.2.5, §3.4.1, §4.5, §6.1, appendix A).
//!
//! [`SessionOrder`] is the state machine of one session as the hub holds it: an event is taken into
//! account whole or not at all, and the reason for a refusal has a name ([`OrderViolation`]).
//! [`StreamOrder`] holds a recorded stream to the same rules and goes on after each fault.
//!
//! It never looks at a clock, never asks or answers anyone, never repairs an event, and never keeps
//! words. A tool that is irreversible or of high risk passes only on a [`Grant`] that someone else put
//! here and that covers it. Not here: the form of events (`aaep`), tokens, deadlines and who may answer (the asks).
//!
//! Memory is bounded: about 3 MiB for a session at all its limits at once ([`MAX_SESSION_BYTES`]), a
//! few hundred bytes for a common one. An ended session keeps only that it has ended.

mod grants;
mod outputs;
mod producers;
mod seen;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod violation;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::state::IDLE;
use aaep::extension::Delivery;
use aaep::{Envelope, Event, OutputId, Payload, ToolCallId};

use crate::stakes::ActionStakes;
use grants::Grants;
use outputs::Outputs;
use producers::{Producers, implied_by};
use tools::Tools;

pub use grants::{Grant, GrantedBy, MAX_GRANTS};
pub(crate) use outputs::NamelessOutput;
pub use outputs::{MAX_OPEN_OUTPUTS, MAX_OUTPUTS, OpenOutput};
pub use producers::{MAX_PRODUCER_NAME_BYTES, MAX_PRODUCERS};
pub use stream::StreamOrder;
pub use tools::{MAX_OPEN_TOOLS, MAX_TOOLS, OpenTool};
pub use violation::OrderViolation;

/// About how much memory the order of one session takes when it is at all its limits.
pub const MAX_SESSION_BYTES: usize = 3 * 1024 * 1024;

/// What an event means for its session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admitted {
    /// The place of the event in its session, from 0, whether it carries the number or not.
    pub sequence_number: u64,
    /// The event ended the session.
    pub terminal: bool,
    /// What the end of the session left open, for the caller to close before subscribers hear of the
    /// end: running tools with the status timeout, outputs with an empty last chunk.
    pub left_open: LeftOpen,
    /// The accept that the event used up.
    pub grant: Option<Grant>,
}

/// What an errored or cancelled session left open; always empty for a completed one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOpen {
    /// The tools that ran, the oldest first.
    pub tools: Vec<OpenTool>,
    /// The outputs that lack their last chunk, in the order in which they began.
    pub outputs: Vec<OpenOutput>,
}

/// The order of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOrder {
    phase: Phase,
    last_us: Option<i64>,
    /// How many events were admitted; in a capture, the number after the last that was seen.
    next_sequence_number: u64,
    /// Whether events carry their number; the first one decides.
    is_numbered: bool,
    /// The order of a recorded stream, in which events may lack their number (ruling 7).
    is_capture: bool,
    /// A part of the session was not seen, and a question may have been accepted there.
    is_joined_late: bool,
    producers: Producers,
    tools: Tools,
    outputs: Outputs,
    grants: Grants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    New,
    Open,
    Ended,
}

impl SessionOrder {
    /// The order of a session of which nothing has come.
    pub fn new() -> Self {
        SessionOrder::default()
    }

    /// The order of a session that takes no more events.
    pub fn already_ended() -> Self {
        SessionOrder { phase: Phase::Ended, ..SessionOrder::default() }
    }

    /// Takes an event into account that was admitted before, after a stop.
    pub(crate) fn take_again(&mut self, event: &Event) {
        if self.phase != Phase::Ended {
            self.take(event);
        }
    }

    /// Checks an event and, if it may come now, takes it into account. On `Err` nothing has changed.
    ///
    /// The caller has found the event valid and of this session.
    pub fn admit(&mut self, event: &Event) -> Result<Admitted, OrderViolation> {
        self.check_phase(event)?;
        self.check_time(&event.envelope)?;
        self.check_sequence(event)?;
        self.check_payload(event)?;
        Ok(self.take(event))
    }

    /// An action was accepted: one invocation that the grant covers may now be irreversible or of
    /// high risk, until the agent that asked is idle. Gives back the grant that does not count: this
    /// one if the session does not run, or the oldest past [`MAX_GRANTS`], whose action has to be
    /// asked for again.
    pub fn accept(&mut self, mut grant: Grant) -> Option<Grant> {
        if self.phase != Phase::Open {
            return Some(grant);
        }
        if let Some(shared) = self.producers.name(&grant.agent_id) {
            grant.agent_id = shared;
        }
        self.grants.add(grant)
    }

    /// The hub itself told subscribers in which state a producer is, such as when a question was
    /// settled (ruling 18). The producer may not know: it may leave that state or its own.
    pub fn tell(&mut self, agent_id: &str, state: &str) {
        if self.phase == Phase::Open {
            self.producers.tell(agent_id, state);
        }
    }

    /// Whether the session has started; it may have ended since.
    pub fn is_started(&self) -> bool {
        self.phase != Phase::New
    }

    /// Whether the session has ended.
    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The state that subscribers know this producer to be in: announced, implied or told. Idle
    /// before the first of these and after the end of the session.
    pub fn state_of(&self, agent_id: &str) -> &str {
        self.producers.state_of(agent_id)
    }

    /// The tools that run, the oldest first.
    pub fn open_tools(&self) -> impl Iterator<Item = &OpenTool> {
        self.tools.open().iter()
    }

    /// The outputs that have begun and are not complete, in the order in which they began.
    pub fn open_outputs(&self) -> impl Iterator<Item = &OpenOutput> {
        self.outputs.open().iter()
    }

    /// The call that a completion without an id means, where only one can be meant.
    pub(crate) fn call_to_complete(&self, tool: &str, agent_id: &str) -> Option<&ToolCallId> {
        self.tools.to_complete(tool, agent_id)
    }

    /// The output that a piece without an id goes on with, if the agent began one.
    pub(crate) fn output_to_continue(&self, agent_id: &str) -> Option<&OutputId> {
        self.outputs.to_continue(agent_id)
    }

    /// How the output without an id stands.
    pub(crate) fn nameless_output(&self) -> NamelessOutput {
        self.outputs.nameless()
    }

    /// Where the next piece of an output begins, in code points. The one without an id has an empty name.
    pub(crate) fn next_position(&self, output_id: &str) -> u64 {
        self.outputs.next_position(output_id)
    }

    /// Where a chunk begins, as its text is sent.
    pub(crate) fn begins_at(&self, chunk: &OutputStreaming) -> u64 {
        self.outputs.begins_at(chunk)
    }

    /// The number of the next event, from 0, whether events carry it or not.
    pub fn next_sequence_number(&self) -> u64 {
        self.next_sequence_number
    }

    /// The moment of the last event, in microseconds since 1970 began.
    pub fn last_timestamp_us(&self) -> Option<i64> {
        self.last_us
    }

    /// §4.5.1: everything lies between the start and the end.
    fn check_phase(&self, event: &Event) -> Result<(), OrderViolation> {
        match (self.phase, is_start(event)) {
            (Phase::Ended, _) => Err(OrderViolation::Ended),
            (Phase::New, false) => Err(OrderViolation::NotStarted),
            (Phase::Open, true) => Err(OrderViolation::StartedTwice),
            (Phase::New, true) | (Phase::Open, false) => Ok(()),
        }
    }

    /// §3.2.5: time does not go back within a session, whoever emits.
    fn check_time(&self, envelope: &Envelope) -> Result<(), OrderViolation> {
        match self.last_us {
            Some(last_us) if envelope.timestamp.unix_us() < last_us => {
                Err(OrderViolation::TimeWentBack { last_us })
            }
            _ => Ok(()),
        }
    }

    /// §3.4.1: all events of a session are numbered without gaps, or none is.
    fn check_sequence(&self, event: &Event) -> Result<(), OrderViolation> {
        let expected = self.next_sequence_number;
        let is_first = is_start(event) && self.phase == Phase::New;
        match event.envelope.sequence_number {
            Some(number) if (self.is_numbered || is_first) && number != expected => {
                Err(OrderViolation::SequenceBroken { expected })
            }
            Some(_) if !self.is_numbered && !is_first && !self.is_capture => {
                Err(OrderViolation::SequenceUnexpected)
            }
            None if self.is_numbered && !self.is_capture => {
                Err(OrderViolation::SequenceMissing { expected })
            }
            _ => Ok(()),
        }
    }

    fn check_payload(&self, event: &Event) -> Result<(), OrderViolation> {
        let agent_id = &event.envelope.producer.agent_id;
        if implied_by(&event.payload).is_some() {
            self.producers.check_room(agent_id)?;
        }
        match &event.payload {
            Payload::StateChanged(changed) => {
                self.producers.check_left(agent_id, &changed.from_state)?;
                self.check_leaving(agent_id, &changed.from_state, &changed.to_state)
            }
            Payload::ToolInvoked(invoked) => {
                self.tools.check_invoked(invoked)?;
                // Who joined late may have missed the question (§2.3.5, §4.3.1).
                if ActionStakes::invoked(invoked).needs_accept() && !self.is_joined_late {
                    self.grants.check(event, invoked)?;
                }
                Ok(())
            }
            Payload::ToolCompleted(completed) => self.tools.check_completed(completed),
            Payload::OutputStreaming(chunk) => self.outputs.check(chunk),
            Payload::SessionCompleted(_) => {
                self.tools.check_none_open()?;
                self.outputs.check_none_open()
            }
            // A crash leaves things open, and the caller closes them (§4.1.3, §4.1.4).
            Payload::SessionErrored(_)
            | Payload::SessionCancelled(_)
            | Payload::SessionStarted(_)
            | Payload::ProgressUpdated(_)
            | Payload::AwaitingConfirmation(_)
            | Payload::AwaitingClarification(_)
            | Payload::HandoffRequested(_)
            | Payload::Extension(_) => Ok(()),
        }
    }

    /// Whether a producer may go from one state to another beside the tools that it runs (§4.3.2). A
    /// state that someone else told says nothing about the producer's own tools.
    pub(crate) fn check_leaving(
        &self,
        agent_id: &str,
        from: &str,
        to: &str,
    ) -> Result<(), OrderViolation> {
        let is_told = self.producers.is_told(agent_id);
        if is_told { Ok(()) } else { self.tools.check_left(agent_id, from, to) }
    }

    /// Takes an event into account. It cannot fail: what does not fit the order, in a capture that
    /// is followed past a fault, changes as much as it can.
    fn take(&mut self, event: &Event) -> Admitted {
        if self.phase == Phase::New {
            self.phase = Phase::Open;
            self.is_numbered = event.envelope.sequence_number.is_some();
        }
        let sequence_number = self.take_number(event.envelope.sequence_number);
        let now_us = event.envelope.timestamp.unix_us();
        self.last_us = self.last_us.max(Some(now_us));
        let grant = self.take_payload(event);
        let terminal = is_terminal(event);
        let left_open = if terminal { self.end() } else { LeftOpen::default() };
        Admitted { sequence_number, terminal, left_open, grant }
    }

    fn take_number(&mut self, number: Option<u64>) -> u64 {
        let taken = if self.is_capture { number } else { None };
        self.is_numbered |= taken.is_some();
        let this = taken.unwrap_or(self.next_sequence_number);
        if taken.is_some() || !self.is_capture {
            self.next_sequence_number = this.saturating_add(1);
        }
        this
    }

    fn take_payload(&mut self, event: &Event) -> Option<Grant> {
        let agent_id = &event.envelope.producer.agent_id;
        let agent = implied_by(&event.payload).map(|state| self.producers.imply(agent_id, state));
        match (&event.payload, agent) {
            (Payload::StateChanged(changed), _) => {
                self.producers.enter(agent_id, &changed.to_state);
                // A subscriber may hear of an earlier idle after an accept that overtook it (ruling 7).
                if changed.to_state == IDLE && !self.is_capture {
                    self.grants.end_turn(agent_id);
                }
            }
            (Payload::ToolInvoked(invoked), Some(agent)) => {
                self.tools.invoke(invoked, agent);
                return self.grants.spend(event, invoked);
            }
            (Payload::ToolCompleted(completed), _) => self.tools.complete(completed),
            (Payload::OutputStreaming(chunk), Some(agent)) => {
                let recorded = event.extensions.as_ref().and_then(|_| Delivery::of(event));
                self.outputs.take(chunk, agent, recorded.and_then(|it| it.counted_to));
            }
            _ => {}
        }
        None
    }

    /// Ends the session. Grants end with it, and what it remembered is of no more use.
    fn end(&mut self) -> LeftOpen {
        let left_open =
            LeftOpen { tools: self.tools.take_open(), outputs: self.outputs.take_open() };
        *self = SessionOrder {
            phase: Phase::Ended,
            last_us: self.last_us,
            next_sequence_number: self.next_sequence_number,
            is_numbered: self.is_numbered,
            is_capture: self.is_capture,
            ..SessionOrder::default()
        };
        left_open
    }

    /// Goes on from the middle of a recorded session: what was begun before is not known.
    fn join_late(&mut self) {
        *self = SessionOrder {
            phase: Phase::Open,
            last_us: self.last_us,
            is_capture: true,
            is_joined_late: true,
            ..SessionOrder::default()
        };
        self.tools.may_be_unknown = true;
        self.outputs.may_be_unknown = true;
        self.producers.may_be_unknown = true;
    }

    /// About how much memory this session takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.producers.memory_bytes()
            + self.tools.memory_bytes()
            + self.outputs.memory_bytes()
            + self.grants.memory_bytes()
    }
}

fn is_start(event: &Event) -> bool {
    matches!(event.payload, Payload::SessionStarted(_))
}

fn is_terminal(event: &Event) -> bool {
    matches!(
        event.payload,
        Payload::SessionCompleted(_) | Payload::SessionErrored(_) | Payload::SessionCancelled(_)
    )
}
