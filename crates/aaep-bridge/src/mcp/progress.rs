//! How far a call is: progress, and calls that go on as tasks.

use serde_json::{Value, json};

use super::call::OpenCall;
use super::{ClientRequest, MAX_REQUESTS, McpBridge, McpPlan};
use crate::event::shortened_to;
use crate::request_id::RequestId;

/// The most words of a server about how far it is.
const MAX_SAID_CHARS: usize = 300;

impl McpBridge {
    /// The server says how far a request is.
    pub(super) fn tell_progress(&mut self, params: &Value, plan: &mut McpPlan) {
        let Some(token) = RequestId::of(&params["progressToken"]) else { return };
        let Some(id) = self.tokens.get(&token) else { return };
        let Some(ClientRequest::Call(call)) = self.requests.get_mut(id) else { return };
        let Some(session) = &self.session else { return };
        let said = shortened_to(params["message"].as_str().unwrap_or_default(), MAX_SAID_CHARS);
        let (done, total) = (params["progress"].as_f64(), params["total"].as_f64());
        let percent = match (done, total) {
            (Some(done), Some(total)) if total > 0.0 && done >= 0.0 => {
                Some((100.0 * done / total).clamp(0.0, 100.0).round())
            }
            _ => None,
        };
        let words = match (said.as_str(), percent, done) {
            ("", Some(percent), _) => format!("{percent} percent."),
            ("", None, Some(done)) => format!("Has reached {done}."),
            ("", None, None) => return,
            (said, ..) => said.to_owned(),
        };
        if words == call.told {
            return;
        }
        call.told.clone_from(&words);
        let mut progress = json!({ "description": words });
        if let Some(percent) = percent {
            progress["percent"] = percent.into();
        }
        let fields = json!({ "summary_normal": words, "progress": progress });
        plan.events.push(session.voice.event("progress.updated", fields));
    }

    /// If the call goes on as a task, remembers it. Returns whether it does.
    pub(super) fn begin_task(
        &mut self,
        call: &OpenCall,
        result: &Value,
        plan: &mut McpPlan,
    ) -> bool {
        let task = task_in(result);
        let Some(id) = task["taskId"].as_str() else { return false };
        if self.tasks.len() >= MAX_REQUESTS {
            return false;
        }
        self.tasks.insert(id.to_owned(), call.clone());
        if let Some(session) = &self.session {
            let words = match said_of(task) {
                said if said.is_empty() => format!("Goes on in the background. {}", call.words),
                said => format!("Goes on in the background: {said}"),
            };
            plan.events.push(session.voice.progress(&words));
        }
        true
    }

    /// The server says how far a task is.
    pub(super) fn tell_task(&mut self, task: &Value, plan: &mut McpPlan) {
        let id = task["taskId"].as_str().unwrap_or_default();
        let Some(call) = self.tasks.get_mut(id) else { return };
        let Some(session) = &self.session else { return };
        let said = said_of(task);
        let status = task["status"].as_str().unwrap_or_default();
        let words = format!("{status} {said}");
        if words == call.told {
            return;
        }
        call.told = words;
        match status {
            "working" if !said.is_empty() => plan.events.push(session.voice.progress(&said)),
            "input_required" => {
                let words = format!(
                    "{} needs something first. Answer in the program. {said} {}",
                    self.server, call.words
                );
                plan.events.push(session.voice.waits(&words));
            }
            "completed" | "failed" | "cancelled" => {
                let Some(call) = self.tasks.remove(id) else { return };
                let reply = match status {
                    "completed" => json!({ "result": task["result"] }),
                    "failed" if task["error"].is_object() => json!({ "error": task["error"] }),
                    "failed" => json!({ "error": { "message": said } }),
                    _ => json!({ "error": { "message": "It was cancelled." } }),
                };
                self.tell_ended(&call, &reply, plan);
            }
            _ => {}
        }
    }

    /// The server answers a request about a task: with how far it is, or with what came of it.
    pub(super) fn tell_task_answer(&mut self, id: &str, reply: &Value, plan: &mut McpPlan) {
        let result = &reply["result"];
        let task = task_in(result);
        if task["taskId"] == id {
            self.tell_task(task, plan);
        } else if result["content"].is_array()
            && let Some(call) = self.tasks.remove(id)
        {
            self.tell_ended(&call, reply, plan);
        }
    }
}

/// The task in a result. Revisions differ in where it is.
fn task_in(result: &Value) -> &Value {
    match result.get("task") {
        Some(task) => task,
        None => result,
    }
}

fn said_of(task: &Value) -> String {
    shortened_to(task["statusMessage"].as_str().unwrap_or_default(), MAX_SAID_CHARS)
}
