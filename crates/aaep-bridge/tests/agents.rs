//! What people hear of agents that know nothing of AAEP, and what these may do.

#[path = "agents/claude_code.rs"]
mod claude_code;
#[path = "agents/harness.rs"]
mod harness;
#[path = "agents/others.rs"]
mod others;
#[path = "agents/payloads.rs"]
mod payloads;
#[path = "agents/recordings.rs"]
mod recordings;
#[path = "agents/without_window.rs"]
mod without_window;
