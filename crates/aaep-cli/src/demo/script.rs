//! What the scripted agent does, as plain steps: events, pauses, and questions with what follows.
//!
//! A script is pure: it knows no hub and no clock. It never says again what a person typed into a
//! prompt, because there may be a secret in it.

use std::time::Duration;

use aaep::ToolName;
use aaep::extension::{CONTEXT, action_digest};
use serde_json::{Value, json};

/// One step of a task.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Something to tell: the type after `aaep:agent.`, and the fields of the event.
    Tell(&'static str, Value),
    /// Time passes, for those who follow along.
    Pause(Duration),
    /// A question, and what follows from its answer.
    Ask(&'static str, Value, fn(&Answer) -> Vec<Step>),
}

/// How a question was settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The person accepted.
    pub(crate) is_accepted: bool,
    /// What the person answered to a clarification.
    pub(crate) response: Option<String>,
}

/// The longest piece of a person's answer that is said again.
const MAX_REPEATED_CHARACTERS: usize = 60;

impl Answer {
    /// The answer as it can stand within a sentence.
    pub(crate) fn words(&self) -> Option<String> {
        let text = self.response.as_deref()?.trim();
        let words: String =
            text.chars().filter(|c| !c.is_control()).take(MAX_REPEATED_CHARACTERS).collect();
        Some(words).filter(|it| !it.is_empty())
    }
}

/// A session begins.
pub(crate) fn started(summary: &str) -> Step {
    Step::Tell("session.started", json!({ "summary_normal": summary }))
}

/// A session ends well.
pub(crate) fn completed(summary: &str) -> Step {
    Step::Tell("session.completed", json!({ "summary_normal": summary }))
}

/// A session ends in an error.
pub(crate) fn errored(code: &str, summary: &str, hint: &str) -> Step {
    let fields = json!({
        "summary_normal": summary,
        "error_category": "permanent",
        "error_code": code,
        "remediation_hint": hint,
        "recoverable": false,
    });
    Step::Tell("session.errored", fields)
}

/// The agent begins to think.
pub(crate) fn thinking() -> Step {
    Step::Tell("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }))
}

/// A little time passes.
pub(crate) fn pause(milliseconds: u64) -> Step {
    Step::Pause(Duration::from_millis(milliseconds))
}

/// So much of a long task is done.
pub(crate) fn progress(percent: u64, description: &str) -> Step {
    let progress = json!({ "percent": percent, "description": description });
    Step::Tell("progress.updated", json!({ "progress": progress, "urgency": "background" }))
}

/// An answer, sentence by sentence.
pub(crate) fn say(output_id: &str, sentences: &[&str]) -> Vec<Step> {
    let mut position = 0;
    let mut steps = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let is_last = at + 1 == sentences.len();
        let chunk = if is_last { (*sentence).to_owned() } else { format!("{sentence} ") };
        let length = chunk.chars().count();
        steps.push(Step::Tell(
            "output.streaming",
            json!({
                "output_id": output_id,
                "chunk": chunk,
                "position": position,
                "complete": is_last,
                "coalesce_hint": "sentence",
            }),
        ));
        if !is_last {
            steps.push(pause(300));
        }
        position += length;
    }
    steps
}

/// A tool and what it is called with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) call_id: &'static str,
    /// What it does, for people.
    pub(crate) summary: &'static str,
    /// What came of it, for people.
    pub(crate) result: &'static str,
}

impl Tool {
    /// The tool runs and returns.
    pub(crate) fn run(self) -> Vec<Step> {
        vec![self.invoked(json!({})), pause(500), self.completed()]
    }

    /// The tool begins, with further fields.
    pub(crate) fn invoked(self, further: Value) -> Step {
        let fields = json!({
            "tool": self.name, "tool_call_id": self.call_id, "summary_normal": self.summary,
        });
        Step::Tell("tool.invoked", merged(fields, further))
    }

    /// The tool returns.
    pub(crate) fn completed(self) -> Step {
        let fields = json!({
            "tool": self.name, "tool_call_id": self.call_id, "status": "success",
            "summary_normal": self.result,
        });
        Step::Tell("tool.completed", fields)
    }

    /// Consent for exactly this tool with exactly these arguments is asked for, or used.
    pub(crate) fn bound(self, args: &Value, is_question: bool) -> Value {
        let tool = ToolName::parse(self.name).ok();
        let digest = tool.and_then(|tool| action_digest(&tool, args).ok());
        let mut data = json!({ "action_digest": digest });
        if is_question {
            data["tool"] = self.name.into();
        }
        json!({ "@context": [aaep::CORE_CONTEXT, CONTEXT], "extensions": { "agentvoice": data } })
    }
}

/// Both sets of fields.
pub(crate) fn merged(mut fields: Value, further: Value) -> Value {
    if let Value::Object(further) = further {
        for (key, value) in further {
            fields[key] = value;
        }
    }
    fields
}
