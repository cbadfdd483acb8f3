//! Codex in a terminal. It runs on a daemon, and any client of the same user may speak with that: JSON-RPC without the
//! member `jsonrpc`.
//!
//! A thread is resumed to hear it, which fails until its first turn began. Threads that are ephemeral make titles and
//! are left alone. Requests go to every client, and the first answer counts. How the keyboard answered is not said;
//! it follows from what happens to the item.

mod asks;
mod item;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::turn_texts::TurnTexts;
use super::{ServerDialect, ServerMessage, ServerMove, prompt, prompt_ended, said, update};
use crate::dialect::text_of;
use crate::event::shortened_to;
use asks::{CodexAsks, NO, YES};
use item::CodexItem;

/// The most threads, requests of ours, and prompts of a turn.
const MAX_THREADS: usize = 128;
const MAX_REQUESTS: usize = 256;
const MAX_PROMPTS: usize = 64;
/// The most items of a turn that are remembered.
const MAX_ITEMS: usize = 1024;

/// The longest id that is used.
const MAX_ID_BYTES: usize = 200;

/// How often a thread that works is resumed in vain before it is given up.
const MAX_TRIES: u32 = 40;

/// Messages that say nothing anybody has to hear.
const QUIET: &[&str] = &[
    "account/",
    "app/",
    "autoApprovalReview/",
    "configWarning",
    "deprecationNotice",
    "error",
    "externalAgentConfig/",
    "fs/",
    "guardianWarning",
    "hook/",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/fileChange/",
    "item/mcpToolCall/",
    "item/plan/",
    "item/reasoning/",
    "mcpServer/",
    "model/",
    "modelProvider/",
    "process/",
    "project/",
    "rawResponseItem/",
    "remoteControl/",
    "skills/",
    "thread/",
    "turn/",
    "warning",
];

/// The daemon of Codex.
#[derive(Debug, Default)]
pub(super) struct CodexDaemon {
    /// Whether the past of threads is left out, because a connection broke over it.
    is_without_past: bool,
    last_request: u64,
    requests: BTreeMap<u64, OwnRequest>,
    threads: BTreeMap<String, CodexThread>,
    asks: CodexAsks,
}

/// A request of ours.
#[derive(Debug)]
enum OwnRequest {
    Initialize,
    List,
    Resume(String),
    Other,
}

/// How far a thread is heard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ThreadHearing {
    #[default]
    NotYet,
    /// We asked to hear it.
    Asked,
    Heard,
    /// It is not to be told.
    Never,
}

#[derive(Debug, Default)]
struct CodexThread {
    hearing: ThreadHearing,
    tries: u32,
    is_active: bool,
    is_waiting: bool,
    turn: Option<CodexTurn>,
}

#[derive(Debug, Default)]
struct CodexTurn {
    id: String,
    /// The ids under which prompts were told.
    prompts: Vec<String>,
    texts: TurnTexts,
    /// Items that were told to have begun, and whether they have ended.
    items: BTreeMap<String, bool>,
}

impl CodexDaemon {
    fn request(&mut self, kind: OwnRequest, method: &str, params: &Value) -> Option<ServerMessage> {
        if self.requests.len() >= MAX_REQUESTS {
            return None;
        }
        self.last_request += 1;
        let id = self.last_request;
        self.requests.insert(id, kind);
        Some(ServerMessage::Message(json!({ "id": id, "method": method, "params": params })))
    }

    fn list(&mut self, cursor: &Value) -> Vec<ServerMove> {
        let params = if cursor.is_string() { json!({ "cursor": cursor }) } else { json!({}) };
        let request = self.request(OwnRequest::List, "thread/loaded/list", &params);
        request.into_iter().map(ServerMove::Send).collect()
    }

    /// Asks to hear a thread.
    fn resume(&mut self, thread: &str) -> Vec<ServerMove> {
        let Some(known) = self.thread(thread) else { return Vec::new() };
        if known.hearing != ThreadHearing::NotYet {
            return Vec::new();
        }
        known.hearing = ThreadHearing::Asked;
        let params = json!({ "threadId": thread, "excludeTurns": self.is_without_past });
        let kind = OwnRequest::Resume(thread.to_owned());
        let request = self.request(kind, "thread/resume", &params);
        request.into_iter().map(ServerMove::Send).collect()
    }

