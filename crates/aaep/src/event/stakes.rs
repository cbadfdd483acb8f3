//! What is at stake in an action: its risk and whether it can be undone, as its producer stated
//! them.
//!
//! Used to compare what a person was asked with what is done (rulings 16, 35). What was not stated
//! is unknown: it never counts as low risk or as reversible, and it was not presented to anyone.

use super::action::{RiskLevel, ToolInvoked};
use super::human::{AwaitingConfirmation, Reversibility};

/// How much harm an action could do, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatedRisk {
    /// Little harm.
    Low,
    /// Some harm.
    Medium,
    /// Not stated, or stated with a word that is not known here. It may be high.
    Unknown,
    /// Much harm.
    High,
}

/// Whether an action can be undone, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatedUndo {
    /// It can be undone.
    Possible,
    /// It can be undone with some effort.
    WithEffort,
    /// Not stated, or stated with a word that is not known here.
    Unknown,
    /// It cannot be undone.
    Impossible,
}

impl StatedUndo {
    /// Whether it is stated that the action can be undone, with or without effort.
    pub fn is_possible(self) -> bool {
        matches!(self, StatedUndo::Possible | StatedUndo::WithEffort)
    }
}

/// What is at stake in an action. Of two actions, the graver one is greater: the risk counts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

    /// What these fields state. The stricter of `irreversible` and `reversibility` counts (ruling 16).
    pub(super) fn stated(
        risk: Option<&RiskLevel>,
        reversibility: Option<&Reversibility>,
        irreversible: Option<bool>,
    ) -> Self {
        let risk = match risk {
            Some(RiskLevel::Low) => StatedRisk::Low,
            Some(RiskLevel::Medium) => StatedRisk::Medium,
            Some(RiskLevel::High) => StatedRisk::High,
            Some(RiskLevel::Other(_)) | None => StatedRisk::Unknown,
        };
        let undo = match (reversibility, irreversible) {
            (_, Some(true)) | (Some(Reversibility::Irreversible), _) => StatedUndo::Impossible,
            (Some(Reversibility::ReversibleWithEffort), _) => StatedUndo::WithEffort,
            (Some(Reversibility::Reversible), _) | (None, Some(false)) => StatedUndo::Possible,
            (Some(Reversibility::Other(_)), _) | (None, None) => StatedUndo::Unknown,
        };
        ActionStakes { risk, undo }
    }

    /// Whether the action may happen only after an accept, because it cannot be undone or its risk
    /// is high (§2.3.5, §4.3.1). Tools that state neither are ordinary.
    pub fn needs_accept(self) -> bool {
        self.undo == StatedUndo::Impossible || self.risk == StatedRisk::High
    }

    /// Whether silence may consent to the action: only if its risk is low and it can be undone.
    pub fn allows_default(self) -> bool {
        self.risk == StatedRisk::Low && self.undo.is_possible()
    }

    /// Whether a rule of the person may consent to the action: both values are stated, and it can
    /// be undone or its risk is low.
    pub fn allows_rule(self) -> bool {
        let is_stated = self.risk != StatedRisk::Unknown && self.undo != StatedUndo::Unknown;
        is_stated && (self.undo.is_possible() || self.risk == StatedRisk::Low)
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

impl AwaitingConfirmation {
    /// What the person is told to be at stake.
    pub fn stakes(&self) -> ActionStakes {
        let reversibility = self.reversibility.as_ref();
        ActionStakes::stated(self.risk_level.as_ref(), reversibility, self.irreversible)
    }
}

impl ToolInvoked {
    /// What the invocation states.
    pub fn stakes(&self) -> ActionStakes {
        ActionStakes::stated(self.risk_level.as_ref(), None, self.irreversible)
    }

    /// Whether more than a low risk is stated. A word that is not known here counts as more; an absent one
    /// does not (§4.3.1).
    pub fn states_risk(&self) -> bool {
        !matches!(self.risk_level, None | Some(RiskLevel::Low))
    }
}

#[cfg(test)]
mod tests {
    use super::StatedRisk::{High, Low, Medium, Unknown};
    use super::*;
    use crate::object::Unrecognized;

    const RISKS: [StatedRisk; 4] = [Low, Medium, High, Unknown];
    const UNDOS: [StatedUndo; 4] =
        [StatedUndo::Possible, StatedUndo::WithEffort, StatedUndo::Impossible, StatedUndo::Unknown];

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
                let by_default = risk == Low && undo.is_possible();
                assert_eq!(stakes.allows_default(), by_default, "{stakes:?}");
                assert!(!(stakes.allows_default() && stakes.needs_accept()), "{stakes:?}");
                let grave = undo == StatedUndo::Impossible && risk != Low;
                let vague = risk == Unknown || undo == StatedUndo::Unknown;
                assert_eq!(stakes.allows_rule(), !grave && !vague, "{stakes:?}");
            }
        }
    }

    #[test]
    fn the_stricter_field_says_whether_it_can_be_undone() {
        let reversibility = |word: &str| {
            Some(
                Reversibility::known(word).unwrap_or(Reversibility::Other(Unrecognized::new(word))),
            )
        };
        for (reversibility, irreversible, undo) in [
            (None, None, StatedUndo::Unknown),
            (None, Some(true), StatedUndo::Impossible),
            (None, Some(false), StatedUndo::Possible),
            (reversibility("reversible"), None, StatedUndo::Possible),
            (reversibility("reversible"), Some(true), StatedUndo::Impossible),
            (reversibility("irreversible"), Some(false), StatedUndo::Impossible),
            (reversibility("reversible_with_effort"), None, StatedUndo::WithEffort),
            (reversibility("somehow"), None, StatedUndo::Unknown),
            (reversibility("somehow"), Some(false), StatedUndo::Unknown),
        ] {
            let stated = ActionStakes::stated(None, reversibility.as_ref(), irreversible);
            assert_eq!(stated.undo, undo, "{reversibility:?} {irreversible:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_graver_than_anything_that_is_not_the_worst() {
        for mild in [Low, Medium] {
            assert!(mild < Unknown && Unknown < High);
        }
        for mild in [StatedUndo::Possible, StatedUndo::WithEffort] {
            assert!(mild < StatedUndo::Unknown && StatedUndo::Unknown < StatedUndo::Impossible);
        }
        let odd = RiskLevel::Other(Unrecognized::new("tiny"));
        for risk in [None, Some(&odd)] {
            let stakes = ActionStakes::stated(risk, Some(&Reversibility::Reversible), Some(false));
            assert_eq!(stakes.risk, Unknown);
            assert!(!stakes.allows_default() && !stakes.allows_rule());
        }
    }
}
