//! The text of an event, for a program that has no better words for it.

use std::borrow::Cow;

use super::human::{AwaitingClarification, AwaitingConfirmation, Decision};
use super::{Event, Payload, StatedRisk, StatedUndo};
use crate::extension::Delivery;

/// The member of `extra_context` that holds the arguments of the tool.
const ARGUMENTS: &str = "arguments";

impl Event {
    /// The text to present to the person. For an ask it is everything that a person needs to
    /// decide: the action, the consequence, the risk, whether it can be undone, the tool with its
    /// arguments, and what silence means. It is never the agent's summary, which may leave some of
    /// that out. For any other event it is [`Event::summary`].
    ///
    /// Untrusted text: [`printable`](crate::printable) makes it fit for a terminal.
    pub fn words(&self) -> Cow<'_, str> {
        match &self.payload {
            Payload::AwaitingConfirmation(it) => Cow::Owned(confirmation(it, self)),
            Payload::AwaitingClarification(it) => Cow::Owned(clarification(it)),
            _ => Cow::Borrowed(self.summary()),
        }
    }

    /// The summary of the event, preferably the normal one, or else the text of one of its other
    /// fields. Empty if the event has no text. It is not enough to decide on an ask; use
    /// [`Event::words`] for that.
    pub fn summary(&self) -> &str {
        match &self.payload {
            Payload::SessionStarted(it) => &it.summary_normal,
            Payload::SessionCompleted(it) => &it.summary_normal,
            Payload::SessionErrored(it) => &it.summary_normal,
            Payload::SessionCancelled(it) => &it.summary_normal,
            Payload::ToolInvoked(it) => &it.summary_normal,
            Payload::OutputStreaming(it) => &it.chunk,
            Payload::StateChanged(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], "")
            }
            Payload::ProgressUpdated(it) => {
                let description = it.progress.description.as_deref().unwrap_or_default();
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], description)
            }
            Payload::ToolCompleted(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], "")
            }
            Payload::AwaitingConfirmation(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.action)
            }
            Payload::AwaitingClarification(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.question)
            }
            Payload::HandoffRequested(it) => {
                first([&it.summary_normal, &it.summary_terse, &it.summary_detailed], &it.reason)
            }
            Payload::Extension(it) => {
                it.fields.get("summary_normal").and_then(|it| it.as_str()).unwrap_or_default()
            }
        }
    }
}

impl Event {
    /// Visits every text of the event that is meant for people, in each of its languages. The chunk
    /// of an output is excluded, because its characters are counted. So is everything that machines
    /// compare: ids, names, tokens, arguments, the values of choices.
    pub fn each_words(&mut self, visit: &mut dyn FnMut(&mut String)) {
        self.payload.each_words(visit);
        match &mut self.payload {
            Payload::ProgressUpdated(it) => {
                it.progress.description.iter_mut().for_each(&mut *visit);
            }
            Payload::AwaitingClarification(it) => {
                let choices = it.choices.iter_mut().flatten();
                choices.for_each(|choice| visit(&mut choice.label));
            }
            _ => {}
        }
        self.variants.iter_mut().for_each(|variant| visit(&mut variant.text));
        self.envelope.producer.agent_name.iter_mut().for_each(visit);
    }
}

fn first<'t>(summaries: [&'t Option<String>; 3], otherwise: &'t str) -> &'t str {
    summaries.into_iter().flatten().next().map_or(otherwise, String::as_str)
}

fn confirmation(it: &AwaitingConfirmation, event: &Event) -> String {
    let stakes = it.stakes();
    let risk = match stakes.risk {
        StatedRisk::High => "High risk.",
        StatedRisk::Medium => "Medium risk.",
        StatedRisk::Low => "Low risk.",
        StatedRisk::Unknown => "The risk is not known.",
    };
    let undo = match stakes.undo {
        StatedUndo::Impossible => "It cannot be undone.",
        StatedUndo::WithEffort => "It is hard to undo.",
        StatedUndo::Possible => "It can be undone.",
        StatedUndo::Unknown => "Whether it can be undone is not known.",
    };
    let tool = Delivery::of(event).and_then(|it| it.tool);
    let tool = tool.map(|it| format!("The tool is {}.", it.as_str())).unwrap_or_default();
    let arguments = it.extra_context.as_ref().and_then(|it| it.get(ARGUMENTS));
    let arguments = arguments.map(|it| format!("Its arguments are {it}.")).unwrap_or_default();
    let silence = match it.default_decision {
        Decision::Accept => "Without an answer it goes ahead.",
        Decision::Reject => "Without an answer it is refused.",
    };
    sentences(&[&it.action, &it.consequence, risk, undo, &tool, &arguments, silence])
}

