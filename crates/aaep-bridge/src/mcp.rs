//! The Model Context Protocol: what a client and a server of tools say to each other, as events, questions and answers.
//!
//! Understood are the revisions with a handshake, up to 2025-11-25, and the one without, 2026-07-28. A tool call that the
//! person wants to be asked about waits here, and its bytes go on unchanged only after a yes. Everything else goes on
//! unchanged and at once.
//!
//! Deliberately absent: trust in what a server says about its tools, and an answer that nobody gave.

mod call;
mod elicitation;
mod envelope;
mod field;
mod form;
mod gate;
pub mod http;
mod message;
mod progress;
mod session;
mod tool;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use crate::event::shortened_to;
use crate::gate::AskAnswer;
use crate::policy::AskPolicy;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber, agent_id};
use crate::request_id::RequestId;
use crate::risk::RiskTable;
use call::OpenCall;
use elicitation::OpenElicitation;
pub use envelope::EnvelopeScanner;
use gate::{HeldAsk, HeldLine};
use session::McpSession;
use tool::ToolHints;

/// The most requests, calls that wait for the person, forms, and late answers that are remembered.
const MAX_REQUESTS: usize = 1024;
const MAX_HELD: usize = 64;
const MAX_ELICITATIONS: usize = 64;
const MAX_LATE_ANSWERS: usize = 256;

/// The most tools whose hints are remembered.
const MAX_TOOLS: usize = 4096;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpSide {
    /// The program whose model uses the tools.
    Client,
    /// The program that has the tools.
    Server,
}

/// What the person chose, and the time.
#[derive(Debug, Clone, Copy)]
pub struct McpSetup<'s> {
    /// How risky actions are.
    pub table: &'s RiskTable,
    /// When the person wants to be asked here.
    pub policy: AskPolicy,
    /// The time.
    pub now_ms: i64,
}

/// What becomes of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum McpForward {
    /// It goes on as it is.
    #[default]
    Unchanged,
    /// It does not go on now. Either it waits here, or it was answered.
    Nothing,
    /// This line goes on in its place.
    Instead(Vec<u8>),
}

/// What a message, an answer or the end of a program leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpPlan {
    /// What becomes of the message.
    pub forward: McpForward,
    /// Questions that can no longer be answered here. They are withdrawn before anything is told.
    pub withdrawn: Vec<ProxyAskNumber>,
    /// Events to publish, in order.
    pub events: Vec<Value>,
    /// What the person is asked after that.
    pub asks: Vec<ProxyAsk>,
    /// Lines for the server, in order.
    pub to_server: Vec<Vec<u8>>,
    /// Lines for the client, in order.
    pub to_client: Vec<Vec<u8>>,
    /// What the person at the terminal should know.
    pub notice: Option<String>,
}

/// A request of the client whose answer says something.
#[derive(Debug, Clone)]
enum ClientRequest {
    Initialize,
    ListTools,
    Task { task: String },
    Call(Box<OpenCall>),
}

/// One server and its client.
#[derive(Debug)]
pub struct McpBridge {
    agent_id: String,
    server: String,
    /// The name that the client gives itself.
    client: String,
    /// Tells this run from others of the same server.
    run: String,
    session: Option<McpSession>,
    sessions: u64,
    hints: BTreeMap<String, ToolHints>,
    requests: BTreeMap<RequestId, ClientRequest>,
    /// The requests whose tokens progress is told under.
    tokens: BTreeMap<RequestId, RequestId>,
    /// Calls that go on as tasks.
    tasks: BTreeMap<String, OpenCall>,
    lines: BTreeMap<u64, HeldLine>,
    held: BTreeMap<ProxyAskNumber, HeldAsk>,
    last_line: u64,
    /// Calls that were allowed, and that the client makes again with what the server asked for.
    continued: VecDeque<(String, Value)>,
    elicitations: BTreeMap<u64, OpenElicitation>,
    last_elicitation: u64,
    /// Requests of ours to the server, and of the server that were answered here. Late answers do not go on.
    late: BTreeSet<RequestId>,
    /// Requests of the client that were answered here. Late answers of the server do not go on.
    stopped: BTreeSet<RequestId>,
    own_requests: u64,
    last_ask: ProxyAskNumber,
}

impl McpBridge {
    /// A bridge for a server of this name.
    pub fn new(name: &str, run: &str) -> Self {
        let server = shortened_to(name, 80);
        McpBridge {
            agent_id: format!("mcp-{}", agent_id(name)),
            server: if server.is_empty() { "a server".to_owned() } else { server },
            client: String::new(),
            run: run.to_owned(),
            session: None,
            sessions: 0,
            hints: BTreeMap::new(),
            requests: BTreeMap::new(),
            tokens: BTreeMap::new(),
            tasks: BTreeMap::new(),
            lines: BTreeMap::new(),
            held: BTreeMap::new(),
            last_line: 0,
            continued: VecDeque::new(),
            elicitations: BTreeMap::new(),
            last_elicitation: 0,
            late: BTreeSet::new(),
            stopped: BTreeSet::new(),
            own_requests: 0,
            last_ask: ProxyAskNumber::default(),
        }
    }

