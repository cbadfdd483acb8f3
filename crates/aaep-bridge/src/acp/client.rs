//! The editor's side of the protocol, for a chat in plain lines: opens a session, prompts, changes the mode, continues
//! earlier sessions, and puts forms.
//!
//! Permission requests are not here: the bridge answers them (`menu`). This client declares no files and no terminals,
//! because nothing here would gate what an agent does with them; an agent that asks for them all the same is told
//! that there is no such method.

mod opened;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::form::AcpForm;
use super::{MAX_SESSION_ID_BYTES, PROTOCOL_VERSION};
use crate::event::shortened_to;
use crate::request_id::RequestId;
use opened::{OpenedSession, listed_sessions};

/// The most forms that are open at once.
const MAX_FORMS: usize = 8;
/// The most ways to sign in that are remembered.
const MAX_WAYS: usize = 20;

/// The error of the protocol for a person who has not signed in.
const SIGN_IN_NEEDED: i64 = -32_000;
const NO_SUCH_METHOD: i64 = -32_601;

/// Which session to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcpOpening {
    /// A new one.
    New,
    /// The last one in this folder, or a new one if there is none.
    Latest,
    /// The one of this id.
    Session(String),
}

/// A mode of the agent. Foreign text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMode {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What the agent says about it.
    pub description: String,
}

/// An earlier session. Foreign text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// Its id.
    pub id: String,
    /// What it was about.
    pub title: String,
    /// When it was used last, as the agent writes it.
    pub updated_at: String,
}

/// A command of the agent, without its slash. Foreign text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpSlashCommand {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// A way to sign in. Foreign text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginWay {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What the agent says about it.
    pub description: String,
}

/// The number of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AcpFormNumber(u64);

/// Something that the person should know.
#[derive(Debug, Clone, PartialEq)]
pub enum AcpClientNews {
    /// The agent speaks another version of the protocol. Nothing can be done with it.
    OtherVersion,
    /// A session is open.
    Opened {
        /// The name of the agent. Foreign text.
        agent: String,
        /// If an earlier session is continued: the last prompt and the last answer, as far as the agent repeats them.
        last: Option<(String, String)>,
    },
    /// No earlier session can be continued, so a new one is opened.
    NothingToContinue,
    /// A session could not be opened. The reason is foreign text.
    NotOpened(String),
    /// The person has to sign in first.
    SignInNeeded(Vec<LoginWay>),
    /// Signing in failed. The reason is foreign text.
    NotSignedIn(String),
    /// The earlier sessions in this folder.
    Sessions(Vec<ListedSession>),
    /// The list of sessions could not be had. The reason is foreign text.
    NoSessions(String),
    /// The mode was changed, here or by the agent.
    Mode(ListedMode),
    /// The mode could not be changed. The reason is foreign text.
    ModeRefused(String),
    /// The turn is over.
    TurnOver,
    /// The agent puts a form.
    Form(AcpFormNumber, AcpForm),
    /// The agent no longer asks for this form.
    FormWithdrawn(AcpFormNumber),
    /// The agent put a form that cannot be put to the person whole; it was declined. Its message is foreign text.
    FormDeclined(String),
}

/// What a message or a wish of the person leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcpClientStep {
    /// Messages for the agent, in order.
    pub to_agent: Vec<Value>,
    /// What the person should know.
    pub news: Vec<AcpClientNews>,
}

/// A request of ours that was not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientRequest {
    Initialize,
    SignIn,
    /// To open the session of this id, or a new one.
    Open(Option<String>),
    /// To list sessions, in order to continue the last one.
    FindLatest,
    List,
    Prompt,
    SetMode(String),
}

/// The editor's side of one agent.
#[derive(Debug)]
pub struct AcpClient {
    folder: String,
    opening: AcpOpening,
    last_request: u64,
    requests: BTreeMap<u64, ClientRequest>,
    agent: String,
    can_load: bool,
    can_resume: bool,
    can_list: bool,
    ways: Vec<LoginWay>,
    session: Option<OpenedSession>,
    /// The session that is being opened. The agent tells about it before it is open.
    loading: Option<OpenedSession>,
    forms: BTreeMap<AcpFormNumber, Value>,
    last_form: u64,
    sessions: Vec<ListedSession>,
}

