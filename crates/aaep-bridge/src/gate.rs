//! What a hook has to do: events to publish, a question to put, and what to answer the agent.

use serde_json::{Value, json};

/// What one call of a hook leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookPlan {
    /// The event with which the session begins, to be published if the hub does not know the session.
    pub opening: Option<Value>,
    /// Events to publish, in order.
    pub events: Vec<Value>,
    /// The reply tokens of asks that were answered elsewhere.
    pub withdrawn: Vec<String>,
    /// What the person is asked. The agent waits for the answer.
    pub ask: Option<PlannedAsk>,
    /// What to print for the agent at once, if nobody is asked.
    pub print: Option<Value>,
    /// What to print if the hub cannot be reached. If it is missing, `print` stands.
    pub print_without_hub: Option<Value>,
}

/// Questions for the person, all about one request of the agent, put one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAsk {
    /// What the ask is about: the digest of the tool and its arguments.
    pub about: String,
    /// The questions. Their events have no `event_id`, `reply_token` and times yet.
    pub questions: Vec<PlannedQuestion>,
    /// The request of the agent, for the answer.
    pub(crate) request: AskedRequest,
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedQuestion {
    /// The event.
    pub event: Value,
    /// Whether it asks for consent, rather than for words.
    pub is_confirmation: bool,
}

/// What the agent asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AskedRequest {
    /// To run a tool. When the person accepts, the event is published, unless it was before.
    Tool { invoked: Option<Box<Value>> },
    /// To answer questions of the agent.
    Questions { input: Value, texts: Vec<String>, labels: Vec<Vec<(String, String)>> },
}

/// What came of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskAnswer {
    /// A person or one of their rules accepted.
    Accepted,
    /// A person or one of their rules rejected.
    Rejected,
    /// The person's words, or the value of their choice.
    Words(String),
    /// Nobody answered, or it was answered elsewhere, or it is not known. Never consent.
    Nothing,
}

/// What to tell the agent, and everybody else, after the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateAnswer {
    /// What to print for the agent. Nothing leaves the decision where it was: with the agent's own dialog, or denied
    /// where there is none.
    pub print: Option<Value>,
    /// Events to publish.
    pub events: Vec<Value>,
}

impl PlannedAsk {
    /// The answer for the agent. Only an accept allows a tool, and only if every question was answered.
    pub fn answered(&self, answers: &[AskAnswer]) -> GateAnswer {
        match &self.request {
            AskedRequest::Tool { invoked } => match answers {
                [AskAnswer::Accepted] => GateAnswer {
                    print: Some(decision(&json!({ "behavior": "allow" }))),
                    events: invoked.iter().map(|it| (**it).clone()).collect(),
                },
                [AskAnswer::Rejected] => GateAnswer {
                    print: Some(decision(&json!({
                        "behavior": "deny",
                        "message": "The person said no. It was not run. Do not try it in another way.",
                    }))),
                    events: Vec::new(),
                },
                _ => GateAnswer::default(),
            },
            AskedRequest::Questions { input, texts, labels } => {
                let words: Option<Vec<&String>> = answers
                    .iter()
                    .map(|it| if let AskAnswer::Words(words) = it { Some(words) } else { None })
                    .collect();
                let Some(words) = words.filter(|it| it.len() == texts.len()) else {
                    return GateAnswer::default();
                };
                let mut given = serde_json::Map::new();
                for ((text, labels), words) in texts.iter().zip(labels).zip(words) {
                    let label = labels.iter().find(|(value, _)| value == words);
                    let label = label.map_or(words, |(_, label)| label);
                    given.insert(text.clone(), label.as_str().into());
                }
                let mut input = input.clone();
                input["answers"] = given.into();
                let allowed = json!({ "behavior": "allow", "updatedInput": input });
                GateAnswer { print: Some(decision(&allowed)), events: Vec::new() }
            }
        }
    }
}

/// A decision in the form of a `PermissionRequest` hook.
fn decision(decision: &Value) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } })
}
