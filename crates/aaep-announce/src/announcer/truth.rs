//! What really happened, whatever the model says: tools that failed, actions that were not allowed.

use std::collections::VecDeque;

use aaep::event::action::{RiskLevel, ToolCompleted, ToolInvoked, ToolStatus};

use crate::words::{cut, exact};

/// How many facts of a session are remembered.
const MAX_FACTS: usize = 32;
/// How many running tools with consequences are remembered.
const MAX_RUNNING: usize = 64;
/// How many facts are told one by one.
const TOLD: usize = 3;
/// How much of an action is told, in bytes.
const MAX_ACTION: usize = 160;

/// What is known of the tools of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Truth {
    facts: VecDeque<Fact>,
    /// The names of the tools with consequences that were invoked or asked for.
    with_consequences: VecDeque<String>,
    /// The tool that ran last.
    last_tool: Option<String>,
}

/// Something that did not happen, or did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    /// The tool, or the action where no tool was named.
    what: What,
    how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Tool { name: String, action: Option<String> },
    Action(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    NotAllowed,
    Failed,
    NotInTime,
}

impl Truth {
    /// A tool is about to run.
    pub(super) fn invoked(&mut self, tool: &ToolInvoked) {
        let name = tool.tool.as_str();
        self.last_tool = Some(name.to_owned());
        let is_risky = matches!(tool.risk_level, Some(RiskLevel::Medium | RiskLevel::High));
        if is_risky || tool.irreversible == Some(true) {
            self.has_consequences(name);
        }
    }

    /// A tool returned.
    pub(super) fn completed(&mut self, tool: &ToolCompleted) {
        let name = tool.tool.as_str().to_owned();
        let how = match tool.status {
            ToolStatus::Success => {
                self.facts.retain(|fact| !(fact.is_failure() && fact.is_of(&name)));
                None
            }
            ToolStatus::Error => Some(How::Failed),
            ToolStatus::Timeout => Some(How::NotInTime),
            ToolStatus::Other(_) => None,
        };
        self.last_tool = Some(name.clone());
        if let Some(how) = how {
            self.facts.retain(|fact| !(fact.is_failure() && fact.is_of(&name)));
            self.remember(Fact { what: What::Tool { name, action: None }, how });
        }
    }

    /// An action was asked for and not allowed.
    pub(super) fn not_allowed(&mut self, tool: Option<&str>, action: &str) {
        self.allowed(tool, action);
        let action = action.to_owned();
        let what = match tool {
            Some(name) => {
                self.has_consequences(name);
                What::Tool { name: name.to_owned(), action: Some(action) }
            }
            None => What::Action(action),
        };
        self.remember(Fact { what, how: How::NotAllowed });
    }

    /// The same action was asked for again and allowed.
    pub(super) fn allowed(&mut self, tool: Option<&str>, action: &str) {
        self.facts.retain(|fact| {
            let is_same = match &fact.what {
                What::Tool { name, action: Some(before) } => {
                    Some(name.as_str()) == tool && before == action
                }
                What::Tool { action: None, .. } => false,
                What::Action(before) => tool.is_none() && before == action,
            };
            !(fact.how == How::NotAllowed && is_same)
        });
    }

    /// What is to be said after a claim of success, if anything speaks against it.
    pub(super) fn against(&self) -> Option<String> {
        let counts = |fact: &&Fact| match &fact.what {
            _ if fact.how == How::NotAllowed => true,
            What::Tool { name, .. } => {
                self.with_consequences.contains(name) || self.last_tool.as_ref() == Some(name)
            }
            What::Action(_) => true,
        };
        let facts: Vec<&Fact> = self.facts.iter().filter(counts).collect();
        let told: Vec<String> = facts.iter().rev().take(TOLD).rev().map(|it| it.said()).collect();
        if told.is_empty() {
            return None;
        }
        let more = facts.len().saturating_sub(TOLD);
        let more = if more > 0 { format!(" And {more} more before.") } else { String::new() };
        Some(format!("In fact {}.{more}", told.join(", and ")))
    }

