//! How dangerous an action is, in the words of JSON output.

use aaep::{StatedRisk, StatedUndo};

pub(crate) fn risk_word(risk: StatedRisk) -> &'static str {
    match risk {
        StatedRisk::Low => "low",
        StatedRisk::Medium => "medium",
        StatedRisk::High => "high",
        StatedRisk::Unknown => "unknown",
    }
}

pub(crate) fn undo_word(undo: StatedUndo) -> &'static str {
    match undo {
        StatedUndo::Possible => "yes",
        StatedUndo::WithEffort => "with_effort",
        StatedUndo::Unknown => "unknown",
        StatedUndo::Impossible => "no",
    }
}

#[cfg(test)]
mod tests {
    use aaep::Payload;
    use aaep_announce::rank;
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::tests::confirmation;
    use crate::english::asks;
    use crate::settings::rules::{AnswerRule, automatic};

    #[test]
    fn an_unknown_risk_is_never_the_mild_case() {
        let rule = "name = \"all\"\nagent = \"*\"\nrisk = \"high\"\nanswer = \"accept\"";
        let rule: AnswerRule = toml::from_str(rule).expect("a rule");
        let event = |fields: Value| confirmation("rpl_1", &fields);
        let medium = rank(&event(json!({ "risk_level": "medium", "irreversible": false })));
        for fields in [
            json!({ "irreversible": false }),
            json!({ "irreversible": false, "risk_level": "tiny" }),
            json!({ "reversibility": "reversible", "risk_level": "LOW" }),
        ] {
            let event = event(fields.clone());
            let Payload::AwaitingConfirmation(asked) = &event.payload else { panic!("{fields}") };
            let stakes = asked.stakes();
            assert!(!stakes.allows_default(), "{fields}");
            assert_eq!(automatic(std::slice::from_ref(&rule), &event, || true), None, "{fields}");
            assert!(rank(&event) > medium, "{fields}");
            assert_eq!(risk_word(stakes.risk), "unknown", "{fields}");
            assert!(asks::danger(stakes).starts_with("Risk: not stated."), "{fields}");
            assert!(event.words().contains("The risk is not known."), "{fields}");
        }
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
