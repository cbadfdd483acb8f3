//! The Agent Client Protocol: what an agent and its editor say to each other, as events, questions and answers.
//!
//! Facts about the messages were recorded from nine agents that speak version 1. Every message goes on unchanged,
//! except the editor's late answer to a question that the person answered here. A turn, from a prompt to its answer,
//! is one session.
//!
//! [`AcpClient`] is an editor of our own in a few lines of text. With it, the bridge puts permission requests as menus
//! ([`AcpMenu`]) and answers them itself, because nobody else does.
//!
//! Deliberately absent: an answer to anything but a permission request, and a choice that nobody made.

mod answer;
mod client;
mod diff;
mod form;
mod menu;
mod permission;
mod session;
mod tool_call;
mod turn;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::event::{AgentVoice, shortened_to};
use crate::policy::AskPolicy;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber, agent_id};
use crate::request_id::RequestId;
use crate::risk::RiskTable;
use crate::tool_words::project_name;
pub use client::{
    AcpClient, AcpClientNews, AcpClientStep, AcpFormNumber, AcpOpening, AcpSlashCommand,
    ListedMode, ListedSession, LoginWay,
};
pub use form::{AcpForm, AcpFormAnswer, AcpFormField, FormFieldKind};
use menu::AcpPlace;
pub use menu::{AcpMenu, AcpMenuEnding};
use permission::OpenPermission;
use session::{AcpSession, AcpTurn};

/// The most sessions, requests, open questions and late answers that are remembered.
const MAX_SESSIONS: usize = 128;
const MAX_REQUESTS: usize = 1024;
const MAX_PERMISSIONS: usize = 64;
const MAX_LATE_ANSWERS: usize = 256;

/// The longest id of a session that is used.
const MAX_SESSION_ID_BYTES: usize = 256;

/// The version of the protocol that is understood.
const PROTOCOL_VERSION: u64 = 1;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpSide {
    /// The program in front of the person.
    Editor,
    /// The agent.
    Agent,
}

/// What the person chose, and the time.
#[derive(Debug, Clone, Copy)]
pub struct AcpSetup<'s> {
    /// How risky actions are.
    pub table: &'s RiskTable,
    /// When the person wants to be asked here.
    pub policy: AskPolicy,
    /// The time.
    pub now_ms: i64,
}

/// What becomes of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum AcpForward {
    /// It goes on as it is.
    #[default]
    Unchanged,
    /// It does not go on, because it was answered before.
    Nothing,
    /// This goes on in its place: the same without what was answered before.
    Instead(Value),
}

/// What a message, an answer or the end of a program leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcpPlan {
    /// What becomes of the message.
    pub forward: AcpForward,
    /// Questions that can no longer be answered here. They are withdrawn before anything is told.
    pub withdrawn: Vec<ProxyAskNumber>,
    /// Events to publish, in order.
    pub events: Vec<Value>,
    /// What the person is asked after that.
    pub ask: Option<ProxyAsk>,
    /// Messages of ours for the agent.
    pub to_agent: Vec<Value>,
    /// Messages of ours for the editor.
    pub to_editor: Vec<Value>,
    /// In a chat: menus that are over, and how. They are closed before another one opens.
    pub closed_menus: Vec<(ProxyAskNumber, AcpMenuEnding)>,
    /// In a chat: what the person chooses from there.
    pub menu: Option<AcpMenu>,
    /// In a chat: a menu that nobody else will answer.
    pub only_here: Option<ProxyAskNumber>,
    /// What the person at the terminal should know.
    pub notice: Option<String>,
}

/// A request of the editor whose answer says something.
#[derive(Debug, Clone)]
enum EditorRequest {
    Initialize,
    NewSession { folder: String },
    LoadSession { session: String },
    Prompt { session: String },
    SetMode { session: String, mode: String },
    SetOption { session: String },
}

/// One agent and its editor.
#[derive(Debug)]
pub struct AcpBridge {
    agent_id: String,
    /// Added to the name, if the hub has agents of other machines too.
    machine: Option<String>,
    agent_name: String,
    /// Whether the person gave the name.
    is_named: bool,
    /// Where the agent asks the person.
    place: AcpPlace,
    /// Tells this run from others in which the agent goes on with the same session.
    run: String,
    /// Whether the version of the protocol is understood.
    is_understood: bool,
    sessions: Vec<AcpSession>,
    requests: BTreeMap<RequestId, EditorRequest>,
    permissions: BTreeMap<RequestId, OpenPermission>,
    /// Questions of the agent that only the editor can answer, with their sessions.
    elicitations: BTreeMap<RequestId, String>,
    /// Requests of the agent that were answered here. What the editor answers late does not go on.
    late: BTreeSet<RequestId>,
    last_ask: ProxyAskNumber,
}

