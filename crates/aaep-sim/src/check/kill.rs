//! Agents do not notice a kill of the hub: their sessions continue.

use std::collections::BTreeMap;

use aaep::{CoreType, SessionId};
use aaep_engine::order::OrderViolation;
use aaep_engine::{EngineInput, Output, PrincipalNumber, Record, Refusal};

use super::{Invariant, WorldMoment};
use crate::truth::WorldTruth;

/// A running session continues after a kill of the hub.
#[derive(Default)]
pub struct SessionGoesOn {
    running: BTreeMap<SessionId, PrincipalNumber>,
}

impl Invariant for SessionGoesOn {
    fn name(&self) -> &'static str {
        "a running session goes on"
    }

    fn meaning(&self) -> &'static str {
        "As long as it has not ended, a session takes events of its agent, also after a kill."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            if let Output::Refused { principal, event_id, refusal } = output
                && let EngineInput::Publish { event, .. } = step.input
                && self.running.get(&event.envelope.session_id) == Some(principal)
                && is_lost(refusal)
            {
                return Err(format!("{event_id} of a running session was refused: {refusal:?}."));
            }
            let Output::Record(Record { event, principal, .. }) = output else { continue };
            let session = &event.envelope.session_id;
            match event.event_type().core() {
                Some(CoreType::SessionStarted) => {
                    self.running.insert(session.clone(), *principal);
                }
                Some(core) if core.is_terminal() => {
                    self.running.remove(session);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a refusal shows that the hub lost the state of a session.
fn is_lost(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::NotYourSession
            | Refusal::Order(OrderViolation::Ended | OrderViolation::NotStarted)
    )
}
