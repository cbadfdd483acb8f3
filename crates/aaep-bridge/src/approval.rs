//! Whether the person or a model approves what an agent wants to do, as far as its own settings say so.

use serde_json::Value;

use crate::agent::BridgedAgent;

/// Whether the person or a model approves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver {
    /// The person is asked.
    Person,
    /// A model decides in the place of the person, or the person for what it does not decide.
    Model,
    /// Everything runs.
    Nobody,
    /// This is not known.
    Unknown,
}

impl BridgedAgent {
    /// The file in the agent's folder that says who approves.
    pub fn approval_file(self) -> Option<&'static str> {
        match self {
            BridgedAgent::ClaudeCode | BridgedAgent::GeminiCli | BridgedAgent::QwenCode => {
                Some("settings.json")
            }
            BridgedAgent::Codex => Some("config.toml"),
            BridgedAgent::CopilotCli | BridgedAgent::KimiCode | BridgedAgent::Cline => None,
        }
    }

    /// Who approves in a terminal, from that file. Flags with which the agent is started are not known here.
    pub fn approver(self, text: &str) -> Approver {
        let json = || serde_json::from_str::<Value>(text).unwrap_or_default();
        match self {
            BridgedAgent::ClaudeCode => match json()["permissions"]["defaultMode"].as_str() {
                None | Some("auto") => Approver::Model,
                Some("default" | "manual" | "plan") => Approver::Person,
                Some("bypassPermissions") => Approver::Nobody,
                Some(_) => Approver::Unknown,
            },
            BridgedAgent::QwenCode => match json()["tools"]["approvalMode"].as_str() {
                None | Some("auto") => Approver::Model,
                Some("default" | "plan") => Approver::Person,
                Some("yolo") => Approver::Nobody,
                Some(_) => Approver::Unknown,
            },
            BridgedAgent::GeminiCli => match json()["general"]["defaultApprovalMode"].as_str() {
                None | Some("default" | "plan") => Approver::Person,
                Some("yolo") => Approver::Nobody,
                Some(_) => Approver::Unknown,
            },
            BridgedAgent::Codex => {
                let table = text.parse::<toml::Table>().unwrap_or_default();
                match table.get("approval_policy").map(|it| it.as_str()) {
                    None | Some(Some("on-request" | "untrusted")) => Approver::Person,
                    Some(Some("never")) => Approver::Nobody,
                    Some(_) => Approver::Unknown,
                }
            }
            BridgedAgent::CopilotCli => Approver::Person,
            BridgedAgent::KimiCode | BridgedAgent::Cline => Approver::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_settings_say_who_approves() {
        for (agent, text, approver) in [
            (BridgedAgent::ClaudeCode, "{}", Approver::Model),
            (
                BridgedAgent::ClaudeCode,
                r#"{"permissions":{"defaultMode":"default"}}"#,
                Approver::Person,
            ),
            (
                BridgedAgent::ClaudeCode,
                r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#,
                Approver::Nobody,
            ),
            (BridgedAgent::QwenCode, "", Approver::Model),
            (BridgedAgent::QwenCode, r#"{"tools":{"approvalMode":"default"}}"#, Approver::Person),
            (BridgedAgent::Codex, "", Approver::Person),
            (BridgedAgent::Codex, "approval_policy = \"never\"", Approver::Nobody),
            (BridgedAgent::GeminiCli, "{}", Approver::Person),
            (BridgedAgent::CopilotCli, "", Approver::Person),
        ] {
            assert_eq!(agent.approver(text), approver, "{} {text}", agent.name());
        }
    }
}
