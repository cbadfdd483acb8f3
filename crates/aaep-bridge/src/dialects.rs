//! The agents, one file each.

pub(crate) mod claude_code;
mod claude_shape;
pub(crate) mod cline;
pub(crate) mod codex;
pub(crate) mod copilot_cli;
pub(crate) mod gemini_cli;
pub(crate) mod kimi_code;
pub(crate) mod qwen_code;
mod result_text;
