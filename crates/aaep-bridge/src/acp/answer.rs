//! Permission requests: put to the person here and in the editor at the same time, and answered exactly once.

use serde_json::{Value, json};

use super::menu::{AcpMenuEnding, AcpPlace};
use super::permission::{OpenPermission, PermissionOption, PermissionOptions, question};
use super::tool_call::CallDecision;
use super::turn::tell_invoked;
use super::wire::{cancel_request, cancel_session, cancelled, selected};
use super::{AcpBridge, AcpForward, AcpPlan, AcpSetup};
use super::{MAX_LATE_ANSWERS, MAX_PERMISSIONS};
use crate::event::shortened_to;
use crate::gate::AskAnswer;
use crate::policy::AskPolicy;
use crate::proxy_ask::{ProxyAsk, ProxyAskNumber};
use crate::request_id::RequestId;

/// Where and how a permission request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPlace {
    /// In the editor, or in the chat.
    Front,
    /// Here, by yes or no.
    Confirmation,
    /// Here, by a choice.
    Choice,
}

impl AcpBridge {
    /// The agent asks for permission. The editor is asked as well.
    pub(super) fn ask_permission(
        &mut self,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if self.place == AcpPlace::Chat {
            plan.forward = AcpForward::Nothing;
        }
        let Some(id) = RequestId::of(&message["id"]) else { return };
        if self.late.contains(&id) {
            // The editor's late answer to the question before could be taken for the answer to this one.
            plan.forward = AcpForward::Nothing;
            plan.to_agent.push(cancelled(&message["id"]));
            plan.notice = Some(format!(
                "{} asked again under a number that is still open in {}. It was told that nobody answers.",
                self.agent_name,
                self.window()
            ));
            return;
        }
        if self.permissions.contains_key(&id) {
            // Nobody can say which of the two an answer means, so only the editor answers.
            self.forget_permission(&id, plan);
            if self.place == AcpPlace::Chat {
                plan.to_agent.push(cancelled(&message["id"]));
            }
            return;
        }
        if self.session(&session).is_none_or(|it| it.turn.is_none()) {
            let Some(voice) = self.open_turn(&session, setup.now_ms) else {
                self.refuse_unput(&message["id"], plan);
                return;
            };
            plan.events.push(voice.started(&format!("{} is at work.", voice.agent_name)));
        }
        self.put_permission(&id, &session, message, setup, plan);
    }

    /// Puts a permission request to the person, or tells it if only the editor can be answered.
    fn put_permission(
        &mut self,
        id: &RequestId,
        session: &str,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let params = &message["params"];
        let (folder, place) = (self.folder(session), self.place);
        let is_tracked = self.permissions.len() < MAX_PERMISSIONS
            && self.late.len() + self.permissions.len() < MAX_LATE_ANSWERS;
        let number = self.next_ask();
        let (name, window) = (self.agent_name.clone(), self.window());
        let Some(turn) = self.turn(session) else { return };
        plan.events.extend(turn.end_text());
        let voice = turn.voice.clone();
        let call = params["toolCall"]["toolCallId"].as_str().unwrap_or_default().to_owned();
        let at = turn.call_at(&call).filter(|_| is_tracked);
        let Some(known) = at.and_then(|it| turn.call(it)) else {
            plan.events.push(voice.waits(&format!("{name} asks in {window}. Answer there.")));
            self.refuse_unput(&message["id"], plan);
            return;
        };
        known.merge(&params["toolCall"]);
        known.is_asked = true;
        let verdict = known.judge(setup.table, &folder);
        let options = PermissionOptions::read(&params["options"]);
        let asked = options
            .as_ref()
            .filter(|_| setup.policy != AskPolicy::Tell)
            .and_then(|it| question(&voice, known, it, &verdict, &folder));
        if asked.is_none() {
            let words = known.question(&folder).unwrap_or_else(|| known.sentence(&folder));
            let words = shortened_to(&words, 1500);
            let words = format!("{name} asks in {window}: {words} {verdict} Answer there.");
            plan.events.push(voice.waits(&words));
        }
        let permission = OpenPermission {
            id: message["id"].clone(),
            session: session.to_owned(),
            call,
            options: options.unwrap_or_default(),
            ask: asked.is_some().then_some(number),
            menu: None,
            shown: known.actions(),
            digest: known.digest(),
            verdict,
        };
        plan.ask =
            asked.map(|(event, is_confirmation)| ProxyAsk { number, event, is_confirmation });
        self.permissions.insert(id.clone(), permission);
        if place == AcpPlace::Chat {
            self.put_menu(id, plan);
        }
    }

