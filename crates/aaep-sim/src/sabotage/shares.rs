//! Saboteurs that break the shares of memory and sessions.

use std::collections::BTreeSet;

use aaep_engine::{EngineInput, Now, Output, PrincipalNumber, Record, Refusal};

use super::EngineSaboteur;

/// Counts every event as kept in memory.
#[derive(Default)]
pub(super) struct KeepAll {
    bytes: usize,
}

impl EngineSaboteur for KeepAll {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Record(Record { event, .. }) = output {
                self.bytes += serde_json::to_vec(&**event).map_or(0, |json| json.len());
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Refuses the first event of every principal but the first, as if that one had used up everything.
#[derive(Default)]
pub(super) struct RefuseOthers {
    known: BTreeSet<PrincipalNumber>,
}

impl EngineSaboteur for RefuseOthers {
    fn after(&mut self, _: Now, input: &EngineInput, outputs: &mut Vec<Output>) {
        let EngineInput::Publish { principal, event, .. } = input else { return };
        if self.known.insert(*principal) && self.known.len() > 1 {
            let event_id = event.envelope.event_id.clone();
            let refusal = Refusal::OverShare("running sessions");
            *outputs = vec![Output::Refused { principal: *principal, event_id, refusal }];
        }
    }
}