    /// The thread of this id, which is made if it is new. `None` if there are too many.
    fn thread(&mut self, id: &str) -> Option<&mut CodexThread> {
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return None;
        }
        if !self.threads.contains_key(id) && self.threads.len() >= MAX_THREADS {
            let is_idle = |it: &CodexThread| it.turn.is_none() && !it.is_active;
            let idle = self.threads.iter().find(|(_, it)| is_idle(it)).map(|(id, _)| id.clone())?;
            self.threads.remove(&idle);
        }
        Some(self.threads.entry(id.to_owned()).or_default())
    }

    /// A thread that is heard.
    fn heard(&mut self, id: &str) -> Option<&mut CodexThread> {
        self.threads.get_mut(id).filter(|it| it.hearing == ThreadHearing::Heard)
    }

    fn hear_answer(&mut self, id: u64, message: &Value) -> Vec<ServerMove> {
        let is_error = message.get("error").is_some();
        let result = &message["result"];
        match self.requests.remove(&id) {
            Some(OwnRequest::Initialize) if !is_error => {
                let told = ServerMessage::Message(json!({ "method": "initialized" }));
                let listed = self.list(&Value::Null);
                std::iter::once(ServerMove::Send(told)).chain(listed).collect()
            }
            Some(OwnRequest::List) => {
                let threads = result["data"].as_array().into_iter().flatten();
                let threads: Vec<&str> = threads.filter_map(Value::as_str).collect();
                let mut moves: Vec<ServerMove> =
                    threads.iter().take(MAX_THREADS).flat_map(|it| self.resume(it)).collect();
                if result["nextCursor"].is_string() && self.threads.len() < MAX_THREADS {
                    moves.extend(self.list(&result["nextCursor"]));
                }
                moves
            }
            Some(OwnRequest::Resume(thread)) => {
                if is_error {
                    if let Some(known) = self.threads.get_mut(&thread) {
                        known.hearing = ThreadHearing::NotYet;
                    }
                    return Vec::new();
                }
                self.hear_resumed(&thread, &result["thread"])
            }
            _ => Vec::new(),
        }
    }

    /// A thread is heard from here on. What its turn did before is told as far as it is said.
    fn hear_resumed(&mut self, id: &str, thread: &Value) -> Vec<ServerMove> {
        let Some(known) = self.threads.get_mut(id) else { return Vec::new() };
        if thread["ephemeral"] == true {
            known.hearing = ThreadHearing::Never;
            return Vec::new();
        }
        known.hearing = ThreadHearing::Heard;
        known.note_status(&thread["status"]);
        let folder = text_of(thread, "cwd").to_owned();
        let mut moves = vec![ServerMove::Folder { session: id.to_owned(), folder }];
        let mut turns = thread["turns"].as_array().into_iter().flatten();
        let running = turns.rfind(|it| it["status"] == "inProgress");
        if let Some(turn) = running {
            moves.extend(self.open_turn(id, text_of(turn, "id")));
            for item in turn["items"].as_array().into_iter().flatten() {
                let place = json!({ "threadId": id, "turnId": turn["id"] });
                moves.extend(self.hear_item(&place, item, false));
                if has_ended(item) {
                    moves.extend(self.hear_item(&place, item, true));
                }
            }
        }
        moves
    }

    fn hear_notice(&mut self, method: &str, params: &Value) -> Vec<ServerMove> {
        let thread = text_of(params, "threadId").to_owned();
        match method {
            "thread/started" => {
                let started = &params["thread"];
                if let Some(known) = self.thread(text_of(started, "id")) {
                    if started["ephemeral"] == true {
                        known.hearing = ThreadHearing::Never;
                    }
                    known.note_status(&started["status"]);
                }
                Vec::new()
            }
            "thread/status/changed" => {
                let Some(known) = self.thread(&thread) else { return Vec::new() };
                known.note_status(&params["status"]);
                if known.is_active { self.resume(&thread) } else { Vec::new() }
            }
            "thread/closed" | "thread/deleted" => {
                let ended = self.end_turn(&thread, &Err("It was closed.".to_owned()));
                self.threads.remove(&thread);
                ended
            }
            "turn/started" => self.open_turn(&thread, text_of(&params["turn"], "id")),
            "turn/completed" => {
                let turn = &params["turn"];
                let end = match text_of(turn, "status") {
                    "interrupted" => Ok("cancelled"),
                    "failed" => Err(shortened_to(text_of(&turn["error"], "message"), 500)),
                    _ => Ok("end_turn"),
                };
                let id = text_of(turn, "id");
                let is_it = |it: &CodexTurn| it.id == id;
                let is_open = self.heard(&thread).and_then(|it| it.turn.as_ref());
                if is_open.is_some_and(is_it) { self.end_turn(&thread, &end) } else { Vec::new() }
            }
            "item/started" => self.hear_item(params, &params["item"], false),
            "item/completed" => self.hear_item(params, &params["item"], true),
            "item/agentMessage/delta" => self.hear_piece(params),
            "item/fileChange/patchUpdated" => self.hear_patch(&thread, params),
            "item/commandExecution/outputDelta" => {
                self.asks.settle(&thread, text_of(params, "itemId"), YES)
            }
            "item/commandExecution/terminalInteraction" => {
                let typed = shortened_to(text_of(params, "stdin"), 300);
                if typed.is_empty() || self.heard(&thread).is_none() {
                    return Vec::new();
                }
                vec![ServerMove::Tell {
                    session: thread,
                    words: format!("Types into a command that runs: {typed}"),
                }]
            }
            "item/autoApprovalReview/completed" => {
                let words = review_words(params);
                let told = words.filter(|_| self.heard(&thread).is_some());
                told.map(|words| ServerMove::Tell { session: thread, words }).into_iter().collect()
            }
            "turn/plan/updated" => self.hear_plan(&thread, params),
            "serverRequest/resolved" => self.asks.resolve(&params["requestId"]),
            _ if QUIET.iter().any(|it| method.starts_with(it)) => Vec::new(),
            _ => vec![ServerMove::Unknown { session: thread }],
        }
    }

    /// A turn is going on. It is told with its first item.
    fn open_turn(&mut self, thread: &str, id: &str) -> Vec<ServerMove> {
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return Vec::new();
        }
        let Some(known) = self.heard(thread) else { return Vec::new() };
        if known.turn.as_ref().is_some_and(|it| it.id == id) {
            return Vec::new();
        }
        let ended = self.end_turn(thread, &Ok("cancelled"));
        if let Some(known) = self.heard(thread) {
            known.turn = Some(CodexTurn { id: id.to_owned(), ..CodexTurn::default() });
        }
        ended
    }

    /// Tells that the turn began, with a prompt of the person if there is one.
    fn tell_prompt(&mut self, thread: &str, blocks: Option<&Value>) -> Vec<ServerMove> {
        let Some(turn) = self.heard(thread).and_then(|it| it.turn.as_mut()) else {
            return Vec::new();
        };
        let is_told = !turn.prompts.is_empty() && blocks.is_none();
        if is_told || turn.prompts.len() >= MAX_PROMPTS {
            return Vec::new();
        }
        let id = format!("{}#{}", turn.id, turn.prompts.len());
        turn.prompts.push(id.clone());
        vec![prompt(&id, thread, blocks.unwrap_or(&json!([])))]
    }

    /// The turn is over.
    fn end_turn(&mut self, thread: &str, end: &Result<&str, String>) -> Vec<ServerMove> {
        let turn = self.threads.get_mut(thread).and_then(|it| it.turn.take());
        let Some(turn) = turn else { return Vec::new() };
        let mut moves = self.asks.close(thread);
        moves.extend(turn.prompts.iter().map(|id| prompt_ended(id, end)));
        moves
    }

    fn hear_item(&mut self, place: &Value, item: &Value, is_end: bool) -> Vec<ServerMove> {
        let thread = text_of(place, "threadId").to_owned();
        let (id, turn) = (text_of(item, "id"), text_of(place, "turnId"));
        if self.heard(&thread).is_none() || id.is_empty() || id.len() > MAX_ID_BYTES {
            return Vec::new();
        }
        let mut moves = self.open_turn(&thread, turn);
        let read = item::read(item);
        if let CodexItem::Prompt(blocks) = &read
            && self.note_item(&thread, id, true)
        {
            moves.extend(self.tell_prompt(&thread, Some(blocks)));
            return moves;
        }
        moves.extend(self.tell_prompt(&thread, None));
        match read {
            CodexItem::Message => moves.extend(self.hear_message(&thread, item, is_end)),
            CodexItem::Tool(call) => moves.extend(self.hear_tool(&thread, item, call, is_end)),
            CodexItem::Told(words) if !is_end => {
                moves.push(ServerMove::Tell { session: thread, words });
            }
            CodexItem::Unknown if !is_end => moves.push(ServerMove::Unknown { session: thread }),
            _ => {}
        }
        moves
    }

    /// Remembers that an item has begun or ended. Returns false if that is known.
    fn note_item(&mut self, thread: &str, id: &str, is_end: bool) -> bool {
        let Some(turn) = self.heard(thread).and_then(|it| it.turn.as_mut()) else { return false };
        if let Some(has_ended) = turn.items.get_mut(id) {
            let is_news = is_end && !*has_ended;
            *has_ended |= is_end;
            return is_news;
        }
        if turn.items.len() < MAX_ITEMS {
            turn.items.insert(id.to_owned(), is_end);
        }
        true
    }

    fn hear_message(&mut self, thread: &str, item: &Value, is_end: bool) -> Vec<ServerMove> {
        let (id, text) = (text_of(item, "id"), text_of(item, "text"));
        let Some(turn) = self.heard(thread).and_then(|it| it.turn.as_mut()) else {
            return Vec::new();
        };
        let words = if is_end {
            turn.texts.end(id, text)
        } else {
            // A text that is not empty at its beginning was heard from its middle on.
            if text.is_empty() {
                turn.texts.begin(id);
            }
            ""
        };
        if words.is_empty() { Vec::new() } else { vec![said(thread, id, words)] }
    }

    fn hear_piece(&mut self, params: &Value) -> Vec<ServerMove> {
        let (thread, id) = (text_of(params, "threadId").to_owned(), text_of(params, "itemId"));
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return Vec::new();
        }
        let mut moves = self.open_turn(&thread, text_of(params, "turnId"));
        moves.extend(self.tell_prompt(&thread, None));
        let Some(turn) = self.heard(&thread).and_then(|it| it.turn.as_mut()) else { return moves };
        let words = turn.texts.piece(id, text_of(params, "delta"));
        if !words.is_empty() {
            moves.push(said(&thread, id, words));
        }
        moves
    }

    fn hear_tool(
        &mut self,
        thread: &str,
        item: &Value,
        mut call: Value,
        is_end: bool,
    ) -> Vec<ServerMove> {
        let id = text_of(item, "id");
        if !self.note_item(thread, id, is_end) {
            return Vec::new();
        }
        call["sessionUpdate"] = "tool_call_update".into();
        call["toolCallId"] = id.into();
        let mut moves = Vec::new();
        if is_end {
            let status = item::end_status(item);
            let decision = if status == "declined" { NO } else { YES };
            moves.extend(self.asks.settle(thread, id, decision));
            call["status"] = status.into();
        } else {
            // While Codex waits for an answer, what begins is what it asks about.
            let is_waiting = self.heard(thread).is_some_and(|it| it.is_waiting);
            call["status"] = if is_waiting { "pending" } else { "in_progress" }.into();
        }
        moves.push(update(thread, call));
        moves
    }

    /// A change of files becomes another one. What the person was asked about is no longer it.
    fn hear_patch(&mut self, thread: &str, params: &Value) -> Vec<ServerMove> {
        let id = text_of(params, "itemId");
        let turn = self.heard(thread).and_then(|it| it.turn.as_ref());
        if turn.is_none_or(|it| it.items.get(id) != Some(&false)) {
            return Vec::new();
        }
        let mut moves = self.asks.withdraw(thread, id);
        let changed = json!({ "type": "fileChange", "changes": params["changes"] });
        if let CodexItem::Tool(mut call) = item::read(&changed) {
            call["sessionUpdate"] = "tool_call_update".into();
            call["toolCallId"] = id.into();
            moves.push(update(thread, call));
        }
        moves
    }

    fn hear_plan(&mut self, thread: &str, params: &Value) -> Vec<ServerMove> {
        if self.heard(thread).is_none_or(|it| it.turn.is_none()) {
            return Vec::new();
        }
        let steps = params["plan"].as_array().into_iter().flatten();
        let entries: Vec<Value> = steps
            .take(256)
            .map(|it| {
                let status = text_of(it, "status");
                let status = if status == "inProgress" { "in_progress" } else { status };
                json!({ "content": it["step"], "status": status })
            })
            .collect();
        vec![update(thread, json!({ "sessionUpdate": "plan", "entries": entries }))]
    }

    fn hear_request(&mut self, id: &Value, method: &str, params: &Value) -> Vec<ServerMove> {
        let thread = text_of(params, "threadId").to_owned();
        if self.heard(&thread).is_none() {
            return Vec::new();
        }
        let mut moves = self.open_turn(&thread, text_of(params, "turnId"));
        moves.extend(self.tell_prompt(&thread, None));
        let turn = self.heard(&thread).and_then(|it| it.turn.as_ref());
        let is_shown = turn.is_some_and(|it| it.items.contains_key(text_of(params, "itemId")));
        moves.extend(self.asks.hear(id, method, params, is_shown));
        moves
    }
}

