//! The world's own account of asks and accepts, kept without looking at the hub's.

use std::collections::BTreeMap;

use aaep::event::action::RiskLevel;
use aaep::event::human::{AwaitingConfirmation, Reversibility};
use aaep::extension::{AskOutcome, DecidedBy, Delivery, stated_digest};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId, ToolName};
use aaep_engine::{Output, Record};

/// An agent in a session.
pub(super) type LedgerAgent = (SessionId, String);

/// The agent that published an event.
pub(super) fn agent_of(event: &Event) -> LedgerAgent {
    (event.envelope.session_id.clone(), event.envelope.producer.agent_id.clone())
}

/// Whether the event ends the turn of its agent.
pub(super) fn ends_turn(event: &Event) -> bool {
    matches!(&event.payload, Payload::StateChanged(change) if change.to_state == "idle")
}

/// Whether the event runs a tool that requires a person's consent.
pub(super) fn is_grave(event: &Event) -> bool {
    let Payload::ToolInvoked(tool) = &event.payload else { return false };
    tool.irreversible == Some(true) || tool.risk_level == Some(RiskLevel::High)
}

/// The risk that a person was presented with, and whether the action cannot be undone.
#[derive(Debug, Clone, Copy)]
pub struct PresentedRisk {
    risk: Option<u8>,
    is_final: Option<bool>,
}

impl PresentedRisk {
    /// Reads an ask; of its two fields about undoing, the stricter one applies.
    pub fn of(asked: &AwaitingConfirmation) -> Self {
        let is_final = match &asked.reversibility {
            Some(Reversibility::Irreversible) => Some(true),
            Some(Reversibility::Other(_)) => None,
            Some(_) => Some(asked.irreversible == Some(true)),
            None => asked.irreversible,
        };
        PresentedRisk { risk: height(asked.risk_level.as_ref()), is_final }
    }

    /// Whether a rule may accept it: nothing is left unsaid, and the risk is low or the action can be undone.
    pub fn is_for_rules(self) -> bool {
        matches!((self.risk, self.is_final), (Some(_), Some(false)) | (Some(1), Some(true)))
    }

    /// Whether this presentation covers a tool with this risk and finality.
    fn covers(self, risk: Option<&RiskLevel>, is_final: bool) -> bool {
        let told_of_risk = match (self.risk, height(risk)) {
            (Some(told), done) => done.unwrap_or(3) <= told,
            (None, done) => done.is_none_or(|done| done == 1),
        };
        told_of_risk && (!is_final || self.is_final == Some(true))
    }
}

fn height(risk: Option<&RiskLevel>) -> Option<u8> {
    match risk? {
        RiskLevel::Low => Some(1),
        RiskLevel::Medium => Some(2),
        RiskLevel::High => Some(3),
        RiskLevel::Other(_) => None,
    }
}

/// An ask, open or accepted.
#[derive(Debug)]
struct LedgerAsk {
    agent: LedgerAgent,
    tool: Option<ToolName>,
    digest: Option<[u8; 32]>,
    presented: PresentedRisk,
}

/// All open asks, and the accepts that were not used yet.
#[derive(Debug, Default)]
pub(super) struct ConsentLedger {
    open: BTreeMap<ReplyToken, LedgerAsk>,
    /// Unused accepts, oldest first, each with whether a person gave it.
    accepted: Vec<(LedgerAsk, bool)>,
}

impl ConsentLedger {
    /// Follows an output. If it accepts an ask, returns the agent and whether a reply accepted it.
    pub(super) fn follow(&mut self, output: &Output) -> Option<(LedgerAgent, bool)> {
        match output {
            Output::Record(Record { event, .. }) => {
                self.follow_event(event);
                None
            }
            Output::Settled { reply_token, outcome, decided_by, .. } => {
                let asked = self.open.remove(reply_token)?;
                if *outcome != AskOutcome::Accept {
                    return None;
                }
                let is_by_reply = *decided_by == DecidedBy::Reply;
                let agent = asked.agent.clone();
                self.accepted.push((asked, is_by_reply));
                Some((agent, is_by_reply))
            }
            _ => None,
        }
    }

    fn follow_event(&mut self, event: &Event) {
        let agent = agent_of(event);
        if ends_turn(event) {
            self.accepted.retain(|(it, _)| it.agent != agent);
        }
        if event.event_type().core().is_some_and(CoreType::is_terminal) {
            self.accepted.retain(|(it, _)| it.agent.0 != agent.0);
        }
        if let Payload::AwaitingConfirmation(asked) = &event.payload {
            let said = Delivery::of(event).unwrap_or_default();
            let digest = said.action_digest.map(|digest| digest.bytes());
            let presented = PresentedRisk::of(asked);
            let asked_for = LedgerAsk { agent, tool: said.tool, digest, presented };
            self.open.insert(asked.reply_token.clone(), asked_for);
        }
    }

    /// Uses up the accept that a tool runs on: that of exactly this action, else the oldest of this
    /// tool, else, for a grave one, the oldest of any. Returns whether there was one.
    pub(super) fn spend(&mut self, event: &Event) -> bool {
        let Payload::ToolInvoked(tool) = &event.payload else { return false };
        let (agent, is_grave) = (agent_of(event), is_grave(event));
        let digest = stated_digest(event).map(|digest| digest.bytes());
        let is_final = tool.irreversible == Some(true);
        let is_enough = |(it, is_by_reply): &(LedgerAsk, bool)| {
            let is_told = it.presented.covers(tool.risk_level.as_ref(), is_final);
            it.agent == agent && (!is_grave || (*is_by_reply && is_told))
        };
        let find = |fits: &dyn Fn(&LedgerAsk) -> bool| {
            self.accepted.iter().position(|it| fits(&it.0) && is_enough(it))
        };
        let is_this = |it: &LedgerAsk| it.tool.as_ref() == Some(&tool.tool);
        let exact = find(&|it| is_this(it) && it.digest.is_some() && it.digest == digest);
        let named = || find(&|it| is_this(it) && it.digest.is_none());
        let any = || find(&|it| it.tool.is_none() && is_grave);
        let found = exact.or_else(named).or_else(any);
        if let Some(at) = found {
            self.accepted.remove(at);
        }
        found.is_some()
    }
}