    /// The name under which the hub knows the server.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// Whether this session of the hub is ours and has not ended.
    pub fn is_working_in(&self, session: &str) -> bool {
        self.session.as_ref().is_some_and(|it| it.voice.session_id == session)
    }

    /// Hears a line.
    pub fn hear(&mut self, from: McpSide, line: &[u8], setup: &McpSetup<'_>) -> McpPlan {
        let mut plan = McpPlan::default();
        match from {
            McpSide::Client => self.hear_client_line(line, setup, &mut plan),
            McpSide::Server => {
                let Ok(message) = serde_json::from_slice::<Value>(line.trim_ascii()) else {
                    return plan;
                };
                self.hear_server_line(line, &message, setup, &mut plan);
            }
        }
        plan
    }

    /// Hears that a line of the client was too long to be read, and what could be seen of it.
    pub fn hear_too_long(&mut self, id: &Value, method: Option<&str>) -> McpPlan {
        let mut plan = McpPlan::default();
        let words =
            "The message is too long for the person to be asked about it. It was not passed on.";
        let reply = match (method, id.is_null()) {
            (Some("tools/call"), false) => message::not_run(id, words, false),
            (Some(_), false) => message::refused(id, -32_600, words),
            _ => Value::Null,
        };
        if !reply.is_null() {
            plan.to_client.push(message::line(&reply));
        } else if method.is_none() && !id.is_null() {
            plan.to_server.push(message::line(&message::refused(id, -32_603, words)));
        }
        plan.notice =
            Some(format!("A message to {} is too long. It was not passed on.", self.server));
        plan
    }

    /// Hears that a line of the server passed that was too long to be read.
    pub fn hear_long_answer(&mut self, id: &Value) -> McpPlan {
        let mut plan = McpPlan::default();
        let Some(id) = RequestId::of(id) else { return plan };
        if let Some(ClientRequest::Call(call)) = self.requests.remove(&id) {
            let told = serde_json::json!({ "result": { "content": [
                { "text": "Its answer is too long to be told." }] } });
            self.tell_ended(&call, &told, &mut plan);
        }
        plan
    }

    fn hear_client_line(&mut self, line: &[u8], setup: &McpSetup<'_>, plan: &mut McpPlan) {
        let Some(message) = message::read_strictly(line) else {
            if setup.policy != AskPolicy::Tell && message::could_be_call(line) {
                plan.forward = McpForward::Nothing;
                let words =
                    "The message can mean several things, or nothing. It was not passed on.";
                plan.to_client.push(message::line(&message::refused(&Value::Null, -32_700, words)));
                plan.notice = Some(format!(
                    "A message to {} can mean several things, or nothing. It was not passed on.",
                    self.server
                ));
            }
            return;
        };
        let mut gated = Vec::new();
        if let Some(batch) = message.as_array() {
            for (at, part) in batch.iter().enumerate() {
                if self.hear_client(part, plan) {
                    gated.push(at);
                }
            }
        } else if self.hear_client(&message, plan) {
            gated.push(0);
        }
        if !gated.is_empty() {
            self.gate(line, &message, &gated, setup, plan);
        }
    }

    /// Hears one message of the client. Returns whether it is a tool call, which is told where it is decided about.
    fn hear_client(&mut self, message: &Value, plan: &mut McpPlan) -> bool {
        let params = &message["params"];
        let id = RequestId::of(&message["id"]);
        if let Some(id) = RequestId::of_response(message) {
            self.hear_answer_of_client(&id, plan);
            return false;
        }
        if self.client.is_empty() {
            let info = message::client_info(params);
            let name = info["title"].as_str().or(info["name"].as_str()).unwrap_or_default();
            self.client = shortened_to(name, 80);
        }
        let text = |field: &str| params[field].as_str().unwrap_or_default().to_owned();
        let request = match message["method"].as_str().unwrap_or_default() {
            "tools/call" => return true,
            "initialize" => ClientRequest::Initialize,
            "tools/list" => ClientRequest::ListTools,
            "tasks/get" | "tasks/result" | "tasks/cancel" => {
                ClientRequest::Task { task: text("taskId") }
            }
            "notifications/cancelled" => {
                self.hear_cancelled(message, plan);
                return false;
            }
            _ => return false,
        };
        if let Some(id) = id {
            self.remember(id, request);
        }
        false
    }

    fn remember(&mut self, id: RequestId, request: ClientRequest) {
        self.stopped.remove(&id);
        if self.requests.len() < MAX_REQUESTS || self.requests.contains_key(&id) {
            self.requests.insert(id, request);
        }
    }

