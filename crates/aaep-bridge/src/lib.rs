//! Agents that know nothing of AAEP: what they do, as events, and how risky it is. Pure; never decides for a person.
#![doc = include_str!("../README.md")]

pub mod acp;
pub mod claude_code;
mod event;
mod gate;
mod memory;
mod policy;
pub mod risk;
mod tool_words;

pub use event::AgentVoice;
pub use gate::{AskAnswer, GateAnswer, HookPlan, PlannedAsk, PlannedQuestion};
pub use memory::AgentMemory;
pub use policy::AskPolicy;
