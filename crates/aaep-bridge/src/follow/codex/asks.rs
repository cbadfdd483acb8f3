//! What Codex asks the person, and how it was answered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{ServerMessage, ServerMove, answered, once_or_not, permission, question};
use super::{MAX_ID_BYTES, item};
use crate::dialect::text_of;

/// The most requests that are open.
const MAX_ASKED: usize = 256;

pub(super) const YES: &str = "accept";
pub(super) const NO: &str = "decline";

/// What may be in a request for a command, and what may be in one for a change of files. A request that wants more than
/// these is answered in the window of Codex alone.
const COMMAND_FIELDS: &[&str] = &[
    "approvalId",
    "availableDecisions",
    "command",
    "commandActions",
    "cwd",
    "environmentId",
    "itemId",
    "kind",
    "proposedExecpolicyAmendment",
    "proposedNetworkPolicyAmendments",
    "reason",
    "startedAtMs",
    "threadId",
    "turnId",
];
const CHANGE_FIELDS: &[&str] =
    &["availableDecisions", "itemId", "reason", "startedAtMs", "threadId", "turnId"];

/// The requests of Codex that are open.
#[derive(Debug, Default)]
pub(super) struct CodexAsks {
    /// Tells the requests of this connection from those of earlier ones.
    connections: u64,
    open: BTreeMap<String, CodexRequest>,
}

/// A request of Codex.
#[derive(Debug)]
struct CodexRequest {
    /// Its id, as Codex wrote it.
    id: Value,
    thread: String,
    /// The item whose end says how it was answered. Empty for a question in words.
    item: String,
    /// Whether it was answered, here or at the keyboard.
    is_closed: bool,
}

impl CodexAsks {
    /// A connection begins.
    pub(super) fn connect(&mut self) {
        self.connections += 1;
    }

    /// The connection is gone, and its requests with it.
    pub(super) fn lost(&self) -> Self {
        CodexAsks { connections: self.connections, open: BTreeMap::new() }
    }

    /// Codex asks. `is_shown` says whether the item that it asks about was told.
    pub(super) fn hear(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        is_shown: bool,
    ) -> Option<ServerMove> {
        let thread = text_of(params, "threadId");
        let item = text_of(params, "itemId");
        let own = format!("{}:{id}", self.connections);
        if self.open.contains_key(&own) || own.len() > MAX_ID_BYTES {
            return None;
        }
        // What is not remembered here could not be answered.
        let has_room = self.open.len() < MAX_ASKED;
        let options = |can_put: bool| {
            if can_put && has_room {
                once_or_not((YES, "yes, once"), (NO, "no"), None)
            } else {
                Value::Null
            }
        };
        let (about, told) = match method {
            "item/commandExecution/requestApproval" => {
                let is_command = !text_of(params, "command").is_empty();
                let can_put = is_command
                    && (params["kind"].is_null() || params["kind"] == "command")
                    && wants_only(params, COMMAND_FIELDS);
                (item, permission(&own, thread, &command_call(params), &options(can_put)))
            }
            "item/fileChange/requestApproval" => {
                let can_put = is_shown && wants_only(params, CHANGE_FIELDS);
                let call = json!({ "toolCallId": item });
                (item, permission(&own, thread, &call, &options(can_put)))
            }
            "item/permissions/requestApproval" => {
                let words = format!("May it have these rights? {}", params["permissions"]);
                ("", question(&own, thread, &words))
            }
            "item/tool/requestUserInput" => {
                let questions = params["questions"].as_array().into_iter().flatten();
                let words: Vec<&str> = questions.map(|it| text_of(it, "question")).collect();
                ("", question(&own, thread, &words.join(" ")))
            }
            "mcpServer/elicitation/request" => {
                let request = params.get("request").unwrap_or(params);
                ("", question(&own, thread, text_of(request, "message")))
            }
            _ => return Some(ServerMove::Unknown { session: thread.to_owned() }),
        };
        if has_room {
            let request = CodexRequest {
                id: id.clone(),
                thread: thread.to_owned(),
                item: about.to_owned(),
                is_closed: false,
            };
            self.open.insert(own, request);
        }
        Some(told)
    }

    /// A request was answered, here or at the keyboard.
    pub(super) fn resolve(&mut self, id: &Value) -> Vec<ServerMove> {
        let own = format!("{}:{id}", self.connections);
        let Some(asked) = self.open.get_mut(&own) else { return Vec::new() };
        asked.is_closed = true;
        if asked.item.is_empty() {
            self.open.remove(&own);
            return vec![answered(&own, Some(""))];
        }
        vec![ServerMove::Closed(json!(own))]
    }

    /// An item is no longer what the person was asked about, so that only the window of Codex can answer.
    pub(super) fn withdraw(&mut self, thread: &str, item: &str) -> Vec<ServerMove> {
        let is_it = |it: &CodexRequest| it.thread == thread && it.item == item && !it.is_closed;
        let found = self.open.iter_mut().filter(|(_, it)| is_it(it));
        let closed = found.map(|(id, asked)| {
            asked.is_closed = true;
            ServerMove::Closed(json!(id))
        });
        closed.collect()
    }

    /// What happened to an item says how its requests were answered.
    pub(super) fn settle(&mut self, thread: &str, item: &str, decision: &str) -> Vec<ServerMove> {
        let is_it = |it: &CodexRequest| it.thread == thread && it.item == item && it.is_closed;
        let found = self.open.extract_if(.., |_, it| is_it(it));
        found.map(|(id, _)| answered(&id, Some(decision))).collect()
    }

    /// The turn of a thread is over, and its requests with it.
    pub(super) fn close(&mut self, thread: &str) -> Vec<ServerMove> {
        let found = self.open.extract_if(.., |_, it| it.thread == thread);
        found.flat_map(|(id, _)| [ServerMove::Closed(json!(id)), answered(&id, None)]).collect()
    }

    /// The person's answer, in the words of Codex. Each request is answered once, and not after it was resolved.
    pub(super) fn answer(&mut self, message: &Value) -> Option<ServerMessage> {
        let asked = self.open.get_mut(message["id"].as_str()?)?;
        if asked.is_closed || asked.item.is_empty() {
            return None;
        }
        asked.is_closed = true;
        let decision = match message["result"]["outcome"]["optionId"].as_str() {
            Some(YES) => YES,
            Some(NO) => NO,
            _ => "cancel",
        };
        let answer = json!({ "id": asked.id, "result": { "decision": decision } });
        Some(ServerMessage::Message(answer))
    }
}

/// The command that Codex asks about.
fn command_call(params: &Value) -> Value {
    let id = text_of(params, "itemId");
    let mut call = json!({ "toolCallId": id });
    if let Some(part) = params["approvalId"].as_str() {
        call["toolCallId"] = format!("{id}:{part}").into();
    }
    if !text_of(params, "command").is_empty() {
        call["name"] = "exec_command".into();
        call["kind"] = "execute".into();
        call["rawInput"] = item::command_input(params);
    }
    call
}

/// Whether a request wants nothing but what these fields say, and can be answered for one time.
fn wants_only(params: &Value, fields: &[&str]) -> bool {
    let mut wanted = params.as_object().into_iter().flatten().filter(|(_, it)| !it.is_null());
    let is_once = match params["availableDecisions"].as_array() {
        Some(decisions) => decisions.iter().any(|it| it == YES),
        None => params["availableDecisions"].is_null(),
    };
    is_once && wanted.all(|(name, _)| fields.contains(&name.as_str()))
}
