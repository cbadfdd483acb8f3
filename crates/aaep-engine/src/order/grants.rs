//! What people accepted and has not been done yet (§4.3.1, §4.5.3, ruling 17).
//!
//! One accept covers one invocation. Nothing here ever makes a grant of its own; where in doubt
//! there is one grant less, and the agent asks again.

use std::collections::VecDeque;

use aaep::ToolName;
use aaep::event::action::ToolInvoked;

/// The most accepted actions of a session that wait to be done.
pub const MAX_GRANTS: usize = 64;

/// About how much memory one grant takes, the longest name counted.
const BYTES_EACH: usize = 320;

/// That an action was accepted: by a person, or by a timeout whose default is accept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grant {
    /// The tool that may be invoked; any where the question named none.
    pub tool: Option<ToolName>,
    /// What exactly was accepted, for the caller: given back when the grant is used.
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

    /// Whether the invocation is covered.
    pub(super) fn cover(&self, invoked: &ToolInvoked) -> bool {
        self.find(invoked).is_some()
    }

    /// Uses the grant that covers the invocation, if there is one.
    pub(super) fn spend(&mut self, invoked: &ToolInvoked) -> Option<Grant> {
        self.0.remove(self.find(invoked)?)
    }

    /// The grant that an invocation uses: the oldest for its tool, else the oldest for any.
    ///
    /// A grant for this tool is used even by an invocation that calls itself reversible, because
    /// that was the accepted action (§4.5.3): left over, it would cover a second one that nobody
    /// accepted. A grant for any tool waits for the irreversible one, because which of the harmless
    /// ones between was meant cannot be known.
    fn find(&self, invoked: &ToolInvoked) -> Option<usize> {
        let named = self.0.iter().position(|grant| grant.tool.as_ref() == Some(&invoked.tool));
        let any = || self.0.iter().position(|grant| grant.tool.is_none());
        named.or_else(|| if is_irreversible(invoked) { any() } else { None })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len() * BYTES_EACH
    }
}

/// Whether the producer says that the action cannot be undone.
pub(super) fn is_irreversible(invoked: &ToolInvoked) -> bool {
    invoked.irreversible == Some(true)
}