impl ServerDialect for CodexDaemon {
    fn connected(&mut self) -> Vec<ServerMove> {
        self.asks.connect();
        // Without the experimental fields, a request could want more than it says.
        let params = json!({
            "clientInfo": { "name": "aaep", "title": "AAEP", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "experimentalApi": true },
        });
        let request = self.request(OwnRequest::Initialize, "initialize", &params);
        request.into_iter().map(ServerMove::Send).collect()
    }

    fn lost(&mut self) {
        // The past of a thread can be longer than any message that is taken.
        let was_resuming = self.requests.values().any(|it| matches!(it, OwnRequest::Resume(_)));
        *self = CodexDaemon {
            asks: self.asks.lost(),
            last_request: self.last_request,
            is_without_past: self.is_without_past || was_resuming,
            ..CodexDaemon::default()
        };
    }

    fn read(&mut self, message: &Value) -> Vec<ServerMove> {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) if !id.is_null() => self.hear_request(id, method, params),
            (Some(method), _) => self.hear_notice(method, params),
            (None, Some(id)) => {
                id.as_u64().map(|id| self.hear_answer(id, message)).unwrap_or_default()
            }
            (None, None) => Vec::new(),
        }
    }

    fn tick(&mut self) -> Vec<ServerMove> {
        let is_late = |it: &CodexThread| it.hearing == ThreadHearing::NotYet && it.is_active;
        let late = self.threads.iter_mut().filter(|(_, it)| is_late(it));
        let late: Vec<String> = late
            .filter_map(|(id, it)| {
                it.tries += 1;
                if it.tries > MAX_TRIES {
                    it.hearing = ThreadHearing::Never;
                    return None;
                }
                Some(id.clone())
            })
            .collect();
        late.iter().flat_map(|id| self.resume(id)).collect()
    }

    fn write(&mut self, message: &Value) -> Option<ServerMessage> {
        if message["method"] == "session/cancel" {
            let thread = text_of(&message["params"], "sessionId").to_owned();
            let turn = self.heard(&thread)?.turn.as_ref()?.id.clone();
            let params = json!({ "threadId": thread, "turnId": turn });
            return self.request(OwnRequest::Other, "turn/interrupt", &params);
        }
        self.asks.answer(message)
    }

    fn sessions(&self) -> Vec<String> {
        let told = self.threads.iter().filter(|(_, it)| it.hearing != ThreadHearing::Never);
        told.map(|(id, _)| id.clone()).collect()
    }
}

