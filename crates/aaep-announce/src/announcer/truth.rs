//! What really happened, whatever the model claims: failed tool calls and refused actions.
//!
//! Facts are kept per call and arguments: the success of one command says nothing about another command of the same
//! tool.

use std::collections::VecDeque;

use aaep::ToolCallId;
use aaep::event::action::{ToolCompleted, ToolInvoked, ToolStatus};

use super::claims::claims_success_of;
use crate::english::events;
use crate::words::{cut, exact};

/// How many facts of a session are remembered.
const MAX_FACTS: usize = 32;
/// How many running calls are remembered.
const MAX_CALLS: usize = 64;
/// How many facts are announced one by one.
const MAX_NAMED_FACTS: usize = 3;
/// How much of a command or an action is announced, in bytes.
const MAX_COMMAND: usize = 160;

/// The known facts about the tools of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionFacts {
    facts: VecDeque<FailureFact>,
    running: VecDeque<ToolCall>,
    /// The call that returned last.
    last: Option<FactSubject>,
}

/// A call that has not returned.
#[derive(Debug, Clone)]
struct ToolCall {
    call_id: Option<ToolCallId>,
    subject: FactSubject,
    has_consequences: bool,
}

/// The tool call or action that a fact is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FactSubject {
    tool: Option<String>,
    /// A summary of the arguments, the words for the call, or the requested action.
    command: Option<String>,
}

/// Something that did not happen or did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FailureFact {
    subject: FactSubject,
    how: FailureCause,
    has_consequences: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureCause {
    NotAllowed,
    Failed,
    NotInTime,
}

/// What contradicts a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimContradiction {
    pub(super) words: String,
    /// Whether actions were only refused, and none failed.
    pub(super) is_refusal: bool,
}

impl SessionFacts {
    pub(super) fn invoked(&mut self, tool: &ToolInvoked) {
        let command = tool.args_summary.as_ref().filter(|it| !it.trim().is_empty());
        let command = command.unwrap_or(&tool.summary_normal).trim().to_owned();
        self.running.push_back(ToolCall {
            call_id: tool.tool_call_id.clone(),
            subject: FactSubject {
                tool: Some(tool.tool.as_str().to_owned()),
                command: Some(command),
            },
            has_consequences: tool.states_risk() || tool.irreversible == Some(true),
        });
        if self.running.len() > MAX_CALLS {
            self.running.pop_front();
        }
    }

    pub(super) fn completed(&mut self, tool: &ToolCompleted) {
        let (subject, has_consequences) = self.returned(tool);
        self.facts.retain(|fact| {
            let is_settled =
                fact.how != FailureCause::NotAllowed && fact.subject.is_redone_by(&subject);
            !is_settled
        });
        let how = match tool.status {
            ToolStatus::Error => Some(FailureCause::Failed),
            ToolStatus::Timeout => Some(FailureCause::NotInTime),
            ToolStatus::Success | ToolStatus::Other(_) => None,
        };
        self.last = Some(subject.clone());
        if let Some(how) = how {
            self.remember(FailureFact { subject, how, has_consequences });
        }
    }

    /// The call that returned: the one with this id, or the newest call of this tool.
    fn returned(&mut self, tool: &ToolCompleted) -> (FactSubject, bool) {
        let name = tool.tool.as_str();
        let is_call = |it: &ToolCall| it.call_id.is_some() && it.call_id == tool.tool_call_id;
        let is_tool = |it: &ToolCall| it.subject.tool.as_deref() == Some(name);
        let at = self.running.iter().position(is_call);
        let at = at.or_else(|| self.running.iter().rposition(is_tool));
        match at.and_then(|at| self.running.remove(at)) {
            Some(call) => (call.subject, call.has_consequences),
            None => (FactSubject { tool: Some(name.to_owned()), command: None }, false),
        }
    }

    /// Records that a requested action was not allowed.
    pub(super) fn not_allowed(&mut self, tool: Option<&str>, action: &str) {
        self.allowed(tool, action);
        let subject =
            FactSubject { tool: tool.map(str::to_owned), command: Some(action.to_owned()) };
        self.remember(FailureFact {
            subject,
            how: FailureCause::NotAllowed,
            has_consequences: true,
        });
    }

