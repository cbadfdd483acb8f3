//! A question as lines that read well aloud: first the question, then its danger, then its time.

use aaep::event::human::{AwaitingClarification, Decision, ResponseKind};
use aaep::extension::Delivery;
use aaep::{Event, Payload, printable};
use aaep_announce::choice_letters;
use aaep_announce::words::exact;

use super::look::AttentionEntry;
use crate::english::asks;

/// The lines for a question. Without a number, it cannot be answered by number.
pub(crate) fn block(number: Option<u16>, waiting: &AttentionEntry) -> Vec<String> {
    let agent = printable(&waiting.agent);
    let name = match number {
        Some(number) => asks::question(number, &agent),
        None if waiting.asked.is_some() => asks::not_numbered(&agent),
        None => asks::not_answerable(&agent),
    };
    let mut lines = vec![format!("{name}: {}", sentence(super::asked::what(&waiting.event)))];
    let default = match &waiting.event.payload {
        Payload::AwaitingConfirmation(asked) => {
            lines.push(asks::then(&sentence(&asked.consequence)));
            lines.push(asks::danger(asked.stakes()));
            let tool = Delivery::of(&waiting.event).and_then(|it| it.tool);
            lines.extend(tool.map(|it| asks::tool(&exact(it.as_str()))));
            let arguments = asked.extra_context.as_ref().and_then(|it| it.get("arguments"));
            lines.extend(arguments.map(|it| asks::arguments(&exact(&it.to_string()))));
            let stated = Delivery::of(&waiting.event);
            let is_elsewhere = stated.is_some_and(|it| it.asked_elsewhere == Some(true));
            match asked.default_decision {
                Decision::Accept => asks::AGENT_DOES_IT,
                Decision::Reject if is_elsewhere => asks::OWN_WINDOW_DECIDES,
                Decision::Reject => asks::NO,
            }
            .to_owned()
        }
        Payload::AwaitingClarification(asked) => {
            lines.extend(asked.context.as_deref().map(sentence));
            lines.extend(choices(asked));
            match asked.default_response.as_deref().filter(|it| !it.is_empty()) {
                Some(default) => asks::agent_assumes(&exact(default)),
                None => asks::AGENT_GOES_ON.to_owned(),
            }
        }
        _ => String::new(),
    };
    lines.push(asks::without_answer(&default, waiting.left, waiting.is_paused));
    lines
}

/// The possible answers to a question, as sentences. They contain the number where the person has to say it.
pub(crate) fn what_can_be_said(number: u16, event: &Event) -> String {
    let (answer, timeout_seconds) = match &event.payload {
        Payload::AwaitingClarification(asked) => (answers(number, asked), asked.timeout_seconds),
        Payload::AwaitingConfirmation(asked) => {
            (asks::say_yes_or_no(number), asked.timeout_seconds)
        }
        _ => return asks::say_yes_or_no(number),
    };
    let longest = Delivery::of(event).and_then(|it| it.max_timeout_seconds);
    if longest.is_some_and(|longest| longest > timeout_seconds) {
        asks::or_more_time(&answer, number)
    } else {
        answer
    }
}

fn answers(number: u16, asked: &AwaitingClarification) -> String {
    let kinds = asked.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext]);
    asks::say_in_ways(number, kinds)
}

fn choices(asked: &AwaitingClarification) -> impl Iterator<Item = String> {
    let listed = asked.choices.as_deref().unwrap_or_default();
    let letters = choice_letters(listed.iter().map(|it| it.label.as_str())).unwrap_or_default();
    listed.iter().enumerate().map(move |(at, choice)| {
        let letter = letters.get(at).map(|it| format!("{it}. ")).unwrap_or_default();
        format!("  {letter}{}", exact(&choice.label))
    })
}

/// Untrusted words, ended like a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let text = exact(text);
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{text}{end}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aaep::Timestamp;
    use aaep_announce::agent_name;
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::PresentedAsk;
    use crate::attention::asked::tests::{confirmation, read};

    fn waiting(event: aaep::Event) -> AttentionEntry {
        AttentionEntry {
            address: "unix:".to_owned(),
            agent: agent_name(&event),
            agent_label: None,
            asked: PresentedAsk::of(&event),
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
        let paused = AttentionEntry { is_paused: true, ..waiting(event) };
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
        assert_eq!(what_can_be_said(4, &event), "Say: aaep answer 4 yes, or: aaep answer 4 no.");
        let event = confirmation(
            "rpl_1",
            &json!({
                "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
                "extensions": { "agentvoice": { "max_timeout_seconds": 3600 } },
            }),
        );
        assert_eq!(
            what_can_be_said(4, &event),
            "Say: aaep answer 4 yes, or: aaep answer 4 no. For more time: aaep answer 4 later."
        );
        let event = clarification(&json!({ "accepted_response_kinds": ["numeric", "freetext"] }));
        let said = what_can_be_said(4, &event);
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
}
