//! Which violations of the order a subscriber may report about a producer.
//!
//! The rules of a session bind the producer, but a subscriber gets only what its terms let through:
//! filters remove events, critical events overtake others (ruling 7), and a subscriber that cannot
//! answer is not asked (ruling 1). What the terms can explain is not a violation. A subscriber that
//! once listened under such terms may have missed something for good.

use std::collections::BTreeSet;

use aaep::extension::Delivery;
use aaep::{CognitiveLoad, CoreType, Event, EventType};

use super::sessions::may_be_made_by_hub;
use crate::order::OrderViolation;
use crate::terms::Terms;

/// Something that cannot be known for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DoubtfulMatter {
    States,
    Tools,
    Outputs,
    Accepts,
}

/// Everything that can no longer be known for certain.
#[derive(Debug, Default)]
pub(super) struct OrderDoubts(BTreeSet<DoubtfulMatter>);

impl OrderDoubts {
    /// Adds the doubts that these terms cause.
    pub(super) fn add(&mut self, terms: &Terms) {
        let gets = |core: CoreType| terms.wants(&EventType::Core(core));
        let is_low = terms.cognitive_load == CognitiveLoad::Low;
        let is_paced = terms.max_events_per_second.is_some();
        let knows_outcomes = terms.confirmation_reply || terms.understands_our_extension();
        let doubts = [
            (DoubtfulMatter::States, is_paced || is_low || !gets(CoreType::StateChanged)),
            (
                DoubtfulMatter::Tools,
                is_low || !gets(CoreType::ToolInvoked) || !gets(CoreType::ToolCompleted),
            ),
            (DoubtfulMatter::Outputs, is_low || !gets(CoreType::OutputStreaming)),
            (DoubtfulMatter::Accepts, !knows_outcomes),
        ];
        self.0.extend(doubts.into_iter().filter_map(|(matter, has)| has.then_some(matter)));
    }

    /// Whether a violation is certain.
    pub(super) fn is_certain(
        &self,
        violation: &OrderViolation,
        event: &Event,
        delivery: Option<&Delivery>,
    ) -> bool {
        let is_held_back = delivery.is_some_and(|delivery| delivery.held_back.is_some());
        let is_sure = |matter| !self.0.contains(&matter);
        match violation {
            // A subscriber that joined late has not heard the start; a change reports that. Numbers
            // and times are checked where it is known which events may overtake.
            OrderViolation::NotStarted
            | OrderViolation::TimeWentBack { .. }
            | OrderViolation::SequenceMissing { .. }
            | OrderViolation::SequenceUnexpected
            | OrderViolation::SequenceBroken { .. } => false,
            OrderViolation::FirstStateNotIdle | OrderViolation::StateDoesNotFollow { .. } => {
                is_sure(DoubtfulMatter::States) && !may_be_made_by_hub(event)
            }
            OrderViolation::ToolNotInvoked { .. } | OrderViolation::ToolNameDiffers { .. } => {
                is_sure(DoubtfulMatter::Tools)
            }
            // A critical state change may overtake the end of a tool, and so may one that a hub
            // made.
            OrderViolation::ToolLeftRunning { .. } => {
                is_sure(DoubtfulMatter::Tools)
                    && is_sure(DoubtfulMatter::States)
                    && !may_be_made_by_hub(event)
                    && !event.is_critical()
            }
            OrderViolation::ToolStillOpen { .. } => is_sure(DoubtfulMatter::Tools) && !is_held_back,
            OrderViolation::PositionDoesNotFollow { .. } => is_sure(DoubtfulMatter::Outputs),
            OrderViolation::OutputNotComplete { .. } => {
                is_sure(DoubtfulMatter::Outputs) && !is_held_back
            }
            OrderViolation::IrreversibleWithoutAccept { .. }
            | OrderViolation::HighRiskWithoutAccept { .. }
            | OrderViolation::OtherToolAccepted { .. }
            | OrderViolation::ActionDiffers { .. }
            | OrderViolation::ActionDigestMissing { .. }
            | OrderViolation::AcceptedByDefault { .. }
            | OrderViolation::AcceptedAsReversible { .. }
            | OrderViolation::AcceptedAtLowerRisk { .. }
            | OrderViolation::RiskNotStated { .. }
            | OrderViolation::AcceptedForAnotherAgent { .. } => is_sure(DoubtfulMatter::Accepts),
            _ => true,
        }
    }
}
