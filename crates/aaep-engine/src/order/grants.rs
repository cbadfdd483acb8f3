//! Accepted asks whose action has not been done yet (§2.3.5, §4.3.1, §4.5.3, rulings 17, 35).
//!
//! A grant covers one invocation by the agent that asked, in the turn in which it asked, and
//! nothing worse than what was presented. Nothing here creates a grant by itself. When in doubt
//! there is one grant less, and the agent asks again.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::event::action::ToolInvoked;
use aaep::extension::{DecidedBy, Delivery, stated_digest};
use aaep::{Event, Payload, ToolName};

use super::violation::OrderViolation;
use aaep::{ActionStakes, StatedRisk, StatedUndo};

/// The most accepted actions of a session that wait to be done.
pub const MAX_GRANTS: usize = 64;

/// About how much memory one grant takes, with the longest tool name.
const BYTES_EACH: usize = 320;

/// What accepted an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedBy {
    /// A person replied, or one of the person's rules where a rule may.
    Reply,
    /// The default, which is accept: time was up, or nobody could be asked.
    Default,
}

impl From<&DecidedBy> for GrantedBy {
    /// Anything that is not known to be a reply counts as a default.
    fn from(decided_by: &DecidedBy) -> Self {
        match decided_by {
            DecidedBy::Reply => GrantedBy::Reply,
            _ => GrantedBy::Default,
        }
    }
}

/// An accepted action: which one, for which agent, and accepted by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The agent that asked. No other agent may use the grant.
    pub agent_id: Arc<str>,
    /// The tool that may be invoked; any tool if the ask named none.
    pub tool: Option<ToolName>,
    /// The digest of the exact action, if the ask stated one. The invocation then has to state the
    /// same digest.
    pub digest: Option<[u8; 32]>,
    /// What the ask presented.
    pub presented: ActionStakes,
    /// What accepted it.
    pub granted_by: GrantedBy,
}

