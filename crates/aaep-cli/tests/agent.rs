//! The command line and the kit against a real hub: what people hear and answer, and what scripts get. Nothing
//! but a person's accept may end in exit code 0.

#[cfg(unix)]
#[path = "agent/acp.rs"]
mod acp;
#[path = "agent/ask.rs"]
mod ask;
#[path = "agent/attention.rs"]
mod attention;
#[path = "agent/backup.rs"]
mod backup;
#[path = "agent/capture.rs"]
mod capture;
#[cfg(unix)]
#[path = "agent/chat.rs"]
mod chat;
#[cfg(unix)]
#[path = "agent/config.rs"]
mod config;
#[cfg(unix)]
#[path = "agent/cuts.rs"]
mod cuts;
#[path = "agent/demo.rs"]
mod demo;
#[path = "agent/driving.rs"]
mod driving;
#[path = "agent/ear.rs"]
mod ear;
#[path = "agent/emit.rs"]
mod emit;
#[cfg(unix)]
#[path = "agent/follow.rs"]
mod follow;
#[cfg(target_os = "linux")]
#[path = "agent/full_disk.rs"]
mod full_disk;
#[cfg(unix)]
#[path = "agent/hook.rs"]
mod hook;
#[cfg(unix)]
#[path = "agent/kills.rs"]
mod kills;
#[path = "agent/kit.rs"]
mod kit;
#[path = "agent/listen.rs"]
mod listen;
#[cfg(unix)]
#[path = "agent/mcp.rs"]
mod mcp;
#[cfg(unix)]
#[path = "agent/meant.rs"]
mod meant;
#[cfg(unix)]
#[path = "agent/naming.rs"]
mod naming;
#[path = "agent/pages.rs"]
mod pages;
#[cfg(unix)]
#[path = "agent/pipes.rs"]
mod pipes;
#[path = "agent/replay.rs"]
mod replay;
#[path = "agent/sessions.rs"]
mod sessions;
#[cfg(unix)]
#[path = "agent/several.rs"]
mod several;
#[path = "agent/support.rs"]
mod support;
#[cfg(unix)]
#[path = "agent/tell.rs"]
mod tell;
#[cfg(unix)]
#[path = "agent/terminal.rs"]
mod terminal;
#[cfg(unix)]
#[path = "agent/trust.rs"]
mod trust;
#[cfg(unix)]
#[path = "agent/voice.rs"]
mod voice;
