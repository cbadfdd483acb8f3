//! Questions of the server to the person.
//!
//! In the revisions with a handshake the server asks the client; the person is asked here at the same time, and the first
//! answer counts. Without a handshake the server answers a call with what it needs, and no message can close a dialog of
//! the client. So the person is asked here first; if nobody answers here, the client gets what the server wrote.

use serde_json::{Map, Value, json};

use super::call::OpenCall;
use super::form::{FormOutcome, FormQuestion, OpenForm};
use super::message;
use super::{
    ClientRequest, MAX_ELICITATIONS, MAX_LATE_ANSWERS, McpBridge, McpForward, McpPlan, McpSetup,
};
use crate::event::shortened_to;
use crate::gate::AskAnswer;
use crate::policy::AskPolicy;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber};
use crate::request_id::RequestId;

/// How long the person has, where the client asks at the same time, and where it waits.
const TIMEOUT_SECONDS: u64 = 600;
const WAITING_TIMEOUT_SECONDS: u64 = 120;
const MAX_TIMEOUT_SECONDS: u64 = 3000;

/// The most forms of one answer.
const MAX_FORMS: usize = 8;

/// A question of the server that nobody has answered.
#[derive(Debug)]
pub(super) struct OpenElicitation {
    origin: ElicitationOrigin,
    /// The forms that are left, with the name of each.
    forms: Vec<(String, OpenForm)>,
    given: Map<String, Value>,
    /// The question at the hub, while there is one.
    ask: Option<ProxyAskNumber>,
}

/// Where an answer goes.
#[derive(Debug)]
enum ElicitationOrigin {
    /// The server asked with this id, and the client was asked as well.
    Request { id: Value },
    /// The server answered a call, which is made again with what the person says.
    Inputs { call: Box<OpenCall>, state: Option<Value>, line: Vec<u8> },
}

impl McpBridge {
    /// The server asks the person something. The client is asked as well.
    pub(super) fn ask_elicitation(
        &mut self,
        request: &Value,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let params = &request["params"];
        let voice = self.session(setup.now_ms, &mut plan.events).voice.clone();
        let Some(id) = RequestId::of(&request["id"]) else { return };
        if self.late.contains(&id) {
            // The client's late answer to the question before could be taken for the answer to this one.
            plan.forward = McpForward::Nothing;
            let cancel = json!({ "action": "cancel" });
            plan.to_server.push(message::line(&message::answer(&request["id"], &cancel)));
            plan.notice = Some(format!(
                "{} asked again under a number that is still open in the program. It was told that nobody answers.",
                self.server
            ));
            return;
        }
        self.forget_elicitation(&id, plan);
        let form = OpenForm::read(&self.server, params)
            .filter(|_| setup.policy != AskPolicy::Tell)
            .filter(|_| self.elicitations.len() < MAX_ELICITATIONS);
        let forms: Vec<(String, OpenForm)> =
            form.into_iter().map(|it| (String::new(), it)).collect();
        if forms.is_empty() {
            plan.events.push(voice.waits(&self.words_of(params)));
        }
        let origin = ElicitationOrigin::Request { id: request["id"].clone() };
        self.open_elicitation(origin, forms, plan);
    }

    /// What the server asks for, where only the client can be answered.
    fn words_of(&self, params: &Value) -> String {
        let said = shortened_to(params["message"].as_str().unwrap_or_default(), 1500);
        match params["url"].as_str() {
            Some(url) => format!(
                "{} asks you to open a page of {} in your browser. Answer in the program. It says: {said} The whole \
                 address is {}",
                self.server,
                host_of(url),
                shortened_to(url, 500)
            ),
            None => {
                format!("{} asks you in the program. Answer there. It says: {said}", self.server)
            }
        }
    }

    fn open_elicitation(
        &mut self,
        origin: ElicitationOrigin,
        forms: Vec<(String, OpenForm)>,
        plan: &mut McpPlan,
    ) {
        if self.elicitations.len() >= MAX_ELICITATIONS {
            return;
        }
        self.last_elicitation += 1;
        let number = self.last_elicitation;
        let question = forms.first().map(|(_, form)| form.opening());
        let mut open = OpenElicitation { origin, forms, given: Map::new(), ask: None };
        if let Some(question) = question {
            open.ask = self.put(&open.origin, &question, plan);
        }
        self.elicitations.insert(number, open);
    }

