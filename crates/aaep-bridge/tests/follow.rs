//! What people hear of agents that are followed through a server of their own, and how their questions are answered.

#![expect(clippy::disallowed_methods, reason = "recordings are files")]
#![expect(clippy::needless_pass_by_value, reason = "made where it is passed")]

#[path = "follow/codex.rs"]
mod codex;
#[path = "follow/opencode.rs"]
mod opencode;
#[path = "follow/recordings.rs"]
mod recordings;
#[path = "follow/server.rs"]
mod server;
#[path = "stream_check/mod.rs"]
mod stream_check;
