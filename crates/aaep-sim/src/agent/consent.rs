//! What agents ask consent for, and what they do after an accept: the same action, or a worse one,
//! as another agent, in another turn, or once more.

use serde_json::{Value, json};

use super::said::{digest_of, say_in_ours, state_action};
use super::{PlannedAct, SimulatedAgent, plan::PlannedAct::Do};
use crate::rng::SeededRng;

/// What an agent states about an action: its risk, and whether it cannot be undone.
type StatedStakes = (Option<&'static str>, Option<bool>);

const ASKED: [StatedStakes; 10] = [
    (Some("high"), Some(true)),
    (Some("high"), Some(true)),
    (Some("high"), Some(true)),
    (Some("medium"), Some(true)),
    (Some("low"), Some(true)),
    (Some("low"), Some(false)),
    (Some("low"), Some(false)),
    (Some("high"), Some(false)),
    (None, Some(true)),
    (None, None),
];

const DONE: [StatedStakes; 6] = [
    (Some("high"), Some(true)),
    (Some("medium"), Some(true)),
    (Some("low"), Some(true)),
    (None, Some(true)),
    (Some("high"), Some(false)),
    (Some("high"), None),
];

/// The action that an agent takes once its ask is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IntendedAction {
    stakes: StatedStakes,
    /// The digest that it states.
    digest: Option<String>,
    /// The agent of the session that takes the action.
    by: String,
    /// Whether the turn ends first.
    is_late: bool,
    /// Whether the agent does other things first.
    is_slow: bool,
    /// Whether the agent repeats the action before the session ends.
    is_repeated: bool,
}

impl IntendedAction {
    /// An action that the agent asked nobody about.
    pub(super) fn unasked(by: &str, number: u64, rng: &mut SeededRng) -> Self {
        let digest = rng.chance(50).then(|| digest_of(number));
        let stakes = *rng.pick(&DONE);
        let by = by.to_owned();
        IntendedAction { stakes, digest, by, is_late: false, is_slow: false, is_repeated: false }
    }

    /// The fields of the `tool.invoked` event.
    pub(super) fn words(&self, call: u64) -> Value {
        let mut words = json!({"tool": "search", "summary_normal": "Searching the time table.",
            "producer": {"agent_id": self.by}, "tool_call_id": format!("call_{call}")});
        state_stakes(&mut words, self.stakes);
        if let Some(digest) = &self.digest {
            say_in_ours(&mut words, "action_digest", digest.as_str().into());
        }
        words
    }
}

/// The fields of an ask, and the action that follows an accept.
pub(super) fn ask(
    agent: &SimulatedAgent,
    token: &str,
    number: u64,
    rng: &mut SeededRng,
) -> (Value, IntendedAction) {
    let stakes = *rng.pick(&ASKED);
    let (risk, irreversible) = stakes;
    let may_default = irreversible != Some(true) || risk == Some("low");
    let default = if may_default && rng.chance(60) { "accept" } else { "reject" };
    let (main, helper) = (agent.name.clone(), format!("{}-helper", agent.name));
    let (by, other) = if rng.chance(85) { (main, helper) } else { (helper, main) };
    let mut words = json!({
        "action": format!("Book seat {number} of {}", agent.name), "consequence": "It costs money.",
        "reply_token": token, "timeout_seconds": *rng.pick(&[1, 3, 8, 20, 70]),
        "default_decision": default, "urgency": "critical", "producer": {"agent_id": by},
    });
    state_stakes(&mut words, stakes);
    if irreversible == Some(true) && rng.chance(30) {
        // The stricter of the two fields applies.
        words["irreversible"] = false.into();
        words["reversibility"] = "irreversible".into();
    }
    match rng.below(100) {
        0..=11 => words["allowed_replies"] = json!(["reject"]),
        12..=23 => words["allowed_replies"] = json!(["accept"]),
        24..=27 => words["allowed_replies"] = json!(["later"]),
        _ => {}
    }
    let digest = match rng.below(100) {
        0..=39 => Some(state_action(&mut words, number, rng)),
        40..=49 => {
            say_in_ours(&mut words, "tool", "search".into());
            None
        }
        _ => None,
    };
    let deed = IntendedAction {
        stakes: if rng.chance(60) { stakes } else { *rng.pick(&DONE) },
        digest,
        by: if rng.chance(90) { by } else { other },
        is_late: rng.chance(10),
        is_slow: rng.chance(20),
        is_repeated: rng.chance(30),
    };
    (words, deed)
}

impl SimulatedAgent {
    /// Plans the intended action after an accept.
    pub(super) fn carry_out(&mut self, deed: IntendedAction) {
        let (call, again) = (self.count(), self.count());
        let Some(session) = &mut self.session else { return };
        let mut acts = Vec::new();
        if deed.is_late {
            acts.extend([PlannedAct::State("deciding"), PlannedAct::State("idle")]);
        }
        if deed.is_slow {
            acts.extend([const { PlannedAct::Progress }; 6]);
        }
        acts.extend([Do { call, deed: deed.clone() }, PlannedAct::Finish { call }]);
        acts.into_iter().rev().for_each(|act| session.acts.push_front(act));
        session.did = Some(deed.clone());
        if deed.is_repeated {
            let end = session.acts.pop_back();
            session.acts.extend([Do { call: again, deed }, PlannedAct::Finish { call: again }]);
            session.acts.extend(end);
        }
    }

    /// After a kill of the hub, some agents repeat their last action.
    pub(crate) fn try_again(&mut self) {
        let call = self.count();
        if let Some(session) = &mut self.session
            && let Some(deed) = session.did.clone()
        {
            session.acts.push_front(PlannedAct::Finish { call });
            session.acts.push_front(Do { call, deed });
        }
    }
}

fn state_stakes(words: &mut Value, (risk, irreversible): StatedStakes) {
    if let Some(risk) = risk {
        words["risk_level"] = risk.into();
    }
    if let Some(irreversible) = irreversible {
        words["irreversible"] = irreversible.into();
    }
}
