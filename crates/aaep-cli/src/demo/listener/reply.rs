//! A question that waits for the person, and what their words mean as an answer.

use serde_json::{Value, json};

use crate::demo::words::choices;
use crate::keys::{moment, now_unix_ms};

/// A question.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) token: String,
    is_confirmation: bool,
    /// The values to choose from.
    choices: Vec<String>,
}

/// What a person's line means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Understood {
    Reply(Value),
    /// It is no answer to this question.
    NotYet,
}

impl Open {
    /// The question that an event asks, if it asks one.
    pub(super) fn of(event: &Value) -> Option<Self> {
        let is_confirmation = match event["type"].as_str()? {
            "aaep:agent.awaiting.confirmation" => true,
            "aaep:agent.awaiting.clarification" => false,
            _ => return None,
        };
        let token = event["reply_token"].as_str()?.to_owned();
        let choices = choices(event).into_iter().map(|(value, _)| value).collect();
        Some(Open { token, is_confirmation, choices })
    }

    /// What stands before the person's answer.
    pub(super) fn prompt(&self) -> String {
        if self.is_confirmation {
            "Type yes or no, then Enter: ".to_owned()
        } else if self.choices.is_empty() {
            "Type your answer, then Enter: ".to_owned()
        } else {
            format!("Type a number from 1 to {}, then Enter: ", self.choices.len())
        }
    }

    /// Only a clear yes is a yes.
    pub(super) fn understand(&self, text: &str) -> Understood {
        let text = text.trim();
        if self.is_confirmation {
            return match text.to_lowercase().as_str() {
                "yes" => Understood::Reply(self.yes()),
                "no" | "n" => Understood::Reply(self.no()),
                _ => Understood::NotYet,
            };
        }
        if self.choices.is_empty() {
            return if text.is_empty() {
                Understood::NotYet
            } else {
                Understood::Reply(text.into())
            };
        }
        let number = text.parse::<usize>().ok().and_then(|it| self.choices.get(it.checked_sub(1)?));
        let chosen = number.or_else(|| self.choices.iter().find(|it| *it == text));
        chosen.map_or(Understood::NotYet, |it| Understood::Reply(it.as_str().into()))
    }

    /// Yes, or the first choice.
    pub(super) fn yes(&self) -> Value {
        if self.is_confirmation { "accept".into() } else { self.first() }
    }

    /// No, or the first choice, which is no consent to anything.
    pub(super) fn no(&self) -> Value {
        if self.is_confirmation { "reject".into() } else { self.first() }
    }

    fn first(&self) -> Value {
        self.choices.first().map_or("no answer", String::as_str).into()
    }

    /// The reply as a message.
    pub(super) fn message(&self, answer: &Value, subscription_id: &str) -> Value {
        let (kind, field) = if self.is_confirmation {
            ("confirmation.reply", "decision")
        } else {
            ("clarification.reply", "response")
        };
        let mut reply = json!({
            "type": kind,
            "reply_token": self.token,
            "subscription_id": subscription_id,
            "timestamp": moment(now_unix_ms()),
            "decided_by": "user",
        });
        reply[field] = answer.clone();
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmation() -> Open {
        let event = json!({ "type": "aaep:agent.awaiting.confirmation", "reply_token": "rpl_1" });
        Open::of(&event).expect("a question")
    }

    fn clarification(choices: &[&str]) -> Open {
        let choices: Vec<Value> =
            choices.iter().map(|it| json!({ "value": it, "label": it })).collect();
        let event = json!({
            "type": "aaep:agent.awaiting.clarification", "reply_token": "rpl_2", "choices": choices,
        });
        Open::of(&event).expect("a question")
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let open = confirmation();
        for yes in ["yes", " Yes\n", "YES\r\n"] {
            assert_eq!(open.understand(yes), Understood::Reply("accept".into()), "{yes:?}");
        }
        for no in ["no", "n", "No\n"] {
            assert_eq!(open.understand(no), Understood::Reply("reject".into()), "{no:?}");
        }
        for unclear in
            ["", "\n", "y", "yes please", "yess", "accept", "ok", "1", "yes no", "\u{1b}yes"]
        {
            assert_eq!(open.understand(unclear), Understood::NotYet, "{unclear:?}");
        }
    }

    #[test]
    fn a_choice_is_made_by_its_number_or_by_itself() {
        let open = clarification(&["2018", "2019"]);
        for second in ["2", "2019", " 2 \n"] {
            assert_eq!(open.understand(second), Understood::Reply("2019".into()), "{second:?}");
        }
        for wrong in ["", "0", "3", "-1", "two", "99999999999999999999"] {
            assert_eq!(open.understand(wrong), Understood::NotYet, "{wrong:?}");
        }
        assert_eq!(clarification(&[]).understand(" Lagos\n"), Understood::Reply("Lagos".into()));
        assert_eq!(clarification(&[]).understand("\n"), Understood::NotYet);
    }

    #[test]
    fn replies_are_valid_messages() {
        for (open, answer) in [
            (confirmation(), confirmation().yes()),
            (confirmation(), confirmation().no()),
            (clarification(&["a", "b"]), json!("b")),
        ] {
            let message = open.message(&answer, "sub_1");
            let violations = aaep::validate(message.to_string().as_bytes(), aaep::Mode::Strict);
            assert!(violations.is_empty(), "{message}: {violations:?}");
        }
    }
}
