//! `OpenCode`, through its own server: a stream of events, and a request for each answer to a permission.
//!
//! Its terminal and we are asked at the same time, and the first answer counts. After a reject the turn ends.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::opencode_tool;
use super::turn_texts::TurnTexts;
use super::{
    ServerDialect, ServerMessage, ServerMove, answered, once_or_not, permission, prompt,
    prompt_ended, question, said, update,
};
use crate::acp::AcpSide;
use crate::dialect::text_of;
use crate::event::shortened_to;

/// The most sessions, messages of a session, tool calls of a turn, prompts of a turn and open requests.
const MAX_SESSIONS: usize = 128;
const MAX_MESSAGES: usize = 512;
const MAX_CALLS: usize = 1024;
const MAX_PROMPTS: usize = 64;
const MAX_ASKED: usize = 256;

/// The longest id that is used.
const MAX_ID_BYTES: usize = 200;

const YES: &str = "once";
const NO: &str = "reject";

/// Events that say nothing anybody has to hear.
const QUIET: &[&str] = &[
    "catalog.",
    "command.",
    "file.",
    "global.",
    "installation.",
    "integration.",
    "lsp.",
    "mcp.",
    "message.",
    "models-dev.",
    "permission.v2.",
    "plugin.",
    "project.",
    "pty.",
    "question.v2.",
    "reference.",
    "server.",
    "session.",
    "tui.",
    "vcs.",
    "workspace.",
    "worktree.",
];

/// The server of `OpenCode`.
#[derive(Debug, Default)]
pub(super) struct OpenCodeServer {
    sessions: BTreeMap<String, OpenSession>,
    /// The sessions of the requests that are open.
    asked: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct OpenSession {
    /// Whether a helper of another session works in it.
    is_helper: bool,
    is_busy: bool,
    /// Who wrote a message: whether it was the person.
    messages: BTreeMap<String, bool>,
    /// The messages of the person that were told.
    told_prompts: BTreeSet<String>,
    /// The prompts of the turn that goes on.
    prompts: Vec<String>,
    made_prompts: u64,
    texts: TurnTexts,
    /// The tools of the turn: the name of each, and how far it was told.
    calls: BTreeMap<String, (String, &'static str)>,
    error: Option<String>,
    is_stopped: bool,
}

impl OpenCodeServer {
    /// The session of this id, which is made if it is new. `None` if there are too many.
    fn session(&mut self, id: &str) -> Option<&mut OpenSession> {
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return None;
        }
        if !self.sessions.contains_key(id) && self.sessions.len() >= MAX_SESSIONS {
            let idle = self.sessions.iter().find(|(_, it)| it.prompts.is_empty() && !it.is_busy);
            let idle = idle.map(|(id, _)| id.clone())?;
            self.sessions.remove(&idle);
        }
        Some(self.sessions.entry(id.to_owned()).or_default())
    }

    /// Begins a turn, or adds a prompt of the person to the one that goes on.
    fn tell_prompt(&mut self, session: &str, blocks: Option<&Value>) -> Vec<ServerMove> {
        let Some(known) = self.session(session) else { return Vec::new() };
        let is_told = !known.prompts.is_empty() && blocks.is_none();
        if is_told || known.prompts.len() >= MAX_PROMPTS {
            return Vec::new();
        }
        known.made_prompts += 1;
        let id = format!("{session}#{}", known.made_prompts);
        known.prompts.push(id.clone());
        vec![prompt(&id, session, blocks.unwrap_or(&json!([])))]
    }

    fn hear_status(&mut self, session: &str, status: &Value) -> Vec<ServerMove> {
        match text_of(status, "type") {
            "busy" => {
                if let Some(known) = self.session(session) {
                    known.is_busy = true;
                }
                Vec::new()
            }
            "retry" => {
                let why = shortened_to(text_of(status, "message"), 300);
                let words = format!("It tries again. {why}");
                vec![ServerMove::Tell { session: session.to_owned(), words }]
            }
            "idle" => self.end_turn(session),
            _ => Vec::new(),
        }
    }

    /// The session rests.
    fn end_turn(&mut self, session: &str) -> Vec<ServerMove> {
        let Some(known) = self.sessions.get_mut(session) else { return Vec::new() };
        known.is_busy = false;
        known.calls.clear();
        known.texts = TurnTexts::default();
        let prompts = std::mem::take(&mut known.prompts);
        let end = match (known.error.take(), std::mem::take(&mut known.is_stopped)) {
            (_, true) => Ok("cancelled"),
            (Some(error), false) => Err(error),
            (None, false) => Ok("end_turn"),
        };
        let mut moves = Vec::new();
        let open = self.asked.iter().filter(|(_, it)| *it == session).map(|(id, _)| id.clone());
        for id in open.collect::<Vec<String>>() {
            self.asked.remove(&id);
            moves.push(ServerMove::Closed(json!(id)));
            moves.push(answered(&id, None));
        }
        moves.extend(prompts.iter().map(|id| prompt_ended(id, &end)));
        moves
    }

    fn note_session(&mut self, info: &Value) -> Vec<ServerMove> {
        let id = text_of(info, "id");
        let Some(known) = self.session(id) else { return Vec::new() };
        known.is_helper = info["parentID"].is_string();
        let folder = text_of(info, "directory").to_owned();
        vec![ServerMove::Folder { session: id.to_owned(), folder }]
    }

    fn note_message(&mut self, session: &str, info: &Value) {
        let Some(known) = self.session(session) else { return };
        let id = text_of(info, "id");
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return;
        }
        if known.messages.len() >= MAX_MESSAGES {
            known.messages.pop_first();
        }
        known.messages.insert(id.to_owned(), info["role"] == "user");
    }

