//! The scripted agent's actions as plain steps: events, pauses, and asks with what follows from the answer.
//!
//! A script is pure: it needs neither hub nor clock. It never repeats what a person typed into a prompt, because that
//! may contain a secret.

use std::time::Duration;

use aaep::ToolName;
use aaep::extension::{CONTEXT, action_digest};
use serde_json::{Value, json};

/// One step of a task.
#[derive(Debug, Clone)]
pub(crate) enum SceneStep {
    /// An event to publish: the type after `aaep:agent.`, and its fields.
    Tell(&'static str, Value),
    /// A pause, for people who follow along.
    Pause(Duration),
    /// An ask, and the steps that follow from its answer.
    Ask(&'static str, Value, fn(&SceneAnswer) -> Vec<SceneStep>),
}

/// The outcome of an ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SceneAnswer {
    /// The person accepted.
    pub(crate) is_accepted: bool,
    /// The answer to a clarification.
    pub(crate) response: Option<String>,
}

/// The longest part of a person's answer that is repeated.
const MAX_REPEATED_CHARACTERS: usize = 60;

impl SceneAnswer {
    /// The answer, fit to be used within a sentence.
    pub(crate) fn words(&self) -> Option<String> {
        let text = self.response.as_deref()?.trim();
        let words: String =
            text.chars().filter(|c| !c.is_control()).take(MAX_REPEATED_CHARACTERS).collect();
        Some(words).filter(|it| !it.is_empty())
    }
}

/// A session begins.
pub(crate) fn started(summary: &str) -> SceneStep {
    SceneStep::Tell("session.started", json!({ "summary_normal": summary }))
}

/// A session ends well.
pub(crate) fn completed(summary: &str) -> SceneStep {
    SceneStep::Tell("session.completed", json!({ "summary_normal": summary }))
}

/// A session ends in an error.
pub(crate) fn errored(code: &str, summary: &str, hint: &str) -> SceneStep {
    let fields = json!({
        "summary_normal": summary,
        "error_category": "permanent",
        "error_code": code,
        "remediation_hint": hint,
        "recoverable": false,
    });
    SceneStep::Tell("session.errored", fields)
}

pub(crate) fn thinking() -> SceneStep {
    SceneStep::Tell("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }))
}

pub(crate) fn pause(milliseconds: u64) -> SceneStep {
    SceneStep::Pause(Duration::from_millis(milliseconds))
}

/// Progress of a long task.
pub(crate) fn progress(percent: u64, description: &str) -> SceneStep {
    let progress = json!({ "percent": percent, "description": description });
    SceneStep::Tell("progress.updated", json!({ "progress": progress, "urgency": "background" }))
}

/// Streams an answer sentence by sentence.
pub(crate) fn say(output_id: &str, sentences: &[&str]) -> Vec<SceneStep> {
    let mut position = 0;
    let mut steps = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let is_last = at + 1 == sentences.len();
        let chunk = if is_last { (*sentence).to_owned() } else { format!("{sentence} ") };
        let length = chunk.chars().count();
        steps.push(SceneStep::Tell(
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

/// A tool with its call id and its words for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SceneTool {
    pub(crate) name: &'static str,
    pub(crate) call_id: &'static str,
    /// What it does, for people.
    pub(crate) summary: &'static str,
    /// Its result, for people.
    pub(crate) result: &'static str,
}

impl SceneTool {
    /// The tool starts and completes.
    pub(crate) fn run(self) -> Vec<SceneStep> {
        vec![self.invoked(json!({})), pause(500), self.completed()]
    }

    /// The tool starts, with further fields.
    pub(crate) fn invoked(self, further: Value) -> SceneStep {
        let fields = json!({
            "tool": self.name, "tool_call_id": self.call_id, "summary_normal": self.summary,
        });
        SceneStep::Tell("tool.invoked", merged(fields, further))
    }

    /// The tool completes.
    pub(crate) fn completed(self) -> SceneStep {
        let fields = json!({
            "tool": self.name, "tool_call_id": self.call_id, "status": "success",
            "summary_normal": self.result,
        });
        SceneStep::Tell("tool.completed", fields)
    }

    /// Binds a question or a call to exactly this tool with exactly these arguments.
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

/// Merges both sets of fields.
pub(crate) fn merged(mut fields: Value, further: Value) -> Value {
    if let Value::Object(further) = further {
        for (key, value) in further {
            fields[key] = value;
        }
    }
    fields
}