    /// The person answered here, or nobody did. Only the first answer counts.
    pub fn answer(&mut self, number: ProxyAskNumber, answer: &AskAnswer) -> AcpPlan {
        let mut plan = AcpPlan::default();
        let found = self.permissions.iter().find(|(_, it)| it.ask == Some(number));
        let Some(id) = found.map(|(id, _)| id.clone()) else { return plan };
        let Some(permission) = self.permissions.remove(&id) else { return plan };
        let Some(option) = permission.options.meant(answer).cloned() else {
            let (session, window) = (permission.session.clone(), self.window());
            plan.only_here = permission.menu;
            self.permissions.insert(id, OpenPermission { ask: None, ..permission });
            if let Some(turn) = self.turn(&session) {
                let words = format!("Nobody answered here. The question stays open in {window}.");
                plan.events.push(turn.voice.waits(&words));
            }
            return plan;
        };
        plan.to_agent.push(selected(&permission.id, &option.id));
        let ending = AcpMenuEnding::Elsewhere { is_refused: option.rejects() };
        plan.closed_menus.extend(permission.menu.map(|it| (it, ending)));
        self.close_in_editor(id, &permission.id, &mut plan);
        let place = if matches!(answer, AskAnswer::Words(_)) {
            AnswerPlace::Choice
        } else {
            AnswerPlace::Confirmation
        };
        self.tell_decision(&permission, Some(&option), place, &mut plan);
        plan
    }

    /// The editor answers a request of the agent.
    pub(super) fn hear_answer_of_editor(
        &mut self,
        id: &RequestId,
        message: &Value,
        plan: &mut AcpPlan,
    ) {
        if self.late.remove(id) {
            plan.forward = AcpForward::Nothing;
            return;
        }
        let window = self.window();
        if let Some(session) = self.elicitations.remove(id) {
            if let Some(turn) = self.turn(&session) {
                let words = format!("It was answered in {window}.");
                let fields = json!({ "to_state": "thinking", "summary_normal": words });
                plan.events.push(turn.voice.event("state.changed", fields));
            }
            return;
        }
        let Some(permission) = self.permissions.remove(id) else { return };
        plan.withdrawn.extend(permission.ask);
        let outcome = &message["result"]["outcome"];
        let option = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let option = option.and_then(|it| permission.options.find(it)).cloned();
        let is_denied = option.is_none() && outcome["outcome"] != "selected";
        if is_denied {
            self.tell_denied(&permission, &format!("It was not allowed in {window}."), plan);
        } else {
            self.tell_decision(&permission, option.as_ref(), AnswerPlace::Front, plan);
        }
    }

    /// The person chose from a menu. Nothing happens if it is over, or if it does not have this option.
    pub fn choose(&mut self, menu: ProxyAskNumber, option: &str) -> AcpPlan {
        let mut plan = AcpPlan::default();
        let found = self.permissions.iter().find(|(_, it)| it.menu == Some(menu));
        let Some((id, option)) =
            found.and_then(|(id, it)| Some((id.clone(), it.options.find(option)?.clone())))
        else {
            return plan;
        };
        let Some(permission) = self.permissions.remove(&id) else { return plan };
        plan.withdrawn.extend(permission.ask);
        plan.to_agent.push(selected(&permission.id, &option.id));
        plan.closed_menus.push((menu, AcpMenuEnding::Here { is_refused: option.rejects() }));
        self.tell_decision(&permission, Some(&option), AnswerPlace::Front, &mut plan);
        plan
    }

    /// Tells what an answer means for the tool.
    fn tell_decision(
        &mut self,
        permission: &OpenPermission,
        option: Option<&PermissionOption>,
        place: AnswerPlace,
        plan: &mut AcpPlan,
    ) {
        let name = option.map(|it| it.name.as_str()).unwrap_or_default();
        let how = match place {
            AnswerPlace::Front => format!("In {} it was answered: “{name}”.", self.window()),
            AnswerPlace::Confirmation => String::new(),
            AnswerPlace::Choice => format!("You chose: “{name}”."),
        };
        if option.is_some_and(PermissionOption::rejects) {
            self.tell_denied(permission, &how, plan);
            return;
        }
        let folder = self.folder(&permission.session);
        let Some(turn) = self.turn(&permission.session) else { return };
        plan.events.extend(turn.end_text());
        let is_allowed = option.is_some_and(PermissionOption::allows);
        let voice = turn.voice.clone();
        let at = turn.call_at(&permission.call);
        let Some(at) = at.filter(|_| is_allowed) else {
            if !how.is_empty() {
                plan.events.push(voice.progress(&how));
            }
            return;
        };
        let Some(call) = turn.call(at) else { return };
        call.decision = CallDecision::Allowed;
        call.allowed = Some(permission.shown.clone());
        let words = format!("{how} {}", call.sentence(&folder));
        if call.told_as.is_some() {
            plan.events.push(voice.progress(&words));
            return;
        }
        let more = if place == AnswerPlace::Confirmation {
            let mut more = json!({
                "risk_level": permission.verdict.level(), "action_digest": permission.digest,
            });
            if permission.verdict.cannot_be_undone {
                more["irreversible"] = true.into();
            }
            more
        } else {
            json!({})
        };
        tell_invoked(turn, at, words.trim(), more, plan);
    }

