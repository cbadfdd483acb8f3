//! What a listener on a plain terminal is told of an event: one labelled line, or several for a question.
//!
//! No colour, nothing drawn twice, and no foreign character that steers a terminal.

use aaep::printable;
use serde_json::Value;

use crate::console::count;

/// The lines for an event; none where there is nothing to say.
pub(crate) fn lines(event: &Value) -> Vec<String> {
    let kind = event["type"].as_str().unwrap_or_default();
    match kind.strip_prefix("aaep:agent.").unwrap_or(kind) {
        "session.started" => labelled("Started", summary(event)),
        "session.completed" => labelled("Done", summary(event)),
        "session.errored" => {
            let hint = text(event, "remediation_hint");
            labelled("Error", join(&[summary(event), hint]))
        }
        "session.cancelled" => labelled("Stopped", summary(event)),
        "state.changed" => state(event),
        "progress.updated" => progress(event),
        "tool.invoked" => labelled("Tool", summary(event)),
        "tool.completed" if event["status"] == "success" => labelled("Tool done", summary(event)),
        "tool.completed" => {
            labelled("Tool failed", join(&[summary(event), text(event, "error_message")]))
        }
        "output.streaming" => labelled("Says", text(event, "chunk")),
        "handoff.requested" => labelled("Hands over", summary(event)),
        "awaiting.confirmation" => confirmation(event),
        "awaiting.clarification" => clarification(event),
        _ => Vec::new(),
    }
}

/// The choices of a clarification, as value and label.
pub(crate) fn choices(event: &Value) -> Vec<(String, String)> {
    let listed = event["choices"].as_array().into_iter().flatten();
    let part = |choice: &Value, key: &str| choice[key].as_str().unwrap_or_default().to_owned();
    listed.map(|choice| (part(choice, "value"), part(choice, "label"))).collect()
}

fn state(event: &Value) -> Vec<String> {
    if event["extensions"]["agentvoice"].get("resolution").is_some() {
        return labelled("Settled", summary(event));
    }
    match event["to_state"].as_str() {
        Some("thinking") => labelled("Thinking", summary(event)),
        _ => Vec::new(),
    }
}

fn progress(event: &Value) -> Vec<String> {
    let progress = &event["progress"];
    let percent = progress["percent"].as_f64().map(|it| format!("{it} percent."));
    labelled(
        "Progress",
        join(&[percent, text(progress, "description").map(|it| sentence(&it)), summary(event)]),
    )
}

fn confirmation(event: &Value) -> Vec<String> {
    let mut lines = labelled("May I", text(event, "action"));
    lines.extend(labelled("Then", text(event, "consequence")));
    let risk = text(event, "risk_level").map(|risk| format!("Risk {risk}."));
    let undo = (event["irreversible"] == true).then(|| "It cannot be undone.".to_owned());
    lines.extend(labelled("Note", join(&[risk, undo])));
    let tool = text(&event["extensions"]["agentvoice"], "tool");
    lines.extend(tool.map(|tool| format!("Tool: {tool}")));
    let default = text(event, "default_decision").unwrap_or_default();
    lines.extend(labelled(
        "Time",
        Some(format!("{} Without an answer: {default}.", seconds(event))),
    ));
    lines
}

fn clarification(event: &Value) -> Vec<String> {
    let mut lines = labelled("Question", text(event, "question"));
    for (at, (_, label)) in choices(event).iter().enumerate() {
        lines.push(format!("  {}. {}", at + 1, printable(label)));
    }
    lines.extend(labelled("Time", Some(seconds(event))));
    lines
}

fn seconds(event: &Value) -> String {
    let seconds = event["timeout_seconds"].as_u64().unwrap_or_default();
    format!("{} to answer.", count(seconds, "second"))
}

fn labelled(label: &str, words: Option<String>) -> Vec<String> {
    match words.filter(|it| !it.trim().is_empty()) {
        Some(words) => vec![format!("{label}: {}", words.trim())],
        None => vec![format!("{label}.")],
    }
}

fn summary(event: &Value) -> Option<String> {
    text(event, "summary_normal").or_else(|| text(event, "summary_terse"))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(|it| printable(it).into_owned())
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '?', '!']) { text.to_owned() } else { format!("{text}.") }
}

fn join(parts: &[Option<String>]) -> Option<String> {
    let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, mut fields: Value) -> Value {
        fields["type"] = format!("aaep:agent.{name}").into();
        fields
    }

    #[test]
    fn a_confirmation_says_what_happens_and_what_silence_means() {
        let asked = event(
            "awaiting.confirmation",
            json!({
                "action": "Delete 240 photos.", "consequence": "They are gone.", "risk_level": "high",
                "irreversible": true, "timeout_seconds": 120, "default_decision": "reject",
            }),
        );
        assert_eq!(
            lines(&asked),
            [
                "May I: Delete 240 photos.",
                "Then: They are gone.",
                "Note: Risk high. It cannot be undone.",
                "Time: 120 seconds to answer. Without an answer: reject.",
            ]
        );
    }

    #[test]
    fn choices_are_numbered() {
        let asked = event(
            "awaiting.clarification",
            json!({
                "question": "Which?", "timeout_seconds": 1,
                "choices": [{ "value": "a", "label": "The first" }, { "value": "b", "label": "The second" }],
            }),
        );
        assert_eq!(
            lines(&asked),
            ["Question: Which?", "  1. The first", "  2. The second", "Time: 1 second to answer."]
        );
        assert_eq!(choices(&asked)[1].0, "b");
    }

    #[test]
    fn foreign_text_does_not_steer_the_terminal() {
        for name in ["session.started", "session.errored", "tool.invoked", "handoff.requested"] {
            let line =
                lines(&event(name, json!({ "summary_normal": "a\u{1b}[2Jb\u{7}\r\n" }))).concat();
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        let says =
            lines(&event("output.streaming", json!({ "chunk": "x\u{202e}\u{9b}y" }))).concat();
        assert!(!says.contains(['\u{202e}', '\u{9b}']), "{says:?}");
    }

    #[test]
    fn nonsense_is_passed_over() {
        assert_eq!(lines(&json!({})), Vec::<String>::new());
        assert_eq!(lines(&json!([1])), Vec::<String>::new());
        assert_eq!(lines(&event("state.changed", json!({ "to_state": 7 }))), Vec::<String>::new());
    }
}