impl AcpBridge {
    /// A bridge for an agent of this name, until the agent says its own. If the person gave the name, it stays.
    pub fn new(name: &str, is_named: bool, run: &str) -> Self {
        AcpBridge {
            agent_id: agent_id(name),
            machine: None,
            agent_name: shortened_to(name, 80),
            is_named,
            place: AcpPlace::Editor,
            run: run.to_owned(),
            is_understood: true,
            sessions: Vec::new(),
            requests: BTreeMap::new(),
            permissions: BTreeMap::new(),
            elicitations: BTreeMap::new(),
            late: BTreeSet::new(),
            last_ask: ProxyAskNumber::default(),
        }
    }

    /// The same bridge for an agent that asks in a window of its own.
    pub(crate) fn in_own_window(self) -> Self {
        AcpBridge { place: AcpPlace::OwnWindow, ..self }
    }

    /// The same bridge for a chat, in which it puts and answers permission requests itself.
    pub fn in_chat(self) -> Self {
        AcpBridge { place: AcpPlace::Chat, ..self }
    }

    /// Where the agent asks the person, in words.
    pub fn window(&self) -> &'static str {
        self.place.name()
    }

    /// Says on which machine the agent is, for a hub that has agents of several.
    #[must_use]
    pub fn on_machine(mut self, machine: Option<String>) -> Self {
        self.agent_id = on_machine(self.agent_id, machine.as_deref());
        self.machine = machine;
        self
    }

    /// The name under which the hub knows the agent.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// Whether this session of the hub is one of ours that has not ended.
    pub fn is_working_in(&self, session: &str) -> bool {
        let mut turns = self.sessions.iter().filter_map(|it| it.turn.as_ref());
        turns.any(|it| it.voice.session_id == session)
    }

    /// Hears a message.
    pub fn hear(&mut self, from: AcpSide, message: &Value, setup: &AcpSetup<'_>) -> AcpPlan {
        let mut plan = AcpPlan::default();
        if let Some(batch) = message.as_array() {
            let mut kept = Vec::new();
            for part in batch {
                let before = std::mem::take(&mut plan.forward);
                self.hear_one(from, part, setup, &mut plan);
                if plan.forward == AcpForward::Unchanged {
                    kept.push(part.clone());
                }
                plan.forward = before;
            }
            if kept.len() < batch.len() {
                plan.forward = AcpForward::Instead(kept.into());
            }
        } else if message.is_object() {
            self.hear_one(from, message, setup, &mut plan);
        }
        plan
    }

    fn hear_one(
        &mut self,
        from: AcpSide,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        match from {
            AcpSide::Editor => self.hear_editor(message, setup, plan),
            AcpSide::Agent => self.hear_agent(message, setup, plan),
        }
    }

    fn hear_editor(&mut self, message: &Value, setup: &AcpSetup<'_>, plan: &mut AcpPlan) {
        if let Some(id) = RequestId::of_response(message) {
            self.hear_answer_of_editor(&id, message, plan);
            return;
        }
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let text = |field: &str| shortened_to(params[field].as_str().unwrap_or_default(), 4096);
        let id = RequestId::of(&message["id"]);
        let request = match message["method"].as_str().unwrap_or_default() {
            "initialize" => EditorRequest::Initialize,
            "session/new" => EditorRequest::NewSession { folder: text("cwd") },
            "session/load" | "session/resume" => {
                if let Some(known) = self.session(&session) {
                    known.folder = text("cwd");
                    known.is_loading = true;
                }
                EditorRequest::LoadSession { session }
            }
            "session/prompt" => {
                if let Some(id) = &id {
                    self.begin_turn(&session, id, &params["prompt"], setup, plan);
                }
                EditorRequest::Prompt { session }
            }
            "session/set_mode" => EditorRequest::SetMode { session, mode: text("modeId") },
            "session/set_config_option" => EditorRequest::SetOption { session },
            "session/cancel" => {
                match self.place {
                    AcpPlace::Chat => self.cancel_turn(&session, plan),
                    AcpPlace::Editor | AcpPlace::OwnWindow => self.stop_asking(&session, plan),
                }
                return;
            }
            _ => return,
        };
        if let Some(id) = id.filter(|_| self.requests.len() < MAX_REQUESTS) {
            self.requests.insert(id, request);
        }
    }

    fn hear_agent(&mut self, message: &Value, setup: &AcpSetup<'_>, plan: &mut AcpPlan) {
        if let Some(id) = RequestId::of_response(message) {
            if let Some(request) = self.requests.remove(&id) {
                self.hear_answer_of_agent(&id, request, message, setup, plan);
            }
            return;
        }
        if !self.is_understood {
            return;
        }
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/update" => self.hear_update(params, setup, plan),
            "session/request_permission" => self.ask_permission(message, setup, plan),
            "elicitation/create" => self.tell_elicitation(message, setup, plan),
            "$/cancel_request" => {
                if let Some(id) = RequestId::of(&params["requestId"]) {
                    self.forget_permission(&id, plan);
                }
            }
            _ => {}
        }
    }

    fn hear_answer_of_agent(
        &mut self,
        id: &RequestId,
        request: EditorRequest,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let result = &message["result"];
        match request {
            EditorRequest::Initialize => self.meet(result, plan),
            EditorRequest::NewSession { folder } => {
                let name = result["sessionId"].as_str().unwrap_or_default().to_owned();
                if let Some(session) = self.session(&name) {
                    session.folder = folder;
                    session.read_modes(result);
                }
            }
            EditorRequest::LoadSession { session } => {
                if let Some(session) = self.session(&session) {
                    session.is_loading = false;
                    session.read_modes(result);
                }
            }
            EditorRequest::SetMode { session, mode } => {
                let is_done = message.get("error").is_none();
                if let Some(session) = self.session(&session).filter(|_| is_done) {
                    session.set_mode(&mode);
                }
            }
            EditorRequest::SetOption { session } => {
                if let Some(session) = self.session(&session) {
                    session.read_options(&result["configOptions"]);
                }
            }
            EditorRequest::Prompt { session } => {
                self.end_prompt(&session, id, message, setup, plan);
            }
        }
    }

    /// Takes over what the agent says of itself.
    fn meet(&mut self, result: &Value, plan: &mut AcpPlan) {
        let version = result["protocolVersion"].as_u64();
        self.is_understood = version.is_none_or(|it| it == PROTOCOL_VERSION);
        if !self.is_understood {
            plan.notice = Some(format!(
                "{} speaks another version of the Agent Client Protocol than {PROTOCOL_VERSION}. It works as without \
                 AAEP, but is not heard here.",
                self.agent_name
            ));
        }
        let info = &result["agentInfo"];
        let text = |field: &str| info[field].as_str().filter(|it| !it.trim().is_empty());
        if let Some(name) = text("name").filter(|_| !self.is_named) {
            let is_at_work = self.sessions.iter().any(|it| it.turn.is_some());
            if !is_at_work {
                self.agent_id = on_machine(agent_id(name), self.machine.as_deref());
                self.agent_name = shortened_to(text("title").unwrap_or(name), 80);
            }
        }
    }

    /// The session of this id, which is made if it is new. `None` if there are too many.
    fn session(&mut self, id: &str) -> Option<&mut AcpSession> {
        if let Some(at) = self.sessions.iter().position(|it| it.id == id) {
            return self.sessions.get_mut(at);
        }
        if id.is_empty() || id.len() > MAX_SESSION_ID_BYTES {
            return None;
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let idle = self.sessions.iter().position(|it| it.turn.is_none())?;
            self.sessions.remove(idle);
        }
        self.sessions.push(AcpSession::new(id));
        self.sessions.last_mut()
    }

    fn turn(&mut self, session: &str) -> Option<&mut AcpTurn> {
        self.sessions.iter_mut().find(|it| it.id == session)?.turn.as_mut()
    }

    fn folder(&self, session: &str) -> String {
        let known = self.sessions.iter().find(|it| it.id == session);
        known.map(|it| it.folder.clone()).unwrap_or_default()
    }

    /// Begins a turn, and returns the voice in which it is told.
    fn open_turn(&mut self, session: &str, now_ms: i64) -> Option<AgentVoice> {
        let (agent_id, agent_name) = (self.agent_id.clone(), self.agent_name.clone());
        let run = self.run.clone();
        let known = self.session(session)?;
        known.turns += 1;
        let name: String = known.id.chars().take(100).collect();
        let voice = AgentVoice {
            agent_id,
            agent_name,
            project: project_name(&known.folder),
            session_id: format!("{name}:{run}:{}", known.turns),
        };
        known.turn = Some(AcpTurn::new(voice.clone(), now_ms));
        Some(voice)
    }

    /// Remembers in which folder a session works.
    pub(crate) fn note_folder(&mut self, session: &str, folder: &str) {
        if let Some(known) = self.session(session) {
            known.folder = shortened_to(folder, 4096);
        }
    }

    /// Counts a message that is not known.
    pub(crate) fn note_unknown(&mut self, session: &str) {
        if let Some(turn) = self.turn(session) {
            turn.unknown = turn.unknown.saturating_add(1);
        }
    }

    /// Tells something of a session that is at work.
    pub(crate) fn tell(&mut self, session: &str, words: &str, plan: &mut AcpPlan) {
        if let Some(turn) = self.turn(session) {
            plan.events.extend(turn.end_text());
            plan.events.push(turn.voice.progress(words));
        }
    }

    /// A request was answered elsewhere, and how is not known yet. The person is no longer asked.
    pub(crate) fn close_ask(&mut self, id: &Value, plan: &mut AcpPlan) {
        let found = RequestId::of(id).and_then(|id| self.permissions.get_mut(&id));
        plan.withdrawn.extend(found.and_then(|it| it.ask.take()));
    }

    fn next_ask(&mut self) -> ProxyAskNumber {
        self.last_ask.count_on()
    }
}

fn on_machine(agent_id: String, machine: Option<&str>) -> String {
    match machine {
        Some(machine) => format!("{agent_id}@{machine}"),
        None => agent_id,
    }
}