    fn hear_server_line(
        &mut self,
        line: &[u8],
        message: &Value,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let Some(batch) = message.as_array() else {
            self.hear_server(Some(line), message, setup, plan);
            return;
        };
        let mut kept = Vec::new();
        let mut is_changed = false;
        for part in batch {
            self.hear_server(None, part, setup, plan);
            match std::mem::take(&mut plan.forward) {
                McpForward::Unchanged => kept.push(part.clone()),
                McpForward::Nothing => is_changed = true,
                McpForward::Instead(line) => {
                    is_changed = true;
                    kept.extend(serde_json::from_slice::<Value>(&line).ok());
                }
            }
        }
        if is_changed {
            plan.forward = match kept.as_slice() {
                [] => McpForward::Nothing,
                _ => McpForward::Instead(message::line(&kept.into())),
            };
        }
    }

    /// Hears one message of the server. `line` is all that it wrote, if that is one message.
    fn hear_server(
        &mut self,
        line: Option<&[u8]>,
        message: &Value,
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let params = &message["params"];
        if let Some(id) = RequestId::of_response(message) {
            if self.stopped.remove(&id) {
                plan.forward = McpForward::Nothing;
                return;
            }
            if let Some(request) = self.requests.remove(&id) {
                self.hear_answer_of_server(&id, request, (line, message), setup, plan);
            }
            return;
        }
        match message["method"].as_str().unwrap_or_default() {
            "notifications/progress" => self.tell_progress(params, plan),
            "notifications/tasks/status" | "notifications/tasks" => {
                self.tell_task(params, plan);
            }
            "elicitation/create" => self.ask_elicitation(message, setup, plan),
            "notifications/cancelled" => {
                if let Some(id) = RequestId::of(&params["requestId"]) {
                    self.forget_elicitation(&id, plan);
                }
            }
            _ => {}
        }
    }

    fn hear_answer_of_server(
        &mut self,
        id: &RequestId,
        request: ClientRequest,
        (line, message): (Option<&[u8]>, &Value),
        setup: &McpSetup<'_>,
        plan: &mut McpPlan,
    ) {
        let result = &message["result"];
        match request {
            ClientRequest::Initialize => {}
            ClientRequest::ListTools => self.read_tools(&result["tools"]),
            ClientRequest::Task { task } => self.tell_task_answer(&task, message, plan),
            ClientRequest::Call(call) => self.end_call(id, *call, (line, message), setup, plan),
        }
    }

    fn read_tools(&mut self, tools: &Value) {
        for tool in tools.as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            if self.hints.len() < MAX_TOOLS || self.hints.contains_key(name) {
                self.hints.entry(name.to_owned()).or_default().add(&tool["annotations"]);
            }
        }
    }

    /// The person answered a question, or nobody did. Only the first answer counts.
    pub fn answer(
        &mut self,
        number: ProxyAskNumber,
        answer: &AskAnswer,
        setup: &McpSetup<'_>,
    ) -> McpPlan {
        let mut plan = McpPlan::default();
        if self.held.contains_key(&number) {
            self.decide(number, answer, setup, &mut plan);
        } else {
            self.answer_form(number, answer, &mut plan);
        }
        plan
    }

    /// A question could not be put, because the hub cannot be reached or does not take it.
    pub fn not_asked(&mut self, number: ProxyAskNumber) -> McpPlan {
        let mut plan = McpPlan::default();
        if self.held.contains_key(&number) {
            self.deny(number, crate::hook::permission::NO_HUB, &mut plan);
        } else {
            self.answer_form(number, &AskAnswer::Nothing, &mut plan);
        }
        plan
    }

    /// The client has nothing more to say. Nobody would get the answers to what waits here.
    pub fn client_left(&mut self) -> McpPlan {
        let mut plan = McpPlan::default();
        let words = "The client closed the connection before the person said yes. It was not run.";
        let held: Vec<ProxyAskNumber> = self.held.keys().copied().collect();
        for number in held {
            plan.withdrawn.push(number);
            self.deny(number, words, &mut plan);
        }
        self.leave_all_forms(&mut plan);
        plan
    }

    /// The server or its client is gone. What is going on ends with these words.
    pub fn end(&mut self, words: &str, setup: &McpSetup<'_>) -> McpPlan {
        let mut plan = McpPlan::default();
        let mut requests = self.requests.values();
        let is_in_the_middle = requests.any(|it| matches!(it, ClientRequest::Call(_)))
            || !(self.tasks.is_empty() && self.held.is_empty() && self.elicitations.is_empty());
        plan.withdrawn.extend(self.held.keys().copied());
        self.held.clear();
        self.lines.clear();
        self.leave_all_forms(&mut plan);
        self.requests.clear();
        self.tasks.clear();
        if let Some(session) = self.session.take() {
            plan.events.push(session.ended(is_in_the_middle.then_some(words), setup.now_ms));
        }
        plan
    }

    fn next_ask(&mut self) -> ProxyAskNumber {
        self.last_ask.count_on()
    }
}