impl AcpClient {
    /// A client in this folder, with the message that begins everything.
    pub fn new(folder: &str, opening: AcpOpening) -> (Self, AcpClientStep) {
        let mut client = AcpClient {
            folder: folder.to_owned(),
            opening,
            last_request: 0,
            requests: BTreeMap::new(),
            agent: String::new(),
            can_load: false,
            can_resume: false,
            can_list: false,
            ways: Vec::new(),
            session: None,
            loading: None,
            forms: BTreeMap::new(),
            last_form: 0,
            sessions: Vec::new(),
        };
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
                "elicitation": { "form": {} },
            },
            "clientInfo": { "name": "aaep-chat", "title": "aaep chat", "version": env!("CARGO_PKG_VERSION") },
        });
        let mut step = AcpClientStep::default();
        client.request("initialize", &params, ClientRequest::Initialize, &mut step);
        (client, step)
    }

    /// The id of the open session.
    pub fn session_id(&self) -> Option<&str> {
        self.session.as_ref().map(|it| it.id.as_str())
    }

    /// Whether a turn is going on.
    pub fn is_at_work(&self) -> bool {
        self.requests.values().any(|it| *it == ClientRequest::Prompt)
    }

    /// Whether a prompt can be sent now.
    pub fn is_ready(&self) -> bool {
        self.session.is_some() && self.loading.is_none() && !self.is_at_work()
    }

    /// Whether the agent can say which sessions there were.
    pub fn can_list(&self) -> bool {
        self.can_list
    }

    /// Whether an earlier session can be continued.
    pub fn can_continue(&self) -> bool {
        self.can_load || self.can_resume
    }

    /// The modes of the agent, and the id of the one that is on.
    pub fn modes(&self) -> (&[ListedMode], &str) {
        self.session.as_ref().map_or((&[], ""), |it| (&it.modes, &it.mode))
    }

    /// The commands of the agent itself.
    pub fn commands(&self) -> &[AcpSlashCommand] {
        self.session.as_ref().map_or(&[], |it| &it.commands)
    }

    /// The ways to sign in.
    pub fn login_ways(&self) -> &[LoginWay] {
        &self.ways
    }

    /// The sessions that were listed last.
    pub fn sessions(&self) -> &[ListedSession] {
        &self.sessions
    }

    /// Prompts the agent. Nothing is sent unless it is ready.
    pub fn prompt(&mut self, text: &str) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        if let Some(session) = self.session_id().filter(|_| self.is_ready()) {
            let prompt = json!([{ "type": "text", "text": text }]);
            let params = json!({ "sessionId": session, "prompt": prompt });
            self.request("session/prompt", &params, ClientRequest::Prompt, &mut step);
        }
        step
    }

    /// Asks the agent to stop. Its forms are over.
    pub fn cancel(&mut self) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        if let Some(session) = self.session_id().filter(|_| self.is_at_work()) {
            let params = json!({ "sessionId": session });
            step.to_agent
                .push(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
        }
        self.close_forms(&mut step);
        step
    }

    /// Switches to the mode with this id or name. Returns false if it does not name exactly one.
    pub fn set_mode(&mut self, named: &str) -> Option<AcpClientStep> {
        let session = self.session.as_ref()?;
        let mode = session.mode_named(named)?.id.clone();
        let (method, params) = session.mode_request(&mode);
        let mut step = AcpClientStep::default();
        self.request(method, &params, ClientRequest::SetMode(mode), &mut step);
        Some(step)
    }

    /// Asks which sessions there were in this folder.
    pub fn list_sessions(&mut self) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        let params = json!({ "cwd": self.folder });
        self.request("session/list", &params, ClientRequest::List, &mut step);
        step
    }

    /// Continues an earlier session, or opens a new one.
    pub fn open(&mut self, session: Option<&str>) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        self.open_session(session, &mut step);
        step
    }

    /// Signs in by the way with this id.
    pub fn sign_in(&mut self, way: &str) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        self.request("authenticate", &json!({ "methodId": way }), ClientRequest::SignIn, &mut step);
        step
    }

    /// Answers a form: with what the person filled in, or not at all.
    pub fn answer_form(&mut self, number: AcpFormNumber, form: Option<&AcpForm>) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        let Some(id) = self.forms.remove(&number) else { return step };
        let result = match form {
            Some(form) => json!({ "action": "accept", "content": form.content() }),
            None => json!({ "action": "decline" }),
        };
        step.to_agent.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        step
    }

    /// Hears a message of the agent.
    pub fn hear(&mut self, message: &Value) -> AcpClientStep {
        let mut step = AcpClientStep::default();
        if let Some(batch) = message.as_array() {
            for part in batch {
                self.hear_one(part, &mut step);
            }
        } else {
            self.hear_one(message, &mut step);
        }
        step
    }

    fn hear_one(&mut self, message: &Value, step: &mut AcpClientStep) {
        if RequestId::of_response(message).is_some() {
            let request = message["id"].as_u64().and_then(|id| self.requests.remove(&id));
            if let Some(request) = request {
                self.hear_answer(request, message, step);
            }
            return;
        }
        let params = &message["params"];
        match (message["method"].as_str().unwrap_or_default(), RequestId::of(&message["id"])) {
            ("session/update", None) => self.hear_update(params, step),
            ("$/cancel_request", None) => self.withdraw_form(&params["requestId"], step),
            ("elicitation/create", Some(_)) => self.put_form(&message["id"], params, step),
            ("", _) | (_, None) => {}
            (_, Some(_)) => {
                let error = json!({ "code": NO_SUCH_METHOD, "message": "aaep chat does not have this method." });
                step.to_agent
                    .push(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
            }
        }
    }

    fn hear_answer(&mut self, request: ClientRequest, message: &Value, step: &mut AcpClientStep) {
        let (result, error) = (&message["result"], message.get("error"));
        let why = || reason(error.unwrap_or(&Value::Null));
        let needs_sign_in = error.is_some_and(|it| it["code"].as_i64() == Some(SIGN_IN_NEEDED));
        match request {
            ClientRequest::Prompt => {
                self.close_forms(step);
                step.news.push(AcpClientNews::TurnOver);
                if needs_sign_in {
                    step.news.push(AcpClientNews::SignInNeeded(self.ways.clone()));
                }
            }
            ClientRequest::SetMode(mode) => self.mode_set(&mode, error, step),
            ClientRequest::SignIn if error.is_some() => {
                step.news.push(AcpClientNews::NotSignedIn(why()));
            }
            ClientRequest::SignIn if self.session.is_none() => self.begin(step),
            ClientRequest::SignIn => {}
            _ if needs_sign_in => {
                self.loading = None;
                step.news.push(AcpClientNews::SignInNeeded(self.ways.clone()));
            }
            ClientRequest::Initialize if error.is_some() => {
                step.news.push(AcpClientNews::NotOpened(why()));
            }
            ClientRequest::Initialize => self.meet(result, step),
            ClientRequest::Open(_) if error.is_some() => {
                self.loading = None;
                step.news.push(AcpClientNews::NotOpened(why()));
            }
            ClientRequest::Open(wanted) => self.opened(wanted, result, step),
            ClientRequest::FindLatest => {
                let latest = listed_sessions(result, &self.folder).into_iter().next();
                if latest.is_none() {
                    step.news.push(AcpClientNews::NothingToContinue);
                }
                self.open_session(latest.as_ref().map(|it| it.id.as_str()), step);
            }
            ClientRequest::List if error.is_some() => {
                step.news.push(AcpClientNews::NoSessions(why()));
            }
            ClientRequest::List => {
                self.sessions = listed_sessions(result, &self.folder);
                step.news.push(AcpClientNews::Sessions(self.sessions.clone()));
            }
        }
    }

    /// Takes over what the agent says of itself, and opens a session.
    fn meet(&mut self, result: &Value, step: &mut AcpClientStep) {
        if result["protocolVersion"].as_u64().is_some_and(|it| it != PROTOCOL_VERSION) {
            step.news.push(AcpClientNews::OtherVersion);
            return;
        }
        let info = &result["agentInfo"];
        let name = info["title"].as_str().filter(|it| !it.trim().is_empty());
        self.agent = shortened_to(name.or(info["name"].as_str()).unwrap_or_default(), 80);
        let can = &result["agentCapabilities"];
        let is_there = |it: &Value| !it.is_null() && *it != Value::Bool(false);
        self.can_load = can["loadSession"] == true;
        self.can_resume = is_there(&can["sessionCapabilities"]["resume"]);
        self.can_list = is_there(&can["sessionCapabilities"]["list"]);
        let ways = result["authMethods"].as_array().into_iter().flatten().filter_map(|it| {
            let id = it["id"].as_str().filter(|it| it.len() <= 500)?;
            Some(LoginWay {
                id: id.to_owned(),
                name: shortened_to(it["name"].as_str().unwrap_or(id), 200),
                description: shortened_to(it["description"].as_str().unwrap_or_default(), 500),
            })
        });
        self.ways = ways.take(MAX_WAYS).collect();
        self.begin(step);
    }

    /// Opens the session that the person wanted at the beginning.
    fn begin(&mut self, step: &mut AcpClientStep) {
        match self.opening.clone() {
            AcpOpening::New => self.open_session(None, step),
            AcpOpening::Session(id) if self.can_continue() => self.open_session(Some(&id), step),
            AcpOpening::Latest if self.can_continue() && self.can_list => {
                let params = json!({ "cwd": self.folder });
                self.request("session/list", &params, ClientRequest::FindLatest, step);
            }
            AcpOpening::Session(_) | AcpOpening::Latest => {
                step.news.push(AcpClientNews::NothingToContinue);
                self.open_session(None, step);
            }
        }
    }

    fn open_session(&mut self, wanted: Option<&str>, step: &mut AcpClientStep) {
        let mut params = json!({ "cwd": self.folder, "mcpServers": [] });
        let method = match wanted {
            None => "session/new",
            Some(id) => {
                params["sessionId"] = id.into();
                // Loading repeats what was said, and resuming does not.
                if self.can_load { "session/load" } else { "session/resume" }
            }
        };
        self.loading = Some(OpenedSession::new(wanted.unwrap_or_default()));
        self.request(method, &params, ClientRequest::Open(wanted.map(str::to_owned)), step);
    }

    fn opened(&mut self, wanted: Option<String>, result: &Value, step: &mut AcpClientStep) {
        let mut session = self.loading.take().unwrap_or_else(|| OpenedSession::new(""));
        let is_continued = wanted.is_some();
        let id = wanted.or_else(|| result["sessionId"].as_str().map(str::to_owned));
        let id = id.filter(|it| !it.is_empty() && it.len() <= MAX_SESSION_ID_BYTES);
        let Some(id) = id else {
            step.news.push(AcpClientNews::NotOpened(String::new()));
            return;
        };
        session.id = id;
        session.read(result);
        let last = is_continued.then(|| session.take_last());
        if let Some(before) = self.session.take().filter(|_| session.commands.is_empty()) {
            // It is the same agent, and says so when its commands are others.
            session.commands = before.commands;
        }
        self.session = Some(session);
        step.news.push(AcpClientNews::Opened { agent: self.agent.clone(), last });
    }

    fn hear_update(&mut self, params: &Value, step: &mut AcpClientStep) {
        let id = params["sessionId"].as_str().unwrap_or_default();
        // Agents tell about a new session before they say its id.
        let sessions = self.loading.iter_mut().chain(&mut self.session);
        for session in sessions.filter(|it| it.id.is_empty() || it.id == id) {
            if let Some(mode) = session.update(&params["update"]) {
                step.news.push(AcpClientNews::Mode(mode));
            }
        }
    }

    fn mode_set(&mut self, mode: &str, error: Option<&Value>, step: &mut AcpClientStep) {
        if let Some(error) = error {
            step.news.push(AcpClientNews::ModeRefused(reason(error)));
        } else if let Some(mode) = self.session.as_mut().and_then(|it| it.set_mode(mode)) {
            step.news.push(AcpClientNews::Mode(mode));
        }
    }

    fn put_form(&mut self, id: &Value, params: &Value, step: &mut AcpClientStep) {
        let is_ours = params["sessionId"].as_str().is_none_or(|it| Some(it) == self.session_id());
        let is_new = !self.forms.values().any(|it| RequestId::of(it) == RequestId::of(id));
        let has_room = self.forms.len() < MAX_FORMS;
        if let Some(form) = AcpForm::read(params).filter(|_| is_ours && is_new && has_room) {
            self.last_form += 1;
            let number = AcpFormNumber(self.last_form);
            self.forms.insert(number, id.clone());
            step.news.push(AcpClientNews::Form(number, form));
        } else {
            let message = params["message"].as_str().unwrap_or_default();
            step.news.push(AcpClientNews::FormDeclined(shortened_to(message, 1000)));
            let result = json!({ "action": "decline" });
            step.to_agent.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
    }

    fn withdraw_form(&mut self, id: &Value, step: &mut AcpClientStep) {
        let wanted = RequestId::of(id);
        let found =
            self.forms.iter().find(|(_, it)| wanted.is_some() && RequestId::of(it) == wanted);
        if let Some(number) = found.map(|(number, _)| *number) {
            self.end_form(number, step);
        }
    }

    fn close_forms(&mut self, step: &mut AcpClientStep) {
        let open: Vec<AcpFormNumber> = self.forms.keys().copied().collect();
        for number in open {
            self.end_form(number, step);
        }
    }

    fn end_form(&mut self, number: AcpFormNumber, step: &mut AcpClientStep) {
        if let Some(id) = self.forms.remove(&number) {
            let result = json!({ "action": "cancel" });
            step.to_agent.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            step.news.push(AcpClientNews::FormWithdrawn(number));
        }
    }

    fn request(
        &mut self,
        method: &str,
        params: &Value,
        request: ClientRequest,
        step: &mut AcpClientStep,
    ) {
        self.last_request += 1;
        let id = self.last_request;
        self.requests.insert(id, request);
        step.to_agent
            .push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }
}

/// Why a request failed, in the agent's words.
fn reason(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or_default();
    let details = error["data"]["details"].as_str().or(error["data"].as_str());
    let words = match details.filter(|it| !message.contains(*it)) {
        Some(details) => format!("{message}: {details}"),
        None => message.to_owned(),
    };
    shortened_to(&words, 500)
}
