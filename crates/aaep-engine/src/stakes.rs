//! What is at stake in an action: its risk and whether it can be undone, as its producer stated
//! them.
//!
//! Used to compare what a person was asked with what is done (rulings 16, 35). What was not stated
//! is unknown: it never counts as low risk or as reversible, and it was not presented to anyone.

use aaep::event::action::{RiskLevel, ToolInvoked};
use aaep::event::human::{AwaitingConfirmation, Reversibility};

/// How much harm an action could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedRisk {
    /// Little harm.
    Low,
    /// Some harm.
    Medium,
    /// Much harm.
    High,
    /// Not stated, or stated with a word that is not known here.
    Unknown,
}

/// Whether an action can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedUndo {
    /// It can be undone, with or without effort.
    Possible,
    /// It cannot be undone.
    Impossible,
    /// Not stated, or stated with a word that is not known here.
    Unknown,
}

/// What is at stake in an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionStakes {
    /// How much harm the action could do.
    pub risk: StatedRisk,
    /// Whether the action can be undone.
    pub undo: StatedUndo,
}

impl ActionStakes {
    /// Nothing was stated.
    pub const UNKNOWN: Self = ActionStakes { risk: StatedRisk::Unknown, undo: StatedUndo::Unknown };

    /// The worst that can be stated.
    pub const WORST: Self = ActionStakes { risk: StatedRisk::High, undo: StatedUndo::Impossible };

    /// What the ask presents. The stricter of `irreversible` and `reversibility` counts (ruling
    /// 16).
    pub fn presented(asked: &AwaitingConfirmation) -> Self {
        use Reversibility::{Irreversible, Reversible, ReversibleWithEffort};
        let undo = match (&asked.reversibility, asked.irreversible) {
            (_, Some(true)) | (Some(Irreversible), _) => StatedUndo::Impossible,
            (Some(Reversible | ReversibleWithEffort), _) | (None, Some(false)) => {
                StatedUndo::Possible
            }
            _ => StatedUndo::Unknown,
        };
        ActionStakes { risk: risk(asked.risk_level.as_ref()), undo }
    }

    /// What the invocation states.
    pub fn invoked(invoked: &ToolInvoked) -> Self {
        let undo = match invoked.irreversible {
            Some(true) => StatedUndo::Impossible,
            Some(false) => StatedUndo::Possible,
            None => StatedUndo::Unknown,
        };
        ActionStakes { risk: risk(invoked.risk_level.as_ref()), undo }
    }

    /// Whether the action may happen only after an accept, because it cannot be undone or its risk
    /// is high (§2.3.5, §4.3.1). Tools that state neither are ordinary.
    pub fn needs_accept(self) -> bool {
        self.undo == StatedUndo::Impossible || self.risk == StatedRisk::High
    }

    /// Whether silence may consent to the action: only if its risk is low and it can be undone.
    pub fn allows_default(self) -> bool {
        self.risk == StatedRisk::Low && self.undo == StatedUndo::Possible
    }

    /// Whether a rule of the person may consent to the action: both values are stated, and it can
    /// be undone or its risk is low.
    pub fn allows_rule(self) -> bool {
        let is_stated = self.risk != StatedRisk::Unknown && self.undo != StatedUndo::Unknown;
        is_stated && (self.undo == StatedUndo::Possible || self.risk == StatedRisk::Low)
    }

    /// Whether a person who was presented these stakes knew that the action cannot be undone, if
    /// that is the case.
    pub fn covers_undo(self, done: Self) -> bool {
        done.undo != StatedUndo::Impossible || self.undo == StatedUndo::Impossible
    }

    /// Whether a person who was presented these stakes knew of a risk at least as high as that of
    /// the action.
    ///
    /// A risk that the invocation does not state counts as the highest, unless the ask did not
    /// state one either: then it is the same as what was presented. An ask without a risk covers
    /// low risk only.
    pub fn covers_risk(self, done: Self) -> bool {
        use StatedRisk::{High, Low, Medium, Unknown};
        match (self.risk, done.risk) {
            (High, _) | (_, Low) | (Unknown, Unknown) => true,
            (Medium, done) => done == Medium,
            (Low | Unknown, _) => false,
        }
    }
}

fn risk(stated: Option<&RiskLevel>) -> StatedRisk {
    match stated {
        Some(RiskLevel::Low) => StatedRisk::Low,
        Some(RiskLevel::Medium) => StatedRisk::Medium,
        Some(RiskLevel::High) => StatedRisk::High,
        _ => StatedRisk::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::StatedRisk::{High, Low, Medium, Unknown};
    use super::*;

    const RISKS: [StatedRisk; 4] = [Low, Medium, High, Unknown];
    const UNDOS: [StatedUndo; 3] =
        [StatedUndo::Possible, StatedUndo::Impossible, StatedUndo::Unknown];

    fn stakes(risk: StatedRisk) -> ActionStakes {
        ActionStakes { risk, undo: StatedUndo::Possible }
    }

    #[test]
    fn a_risk_is_covered_by_the_same_or_a_higher_one_that_was_presented() {
        let covered = |presented| {
            RISKS.into_iter().filter(|done| stakes(presented).covers_risk(stakes(*done))).collect()
        };
        let covers: [Vec<_>; 4] = RISKS.map(covered);
        let expected =
            [vec![Low], vec![Low, Medium], vec![Low, Medium, High, Unknown], vec![Low, Unknown]];
        assert_eq!(covers, expected);
    }

    #[test]
    fn only_an_ask_that_said_so_covers_what_cannot_be_undone() {
        for presented in UNDOS {
            for done in UNDOS {
                let covers = ActionStakes { undo: presented, ..ActionStakes::UNKNOWN }
                    .covers_undo(ActionStakes { undo: done, ..ActionStakes::UNKNOWN });
                let expected =
                    done != StatedUndo::Impossible || presented == StatedUndo::Impossible;
                assert_eq!(covers, expected, "{presented:?} {done:?}");
            }
        }
    }

    #[test]
    fn silence_and_rules_consent_to_nothing_that_needs_a_person() {
        for risk in RISKS {
            for undo in UNDOS {
                let stakes = ActionStakes { risk, undo };
                let by_default = risk == Low && undo == StatedUndo::Possible;
                assert_eq!(stakes.allows_default(), by_default, "{stakes:?}");
                assert!(!(stakes.allows_default() && stakes.needs_accept()), "{stakes:?}");
                let grave = undo == StatedUndo::Impossible && risk != Low;
                let vague = risk == Unknown || undo == StatedUndo::Unknown;
                assert_eq!(stakes.allows_rule(), !grave && !vague, "{stakes:?}");
            }
        }
    }
}