    /// The same action was requested again and allowed, so its refusal is no longer a fact.
    pub(super) fn allowed(&mut self, tool: Option<&str>, action: &str) {
        self.facts.retain(|fact| {
            let is_same = fact.subject.tool.as_deref() == tool
                && fact.subject.command.as_deref() == Some(action);
            !(fact.how == FailureCause::NotAllowed && is_same)
        });
    }

    /// What to say after these words, if they claim something that did not happen.
    pub(super) fn against(&self, claim: &str, is_english: bool) -> Option<ClaimContradiction> {
        let differs = |fact: &&FailureFact| {
            // A claim that names nothing is about actions with consequences, and about the last call.
            let is_general = fact.has_consequences || self.last.as_ref() == Some(&fact.subject);
            claims_success_of(claim, &fact.subject.text(), is_general, is_english)
        };
        let facts: Vec<&FailureFact> = self.facts.iter().filter(differs).collect();
        let named: Vec<String> =
            facts.iter().rev().take(MAX_NAMED_FACTS).rev().map(|it| it.said()).collect();
        if named.is_empty() {
            return None;
        }
        let more = facts.len().saturating_sub(MAX_NAMED_FACTS);
        let words = events::in_fact(&named, more);
        let is_refusal = facts.iter().all(|it| it.how == FailureCause::NotAllowed);
        Some(ClaimContradiction { words, is_refusal })
    }

    fn remember(&mut self, fact: FailureFact) {
        if self.facts.back() == Some(&fact) {
            return;
        }
        self.facts.push_back(fact);
        if self.facts.len() > MAX_FACTS {
            self.facts.pop_front();
        }
    }
}

impl FactSubject {
    /// Whether another call repeats this one: the same command, or one with more or fewer arguments at its end.
    fn is_redone_by(&self, other: &FactSubject) -> bool {
        let begins = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|it| it.is_empty() || it.starts_with(' '))
        };
        let is_same = match (&self.command, &other.command) {
            (Some(one), Some(other)) => begins(one, other) || begins(other, one),
            (one, other) => one == other,
        };
        self.tool == other.tool && is_same
    }

    /// All its words, for comparing it with a claim.
    fn text(&self) -> String {
        let parts = [self.tool.as_deref(), self.command.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl FailureFact {
    fn said(&self) -> String {
        let what = match (&self.subject.command, &self.subject.tool) {
            (Some(command), _) => {
                let command = exact(cut(command, MAX_COMMAND));
                format!("“{}”", command.trim_end_matches('.'))
            }
            (None, Some(tool)) => tool.clone(),
            (None, None) => events::SOMETHING.to_owned(),
        };
        let how = match self.how {
            FailureCause::NotAllowed => events::NOT_ALLOWED,
            FailureCause::Failed => events::FAILED,
            FailureCause::NotInTime => events::NOT_IN_TIME,
        };
        format!("{what} {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(truth: &SessionFacts) -> Option<String> {
        truth.against("Done.", true).map(|it| it.words)
    }

    #[test]
    fn what_was_refused_and_then_allowed_is_no_longer_a_fact() {
        let mut truth = SessionFacts::default();
        truth.not_allowed(Some("delete_files"), "Delete 17 pictures.");
        let said = "In fact “Delete 17 pictures” was not allowed.";
        assert_eq!(against(&truth).as_deref(), Some(said));
        truth.allowed(Some("delete_files"), "Delete 18 pictures.");
        assert!(against(&truth).is_some(), "another action was allowed");
        truth.allowed(Some("delete_files"), "Delete 17 pictures.");
        assert_eq!(against(&truth), None);
        truth.not_allowed(None, "Send the\nmail.");
        let said = "In fact “Send the [line break] mail” was not allowed.";
        assert_eq!(against(&truth).as_deref(), Some(said));
    }

    #[test]
    fn facts_stay_bounded() {
        let mut truth = SessionFacts::default();
        for at in 0..10_000 {
            truth.not_allowed(Some(&format!("tool{at}")), "x");
        }
        assert!(truth.facts.len() <= MAX_FACTS);
        assert!(against(&truth).is_some_and(|it| it.ends_with("And 29 more before.")));
    }
}
