//! What really happened, whatever the model says: calls of tools that failed, actions that were not allowed.
//!
//! Facts are kept for each call with its arguments: that one command succeeded says nothing about another one that the
//! same tool ran.

use std::collections::VecDeque;

use aaep::ToolCallId;
use aaep::event::action::{RiskLevel, ToolCompleted, ToolInvoked, ToolStatus};

use super::claims::claims_success_of;
use crate::english::events;
use crate::words::{cut, exact};

/// How many facts of a session are remembered.
const MAX_FACTS: usize = 32;
/// How many running calls are remembered.
const MAX_CALLS: usize = 64;
/// How many facts are told one by one.
const TOLD: usize = 3;
/// How much of a command or an action is told, in bytes.
const MAX_COMMAND: usize = 160;

/// What is known of the tools of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Truth {
    facts: VecDeque<Fact>,
    /// The calls that have not returned.
    running: VecDeque<ToolCall>,
    /// The call that returned last.
    last: Option<Subject>,
}

/// A call that has not returned.
#[derive(Debug, Clone)]
struct ToolCall {
    call_id: Option<ToolCallId>,
    subject: Subject,
    has_consequences: bool,
}

/// What a fact is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    tool: Option<String>,
    /// The arguments in short, what is said of the call, or the action that was asked for.
    command: Option<String>,
}

/// Something that did not happen, or did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    subject: Subject,
    how: How,
    has_consequences: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    NotAllowed,
    Failed,
    NotInTime,
}

/// What speaks against a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) words: String,
    /// Whether something was refused and nothing went wrong.
    pub(super) is_refusal: bool,
}

impl Truth {
    /// A tool is about to run.
    pub(super) fn invoked(&mut self, tool: &ToolInvoked) {
        let is_risky = matches!(tool.risk_level, Some(RiskLevel::Medium | RiskLevel::High));
        let command = tool.args_summary.as_ref().filter(|it| !it.trim().is_empty());
        let command = command.unwrap_or(&tool.summary_normal).trim().to_owned();
        self.running.push_back(ToolCall {
            call_id: tool.tool_call_id.clone(),
            subject: Subject { tool: Some(tool.tool.as_str().to_owned()), command: Some(command) },
            has_consequences: is_risky || tool.irreversible == Some(true),
        });
        if self.running.len() > MAX_CALLS {
            self.running.pop_front();
        }
    }

    /// A tool returned.
    pub(super) fn completed(&mut self, tool: &ToolCompleted) {
        let (subject, has_consequences) = self.returned(tool);
        self.facts.retain(|fact| {
            let is_settled = fact.how != How::NotAllowed && fact.subject.is_redone_by(&subject);
            !is_settled
        });
        let how = match tool.status {
            ToolStatus::Error => Some(How::Failed),
            ToolStatus::Timeout => Some(How::NotInTime),
            ToolStatus::Success | ToolStatus::Other(_) => None,
        };
        self.last = Some(subject.clone());
        if let Some(how) = how {
            self.remember(Fact { subject, how, has_consequences });
        }
    }

    /// The call that returned: the one of that id, or the newest of that tool.
    fn returned(&mut self, tool: &ToolCompleted) -> (Subject, bool) {
        let name = tool.tool.as_str();
        let is_call = |it: &ToolCall| it.call_id.is_some() && it.call_id == tool.tool_call_id;
        let is_tool = |it: &ToolCall| it.subject.tool.as_deref() == Some(name);
        let at = self.running.iter().position(is_call);
        let at = at.or_else(|| self.running.iter().rposition(is_tool));
        match at.and_then(|at| self.running.remove(at)) {
            Some(call) => (call.subject, call.has_consequences),
            None => (Subject { tool: Some(name.to_owned()), command: None }, false),
        }
    }

    /// An action was asked for and not allowed.
    pub(super) fn not_allowed(&mut self, tool: Option<&str>, action: &str) {
        self.allowed(tool, action);
        let subject = Subject { tool: tool.map(str::to_owned), command: Some(action.to_owned()) };
        self.remember(Fact { subject, how: How::NotAllowed, has_consequences: true });
    }

    /// The same action was asked for again and allowed.
    pub(super) fn allowed(&mut self, tool: Option<&str>, action: &str) {
        self.facts.retain(|fact| {
            let is_same = fact.subject.tool.as_deref() == tool
                && fact.subject.command.as_deref() == Some(action);
            !(fact.how == How::NotAllowed && is_same)
        });
    }

    /// What is to be said after these words, if they claim something that did not happen.
    pub(super) fn against(&self, claim: &str, is_english: bool) -> Option<Contradiction> {
        let differs = |fact: &&Fact| {
            // A claim that names nothing is about what matters, and about what was done last.
            let is_general = fact.has_consequences || self.last.as_ref() == Some(&fact.subject);
            claims_success_of(claim, &fact.subject.text(), is_general, is_english)
        };
        let facts: Vec<&Fact> = self.facts.iter().filter(differs).collect();
        let told: Vec<String> = facts.iter().rev().take(TOLD).rev().map(|it| it.said()).collect();
        if told.is_empty() {
            return None;
        }
        let more = facts.len().saturating_sub(TOLD);
        let words = events::in_fact(&told, more);
        let is_refusal = facts.iter().all(|it| it.how == How::NotAllowed);
        Some(Contradiction { words, is_refusal })
    }

    fn remember(&mut self, fact: Fact) {
        if self.facts.back() == Some(&fact) {
            return;
        }
        self.facts.push_back(fact);
        if self.facts.len() > MAX_FACTS {
            self.facts.pop_front();
        }
    }
}

impl Subject {
    /// Whether another call does the same again: the same command, or one with more or fewer arguments at its end.
    fn is_redone_by(&self, other: &Subject) -> bool {
        let begins = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|it| it.is_empty() || it.starts_with(' '))
        };
        let is_same = match (&self.command, &other.command) {
            (Some(one), Some(other)) => begins(one, other) || begins(other, one),
            (one, other) => one == other,
        };
        self.tool == other.tool && is_same
    }

    /// Everything that it is about, to compare it with a claim.
    fn text(&self) -> String {
        let parts = [self.tool.as_deref(), self.command.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl Fact {
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
            How::NotAllowed => events::NOT_ALLOWED,
            How::Failed => events::FAILED,
            How::NotInTime => events::NOT_IN_TIME,
        };
        format!("{what} {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(truth: &Truth) -> Option<String> {
        truth.against("Done.", true).map(|it| it.words)
    }

    #[test]
    fn what_was_refused_and_then_allowed_is_no_longer_a_fact() {
        let mut truth = Truth::default();
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
        let mut truth = Truth::default();
        for at in 0..10_000 {
            truth.not_allowed(Some(&format!("tool{at}")), "x");
        }
        assert!(truth.facts.len() <= MAX_FACTS);
        assert!(against(&truth).is_some_and(|it| it.ends_with("And 29 more before.")));
    }
}
