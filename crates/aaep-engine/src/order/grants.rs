//! Accepted asks whose action has not been done yet (§2.3.5, §4.3.1, §4.5.3, rulings 17, 35).
//!
//! A grant covers one invocation by the agent that asked, in the turn in which it asked, and nothing
//! worse than what was presented. Nothing here ever makes a grant of its own; in doubt there is one
//! grant less, and the agent asks again.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::event::action::ToolInvoked;
use aaep::extension::{DecidedBy, Delivery, stated_digest};
use aaep::{Event, Payload, ToolName};

use super::violation::OrderViolation;
use crate::stakes::{ActionStakes, StatedRisk, StatedUndo};

/// The most accepted actions of a session that wait to be done.
pub const MAX_GRANTS: usize = 64;

/// About how much memory one grant takes, the longest name of a tool counted.
const BYTES_EACH: usize = 320;

/// Who accepted an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedBy {
    /// A person replied, or a rule of the person where a rule may.
    Reply,
    /// Nobody: the time was over or nobody could be asked, and the default is accept.
    Default,
}

impl From<&DecidedBy> for GrantedBy {
    /// Whatever is not known to be a reply counts as a default.
    fn from(decided_by: &DecidedBy) -> Self {
        match decided_by {
            DecidedBy::Reply => GrantedBy::Reply,
            _ => GrantedBy::Default,
        }
    }
}

/// That an action was accepted: which one, for whom, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The agent that asked; no other one may use it.
    pub agent_id: Arc<str>,
    /// The tool that may be invoked; any where the ask named none.
    pub tool: Option<ToolName>,
    /// What exactly was accepted, where the ask said so: then the invocation has to state the
    /// same digest.
    pub digest: Option<[u8; 32]>,
    /// What the ask presented.
    pub presented: ActionStakes,
    /// Who accepted it.
    pub granted_by: GrantedBy,
}

impl Grant {
    /// What the accept of an ask allows: exactly one action, one tool, or one tool of any name.
    pub fn asked_by(event: &Event, granted_by: GrantedBy) -> Self {
        let presented = match &event.payload {
            Payload::AwaitingConfirmation(asked) => ActionStakes::presented(asked),
            _ => ActionStakes::UNKNOWN,
        };
        let said = event.extensions.as_ref().and_then(|_| Delivery::of(event));
        let (tool, digest) = match said {
            Some(Delivery { tool: Some(tool), action_digest, .. }) => {
                (Some(tool), action_digest.map(|digest| digest.bytes()))
            }
            _ => (None, None),
        };
        let agent_id = event.envelope.producer.agent_id.as_str().into();
        Grant { agent_id, tool, digest, presented, granted_by }
    }

    /// What the accept of an ask allows that was not seen: nobody is accused on a guess.
    pub(super) fn unseen(agent_id: &str, granted_by: GrantedBy) -> Self {
        let presented = ActionStakes::WORST;
        Grant { agent_id: agent_id.into(), tool: None, digest: None, presented, granted_by }
    }

    fn is_for(&self, tool: &ToolName) -> bool {
        self.tool.as_ref() == Some(tool)
    }

    /// Whether the action is no worse than what was accepted.
    fn covers(&self, done: ActionStakes) -> bool {
        let is_presented = self.presented.covers_undo(done) && self.presented.covers_risk(done);
        is_presented
            && match self.granted_by {
                GrantedBy::Reply => true,
                GrantedBy::Default => self.presented.allows_default() && done.allows_default(),
            }
    }

    /// In which way the action is worse than what was accepted.
    fn weakness(&self, tool: ToolName, done: ActionStakes) -> OrderViolation {
        if self.granted_by == GrantedBy::Default {
            OrderViolation::AcceptedByDefault { tool }
        } else if !self.presented.covers_undo(done) {
            OrderViolation::AcceptedAsReversible { tool }
        } else if done.risk == StatedRisk::Unknown {
            OrderViolation::RiskNotStated { tool }
        } else {
            OrderViolation::AcceptedAtLowerRisk { tool }
        }
    }
}

/// An invocation, as far as grants look at it.
struct Invocation<'a> {
    agent_id: &'a str,
    tool: &'a ToolName,
    digest: Option<[u8; 32]>,
    stakes: ActionStakes,
}

/// The grants of a session, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Grants(VecDeque<Grant>);

impl Grants {
    /// Adds a grant. Past the bound the oldest one is given back: consent that was not used for so
    /// long is the one that is safest to ask for again.
    pub(super) fn add(&mut self, grant: Grant) -> Option<Grant> {
        let displaced = if self.0.len() >= MAX_GRANTS { self.0.pop_front() } else { None };
        self.0.push_back(grant);
        displaced
    }

    /// The turn of an agent is over: what it did not use, it has to ask for again.
    pub(super) fn end_turn(&mut self, agent_id: &str) {
        self.0.retain(|grant| *grant.agent_id != *agent_id);
    }

