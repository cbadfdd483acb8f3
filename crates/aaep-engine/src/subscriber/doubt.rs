//! Which faults of order a subscriber may hold against a producer.
//!
//! The rules of a session hold for the producer, but a subscriber gets what its terms let through:
//! filters take events away, critical ones overtake (ruling 7), and whoever cannot answer is not
//! asked (ruling 1). What its terms can explain is no fault. Whoever listened under such terms once
//! may have missed something for good.

use std::collections::BTreeSet;

use aaep::extension::Delivery;
use aaep::{CognitiveLoad, CoreType, Event, EventType};

use super::sessions::is_made;
use crate::order::OrderViolation;
use crate::terms::Terms;

/// What cannot be told for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Matter {
    States,
    Tools,
    Outputs,
    Accepts,
}

/// Everything that cannot be told for sure any more.
#[derive(Debug, Default)]
pub(super) struct Doubts(BTreeSet<Matter>);

impl Doubts {
    /// From now on these terms count too.
    pub(super) fn add(&mut self, terms: &Terms) {
        let gets = |core: CoreType| terms.wants(&EventType::Core(core));
        let is_low = terms.cognitive_load == CognitiveLoad::Low;
        let is_paced = terms.max_events_per_second.is_some();
        let knows_outcomes = terms.confirmation_reply || terms.understands_our_extension();
        let doubts = [
            (Matter::States, is_paced || is_low || !gets(CoreType::StateChanged)),
            (
                Matter::Tools,
                is_low || !gets(CoreType::ToolInvoked) || !gets(CoreType::ToolCompleted),
            ),
            (Matter::Outputs, is_low || !gets(CoreType::OutputStreaming)),
            (Matter::Accepts, !knows_outcomes),
        ];
        self.0.extend(doubts.into_iter().filter_map(|(matter, has)| has.then_some(matter)));
    }

    /// Whether a fault is one for sure.
    pub(super) fn leave(
        &self,
        violation: &OrderViolation,
        event: &Event,
        delivery: Option<&Delivery>,
    ) -> bool {
        let is_held_back = delivery.is_some_and(|delivery| delivery.held_back.is_some());
        let is_sure = |matter| !self.0.contains(&matter);
        match violation {
            // Whoever comes late has not heard the start; a change tells of it. Numbers and times are
            // looked at where it is known which events may overtake.
            OrderViolation::NotStarted
            | OrderViolation::TimeWentBack { .. }
            | OrderViolation::SequenceMissing { .. }
            | OrderViolation::SequenceUnexpected
            | OrderViolation::SequenceBroken { .. } => false,
            OrderViolation::FirstStateNotIdle | OrderViolation::StateDoesNotFollow { .. } => {
                is_sure(Matter::States) && !is_made(event)
            }
            OrderViolation::ToolNotInvoked { .. } | OrderViolation::ToolNameDiffers { .. } => {
                is_sure(Matter::Tools)
            }
            // A change that is critical may overtake the end of a tool, and so may a hub's own.
            OrderViolation::ToolLeftRunning { .. } => {
                is_sure(Matter::Tools)
                    && is_sure(Matter::States)
                    && !is_made(event)
                    && !event.is_critical()
            }
            OrderViolation::ToolStillOpen { .. } => is_sure(Matter::Tools) && !is_held_back,
            OrderViolation::PositionDoesNotFollow { .. } => is_sure(Matter::Outputs),
            OrderViolation::OutputNotComplete { .. } => is_sure(Matter::Outputs) && !is_held_back,
            OrderViolation::IrreversibleWithoutAccept { .. }
            | OrderViolation::HighRiskWithoutAccept { .. }
            | OrderViolation::OtherToolAccepted { .. }
            | OrderViolation::ActionDiffers { .. }
            | OrderViolation::ActionDigestMissing { .. }
            | OrderViolation::AcceptedByDefault { .. }
            | OrderViolation::AcceptedAsReversible { .. }
            | OrderViolation::AcceptedAtLowerRisk { .. }
            | OrderViolation::RiskNotStated { .. }
            | OrderViolation::AcceptedForAnotherAgent { .. } => is_sure(Matter::Accepts),
            _ => true,
        }
    }
}
