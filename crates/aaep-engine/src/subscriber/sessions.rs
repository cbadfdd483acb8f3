//! Sessions as a subscriber sees them: which agents are at work, in which state, with which tools.
//!
//! Only what was heard is known: a session may have begun before we listened (ruling 19), and under
//! most terms some events never arrive. Critical events overtake others (ruling 7), so an event
//! that is older than what is known changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::reasoning::state;
use aaep::{Event, EventId, Payload, SessionId, ToolCallId, ToolName};

use super::{SubscriberChange, SubscriberViolation};
use crate::clock::Now;
use crate::order::OrderViolation;

/// How many sessions are remembered: more than there can be open asks. Beyond that, a session
/// without an open ask is forgotten: an ended one if possible, and among those the one that was
/// silent for the longest time.
pub const MAX_SESSIONS: usize = 1024;
/// How many running tools of a session are listed.
pub const MAX_RUNNING_TOOLS: usize = 64;
/// How much is kept of an agent's name or of a state, in characters.
pub const MAX_NAME_CHARS: usize = 256;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnding {
    /// Successfully.
    Completed,
    /// With an error.
    Errored,
    /// It was stopped.
    Cancelled,
}

/// A tool that is running, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTool {
    /// Its name.
    pub tool: ToolName,
    /// The id of the call, if it has one.
    pub tool_call_id: Option<ToolCallId>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session.
    pub session_id: SessionId,
    /// The agent that was heard first in this session.
    pub agent_id: String,
    /// Its name for people, if it has one.
    pub agent_name: Option<String>,
    /// The state that was heard last; idle if none was.
    pub state: String,
    /// The running tools, oldest first.
    pub tools: Vec<RunningTool>,
    /// Whether the beginning was heard.
    pub is_from_start: bool,
    /// How it ended, if it has.
    pub ending: Option<SessionEnding>,
    /// When it was first heard, on our monotonic clock.
    pub first_heard_us: u64,
    /// When it was last heard, on the same clock.
    pub last_heard_us: u64,
    /// The event that was heard last.
    pub last_event_id: EventId,
    /// The sequence number that is expected next, if events are numbered.
    next_number: Option<u64>,
    /// The timestamp of the newest event that cannot have overtaken others, and of the newest that
    /// may have.
    non_critical_us: i64,
    critical_us: i64,
    /// The timestamp of the event that set the state.
    state_us: i64,
}

/// The sessions that are remembered.
#[derive(Debug, Default)]
pub(super) struct SubscriberSessions {
    known: BTreeMap<SessionId, Session>,
}

impl SubscriberSessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.known.values()
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<&Session> {
        self.known.get(id)
    }

    pub(super) fn is_ended(&self, id: &SessionId) -> bool {
        self.known.get(id).is_some_and(|session| session.ending.is_some())
    }

    /// Forgets the expected numbers, because changed terms may change which events are numbered
    /// (ruling 7).
    pub(super) fn forget_numbers(&mut self) {
        self.known.values_mut().for_each(|session| session.next_number = None);
    }

    /// Applies an event of a session that has not ended.
    pub(super) fn hear(
        &mut self,
        now: Now,
        event: &Event,
        changes: &mut Vec<SubscriberChange>,
    ) -> Vec<SubscriberViolation> {
        let id = &event.envelope.session_id;
        if !self.known.contains_key(id) {
            let is_from_start = matches!(event.payload, Payload::SessionStarted(_));
            self.known.insert(id.clone(), Session::new(now, event, is_from_start));
            let session_id = id.clone();
            changes.push(if is_from_start {
                SubscriberChange::SessionStarted { session_id }
            } else {
                SubscriberChange::SessionJoined { session_id }
            });
        }
        let Some(session) = self.known.get_mut(id) else { return Vec::new() };
        session.last_heard_us = now.monotonic_us;
        session.last_event_id = event.envelope.event_id.clone();
        let mut violations = session.check_time(event);
        violations.extend(session.check_number(event, changes));
        session.take(event, changes);
        violations
    }

    /// Forgets sessions until there is room, but never one that is `asking`.
    pub(super) fn make_room<'a>(
        &mut self,
        asking: impl FnOnce() -> BTreeSet<&'a SessionId>,
    ) -> Vec<SessionId> {
        let mut forgotten = Vec::new();
        if self.known.len() <= MAX_SESSIONS {
            return forgotten;
        }
        let asking = asking();
        while self.known.len() > MAX_SESSIONS {
            let free = self.known.values().filter(|it| !asking.contains(&it.session_id));
            let Some(session) = free.min_by_key(|it| (it.ending.is_none(), it.last_heard_us))
            else {
                break;
            };
            let id = session.session_id.clone();
            self.known.remove(&id);
            forgotten.push(id);
        }
        forgotten
    }
}

