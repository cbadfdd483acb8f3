//! Sessions: no tool before its answer, nothing after the end, no trace of refused events.

use std::collections::{BTreeMap, BTreeSet};

use aaep::extension::AskOutcome;
use aaep::{CoreType, EventId, Payload, ReplyToken, SessionId};
use aaep_engine::{EngineInput, Output, Record, Refusal};

use super::asks::token_in;
use super::{Invariant, WorldMoment};
use crate::truth::WorldTruth;

/// No irreversible tool runs before its answer (ruling 17).
#[derive(Default)]
pub struct ToolAfterAnswer {
    asked_in: BTreeMap<ReplyToken, SessionId>,
    accepts: BTreeMap<SessionId, u64>,
}

impl Invariant for ToolAfterAnswer {
    fn name(&self) -> &'static str {
        "no tool before its answer"
    }

    fn meaning(&self) -> &'static str {
        "An irreversible tool runs only on an accept of its session, one tool for each accept."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            match output {
                Output::Record(Record { event, .. }) => {
                    let session = &event.envelope.session_id;
                    if let Some(token) = token_in(&event.payload) {
                        self.asked_in.insert(token.clone(), session.clone());
                    }
                    let Payload::ToolInvoked(tool) = &event.payload else { continue };
                    if tool.irreversible != Some(true) {
                        continue;
                    }
                    let accepts = self.accepts.entry(session.clone()).or_default();
                    let Some(left) = accepts.checked_sub(1) else {
                        let id = &event.envelope.event_id;
                        return Err(format!("{id} runs a tool that nobody accepted."));
                    };
                    *accepts = left;
                }
                Output::Settled { reply_token, outcome: AskOutcome::Accept, .. } => {
                    if let Some(session) = self.asked_in.get(reply_token) {
                        *self.accepts.entry(session.clone()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Nothing after a terminal event.
#[derive(Default)]
pub struct NothingAfterEnd {
    ended: BTreeSet<SessionId>,
    heard: BTreeMap<usize, BTreeSet<SessionId>>,
    /// Subscriptions whose terms changed, or that joined late.
    moved: BTreeSet<usize>,
}

impl Invariant for NothingAfterEnd {
    fn name(&self) -> &'static str {
        "nothing after a terminal event"
    }

    fn meaning(&self) -> &'static str {
        "After the end of a session, neither history nor any subscriber gets more of it."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let is_end =
            |event: &aaep::Event| event.event_type().core().is_some_and(CoreType::is_terminal);
        match moment {
            WorldMoment::Handled(step) => {
                for event in step.recorded() {
                    let session = &event.envelope.session_id;
                    if self.ended.contains(session) {
                        return Err(format!("{session} goes on after its end in history."));
                    }
                    if is_end(event) {
                        self.ended.insert(session.clone());
                    }
                }
                self.moved.extend(step.accepted.iter().map(|(at, _)| *at));
                for (at, before) in step.newcomers(truth) {
                    if before.is_none() {
                        self.moved.remove(&at);
                    }
                    let heard = before.and_then(|it| self.heard.get(&it)).cloned();
                    self.heard.insert(at, heard.unwrap_or_default());
                }
            }
            WorldMoment::Arrived(sent) => {
                let session = &sent.event.envelope.session_id;
                let heard = self.heard.entry(sent.subscription).or_default();
                let is_known = truth.subscriptions[sent.subscription].is_excused;
                if heard.contains(session) && !is_known {
                    return Err(format!(
                        "{} of {session} arrived at {} after the end of the session.",
                        sent.frame.event_id, truth.subscriptions[sent.subscription].id
                    ));
                }
                if is_end(&sent.event) {
                    heard.insert(session.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Refused events leave no trace, and accepted events are recorded once.
#[derive(Default)]
pub struct RefusedLeavesNothing {
    recorded: BTreeSet<EventId>,
    refused: BTreeSet<EventId>,
}

impl Invariant for RefusedLeavesNothing {
    fn name(&self) -> &'static str {
        "refused leaves nothing"
    }

    fn meaning(&self) -> &'static str {
        "Every event that is offered is either taken into history once or refused without a trace."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for event in step.recorded() {
            let id = &event.envelope.event_id;
            if !self.recorded.insert(id.clone()) {
                return Err(format!("{id} is in history twice."));
            }
        }
        if let EngineInput::Publish { event, .. } = step.input {
            let id = &event.envelope.event_id;
            let answers: Vec<Option<&Refusal>> = step
                .outputs
                .iter()
                .filter_map(|output| match output {
                    Output::Published { event_id, .. } if event_id == id => Some(None),
                    Output::Refused { event_id, refusal, .. } if event_id == id => {
                        Some(Some(refusal))
                    }
                    _ => None,
                })
                .collect();
            let was_recorded = step.recorded().any(|event| event.envelope.event_id == *id);
            match answers.as_slice() {
                [None] if was_recorded => drop(self.refused.remove(id)),
                [Some(refusal)] if !was_recorded => {
                    if **refusal != Refusal::Repeated && !self.recorded.contains(id) {
                        self.refused.insert(id.clone());
                    }
                }
                _ => return Err(format!("{id} got {} answers, or the wrong one.", answers.len())),
            }
        }
        let told = step.delivered.iter().find(|it| self.refused.contains(&it.frame.event_id));
        told.map_or(Ok(()), |it| Err(format!("{} was refused and sent.", it.frame.event_id)))
    }
}

/// No event of a session is sent after it was deleted.
#[derive(Default)]
pub struct DeletedStaysGone {
    sessions: BTreeSet<SessionId>,
}

impl Invariant for DeletedStaysGone {
    fn name(&self) -> &'static str {
        "nothing of a deleted session"
    }

    fn meaning(&self) -> &'static str {
        "Nothing of a session is told after it was deleted."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        self.sessions.extend(step.deleted().cloned());
        for event in step.recorded() {
            // An agent may reuse the id for another session.
            self.sessions.remove(&event.envelope.session_id);
        }
        let told = step.delivered.iter().map(|it| &it.event.envelope);
        match told.into_iter().find(|it| self.sessions.contains(&it.session_id)) {
            Some(it) => Err(format!("{} was told of {}.", it.event_id, it.session_id)),
            None => Ok(()),
        }
    }
}
