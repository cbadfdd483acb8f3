//! Tool calls: each is invoked once and completed once (§4.3.1, §4.3.2, §4.5.2).
//!
//! Calls are paired by `tool_call_id` if they have one, else by the name of the tool, oldest call
//! first. Any producer of the session may complete a call. An id that the hub made for an agent
//! never comes again, so it is remembered only while its call runs.

use std::sync::Arc;

use aaep::event::action::{ToolCompleted, ToolInvoked};
use aaep::event::reasoning::state::{AWAITING_INPUT, CALLING_TOOL};
use aaep::{ToolCallId, ToolName};

use super::seen::{MAX_SEEN, UsedIds};
use super::violation::OrderViolation;
use crate::ids::is_made_call;

/// The most tool calls with an id from their agent in one session. Calls without an id are not
/// remembered.
pub const MAX_TOOLS: usize = MAX_SEEN;

/// The most tools of a session that run at a time.
pub const MAX_OPEN_TOOLS: usize = 256;

/// About how much memory one running call takes, with the longest names.
const BYTES_EACH: usize = 400;

/// A tool that was invoked and has not completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTool {
    /// The name of the tool.
    pub tool: ToolName,
    /// The id of the call, if it has one.
    pub tool_call_id: Option<ToolCallId>,
    /// The agent that invoked it.
    pub agent_id: Arc<str>,
}

/// The tool calls of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionTools {
    /// The calls that are running, oldest first.
    open: Vec<OpenTool>,
    /// The ids of all calls, including those that are over.
    seen: UsedIds,
    /// Whether calls may be running that are not known here, because a part of the stream was not
    /// seen.
    pub(super) may_be_unknown: bool,
}

impl SessionTools {
    pub(super) fn open(&self) -> &[OpenTool] {
        &self.open
    }

    pub(super) fn check_invoked(&self, invoked: &ToolInvoked) -> Result<(), OrderViolation> {
        if let Some(id) = &invoked.tool_call_id {
            let is_running = || self.open.iter().any(|open| open.tool_call_id.as_ref() == Some(id));
            let is_made = is_made_call(id);
            if self.seen.contains(id.as_str()) || (is_made && is_running()) {
                return Err(OrderViolation::ToolCallIdReused { tool_call_id: id.clone() });
            }
            if !is_made && self.seen.is_full() {
                return Err(OrderViolation::TooManyTools);
            }
        }
        if self.open.len() >= MAX_OPEN_TOOLS {
            return Err(OrderViolation::TooManyOpenTools);
        }
        Ok(())
    }

    pub(super) fn check_completed(&self, completed: &ToolCompleted) -> Result<(), OrderViolation> {
        match self.find(completed) {
            Some(at) if self.open[at].tool == completed.tool => Ok(()),
            Some(at) => {
                Err(OrderViolation::ToolNameDiffers { invoked: self.open[at].tool.clone() })
            }
            None if self.may_be_unknown && !self.is_over(completed) => Ok(()),
            None => Err(OrderViolation::ToolNotInvoked {
                tool: completed.tool.clone(),
                tool_call_id: completed.tool_call_id.clone(),
            }),
        }
    }

    /// Checks that a producer that leaves `calling_tool` has completed what it invoked (§4.3.2).
    /// Whether another state follows a tool cannot be seen, and waiting for a person may happen
    /// while the tool runs.
    pub(super) fn check_left(
        &self,
        agent_id: &str,
        from: &str,
        to: &str,
    ) -> Result<(), OrderViolation> {
        let leaves = from == CALLING_TOOL && ![CALLING_TOOL, AWAITING_INPUT].contains(&to);
        let running = self.open.iter().find(|open| leaves && *open.agent_id == *agent_id);
        running.map_or(Ok(()), |open| {
            Err(OrderViolation::ToolLeftRunning {
                tool: open.tool.clone(),
                tool_call_id: open.tool_call_id.clone(),
            })
        })
    }

    /// Checks that no tool is running when the session completes.
    pub(super) fn check_none_open(&self) -> Result<(), OrderViolation> {
        self.open.first().map_or(Ok(()), |open| {
            Err(OrderViolation::ToolStillOpen {
                tool: open.tool.clone(),
                tool_call_id: open.tool_call_id.clone(),
            })
        })
    }

    pub(super) fn invoke(&mut self, invoked: &ToolInvoked, agent_id: Arc<str>) {
        if let Some(id) = invoked.tool_call_id.as_ref().filter(|id| !is_made_call(id)) {
            self.seen.insert(id.as_str());
        }
        if self.open.len() < MAX_OPEN_TOOLS {
            let (tool, tool_call_id) = (invoked.tool.clone(), invoked.tool_call_id.clone());
            self.open.push(OpenTool { tool, tool_call_id, agent_id });
        }
    }

    pub(super) fn complete(&mut self, completed: &ToolCompleted) {
        if let Some(at) = self.find(completed) {
            self.open.remove(at);
        } else if let Some(id) = completed.tool_call_id.as_ref().filter(|_| self.may_be_unknown) {
            self.seen.insert(id.as_str());
        }
    }

    /// Forgets which tools are running, because a part of the stream was not seen.
    pub(super) fn lose_track(&mut self) {
        self.open.clear();
        self.may_be_unknown = true;
    }

    pub(super) fn take_open(&mut self) -> Vec<OpenTool> {
        std::mem::take(&mut self.open)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.open.len() * BYTES_EACH + self.seen.memory_bytes()
    }

    /// The call that a completion without an id refers to: the oldest call of that tool and agent
    /// whose id the hub made, or the only one that runs. `None` if calls without an id run, which
    /// are paired by name.
    pub(super) fn to_complete(&self, tool: &str, agent_id: &str) -> Option<&ToolCallId> {
        let same_tool = || self.open.iter().filter(|open| open.tool.as_str() == tool);
        if same_tool().any(|open| open.tool_call_id.is_none()) {
            return None;
        }
        let made = same_tool()
            .filter(|open| *open.agent_id == *agent_id)
            .filter_map(|open| open.tool_call_id.as_ref())
            .find(|id| is_made_call(id));
        let mut all = same_tool();
        made.or_else(|| match (all.next(), all.next()) {
            (Some(only), None) => only.tool_call_id.as_ref(),
            _ => None,
        })
    }

    /// The running call that this event completes: the one with the same id, or the oldest of that
    /// name without an id.
    fn find(&self, completed: &ToolCompleted) -> Option<usize> {
        self.open.iter().position(|open| {
            open.tool_call_id == completed.tool_call_id
                && (open.tool_call_id.is_some() || open.tool == completed.tool)
        })
    }

    fn is_over(&self, completed: &ToolCompleted) -> bool {
        completed.tool_call_id.as_ref().is_some_and(|id| self.seen.contains(id.as_str()))
    }
}
