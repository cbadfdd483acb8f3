//! What was asked and accepted, as the world keeps account of it, without a look at how the hub does.

use std::collections::BTreeMap;

use aaep::event::action::RiskLevel;
use aaep::event::human::{AwaitingConfirmation, Reversibility};
use aaep::extension::{DecidedBy, Delivery, stated_digest};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId, ToolName};
use aaep_engine::{Output, Record, Resolution};

/// An agent in a session.
pub(super) type Who = (SessionId, String);

/// Who speaks.
pub(super) fn who(event: &Event) -> Who {
    (event.envelope.session_id.clone(), event.envelope.producer.agent_id.clone())
}

/// Whether the turn of whoever speaks is over.
pub(super) fn ends_turn(event: &Event) -> bool {
    matches!(&event.payload, Payload::StateChanged(change) if change.to_state == "idle")
}

/// Whether the event is a tool for which people have to be asked.
pub(super) fn is_grave(event: &Event) -> bool {
    let Payload::ToolInvoked(tool) = &event.payload else { return false };
    tool.irreversible == Some(true) || tool.risk_level == Some(RiskLevel::High)
}

/// What a person was presented with: how high the risk is, and whether it cannot be undone.
#[derive(Debug, Clone, Copy)]
pub struct Presented {
    risk: Option<u8>,
    is_final: Option<bool>,
}

impl Presented {
    /// What a question says; of its two fields about undoing, the stricter one.
    pub fn of(asked: &AwaitingConfirmation) -> Self {
        let is_final = match &asked.reversibility {
            Some(Reversibility::Irreversible) => Some(true),
            Some(Reversibility::Other(_)) => None,
            Some(_) => Some(asked.irreversible == Some(true)),
            None => asked.irreversible,
        };
        Presented { risk: height(asked.risk_level.as_ref()), is_final }
    }

    /// Whether a rule may accept it: all is said, and it is of low risk or can be undone.
    pub fn is_for_rules(self) -> bool {
        matches!((self.risk, self.is_final), (Some(_), Some(false)) | (Some(1), Some(true)))
    }

    /// Whether someone who was told this was told of a tool that is as bad.
    fn tells_of(self, risk: Option<&RiskLevel>, is_final: bool) -> bool {
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

/// A question, open or accepted.
#[derive(Debug)]
struct Asked {
    who: Who,
    tool: Option<ToolName>,
    digest: Option<[u8; 32]>,
    presented: Presented,
}

/// All questions, and the accepts that were not used.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: BTreeMap<ReplyToken, Asked>,
    /// The oldest first, each with whether a person gave it.
    accepted: Vec<(Asked, bool)>,
}

impl Ledger {
    /// Takes an output into account. If it accepts something: for whom, and whether by a reply.
    pub(super) fn follow(&mut self, output: &Output) -> Option<(Who, bool)> {
        match output {
            Output::Record(Record { event, .. }) => {
                self.follow_event(event);
                None
            }
            Output::Resolved { reply_token, resolution, decided_by, .. } => {
                let asked = self.open.remove(reply_token)?;
                if *resolution != Resolution::Accept {
                    return None;
                }
                let is_by_reply = *decided_by == DecidedBy::Reply;
                let who = asked.who.clone();
                self.accepted.push((asked, is_by_reply));
                Some((who, is_by_reply))
            }
            _ => None,
        }
    }

    fn follow_event(&mut self, event: &Event) {
        let who = who(event);
        if ends_turn(event) {
            self.accepted.retain(|(it, _)| it.who != who);
        }
        if event.event_type().core().is_some_and(CoreType::is_terminal) {
            self.accepted.retain(|(it, _)| it.who.0 != who.0);
        }
        if let Payload::AwaitingConfirmation(asked) = &event.payload {
            let said = Delivery::of(event).unwrap_or_default();
            let digest = said.action_digest.map(|digest| digest.bytes());
            let presented = Presented::of(asked);
            let asked_for = Asked { who, tool: said.tool, digest, presented };
            self.open.insert(asked.reply_token.clone(), asked_for);
        }
    }

    /// Uses up the accept that a tool runs on: that of exactly this action, else the oldest of this
    /// tool, else, for a grave one, the oldest of any. Says whether there was one.
    pub(super) fn spend(&mut self, event: &Event) -> bool {
        let Payload::ToolInvoked(tool) = &event.payload else { return false };
        let (who, is_grave) = (who(event), is_grave(event));
        let digest = stated_digest(event).map(|digest| digest.bytes());
        let is_final = tool.irreversible == Some(true);
        let is_enough = |(it, is_by_reply): &(Asked, bool)| {
            let is_told = it.presented.tells_of(tool.risk_level.as_ref(), is_final);
            it.who == who && (!is_grave || (*is_by_reply && is_told))
        };
        let find = |fits: &dyn Fn(&Asked) -> bool| {
            self.accepted.iter().position(|it| fits(&it.0) && is_enough(it))
        };
        let is_this = |it: &Asked| it.tool.as_ref() == Some(&tool.tool);
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