    /// Tells that a tool does not run, whatever the agent says of it later.
    pub(super) fn tell_denied(
        &mut self,
        permission: &OpenPermission,
        how: &str,
        plan: &mut AcpPlan,
    ) {
        let folder = self.folder(&permission.session);
        let Some(turn) = self.turn(&permission.session) else { return };
        let Some(at) = turn.call_at(&permission.call) else { return };
        if let Some(call) = turn.call(at) {
            call.decision = CallDecision::Denied;
        }
        turn.tell_not_run(at, how, &folder, plan);
    }

    /// Takes the questions of a session away from the person; the editor still answers the agent.
    pub(super) fn stop_asking(&mut self, session: &str, plan: &mut AcpPlan) {
        for permission in self.permissions.values_mut().filter(|it| it.session == session) {
            plan.withdrawn.extend(permission.ask.take());
        }
    }

    /// A request of the agent is over without an answer.
    pub(super) fn forget_permission(&mut self, id: &RequestId, plan: &mut AcpPlan) {
        if let Some(permission) = self.permissions.remove(id) {
            plan.withdrawn.extend(permission.ask);
            plan.closed_menus.extend(permission.menu.map(|it| (it, AcpMenuEnding::Withdrawn)));
        }
        self.elicitations.remove(id);
    }

    /// A tool call has ended, so that nobody is asked about it any more.
    pub(super) fn forget_call(&mut self, session: &str, call: &str, plan: &mut AcpPlan) {
        let is_it = |it: &&mut OpenPermission| it.session == session && it.call == call;
        for permission in self.permissions.values_mut().filter(is_it) {
            plan.withdrawn.extend(permission.ask.take());
        }
        self.close_menus(plan, |it| it.session == session && it.call == call);
    }

    /// If a call became another than the one that the person is asked about, their answer would not be for it.
    pub(super) fn check_shown(
        &mut self,
        session: &str,
        call: &str,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let window = self.window();
        let Some(turn) = self.turn(session) else { return };
        let voice = turn.voice.clone();
        let Some(actions) = turn.call_named(call).map(|it| it.actions()) else { return };
        let is_it = |it: &&mut OpenPermission| {
            it.session == session && it.call == call && it.ask.is_some() && it.shown != actions
        };
        for permission in self.permissions.values_mut().filter(is_it) {
            plan.withdrawn.extend(permission.ask.take());
            let words = format!(
                "It changed what it asks for, so the question here is closed. Answer in {window}."
            );
            plan.events.push(voice.waits(&words));
        }
        self.renew_menus(session, call, setup, plan);
    }

    /// The agent puts a question of its own, which only the editor can show.
    pub(super) fn tell_elicitation(
        &mut self,
        message: &Value,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let params = &message["params"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let (name, window) = (self.agent_name.clone(), self.window());
        if self.session(&session).is_none_or(|it| it.turn.is_none()) {
            let Some(voice) = self.open_turn(&session, setup.now_ms) else { return };
            plan.events.push(voice.started(&format!("{name} is at work.")));
        }
        let Some(turn) = self.turn(&session) else { return };
        plan.events.extend(turn.end_text());
        let question = shortened_to(params["message"].as_str().unwrap_or_default(), 1500);
        let words = format!(
            "{name} has a question, which can only be answered in {window}. It asks: {question}"
        );
        plan.events.push(turn.voice.waits(&words));
        let has_room = self.elicitations.len() < MAX_PERMISSIONS;
        if let Some(id) = RequestId::of(&message["id"]).filter(|_| has_room) {
            self.elicitations.insert(id, session);
        }
    }

    /// The person asks the agent to stop. Nothing that it asks is allowed by this.
    pub fn cancel(&mut self, hub_session: &str) -> AcpPlan {
        let mut plan = AcpPlan::default();
        let found = self
            .sessions
            .iter()
            .find(|it| it.turn.as_ref().is_some_and(|it| it.voice.session_id == hub_session));
        let Some(session) = found.map(|it| it.id.clone()) else { return plan };
        plan.to_agent.push(cancel_session(&session));
        self.cancel_turn(&session, &mut plan);
        plan
    }

    /// Answers every open question of a session with "cancelled", and tells that the agent was asked to stop.
    pub(super) fn cancel_turn(&mut self, session: &str, plan: &mut AcpPlan) {
        let open = self.permissions.iter().filter(|(_, it)| it.session == session);
        let open: Vec<RequestId> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            let Some(permission) = self.permissions.remove(&id) else { continue };
            plan.withdrawn.extend(permission.ask);
            plan.to_agent.push(cancelled(&permission.id));
            plan.closed_menus.extend(permission.menu.map(|it| (it, AcpMenuEnding::Withdrawn)));
            self.close_in_editor(id, &permission.id, plan);
            self.tell_denied(&permission, "You asked it to stop.", plan);
        }
        if let Some(turn) = self.turn(session) {
            plan.events.extend(turn.end_text());
            plan.events.push(turn.voice.progress("It was asked to stop."));
        }
    }

    /// Closes the question in the editor, and lets its late answer reach nobody.
    fn close_in_editor(&mut self, id: RequestId, written: &Value, plan: &mut AcpPlan) {
        if self.place != AcpPlace::Chat {
            plan.to_editor.push(cancel_request(written));
            self.late.insert(id);
        }
    }
}
