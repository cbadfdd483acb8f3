//! What is remembered of the session that is open. Everything in it has a bound.

use serde_json::{Value, json};

use super::super::MAX_SESSION_ID_BYTES;
use super::{AcpSlashCommand, ListedMode, ListedSession};
use crate::event::shortened_to;

const MAX_MODES: usize = 32;
const MAX_COMMANDS: usize = 300;
const MAX_LISTED: usize = 100;
/// How much of what was said last is told again.
const MAX_LAST_CHARS: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct OpenedSession {
    pub(super) id: String,
    pub(super) modes: Vec<ListedMode>,
    pub(super) mode: String,
    /// The setting that holds the mode, for agents that have it there alone.
    mode_option: Option<String>,
    pub(super) commands: Vec<AcpSlashCommand>,
    /// The last prompt and the last answer, while the agent repeats them.
    last: (String, String),
}

impl OpenedSession {
    pub(super) fn new(id: &str) -> Self {
        OpenedSession { id: id.to_owned(), ..OpenedSession::default() }
    }

    /// Takes over what the agent says of a session that it opened.
    pub(super) fn read(&mut self, result: &Value) {
        self.read_options(&result["configOptions"]);
        let modes = &result["modes"];
        if let Some(listed) = modes["availableModes"].as_array() {
            self.modes = listed.iter().take(MAX_MODES).filter_map(mode).collect();
            self.mode_option = None;
        }
        if let Some(mode) = modes["currentModeId"].as_str() {
            self.mode = mode.chars().take(500).collect();
        }
    }

    fn read_options(&mut self, options: &Value) {
        let mut listed = options.as_array().into_iter().flatten();
        let Some(option) = listed.find(|it| it["category"] == "mode") else { return };
        let (Some(id), Some(values)) = (option["id"].as_str(), option["options"].as_array()) else {
            return;
        };
        if self.modes.is_empty() || self.mode_option.is_some() {
            self.modes = values.iter().take(MAX_MODES).filter_map(mode).collect();
            self.mode_option = Some(id.to_owned());
        }
        if let Some(mode) = option["currentValue"].as_str() {
            self.mode = mode.chars().take(500).collect();
        }
    }

    /// Takes over an update. Returns the mode if it changed.
    pub(super) fn update(&mut self, update: &Value) -> Option<ListedMode> {
        let text = || update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "current_mode_update" => return self.set_mode(update["currentModeId"].as_str()?),
            "config_option_update" => {
                let before = self.mode.clone();
                self.read_options(&update["configOptions"]);
                let now = self.mode.clone();
                return self.known_mode(&now).filter(|_| now != before).cloned();
            }
            "available_commands_update" => {
                let listed = update["availableCommands"].as_array()?;
                self.commands = listed.iter().take(MAX_COMMANDS).filter_map(command).collect();
            }
            "user_message_chunk" => {
                if !self.last.1.is_empty() {
                    self.last = (String::new(), String::new());
                }
                add(&mut self.last.0, text());
            }
            "agent_message_chunk" => add(&mut self.last.1, text()),
            // What follows a tool is another message.
            "tool_call" => add(&mut self.last.1, " "),
            _ => {}
        }
        None
    }

    /// What was said last while the session was loaded.
    pub(super) fn take_last(&mut self) -> (String, String) {
        let (prompt, answer) = std::mem::take(&mut self.last);
        (shortened_to(&prompt, MAX_LAST_CHARS), shortened_to(&answer, MAX_LAST_CHARS))
    }

    fn known_mode(&self, id: &str) -> Option<&ListedMode> {
        self.modes.iter().find(|it| it.id == id)
    }

    /// The mode with this id or name, if there is exactly one.
    pub(super) fn mode_named(&self, named: &str) -> Option<&ListedMode> {
        let is_it = |it: &&ListedMode| {
            it.id.eq_ignore_ascii_case(named) || it.name.eq_ignore_ascii_case(named)
        };
        let mut found = self.modes.iter().filter(is_it);
        found.next().filter(|_| found.next().is_none())
    }

    /// The request that switches to a mode.
    pub(super) fn mode_request(&self, mode: &str) -> (&'static str, Value) {
        match &self.mode_option {
            None => ("session/set_mode", json!({ "sessionId": self.id, "modeId": mode })),
            Some(option) => (
                "session/set_config_option",
                json!({ "sessionId": self.id, "configId": option, "value": mode }),
            ),
        }
    }

    /// The agent is in this mode now. Returns the mode if that is new.
    pub(super) fn set_mode(&mut self, mode: &str) -> Option<ListedMode> {
        if self.mode == mode {
            return None;
        }
        self.mode = mode.chars().take(500).collect();
        let unknown = || ListedMode {
            id: self.mode.clone(),
            name: shortened_to(mode, 100),
            description: String::new(),
        };
        Some(self.known_mode(mode).cloned().unwrap_or_else(unknown))
    }
}

/// Adds a piece of a text, up to a bound.
fn add(text: &mut String, piece: &str) {
    let room = (MAX_LAST_CHARS + 1).saturating_sub(text.chars().count());
    text.extend(piece.chars().take(room));
}

fn mode(mode: &Value) -> Option<ListedMode> {
    let id = mode["id"].as_str().or(mode["value"].as_str()).filter(|it| it.len() <= 500)?;
    Some(ListedMode {
        id: id.to_owned(),
        name: shortened_to(mode["name"].as_str().unwrap_or(id), 100),
        description: shortened_to(mode["description"].as_str().unwrap_or_default(), 300),
    })
}

fn command(command: &Value) -> Option<AcpSlashCommand> {
    let name = command["name"].as_str()?.trim_start_matches('/');
    let is_plain = !name.is_empty() && name.len() <= 100 && !name.contains(char::is_whitespace);
    is_plain.then(|| AcpSlashCommand {
        name: name.to_owned(),
        description: shortened_to(command["description"].as_str().unwrap_or_default(), 200),
    })
}

/// The sessions of a list that are in this folder, the newest first.
pub(super) fn listed_sessions(result: &Value, folder: &str) -> Vec<ListedSession> {
    let listed = result["sessions"].as_array().into_iter().flatten();
    let sessions = listed.filter_map(|it| {
        let id = it["sessionId"].as_str();
        let id = id.filter(|it| !it.is_empty() && it.len() <= MAX_SESSION_ID_BYTES)?;
        let is_here = it["cwd"].as_str().is_none_or(|it| it == folder);
        is_here.then(|| ListedSession {
            id: id.to_owned(),
            title: shortened_to(it["title"].as_str().unwrap_or_default(), 200),
            updated_at: shortened_to(it["updatedAt"].as_str().unwrap_or_default(), 40),
        })
    });
    let mut sessions: Vec<ListedSession> = sessions.collect();
    // Times in this form sort as text.
    sessions.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
    sessions.truncate(MAX_LISTED);
    sessions
}