    fn has_consequences(&mut self, name: &str) {
        if !self.with_consequences.iter().any(|it| it == name) {
            self.with_consequences.push_back(name.to_owned());
            if self.with_consequences.len() > MAX_RUNNING {
                self.with_consequences.pop_front();
            }
        }
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

impl Fact {
    fn is_failure(&self) -> bool {
        self.how != How::NotAllowed
    }

    fn is_of(&self, tool: &str) -> bool {
        matches!(&self.what, What::Tool { name, .. } if name == tool)
    }

    fn said(&self) -> String {
        let what = match &self.what {
            What::Tool { name, .. } => name.clone(),
            What::Action(action) => {
                let action = exact(cut(action, MAX_ACTION));
                format!("“{}”", action.trim_end_matches('.'))
            }
        };
        let how = match self.how {
            How::NotAllowed => "was not allowed",
            How::Failed => "failed",
            How::NotInTime => "did not finish in time",
        };
        format!("{what} {how}")
    }
}

/// Words with which success is claimed, and words that take it back.
const CLAIMS: &[&str] = &[
    "done",
    "deleted",
    "removed",
    "completed",
    "finished",
    "success",
    "successful",
    "successfully",
    "fixed",
    "gone",
    "sent",
    "updated",
    "created",
    "written",
    "installed",
    "ready",
    "cleaned",
    "moved",
    "saved",
    "pushed",
    "deployed",
    "complete",
    "worked",
];
const DENIALS: &[&str] = &[
    "not",
    "failed",
    "fail",
    "fails",
    "unable",
    "denied",
    "refused",
    "rejected",
    "declined",
    "permission",
    "cannot",
    "can't",
    "couldn't",
    "didn't",
    "wasn't",
    "weren't",
    "blocked",
];

/// Whether an agent claims success. In a language that we do not know, whatever it says may be a claim.
pub(super) fn claims_success(text: &str, is_english: bool) -> bool {
    if !is_english {
        return true;
    }
    let is = |list: &[&str]| {
        text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'))
            .any(|word| list.iter().any(|it| word.replace('’', "'").eq_ignore_ascii_case(it)))
    };
    is(CLAIMS) && !is(DENIALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_told_from_an_admission() {
        assert!(claims_success("Done! All 17 pictures are gone.", true));
        assert!(claims_success("Successfully removed.", true));
        assert!(!claims_success("I did not delete the pictures.", true));
        assert!(!claims_success("I couldn’t delete them, so nothing was removed.", true));
        assert!(!claims_success("Let me look at it.", true));
        assert!(claims_success("Fertig, alles gelöscht.", false));
    }

    #[test]
    fn what_was_refused_and_then_allowed_is_no_longer_a_fact() {
        let mut truth = Truth::default();
        truth.not_allowed(Some("delete_files"), "Delete 17 pictures.");
        assert_eq!(truth.against().as_deref(), Some("In fact delete_files was not allowed."));
        truth.allowed(Some("delete_files"), "Delete 18 pictures.");
        assert!(truth.against().is_some(), "another action was allowed");
        truth.allowed(Some("delete_files"), "Delete 17 pictures.");
        assert_eq!(truth.against(), None);
        truth.not_allowed(None, "Send the\nmail.");
        assert_eq!(
            truth.against().as_deref(),
            Some("In fact “Send the [line break] mail” was not allowed.")
        );
    }

    #[test]
    fn facts_stay_bounded() {
        let mut truth = Truth::default();
        for at in 0..10_000 {
            truth.not_allowed(Some(&format!("tool{at}")), "x");
        }
        assert!(truth.facts.len() <= MAX_FACTS && truth.with_consequences.len() <= MAX_RUNNING);
        assert!(truth.against().is_some_and(|it| it.ends_with("And 29 more before.")));
    }
}
