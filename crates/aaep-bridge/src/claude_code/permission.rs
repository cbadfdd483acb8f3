//! Before a tool runs: whether the person is asked, what, and what the agent is told.

use serde_json::{Value, json};

use super::HookHandler;
use super::tools::ToolRequest;
use crate::event::AgentVoice;
use crate::gate::{AskedRequest, PlannedAsk, PlannedQuestion};
use crate::memory::PendingCall;
use crate::risk::{RiskGrade, RiskVerdict};

/// The longest question, in characters. A longer one cannot be put whole, so it is not put.
const MAX_QUESTION_CHARS: usize = 16_000;

/// How long the person has, and how long at most if they ask for more time. Both are less than the time after which
/// the agent gives up its hook.
const TIMEOUT_SECONDS: u64 = 600;
const MAX_TIMEOUT_SECONDS: u64 = 3000;

/// The most questions of one request, and the most choices of one question.
const MAX_QUESTIONS: usize = 16;
const MAX_CHOICES: usize = 32;
const MAX_LABEL_CHARS: usize = 200;

/// The answer of a hook that runs before a tool.
pub(super) fn before_tool(decision: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    } })
}

impl HookHandler<'_> {
    /// Decides before a tool runs. If the person wants to be asked, the agent opens its own dialog, and its next hook
    /// asks at the same time. The first answer counts.
    pub(super) fn before_tool(&mut self) {
        let (request, verdict) = self.tool_request();
        if request.is_question() {
            return;
        }
        let wants_ask = self.setup.policy.wants_ask(verdict.grade);
        let is_grave = verdict.grade >= RiskGrade::Risky;
        let words = request.sentence(self.project());
        let id = self.call.text("tool_use_id").to_owned();
        let call = PendingCall {
            tool: request.name.as_str().to_owned(),
            words: words.clone(),
            digest: request.digest.clone(),
            is_told: !wants_ask && !is_grave,
            is_asked: wants_ask,
        };
        self.memory.remember_call(&id, call);
        if wants_ask {
            let reason = format!("AAEP asks the person first. {verdict}");
            self.plan.print = Some(before_tool("ask", &reason));
            self.plan.print_without_hub = Some(before_tool(
                "deny",
                "The AAEP hub is not running, so the person cannot be asked. It was not run. \
                 The person can start the hub with: aaep serve",
            ));
            return;
        }
        let voice = self.voice();
        // Whether the agent's own program asks the person is not known yet.
        let event = if is_grave {
            voice.progress(&format!("Is about to act. {verdict} {words}"))
        } else {
            invoked(&voice, &request, &id, &words, Some("low"))
        };
        self.emit(event);
    }

    /// Asks the person what the agent asks them in its own dialog.
    pub(super) fn ask_permission(&mut self) {
        let (request, verdict) = self.tool_request();
        if request.is_question() {
            self.ask_questions(&request);
            return;
        }
        let voice = self.voice();
        let action = request.question(self.project());
        if action.chars().count() > MAX_QUESTION_CHARS || request.digest.is_empty() {
            let words = "Claude Code asks for permission, and what it wants is too long to be told here. \
                         Answer in its own window.";
            self.emit(voice.waits(words));
            return;
        }
        self.memory.note_ask_of(&request.digest);
        let pending = self.memory.call_with_digest(&request.digest).map(str::to_owned);
        let is_told = pending.as_ref().is_some_and(|id| self.memory.pending[id].is_told);
        let event = confirmation(&voice, &request, &verdict, &action);
        let asked = AskedRequest::Tool {
            invoked: (!is_told).then(|| {
                let id = pending.unwrap_or_default();
                Box::new(accepted(&voice, &request, &verdict, &id, self.project()))
            }),
        };
        self.plan.ask = Some(PlannedAsk {
            about: request.digest,
            questions: vec![PlannedQuestion { event, is_confirmation: true }],
            request: asked,
        });
    }

    /// Puts the agent's own questions, one after the other.
    fn ask_questions(&mut self, request: &ToolRequest) {
        let voice = self.voice();
        let listed = request.input["questions"].as_array();
        let questions: Option<Vec<AgentQuestion>> = listed
            .filter(|it| !it.is_empty() && it.len() <= MAX_QUESTIONS)
            .and_then(|it| it.iter().map(AgentQuestion::read).collect());
        let Some(questions) = questions.filter(|_| !request.digest.is_empty()) else {
            let words =
                "Claude Code has a question that cannot be put here. Answer in its own window.";
            self.emit(voice.waits(words));
            return;
        };
        self.plan.ask = Some(PlannedAsk {
            about: request.digest.clone(),
            questions: questions
                .iter()
                .map(|it| PlannedQuestion { event: it.event(&voice), is_confirmation: false })
                .collect(),
            request: AskedRequest::Questions {
                input: request.input.clone(),
                texts: questions.iter().map(|it| it.text.clone()).collect(),
                labels: questions.into_iter().map(|it| it.labels).collect(),
            },
        });
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

    fn event(&self, voice: &AgentVoice) -> Value {
        let mut fields = json!({
            "question": self.told,
            "timeout_seconds": TIMEOUT_SECONDS,
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
            json!({ "max_timeout_seconds": MAX_TIMEOUT_SECONDS }),
        )
    }
}

/// The event that a tool runs.
pub(super) fn invoked(
    voice: &AgentVoice,
    request: &ToolRequest,
    id: &str,
    words: &str,
    risk: Option<&str>,
) -> Value {
    let words = crate::event::shortened(words);
    let mut fields = json!({ "tool": request.name.as_str(), "summary_normal": words });
    if !id.is_empty() {
        fields["tool_call_id"] = id.into();
    }
    if let Some(risk) = risk {
        fields["risk_level"] = risk.into();
    }
    voice.event("tool.invoked", fields)
}

/// The event that a tool runs which the person accepted: exactly what they were asked.
fn accepted(
    voice: &AgentVoice,
    request: &ToolRequest,
    verdict: &RiskVerdict,
    id: &str,
    project: &str,
) -> Value {
    let mut event = invoked(voice, request, id, &request.sentence(project), Some(verdict.level()));
    if verdict.cannot_be_undone {
        event["irreversible"] = true.into();
    }
    event["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    event["extensions"][aaep::extension::PREFIX]["action_digest"] = request.digest.as_str().into();
    event
}

fn confirmation(
    voice: &AgentVoice,
    request: &ToolRequest,
    verdict: &RiskVerdict,
    action: &str,
) -> Value {
    let mut fields = json!({
        "action": action,
        "consequence": verdict.to_string(),
        "risk_level": verdict.level(),
        "timeout_seconds": TIMEOUT_SECONDS,
        "default_decision": "reject",
    });
    if verdict.cannot_be_undone {
        fields["irreversible"] = true.into();
    }
    let extension = json!({
        "tool": request.name.as_str(),
        "action_digest": request.digest,
        "max_timeout_seconds": MAX_TIMEOUT_SECONDS,
    });
    voice.extended("awaiting.confirmation", fields, extension)
}
