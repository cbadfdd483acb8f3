//! When the person wants to be asked before an agent acts.

use crate::risk::RiskGrade;

/// What the person chose for an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskPolicy {
    /// Say what the agent does. Ask only where the agent itself asks.
    Tell,
    /// Ask before what is risky.
    #[default]
    AskWhenRisky,
    /// Ask before everything that changes something.
    AskBeforeChanges,
}

impl AskPolicy {
    /// All policies, with the names that people type.
    pub const NAMES: [(&'static str, AskPolicy); 3] = [
        ("tell", AskPolicy::Tell),
        ("risky", AskPolicy::AskWhenRisky),
        ("changes", AskPolicy::AskBeforeChanges),
    ];

    /// Reads the name of a policy.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }

    /// The name that people type.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("risky", |(name, _)| name)
    }

    /// Whether the person wants to be asked before an action of this grade.
    pub fn wants_ask(self, grade: RiskGrade) -> bool {
        match self {
            AskPolicy::Tell => false,
            AskPolicy::AskWhenRisky => grade >= RiskGrade::Risky,
            AskPolicy::AskBeforeChanges => grade >= RiskGrade::Ordinary,
        }
    }
}