    fn put(
        &mut self,
        origin: &ElicitationOrigin,
        question: &FormQuestion,
        plan: &mut McpPlan,
    ) -> Option<ProxyAskNumber> {
        let voice = self.voice()?;
        let timeout = match origin {
            ElicitationOrigin::Request { .. } => TIMEOUT_SECONDS,
            ElicitationOrigin::Inputs { .. } => WAITING_TIMEOUT_SECONDS,
        };
        let mut fields = json!({ "question": question.text, "timeout_seconds": timeout,
            "accepted_response_kinds": ["freetext"] });
        if !question.choices.is_empty() {
            let choices = question.choices.iter();
            fields["accepted_response_kinds"] = json!(["multiple_choice"]);
            fields["choices"] =
                choices.map(|(value, label)| json!({ "value": value, "label": label })).collect();
        }
        let extension = json!({ "max_timeout_seconds": MAX_TIMEOUT_SECONDS });
        let number = self.next_ask();
        let event = voice.extended("awaiting.clarification", fields, extension);
        plan.asks.push(ProxyAsk { number, event, is_confirmation: false });
        Some(number)
    }

    /// The person answered a question of a form here, or nobody did.
    pub(super) fn answer_form(
        &mut self,
        number: ProxyAskNumber,
        answer: &AskAnswer,
        plan: &mut McpPlan,
    ) {
        let found = self.elicitations.iter().find(|(_, it)| it.ask == Some(number));
        let Some(at) = found.map(|(at, _)| *at) else { return };
        let Some(mut open) = self.elicitations.remove(&at) else { return };
        open.ask = None;
        let outcome = match (answer, open.forms.first_mut()) {
            (AskAnswer::Words(words), Some((_, form))) => form.answer(words),
            _ => FormOutcome::Leave,
        };
        let question = match outcome {
            FormOutcome::Ask(question) => Some(question),
            FormOutcome::Leave => {
                self.leave(at, open, plan);
                return;
            }
            FormOutcome::Done(result) => {
                let (name, _) = open.forms.remove(0);
                open.given.insert(name, result);
                open.forms.first().map(|(_, form)| form.opening())
            }
        };
        match question {
            Some(question) => {
                open.ask = self.put(&open.origin, &question, plan);
                self.elicitations.insert(at, open);
            }
            None => self.send_given(open, plan),
        }
    }

    /// Nobody answers here. The client still can.
    fn leave(&mut self, at: u64, open: OpenElicitation, plan: &mut McpPlan) {
        if let Some(voice) = self.voice() {
            let words = format!("{} was not answered here. Answer in the program.", self.server);
            plan.events.push(voice.waits(&words));
        }
        match open.origin {
            ElicitationOrigin::Request { .. } => {
                self.elicitations.insert(at, OpenElicitation { forms: Vec::new(), ..open });
            }
            ElicitationOrigin::Inputs { line, .. } => plan.to_client.push(line),
        }
    }

    /// Everything was answered here.
    fn send_given(&mut self, open: OpenElicitation, plan: &mut McpPlan) {
        match open.origin {
            ElicitationOrigin::Request { id } => {
                let Some(result) = open.given.values().next() else { return };
                plan.to_server.push(message::line(&message::answer(&id, result)));
                let why = "It was answered elsewhere.";
                plan.to_client.push(message::line(&message::cancelled(&id, why)));
                if let Some(id) = RequestId::of(&id) {
                    if self.late.len() >= MAX_LATE_ANSWERS {
                        self.late.pop_first();
                    }
                    self.late.insert(id);
                }
            }
            ElicitationOrigin::Inputs { call, state, .. } => {
                self.call_again(*call, state, open.given, plan);
            }
        }
        if let Some(voice) = self.voice() {
            let fields =
                json!({ "to_state": "calling_tool", "summary_normal": "Your answer was sent." });
            plan.events.push(voice.event("state.changed", fields));
        }
    }

    /// Makes a call again with what the person said. The client gets its answer for the first one.
    fn call_again(
        &mut self,
        call: OpenCall,
        state: Option<Value>,
        given: Map<String, Value>,
        plan: &mut McpPlan,
    ) {
        let Some(mut params) = call.params.clone() else { return };
        self.own_requests += 1;
        let id = json!(format!("aaep-{}-{}", self.run, self.own_requests));
        params["inputResponses"] = given.into();
        if let Some(fields) = params.as_object_mut() {
            fields.remove("requestState");
        }
        if let Some(state) = state {
            params["requestState"] = state;
        }
        let again = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        plan.to_server.push(message::line(&again));
        let Some(id) = RequestId::of(&id) else { return };
        if let Some(token) = RequestId::of(&params["_meta"]["progressToken"]) {
            self.tokens.insert(token, id.clone());
        }
        self.requests.insert(id, ClientRequest::Call(Box::new(call)));
    }

