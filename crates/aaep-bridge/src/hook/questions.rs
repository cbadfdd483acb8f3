//! The agent's own questions to the person.

use serde_json::{Value, json};

use super::HookHandler;
use super::permission::MAX_QUESTION_CHARS;
use crate::dialect::AskTimes;
use crate::event::{AgentVoice, shortened_to};
use crate::gate::{AskedRequest, PlannedAsk, PlannedQuestion};
use crate::tools::ToolRequest;

/// The most questions of one request, and the most choices of one question.
const MAX_QUESTIONS: usize = 16;
const MAX_CHOICES: usize = 32;
const MAX_LABEL_CHARS: usize = 200;

impl HookHandler<'_> {
    /// Puts the agent's own questions, one after the other.
    pub(super) fn ask_questions(&mut self, request: &ToolRequest) {
        let voice = self.voice();
        let listed = request.input["questions"].as_array();
        let questions: Option<Vec<AgentQuestion>> = listed
            .filter(|it| !it.is_empty() && it.len() <= MAX_QUESTIONS)
            .and_then(|it| it.iter().map(AgentQuestion::read).collect());
        let Some(questions) = questions.filter(|_| !request.digest.is_empty()) else {
            let name = self.dialect.name();
            let words =
                format!("{name} has a question that cannot be put here. Answer in its own window.");
            self.emit(voice.waits(&words));
            return;
        };
        let times = self.dialect.times();
        self.plan.ask = Some(PlannedAsk {
            about: request.digest.clone(),
            questions: questions
                .iter()
                .map(|it| PlannedQuestion {
                    event: it.event(&voice, times),
                    is_confirmation: false,
                })
                .collect(),
            agent: self.call.agent,
            later: None,
            request: AskedRequest::Questions {
                input: request.input.clone(),
                texts: questions.iter().map(|it| it.text.clone()).collect(),
                labels: questions.into_iter().map(|it| it.labels).collect(),
            },
        });
    }

    /// Tells a question that only the agent's own window takes the answer of.
    pub(super) fn tell_question(&mut self, request: &ToolRequest) {
        let texts = ["question", "prompt", "message"].map(|it| request.input[it].as_str());
        let listed = request.input["questions"].as_array().into_iter().flatten();
        let listed = listed.filter_map(|it| it["question"].as_str());
        let all: Vec<&str> =
            texts.into_iter().flatten().chain(listed).take(MAX_QUESTIONS).collect();
        let name = self.dialect.name();
        let words = format!(
            "{name} has a question. Answer in its own window. {}",
            shortened_to(&all.join(" "), 2000)
        );
        let event = self.voice().waits(&words);
        self.emit(event);
    }
}

/// A question of the agent, with its choices: the value of each and its label.
struct AgentQuestion {
    text: String,
    told: String,
    labels: Vec<(String, String)>,
    takes_several: bool,
}

impl AgentQuestion {
    fn read(question: &Value) -> Option<Self> {
        let text = question["question"].as_str().filter(|it| !it.trim().is_empty())?;
        let options = question["options"].as_array()?;
        let labels: Option<Vec<(String, String)>> = options
            .iter()
            .map(|it| {
                let label = it["label"].as_str()?;
                (label.chars().count() <= MAX_LABEL_CHARS)
                    .then(|| (label.to_owned(), label.to_owned()))
            })
            .collect();
        let labels = labels?;
        let takes_several = question["multiSelect"].as_bool() == Some(true);
        let described = options.iter().filter_map(|it| {
            let description = it["description"].as_str().filter(|it| !it.is_empty())?;
            Some(format!("{}: {description}.", it["label"].as_str()?))
        });
        let described: Vec<String> = described.collect();
        let mut told = text.to_owned();
        if !described.is_empty() {
            told = format!("{told} {}", described.join(" "));
        }
        if takes_several {
            let names: Vec<&str> = labels.iter().map(|(_, label)| label.as_str()).collect();
            told = format!(
                "{told} You can choose several of these, with commas between them: {}.",
                names.join(", ")
            );
        }
        let fits = told.chars().count() <= MAX_QUESTION_CHARS;
        fits.then(|| AgentQuestion { text: text.to_owned(), told, labels, takes_several })
    }

    fn event(&self, voice: &AgentVoice, times: AskTimes) -> Value {
        let mut fields = json!({
            "question": self.told,
            "timeout_seconds": times.first_seconds,
            "accepted_response_kinds": ["freetext"],
        });
        if !self.takes_several && (2..=MAX_CHOICES).contains(&self.labels.len()) {
            fields["accepted_response_kinds"] = json!(["multiple_choice", "freetext"]);
            let choices =
                self.labels.iter().map(|(value, label)| json!({ "value": value, "label": label }));
            fields["choices"] = choices.collect();
        }
        voice.extended(
            "awaiting.clarification",
            fields,
            json!({ "max_timeout_seconds": times.longest_seconds }),
        )
    }
}
