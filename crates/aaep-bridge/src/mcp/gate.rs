//! Before a tool runs: whether the person is asked, and what becomes of the line that waits.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::call::OpenCall;
use super::message;
use super::tool::McpToolCall;
use super::{ClientRequest, MAX_HELD, McpBridge, McpForward, McpPlan, McpSetup};
use crate::event::AgentVoice;
use crate::gate::{AskAnswer, NOBODY_THERE, SAID_NO, SAID_NOTHING};
use crate::hook::permission::TOO_LONG;
use crate::policy::AskPolicy;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber};
use crate::request_id::RequestId;
use crate::risk::{RiskGrade, RiskVerdict};

/// How long the person has, and how long at most if they ask for more time.
const TIMEOUT_SECONDS: u64 = 600;
const MAX_TIMEOUT_SECONDS: u64 = 3000;

/// The most bytes of lines that wait.
const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

/// The most calls that go on after a yes, because the server asked for something.
const MAX_CONTINUED: usize = 64;

const TOO_MANY: &str = "Too many calls wait for the person already. It was not run.";

/// A line of the client that waits for the person.
#[derive(Debug)]
pub(super) struct HeldLine {
    /// The line as the client wrote it.
    bytes: Vec<u8>,
    /// The messages of a batch.
    batch: Option<Vec<Value>>,
    /// The messages of it that do not go on.
    left_out: BTreeSet<usize>,
    /// The questions that are open.
    open: BTreeSet<ProxyAskNumber>,
}

/// A question about one call.
#[derive(Debug)]
pub(super) struct HeldAsk {
    line: u64,
    /// Which message of the line it is.
    at: usize,
    id: Value,
    params: Value,
    call: McpToolCall,
    verdict: RiskVerdict,
    digest: String,
}

/// What is decided about a call without asking.
enum CallGate {
    Pass,
    Ask(String),
    Refuse(&'static str),
}

impl McpBridge {
    /// Decides about the tool calls of a line: the message itself, or some of a batch.
    pub(super) fn gate(
        &mut self,
        line: &[u8],
        message: &Value,
        calls: &[usize],
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        self.last_line += 1;
        let number = self.last_line;
        let batch = message.as_array().cloned();
        let mut held = HeldLine {
            bytes: Vec::new(),
            batch: batch.clone(),
            left_out: BTreeSet::new(),
            open: BTreeSet::new(),
        };
        let waiting: usize = self.lines.values().map(|it| it.bytes.len()).sum();
        let has_room = waiting + line.len() <= MAX_HELD_BYTES;
        let none: Vec<Value> = Vec::new();
        let all = batch.as_ref().unwrap_or(&none);
        for at in calls {
            let one = all.get(*at).unwrap_or(message);
            let call = McpToolCall::new(&self.server, &one["params"]);
            let hints = self.hints.get(call.tool()).copied().unwrap_or_default();
            let verdict = call.judge(setup.table, hints);
            let digest = call.digest();
            let voice = self.session(setup.now_ms, &mut plan.events).voice.clone();
            let gate = self.judge(&call, &verdict, &digest, &one["params"], setup);
            let ask = HeldAsk {
                line: number,
                at: *at,
                id: one["id"].clone(),
                params: one["params"].clone(),
                call,
                verdict,
                digest,
            };
            match gate {
                CallGate::Pass => self.begin_call(&ask, None, setup, plan),
                CallGate::Ask(_) if !has_room || self.held.len() >= MAX_HELD => {
                    held.left_out.insert(*at);
                    self.refuse(&ask, batch.is_some(), TOO_MANY, plan);
                }
                CallGate::Ask(question) => {
                    let ask_number = self.next_ask();
                    let event = asked(&voice, &ask, &question);
                    plan.asks.push(ProxyAsk { number: ask_number, event, is_confirmation: true });
                    held.open.insert(ask_number);
                    self.held.insert(ask_number, ask);
                }
                CallGate::Refuse(why) => {
                    held.left_out.insert(*at);
                    self.refuse(&ask, batch.is_some(), why, plan);
                }
            }
        }
        if held.open.is_empty() {
            plan.forward = match held.rest() {
                _ if held.left_out.is_empty() => McpForward::Unchanged,
                Some(rest) => McpForward::Instead(rest),
                None => McpForward::Nothing,
            };
        } else {
            line.clone_into(&mut held.bytes);
            self.lines.insert(number, held);
            plan.forward = McpForward::Nothing;
        }
    }

