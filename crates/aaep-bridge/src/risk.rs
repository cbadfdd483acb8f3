//! How risky an action of an agent is, judged before it happens by a table that people can read and change.
//!
//! What cannot be parsed, is only known when it runs, or has no row in the table is never of low risk. Paths are judged
//! as they are written: this never looks whether a path is a link. Nothing here decides whether somebody is asked; that
//! is the policy's choice.

mod command;
mod path;
mod sed;
mod shell;
mod table;
#[cfg(test)]
mod tests;
mod word;

use std::fmt;

pub use path::ActionPlace;
pub use table::{RiskTable, TableError};

/// How risky an action is, from the mildest to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskGrade {
    /// It looks at something and changes nothing.
    Reads,
    /// It changes something inside the project, as agents do all day.
    Ordinary,
    /// A person should know before it happens.
    Risky,
    /// It can destroy something, reach other people, or run what nobody has seen.
    Dangerous,
}

/// What an agent is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAction {
    /// It runs a shell command.
    Shell(String),
    /// It reads a file or a folder.
    ReadPath(String),
    /// It creates or changes a file.
    WritePath(String),
    /// It deletes a file.
    DeletePath(String),
    /// It fetches an address.
    Fetch(String),
    /// It thinks, plans or searches, and touches nothing.
    Nothing,
    /// It runs a tool that nothing is known of.
    Unknown,
}

/// How risky an action is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RiskVerdict {
    /// The worst of everything that the action does.
    pub grade: RiskGrade,
    /// Whether nothing brings back what it takes away.
    pub cannot_be_undone: bool,
    /// Each completes the sentence "It …". The worst comes first.
    pub reasons: Vec<String>,
}

/// One thing that an action does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RiskFinding {
    grade: RiskGrade,
    cannot_be_undone: bool,
    why: String,
}

impl RiskFinding {
    fn new(grade: RiskGrade, why: &str) -> Self {
        RiskFinding { grade, cannot_be_undone: false, why: why.to_owned() }
    }
}

/// The most reasons that a verdict names.
const MAX_REASONS: usize = 8;

impl RiskVerdict {
    /// Sums up findings.
    fn of(mut findings: Vec<RiskFinding>) -> Self {
        // The sort keeps the order of what is equally risky.
        findings.sort_by_key(|it| std::cmp::Reverse(it.grade));
        let grade = findings.first().map_or(RiskGrade::Reads, |it| it.grade);
        let cannot_be_undone = findings.iter().any(|it| it.cannot_be_undone);
        let mut reasons: Vec<String> = Vec::new();
        for finding in findings {
            if !finding.why.is_empty() && !reasons.contains(&finding.why) {
                reasons.push(finding.why);
            }
        }
        reasons.truncate(MAX_REASONS);
        RiskVerdict { grade, cannot_be_undone, reasons }
    }

    /// A verdict for one reason.
    pub(crate) fn because(grade: RiskGrade, why: &str) -> Self {
        RiskVerdict::of(vec![RiskFinding::new(grade, why)])
    }

    /// The worse of two verdicts, with the reasons of both.
    pub(crate) fn worse(self, other: RiskVerdict) -> RiskVerdict {
        let (mut worst, milder) =
            if self.grade >= other.grade { (self, other) } else { (other, self) };
        worst.cannot_be_undone |= milder.cannot_be_undone;
        for reason in milder.reasons {
            if worst.reasons.len() < MAX_REASONS && !worst.reasons.contains(&reason) {
                worst.reasons.push(reason);
            }
        }
        worst
    }

    /// The `risk_level` of the specification.
    pub fn level(&self) -> &'static str {
        match self.grade {
            RiskGrade::Reads | RiskGrade::Ordinary => "low",
            RiskGrade::Risky => "medium",
            RiskGrade::Dangerous => "high",
        }
    }
}

impl fmt::Display for RiskVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reasons.split_last() {
            None => f.write_str("It only looks."),
            Some((last, [])) => write!(f, "It {last}."),
            Some((last, others)) => write!(f, "It {}, and it {last}.", others.join(", it ")),
        }
    }
}

impl RiskTable {
    /// Judges what one tool does: the worst of all its actions.
    pub fn judge(&self, actions: &[AgentAction], place: &ActionPlace) -> RiskVerdict {
        RiskVerdict::of(actions.iter().flat_map(|it| self.findings(it, place)).collect())
    }

    fn findings(&self, action: &AgentAction, place: &ActionPlace) -> Vec<RiskFinding> {
        match action {
            AgentAction::Shell(text) => shell::findings(self, place, text),
            AgentAction::ReadPath(path) => path::read_finding(self, path).into_iter().collect(),
            AgentAction::WritePath(path) => place.write(
                self,
                path,
                RiskFinding::new(RiskGrade::Ordinary, "creates or changes a file"),
            ),
            AgentAction::DeletePath(path) => place.write(
                self,
                path,
                RiskFinding {
                    grade: RiskGrade::Risky,
                    cannot_be_undone: true,
                    why: "deletes files".to_owned(),
                },
            ),
            AgentAction::Fetch(address) => fetch(address),
            AgentAction::Nothing => Vec::new(),
            AgentAction::Unknown => {
                vec![RiskFinding::new(
                    RiskGrade::Risky,
                    "uses a tool that is not in the risk table",
                )]
            }
        }
    }

    /// Judges a tool of an MCP server by the row for it. `None` if there is no row.
    pub fn judge_tool(&self, server: &str, tool: &str) -> Option<RiskVerdict> {
        self.tool_row(server, tool).map(|row| {
            let why = match row.why.as_str() {
                "" if row.grade > RiskGrade::Reads => "is in your own risk table",
                why => why,
            };
            let mut verdict = RiskVerdict::because(row.grade, why);
            verdict.cannot_be_undone = row.cannot_be_undone;
            verdict
        })
    }

    /// Judges a shell command.
    pub fn judge_shell(&self, text: &str, place: &ActionPlace) -> RiskVerdict {
        RiskVerdict::of(shell::findings(self, place, text))
    }
}

/// Judges fetching an address. Only reading from this machine or from the web with no further words is mild: a long
/// query can carry something away.
fn fetch(address: &str) -> Vec<RiskFinding> {
    const MAX_PLAIN_QUERY_BYTES: usize = 200;
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    let is_plain = is_web && query.len() <= MAX_PLAIN_QUERY_BYTES && !address.contains('@');
    let grade = if is_plain { RiskGrade::Ordinary } else { RiskGrade::Risky };
    vec![RiskFinding::new(grade, "reads from another machine")]
}
