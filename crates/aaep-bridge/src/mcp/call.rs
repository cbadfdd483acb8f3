//! A tool call that the server has: how it ends, and how it is stopped.

use serde_json::{Value, json};

use super::message;
use super::tool::McpToolCall;
use super::{ClientRequest, McpBridge, McpForward, McpPlan, McpSetup};
use crate::event::shortened_to;
use crate::request_id::RequestId;

/// The longest arguments that are kept, in case the call has to be made again with an answer of the person.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// How much of a result is told.
const MAX_TOLD_CHARS: usize = 160;
const MAX_ERROR_CHARS: usize = 1000;

const STOPPED: &str = "The person stopped it. Whether it had an effect is not known.";

/// A call that the server has.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    /// Its id in our events.
    pub(super) own_id: String,
    pub(super) tool: String,
    pub(super) words: String,
    /// The id under which the client made it.
    pub(super) id: Value,
    /// Its arguments, if the client speaks the revision in which calls are made again.
    pub(super) params: Option<Value>,
    is_stateless: bool,
    /// What the person consented to.
    pub(super) digest: Option<String>,
    /// What was told last about how far it is.
    pub(super) told: String,
}

impl OpenCall {
    pub(super) fn new(
        own_id: String,
        call: &McpToolCall,
        id: &Value,
        params: &Value,
        digest: Option<&str>,
    ) -> Self {
        let is_stateless = message::is_stateless(params);
        let is_kept = is_stateless && params.to_string().len() <= MAX_KEPT_BYTES;
        OpenCall {
            own_id,
            tool: call.tool_name().as_str().to_owned(),
            words: call.sentence(),
            id: id.clone(),
            params: is_kept.then(|| params.clone()),
            is_stateless,
            digest: digest.map(str::to_owned),
            told: String::new(),
        }
    }

    /// Whether the client knows it under another id than the server.
    fn is_under_other_id(&self, id: &RequestId) -> bool {
        RequestId::of(&self.id).as_ref() != Some(id)
    }
}

impl McpBridge {
    /// The server answers a call.
    pub(super) fn end_call(
        &mut self,
        id: &RequestId,
        mut call: OpenCall,
        (line, reply): (Option<&[u8]>, &Value),
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let result = &reply["result"];
        if result["resultType"] == "input_required" {
            if let Some(digest) = &call.digest {
                self.continue_later(&digest.clone(), &result["requestState"]);
            }
            match self.hold_inputs(call, line, reply, setup, plan) {
                None => return,
                Some(given_back) => call = given_back,
            }
            if let Some(session) = &mut self.session {
                let words = format!(
                    "{} needs something first. Answer in the program. {}",
                    self.server, call.words
                );
                plan.events.push(session.voice.waits(&words));
            }
            Self::give_back(id, &call, reply, plan);
            return;
        }
        self.tokens.retain(|_, it| it != id);
        Self::give_back(id, &call, reply, plan);
        if self.begin_task(&call, result, plan) {
            return;
        }
        self.tell_ended(&call, reply, plan);
    }

    /// Gives the client an answer under the id that it knows.
    fn give_back(id: &RequestId, call: &OpenCall, reply: &Value, plan: &mut McpPlan) {
        if !call.is_under_other_id(id) {
            return;
        }
        let mut reply = reply.clone();
        reply["id"] = call.id.clone();
        plan.forward = McpForward::Instead(message::line(&reply));
    }

    /// Tells how a call ended.
    pub(super) fn tell_ended(&mut self, call: &OpenCall, reply: &Value, plan: &mut McpPlan) {
        let Some(session) = &mut self.session else { return };
        session.tools += 1;
        let result = &reply["result"];
        let is_failed = reply.get("error").is_some() || result["isError"].as_bool() == Some(true);
        let mut fields = json!({ "tool": call.tool, "tool_call_id": call.own_id });
        if is_failed {
            session.failed += 1;
            let why = reply["error"]["message"].as_str().map(str::to_owned);
            let why = shortened_to(&why.unwrap_or_else(|| text_of(result)), MAX_ERROR_CHARS);
            let why = if why.is_empty() { "It does not say why.".to_owned() } else { why };
            fields["status"] = "error".into();
            fields["error_message"] = why.into();
        } else {
            fields["status"] = "success".into();
            fields["summary_normal"] = result_words(result).into();
        }
        plan.events.push(session.voice.event("tool.completed", fields));
    }