    /// The server answered a call with what it needs. Gives the call back if the person cannot be asked for all of it here.
    pub(super) fn hold_inputs(
        &mut self,
        call: OpenCall,
        line: Option<&[u8]>,
        reply: &Value,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) -> Option<OpenCall> {
        let result = &reply["result"];
        let has_room = setup.policy != AskPolicy::Tell
            && self.elicitations.len() < MAX_ELICITATIONS
            && call.params.is_some()
            && self.requests.len() < super::MAX_REQUESTS;
        let wanted = result["inputRequests"]
            .as_object()
            .filter(|it| has_room && line.is_some() && (1..=MAX_FORMS).contains(&it.len()));
        let Some(wanted) = wanted else { return Some(call) };
        let read = |(name, request): (&String, &Value)| {
            let is_form = request["method"] == "elicitation/create";
            let form = OpenForm::read(&self.server, &request["params"]).filter(|_| is_form)?;
            Some((name.clone(), form))
        };
        let Some(forms) = wanted.iter().map(read).collect::<Option<Vec<_>>>() else {
            return Some(call);
        };
        // The client knows the call under its own id, also after it was made again.
        let mut given_back = reply.clone();
        given_back["id"] = call.id.clone();
        let line = match line {
            Some(line) if given_back["id"] == reply["id"] => line.to_vec(),
            _ => message::line(&given_back),
        };
        let state = result.get("requestState").cloned();
        plan.forward = McpForward::Nothing;
        let origin = ElicitationOrigin::Inputs { call: Box::new(call), state, line };
        self.open_elicitation(origin, forms, plan);
        None
    }

    /// The client answers a request of the server.
    pub(super) fn hear_answer_of_client(&mut self, id: &RequestId, plan: &mut McpPlan) {
        if self.late.remove(id) {
            plan.forward = McpForward::Nothing;
            return;
        }
        let Some(open) = self.take_request(id) else { return };
        plan.withdrawn.extend(open.ask);
        if let Some(voice) = self.voice() {
            let fields = json!({
                "to_state": "calling_tool", "summary_normal": "It was answered in the program.",
            });
            plan.events.push(voice.event("state.changed", fields));
        }
    }

    /// The server no longer wants an answer.
    pub(super) fn forget_elicitation(&mut self, id: &RequestId, plan: &mut McpPlan) {
        if let Some(open) = self.take_request(id) {
            plan.withdrawn.extend(open.ask);
        }
    }

    fn take_request(&mut self, id: &RequestId) -> Option<OpenElicitation> {
        let is_it = |it: &OpenElicitation| match &it.origin {
            ElicitationOrigin::Request { id: own } => RequestId::of(own).as_ref() == Some(id),
            ElicitationOrigin::Inputs { .. } => false,
        };
        let at = self.elicitations.iter().find(|(_, it)| is_it(it)).map(|(at, _)| *at)?;
        self.elicitations.remove(&at)
    }

    /// The client gave up a call that waits here for what the server needs. Returns whether there was one.
    pub(super) fn forget_held_inputs(&mut self, id: &RequestId, plan: &mut McpPlan) -> bool {
        let is_it = |it: &OpenElicitation| match &it.origin {
            ElicitationOrigin::Inputs { call, .. } => RequestId::of(&call.id).as_ref() == Some(id),
            ElicitationOrigin::Request { .. } => false,
        };
        let found = self.elicitations.iter().find(|(_, it)| is_it(it)).map(|(at, _)| *at);
        let Some(open) = found.and_then(|it| self.elicitations.remove(&it)) else { return false };
        plan.withdrawn.extend(open.ask);
        true
    }

    /// Nobody can be asked here any more. What the client can still answer, it gets.
    pub(super) fn leave_all_forms(&mut self, plan: &mut McpPlan) {
        for (_, open) in std::mem::take(&mut self.elicitations) {
            plan.withdrawn.extend(open.ask);
            if let ElicitationOrigin::Inputs { line, .. } = open.origin {
                plan.to_client.push(line);
            }
        }
    }
}

/// The host of an address, as a browser would take it.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    shortened_to(if host.is_empty() { url } else { host }, 200)
}
