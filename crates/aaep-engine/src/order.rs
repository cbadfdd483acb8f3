//! The order of a session: which event may come now (§3.2.4, §3.2.5, §3.4.1, §4.5, §6.1, appendix
//! A).
//!
//! [`SessionOrder`] is the state machine of one session as the hub holds it. It admits an event
//! completely or not at all, and the reason for a refusal has a name ([`OrderViolation`]).
//! [`StreamOrder`] checks a recorded stream against the same rules and continues after each
//! violation.
//!
//! This module never looks at a clock, never asks or answers anyone, never repairs an event, and
//! never keeps text. A tool that is irreversible or of high risk passes only if a [`Grant`] that
//! was added by the caller covers it. Handled elsewhere: the form of events (`aaep`); tokens,
//! deadlines and the right to answer (the asks).
//!
//! Memory is bounded: about 3 MiB for a session at all its limits at once ([`MAX_SESSION_BYTES`]),
//! a few hundred bytes for a common one. An ended session keeps only the fact that it has ended.

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

use grants::OpenGrants;
use outputs::SessionOutputs;
use producers::{SessionProducers, implied_by};
use tools::SessionTools;

pub use grants::{Grant, GrantedBy, MAX_GRANTS};
pub(crate) use outputs::NamelessOutput;
pub use outputs::{MAX_OPEN_OUTPUTS, MAX_OUTPUTS, OpenOutput};
pub use producers::{MAX_PRODUCER_NAME_BYTES, MAX_PRODUCERS};
pub use stream::StreamOrder;
pub use tools::{MAX_OPEN_TOOLS, MAX_TOOLS, OpenTool};
pub use violation::OrderViolation;

/// About how much memory one session takes here when it is at all its limits.
pub const MAX_SESSION_BYTES: usize = 3 * 1024 * 1024;

/// What an event means for its session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admitted {
    /// The position of the event in its session, from 0, whether the event carries the number or
    /// not.
    pub sequence_number: u64,
    /// Whether the event ended the session.
    pub terminal: bool,
    /// What was still open when the session ended. The caller closes it before subscribers hear of
    /// the end: running tools with the status timeout, outputs with an empty last chunk.
    pub left_open: LeftOpen,
    /// The grant that the event used up.
    pub grant: Option<Grant>,
}

/// What an errored or cancelled session left open; always empty for a completed one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOpen {
    /// The tools that were running, oldest first.
    pub tools: Vec<OpenTool>,
    /// The outputs that lack their last chunk, in the order in which they began.
    pub outputs: Vec<OpenOutput>,
}

/// The order of one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOrder {
    phase: SessionPhase,
    last_us: Option<i64>,
    /// How many events were admitted. In a capture: the number after the last one that was seen.
    next_sequence_number: u64,
    /// Whether events carry their number. The first event decides.
    is_numbered: bool,
    /// Whether this is a recorded stream, in which events may lack their number (ruling 7).
    is_capture: bool,
    /// Whether a part of the session was not seen, in which an ask may have been accepted.
    is_joined_late: bool,
    producers: SessionProducers,
    tools: SessionTools,
    outputs: SessionOutputs,
    grants: OpenGrants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SessionPhase {
    #[default]
    New,
    Open,
    Ended,
}

impl SessionOrder {
    /// The order of a session without events.
    pub fn new() -> Self {
        SessionOrder::default()
    }

    /// The order of a session that has ended and admits nothing.
    pub fn already_ended() -> Self {
        SessionOrder { phase: SessionPhase::Ended, ..SessionOrder::default() }
    }

    /// Replays an event that was admitted before a restart.
    pub(crate) fn replay(&mut self, event: &Event) {
        if self.phase != SessionPhase::Ended {
            self.take(event);
        }
    }

    /// Checks an event and admits it if it may come now. On `Err` nothing has changed.
    ///
    /// The caller has checked that the event is valid and belongs to this session.
    pub fn admit(&mut self, event: &Event) -> Result<Admitted, OrderViolation> {
        self.check_phase(event)?;
        self.check_time(&event.envelope)?;
        self.check_sequence(event)?;
        self.check_payload(event)?;
        Ok(self.take(event))
    }

    /// Records that an action was accepted: one invocation that the grant covers may now be
    /// irreversible or of high risk, until the agent that asked is idle. Returns the grant that
    /// does not count: this one if the session is not running, or the oldest beyond [`MAX_GRANTS`],
    /// whose action has to be asked for again.
    pub fn accept(&mut self, mut grant: Grant) -> Option<Grant> {
        if self.phase != SessionPhase::Open {
            return Some(grant);
        }
        if let Some(shared) = self.producers.name(&grant.agent_id) {
            grant.agent_id = shared;
        }
        self.grants.add(grant)
    }

    /// Notes that the hub itself told subscribers in which state a producer is, such as when an ask
    /// was settled (ruling 18). The producer may not know: it may leave that state or its own.
    pub fn tell(&mut self, agent_id: &str, state: &str) {
        if self.phase == SessionPhase::Open {
            self.producers.tell(agent_id, state);
        }
    }

