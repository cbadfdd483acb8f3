//! Shares: no principal takes more than there is, or the share of another.

use std::collections::{BTreeMap, BTreeSet};

use aaep::{CoreType, SessionId};
use aaep_engine::{Output, PrincipalNumber, Record, Refusal};

use super::{Invariant, WorldMoment};
use crate::hub::SESSIONS_PER_PRINCIPAL;
use crate::truth::WorldTruth;

/// The memory for histories and logs stays within its budget.
pub struct MemoryWithinBudget {
    bytes: usize,
}

impl MemoryWithinBudget {
    /// Creates the invariant for this budget.
    pub fn new(bytes: usize) -> Self {
        MemoryWithinBudget { bytes }
    }
}

impl Invariant for MemoryWithinBudget {
    fn name(&self) -> &'static str {
        "memory within its budget"
    }

    fn meaning(&self) -> &'static str {
        "The histories of sessions and the logs of audiences never take more bytes than is configured."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        if step.memory_bytes > self.bytes {
            return Err(format!("{} bytes are held, of {}.", step.memory_bytes, self.bytes));
        }
        Ok(())
    }
}

/// A principal at its limit is refused, and no other one.
#[derive(Default)]
pub struct PrincipalShares {
    running: BTreeMap<PrincipalNumber, BTreeSet<SessionId>>,
}

impl Invariant for PrincipalShares {
    fn name(&self) -> &'static str {
        "a share for each principal"
    }

    fn meaning(&self) -> &'static str {
        "No principal runs more sessions than its share, and only one that has its share is refused for that."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            match output {
                Output::Record(Record { principal, event, .. }) => {
                    let running = self.running.entry(*principal).or_default();
                    let session_id = &event.envelope.session_id;
                    if event.event_type().core().is_some_and(CoreType::is_terminal) {
                        running.remove(session_id);
                    } else if step.is_first_of(session_id) {
                        running.insert(session_id.clone());
                    }
                    if running.len() > SESSIONS_PER_PRINCIPAL {
                        return Err(format!("{principal} runs {} sessions.", running.len()));
                    }
                }
                Output::Refused { principal, refusal, .. } => {
                    let running = self.running.get(principal).map_or(0, BTreeSet::len);
                    let is_for_share = matches!(
                        refusal,
                        Refusal::OverShare("running sessions") | Refusal::TooMany("sessions")
                    );
                    if is_for_share && running < SESSIONS_PER_PRINCIPAL {
                        return Err(format!("{principal} runs {running} and was refused."));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
