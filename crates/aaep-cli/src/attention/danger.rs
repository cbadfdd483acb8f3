//! How dangerous an action is: its risk, whether it can be undone, and how certain that is.

use aaep::event::action::RiskLevel;
use aaep::event::human::{AwaitingConfirmation, Reversibility};

use crate::english::asks;

/// How much harm an action could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ActionRisk {
    Low,
    Medium,
    High,
    /// Not stated, or not with a known value.
    Unknown,
}

/// How well an action can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoEffort {
    Easily,
    WithEffort,
    /// Not stated, or not with a known value.
    Unknown,
    Never,
}

/// The danger of the action in a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActionDanger {
    pub(crate) risk: ActionRisk,
    pub(crate) undo: UndoEffort,
}

impl ActionRisk {
    /// The value in JSON output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ActionRisk::Low => "low",
            ActionRisk::Medium => "medium",
            ActionRisk::High => "high",
            ActionRisk::Unknown => "unknown",
        }
    }
}

impl UndoEffort {
    /// The value in JSON output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            UndoEffort::Easily => "yes",
            UndoEffort::WithEffort => "with_effort",
            UndoEffort::Unknown => "unknown",
            UndoEffort::Never => "no",
        }
    }
}

impl ActionDanger {
    /// If the two fields about undoing disagree, the stricter one counts (ruling 16).
    pub(crate) fn of(asked: &AwaitingConfirmation) -> Self {
        let risk = match &asked.risk_level {
            Some(RiskLevel::Low) => ActionRisk::Low,
            Some(RiskLevel::Medium) => ActionRisk::Medium,
            Some(RiskLevel::High) => ActionRisk::High,
            _ => ActionRisk::Unknown,
        };
        let undo = match (&asked.reversibility, asked.irreversible) {
            (_, Some(true)) | (Some(Reversibility::Irreversible), _) => UndoEffort::Never,
            (Some(Reversibility::ReversibleWithEffort), _) => UndoEffort::WithEffort,
            (Some(Reversibility::Reversible), _) | (None, Some(false)) => UndoEffort::Easily,
            _ => UndoEffort::Unknown,
        };
        ActionDanger { risk, undo }
    }

    /// Two sentences for people.
    pub(crate) fn sentences(self) -> String {
        asks::danger(self.risk, self.undo)
    }
}

#[cfg(test)]
mod tests {
    use aaep::Payload;
    use aaep_announce::rank;
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::tests::confirmation;

    fn danger(fields: &Value) -> ActionDanger {
        match confirmation("rpl_1", fields).payload {
            Payload::AwaitingConfirmation(asked) => ActionDanger::of(&asked),
            _ => panic!("a confirmation"),
        }
    }

    #[test]
    fn the_stricter_field_says_whether_it_can_be_undone() {
        for (fields, undo) in [
            (json!({}), UndoEffort::Unknown),
            (json!({ "irreversible": true }), UndoEffort::Never),
            (json!({ "irreversible": false }), UndoEffort::Easily),
            (json!({ "reversibility": "reversible" }), UndoEffort::Easily),
            (json!({ "reversibility": "reversible", "irreversible": true }), UndoEffort::Never),
            (json!({ "reversibility": "irreversible", "irreversible": false }), UndoEffort::Never),
            (json!({ "reversibility": "reversible_with_effort" }), UndoEffort::WithEffort),
            (json!({ "reversibility": "somehow" }), UndoEffort::Unknown),
            (json!({ "reversibility": "somehow", "irreversible": false }), UndoEffort::Unknown),
        ] {
            assert_eq!(danger(&fields).undo, undo, "{fields}");
        }
    }

    #[test]
    fn a_risk_in_unknown_words_is_an_unknown_risk() {
        assert_eq!(danger(&json!({ "risk_level": "tiny" })).risk, ActionRisk::Unknown);
        assert_eq!(danger(&json!({ "risk_level": "low" })).risk, ActionRisk::Low);
    }

    #[test]
    fn the_riskier_comes_first_and_of_those_what_cannot_be_undone() {
        let rank = |fields: Value| rank(&confirmation("rpl_1", &fields));
        let order = [
            rank(json!({ "risk_level": "high", "irreversible": true })),
            rank(json!({ "risk_level": "high", "irreversible": false })),
            rank(json!({ "irreversible": true })),
            rank(json!({ "risk_level": "medium" })),
            rank(json!({ "risk_level": "low", "irreversible": true })),
            rank(json!({ "risk_level": "low", "irreversible": false })),
        ];
        assert!(order.is_sorted_by(|one, next| one > next), "{order:?}");
    }
}
