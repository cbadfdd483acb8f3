//! A turn: how it begins, what is told in it, and how it ends.

use serde_json::{Value, json};

use super::session::{AcpSession, AcpTurn};
use super::tool_call::{CallDecision, exit_code, output_of};
use super::{AcpBridge, AcpPlan, AcpSetup};
use crate::event::{count, shortened_to};
use crate::request_id::RequestId;
use crate::risk::RiskGrade;
use crate::tool_words::{duration_words, within};

/// How much of a prompt is told when a turn begins.
const MAX_TOLD_PROMPT_CHARS: usize = 200;

/// How a tool call ended, as the agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Completed,
    Failed,
}

impl AcpBridge {
    /// A prompt begins a turn, or is added to the one that is going on.
    pub(super) fn begin_turn(
        &mut self,
        session: &str,
        id: &RequestId,
        prompt: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        if !self.is_understood {
            return;
        }
        let words = shortened_to(&prompt_words(prompt), MAX_TOLD_PROMPT_CHARS);
        if let Some(turn) = self.turn(session).filter(|it| !it.prompts.is_empty()) {
            if turn.add_prompt(id.clone()) {
                plan.events.push(turn.voice.progress(&format!("You add: {words}")));
            }
            return;
        }
        // A turn that the agent began by itself ends here.
        self.complete_turn(session, "end_turn", setup, plan);
        let Some(voice) = self.open_turn(session, setup.now_ms) else { return };
        let summary = if words.is_empty() {
            format!("{} begins.", voice.agent_name)
        } else {
            format!("{} begins: {words}", voice.agent_name)
        };
        plan.events.push(voice.started(&summary));
        plan.events.push(voice.event("state.changed", json!({ "to_state": "thinking" })));
        if let Some(mode) = self.session(session).and_then(AcpSession::untold_mode) {
            plan.events.push(voice.progress(&mode));
        }
        if let Some(turn) = self.turn(session) {
            turn.add_prompt(id.clone());
        }
    }

    /// The agent answers a prompt, which ends the turn when no other prompt waits.
    pub(super) fn end_prompt(
        &mut self,
        session: &str,
        id: &RequestId,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let Some(turn) = self.turn(session) else { return };
        if !turn.prompts.remove(id) || !turn.prompts.is_empty() {
            return;
        }
        if let Some(error) = message.get("error") {
            let why = shortened_to(error["message"].as_str().unwrap_or_default(), 500);
            let why = if why.is_empty() { "It does not say why.".to_owned() } else { why };
            self.break_turn(session, &format!("It stopped because of an error. {why}"), plan);
        } else {
            let reason = message["result"]["stopReason"].as_str().unwrap_or("end_turn");
            self.complete_turn(session, reason, setup, plan);
        }
    }

    /// Ends a turn for a reason of the protocol.
    fn complete_turn(
        &mut self,
        session: &str,
        reason: &str,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let Some(mut turn) = self.take_turn(session, plan) else { return };
        turn.tell_without_end(plan);
        let words = turn.ended_words(setup.now_ms);
        let stopped = match reason {
            "end_turn" => None,
            "cancelled" => {
                let took = turn.took_ms(setup.now_ms);
                let took = duration_words(i64::try_from(took).unwrap_or(i64::MAX));
                let fields = json!({
                    "cancelled_by": "user", "summary_normal": format!("It was stopped after {took}."),
                });
                plan.events.push(turn.voice.event("session.cancelled", fields));
                return;
            }
            "max_tokens" => {
                Some("It stopped in the middle, because the model had no more room for words.")
            }
            "max_turn_requests" => Some(
                "It stopped in the middle, because it reached its limit of steps for one turn.",
            ),
            "refusal" => Some("It refuses to go on with this."),
            _ => Some("It stopped for a reason of its own."),
        };
        match stopped {
            None => {
                let fields = json!({
                    "summary_normal": words,
                    "tool_invocations_count": turn.tools,
                    "duration_ms": turn.took_ms(setup.now_ms),
                });
                plan.events.push(turn.voice.event("session.completed", fields));
            }
            Some(stopped) => {
                let fields = json!({
                    "error_category": "unknown", "summary_normal": format!("{stopped} {words}"),
                });
                plan.events.push(turn.voice.event("session.errored", fields));
            }
        }
    }