impl CodexThread {
    fn note_status(&mut self, status: &Value) {
        self.is_active = status["type"] == "active";
        let mut flags = status["activeFlags"].as_array().into_iter().flatten();
        self.is_waiting = flags.any(|it| it == "waitingOnApproval");
        if !self.is_active {
            self.tries = 0;
        }
    }
}

/// Whether an item of a turn that goes on has ended.
fn has_ended(item: &Value) -> bool {
    let is_over = ["completed", "failed", "declined"].contains(&text_of(item, "status"));
    is_over || item["completedAtMs"].is_u64()
}

/// What a model of Codex decided in place of the person.
fn review_words(params: &Value) -> Option<String> {
    let decided = match text_of(&params["review"], "status") {
        "approved" => "allowed",
        "denied" => "denied",
        _ => return None,
    };
    let action = &params["action"];
    let what = match text_of(action, "type") {
        "command" => format!("the command: {}", text_of(action, "command")),
        "execve" => format!("the program: {}", text_of(action, "program")),
        "applyPatch" => {
            let files = action["files"].as_array().into_iter().flatten();
            let files: Vec<&str> = files.filter_map(Value::as_str).take(8).collect();
            format!("changes of {}", files.join(", "))
        }
        _ => "what it wants to do".to_owned(),
    };
    Some(format!("A model, and not you, {decided} {}", shortened_to(&what, 300)))
}
