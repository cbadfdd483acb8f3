//! Hubs that do not survive being killed.

use aaep_engine::order::OrderViolation;
use aaep_engine::{EngineInput, Now, Output, Refusal};

use super::EngineSaboteur;

/// After a kill, refuses the events of every session.
#[derive(Default)]
pub(super) struct ForgetSessions {
    is_killed: bool,
}

impl EngineSaboteur for ForgetSessions {
    fn killed(&mut self) {
        self.is_killed = true;
    }

    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        if !self.is_killed {
            return;
        }
        if let EngineInput::Publish { principal, event, .. } = input {
            let (principal, event_id) = (*principal, event.envelope.event_id.clone());
            let refusal = Refusal::Order(OrderViolation::Ended);
            *outputs = vec![Output::Refused { principal, event_id, refusal }];
        }
    }
}

/// After a kill, gives every ask another hour.
pub(super) struct GiveTime;

impl EngineSaboteur for GiveTime {
    fn after(&mut self, _: Now, _: &EngineInput, _: &mut Vec<Output>) {}

    fn restarted(&mut self, _: Now, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Time(record) = output {
                record.ends_unix_us = record.ends_unix_us.map(|it| it + 3_600_000_000);
                record.limit_unix_us += 3_600_000_000;
            }
        }
    }
}