fn clarification(it: &AwaitingClarification) -> String {
    let choices = it.choices.iter().flatten().enumerate();
    let choices: Vec<String> =
        choices.map(|(at, choice)| format!("{}: {}", at + 1, choice.label)).collect();
    let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    let silence = match it.default_response.as_deref() {
        Some(assumed) if !assumed.is_empty() => format!("Without an answer it assumes: {assumed}"),
        _ => "Without an answer it goes on as it can.".to_owned(),
    };
    let context = it.context.as_deref().unwrap_or_default();
    sentences(&[&it.question, context, &sentences(&choices), &silence])
}

/// The non-empty parts, each as a sentence of its own.
fn sentences(parts: &[&str]) -> String {
    let mut out = String::new();
    for part in parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(part);
        if part.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '%')) {
            out.push('.');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::{Message, Mode, read};

    fn words(kind: &str, fields: &Json) -> String {
        let mut event = json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": kind, "event_id": "evt_1",
            "session_id": "sess_1", "timestamp": "2026-05-24T14:22:11.342Z",
            "producer": { "agent_id": "weaver" }, "urgency": "critical",
        });
        for (key, value) in fields.as_object().expect("an object") {
            event[key] = value.clone();
        }
        match read(event.to_string().as_bytes(), Mode::Tolerant).message {
            Some(Message::Event(event)) => event.words().into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_event_says_what_it_has() {
        let begun = json!({ "summary_normal": "Begun." });
        assert_eq!(words("aaep:agent.session.started", &begun), "Begun.");
        let progress = json!({ "progress": { "percent": 5, "description": "Row 5" } });
        assert_eq!(words("aaep:agent.progress.updated", &progress), "Row 5");
        let state = json!({ "from_state": "idle", "to_state": "thinking", "summary_terse": "Hm." });
        assert_eq!(words("aaep:agent.state.changed", &state), "Hm.");
        let chunk = json!({ "chunk": "Once", "position": 0, "complete": false });
        assert_eq!(words("aaep:agent.output.streaming", &chunk), "Once");
        let asked = json!({
            "action": "Delete.", "consequence": "Gone.", "reply_token": "rpl_1",
            "timeout_seconds": 5, "default_decision": "reject",
        });
        assert_eq!(
            words("aaep:agent.awaiting.confirmation", &asked),
            "Delete. Gone. The risk is not known. Whether it can be undone is not known. Without an answer it is \
             refused."
        );
        assert_eq!(words("lumen:lamp.lit", &json!({ "summary_normal": "Light." })), "Light.");
        assert_eq!(words("lumen:lamp.lit", &json!({ "summary_normal": 7 })), "");
    }

    #[test]
    fn the_words_of_an_ask_hold_everything_that_a_decision_needs() {
        let asked = json!({
            "summary_normal": "Tidy up", "action": "Delete 240 photos", "consequence": "They are gone",
            "reply_token": "rpl_1", "timeout_seconds": 5, "default_decision": "reject",
            "risk_level": "high", "irreversible": true, "reversibility": "reversible",
            "extra_context": { "arguments": { "folder": "july" } },
        });
        assert_eq!(
            words("aaep:agent.awaiting.confirmation", &asked),
            "Delete 240 photos. They are gone. High risk. It cannot be undone. Its arguments are \
             {\"folder\":\"july\"}. Without an answer it is refused."
        );
        let asked = json!({
            "question": "Which year?", "context": "There are two", "reply_token": "rpl_1",
            "timeout_seconds": 5, "default_response": "2019",
            "choices": [{ "value": "a", "label": "2019" }, { "value": "b", "label": "2020" }],
        });
        assert_eq!(
            words("aaep:agent.awaiting.clarification", &asked),
            "Which year? There are two. 1: 2019. 2: 2020. Without an answer it assumes: 2019."
        );
    }
}
