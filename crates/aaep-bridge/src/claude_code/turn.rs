//! A turn: how it begins, what is told in it, and how it ends.

use serde_json::json;

use super::HookHandler;
use super::permission::invoked;
use super::tools::ToolRequest;
use crate::event::{count, shortened, shortened_to};
use crate::memory::{PendingCall, TurnCounts};
use crate::tool_words::duration_words;

/// How much of a prompt is told when a turn begins.
const MAX_TOLD_PROMPT_CHARS: usize = 200;

/// The beginning of a prompt that the agent's program writes itself when a helper in the background is done.
const HELPER_IS_DONE: &str = "<task-notification>";

impl HookHandler<'_> {
    pub(super) fn begin_turn(&mut self) {
        if self.memory.turn.is_some() {
            self.abandon("It was interrupted by a new prompt.");
        }
        let turn = self.turn_name();
        self.memory.begin_turn(&turn, self.setup.now_ms);
        let prompt = self.call.text("prompt").trim();
        let words = if prompt.starts_with(HELPER_IS_DONE) {
            "Claude Code goes on, because a helper in the background is done.".to_owned()
        } else if prompt.is_empty() {
            "Claude Code begins.".to_owned()
        } else {
            format!("Claude Code begins: {}", shortened_to(prompt, MAX_TOLD_PROMPT_CHARS))
        };
        let voice = self.voice();
        self.emit(voice.started(&words));
        self.emit(voice.event("state.changed", json!({ "to_state": "thinking" })));
    }

    /// The name of the turn that the payload belongs to.
    fn turn_name(&self) -> String {
        let name = self.call.text("prompt_id");
        let name = if name.is_empty() { "turn" } else { name };
        match &self.memory.ended_turn {
            // The agent goes on with a prompt after its end, because another program's hook said so.
            Some(ended) if ended.starts_with(name) => format!("{ended}+"),
            _ => name.to_owned(),
        }
    }

    /// Finds the turn that the call belongs to. Returns false if there is nothing to tell about it.
    pub(super) fn find_turn(&mut self) -> bool {
        let name = self.call.text("prompt_id");
        let is_current = |turn: &String| name.is_empty() || turn.starts_with(name);
        if self.memory.turn.as_ref().is_some_and(is_current) {
            return true;
        }
        if matches!(
            self.call.event(),
            "MessageDisplay" | "Notification" | "SessionEnd" | "SubagentStop"
        ) && (name.is_empty() || self.memory.ended_turn.as_ref().is_some_and(is_current))
        {
            return false;
        }
        // Hooks that were added in the middle of a turn, or a turn whose beginning nobody told us.
        if self.memory.turn.is_some() {
            self.abandon("It was interrupted.");
        }
        let turn = self.turn_name();
        self.memory.begin_turn(&turn, self.setup.now_ms);
        let voice = self.voice();
        self.emit(voice.started(super::AT_WORK));
        true
    }

    /// Ends a turn whose end nobody told us.
    fn abandon(&mut self, words: &str) {
        self.withdraw_all();
        let event = self
            .voice()
            .event("session.cancelled", json!({ "cancelled_by": "user", "summary_normal": words }));
        self.emit(event);
        self.memory.end_turn();
    }

    fn withdraw_all(&mut self) {
        let open = std::mem::take(&mut self.memory.open_asks);
        self.plan.withdrawn.extend(open.into_values());
    }

    fn withdraw(&mut self, digest: &str) {
        self.plan.withdrawn.extend(self.memory.open_asks.remove(digest));
    }

    /// Tells how a tool ended.
    pub(super) fn after_tool(&mut self) {
        let (request, _) = self.tool_request();
        let id = self.call.text("tool_use_id").to_owned();
        self.withdraw(&request.digest);
        let pending = self.memory.pending.remove(&id);
        if request.is_question() {
            return;
        }
        let voice = self.voice();
        if !pending.as_ref().is_some_and(|it| it.is_told) {
            let how = if pending.is_some_and(|it| it.is_asked) {
                "Allowed in its own window."
            } else {
                "Without asking you."
            };
            let words = format!("{how} {}", request.sentence(self.project()));
            self.emit(invoked(&voice, &request, &id, &words, None));
        }
        let mut fields = json!({ "tool": request.name.as_str() });
        if !id.is_empty() {
            fields["tool_call_id"] = id.into();
        }
        if let Some(duration) = self.call.payload["duration_ms"].as_u64() {
            fields["duration_ms"] = duration.min(24 * 3600 * 1000).into();
        }
        self.memory.counts.tools += 1;
        if self.call.event() == "PostToolUseFailure" {
            self.memory.counts.failed += 1;
            let error = self.call.text("error");
            let error = if error.is_empty() { "It does not say why." } else { error };
            fields["status"] = "error".into();
            fields["error_message"] = shortened_to(error, 1000).into();
        } else {
            let (words, changed) =
                request.result(&self.call.payload["tool_response"], self.project());
            fields["status"] = "success".into();
            fields["summary_normal"] = shortened(&words).into();
            for path in changed {
                self.memory.note_changed(&path);
            }
        }
        self.emit(voice.event("tool.completed", fields));
    }

    /// Tells which tools of a batch did not run. They have no hook of their own, only an answer here.
    pub(super) fn after_batch(&mut self) {
        for tool in self.call.payload["tool_calls"].as_array().into_iter().flatten() {
            let id = tool["tool_use_id"].as_str().unwrap_or_default();
            let digest = ToolRequest::new(
                tool["tool_name"].as_str().unwrap_or_default(),
                &tool["tool_input"],
            )
            .digest;
            self.withdraw(&digest);
            if let Some(call) = self.memory.pending.remove(id) {
                let reason = tool["tool_response"].as_str().unwrap_or_default();
                self.tell_not_run(id, &call, reason);
            }
        }
    }

    fn tell_not_run(&mut self, id: &str, call: &PendingCall, reason: &str) {
        self.memory.counts.not_run += 1;
        let reason = shortened_to(reason, 300);
        let voice = self.voice();
        let event = if call.is_told {
            let fields = json!({
                "tool": call.tool,
                "tool_call_id": id,
                "status": "error",
                "error_message": format!("It was not run. {reason}"),
            });
            voice.event("tool.completed", fields)
        } else {
            voice.progress(&format!("Was not run. {} {reason}", call.words))
        };
        self.emit(event);
    }

    /// Tells that the agent's own rules or a model denied a tool.
    pub(super) fn tell_denied(&mut self) {
        let (request, _) = self.tool_request();
        let words = request.sentence(self.project());
        let event = self.voice().progress(&format!("Denied without asking you. {words}"));
        self.emit(event);
    }

    pub(super) fn tell_text(&mut self) {
        let payload = &self.call.payload;
        let index = payload["index"].as_u64().unwrap_or(0);
        let is_last = payload["final"].as_bool() == Some(true);
        let piece = (index, self.call.text("delta"), is_last);
        let voice = self.voice();
        let events = self.memory.take_piece(&voice, self.call.text("message_id"), piece);
        self.plan.events.extend(events);
    }

    /// Tells that the agent waits where we cannot answer. Its own dialogs that we answer too are known already.
    pub(super) fn tell_notification(&mut self) {
        let is_needed = matches!(
            self.call.text("notification_type"),
            "permission_prompt" | "agent_needs_input" | "elicitation_dialog"
        );
        if !is_needed || !self.memory.open_asks.is_empty() {
            return;
        }
        let message = shortened_to(self.call.text("message"), 500);
        let words = format!(
            "Claude Code waits for you in its own window, and cannot be answered from here. It says: {message}"
        );
        let event = self.voice().waits(&words);
        self.emit(event);
    }

    pub(super) fn tell_helper(&mut self) {
        let kind = self.call.text("agent_type");
        let kind =
            if kind.is_empty() { "without a name".to_owned() } else { shortened_to(kind, 80) };
        let words = if self.call.event() == "SubagentStart" {
            format!("A helper begins: {kind}.")
        } else {
            format!("A helper is done: {kind}.")
        };
        let event = self.voice().progress(&words);
        self.emit(event);
    }

    pub(super) fn end_turn(&mut self) {
        let voice = self.voice();
        let said = self.memory.finish_message(&voice, self.call.text("last_assistant_message"));
        self.plan.events.extend(said);
        let running = self.call.payload["background_tasks"].as_array().map_or(0, Vec::len);
        if running > 0 {
            let words =
                format!("Goes on in the background with {}.", count(running as u64, "task"));
            self.emit(voice.progress(&words));
            return;
        }
        self.withdraw_all();
        let took_ms = self.setup.now_ms.saturating_sub(self.memory.turn_began_ms).max(0);
        let counts = self.memory.end_turn();
        let mut fields = json!({
            "summary_normal": ended_words(&counts, took_ms),
            "tool_invocations_count": counts.tools,
        });
        if let Ok(took_ms) = u64::try_from(took_ms) {
            fields["duration_ms"] = took_ms.min(24 * 3600 * 1000).into();
        }
        self.emit(voice.event("session.completed", fields));
    }

    pub(super) fn fail_turn(&mut self) {
        let voice = self.voice();
        self.withdraw_all();
        let reason = ["error", "message", "reason"]
            .into_iter()
            .map(|field| self.call.text(field))
            .find(|it| !it.is_empty());
        let words = match reason {
            Some(reason) => {
                format!("It stopped because of an error: {}", shortened_to(reason, 500))
            }
            None => "It stopped because of an error.".to_owned(),
        };
        self.memory.end_turn();
        let fields = json!({ "error_category": "unknown", "summary_normal": words });
        self.emit(voice.event("session.errored", fields));
    }

    /// The agent was closed. If a turn was going on, nobody tells its end otherwise.
    pub(super) fn close(&mut self) {
        if self.memory.turn.is_some() {
            self.abandon("It was closed in the middle of its work.");
            self.plan.opening = None;
        }
    }
}

/// The end of a turn: what ran, what did not, what changed.
fn ended_words(counts: &TurnCounts, took_ms: i64) -> String {
    let mut parts = Vec::new();
    if counts.tools > 0 {
        parts.push(format!("{} used", count(counts.tools, "tool")));
    }
    if counts.failed > 0 {
        parts.push(format!("{} failed", counts.failed));
    }
    if counts.not_run > 0 {
        parts.push(format!("{} not run", counts.not_run));
    }
    match counts.changed_files.as_slice() {
        [] => {}
        [one] => parts.push(format!("changed {one}")),
        [one, two] => parts.push(format!("changed {one} and {two}")),
        [one, two, rest @ ..] => {
            parts.push(format!(
                "changed {one}, {two} and {}",
                count(rest.len() as u64, "other file")
            ));
        }
    }
    let took = duration_words(took_ms);
    if parts.is_empty() {
        format!("Done after {took}.")
    } else {
        format!("Done after {took}: {}.", parts.join(", "))
    }
}
