//! Sessions as a subscriber sees them: who is at work, in which state, with which tools.
//!
//! Only what was heard is known: a session may have begun before we listened (ruling 19), and under
//! most terms some events never come. Critical events overtake others (ruling 7), so what is older
//! than what is known changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::reasoning::state;
use aaep::{Event, EventId, Payload, SessionId, ToolCallId, ToolName};

use super::{Change, SubscriberViolation};
use crate::clock::Now;
use crate::order::OrderViolation;

/// How many sessions are remembered, more than questions can be open. Then one is forgotten that has
/// no open question: one that ended if there is one, and of those the one silent for longest.
pub const MAX_SESSIONS: usize = 1024;
/// How many running tools of a session are listed.
pub const MAX_RUNNING_TOOLS: usize = 64;
/// How much is kept of an agent's name or of a state, in characters.
pub const MAX_NAME_CHARS: usize = 256;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Completed,
    /// In an error.
    Errored,
    /// It was stopped.
    Cancelled,
}

/// A tool that is running, as far as was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTool {
    /// Its name.
    pub tool: ToolName,
    /// The call, where it was named.
    pub tool_call_id: Option<ToolCallId>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session.
    pub session_id: SessionId,
    /// The agent that was heard first in it.
    pub agent_id: String,
    /// Its name for people, if it has one.
    pub agent_name: Option<String>,
    /// The state that was heard last; idle before any.
    pub state: String,
    /// The tools that run, the oldest first.
    pub tools: Vec<RunningTool>,
    /// Whether its beginning was heard.
    pub is_from_start: bool,
    /// How it ended, if it did.
    pub ending: Option<Ending>,
    /// When it was first heard of, on our monotonic clock.
    pub first_heard_us: u64,
    /// When it was last heard of.
    pub last_heard_us: u64,
    /// The event that was heard last.
    pub last_event_id: EventId,
    /// The number that is to come next, where events are numbered.
    next_number: Option<u64>,
    /// The moment of the newest event that did not overtake, and of the newest that may have.
    calm_us: i64,
    urgent_us: i64,
    /// The moment of the event that told the state.
    state_us: i64,
}

/// The sessions that are remembered.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    known: BTreeMap<SessionId, Session>,
}

impl Sessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.known.values()
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<&Session> {
        self.known.get(id)
    }

    pub(super) fn is_ended(&self, id: &SessionId) -> bool {
        self.known.get(id).is_some_and(|session| session.ending.is_some())
    }

    /// The terms changed, and with them perhaps which events are numbered (ruling 7).
    pub(super) fn forget_numbers(&mut self) {
        self.known.values_mut().for_each(|session| session.next_number = None);
    }

    /// Takes an event of a session that has not ended into account.
    pub(super) fn hear(
        &mut self,
        now: Now,
        event: &Event,
        changes: &mut Vec<Change>,
    ) -> Vec<SubscriberViolation> {
        let id = &event.envelope.session_id;
        if !self.known.contains_key(id) {
            let is_from_start = matches!(event.payload, Payload::SessionStarted(_));
            self.known.insert(id.clone(), Session::new(now, event, is_from_start));
            let session_id = id.clone();
            changes.push(if is_from_start {
                Change::SessionStarted { session_id }
            } else {
                Change::SessionJoined { session_id }
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

    /// Forgets sessions until there is room; never one that is `asking`.
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
            // What is numbered begins with 0 (§3.4.1); whoever joins late learns where.
            next_number: is_from_start.then_some(0),
            calm_us: i64::MIN,
            urgent_us: i64::MIN,
            state_us: i64::MIN,
        }
    }

    /// §3.2.5, among the events that keep their order: critical ones may have overtaken the others.
    fn check_time(&mut self, event: &Event) -> Vec<SubscriberViolation> {
        if is_made(event) {
            return Vec::new();
        }
        let at_us = event.envelope.timestamp.unix_us();
        let last = if event.is_critical() { &mut self.urgent_us } else { &mut self.calm_us };
        let last_us = std::mem::replace(last, at_us.max(*last));
        if at_us >= last_us {
            return Vec::new();
        }
        let session_id = self.session_id.clone();
        let violation = OrderViolation::TimeWentBack { last_us };
        vec![SubscriberViolation::Order { session_id, violation }]
    }

    /// §3.4.1, where events are numbered at all.
    fn check_number(
        &mut self,
        event: &Event,
        changes: &mut Vec<Change>,
    ) -> Option<SubscriberViolation> {
        let found = event.envelope.sequence_number?;
        let expected = self.next_number.unwrap_or(found);
        self.next_number = Some(expected.max(found.saturating_add(1)));
        let session_id = self.session_id.clone();
        if found > expected {
            let missed = Some(found - expected);
            let gap = Change::Gap { session_id: session_id.clone(), after: None, missed };
            changes.push(gap);
            return Some(SubscriberViolation::SequenceGap { session_id, expected, found });
        }
        (found < expected).then_some(SubscriberViolation::OutOfOrder {
            session_id,
            expected,
            found,
        })
    }

    fn take(&mut self, event: &Event, changes: &mut Vec<Change>) {
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
            Payload::SessionCompleted(_) => self.end(Ending::Completed, changes),
            Payload::SessionErrored(_) => self.end(Ending::Errored, changes),
            Payload::SessionCancelled(_) => self.end(Ending::Cancelled, changes),
            _ => {}
        }
    }

    fn enter(&mut self, state: &str, at_us: i64, changes: &mut Vec<Change>) {
        let state = bounded(state);
        if at_us < self.state_us || state == self.state {
            return;
        }
        self.state_us = at_us;
        self.state.clone_from(&state);
        changes.push(Change::StateChanged { session_id: self.session_id.clone(), state });
    }

    fn end(&mut self, ending: Ending, changes: &mut Vec<Change>) {
        self.ending = Some(ending);
        self.tools.clear();
        changes.push(Change::SessionEnded { session_id: self.session_id.clone(), ending });
    }
}

/// Whether a hub may have made the event for the subscriber and passed it by others: it leaves
/// `awaiting_input`, which tells that a question is settled (§6.7.2, ruling 18), or stays where it
/// is, which sums up a session (ruling 19).
pub(super) fn is_made(event: &Event) -> bool {
    let Payload::StateChanged(changed) = &event.payload else { return false };
    changed.from_state == state::AWAITING_INPUT || changed.from_state == changed.to_state
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}
