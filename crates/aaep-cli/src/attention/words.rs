//! A question in lines that read well aloud: what is asked first, then what stands on it, then the time.

use std::time::Duration;

use aaep::event::human::{AwaitingClarification, Decision, ResponseKind};
use aaep::extension::Delivery;
use aaep::{Payload, printable};
use aaep_announce::choice_letters;
use aaep_announce::words::exact;

use super::danger::Danger;
use super::look::Waiting;
use crate::console::count;

/// The lines for a question. Without a number it cannot be answered by one.
pub(crate) fn block(number: Option<u16>, waiting: &Waiting) -> Vec<String> {
    let agent = printable(&waiting.agent);
    let name = match number {
        Some(number) => format!("Question {number}, from {agent}"),
        None if waiting.asked.is_some() => {
            format!("A question that has no number yet, from {agent}")
        }
        None => format!("A question that you may hear but not answer, from {agent}"),
    };
    let mut lines = vec![format!("{name}: {}", sentence(super::asked::what(&waiting.event)))];
    let default = match &waiting.event.payload {
        Payload::AwaitingConfirmation(asked) => {
            lines.push(format!("Then: {}", sentence(&asked.consequence)));
            lines.push(Danger::of(asked).sentences());
            let tool = Delivery::of(&waiting.event).and_then(|it| it.tool);
            lines.extend(tool.map(|it| format!("Tool: {}", exact(it.as_str()))));
            let arguments = asked.extra_context.as_ref().and_then(|it| it.get("arguments"));
            lines.extend(arguments.map(|it| format!("Arguments: {}", exact(&it.to_string()))));
            match asked.default_decision {
                Decision::Accept => "the agent does it",
                Decision::Reject => "no",
            }
            .to_owned()
        }
        Payload::AwaitingClarification(asked) => {
            lines.extend(asked.context.as_deref().map(sentence));
            lines.extend(choices(asked));
            match asked.default_response.as_deref().filter(|it| !it.is_empty()) {
                Some(default) => format!("the agent assumes {}", exact(default)),
                None => "the agent goes on without one".to_owned(),
            }
        }
        _ => String::new(),
    };
    lines.push(time(&default, waiting.left, waiting.is_paused));
    lines
}

/// What can be said to a question, as sentences. The number stands where the person has to say it.
pub(crate) fn what_can_be_said(number: u16, payload: &Payload) -> String {
    let answer = match payload {
        Payload::AwaitingClarification(asked) => answers(number, asked),
        _ => format!("Say: aaep answer {number} yes, or: aaep answer {number} no."),
    };
    format!("{answer} For more time: aaep answer {number} later.")
}

fn answers(number: u16, asked: &AwaitingClarification) -> String {
    let kinds = asked.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext]);
    let ways = kinds.iter().filter_map(|kind| match kind {
        ResponseKind::Freetext => Some("your words"),
        ResponseKind::YesNo => Some("yes or no"),
        ResponseKind::Numeric => Some("a number in digits"),
        ResponseKind::MultipleChoice => Some("the letter of a choice, or its words"),
        ResponseKind::Other(_) => None,
    });
    let ways: Vec<&str> = ways.collect();
    format!("Say: aaep answer {number}, and then {}.", ways.join("; or "))
}

fn choices(asked: &AwaitingClarification) -> impl Iterator<Item = String> {
    let listed = asked.choices.as_deref().unwrap_or_default();
    let letters = choice_letters(listed.iter().map(|it| it.label.as_str())).unwrap_or_default();
    listed.iter().enumerate().map(move |(at, choice)| {
        let letter = letters.get(at).map(|it| format!("{it}. ")).unwrap_or_default();
        format!("  {letter}{}", exact(&choice.label))
    })
}

fn time(default: &str, left: Duration, is_paused: bool) -> String {
    let left = duration(left);
    if is_paused {
        format!("Without an answer: {default}. The time stands still, for {left} at most.")
    } else {
        format!("Without an answer: {default}, in {left}.")
    }
}

/// A time in the two largest units that it has.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [
        (seconds / 3600, "hour"),
        (seconds / 60 % 60, "minute"),
        // Nobody waits for the seconds of an hour.
        (if seconds < 3600 { seconds % 60 } else { 0 }, "second"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, unit)| count(*value, unit))
        .collect();
    if said.is_empty() { "less than a second".to_owned() } else { said.join(" ") }
}

/// Foreign words that end like a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let text = exact(text);
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{text}{end}")
}

