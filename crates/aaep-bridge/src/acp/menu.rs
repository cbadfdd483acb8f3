//! Permission requests in a chat: a menu of the agent's own options, which the bridge answers itself.
//!
//! A menu is for exactly the request that it shows: if the agent changes its request, the menu closes and another one
//! opens. A request that cannot be shown whole is refused.

use serde_json::{Value, json};

use super::permission::{MAX_QUESTION_CHARS, OpenPermission};
use super::wire::{cancelled, selected};
use super::{AcpBridge, AcpPlan, AcpSetup};
use crate::event::AgentVoice;
use crate::proxy_ask::ProxyAskNumber;
use crate::request_id::RequestId;

/// Where an agent asks the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcpPlace {
    /// In an editor, which shows and answers permission requests as well.
    Editor,
    /// In a window of its own, which does so too.
    OwnWindow,
    /// In our own chat, where the bridge does so.
    Chat,
}

impl AcpPlace {
    pub(super) fn name(self) -> &'static str {
        match self {
            AcpPlace::Editor => "the editor",
            AcpPlace::OwnWindow => "its own window",
            AcpPlace::Chat => "aaep chat",
        }
    }
}

/// What the person chooses from: all options of a permission request, by the agent's own names.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpMenu {
    /// Its number, for [`AcpBridge::choose`].
    pub number: ProxyAskNumber,
    /// The question as an event with choices. The value of each is the id of an option.
    pub event: Value,
    /// The ids of the options that refuse.
    pub refusals: Vec<String>,
}

/// How a menu ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpMenuEnding {
    /// The person chose from it.
    Here {
        /// Whether the option refuses.
        is_refused: bool,
    },
    /// It was answered by someone who listens elsewhere.
    Elsewhere {
        /// Whether the option refuses.
        is_refused: bool,
    },
    /// The agent no longer asks.
    Withdrawn,
    /// The agent changed what it asks for.
    Changed,
}

impl AcpBridge {
    /// Opens a menu for a permission request, or refuses a request that cannot be shown whole.
    pub(super) fn put_menu(&mut self, id: &RequestId, plan: &mut AcpPlan) {
        let number = self.next_ask();
        let Some(session) = self.permissions.get(id).map(|it| it.session.clone()) else { return };
        let folder = self.folder(&session);
        let Some(turn) = self.sessions.iter_mut().find(|it| it.id == session) else { return };
        let Some(turn) = &mut turn.turn else { return };
        let voice = turn.voice.clone();
        let Some(permission) = self.permissions.get_mut(id) else { return };
        let action = turn.call_named(&permission.call).and_then(|it| it.question(&folder));
        let action = action.filter(|it| it.chars().count() <= MAX_QUESTION_CHARS);
        let event = action.and_then(|action| menu_event(&voice, permission, &action));
        let Some(event) = event else {
            self.refuse(id, plan);
            return;
        };
        permission.menu = Some(number);
        let refusals = permission.options.0.iter().filter(|it| it.rejects());
        let refusals = refusals.map(|it| it.id.clone()).collect();
        plan.menu = Some(AcpMenu { number, event, refusals });
    }

    /// Refuses a request that is being put and cannot be shown whole.
    fn refuse(&mut self, id: &RequestId, plan: &mut AcpPlan) {
        let Some(permission) = self.permissions.remove(id) else { return };
        plan.ask = None;
        plan.withdrawn.extend(permission.ask);
        plan.to_agent.push(match permission.options.only("reject_once") {
            Some(no) => selected(&permission.id, &no.id),
            None => cancelled(&permission.id),
        });
        self.tell_denied(&permission, "It cannot be shown whole, so it was refused.", plan);
    }

    /// Answers a request of which nothing is remembered. In an editor, the editor does so.
    pub(super) fn refuse_unput(&self, id: &Value, plan: &mut AcpPlan) {
        if self.place == AcpPlace::Chat {
            plan.to_agent.push(cancelled(id));
            plan.notice =
                Some(format!("{} asks too much at once. It was refused.", self.agent_name));
        }
    }

    /// Closes menus for requests that are over, and tells the agent that nobody answers them.
    pub(super) fn close_menus(
        &mut self,
        plan: &mut AcpPlan,
        is_over: impl Fn(&OpenPermission) -> bool,
    ) {
        self.permissions.retain(|_, permission| {
            let Some(menu) = permission.menu.filter(|_| is_over(permission)) else { return true };
            plan.closed_menus.push((menu, AcpMenuEnding::Withdrawn));
            plan.to_agent.push(cancelled(&permission.id));
            false
        });
    }

    /// Opens another menu where a call became another than the one that was shown.
    pub(super) fn renew_menus(
        &mut self,
        session: &str,
        call: &str,
        setup: &AcpSetup<'_>,
        plan: &mut AcpPlan,
    ) {
        let folder = self.folder(session);
        let Some(turn) = self.turn(session) else { return };
        let Some(known) = turn.call_named(call) else { return };
        let (shown, digest) = (known.actions(), known.digest());
        let verdict = known.judge(setup.table, &folder);
        let mut changed = Vec::new();
        for (id, permission) in &mut self.permissions {
            let is_it = permission.session == session && permission.call == call;
            let Some(menu) = permission.menu.filter(|_| is_it && permission.shown != shown) else {
                continue;
            };
            plan.closed_menus.push((menu, AcpMenuEnding::Changed));
            permission.menu = None;
            permission.shown.clone_from(&shown);
            (permission.digest, permission.verdict) = (digest.clone(), verdict.clone());
            changed.push(id.clone());
        }
        // A plan has room for one menu. Two requests for one call cannot both be meant.
        let mut changed = changed.into_iter();
        if let Some(id) = changed.next() {
            self.put_menu(&id, plan);
        }
        for id in changed {
            self.refuse(&id, plan);
        }
    }
}

/// The question of a menu: the risk first, then the whole action, and the options by their names.
fn menu_event(voice: &AgentVoice, permission: &OpenPermission, action: &str) -> Option<Value> {
    let mut choices = permission.options.choices();
    if choices.len() < 2 || permission.digest.is_empty() {
        return None;
    }
    for (choice, option) in choices.iter_mut().zip(&permission.options.0) {
        let lasts = option.kind.ends_with("_always");
        let name = option.name.to_lowercase();
        let says_so = ["always", "session"].iter().any(|it| name.contains(it));
        if lasts
            && !says_so
            && let Some(label) = choice["label"].as_str()
        {
            choice["label"] = format!("{label} (always)").into();
        }
    }
    let verdict = &permission.verdict;
    let risk = match verdict.level() {
        "low" => "Low risk.",
        "medium" => "Medium risk.",
        _ => "High risk.",
    };
    let undo = if verdict.cannot_be_undone { " It cannot be undone." } else { "" };
    let fields = json!({
        "question": format!("{risk} {verdict}{undo} May it do this? {action}"),
        // An agent waits in a chat as long as the person likes.
        "timeout_seconds": 86_400,
        "accepted_response_kinds": ["multiple_choice"],
        "choices": choices,
    });
    Some(voice.event("awaiting.clarification", fields))
}
