//! How dangerous a question is: what stands on it, and how sure that is.

use aaep::event::action::RiskLevel;
use aaep::event::human::{AwaitingConfirmation, Reversibility};

use crate::english::asks;

/// How much harm an action could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Risk {
    Low,
    Medium,
    High,
    /// Nobody said, or not in words that we know.
    Unknown,
}

/// How well an action can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    Easily,
    WithEffort,
    /// Nobody said, or not in words that we know.
    Unknown,
    Never,
}

/// What stands on a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Danger {
    pub(crate) risk: Risk,
    pub(crate) undo: Undo,
}

impl Risk {
    /// The word for machines.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Unknown => "unknown",
        }
    }
}

impl Undo {
    /// The word for machines.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Undo::Easily => "yes",
            Undo::WithEffort => "with_effort",
            Undo::Unknown => "unknown",
            Undo::Never => "no",
        }
    }
}

impl Danger {
    /// Of the two fields that say whether it can be undone, the stricter one counts (ruling 16).
    pub(crate) fn of(asked: &AwaitingConfirmation) -> Self {
        let risk = match &asked.risk_level {
            Some(RiskLevel::Low) => Risk::Low,
            Some(RiskLevel::Medium) => Risk::Medium,
            Some(RiskLevel::High) => Risk::High,
            _ => Risk::Unknown,
        };
        let undo = match (&asked.reversibility, asked.irreversible) {
            (_, Some(true)) | (Some(Reversibility::Irreversible), _) => Undo::Never,
            (Some(Reversibility::ReversibleWithEffort), _) => Undo::WithEffort,
            (Some(Reversibility::Reversible), _) | (None, Some(false)) => Undo::Easily,
            _ => Undo::Unknown,
        };
        Danger { risk, undo }
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

    fn danger(fields: &Value) -> Danger {
        match confirmation("rpl_1", fields).payload {
            Payload::AwaitingConfirmation(asked) => Danger::of(&asked),
            _ => panic!("a confirmation"),
        }
    }

    #[test]
    fn the_stricter_field_says_whether_it_can_be_undone() {
        for (fields, undo) in [
            (json!({}), Undo::Unknown),
            (json!({ "irreversible": true }), Undo::Never),
            (json!({ "irreversible": false }), Undo::Easily),
            (json!({ "reversibility": "reversible" }), Undo::Easily),
            (json!({ "reversibility": "reversible", "irreversible": true }), Undo::Never),
            (json!({ "reversibility": "irreversible", "irreversible": false }), Undo::Never),
            (json!({ "reversibility": "reversible_with_effort" }), Undo::WithEffort),
            (json!({ "reversibility": "somehow" }), Undo::Unknown),
            (json!({ "reversibility": "somehow", "irreversible": false }), Undo::Unknown),
        ] {
            assert_eq!(danger(&fields).undo, undo, "{fields}");
        }
    }

    #[test]
    fn a_risk_in_unknown_words_is_an_unknown_risk() {
        assert_eq!(danger(&json!({ "risk_level": "tiny" })).risk, Risk::Unknown);
        assert_eq!(danger(&json!({ "risk_level": "low" })).risk, Risk::Low);
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