impl Grant {
    /// The grant for the ask in this event: exactly one action, one tool, or one invocation of any
    /// tool.
    pub fn asked_by(event: &Event, granted_by: GrantedBy) -> Self {
        let presented = match &event.payload {
            Payload::AwaitingConfirmation(asked) => asked.stakes(),
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

    /// The grant for an ask that was not seen. It covers anything, because nobody is accused on a
    /// guess.
    pub(super) fn unseen(agent_id: &str, granted_by: GrantedBy) -> Self {
        let presented = ActionStakes::WORST;
        Grant { agent_id: agent_id.into(), tool: None, digest: None, presented, granted_by }
    }

    fn is_for(&self, tool: &ToolName) -> bool {
        self.tool.as_ref() == Some(tool)
    }

    /// Whether the action is not worse than what was accepted.
    fn covers(&self, done: ActionStakes) -> bool {
        let is_presented = self.presented.covers_undo(done) && self.presented.covers_risk(done);
        is_presented
            && match self.granted_by {
                GrantedBy::Reply => true,
                GrantedBy::Default => self.presented.allows_default() && done.allows_default(),
            }
    }

    /// In what way the action is worse than what was accepted.
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

/// The parts of an invocation that grants compare.
struct InvokedAction<'a> {
    agent_id: &'a str,
    tool: &'a ToolName,
    digest: Option<[u8; 32]>,
    stakes: ActionStakes,
}

/// The unused grants of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OpenGrants(VecDeque<Grant>);

impl OpenGrants {
    /// Adds a grant. Beyond the bound, the oldest one is returned: consent that was unused for the
    /// longest time is the safest to ask for again.
    pub(super) fn add(&mut self, grant: Grant) -> Option<Grant> {
        let displaced = if self.0.len() >= MAX_GRANTS { self.0.pop_front() } else { None };
        self.0.push_back(grant);
        displaced
    }

    /// Ends the turn of an agent, which has to ask again for everything that it did not use.
    pub(super) fn end_turn(&mut self, agent_id: &str) {
        self.0.retain(|grant| *grant.agent_id != *agent_id);
    }

    /// Checks that an invocation that needs an accept is covered. The error says what was accepted
    /// instead.
    pub(super) fn check(&self, event: &Event, invoked: &ToolInvoked) -> Result<(), OrderViolation> {
        let invocation = self.invocation(event, invoked);
        if self.find(&invocation).is_some() { Ok(()) } else { Err(self.refusal_for(&invocation)) }
    }

    /// Uses the grant that covers the invocation, if there is one.
    pub(super) fn spend(&mut self, event: &Event, invoked: &ToolInvoked) -> Option<Grant> {
        let at = self.find(&self.invocation(event, invoked))?;
        self.0.remove(at)
    }

    /// The digest of the invocation is read only if a grant has one.
    fn invocation<'a>(&self, event: &'a Event, invoked: &'a ToolInvoked) -> InvokedAction<'a> {
        let matters = self.0.iter().any(|grant| grant.digest.is_some());
        let digest = if matters { stated_digest(event).map(|digest| digest.bytes()) } else { None };
        let agent_id = &event.envelope.producer.agent_id;
        InvokedAction { agent_id, tool: &invoked.tool, digest, stakes: invoked.stakes() }
    }

    /// The grants of one agent, with their indexes.
    fn of<'a>(&'a self, agent_id: &'a str) -> impl Iterator<Item = (usize, &'a Grant)> {
        self.0.iter().enumerate().filter(move |(_, grant)| *grant.agent_id == *agent_id)
    }

    /// Whether there is an unused grant for exactly one action of this tool.
    fn has_exact_grant(&self, agent_id: &str, tool: &ToolName) -> bool {
        self.of(agent_id).any(|(_, grant)| grant.digest.is_some() && grant.is_for(tool))
    }

    /// The grant that an invocation uses: the one for exactly this action, else the oldest for its
    /// tool, else the oldest for any tool. While a grant for exactly one action of the tool is
    /// unused, no other grant covers an invocation that needs an accept, because the accepted
    /// action may have been changed.
    ///
    /// A grant for this tool is used even by an invocation that claims to be harmless, because that
    /// was the accepted action (§4.5.3). If the grant were left over, it would cover a second
    /// action that nobody accepted. A grant for any tool waits for an invocation that needs it,
    /// because it cannot be known which of the harmless ones in between was meant.
    fn find(&self, done: &InvokedAction<'_>) -> Option<usize> {
        let needs_accept = done.stakes.needs_accept();
        let first = |fits: &dyn Fn(&Grant) -> bool| {
            let is_enough = |it: &Grant| !needs_accept || it.covers(done.stakes);
            self.of(done.agent_id).find(|(_, it)| fits(it) && is_enough(it)).map(|(at, _)| at)
        };
        let exact =
            first(&|it| it.digest.is_some() && it.digest == done.digest && it.is_for(done.tool));
        if exact.is_some() || (needs_accept && self.has_exact_grant(done.agent_id, done.tool)) {
            return exact;
        }
        let named = first(&|it| it.digest.is_none() && it.is_for(done.tool));
        let any = || first(&|it| it.digest.is_none() && it.tool.is_none());
        named.or_else(|| if needs_accept { any() } else { None })
    }

    /// Why no grant covers an invocation that needs one. An accept by a person explains more than
    /// an accept by default.
    fn refusal_for(&self, done: &InvokedAction<'_>) -> OrderViolation {
        let tool = done.tool.clone();
        let best = |fits: &dyn Fn(&Grant) -> bool| {
            let mine = || self.of(done.agent_id).map(|(_, it)| it).filter(|it| fits(it));
            mine().find(|it| it.granted_by == GrantedBy::Reply).or_else(|| mine().next())
        };
        if self.has_exact_grant(done.agent_id, done.tool) {
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
