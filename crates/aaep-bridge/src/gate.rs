//! What a hook has to do: events to publish, a question to put, and what to answer the agent.

use serde_json::Value;

use crate::agent::BridgedAgent;
use crate::dialect::{AskStages, GateDecision, HookAnswer};

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
    /// What to tell the agent at once, if nobody is asked.
    pub answer: HookAnswer,
    /// What to tell the agent if the hub cannot be reached. If it is missing, `answer` stands.
    pub answer_without_hub: Option<HookAnswer>,
}

/// Questions for the person, all about one request of the agent, put one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAsk {
    /// What the ask is about: the digest of the tool and its arguments.
    pub about: String,
    /// The questions. Their events have no `event_id`, `reply_token` and times yet.
    pub questions: Vec<PlannedQuestion>,
    pub(crate) agent: BridgedAgent,
    /// The request of the agent, for the answer.
    pub(crate) request: AskedRequest,
    /// Set if the agent need not wait for the answer.
    pub later: Option<LaterAsk>,
}

/// A question at which the agent ends, and which stays open until it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct LaterAsk {
    /// The agent's own id of the tool call.
    pub(crate) call: String,
    /// Until when the question can be answered.
    pub(crate) until_ms: i64,
    /// The question with its ids, if it was put before the agent ended.
    pub earlier: Option<Value>,
    /// To be published when the agent ends.
    pub(crate) ends: Value,
}

impl LaterAsk {
    /// How many seconds the agent waits before it ends.
    pub const WAIT_SECONDS: u64 = 60;
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
    /// To run a tool.
    Tool {
        /// Whether the tool runs unless this says otherwise.
        is_gate: bool,
        /// To be published when the person accepts.
        invoked: Option<Box<Value>>,
        /// To be published when the tool does not run.
        not_run: Option<Box<Value>>,
        /// To be published when nothing is decided here.
        undecided: Option<Box<Value>>,
    },
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
    /// Nobody was there to be asked. Never consent.
    NobodyThere,
    /// Nobody answered, or it was answered elsewhere, or it is not known. Never consent.
    Nothing,
}

/// What to tell the agent, and everybody else, after the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateAnswer {
    /// What to tell the agent.
    pub answer: HookAnswer,
    /// Events to publish.
    pub events: Vec<Value>,
}

pub(crate) const SAID_NO: &str =
    "The person said no. It was not run. Do not try it in another way.";
pub(crate) const SAID_NOTHING: &str = "The person did not say yes in time. It was not run.";
pub(crate) const NOBODY_THERE: &str = "Nobody is there who can be asked. It was not run. \
                            The person can listen and answer with: aaep listen";
const LEFT_OPEN: &str = "The person did not answer yet, and can do so later. It was not run.";
const COUNTS_NO_MORE: &str = "The question was closed before the person said yes. It was not run.";

impl PlannedAsk {
    /// The answer for the agent. Only an accept allows a tool, and only if every question was answered.
    pub fn answered(&self, answers: &[AskAnswer]) -> GateAnswer {
        match &self.request {
            AskedRequest::Tool { is_gate, invoked, not_run, undecided } => {
                let decision = match (answers, self.says_no(answers)) {
                    ([AskAnswer::Accepted], _) if *is_gate => GateDecision::PassTool,
                    ([AskAnswer::Accepted], _) => GateDecision::Allow,
                    (_, Some(why)) if *is_gate => GateDecision::RefuseTool(why),
                    (_, Some(why)) => GateDecision::Deny(why),
                    (_, None) => {
                        let events = undecided.iter().map(|it| (**it).clone()).collect();
                        return GateAnswer { events, ..GateAnswer::default() };
                    }
                };
                let is_yes = matches!(decision, GateDecision::PassTool | GateDecision::Allow);
                let event = if is_yes { invoked } else { not_run };
                GateAnswer {
                    answer: self.agent.dialect().answer(&decision),
                    events: event.iter().map(|it| (**it).clone()).collect(),
                }
            }
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
                let answer = self.agent.dialect().answer(&GateDecision::Answers(&input));
                GateAnswer { answer, events: Vec::new() }
            }
        }
    }

    /// What to tell the agent if the answer does not count, because the question was closed before.
    pub fn not_counted(&self) -> HookAnswer {
        match self.request {
            AskedRequest::Tool { is_gate: true, .. } => {
                self.agent.dialect().answer(&GateDecision::RefuseTool(COUNTS_NO_MORE))
            }
            _ => HookAnswer::default(),
        }
    }

    /// What to tell the agent, and everybody else, if it ends here and the question stays open.
    pub fn left_open(&self) -> GateAnswer {
        let Some(later) = &self.later else { return GateAnswer::default() };
        GateAnswer {
            answer: self.agent.dialect().answer(&GateDecision::AskLater(LEFT_OPEN)),
            events: vec![later.ends.clone()],
        }
    }

    /// Why the answer keeps a tool from running. `None` if it decides nothing, or lets it run.
    pub(crate) fn says_no(&self, answers: &[AskAnswer]) -> Option<&'static str> {
        let AskedRequest::Tool { is_gate, .. } = self.request else { return None };
        match answers {
            [AskAnswer::Accepted] => None,
            [AskAnswer::Rejected] => Some(SAID_NO),
            [AskAnswer::NobodyThere] => is_gate.then_some(NOBODY_THERE),
            _ if is_gate || self.agent.dialect().gate().silence_is_no => Some(SAID_NOTHING),
            _ => None,
        }
    }

    /// Whether a yes is for a call that the agent asks about a second time.
    pub(crate) fn leaves_consent(&self) -> bool {
        let AskedRequest::Tool { is_gate, .. } = self.request else { return false };
        match self.agent.dialect().gate().stages {
            AskStages::One => false,
            AskStages::GateFirst => is_gate,
            AskStages::PermissionFirst => !is_gate,
        }
    }

    /// Whether a yes means that the tool runs now, and nothing of the agent comes first.
    pub(crate) fn yes_runs(&self) -> bool {
        let gate = self.agent.dialect().gate();
        match self.request {
            AskedRequest::Tool { is_gate: true, .. } => !gate.may_still_refuse,
            AskedRequest::Tool { .. } => gate.stages != AskStages::PermissionFirst,
            AskedRequest::Questions { .. } => true,
        }
    }
}
