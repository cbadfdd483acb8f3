//! Before a tool runs: whether the person is asked, what, and what the agent is told.

use serde_json::{Value, json};

use super::HookHandler;
use crate::dialect::{AskStages, AskTimes, GateAsker, GateDecision, HookAnswer, ToolUse};
use crate::event::AgentVoice;
use crate::gate::{AskedRequest, PlannedAsk, PlannedQuestion};
use crate::memory::{EarlierAnswer, PendingCall, not_run_event};
use crate::risk::{RiskGrade, RiskVerdict};
use crate::tools::ToolRequest;

/// The longest question, in characters. A longer one cannot be put whole, so it is not put.
pub(super) const MAX_QUESTION_CHARS: usize = 16_000;

pub(crate) const NO_HUB: &str = "The AAEP hub is not running, so the person cannot be asked. It was not run. \
                      The person can start the hub with: aaep serve";
pub(crate) const TOO_LONG: &str =
    "It is too long for the person to be asked about it. It was not run.";
const SAID_NO_BEFORE: &str = "The person said no to exactly this. It was not run.";

impl HookHandler<'_> {
    /// Decides before a tool runs.
    pub(super) fn before_tool(&mut self, tool: &ToolUse) {
        let (request, verdict) = self.judge(tool);
        if request.is_question() {
            if self.dialect.gate().asker == GateAsker::Bridge {
                self.tell_question(&request);
            }
            return;
        }
        let earlier = self.earlier_answer(&request);
        let wants_ask = earlier.is_none() && self.setup.policy.wants_ask(verdict.grade);
        let is_grave = verdict.grade >= RiskGrade::Risky;
        let words = request.sentence(self.project());
        let key = call_key(tool, &request);
        let call = PendingCall {
            tool: request.name.as_str().to_owned(),
            id: tool.id.clone(),
            words: words.clone(),
            digest: request.digest.clone(),
            is_told: earlier == Some(EarlierAnswer::Accepted) || (!wants_ask && !is_grave),
            is_asked: wants_ask || earlier.is_some(),
            is_accepted: false,
        };
        if earlier == Some(EarlierAnswer::Rejected) {
            self.memory.counts.not_run += 1;
            self.memory.note_refused(&key);
            self.plan.answer = self.dialect.answer(&GateDecision::RefuseTool(SAID_NO_BEFORE));
            return;
        }
        self.memory.remember_call(&key, call);
        match (earlier, wants_ask) {
            (Some(EarlierAnswer::Accepted), _) => {
                let event = accepted(&self.voice(), &request, &verdict, &tool.id, self.project());
                self.emit(event);
            }
            (Some(_), _) => self.tell_allowed_in_window(&request, &verdict, &tool.id, &key),
            (None, true) => match self.asker() {
                GateAsker::Agent => self.let_agent_ask(&verdict),
                GateAsker::Bridge => self.ask_before(&request, &verdict, tool, &key),
            },
            (None, false) => {
                let voice = self.voice();
                // Whether the agent's own program asks the person is not known yet.
                let event = if is_grave {
                    voice.progress(&format!("Is about to act. {verdict} {words}"))
                } else {
                    invoked(&voice, &request, &tool.id, &words, Some("low"))
                };
                self.emit(event);
            }
        }
    }

    /// What was decided about this call where the agent asked, if that comes before its tool hook.
    fn earlier_answer(&mut self, request: &ToolRequest) -> Option<EarlierAnswer> {
        let earlier = self.memory.earlier.remove(&request.digest);
        let is_first = self.dialect.gate().stages == AskStages::PermissionFirst;
        let earlier = earlier.filter(|_| is_first);
        if is_first {
            // Whatever was asked there is over.
            self.withdraw(&request.digest);
        }
        earlier
    }

    /// The agent opens its own dialog, and its next hook asks at the same time. The first answer counts.
    fn let_agent_ask(&mut self, verdict: &RiskVerdict) {
        let reason = format!("AAEP asks the person first. {verdict}");
        self.plan.answer = self.dialect.answer(&GateDecision::AskInWindow(&reason));
        self.plan.answer_without_hub = Some(self.dialect.answer(&GateDecision::RefuseTool(NO_HUB)));
    }

    /// The agent waits until the person answered us. Without a yes the tool does not run.
    fn ask_before(
        &mut self,
        request: &ToolRequest,
        verdict: &RiskVerdict,
        tool: &ToolUse,
        key: &str,
    ) {
        let Some(mut question) = self.question(request, verdict) else {
            self.memory.pending.remove(key);
            self.memory.counts.not_run += 1;
            self.memory.note_refused(key);
            self.plan.answer = self.dialect.answer(&GateDecision::RefuseTool(TOO_LONG));
            let words = format!("Was not run, because it is too long to ask you. {verdict}");
            let event = self.voice().progress(&words);
            self.emit(event);
            return;
        };
        let runs = !self.dialect.gate().may_still_refuse;
        let voice = self.voice();
        let invoked =
            runs.then(|| Box::new(accepted(&voice, request, verdict, &tool.id, self.project())));
        let later = self.later(request, tool, &mut question);
        self.plan_ask(
            request,
            question,
            AskedRequest::Tool { is_gate: true, invoked, not_run: None, undecided: None },
        );
        if let Some(ask) = &mut self.plan.ask {
            ask.later = later;
        }
        self.plan.answer = self.dialect.answer(&GateDecision::RefuseTool(NO_HUB));
        self.plan.answer_without_hub = Some(self.plan.answer.clone());
    }

    /// Asks the person what the agent asks them in its own dialog.
    pub(super) fn ask_permission(&mut self, tool: &ToolUse, is_person_certain: bool) {
        let (request, verdict) = self.judge(tool);
        if request.is_question() {
            self.ask_questions(&request);
            return;
        }
        let stages = self.dialect.gate().stages;
        let earlier = self.memory.earlier.remove(&request.digest);
        if let (AskStages::GateFirst, Some(earlier)) = (stages, earlier) {
            self.plan.answer = self.dialect.answer(&match earlier {
                EarlierAnswer::Accepted => GateDecision::Allow,
                EarlierAnswer::Rejected | EarlierAnswer::InWindow => {
                    GateDecision::Deny(SAID_NO_BEFORE)
                }
            });
            return;
        }
        if stages == AskStages::PermissionFirst && is_person_certain {
            self.memory.note_earlier(&request.digest, EarlierAnswer::InWindow);
        }
        let Some(mut question) = self.question(&request, &verdict) else {
            let name = self.dialect.name();
            let words = format!(
                "{name} asks for permission, and what it wants is too long to be told here. \
                 Answer in its own window."
            );
            let event = self.voice().waits(&words);
            self.emit(event);
            return;
        };
        self.memory.note_ask_of(&request.digest);
        let voice = self.voice();
        let pending = self.memory.call_with_digest(&request.digest).cloned();
        let is_told = pending.as_ref().is_some_and(|it| it.is_told);
        let id = pending.as_ref().map_or(tool.id.as_str(), |it| it.id.as_str());
        let runs = stages != AskStages::PermissionFirst;
        let invoked = (runs && !is_told)
            .then(|| Box::new(accepted(&voice, &request, &verdict, id, self.project())));
        let not_run = pending.as_ref().filter(|it| it.is_told);
        let not_run = not_run.map(|it| Box::new(not_run_event(&voice, it, "The answer was no.")));
        let silence_is_no = self.dialect.gate().silence_is_no;
        let undecided = (!silence_is_no).then(|| {
            let name = self.dialect.name();
            let words = format!("Nobody answered here, so {name} waits for you in its own window.");
            Box::new(voice.waits(&words))
        });
        if !silence_is_no {
            question["extensions"][aaep::extension::PREFIX]["asked_elsewhere"] = true.into();
        }
        self.plan_ask(
            &request,
            question,
            AskedRequest::Tool { is_gate: false, invoked, not_run, undecided },
        );
        if silence_is_no {
            // Without a hub nobody is asked here, and the agent's own dialog stays.
            self.plan.answer_without_hub = Some(HookAnswer::default());
        }
    }

    /// The question about a tool, or `None` if it cannot be put whole.
    fn question(&self, request: &ToolRequest, verdict: &RiskVerdict) -> Option<Value> {
        let action = request.question(self.project());
        let fits = action.chars().count() <= MAX_QUESTION_CHARS && !request.digest.is_empty();
        fits.then(|| confirmation(&self.voice(), request, verdict, &action, self.dialect.times()))
    }

    fn plan_ask(&mut self, request: &ToolRequest, event: Value, asked: AskedRequest) {
        self.plan.ask = Some(PlannedAsk {
            about: request.digest.clone(),
            questions: vec![PlannedQuestion { event, is_confirmation: true }],
            agent: self.call.agent,
            request: asked,
            later: None,
        });
    }

    /// Tells that the agent asks in its own window, where we cannot answer.
    pub(super) fn tell_window(&mut self, tool: &ToolUse) {
        let (request, verdict) = self.judge(tool);
        if request.is_question() {
            return;
        }
        self.memory.note_ask_of(&request.digest);
        let action = crate::event::shortened_to(&request.question(self.project()), 2000);
        let words = format!(
            "{} asks in its own window, and cannot be answered from here. {action} {verdict}",
            self.dialect.name()
        );
        let event = self.voice().waits(&words);
        self.emit(event);
    }

    /// Tells what the person answered in the agent's own window.
    pub(super) fn tell_window_answer(&mut self, tool: &ToolUse, is_yes: bool) {
        let (request, verdict) = self.judge(tool);
        let key = call_key(tool, &request);
        if is_yes {
            if self.memory.pending.get(&key).is_some_and(|it| !it.is_told) {
                self.tell_allowed_in_window(&request, &verdict, &tool.id, &key);
            }
            return;
        }
        if let Some(call) = self.memory.pending.remove(&key) {
            self.memory.counts.not_run += 1;
            let voice = self.voice();
            let event = if call.is_told {
                not_run_event(&voice, &call, "It was denied in its own window.")
            } else {
                voice.progress(&format!("Denied in its own window. {}", call.words))
            };
            self.emit(event);
        }
    }

    /// Tells that a tool runs because the person allowed it in the agent's own window.
    fn tell_allowed_in_window(
        &mut self,
        request: &ToolRequest,
        verdict: &RiskVerdict,
        id: &str,
        key: &str,
    ) {
        let words = format!("Allowed in its own window. {}", request.sentence(self.project()));
        let is_accepted = self.memory.pending.get(key).is_some_and(|it| it.is_accepted);
        let voice = self.voice();
        let event = if is_accepted {
            accepted(&voice, request, verdict, id, self.project())
        } else {
            invoked(&voice, request, id, &words, None)
        };
        self.emit(event);
        self.memory.pending.entry(key.to_owned()).and_modify(|it| it.is_told = true);
    }
}

/// The name under which a call is remembered: the agent's own id, or what it does.
pub(super) fn call_key(tool: &ToolUse, request: &ToolRequest) -> String {
    if tool.id.is_empty() { request.digest.clone() } else { tool.id.clone() }
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
pub(super) fn accepted(
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
    times: AskTimes,
) -> Value {
    let mut fields = json!({
        "action": action,
        "consequence": verdict.to_string(),
        "risk_level": verdict.level(),
        "timeout_seconds": times.first_seconds,
        "default_decision": "reject",
    });
    if verdict.cannot_be_undone {
        fields["irreversible"] = true.into();
    }
    let extension = json!({
        "tool": request.name.as_str(),
        "action_digest": request.digest,
        "max_timeout_seconds": times.longest_seconds,
    });
    voice.extended("awaiting.confirmation", fields, extension)
}
