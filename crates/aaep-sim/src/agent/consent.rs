//! What agents ask consent for, and what they then do: that, or something worse, as another agent, in
//! another turn, or once more.

use serde_json::{Value, json};

use super::said::{digest_of, say_in_ours, state_action};
use super::{Act, Agent, plan::Act::Do};
use crate::rng::Rng;

/// What an agent states about an action: its risk, and whether it cannot be undone.
type Stakes = (Option<&'static str>, Option<bool>);

const ASKED: [Stakes; 10] = [
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

const DONE: [Stakes; 6] = [
    (Some("high"), Some(true)),
    (Some("medium"), Some(true)),
    (Some("low"), Some(true)),
    (None, Some(true)),
    (Some("high"), Some(false)),
    (Some("high"), None),
];

/// What an agent means to do once it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deed {
    stakes: Stakes,
    /// The digest that it states.
    digest: Option<String>,
    /// Which agent of the session does it.
    by: String,
    /// Whether the turn ends before.
    is_late: bool,
    /// Whether other things are done before.
    is_slow: bool,
    /// Whether it is done a second time, before the session ends.
    is_repeated: bool,
}

impl Deed {
    /// Something that nobody was asked for.
    pub(super) fn unasked(by: &str, number: u64, rng: &mut Rng) -> Self {
        let digest = rng.chance(50).then(|| digest_of(number));
        let stakes = *rng.pick(&DONE);
        let by = by.to_owned();
        Deed { stakes, digest, by, is_late: false, is_slow: false, is_repeated: false }
    }

    /// The words of the invocation.
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

/// Asks for consent: the words, and what is done if it is given.
pub(super) fn ask(agent: &Agent, token: &str, number: u64, rng: &mut Rng) -> (Value, Deed) {
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
        // The stricter of the two fields counts.
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
    let deed = Deed {
        stakes: if rng.chance(60) { stakes } else { *rng.pick(&DONE) },
        digest,
        by: if rng.chance(90) { by } else { other },
        is_late: rng.chance(10),
        is_slow: rng.chance(20),
        is_repeated: rng.chance(30),
    };
    (words, deed)
}

impl Agent {
    /// It was accepted: does what it meant to do.
    pub(super) fn carry_out(&mut self, deed: Deed) {
        let (call, again) = (self.count(), self.count());
        let Some(session) = &mut self.session else { return };
        let mut acts = Vec::new();
        if deed.is_late {
            acts.extend([Act::State("deciding"), Act::State("idle")]);
        }
        if deed.is_slow {
            acts.extend([const { Act::Progress }; 6]);
        }
        acts.extend([Do { call, deed: deed.clone() }, Act::Finish { call }]);
        acts.into_iter().rev().for_each(|act| session.acts.push_front(act));
        session.did = Some(deed.clone());
        if deed.is_repeated {
            let end = session.acts.pop_back();
            session.acts.extend([Do { call: again, deed }, Act::Finish { call: again }]);
            session.acts.extend(end);
        }
    }

    /// The hub was killed: some agents then do again what they did last.
    pub(crate) fn try_again(&mut self) {
        let call = self.count();
        if let Some(session) = &mut self.session
            && let Some(deed) = session.did.clone()
        {
            session.acts.push_front(Act::Finish { call });
            session.acts.push_front(Do { call, deed });
        }
    }
}

fn state_stakes(words: &mut Value, (risk, irreversible): Stakes) {
    if let Some(risk) = risk {
        words["risk_level"] = risk.into();
    }
    if let Some(irreversible) = irreversible {
        words["irreversible"] = irreversible.into();
    }
}
