//! Hubs that do not survive being killed.

use aaep_engine::order::OrderViolation;
use aaep_engine::{Input, Now, Output, Refusal};

use super::Hand;

/// After a kill, knows no session of before any more.
#[derive(Default)]
pub(super) struct ForgetSessions {
    is_killed: bool,
}

impl Hand for ForgetSessions {
    fn killed(&mut self) {
        self.is_killed = true;
    }

    fn after(&mut self, _: Now, input: &Input, outputs: &mut Vec<Output>) {
        if !self.is_killed {
            return;
        }
        if let Input::Publish { principal, event, .. } = input {
            let (principal, event_id) = (*principal, event.envelope.event_id.clone());
            let refusal = Refusal::Order(OrderViolation::Ended);
            *outputs = vec![Output::Refused { principal, event_id, refusal }];
        }
    }
}
