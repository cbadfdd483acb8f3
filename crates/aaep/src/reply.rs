//! The replies of people: to a confirmation and to a clarification (§6.3, §6.5).

use serde_json::{Number, Value as Json, json};

use crate::event::human::Decision;
use crate::event::{LONG, SHORT};
use crate::form::{ReplyToken, SubscriptionId};
use crate::json::{JsonKind, JsonValue};
use crate::object::object;
use crate::read::{FieldType, MessageReader, Object, ValueBounds, between};
use crate::time::DecisionTime;

object! {
    /// What a person decided about an action.
    ConfirmationReply in "6.3.1", type "confirmation.reply", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The decision.
        required decision: Decision;
        /// The subscription on which the reply is sent.
        required subscription_id: SubscriptionId;
        /// When the person decided.
        required timestamp: DecisionTime;
        /// Who decided.
        optional decided_by: String = between(1, 256), in "6.3.2";
        /// Why, in the person's own words.
        optional decision_rationale: String = between(1, SHORT), in "6.3.2";
        /// How the action should be changed; a producer that cannot do that takes it as reject.
        optional modified_action: Object, in "6.3.2";
        /// A trace id.
        optional correlation_id: String, in "6.3.2";
    }
}

object! {
    /// What a person answered to a question.
    ClarificationReply in "6.5.1", type "clarification.reply", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The answer: text, true or false, or a number.
        required response: Response, in "6.5.2";
        /// The subscription on which the reply is sent.
        required subscription_id: SubscriptionId;
        /// When the person answered.
        required timestamp: DecisionTime;
        /// Who answered.
        optional decided_by: String = between(1, 256), in "6.5.3";
        /// How sure the subscriber is that it understood the person, from 0 to 1.
        optional confidence: Number = between(0, 1), in "6.5.3";
        /// A trace id.
        optional correlation_id: String, in "6.5.3";
    }
}

/// The prefix of `decided_by` in a reply that was made by one of the person's rules (§6.3.2).
const AUTOMATIC: &str = "automatic:";

/// The `decided_by` of a reply that this rule made. Replies of the person never have this form.
pub fn automatic(rule: &str) -> String {
    format!("{AUTOMATIC} {rule}")
}

/// What `decided_by` begins with if a person decided: alone, or before a colon and a name.
const PEOPLE: [&str; 2] = ["user", "person"];

/// Whether a reply counts as made by a rule. The specification leaves the form of `decided_by` open,
/// and a rule may consent to less than a person (ruling 35). So every form counts as a rule's,
/// except those that are known to be a person's: `user`, `person`, `user:NAME` and `person:NAME`.
pub fn is_automatic(decided_by: &str) -> bool {
    let kind = decided_by.split_once(':').map_or(decided_by, |(kind, _)| kind).trim();
    !PEOPLE.iter().any(|person| kind.eq_ignore_ascii_case(person))
}

/// The answer to a clarification (§6.5.2).
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// Text, or the value of a choice.
    Text(String),
    /// Yes or no.
    YesNo(bool),
    /// A number in its original notation.
    Number(Number),
}

impl Response {
    /// Reads an answer that was stored as JSON. Returns `None` if it is not one.
    pub fn from_json(value: &Json) -> Option<Self> {
        match value {
            Json::String(text) => Some(Response::Text(text.clone())),
            Json::Bool(yes) => Some(Response::YesNo(*yes)),
            Json::Number(number) => Some(Response::Number(number.clone())),
            _ => None,
        }
    }
}

impl serde::Serialize for Response {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Response::Text(text) => text.serialize(serializer),
            Response::YesNo(yes) => yes.serialize(serializer),
            Response::Number(number) => number.serialize(serializer),
        }
    }
}

impl FieldType for Response {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        _: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        match value.kind() {
            JsonKind::String => String::read(value, &between(1, LONG), reader).map(Response::Text),
            JsonKind::Bool => value.as_bool().map(Response::YesNo),
            JsonKind::Number => value.as_number().cloned().map(Response::Number),
            other => reader.wrong_type("text, true or false, or a number", other),
        }
    }

    fn schema(_: &ValueBounds) -> Json {
        json!({
            "oneOf": [
                String::schema(&between(1, LONG)),
                { "type": "boolean" },
                { "type": "number" },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_a_rule_says_so_and_that_of_a_person_does_not() {
        for rule in [&*automatic("tidy"), "auto:configured_policy", " Automatic: x", "AUTO:x"] {
            assert!(is_automatic(rule), "{rule}");
        }
        for person in ["user:folake", "user", " User : Ines", "person", "person:ines"] {
            assert!(!is_automatic(person), "{person}");
        }
    }

    #[test]
    fn a_form_that_is_not_known_to_be_a_persons_counts_as_a_rules() {
        for unknown in [
            "",
            " ",
            ":",
            "automatic",
            "auto",
            "rule: x",
            "timeout",
            "policy",
            "default",
            "users",
            "user_rule",
            "user-agent:bot",
            "not user",
            "\u{200b}user",
            "\u{455}er",
        ] {
            assert!(is_automatic(unknown), "{unknown:?}");
        }
    }
}
