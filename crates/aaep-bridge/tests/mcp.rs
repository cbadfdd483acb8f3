//! A client and a server of tools with the bridge between them: what passes, what waits, what is told and asked.

#[path = "mcp/asking.rs"]
mod asking;
#[path = "mcp/elicitation.rs"]
mod elicitation;
#[path = "mcp/hostile.rs"]
mod hostile;
#[path = "stream_check/mod.rs"]
mod stream_check;
#[path = "mcp/telling.rs"]
mod telling;
#[path = "mcp/wire.rs"]
mod wire;