    fn hear_part(&mut self, session: &str, part: &Value) -> Vec<ServerMove> {
        let Some(known) = self.session(session) else { return Vec::new() };
        let kind = text_of(part, "type");
        let message = text_of(part, "messageID");
        // Without a word of who wrote it: only what the person wrote has no times.
        let is_person = known.messages.get(message).copied();
        let is_person = is_person.unwrap_or(kind == "text" && part["time"].is_null());
        if is_person {
            return self.hear_prompt(session, message, part);
        }
        if !known.is_busy && known.prompts.is_empty() {
            return Vec::new();
        }
        match kind {
            "text" => self.hear_text(session, part),
            "tool" => self.hear_tool(session, part),
            _ => Vec::new(),
        }
    }

    fn hear_prompt(&mut self, session: &str, message: &str, part: &Value) -> Vec<ServerMove> {
        let is_words = part["type"] == "text" && part["synthetic"] != true;
        let Some(known) = self.session(session).filter(|_| is_words) else { return Vec::new() };
        if message.len() > MAX_ID_BYTES || !known.told_prompts.insert(message.to_owned()) {
            return Vec::new();
        }
        if known.told_prompts.len() > MAX_MESSAGES {
            known.told_prompts.pop_first();
        }
        // The prompt of a helper is written by the model.
        let text = if known.is_helper { "" } else { text_of(part, "text") };
        let blocks = json!([{ "type": "text", "text": text }]);
        self.tell_prompt(session, Some(&blocks))
    }

    fn hear_text(&mut self, session: &str, part: &Value) -> Vec<ServerMove> {
        let mut moves = self.tell_prompt(session, None);
        let Some(known) = self.session(session) else { return moves };
        let (id, text) = (text_of(part, "id"), text_of(part, "text"));
        if id.is_empty() || id.len() > MAX_ID_BYTES || part["synthetic"] == true {
            return moves;
        }
        let words = if part["time"]["end"].is_null() {
            if text.is_empty() {
                known.texts.begin(id);
            }
            ""
        } else {
            known.texts.end(id, text)
        };
        if !words.is_empty() {
            moves.push(said(session, id, words));
        }
        moves
    }

    fn hear_piece(&mut self, session: &str, properties: &Value) -> Vec<ServerMove> {
        let Some(known) = self.session(session) else { return Vec::new() };
        let id = text_of(properties, "partID");
        let is_words = text_of(properties, "field") == "text" && id.len() <= MAX_ID_BYTES;
        // Pieces of what it thinks have a part of their own, which was never begun as a text.
        let words = if is_words { known.texts.piece(id, text_of(properties, "delta")) } else { "" };
        if words.is_empty() { Vec::new() } else { vec![said(session, id, words)] }
    }

    fn hear_tool(&mut self, session: &str, part: &Value) -> Vec<ServerMove> {
        let (id, tool) = (text_of(part, "callID"), text_of(part, "tool"));
        // Its questions have events of their own.
        let is_told = tool != "question" && !id.is_empty() && id.len() <= MAX_ID_BYTES;
        let Some(status) = opencode_tool::status(&part["state"]).filter(|_| is_told) else {
            return Vec::new();
        };
        let mut moves = self.tell_prompt(session, None);
        let Some(known) = self.session(session) else { return moves };
        let before = known.calls.get(id).map(|(_, status)| *status);
        let is_over = matches!(before, Some("completed" | "failed"));
        if is_over || before == Some(status) || known.calls.len() >= MAX_CALLS {
            return moves;
        }
        known.calls.insert(id.to_owned(), (shortened_to(tool, 200), status));
        let mut call = opencode_tool::call(part);
        call["status"] = status.into();
        moves.push(update(session, call));
        moves
    }