    fn judge(
        &mut self,
        call: &McpToolCall,
        verdict: &RiskVerdict,
        digest: &str,
        params: &Value,
        setup: &McpSetup<'_>,
    ) -> CallGate {
        if !setup.policy.wants_ask(verdict.grade) {
            return CallGate::Pass;
        }
        if params.get("inputResponses").is_some() {
            let state = &params["requestState"];
            let is_it =
                |it: &(String, Value)| !digest.is_empty() && it.0 == digest && it.1 == *state;
            if let Some(at) = self.continued.iter().position(is_it) {
                self.continued.remove(at);
                return CallGate::Pass;
            }
        }
        match call.question() {
            Some(question) if !digest.is_empty() => CallGate::Ask(question),
            _ => CallGate::Refuse(TOO_LONG),
        }
    }

    /// Lets a call that was allowed go on when the client makes it again with what the server asked for.
    pub(super) fn continue_later(&mut self, digest: &str, state: &Value) {
        if self.continued.len() >= MAX_CONTINUED {
            self.continued.pop_front();
        }
        self.continued.push_back((digest.to_owned(), state.clone()));
    }

    /// The person answered, or nobody did.
    pub(super) fn decide(
        &mut self,
        number: ProxyAskNumber,
        answer: &AskAnswer,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        match answer {
            AskAnswer::Accepted => {
                let Some(ask) = self.held.remove(&number) else { return };
                self.begin_call(&ask, Some(&ask.digest), setup, plan);
                self.settle(number, &ask, false, plan);
            }
            AskAnswer::Rejected => self.deny(number, SAID_NO, plan),
            AskAnswer::NobodyThere => self.deny(number, NOBODY_THERE, plan),
            AskAnswer::Words(_) | AskAnswer::Nothing => {
                self.deny(number, SAID_NOTHING, plan);
            }
        }
    }

    /// A call does not go on. The model reads why.
    pub(super) fn deny(&mut self, number: ProxyAskNumber, why: &str, plan: &mut McpPlan) {
        let Some(ask) = self.held.remove(&number) else { return };
        let is_batch = self.lines.get(&ask.line).is_some_and(|it| it.batch.is_some());
        self.refuse(&ask, is_batch, why, plan);
        self.settle(number, &ask, true, plan);
    }

    fn refuse(&mut self, ask: &HeldAsk, is_batch: bool, why: &str, plan: &mut McpPlan) {
        if !ask.id.is_null() {
            let reply = message::not_run(&ask.id, why, message::is_stateless(&ask.params));
            let reply = if is_batch { json!([reply]) } else { reply };
            plan.to_client.push(message::line(&reply));
        }
        if let Some(session) = &mut self.session {
            session.not_run += 1;
            let words = format!("Was not run. {}", ask.call.sentence());
            plan.events.push(session.voice.progress(&words));
        }
    }

    /// One question about a line is settled. The line goes on when all are.
    fn settle(
        &mut self,
        number: ProxyAskNumber,
        ask: &HeldAsk,
        is_left_out: bool,
        plan: &mut McpPlan,
    ) {
        let Some(line) = self.lines.get_mut(&ask.line) else { return };
        line.open.remove(&number);
        if is_left_out {
            line.left_out.insert(ask.at);
        }
        if !line.open.is_empty() {
            return;
        }
        let Some(line) = self.lines.remove(&ask.line) else { return };
        if line.left_out.is_empty() {
            plan.to_server.push(line.bytes);
        } else {
            plan.to_server.extend(line.rest());
        }
    }

