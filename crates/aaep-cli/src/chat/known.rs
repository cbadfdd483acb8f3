//! The agents that can be named, and which of them are on this machine.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::console::CommandFailure;
use crate::english::chatting;

/// An agent that speaks the Agent Client Protocol: its short name, its name for people, and its command.
struct KnownChatAgent {
    name: &'static str,
    title: &'static str,
    command: &'static [&'static str],
}

const KNOWN: &[KnownChatAgent] = &[
    KnownChatAgent { name: "claude", title: "Claude Code", command: &["claude-agent-acp"] },
    KnownChatAgent { name: "codex", title: "Codex", command: &["codex-acp"] },
    KnownChatAgent { name: "gemini", title: "Gemini CLI", command: &["gemini", "--acp"] },
    KnownChatAgent { name: "qwen", title: "Qwen Code", command: &["qwen", "--acp"] },
    KnownChatAgent { name: "opencode", title: "OpenCode", command: &["opencode", "acp"] },
    KnownChatAgent { name: "copilot", title: "Copilot CLI", command: &["copilot", "--acp"] },
    KnownChatAgent { name: "kimi", title: "Kimi Code", command: &["kimi", "acp"] },
    KnownChatAgent { name: "goose", title: "Goose", command: &["goose", "acp"] },
];

impl KnownChatAgent {
    fn is_here(&self) -> bool {
        self.command.first().is_some_and(|it| find(it).is_some())
    }
}

/// The list of all agents, in lines.
pub(super) fn list() -> Vec<String> {
    let (here, missing): (Vec<_>, Vec<_>) = KNOWN.iter().partition(|it| it.is_here());
    let mut lines: Vec<String> =
        here.iter().map(|it| chatting::agent_is_here(it.title, it.name)).collect();
    if here.is_empty() {
        lines.push(chatting::NO_AGENT_HERE.to_owned());
    }
    lines.extend(
        missing
            .iter()
            .map(|it| chatting::agent_is_missing(it.title, it.name, &it.command.join(" "))),
    );
    lines.push(chatting::ANOTHER_AGENT.to_owned());
    lines
}

/// The command of the agent with this name, and its name for people.
pub(super) fn command_of(name: &str) -> Result<(String, Vec<OsString>), CommandFailure> {
    let known = KNOWN.iter().find(|it| it.name.eq_ignore_ascii_case(name));
    let known = known.ok_or_else(|| chatting::unknown_agent(&aaep::printable(name)))?;
    let (program, arguments) = known.command.split_first().unwrap_or((&"", &[]));
    let path = find(program).ok_or_else(|| chatting::not_installed(known.title, program))?;
    let arguments = arguments.iter().map(OsString::from);
    Ok((known.title.to_owned(), std::iter::once(path.into()).chain(arguments).collect()))
}

/// Where a program is, if it is in one of the folders for programs.
fn find(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let endings: &[&str] = if cfg!(windows) { &["exe", "cmd", "bat"] } else { &[""] };
    let places = env::split_paths(&folders).filter(|it| it.is_absolute());
    let mut files = places.flat_map(|folder| {
        endings.iter().map(move |ending| folder.join(program).with_extension(ending))
    });
    files.find(|it| is_program(it))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_listed_once_and_each_line_stands_for_itself() {
        let lines = list();
        for agent in KNOWN {
            let named = lines.iter().filter(|it| it.contains(&format!("aaep chat {}", agent.name)));
            assert_eq!(named.count(), 1, "{} in {lines:?}", agent.name);
        }
        assert!(lines.iter().all(|it| it.ends_with(|c: char| c.is_alphanumeric() || c == '.')));
        assert!(command_of("nobody\u{1b}").is_err_and(|it| !it.what().contains('\u{1b}')));
    }
}