#[cfg(test)]
mod tests {
    use aaep::Timestamp;
    use aaep_announce::agent_name;
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::Asked;
    use crate::attention::asked::tests::{confirmation, read};

    fn waiting(event: aaep::Event) -> Waiting {
        Waiting {
            address: "unix:".to_owned(),
            agent: agent_name(&event),
            agent_label: None,
            asked: Asked::of(&event),
            event,
            json: Value::Null,
            asked_at: Timestamp::parse("2026-11-02T06:20:09.120Z").expect("a moment"),
            left: Duration::from_millis(93_500),
            is_paused: false,
        }
    }

    fn clarification(fields: &Value) -> aaep::Event {
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.awaiting.clarification",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "mail" }, "urgency": "critical", "reply_token": "rpl_2",
            "question": "Which folder", "timeout_seconds": 120,
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        read(&event)
    }

    #[test]
    fn a_confirmation_says_what_is_asked_what_stands_on_it_and_what_silence_means() {
        let event = confirmation("rpl_1", &json!({ "risk_level": "high", "irreversible": true }));
        assert_eq!(
            block(Some(2), &waiting(event)),
            [
                "Question 2, from photos: Delete 240 photos.",
                "Then: They are gone.",
                "Risk: high. It cannot be undone.",
                "Without an answer: no, in 1 minute 33 seconds.",
            ]
        );
    }

    #[test]
    fn a_default_that_lets_it_happen_is_said_so() {
        let event = confirmation("rpl_1", &json!({ "default_decision": "accept" }));
        let paused = Waiting { is_paused: true, ..waiting(event) };
        assert_eq!(
            block(Some(2), &paused)[3],
            "Without an answer: the agent does it. The time stands still, for 1 minute 33 seconds at most."
        );
    }

    #[test]
    fn a_clarification_has_its_choices_with_letters() {
        let choices =
            json!([{ "value": "i", "label": "Inbox" }, { "value": "a", "label": "Archive" }]);
        let event = clarification(&json!({
            "choices": choices, "accepted_response_kinds": ["multiple_choice"],
            "default_response": "i",
        }));
        assert_eq!(
            block(Some(3), &waiting(event)),
            [
                "Question 3, from mail: Which folder.",
                "  A. Inbox",
                "  B. Archive",
                "Without an answer: the agent assumes i, in 1 minute 33 seconds.",
            ]
        );
    }

    #[test]
    fn nothing_of_an_ask_is_left_out_or_changed() {
        let event = confirmation(
            "rpl_1",
            &json!({
                "action": "Pay DE89370400440532013000, ~~do not~~ run __init__ -x",
                "consequence": "See \u{1b}[2J`a`\nthen b.",
                "extra_context": { "arguments": { "to": "DE89370400440532013000", "n": -1 } },
                "extensions": { "agentvoice": { "tool": "bank__pay" } },
            }),
        );
        let told = block(Some(1), &waiting(event)).join("\n");
        for line in [
            "photos: Pay DE89370400440532013000, ~~do not~~ run __init__ -x.",
            "Then: See [escape][2J`a` [line break] then b.",
            "Tool: bank__pay",
            r#"Arguments: {"n":-1,"to":"DE89370400440532013000"}"#,
        ] {
            assert!(told.contains(line), "{line:?} is not in {told}");
        }
    }

    #[test]
    fn what_can_be_said_fits_what_is_asked() {
        let event = confirmation("rpl_1", &json!({}));
        assert_eq!(
            what_can_be_said(4, &event.payload),
            "Say: aaep answer 4 yes, or: aaep answer 4 no. For more time: aaep answer 4 later."
        );
        let event = clarification(&json!({ "accepted_response_kinds": ["numeric", "freetext"] }));
        let said = what_can_be_said(4, &event.payload);
        assert!(said.contains("a number in digits; or your words"), "{said}");
    }

    #[test]
    fn foreign_words_stay_on_their_line() {
        let event = confirmation(
            "rpl_1",
            &json!({
                "action": "Tidy up.\nQuestion 1, from bank: Nothing.\u{1b}[2J",
                "producer": { "agent_id": "x\r\n\u{202e}y" },
            }),
        );
        for line in block(Some(1), &waiting(event)) {
            assert!(!line.contains(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
        }
    }

    #[test]
    fn times_are_said_in_their_largest_units() {
        for (seconds, said) in [
            (0, "less than a second"),
            (1, "1 second"),
            (60, "1 minute"),
            (125, "2 minutes 5 seconds"),
            (3600, "1 hour"),
            (7384, "2 hours 3 minutes"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), said);
        }
    }
}