    /// The client no longer wants an answer. A call that waits here does not go on.
    pub(super) fn hear_cancelled(&mut self, message: &Value, plan: &mut McpPlan) {
        let Some(id) = RequestId::of(&message["params"]["requestId"]) else { return };
        let found = self.held.iter().find(|(_, it)| RequestId::of(&it.id).as_ref() == Some(&id));
        let Some(number) = found.map(|(number, _)| *number) else {
            self.hear_cancelled_call(&id, message, plan);
            return;
        };
        let Some(mut ask) = self.held.remove(&number) else { return };
        plan.withdrawn.push(number);
        // The server never saw the request, and nobody waits for an answer.
        plan.forward = McpForward::Nothing;
        ask.id = Value::Null;
        self.refuse(&ask, false, "", plan);
        self.settle(number, &ask, true, plan);
    }

    /// A call goes to the server now. `digest` is what the person consented to.
    fn begin_call(
        &mut self,
        ask: &HeldAsk,
        digest: Option<&str>,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let session = self.session(setup.now_ms, &mut plan.events);
        let voice = session.voice.clone();
        let open = OpenCall::new(session.new_call(), &ask.call, &ask.id, &ask.params, digest);
        plan.events.push(invoked(&voice, ask, &open, digest, setup.policy));
        let Some(id) = RequestId::of(&ask.id) else { return };
        if let Some(token) = RequestId::of(&ask.params["_meta"]["progressToken"])
            && (self.tokens.len() < super::MAX_REQUESTS || self.tokens.contains_key(&token))
        {
            self.tokens.insert(token, id.clone());
        }
        self.remember(id, ClientRequest::Call(Box::new(open)));
    }
}

impl HeldLine {
    /// What is left of a batch. `None` if nothing is.
    fn rest(&self) -> Option<Vec<u8>> {
        let batch = self.batch.as_ref()?.iter().enumerate();
        let kept = batch.filter(|(at, _)| !self.left_out.contains(at)).map(|(_, it)| it.clone());
        let kept: Vec<Value> = kept.collect();
        (!kept.is_empty()).then(|| message::line(&kept.into()))
    }
}

/// The question for the person.
fn asked(voice: &AgentVoice, ask: &HeldAsk, question: &str) -> Value {
    let mut fields = json!({
        "action": question,
        "consequence": ask.verdict.to_string(),
        "risk_level": ask.verdict.level(),
        "timeout_seconds": TIMEOUT_SECONDS,
        "default_decision": "reject",
    });
    if ask.verdict.cannot_be_undone {
        fields["irreversible"] = true.into();
    }
    let extension = json!({
        "tool": ask.call.tool_name().as_str(),
        "action_digest": ask.digest,
        "max_timeout_seconds": MAX_TIMEOUT_SECONDS,
    });
    voice.extended("awaiting.confirmation", fields, extension)
}

/// Tells that a tool runs.
fn invoked(
    voice: &AgentVoice,
    ask: &HeldAsk,
    open: &OpenCall,
    digest: Option<&str>,
    policy: AskPolicy,
) -> Value {
    let mut words = ask.call.sentence();
    let verdict = &ask.verdict;
    if digest.is_none() && policy == AskPolicy::Tell && verdict.grade == RiskGrade::Dangerous {
        words = format!("Without asking you here. {verdict} {words}");
    }
    let mut fields = json!({
        "tool": open.tool, "tool_call_id": open.own_id,
        "summary_normal": crate::event::shortened(&words),
    });
    let Some(digest) = digest else {
        if verdict.grade < RiskGrade::Risky {
            fields["risk_level"] = "low".into();
        }
        return voice.event("tool.invoked", fields);
    };
    fields["risk_level"] = verdict.level().into();
    if verdict.cannot_be_undone {
        fields["irreversible"] = true.into();
    }
    voice.extended("tool.invoked", fields, json!({ "action_digest": digest }))
}
