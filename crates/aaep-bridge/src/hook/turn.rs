//! A turn: how it begins, what is told in it, and how it ends.

use serde_json::{Value, json};

use super::HookHandler;
use super::permission::{accepted, call_key, invoked};
use crate::dialect::{AgentStep, ToolEnding, ToolUse};
use crate::event::{count, shortened, shortened_to};
use crate::memory::{PendingCall, TurnCounts, completed_event, not_run_event};
use crate::risk::RiskGrade;
use crate::tool_words::duration_words;
use crate::tools::ToolRequest;

/// The longest folder that is remembered.
const MAX_FOLDER_CHARS: usize = 4096;

/// How much of a prompt is told when a turn begins.
const MAX_TOLD_PROMPT_CHARS: usize = 200;

impl HookHandler<'_> {
    pub(super) fn begin_turn(&mut self, prompt: &str) {
        let prompt = prompt.trim();
        let turn = &self.call.message.turn;
        let is_again = !turn.is_empty() && self.memory.turn.as_ref() == Some(turn);
        if prompt.is_empty() && is_again {
            // Some agents report an empty prompt in the middle of a turn.
            return;
        }
        let name = self.dialect.name();
        let words = if prompt.is_empty() {
            format!("{name} begins.")
        } else {
            format!("{name} begins: {}", shortened_to(prompt, MAX_TOLD_PROMPT_CHARS))
        };
        self.begin_with(&words);
    }

    /// A turn that no person began.
    pub(super) fn continue_turn(&mut self) {
        let name = self.call.message.turn.as_str();
        if self.memory.turn.as_ref().is_some_and(|it| it.starts_with(name)) {
            // It comes in the middle of the turn too, or after an end that waits for helpers.
            self.plan.opening = Some(self.voice().started(&self.at_work()));
            let words = "Goes on, because a helper in the background is done.";
            self.emit(self.voice().progress(words));
            return;
        }
        let name = self.dialect.name();
        self.begin_with(&format!("{name} goes on, because a helper in the background is done."));
    }

    fn begin_with(&mut self, words: &str) {
        if self.memory.waits_for_helpers {
            self.complete_turn();
        } else if self.memory.turn.is_some() {
            self.abandon("It was interrupted by a new prompt.");
        }
        let turn = self.turn_name();
        self.memory.begin_turn(&turn, self.setup.now_ms);
        let folder: String = self.call.message.folder.chars().take(MAX_FOLDER_CHARS).collect();
        self.memory.project = Some(folder).filter(|it| !it.is_empty());
        let voice = self.voice();
        self.emit(voice.started(words));
        self.emit(voice.event("state.changed", json!({ "to_state": "thinking" })));
    }

    /// The name of the turn that the payload belongs to.
    fn turn_name(&self) -> String {
        let name = self.call.message.turn.as_str();
        if name.is_empty() {
            return format!("turn-{}", self.setup.now_ms);
        }
        match &self.memory.ended_turn {
            // The agent goes on with a prompt after its end, because another program's hook said so.
            Some(ended) if ended.starts_with(name) => format!("{ended}+"),
            _ => name.to_owned(),
        }
    }

    /// Finds the turn that the call belongs to. Returns false if there is nothing to tell about it.
    pub(super) fn find_turn(&mut self) -> bool {
        let name = self.call.message.turn.as_str();
        let is_current = |turn: &String| name.is_empty() || turn.starts_with(name);
        if self.memory.turn.as_ref().is_some_and(is_current) {
            return true;
        }
        let comes_late = matches!(
            self.call.message.step,
            AgentStep::Text { .. }
                | AgentStep::Waits(_)
                | AgentStep::Closed
                | AgentStep::Stopped
                | AgentStep::HelperEnded(_)
                | AgentStep::Unknown
        );
        let is_ended = self.memory.ended_turn.as_ref().is_some_and(is_current);
        if comes_late && (name.is_empty() || is_ended) {
            return false;
        }
        // Hooks that were added in the middle of a turn, or a turn whose beginning nobody told us.
        if self.memory.turn.is_some() {
            self.abandon("It was interrupted.");
        }
        let turn = self.turn_name();
        self.memory.begin_turn(&turn, self.setup.now_ms);
        let voice = self.voice();
        self.emit(voice.started(&self.at_work()));
        true
    }

    /// Ends a turn whose end nobody told us.
    pub(super) fn abandon(&mut self, words: &str) {
        self.withdraw_all();
        self.tell_without_end();
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

    pub(super) fn withdraw(&mut self, digest: &str) {
        self.plan.withdrawn.extend(self.memory.open_asks.remove(digest));
    }

    /// Tells how a tool ended.
    pub(super) fn after_tool(&mut self, tool: &ToolUse, ending: &ToolEnding) {
        let (request, verdict) = self.judge(tool);
        self.withdraw(&request.digest);
        self.memory.earlier.remove(&request.digest);
        let pending = self.memory.pending.remove(&call_key(tool, &request));
        let was_refused = self.memory.refused.remove(&call_key(tool, &request));
        // An agent can report a tool that was kept from running as one that failed.
        if request.is_question() || (was_refused && ending.failure.is_some()) {
            return;
        }
        let voice = self.voice();
        // The call of this id was told to be over.
        let id = if was_refused { "" } else { tool.id.as_str() };
        match &pending {
            Some(call) if call.is_told => {}
            _ if was_refused => {
                let words =
                    format!("It ran although it was refused. {}", request.sentence(self.project()));
                self.emit(invoked(&voice, &request, id, &words, None));
            }
            _ if ending.may_not_have_run => {
                self.tell_failed_or_not_run(&request, ending);
                return;
            }
            Some(call) if call.is_accepted => {
                self.emit(accepted(&voice, &request, &verdict, &tool.id, self.project()));
            }
            other => {
                let words = self.how_it_ran(other.as_ref(), &request);
                let mut event = invoked(&voice, &request, &tool.id, &words, None);
                let is_unasked = !other.as_ref().is_some_and(|it| it.is_asked);
                if is_unasked && verdict.grade >= RiskGrade::Risky {
                    // Otherwise it can be left out as a small step when the turn ends at once.
                    event["urgency"] = "critical".into();
                }
                self.emit(event);
            }
        }
        let mut fields = json!({ "tool": request.name.as_str() });
        if !id.is_empty() {
            fields["tool_call_id"] = id.into();
        }
        if let Some(duration) = ending.duration_ms {
            fields["duration_ms"] = duration.min(24 * 3600 * 1000).into();
        }
        self.memory.counts.tools += 1;
        if let Some(error) = &ending.failure {
            self.memory.counts.failed += 1;
            let error = error.trim();
            let error = if error.is_empty() { "It does not say why." } else { error };
            fields["status"] = "error".into();
            fields["error_message"] = shortened_to(error, 1000).into();
        } else {
            let (words, changed) = request.result(ending, self.project());
            fields["status"] = "success".into();
            fields["summary_normal"] = shortened(&words).into();
            for path in changed {
                self.memory.note_changed(&path);
            }
        }
        self.emit(voice.event("tool.completed", fields));
    }

    /// Tells of a tool that failed or was kept from running; the agent does not say which.
    fn tell_failed_or_not_run(&mut self, request: &ToolRequest, ending: &ToolEnding) {
        self.memory.counts.failed += 1;
        let reason = shortened_to(ending.failure.as_deref().unwrap_or_default(), 300);
        let words = request.sentence(self.project());
        let event = self.voice().progress(&format!("Failed, or was not run. {words} {reason}"));
        self.emit(event);
    }

    /// What a tool did that was not told before, and who allowed it, as far as that is known.
    fn how_it_ran(&self, call: Option<&PendingCall>, request: &ToolRequest) -> String {
        let sentence = request.sentence(self.project());
        if call.is_some_and(|it| it.is_asked) {
            format!("Allowed in its own window. {sentence}")
        } else if self.dialect.gate().reports_dialogs {
            format!("Without asking you. {sentence}")
        } else {
            sentence
        }
    }

    /// Tells which tools of a batch did not run. They have no hook of their own, only an answer here.
    pub(super) fn after_batch(&mut self, tools: &[(ToolUse, String)]) {
        for (tool, reason) in tools {
            let (request, _) = self.judge(tool);
            self.withdraw(&request.digest);
            if let Some(call) = self.memory.pending.remove(&call_key(tool, &request)) {
                self.tell_not_run(&call, reason);
            }
        }
    }

    fn tell_not_run(&mut self, call: &PendingCall, reason: &str) {
        self.memory.counts.not_run += 1;
        let reason = shortened_to(reason, 300);
        let voice = self.voice();
        let event = if call.is_told {
            not_run_event(&voice, call, &reason)
        } else {
            voice.progress(&format!("Was not run. {} {reason}", call.words))
        };
        self.emit(event);
    }

    /// Tells which tools have no end. Whether they ran is not known.
    fn tell_without_end(&mut self) {
        let voice = self.voice();
        for call in std::mem::take(&mut self.memory.pending).into_values() {
            self.memory.counts.without_end += 1;
            let words = &call.words;
            self.emit(if call.is_told {
                let reason = format!("How this ended was not reported. {words}");
                completed_event(&voice, &call, "timeout", &reason)
            } else if call.is_accepted {
                voice.progress(&format!(
                    "You allowed this, and it was not reported whether it ran. {words}"
                ))
            } else {
                voice.progress(&format!("It was not reported that this ran. {words}"))
            });
        }
    }

    /// Tells that the agent's own rules or a model denied a tool.
    pub(super) fn tell_denied(&mut self, tool: &ToolUse) {
        let (request, _) = self.judge(tool);
        let words = request.sentence(self.project());
        let event = self.voice().progress(&format!("Denied without asking you. {words}"));
        self.emit(event);
    }

    pub(super) fn tell_text(&mut self, message: &str, piece: (u64, &str, bool)) {
        let voice = self.voice();
        let events = self.memory.take_piece(&voice, message, piece);
        self.plan.events.extend(events);
    }

    /// Tells that the agent waits where we cannot answer. Its own dialogs that we answer too are known already.
    pub(super) fn tell_waits(&mut self, message: &str) {
        if !self.memory.open_asks.is_empty() {
            return;
        }
        let message = shortened_to(message, 500);
        let words = format!(
            "{} waits for you in its own window, and cannot be answered from here. It says: {message}",
            self.dialect.name()
        );
        let event = self.voice().waits(&words);
        self.emit(event);
    }

    pub(super) fn tell_helper(&mut self, what: &str, kind: &str) {
        let kind =
            if kind.is_empty() { "without a name".to_owned() } else { shortened_to(kind, 80) };
        let event = self.voice().progress(&format!("A helper {what}: {kind}."));
        self.emit(event);
    }

    pub(super) fn tell_trouble(&mut self, error: &str) {
        let words = format!("It met an error: {}", shortened_to(error, 300));
        let event = self.voice().progress(&words);
        self.emit(event);
    }

    pub(super) fn end_turn(&mut self, last: &str, running: usize) {
        let voice = self.voice();
        let said = self.memory.finish_message(&voice, last);
        self.plan.events.extend(said);
        if running > 0 {
            let words =
                format!("Goes on in the background with {}.", count(running as u64, "task"));
            self.emit(voice.progress(&words));
            self.memory.waits_for_helpers = true;
            return;
        }
        self.complete_turn();
    }

    /// Tells that the turn is done.
    fn complete_turn(&mut self) {
        let voice = self.voice();
        self.withdraw_all();
        self.tell_without_end();
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

    pub(super) fn fail_turn(&mut self, reason: &str) {
        self.withdraw_all();
        self.tell_without_end();
        let words = if reason.is_empty() {
            "It stopped because of an error.".to_owned()
        } else {
            format!("It stopped because of an error: {}", shortened_to(reason, 500))
        };
        let fields: Value = json!({ "error_category": "unknown", "summary_normal": words });
        let event = self.voice().event("session.errored", fields);
        self.memory.end_turn();
        self.emit(event);
    }

    /// The agent was closed. If a turn was going on, nobody tells its end otherwise.
    pub(super) fn close(&mut self) {
        if self.memory.turn.is_some() && !self.memory.has_left_open(self.setup.now_ms) {
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
    for (number, what) in [
        (counts.failed, "failed"),
        (counts.not_run, "not run"),
        (counts.without_end, "without a reported end"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
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
    if counts.unknown > 0 {
        parts
            .push(format!("{} of a form that is not known here", count(counts.unknown, "message")));
    }
    let took = duration_words(took_ms);
    if parts.is_empty() {
        format!("Done after {took}.")
    } else {
        format!("Done after {took}: {}.", parts.join(", "))
    }
}