impl Session {
    fn new(now: Now, event: &Event, is_from_start: bool) -> Self {
        let producer = &event.envelope.producer;
        Session {
            session_id: event.envelope.session_id.clone(),
            agent_id: bounded(&producer.agent_id),
            agent_name: producer.agent_name.as_deref().map(bounded),
            state: state::IDLE.to_owned(),
            tools: Vec::new(),
            is_from_start,
            ending: None,
            first_heard_us: now.monotonic_us,
            last_heard_us: now.monotonic_us,
            last_event_id: event.envelope.event_id.clone(),
            // Numbers begin with 0 (§3.4.1). After joining late, the first number is learned.
            next_number: is_from_start.then_some(0),
            non_critical_us: i64::MIN,
            critical_us: i64::MIN,
            state_us: i64::MIN,
        }
    }

    /// §3.2.5, among events that keep their order: critical ones may have overtaken the others.
    fn check_time(&mut self, event: &Event) -> Vec<SubscriberViolation> {
        if may_be_made_by_hub(event) {
            return Vec::new();
        }
        let at_us = event.envelope.timestamp.unix_us();
        let last =
            if event.is_critical() { &mut self.critical_us } else { &mut self.non_critical_us };
        let last_us = std::mem::replace(last, at_us.max(*last));
        if at_us >= last_us {
            return Vec::new();
        }
        let session_id = self.session_id.clone();
        let violation = OrderViolation::TimeWentBack { last_us };
        vec![SubscriberViolation::Order { session_id, violation }]
    }

    /// §3.4.1, if events are numbered at all.
    fn check_number(
        &mut self,
        event: &Event,
        changes: &mut Vec<SubscriberChange>,
    ) -> Option<SubscriberViolation> {
        let found = event.envelope.sequence_number?;
        let expected = self.next_number.unwrap_or(found);
        self.next_number = Some(expected.max(found.saturating_add(1)));
        let session_id = self.session_id.clone();
        if found > expected {
            let missed = Some(found - expected);
            let gap = SubscriberChange::Gap { session_id: session_id.clone(), after: None, missed };
            changes.push(gap);
            return Some(SubscriberViolation::SequenceGap { session_id, expected, found });
        }
        (found < expected).then_some(SubscriberViolation::OutOfOrder {
            session_id,
            expected,
            found,
        })
    }

    fn take(&mut self, event: &Event, changes: &mut Vec<SubscriberChange>) {
        let at_us = event.envelope.timestamp.unix_us();
        match &event.payload {
            Payload::StateChanged(state) => self.enter(&state.to_state, at_us, changes),
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => {
                self.enter(state::AWAITING_INPUT, at_us, changes);
            }
            Payload::ToolInvoked(invoked) if self.tools.len() < MAX_RUNNING_TOOLS => {
                let (tool, tool_call_id) = (invoked.tool.clone(), invoked.tool_call_id.clone());
                self.tools.push(RunningTool { tool, tool_call_id });
            }
            Payload::ToolCompleted(completed) => {
                let is_it = |it: &RunningTool| {
                    it.tool_call_id == completed.tool_call_id
                        && (it.tool_call_id.is_some() || it.tool == completed.tool)
                };
                if let Some(at) = self.tools.iter().position(is_it) {
                    self.tools.remove(at);
                }
            }
            Payload::SessionCompleted(_) => self.end(SessionEnding::Completed, changes),
            Payload::SessionErrored(_) => self.end(SessionEnding::Errored, changes),
            Payload::SessionCancelled(_) => self.end(SessionEnding::Cancelled, changes),
            _ => {}
        }
    }

    fn enter(&mut self, state: &str, at_us: i64, changes: &mut Vec<SubscriberChange>) {
        let state = bounded(state);
        if at_us < self.state_us || state == self.state {
            return;
        }
        self.state_us = at_us;
        self.state.clone_from(&state);
        changes.push(SubscriberChange::StateChanged { session_id: self.session_id.clone(), state });
    }

    fn end(&mut self, ending: SessionEnding, changes: &mut Vec<SubscriberChange>) {
        self.ending = Some(ending);
        self.tools.clear();
        changes
            .push(SubscriberChange::SessionEnded { session_id: self.session_id.clone(), ending });
    }
}

/// Whether a hub may have made this event for the subscriber and let it overtake others: it leaves
/// `awaiting_input`, which announces that an ask is settled (§6.7.2, ruling 18), or its state stays
/// the same, which makes it a summary of a session (ruling 19).
pub(super) fn may_be_made_by_hub(event: &Event) -> bool {
    let Payload::StateChanged(changed) = &event.payload else { return false };
    changed.from_state == state::AWAITING_INPUT || changed.from_state == changed.to_state
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}
