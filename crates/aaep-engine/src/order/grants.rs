//! What people accepted and has not been done yet (§2.3.5, §4.3.1, §4.5.3, ruling 17).
//!
//! One accept covers one invocation. Nothing here ever makes a grant of its own; where in doubt
//! there is one grant less, and the agent asks again.

use std::collections::VecDeque;

use aaep::event::action::{RiskLevel, ToolInvoked};
use aaep::extension::{Delivery, stated_digest};
use aaep::{Event, ToolName};

use super::violation::OrderViolation;

/// The most accepted actions of a session that wait to be done.
pub const MAX_GRANTS: usize = 64;

/// About how much memory one grant takes, the longest name counted.
const BYTES_EACH: usize = 320;

/// That an action was accepted: by a person, or by a timeout whose default is accept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grant {
    /// The tool that may be invoked; any where the question named none.
    pub tool: Option<ToolName>,
    /// What exactly was accepted, where the question said so: then the invocation has to state the
    /// same digest.
    pub digest: Option<[u8; 32]>,
}

impl Grant {
    /// One invocation of this tool.
    pub fn for_tool(tool: ToolName) -> Self {
        Grant { tool: Some(tool), digest: None }
    }

    /// One invocation of any tool, where the question named none.
    pub fn for_any_tool() -> Self {
        Grant::default()
    }

    /// What a question asks for: exactly one action, one tool, or what the specification has.
    pub fn asked_by(event: &Event) -> Self {
        let said = event.extensions.as_ref().and_then(|_| Delivery::of(event));
        let Some(Delivery { tool: Some(tool), action_digest, .. }) = said else {
            return Grant::for_any_tool();
        };
        Grant { tool: Some(tool), digest: action_digest.map(|digest| digest.bytes()) }
    }
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

    /// Whether an invocation that needs an accept is covered, and if not, what was accepted instead.
    pub(super) fn check(&self, event: &Event, invoked: &ToolInvoked) -> Result<(), OrderViolation> {
        let digest = self.stated(event);
        if self.find(invoked, digest).is_some() {
            return Ok(());
        }
        let tool = invoked.tool.clone();
        if self.is_bound(&tool) {
            return Err(match digest {
                Some(_) => OrderViolation::ActionDiffers { tool },
                None => OrderViolation::ActionDigestMissing { tool },
            });
        }
        let other = self.0.iter().find(|grant| grant.digest.is_some());
        Err(match other.and_then(|grant| grant.tool.clone()) {
            Some(accepted) => OrderViolation::OtherToolAccepted { tool, accepted },
            None if is_irreversible(invoked) => OrderViolation::IrreversibleWithoutAccept { tool },
            None => OrderViolation::HighRiskWithoutAccept { tool },
        })
    }

    /// Uses the grant that covers the invocation, if there is one.
    pub(super) fn spend(&mut self, event: &Event, invoked: &ToolInvoked) -> Option<Grant> {
        let digest = self.stated(event);
        self.0.remove(self.find(invoked, digest)?)
    }

    /// The digest that an invocation states. Nobody looks for it where no grant has one.
    fn stated(&self, event: &Event) -> Option<[u8; 32]> {
        let matters = self.0.iter().any(|grant| grant.digest.is_some());
        if matters { stated_digest(event).map(|digest| digest.bytes()) } else { None }
    }

    /// Whether a grant for exactly one action of this tool is unused.
    fn is_bound(&self, tool: &ToolName) -> bool {
        self.0.iter().any(|grant| grant.digest.is_some() && grant.tool.as_ref() == Some(tool))
    }

    /// The grant that an invocation uses: the one for exactly this action, else the oldest for its
    /// tool, else the oldest for any. While a grant for exactly one action of the tool is unused, no
    /// other covers one that needs an accept: what was accepted may have been changed.
    ///
    /// A grant for this tool is used even by an invocation that calls itself harmless, because
    /// that was the accepted action (§4.5.3): left over, it would cover a second one that nobody
    /// accepted. A grant for any tool waits for the one that needs it, because which of the harmless
    /// ones between was meant cannot be known.
    fn find(&self, invoked: &ToolInvoked, digest: Option<[u8; 32]>) -> Option<usize> {
        let tool = Some(&invoked.tool);
        let is_exact =
            |it: &Grant| it.digest.is_some() && it.digest == digest && it.tool.as_ref() == tool;
        let exact = self.0.iter().position(is_exact);
        let needs_accept = needs_accept(invoked);
        if exact.is_some() || (needs_accept && self.is_bound(&invoked.tool)) {
            return exact;
        }
        let is_loose = |it: &Grant| it.digest.is_none() && it.tool.as_ref() == tool;
        let named = self.0.iter().position(is_loose);
        let any = || self.0.iter().position(|it| it.digest.is_none() && it.tool.is_none());
        named.or_else(|| if needs_accept { any() } else { None })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len() * BYTES_EACH
    }
}

/// Whether people have to agree first: the action cannot be undone, or the producer calls its risk high.
pub(super) fn needs_accept(invoked: &ToolInvoked) -> bool {
    is_irreversible(invoked) || invoked.risk_level == Some(RiskLevel::High)
}

/// Whether the producer says that the action cannot be undone.
fn is_irreversible(invoked: &ToolInvoked) -> bool {
    invoked.irreversible == Some(true)
}