    /// The client no longer wants the answer of a call that the server has.
    pub(super) fn hear_cancelled_call(
        &mut self,
        id: &RequestId,
        cancelled: &Value,
        plan: &mut McpPlan,
    ) {
        if self.forget_held_inputs(id, plan) {
            plan.forward = McpForward::Nothing;
            return;
        }
        let is_it = |request: &ClientRequest| match request {
            ClientRequest::Call(call) => RequestId::of(&call.id).as_ref() == Some(id),
            _ => false,
        };
        let Some(at) = self.requests.iter().find(|(_, it)| is_it(it)).map(|(at, _)| at.clone())
        else {
            return;
        };
        let Some(ClientRequest::Call(call)) = self.requests.remove(&at) else { return };
        if at != *id {
            // The server knows it under another id.
            let mut cancelled = cancelled.clone();
            cancelled["params"]["requestId"] = at.to_value();
            plan.forward = McpForward::Instead(message::line(&cancelled));
            self.stop_listening(at);
        }
        self.tell_stopped(&call, "It was stopped by the program.", plan);
    }

    fn tell_stopped(&mut self, call: &OpenCall, why: &str, plan: &mut McpPlan) {
        let Some(session) = &mut self.session else { return };
        session.tools += 1;
        session.failed += 1;
        let fields = json!({ "tool": call.tool, "tool_call_id": call.own_id, "status": "error",
            "error_message": why });
        plan.events.push(session.voice.event("tool.completed", fields));
    }

    /// What the server answers to this does not go on.
    pub(super) fn stop_listening(&mut self, id: RequestId) {
        if self.stopped.len() >= super::MAX_LATE_ANSWERS {
            self.stopped.pop_first();
        }
        self.stopped.insert(id);
    }

    /// The person asks the server to stop. Nothing that it asks is allowed by this.
    pub fn cancel(&mut self, hub_session: &str) -> McpPlan {
        let mut plan = McpPlan::default();
        if !self.is_working_in(hub_session) {
            return plan;
        }
        let held: Vec<_> = self.held.keys().copied().collect();
        for number in held {
            plan.withdrawn.push(number);
            self.deny(number, "The person stopped it. It was not run.", &mut plan);
        }
        let is_call = |request: &ClientRequest| matches!(request, ClientRequest::Call(_));
        let open = self.requests.iter().filter(|(_, it)| is_call(it));
        let open: Vec<RequestId> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            let Some(ClientRequest::Call(call)) = self.requests.remove(&id) else { continue };
            let why = "The person stopped it.";
            plan.to_server.push(message::line(&message::cancelled(&id.to_value(), why)));
            let reply = message::not_run(&call.id, STOPPED, call.is_stateless);
            plan.to_client.push(message::line(&reply));
            self.stop_listening(id);
            self.tell_stopped(&call, "You stopped it.", &mut plan);
        }
        self.leave_all_forms(&mut plan);
        if let Some(session) = &self.session {
            plan.events.push(session.voice.progress("It was asked to stop."));
        }
        plan
    }
}

/// What came of a call.
fn result_words(result: &Value) -> String {
    let text = text_of(result);
    let mut lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    match (lines.next(), lines.count()) {
        (None, _) => "Done.".to_owned(),
        (Some(line), 0) => format!("Done: {}", shortened_to(line, MAX_TOLD_CHARS)),
        (Some(line), more) => {
            let line = shortened_to(line, MAX_TOLD_CHARS);
            format!("Done, {}. The first: {line}", crate::event::count(more as u64 + 1, "line"))
        }
    }
}

/// The text of a result.
fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts = blocks.filter_map(|it| it["text"].as_str()).map(str::trim);
    texts.filter(|it| !it.is_empty()).take(16).collect::<Vec<_>>().join("\n")
}