    fn hear_permission(&mut self, request: &Value) -> Vec<ServerMove> {
        let (id, session) = (text_of(request, "id"), text_of(request, "sessionID"));
        let fits = !id.is_empty() && id.len() <= MAX_ID_BYTES && self.asked.len() < MAX_ASKED;
        if self.asked.contains_key(id) || !fits || self.session(session).is_none() {
            return Vec::new();
        }
        let mut moves = self.tell_prompt(session, None);
        let call = request["tool"]["callID"].as_str().filter(|it| it.len() <= MAX_ID_BYTES);
        let known = self.session(session).and_then(|it| it.calls.get(call?).cloned());
        let call = call.map_or_else(|| id.to_owned(), str::to_owned);
        let mut asked = json!({ "toolCallId": call });
        let name = if let Some((tool, _)) = &known {
            tool.clone()
        } else {
            // Its own part was not heard, so what it says of itself here is what is known.
            let name = text_of(request, "permission");
            asked["name"] = name.into();
            asked["kind"] = opencode_tool::kind(name).into();
            asked["rawInput"] = request["metadata"].clone();
            shortened_to(name, 200)
        };
        let scope = opencode_tool::scope(request, Some(&name));
        let yes = scope.map_or_else(|| YES.to_owned(), |it| format!("once: {it}"));
        self.asked.insert(id.to_owned(), session.to_owned());
        let options = once_or_not((YES, &yes), (NO, NO), Some(("always", "always")));
        moves.push(permission(id, session, &asked, &options));
        moves
    }

    fn hear_question(&mut self, request: &Value) -> Vec<ServerMove> {
        let (id, session) = (text_of(request, "id"), text_of(request, "sessionID"));
        if id.is_empty() || id.len() > MAX_ID_BYTES || self.session(session).is_none() {
            return Vec::new();
        }
        let mut moves = self.tell_prompt(session, None);
        let questions = request["questions"].as_array().into_iter().flatten();
        let words: Vec<&str> = questions.map(|it| text_of(it, "question")).collect();
        moves.push(question(id, session, &words.join(" ")));
        moves
    }

    fn hear_error(&mut self, session: &str, error: &Value) {
        let Some(known) = self.session(session) else { return };
        if error["name"] == "MessageAbortedError" {
            known.is_stopped = true;
            return;
        }
        let message = error["data"]["message"].as_str().or(error["name"].as_str());
        known.error = message.map(|it| shortened_to(it, 500));
    }

    fn hear_plan(&mut self, session: &str, todos: &Value) -> Vec<ServerMove> {
        if self.session(session).is_none_or(|it| it.prompts.is_empty()) {
            return Vec::new();
        }
        let todos = todos.as_array().into_iter().flatten().take(256);
        let entries: Vec<Value> =
            todos.map(|it| json!({ "content": it["content"], "status": it["status"] })).collect();
        vec![update(session, json!({ "sessionUpdate": "plan", "entries": entries }))]
    }
}

impl ServerDialect for OpenCodeServer {
    fn connected(&mut self) -> Vec<ServerMove> {
        Vec::new()
    }

    fn lost(&mut self) {
        *self = OpenCodeServer::default();
    }

    fn read(&mut self, message: &Value) -> Vec<ServerMove> {
        let properties = &message["properties"];
        let session = text_of(properties, "sessionID");
        match text_of(message, "type") {
            "session.created" | "session.updated" => self.note_session(&properties["info"]),
            "session.deleted" => {
                let ended = self.end_turn(session);
                self.sessions.remove(session);
                ended
            }
            "session.status" => self.hear_status(session, &properties["status"]),
            "session.idle" => self.end_turn(session),
            "session.error" => {
                self.hear_error(session, &properties["error"]);
                Vec::new()
            }
            "message.updated" => {
                let info = &properties["info"];
                let session = if session.is_empty() { text_of(info, "sessionID") } else { session };
                self.note_message(session, info);
                Vec::new()
            }
            "message.part.updated" => {
                let part = &properties["part"];
                let session = if session.is_empty() { text_of(part, "sessionID") } else { session };
                self.hear_part(session, part)
            }
            "message.part.delta" => self.hear_piece(session, properties),
            "permission.asked" => self.hear_permission(properties),
            "permission.replied" => {
                let id = text_of(properties, "requestID");
                if self.asked.remove(id).is_none() {
                    return Vec::new();
                }
                vec![answered(id, properties["reply"].as_str())]
            }
            "question.asked" => self.hear_question(properties),
            "question.replied" | "question.rejected" => {
                let id = text_of(properties, "requestID");
                vec![ServerMove::Hear(AcpSide::Editor, json!({ "id": id, "result": {} }))]
            }
            "todo.updated" => self.hear_plan(session, &properties["todos"]),
            kind if QUIET.iter().any(|it| kind.starts_with(it)) => Vec::new(),
            _ => vec![ServerMove::Unknown { session: session.to_owned() }],
        }
    }

    fn write(&mut self, message: &Value) -> Option<ServerMessage> {
        if message["method"] == "session/cancel" {
            let session = plain_id(text_of(&message["params"], "sessionId"))?;
            let path = format!("/session/{session}/abort");
            return Some(ServerMessage::Post { path, body: json!({}) });
        }
        let id = plain_id(message["id"].as_str()?)?;
        self.asked.get(id)?;
        let reply = match message["result"]["outcome"]["optionId"].as_str() {
            Some(YES) => YES,
            _ => NO,
        };
        let path = format!("/permission/{id}/reply");
        Some(ServerMessage::Post { path, body: json!({ "reply": reply }) })
    }
}

/// An id that can stand in a path as it is.
fn plain_id(id: &str) -> Option<&str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    Some(id).filter(|it| !it.is_empty() && it.chars().all(is_plain))
}
