//! Agents that know nothing of AAEP: what they do, as events, and how risky it is. Pure; never decides for a person.
#![doc = include_str!("../README.md")]

pub mod acp;
mod agent;
mod approval;
mod dialect;
mod dialects;
mod event;
pub mod follow;
mod gate;
mod hook;
pub mod mcp;
mod memory;
mod policy;
mod proxy_ask;
mod request_id;
pub mod risk;
pub mod settings;
mod tool_words;
mod tools;

pub use agent::BridgedAgent;
pub use approval::Approver;
pub use dialect::HookAnswer;
pub use event::AgentVoice;
pub use gate::{AskAnswer, GateAnswer, HookPlan, LaterAsk, PlannedAsk, PlannedQuestion};
pub use hook::{HookCall, HookSetup, MAX_PAYLOAD_BYTES};
pub use memory::AgentMemory;
pub use policy::AskPolicy;
pub use proxy_ask::{ProxyAsk, ProxyAskNumber, opening_of};