    /// Whether the session has started; it may have ended since.
    pub fn is_started(&self) -> bool {
        self.phase != SessionPhase::New
    }

    /// Whether the session has ended.
    pub fn is_ended(&self) -> bool {
        self.phase == SessionPhase::Ended
    }

    /// The state that this producer is in as far as subscribers know: announced, implied, or told
    /// by the hub. It is idle before the first of these and after the end of the session.
    pub fn state_of(&self, agent_id: &str) -> &str {
        self.producers.state_of(agent_id)
    }

    /// The tools that are running, oldest first.
    pub fn open_tools(&self) -> impl Iterator<Item = &OpenTool> {
        self.tools.open().iter()
    }

    /// The outputs that have begun and are not complete, in the order in which they began.
    pub fn open_outputs(&self) -> impl Iterator<Item = &OpenOutput> {
        self.outputs.open().iter()
    }

    /// The call that a completion without an id refers to, if only one is possible.
    pub(crate) fn call_to_complete(&self, tool: &str, agent_id: &str) -> Option<&ToolCallId> {
        self.tools.to_complete(tool, agent_id)
    }

    /// The output that a chunk without an id continues, if the agent began one.
    pub(crate) fn output_to_continue(&self, agent_id: &str) -> Option<&OutputId> {
        self.outputs.to_continue(agent_id)
    }

    /// The state of the output without an id.
    pub(crate) fn nameless_output(&self) -> NamelessOutput {
        self.outputs.nameless()
    }

    /// Where the next chunk of an output begins, in code points. The output without an id has an
    /// empty name.
    pub(crate) fn next_position(&self, output_id: &str) -> u64 {
        self.outputs.next_position(output_id)
    }

    /// Where a chunk begins, counted in the text as it is sent.
    pub(crate) fn begins_at(&self, chunk: &OutputStreaming) -> u64 {
        self.outputs.begins_at(chunk)
    }

    /// The number of the next event, from 0, whether events carry it or not.
    pub fn next_sequence_number(&self) -> u64 {
        self.next_sequence_number
    }

    /// The timestamp of the last event, in microseconds since 1970 began.
    pub fn last_timestamp_us(&self) -> Option<i64> {
        self.last_us
    }

    /// §4.5.1: all events lie between the start and the end.
    fn check_phase(&self, event: &Event) -> Result<(), OrderViolation> {
        match (self.phase, is_start(event)) {
            (SessionPhase::Ended, _) => Err(OrderViolation::Ended),
            (SessionPhase::New, false) => Err(OrderViolation::NotStarted),
            (SessionPhase::Open, true) => Err(OrderViolation::StartedTwice),
            (SessionPhase::New, true) | (SessionPhase::Open, false) => Ok(()),
        }
    }

    /// §3.2.5: time does not go back within a session, whichever producer sends the event.
    fn check_time(&self, envelope: &Envelope) -> Result<(), OrderViolation> {
        match self.last_us {
            Some(last_us) if envelope.timestamp.unix_us() < last_us => {
                Err(OrderViolation::TimeWentBack { last_us })
            }
            _ => Ok(()),
        }
    }

    /// §3.4.1: either all events of a session are numbered without gaps, or none is.
    fn check_sequence(&self, event: &Event) -> Result<(), OrderViolation> {
        let expected = self.next_sequence_number;
        let is_first = is_start(event) && self.phase == SessionPhase::New;
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
                // After joining late, the ask may have been missed (§2.3.5, §4.3.1).
                if invoked.stakes().needs_accept() && !self.is_joined_late {
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

    /// Whether a producer may change its state while its tools run (§4.3.2). If the hub told the
    /// state, it says nothing about the tools of the producer.
    pub(crate) fn check_leaving(
        &self,
        agent_id: &str,
        from: &str,
        to: &str,
    ) -> Result<(), OrderViolation> {
        let is_told_by_hub = self.producers.is_told_by_hub(agent_id);
        if is_told_by_hub { Ok(()) } else { self.tools.check_left(agent_id, from, to) }
    }

    /// Applies an event. This cannot fail: in a capture that is followed past a violation, an event
    /// that does not fit the order changes as much as it can.
    fn take(&mut self, event: &Event) -> Admitted {
        if self.phase == SessionPhase::New {
            self.phase = SessionPhase::Open;
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
                // In a capture, an accept may have overtaken an earlier change to idle (ruling 7).
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

    /// Ends the session. Its grants end too, and what it remembered is no longer needed.
    fn end(&mut self) -> LeftOpen {
        let left_open =
            LeftOpen { tools: self.tools.take_open(), outputs: self.outputs.take_open() };
        *self = SessionOrder {
            phase: SessionPhase::Ended,
            last_us: self.last_us,
            next_sequence_number: self.next_sequence_number,
            is_numbered: self.is_numbered,
            is_capture: self.is_capture,
            ..SessionOrder::default()
        };
        left_open
    }

    /// Continues in the middle of a recorded session. What was begun before is not known.
    fn join_late(&mut self) {
        *self = SessionOrder {
            phase: SessionPhase::Open,
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
