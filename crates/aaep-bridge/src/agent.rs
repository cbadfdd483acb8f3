//! The agents that people already use and that are reached through their hooks.

use crate::dialect::AgentDialect;
use crate::dialects;
use crate::settings::SettingsForm;

/// An agent that knows nothing of AAEP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgedAgent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// Qwen Code.
    QwenCode,
    /// GitHub Copilot CLI.
    CopilotCli,
    /// Kimi Code.
    KimiCode,
    /// Cline.
    Cline,
}

impl BridgedAgent {
    /// All agents, in the order in which people see them.
    pub const ALL: &'static [BridgedAgent] = &[
        BridgedAgent::ClaudeCode,
        BridgedAgent::Codex,
        BridgedAgent::GeminiCli,
        BridgedAgent::QwenCode,
        BridgedAgent::CopilotCli,
        BridgedAgent::KimiCode,
        BridgedAgent::Cline,
    ];

    /// The agent with this id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.id() == id)
    }

    /// The name that people type, and by which the hub knows the agent.
    pub fn id(self) -> &'static str {
        self.dialect().id()
    }

    /// The name that people hear.
    pub fn name(self) -> &'static str {
        self.dialect().name()
    }

    /// How long one call of a hook may take before the agent no longer waits for it, in seconds, if it decides
    /// whether a tool runs.
    pub fn gate_seconds(self) -> u64 {
        self.dialect().times().hook_seconds
    }

    /// The variable in which the agent says which folder is the project.
    pub fn project_variable(self) -> Option<&'static str> {
        self.dialect().project_variable()
    }

    /// The program that people start, and the version from which its hooks were recorded.
    pub fn program(self) -> (&'static str, &'static str) {
        match self {
            BridgedAgent::ClaudeCode => ("claude", "2.1.325"),
            BridgedAgent::Codex => ("codex", "0.166.0"),
            BridgedAgent::GeminiCli => ("gemini", "0.61.0"),
            BridgedAgent::QwenCode => ("qwen", "0.24.4"),
            BridgedAgent::CopilotCli => ("copilot", "1.0.102"),
            BridgedAgent::KimiCode => ("kimi", "2.1.0"),
            BridgedAgent::Cline => ("cline", "3.0.65"),
        }
    }

    /// The variable, and its value, by which the agent says that it has no window in which it could ask.
    pub fn without_window(self) -> Option<(&'static str, &'static str)> {
        self.dialect().without_window()
    }

    /// Whether it can end at a question, and go on when it was answered.
    pub fn can_ask_later(self) -> bool {
        self == BridgedAgent::ClaudeCode
    }

    /// The events for which it needs a hook, by its own names.
    pub fn hook_events(self) -> Vec<&'static str> {
        self.dialect().hooks().iter().map(|it| it.event).collect()
    }

    /// How it keeps its hooks.
    pub fn settings_form(self) -> SettingsForm {
        self.dialect().settings().form
    }

    /// Where its settings are: the variable that says the folder, the folder within the home folder, and the file.
    /// If the agent has a program for each hook, there is no file.
    pub fn settings_place(self) -> (&'static str, &'static str, &'static str) {
        self.dialect().settings().place
    }

    pub(crate) fn dialect(self) -> &'static dyn AgentDialect {
        match self {
            BridgedAgent::ClaudeCode => &dialects::claude_code::ClaudeCode,
            BridgedAgent::Codex => &dialects::codex::Codex,
            BridgedAgent::GeminiCli => &dialects::gemini_cli::GeminiCli,
            BridgedAgent::QwenCode => &dialects::qwen_code::QwenCode,
            BridgedAgent::CopilotCli => &dialects::copilot_cli::CopilotCli,
            BridgedAgent::KimiCode => &dialects::kimi_code::KimiCode,
            BridgedAgent::Cline => &dialects::cline::Cline,
        }
    }
}