    /// Whether an invocation that needs an accept is covered, and if not, what was accepted instead.
    pub(super) fn check(&self, event: &Event, invoked: &ToolInvoked) -> Result<(), OrderViolation> {
        let invocation = self.invocation(event, invoked);
        if self.find(&invocation).is_some() { Ok(()) } else { Err(self.refuse(&invocation)) }
    }

    /// Uses the grant that covers the invocation, if there is one.
    pub(super) fn spend(&mut self, event: &Event, invoked: &ToolInvoked) -> Option<Grant> {
        let at = self.find(&self.invocation(event, invoked))?;
        self.0.remove(at)
    }

    /// Nobody looks for the digest of an invocation where no grant has one.
    fn invocation<'a>(&self, event: &'a Event, invoked: &'a ToolInvoked) -> Invocation<'a> {
        let matters = self.0.iter().any(|grant| grant.digest.is_some());
        let digest = if matters { stated_digest(event).map(|digest| digest.bytes()) } else { None };
        let agent_id = &event.envelope.producer.agent_id;
        Invocation { agent_id, tool: &invoked.tool, digest, stakes: ActionStakes::invoked(invoked) }
    }

    /// The grants of one agent, with their places.
    fn of<'a>(&'a self, agent_id: &'a str) -> impl Iterator<Item = (usize, &'a Grant)> {
        self.0.iter().enumerate().filter(move |(_, grant)| *grant.agent_id == *agent_id)
    }

    /// Whether a grant for exactly one action of this tool is unused.
    fn is_bound(&self, agent_id: &str, tool: &ToolName) -> bool {
        self.of(agent_id).any(|(_, grant)| grant.digest.is_some() && grant.is_for(tool))
    }

    /// The grant that an invocation uses: the one for exactly this action, else the oldest for its
    /// tool, else the oldest for any. While a grant for exactly one action of the tool is unused, no
    /// other covers one that needs an accept: what was accepted may have been changed.
    ///
    /// A grant for this tool is used even by an invocation that calls itself harmless, because
    /// that was the accepted action (§4.5.3): left over, it would cover a second one that nobody
    /// accepted. A grant for any tool waits for the one that needs it, because which of the harmless
    /// ones between was meant cannot be known.
    fn find(&self, done: &Invocation<'_>) -> Option<usize> {
        let needs_accept = done.stakes.needs_accept();
        let first = |fits: &dyn Fn(&Grant) -> bool| {
            let is_enough = |it: &Grant| !needs_accept || it.covers(done.stakes);
            self.of(done.agent_id).find(|(_, it)| fits(it) && is_enough(it)).map(|(at, _)| at)
        };
        let exact =
            first(&|it| it.digest.is_some() && it.digest == done.digest && it.is_for(done.tool));
        if exact.is_some() || (needs_accept && self.is_bound(done.agent_id, done.tool)) {
            return exact;
        }
        let named = first(&|it| it.digest.is_none() && it.is_for(done.tool));
        let any = || first(&|it| it.digest.is_none() && it.tool.is_none());
        named.or_else(|| if needs_accept { any() } else { None })
    }

    /// Why no grant covers an invocation that needs one. What a person accepted says more than
    /// what was accepted by default.
    fn refuse(&self, done: &Invocation<'_>) -> OrderViolation {
        let tool = done.tool.clone();
        let best = |fits: &dyn Fn(&Grant) -> bool| {
            let mine = || self.of(done.agent_id).map(|(_, it)| it).filter(|it| fits(it));
            mine().find(|it| it.granted_by == GrantedBy::Reply).or_else(|| mine().next())
        };
        if self.is_bound(done.agent_id, done.tool) {
            let exact =
                best(&|it| it.digest.is_some() && it.digest == done.digest && it.is_for(done.tool));
            return match (exact, done.digest) {
                (Some(exact), _) => exact.weakness(tool, done.stakes),
                (None, Some(_)) => OrderViolation::ActionDiffers { tool },
                (None, None) => OrderViolation::ActionDigestMissing { tool },
            };
        }
        let is_loose = |it: &Grant| it.digest.is_none();
        let named = best(&|it| is_loose(it) && it.is_for(done.tool));
        if let Some(weak) = named.or_else(|| best(&|it| is_loose(it) && it.tool.is_none())) {
            return weak.weakness(tool, done.stakes);
        }
        if let Some(accepted) = best(&|it| it.digest.is_some()).and_then(|it| it.tool.clone()) {
            return OrderViolation::OtherToolAccepted { tool, accepted };
        }
        let is_right = |it: &Grant| it.tool.is_none() || it.is_for(done.tool);
        if self.0.iter().any(|it| is_right(it) && it.covers(done.stakes)) {
            return OrderViolation::AcceptedForAnotherAgent { tool };
        }
        match done.stakes.undo {
            StatedUndo::Impossible => OrderViolation::IrreversibleWithoutAccept { tool },
            _ => OrderViolation::HighRiskWithoutAccept { tool },
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len() * BYTES_EACH
    }
}