    /// Ends a turn that did not end by itself.
    fn break_turn(&mut self, session: &str, words: &str, plan: &mut AcpPlan) {
        let Some(mut turn) = self.take_turn(session, plan) else { return };
        turn.tell_without_end(plan);
        let fields = json!({ "error_category": "unknown", "summary_normal": words });
        plan.events.push(turn.voice.event("session.errored", fields));
    }

    fn take_turn(&mut self, session: &str, plan: &mut AcpPlan) -> Option<AcpTurn> {
        self.stop_asking(session, plan);
        self.close_menus(plan, |it| it.session == session);
        self.permissions.retain(|_, it| it.session != session);
        self.elicitations.retain(|_, it| it != session);
        self.session(session)?.turn.take()
    }

    /// The agent or its editor is gone. Every turn that is going on ends with these words.
    pub fn end(&mut self, words: &str) -> AcpPlan {
        let mut plan = AcpPlan::default();
        self.late.clear();
        let sessions: Vec<String> = self.sessions.iter().map(|it| it.id.clone()).collect();
        for session in sessions {
            self.break_turn(&session, words, &mut plan);
        }
        plan
    }

    /// What the agent tells about its work.
    pub(super) fn hear_update(&mut self, params: &Value, setup: &AcpSetup<'_>, plan: &mut AcpPlan) {
        let name = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let update = &params["update"];
        let Some(session) = self.session(&name) else { return };
        if session.is_loading {
            return;
        }
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "current_mode_update" => {
                session.set_mode(update["currentModeId"].as_str().unwrap_or_default());
            }
            "config_option_update" => session.read_options(&update["configOptions"]),
            _ => {}
        }
        let mode = if session.turn.is_some() { session.untold_mode() } else { None };
        let folder = session.folder.clone();
        let Some(turn) = &mut session.turn else { return };
        if let Some(mode) = mode {
            plan.events.extend(turn.end_text());
            plan.events.push(turn.voice.progress(&mode));
        }
        match kind {
            "agent_message_chunk" => tell_chunk(turn, update, plan),
            "plan" => tell_plan(turn, &update["entries"], plan),
            "tool_call" | "tool_call_update" => {
                let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
                let Some(at) = turn.call_at(&call) else { return };
                if let Some(known) = turn.call(at) {
                    // Nothing is told of a call that has ended, unless it ran although it was denied.
                    if known.has_ended && known.decision != CallDecision::Denied {
                        return;
                    }
                    known.merge(update);
                }
                self.check_shown(&name, &call, setup, plan);
                match update["status"].as_str() {
                    Some("in_progress") => self.tell_begun(&name, &folder, at, setup, plan),
                    Some("completed") => {
                        self.tell_ended(&name, at, update, CallEnd::Completed, setup, plan);
                    }
                    Some("failed") => {
                        self.tell_ended(&name, at, update, CallEnd::Failed, setup, plan);
                    }
                    // Agents that are followed say so; it is not in the protocol.
                    Some("declined") => self.tell_declined(&name, at, plan),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The agent says that a tool runs. Agents also say so just before they ask.
    fn tell_begun(
        &mut self,
        session: &str,
        folder: &str,
        at: usize,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let Some(turn) = self.turn(session) else { return };
        let Some(call) = turn.call(at) else { return };
        let is_told = call.told_as.is_some() || call.is_announced || call.has_ended;
        if is_told || call.decision != CallDecision::Open || !call.is_known() {
            return;
        }
        let verdict = call.judge(setup.table, folder);
        let words = call.sentence(folder);
        if verdict.grade >= RiskGrade::Risky {
            call.is_announced = true;
            plan.events.extend(turn.end_text());
            plan.events.push(turn.voice.progress(&format!("Is about to act. {verdict} {words}")));
        } else {
            tell_invoked(turn, at, &words, json!({ "risk_level": "low" }), plan);
        }
    }

    /// The agent says that a tool ended.
    fn tell_ended(
        &mut self,
        session: &str,
        at: usize,
        update: &Value,
        end: CallEnd,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let folder = self.folder(session);
        let Some(turn) = self.turn(session) else { return };
        let Some(call) = turn.call(at) else { return };
        let id = call.id.clone();
        if call.decision == CallDecision::Denied {
            if end == CallEnd::Completed {
                self.tell_ran_anyway(session, at, update, plan);
            }
            return;
        }
        let words = call.sentence(&folder);
        if call.told_as.is_none() && end == CallEnd::Failed && exit_code(update).is_none() {
            // Whether it began is not known.
            let why = failure_words(update);
            call.end();
            turn.failed += 1;
            plan.events.extend(turn.end_text());
            plan.events
                .push(turn.voice.progress(&format!("Failed, or was not run. {words} {why}")));
            self.forget_call(session, &id, plan);
            return;
        }
        let is_other = call.allowed.as_ref().is_some_and(|it| {
            !it.contains(&crate::risk::AgentAction::Unknown) && *it != call.actions()
        });
        if call.told_as.is_none() {
            let verdict = call.judge(setup.table, &folder);
            let is_change = verdict.grade > RiskGrade::Reads;
            let how = if is_change { "Without asking you. " } else { "" };
            let fields = if verdict.grade >= RiskGrade::Risky && !call.is_asked {
                // Otherwise it can be left out as a small step when the turn ends at once.
                json!({ "urgency": "critical" })
            } else {
                json!({})
            };
            tell_invoked(turn, at, &format!("{how}{words}"), fields, plan);
        } else if is_other {
            let event = turn.voice.progress(&format!("What ran is not what was allowed. {words}"));
            plan.events.push(event);
        }
        tell_completed(turn, at, update, end, &folder, plan);
        self.forget_call(session, &id, plan);
    }

    /// The agent says that a tool was not run.
    fn tell_declined(&mut self, session: &str, at: usize, plan: &mut AcpPlan) {
        let folder = self.folder(session);
        let Some(turn) = self.turn(session) else { return };
        let Some(call) = turn.call(at) else { return };
        if call.decision != CallDecision::Denied {
            call.decision = CallDecision::Denied;
            turn.tell_not_run(at, "It was declined.", &folder, plan);
        }
    }

    /// The agent says that it did what was denied. The person has to know.
    fn tell_ran_anyway(&mut self, session: &str, at: usize, update: &Value, plan: &mut AcpPlan) {
        let folder = self.folder(session);
        let Some(turn) = self.turn(session) else { return };
        let Some(call) = turn.call(at) else { return };
        let words = format!("Ran, although it was not allowed. {}", call.sentence(&folder));
        call.decision = CallDecision::Open;
        // If it was told before, that call was told not to have run.
        call.own_id.push('+');
        (call.told_as, call.is_told_over) = (None, false);
        tell_invoked(turn, at, &words, json!({ "urgency": "critical" }), plan);
        tell_completed(turn, at, update, CallEnd::Completed, &folder, plan);
    }
}

impl AcpTurn {
    /// Ends what has not ended: a text, and tools that were told to run and whose end was not reported.
    fn tell_without_end(&mut self, plan: &mut AcpPlan) {
        plan.events.extend(self.end_text());
        let voice = self.voice.clone();
        for call in self.calls_without_end() {
            let Some(tool) = call.told_as.clone() else { continue };
            let words = "It was not reported how it ended.";
            let fields = json!({ "tool": tool, "tool_call_id": call.own_id, "status": "error",
                "error_message": words });
            plan.events.push(voice.event("tool.completed", fields));
            call.end();
        }
    }

    /// Tells that a tool does not run.
    pub(super) fn tell_not_run(&mut self, at: usize, how: &str, folder: &str, plan: &mut AcpPlan) {
        plan.events.extend(self.end_text());
        self.not_run += 1;
        let voice = self.voice.clone();
        let Some(call) = self.call(at) else { return };
        if let Some(tool) = call.told_as.clone() {
            call.is_told_over = true;
            let words = format!("It was not run. {how}");
            let fields = json!({ "tool": tool, "tool_call_id": call.own_id, "status": "error",
                "error_message": words.trim() });
            plan.events.push(voice.event("tool.completed", fields));
        } else {
            let how = if how.is_empty() { String::new() } else { format!(" {how}") };
            let words = format!("Was not run.{how} {}", call.sentence(folder));
            plan.events.push(voice.progress(&words));
        }
    }
}

/// Tells that a tool runs.
pub(super) fn tell_invoked(
    turn: &mut AcpTurn,
    at: usize,
    words: &str,
    more: Value,
    plan: &mut AcpPlan,
) {
    plan.events.extend(turn.end_text());
    let voice = turn.voice.clone();
    let Some(call) = turn.call(at) else { return };
    let tool = call.tool_name().as_str().to_owned();
    let mut fields = json!({
        "tool": tool, "tool_call_id": call.own_id, "summary_normal": crate::event::shortened(words),
    });
    call.told_as = Some(tool);
    let digest = more["action_digest"].as_str().map(str::to_owned);
    if let Value::Object(more) = more {
        let more = more.into_iter().filter(|(name, _)| name != "action_digest");
        more.for_each(|(name, value)| fields[name] = value);
    }
    plan.events.push(match digest {
        Some(digest) => voice.extended("tool.invoked", fields, json!({ "action_digest": digest })),
        None => voice.event("tool.invoked", fields),
    });
}

fn tell_completed(
    turn: &mut AcpTurn,
    at: usize,
    update: &Value,
    end: CallEnd,
    folder: &str,
    plan: &mut AcpPlan,
) {
    plan.events.extend(turn.end_text());
    turn.tools += 1;
    let Some(call) = turn.call(at) else { return };
    let Some(tool) = call.told_as.clone() else { return };
    let mut fields = json!({ "tool": tool, "tool_call_id": call.own_id });
    let (words, changed) = call.result(update, folder);
    call.end();
    if end == CallEnd::Failed {
        fields["status"] = "error".into();
        fields["error_message"] = failure_words(update).into();
        turn.failed += 1;
    } else {
        fields["status"] = "success".into();
        fields["summary_normal"] = words.into();
        for path in changed {
            turn.note_changed(path);
        }
    }
    plan.events.push(turn.voice.event("tool.completed", fields));
}

fn failure_words(update: &Value) -> String {
    let why = shortened_to(&output_of(update), 1000);
    match exit_code(update) {
        _ if !why.is_empty() => why,
        Some(code) => format!("It ended with exit code {code}."),
        None => "It does not say why.".to_owned(),
    }
}

/// Tells what the agent writes to the person.
fn tell_chunk(turn: &mut AcpTurn, update: &Value, plan: &mut AcpPlan) {
    let content = &update["content"];
    match content["type"].as_str() {
        Some("text") => {
            let message = update["messageId"].as_str().unwrap_or_default();
            plan.events.extend(turn.say(message, content["text"].as_str().unwrap_or_default()));
        }
        Some(kind) => {
            plan.events.extend(turn.end_text());
            plan.events.push(turn.voice.progress(&format!("Shows {}.", block_words(kind))));
        }
        None => {}
    }
}

/// Tells how far the agent is with its plan, if that changed.
fn tell_plan(turn: &mut AcpTurn, entries: &Value, plan: &mut AcpPlan) {
    let Some(entries) = entries.as_array().filter(|it| !it.is_empty()) else { return };
    let done = entries.iter().filter(|it| it["status"] == "completed").count();
    let current = entries.iter().find(|it| it["status"] == "in_progress");
    let next = current.or_else(|| entries.iter().find(|it| it["status"] == "pending"));
    let steps = count(entries.len() as u64, "step");
    let words = match next.and_then(|it| it["content"].as_str()) {
        Some(content) => {
            format!("Its plan: {done} of {steps} done. Now: {}", shortened_to(content, 300))
        }
        None => format!("Its plan: {done} of {steps} done."),
    };
    if words != turn.plan {
        plan.events.extend(turn.end_text());
        plan.events.push(turn.voice.progress(&words));
        turn.plan = words;
    }
}

/// A prompt in words.
fn prompt_words(prompt: &Value) -> String {
    let blocks = prompt.as_array().into_iter().flatten();
    let parts = blocks.map(|block| match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap_or_default().trim().to_owned(),
        Some("resource_link") => {
            let name = block["name"].as_str().or(block["uri"].as_str()).unwrap_or_default();
            within(name, "").to_owned()
        }
        Some(kind) => format!("({})", block_words(kind)),
        None => String::new(),
    });
    parts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

fn block_words(kind: &str) -> &'static str {
    match kind {
        "image" => "an image",
        "audio" => "a sound",
        "resource" | "resource_link" => "a file",
        _ => "something that is not text",
    }
}
